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
    **ret = (crn_play_comm_entry){
        .comm = MPI_COMM_NULL, .making = MPI_REQUEST_NULL, .parent = CRN_COMM_NULL};
    return CAIRN_OK;
}

/* Collective over the new communicator, whose members have all just made it. */
static cairn_status set_comm(crn_player *p, int64_t number, MPI_Comm comm)
{
    crn_play_comm_entry *entry;
    CRN_TRY(new_entry(p, number, &entry));
    if (!entry)
        return CAIRN_OK;
    entry->comm = comm;
    return crn_play_copies_make(p, number, comm, &entry->copies);
}

/*
 * MPI_Comm_idup must not block. Whoever uses what it made has waited for it, so it is completed
 * when it is first used, whatever the requests of the trace say.
 */
static cairn_status start_copy(crn_player *p, MPI_Comm parent, int64_t number)
{
    const int64_t from = crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL);
    crn_play_copies *copies = p->comm.at[from]->copies;
    crn_play_comm_entry *entry;
    CRN_TRY(new_entry(p, number, &entry));
    CRN_FAIL_IF(!entry, CAIRN_ECORRUPT, "the trace has a communicator number %lld",
                (long long)number);
    if (copies) {
        entry->of = copies;
        entry->comm = crn_play_copies_take(copies);
        CRN_TRY_MPI(MPI_Ibarrier(entry->comm, &entry->making));
        return CAIRN_OK;
    }
    entry->parent = from;
    CRN_TRY_MPI(MPI_Comm_idup(parent, &entry->comm, &entry->making));
    return CAIRN_OK;
}

/*
 * Copies of copies and of communicators between groups are not made ahead. Most programs have
 * waited for one before the next collective on its parent, and Open MPI takes them for each other
 * otherwise; but it must not be waited for without end.
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

static bool has_groups(const crn_trace *t)
{
    for (size_t i = 0; i < t->nlanes; i++)
        for (size_t k = 0; k < t->lane[i].nsymbols; k++)
            if (crn_call_has(t->lane[i].symbol[k].call, CRN_TRAIT_GROUPS))
                return true;
    return false;
}

cairn_status crn_play_comms_make(crn_player *p)
{
    p->bridge = MPI_COMM_NULL;
    CRN_TRY(crn_play_copies_count(p));
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

/* A communicator goes, unless it was made ahead or is MPI's own; it is there. */
static int free_entry(crn_play_comm_entry *entry, bool own)
{
    int rc = MPI_SUCCESS;
    crn_play_copies_leave(entry->copies);
    crn_play_copies_leave(entry->of);
    if (own && !entry->of && entry->comm != MPI_COMM_NULL)
        rc = MPI_Comm_free(&entry->comm);
    entry->comm = MPI_COMM_NULL;
    entry->copies = entry->of = NULL;
    return rc;
}

void crn_play_comms_free(crn_player *p)
{
    for (size_t i = 0; i < p->comm.n; i++) {
        (void)crn_play_comm_of(p, (int64_t)i); /* it is waited for */
        if (p->comm.at[i])
            free_entry(p->comm.at[i], i >= CRN_COMM_USER);
        free(p->comm.at[i]);
    }
    crn_vec_done(&p->ncopies);
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

static void lists_done(lists *l)
{
    free(l->a);
    free(l->b);
}

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

/* The communicator that the current event makes: from which parent, of which ranks. */
typedef struct making {
    MPI_Comm parent, comm;
    int64_t number;
    crn_list world;
    int me; /* this rank in it; -1: it is no member */
} making;

/* False if it cannot be made, and is skipped; between: also from a parent of two groups. */
static cairn_status begin(crn_player *p, bool between, making *ret, bool *ret_can)
{
    CRN_TRY(crn_play_copied(p));
    *ret =
        (making){.parent = crn_play_comm_of(p, crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL)),
                 .comm = MPI_COMM_NULL,
                 .number = crn_play_value(p, CRN_KIND_COMM_NEW, 0, CRN_COMM_NULL),
                 .world = crn_play_list(p, CRN_KIND_GROUP, 0)};
    ret->me = index_in(ret->world, p->rank);
    const bool empty = p->e.call->traits & CRN_TRAIT_GROUPS && ret->world.n == 0;
    *ret_can =
        ret->parent != MPI_COMM_NULL && !empty && (between || !crn_play_is_between(ret->parent));
    if (*ret_can)
        return CAIRN_OK;
    crn_play_skip(p);
    return set_comm(p, ret->number, MPI_COMM_NULL);
}

cairn_status crn_play_dup(crn_player *p)
{
    making m;
    bool can;
    CRN_TRY(begin(p, true, &m, &can));
    if (!can)
        return CAIRN_OK;
    CRN_TRY_MPI(MPI_Comm_dup(m.parent, &m.comm));
    return set_comm(p, m.number, m.comm);
}

cairn_status crn_play_idup(crn_player *p)
{
    making m;
    bool can;
    CRN_TRY(begin(p, true, &m, &can));
    return can ? start_copy(p, m.parent, m.number) : CAIRN_OK;
}

