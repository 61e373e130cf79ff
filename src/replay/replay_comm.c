/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Communicators made again. Whatever call made one, the trace has its ranks in their order: a split
 * by these gives the same, and topologies are put on top.
 */
#include "replay/replay.h"

enum { NUMBERS_MAX = 1 << 20 };

/* The entry of a number, which is not to be there yet; NULL for one that means nothing. */
static cairn_status new_entry(crn_player *p, int64_t number, crn_play_comm_entry **ret)
{
    *ret = NULL;
    if (number < 0 || number >= NUMBERS_MAX)
        return CAIRN_OK;
    while (p->comm.n <= (size_t)number)
        CRN_TRY(crn_vec_push(&p->comm, NULL));
    if (!p->comm.at[number])
        CRN_TRY(crn_alloc(&p->comm.at[number], 1));
    *ret = p->comm.at[number];
    **ret = (crn_play_comm_entry){.comm = MPI_COMM_NULL, .making = MPI_REQUEST_NULL};
    return CAIRN_OK;
}

static cairn_status set_comm(crn_player *p, int64_t number, MPI_Comm comm)
{
    crn_play_comm_entry *entry;
    CRN_TRY(new_entry(p, number, &entry));
    if (entry)
        entry->comm = comm;
    return CAIRN_OK;
}

/*
 * MPI_Comm_idup must not block. Whoever uses what it made has waited for it, so it is completed
 * when it is first used, whatever the requests of the trace say.
 */
static cairn_status start_copy(crn_player *p, MPI_Comm parent, int64_t number)
{
    crn_play_comm_entry *entry;
    CRN_TRY(new_entry(p, number, &entry));
    CRN_FAIL_IF(!entry, CAIRN_ECORRUPT, "the trace has a communicator number %lld",
                (long long)number);
    entry->parent = crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL);
    CRN_TRY_MPI(MPI_Comm_idup(parent, &entry->comm, &entry->making));
    return CAIRN_OK;
}

/*
 * Most programs have waited for a copy before the next collective on its parent, and Open MPI takes
 * them for each other otherwise; but it must not be waited for without end.
 */
cairn_status crn_play_copied(crn_player *p)
{
    const int64_t parent = crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL);
    for (size_t i = CRN_COMM_USER; i < p->comm.n; i++) {
        crn_play_comm_entry *entry = p->comm.at[i];
        if (entry && entry->making != MPI_REQUEST_NULL && entry->parent == parent)
            CRN_TRY(crn_play_wait_in_time(p, &entry->making));
    }
    return CAIRN_OK;
}

static bool is_between_groups(uint32_t call)
{
    return call == CRN_CALL_MPI_Intercomm_create || call == CRN_CALL_MPI_Intercomm_merge;
}

static bool has_groups(const crn_trace *t)
{
    for (size_t i = 0; i < t->nlanes; i++)
        for (size_t k = 0; k < t->lane[i].nsymbols; k++)
            if (is_between_groups(t->lane[i].symbol[k].call))
                return true;
    return false;
}

cairn_status crn_play_comms_make(crn_player *p)
{
    p->bridge = MPI_COMM_NULL;
    if (has_groups(p->t))
        CRN_TRY_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &p->bridge));
    CRN_TRY(set_comm(p, CRN_COMM_WORLD, MPI_COMM_WORLD));
    return set_comm(p, CRN_COMM_SELF, MPI_COMM_SELF);
}

bool crn_play_is_between(MPI_Comm comm)
{
    int inter = 0;
    return MPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && inter;
}

cairn_status crn_play_peers(MPI_Comm comm, int *ret)
{
    if (crn_play_is_between(comm))
        CRN_TRY_MPI(MPI_Comm_remote_size(comm, ret));
    else
        CRN_TRY_MPI(MPI_Comm_size(comm, ret));
    return CAIRN_OK;
}