/*
 * Split as recorded, into m->comm; *ret_can is false, too, for a rank that is in none of the parts.
 */
static cairn_status split(crn_player *p, making *m, bool *ret_can)
{
    CRN_TRY(begin(p, false, m, ret_can));
    if (!*ret_can)
        return CAIRN_OK;
    CRN_TRY_MPI(MPI_Comm_split(m->parent, m->me < 0 ? MPI_UNDEFINED : color_of(m->world),
                               CRN_MAX(m->me, 0), &m->comm));
    *ret_can = m->comm != MPI_COMM_NULL;
    return CAIRN_OK;
}

cairn_status crn_play_split(crn_player *p)
{
    making m;
    bool can;
    CRN_TRY(split(p, &m, &can));
    return set_comm(p, m.number, m.comm);
}

/* A topology on top of a communicator whose ranks are in order already; without: as it was. */
static cairn_status put_on_top(crn_player *p, making *m, int rc, MPI_Comm with)
{
    CRN_TRY(crn_play_mpi(rc, "making a topology"));
    if (with == MPI_COMM_NULL)
        return set_comm(p, m->number, m->comm);
    MPI_Comm_free(&m->comm);
    return set_comm(p, m->number, with);
}

cairn_status crn_play_cart(crn_player *p)
{
    making m;
    bool can;
    MPI_Comm with = MPI_COMM_NULL;
    lists l;
    const size_t ndims = crn_play_list(p, CRN_KIND_LIST, 0).n;
    CRN_TRY(split(p, &m, &can));
    if (!can || ndims != crn_play_list(p, CRN_KIND_LIST, 1).n)
        return set_comm(p, m.number, m.comm);
    CRN_TRY(two_lists(p, &l));
    int rc = MPI_Cart_create(m.comm, (int)ndims, l.a, l.b, 0, &with);
    lists_done(&l);
    return put_on_top(p, &m, rc, with);
}

/* Weights are hints. */
cairn_status crn_play_graph(crn_player *p)
{
    making m;
    bool can;
    MPI_Comm with = MPI_COMM_NULL;
    lists l;
    const int nin = (int)crn_play_list(p, CRN_KIND_LIST, 0).n;
    const int nout = (int)crn_play_list(p, CRN_KIND_LIST, 1).n;
    CRN_TRY(split(p, &m, &can));
    if (!can)
        return set_comm(p, m.number, MPI_COMM_NULL);
    CRN_TRY(two_lists(p, &l));
    int rc = MPI_Dist_graph_create_adjacent(m.comm, nin, l.a, l.a, nout, l.b, l.b, MPI_INFO_NULL, 0,
                                            &with);
    lists_done(&l);
    return put_on_top(p, &m, rc, with);
}

/* MPI_Comm_create_group is the business of the group alone. */
cairn_status crn_play_create_group(crn_player *p)
{
    making m;
    bool can;
    CRN_TRY(begin(p, false, &m, &can));
    if (!can)
        return CAIRN_OK;
    CRN_TRY(create_group(m.world, m.parent, (int)crn_play_value(p, CRN_KIND_INT, 0, 0), &m.comm));
    return set_comm(p, m.number, m.comm);
}

/* Two groups become one, whose ranks are put in their order. */
cairn_status crn_play_merge_groups(crn_player *p)
{
    making m;
    bool can;
    MPI_Comm merged;
    const int high = crn_play_value(p, CRN_KIND_INT, 0, 0) != 0;
    CRN_TRY(begin(p, true, &m, &can));
    if (!can)
        return CAIRN_OK;
    CRN_TRY_MPI(MPI_Intercomm_merge(m.parent, high, &merged));
    int rc = MPI_Comm_split(merged, 0, m.me, &m.comm);
    MPI_Comm_free(&merged);
    CRN_TRY(crn_play_mpi(rc, "MPI_Comm_split"));
    return set_comm(p, m.number, m.comm);
}

/* Which leaders met does not matter: the first ranks do, over a communicator of all ranks. */
cairn_status crn_play_join_groups(crn_player *p)
{
    making m;
    bool can;
    const int tag = (int)crn_play_value(p, CRN_KIND_INT, 0, 0);
    CRN_TRY(begin(p, true, &m, &can));
    if (!can)
        return CAIRN_OK;
    CRN_TRY_MPI(MPI_Intercomm_create(m.parent, 0, p->bridge, (int)m.world.at[0], tag, &m.comm));
    return set_comm(p, m.number, m.comm);
}

cairn_status crn_play_free_comm(crn_player *p)
{
    const int64_t number = crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL);
    CRN_TRY(crn_play_copied(p));
    if (number < CRN_COMM_USER || crn_play_comm_of(p, number) == MPI_COMM_NULL)
        return CAIRN_OK;
    /* all members come here: those that were not waited for can complete, and must before it goes
     */
    CRN_TRY(crn_play_complete_on(p, CRN_KIND_COMM, number));
    return crn_play_mpi(free_entry(p->comm.at[number], true), "MPI_Comm_free");
}