void crn_play_comms_free(crn_player *p)
{
    for (size_t i = 0; i < p->comm.n; i++) {
        MPI_Comm comm = crn_play_comm_of(p, (int64_t)i);
        if (i >= CRN_COMM_USER && comm != MPI_COMM_NULL)
            MPI_Comm_free(&comm);
        free(p->comm.at[i]);
    }
    if (p->bridge != MPI_COMM_NULL)
        MPI_Comm_free(&p->bridge);
    crn_vec_done(&p->comm);
}

MPI_Comm crn_play_comm_of(const crn_player *p, int64_t number)
{
    if (number < 0 || (size_t)number >= p->comm.n || !p->comm.at[number])
        return MPI_COMM_NULL;
    crn_play_comm_entry *entry = p->comm.at[number];
    if (entry->making != MPI_REQUEST_NULL &&
        MPI_Wait(&entry->making, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return MPI_COMM_NULL;
    return entry->comm;
}

static int index_in(crn_list world, int rank)
{
    for (size_t i = 0; i < world.n; i++)
        if (world.at[i] == rank)
            return (int)i;
    return -1;
}

/* The lowest world rank of a group is a colour that no other group has. */
static int color_of(crn_list world)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < world.n; i++)
        least = CRN_MIN(least, world.at[i]);
    return world.n > 0 && least >= 0 && least <= INT32_MAX ? (int)least : MPI_UNDEFINED;
}

static cairn_status ints_of(crn_list list, int **ret)
{
    CRN_TRY(crn_alloc(ret, list.n));
    for (size_t i = 0; i < list.n; i++)
        (*ret)[i] = (int)list.at[i];
    return CAIRN_OK;
}

/* MPI_Comm_create_group is the business of the group alone. */
static cairn_status create_group(crn_list world, MPI_Comm parent, int tag, MPI_Comm *ret)
{
    MPI_Group all, group;
    int *ranks;
    CRN_TRY(ints_of(world, &ranks));
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    int rc = MPI_Group_incl(all, (int)world.n, ranks, &group);
    if (rc == MPI_SUCCESS) {
        rc = MPI_Comm_create_group(parent, group, tag, ret);
        MPI_Group_free(&group);
    }
    MPI_Group_free(&all);
    free(ranks);
    return crn_play_mpi(rc, "MPI_Comm_create_group");
}

typedef struct lists {
    int *a, *b;
} lists;

/* Two lists of the current event as ints, the first two of the kind. */
static cairn_status two_lists(const crn_player *p, lists *ret)
{
    *ret = (lists){NULL, NULL};
    CRN_TRY(ints_of(crn_play_list(p, CRN_KIND_LIST, 0), &ret->a));
    cairn_status rc = ints_of(crn_play_list(p, CRN_KIND_LIST, 1), &ret->b);
    if (rc < 0)
        free(ret->a);
    return rc;
}

/* Put the topology of the event on *comm, whose ranks are in order already. Weights are hints. */
static cairn_status add_topology(crn_player *p, MPI_Comm *comm)
{
    MPI_Comm with = MPI_COMM_NULL;
    lists l;
    crn_list first = crn_play_list(p, CRN_KIND_LIST, 0),
             second = crn_play_list(p, CRN_KIND_LIST, 1);
    int rc = MPI_SUCCESS;
    CRN_TRY(two_lists(p, &l));
    if (p->e.place->call == CRN_CALL_MPI_Cart_create && first.n == second.n)
        rc = MPI_Cart_create(*comm, (int)first.n, l.a, l.b, 0, &with);
    else if (p->e.place->call == CRN_CALL_MPI_Dist_graph_create_adjacent)
        rc = MPI_Dist_graph_create_adjacent(*comm, (int)first.n, l.a, l.a, (int)second.n, l.b, l.b,
                                            MPI_INFO_NULL, 0, &with);
    free(l.a);
    free(l.b);
    if (rc != MPI_SUCCESS || with == MPI_COMM_NULL)
        return crn_play_mpi(rc, "making a topology");
    MPI_Comm_free(comm);
    *comm = with;
    return CAIRN_OK;
}

/* Two groups become one, whose ranks are put in their order. */
static cairn_status merge_groups(crn_player *p, MPI_Comm parent, int key, MPI_Comm *ret)
{
    MPI_Comm merged;
    const int high = crn_play_value(p, CRN_KIND_INT, 0, 0) != 0;
    CRN_TRY_MPI(MPI_Intercomm_merge(parent, high, &merged));
    int rc = MPI_Comm_split(merged, 0, key, ret);
    MPI_Comm_free(&merged);
    return crn_play_mpi(rc, "MPI_Comm_split");
}

/* Which leaders met does not matter: the first ranks do, over a communicator of all ranks. */
static cairn_status join_groups(crn_player *p, MPI_Comm parent, int remote_leader, MPI_Comm *ret)
{
    const int tag = (int)crn_play_value(p, CRN_KIND_INT, 0, 0);
    CRN_TRY_MPI(MPI_Intercomm_create(parent, 0, p->bridge, remote_leader, tag, ret));
    return CAIRN_OK;
}

static cairn_status make(crn_player *p, int64_t number, crn_list world)
{
    uint32_t call = p->e.place->call;
    MPI_Comm parent = crn_play_comm_of(p, crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL));
    MPI_Comm comm = MPI_COMM_NULL;
    int me = index_in(world, p->rank);
    const bool dup = call == CRN_CALL_MPI_Comm_dup || call == CRN_CALL_MPI_Comm_dup_with_info ||
                     call == CRN_CALL_MPI_Comm_idup;
    if (parent == MPI_COMM_NULL || (is_between_groups(call) && world.n == 0) ||
        (crn_play_is_between(parent) && !dup && !is_between_groups(call))) {
        crn_play_skip(p);
        return set_comm(p, number, MPI_COMM_NULL);
    }
    if (call == CRN_CALL_MPI_Comm_idup)
        return start_copy(p, parent, number);
    if (call == CRN_CALL_MPI_Intercomm_create)
        CRN_TRY(join_groups(p, parent, (int)world.at[0], &comm));
    else if (call == CRN_CALL_MPI_Intercomm_merge)
        CRN_TRY(merge_groups(p, parent, me, &comm));
    else if (dup)
        CRN_TRY_MPI(MPI_Comm_dup(parent, &comm));
    else if (call == CRN_CALL_MPI_Comm_create_group)
        CRN_TRY(create_group(world, parent, (int)crn_play_value(p, CRN_KIND_INT, 0, 0), &comm));
    else
        CRN_TRY_MPI(MPI_Comm_split(parent, me < 0 ? MPI_UNDEFINED : color_of(world), CRN_MAX(me, 0),
                                   &comm));
    if (comm != MPI_COMM_NULL)
        CRN_TRY(add_topology(p, &comm));
    return set_comm(p, number, comm);
}

cairn_status crn_play_comm(crn_player *p)
{
    uint32_t call = p->e.place->call;
    int64_t number = crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL);
    CRN_TRY(crn_play_copied(p));
    if (call != CRN_CALL_MPI_Comm_free && call != CRN_CALL_MPI_Comm_disconnect)
        return make(p, crn_play_value(p, CRN_KIND_COMM_NEW, 0, CRN_COMM_NULL),
                    crn_play_list(p, CRN_KIND_GROUP, 0));
    if (number < CRN_COMM_USER || crn_play_comm_of(p, number) == MPI_COMM_NULL)
        return CAIRN_OK;
    /* all members come here: those that were not waited for can complete, and must before it goes
     */
    CRN_TRY(crn_play_complete_on(p, CRN_KIND_COMM, number));
    CRN_TRY_MPI(MPI_Comm_free(&p->comm.at[number]->comm));
    return CAIRN_OK;
}
