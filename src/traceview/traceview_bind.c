/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the numbers of handles stand for. A trace has numbers instead of handles, and numbers are
 * used again. Events in order define at each point what a number means; without order it is known
 * only if the number means the same all along, which is the rule, and noticed when it is not.
 */
#include "traceview/traceview.h"

enum { NUMBERS_MAX = 1 << 20 }; /* of one kind; a damaged file may say anything */

int crn_event_find(const crn_traced_event *e, unsigned kind, int from)
{
    for (int i = from; i < e->ncolumns; i++)
        if (e->kind[i] == kind)
            return i;
    return -1;
}

void crn_bind_done(crn_bind *b)
{
    for (size_t i = 0; i < b->comm.n; i++)
        free((void *)b->comm.at[i].view.world);
    crn_vec_done(&b->comm);
    crn_vec_done(&b->file);
    crn_vec_done(&b->fd);
    crn_vec_done(&b->request);
    crn_vec_done(&b->made);
}

static bool same_comm(const crn_comm_view *a, crn_list world)
{
    if (a->size != (int64_t)world.n)
        return false;
    for (size_t i = 0; i < world.n; i++)
        if ((a->world ? a->world[i] : (int64_t)i) != world.at[i])
            return false;
    return true;
}

/*
 * Ranks make the communicators of the same group in the same order, so which of them it is says it
 * to all. Between groups each side knows only the other.
 */
static cairn_status identify(crn_bind *b, crn_list world, bool member, uint64_t *ret)
{
    uint64_t h = crn_hash_mix(0, world.n);
    size_t k = 0;
    for (size_t i = 0; i < world.n; i++)
        h = crn_hash_mix(h, (uint64_t)world.at[i]);
    while (k < b->made.n && b->made.at[k].ranks != h)
        k++;
    if (k == b->made.n)
        CRN_TRY(crn_vec_push(&b->made, (crn_made){h, 0}));
    *ret = member ? crn_hash_mix(h, b->made.at[k].n++) | 1 : 0;
    return CAIRN_OK;
}

static bool is_member(const crn_bind *b, crn_list world)
{
    for (size_t i = 0; i < world.n; i++)
        if (world.at[i] == b->rank)
            return true;
    return false;
}

static cairn_status learn_comm(crn_bind *b, int64_t number, crn_list world)
{
    int64_t *copy;
    uint64_t identity;
    if (number < 0 || number >= NUMBERS_MAX)
        return CAIRN_OK;
    while (b->comm.n <= (size_t)number)
        CRN_TRY(crn_vec_push(&b->comm, (crn_bound_comm){.known = false}));
    crn_bound_comm *c = &b->comm.at[number];
    CRN_TRY(identify(b, world, is_member(b, world), &identity));
    c->identity = identity;
    if (c->known && same_comm(&c->view, world))
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&copy, world.n));
    b->conflict |= c->known;
    free((void *)c->view.world);
    *c = (crn_bound_comm){
        {.rank = -1, .size = (int64_t)world.n, .world = copy}, .known = true, .identity = identity};
    for (size_t i = 0; i < world.n; i++) {
        copy[i] = world.at[i];
        if (world.at[i] == b->rank)
            c->view.rank = (int64_t)i;
    }
    return CAIRN_OK;
}

cairn_status crn_bind_init(crn_bind *b, const crn_trace *t, uint32_t rank)
{
    int64_t self = rank;
    *b = (crn_bind){.t = t, .rank = rank};
    crn_bound_comm world = {{.rank = rank, .size = t->nranks}, .known = true, .identity = 1};
    CRN_TRY(crn_vec_push(&b->comm, world));
    return learn_comm(b, CRN_COMM_SELF, (crn_list){&self, 1});
}

/* A vector of uint32_t: both kinds of files. */
static cairn_status learn_name(crn_bind *b, uint32_t **at, size_t *n, size_t *cap, int64_t number,
                               uint32_t name)
{
    if (number < 0 || number >= NUMBERS_MAX || name == 0)
        return CAIRN_OK;
    if (*n <= (size_t)number) {
        size_t more = (size_t)number + 1 - *n;
        CRN_TRY(crn_vec_grow((void **)at, cap, *n, more, sizeof **at));
        memset(*at + *n, 0, more * sizeof **at);
        *n += more;
    }
    b->conflict |= (*at)[number] != 0 && (*at)[number] != name;
    (*at)[number] = name;
    return CAIRN_OK;
}

/* The number of the communicator of an event, if it is known; else -1. */
static int64_t comm_number(const crn_bind *b, const crn_traced_event *e)
{
    int i = crn_event_find(e, CRN_KIND_COMM, 0);
    return i < 0 || e->value[i] < 0 || (size_t)e->value[i] >= b->comm.n ? -1 : e->value[i];
}

static cairn_status learn_request(crn_bind *b, const crn_traced_event *e, int64_t number)
{
    crn_meaning m = {0};
    crn_comm_view comm = crn_bind_comm(b, e);
    if (number < 0 || number >= NUMBERS_MAX)
        return CAIRN_OK;
    while (b->request.n <= (size_t)number)
        CRN_TRY(crn_vec_push(&b->request, (crn_bound_request){.known = false}));
    crn_bound_request *r = &b->request.at[number];
    crn_bound_request new = {.known = true, .sent = true, .peer = CRN_PEER_NONE};
    if (e->call->layer == CRN_LAYER_COLL) {
        new.collective = true;
        new.nbytes = crn_collective_nbytes(b, e, &comm);
    } else {
        crn_messages_of(&m, b, e, &comm, NULL);
        new.tag = m.few[0].tag;
        new.comm = m.few[0].comm;
        new.comm_number = comm_number(b, e);
        new.sent = m.few[0].sent;
        new.peer = m.few[0].peer;
        new.nbytes = m.few[0].nbytes;
    }
    b->conflict |=
        r->known && (r->sent != new.sent || r->peer != new.peer || r->nbytes != new.nbytes);
    *r = new;
    return CAIRN_OK;
}

/* To how many ranks this one sends in the topology of a communicator that an event makes. */
static uint64_t neighbors_of(const crn_bind *b, const crn_traced_event *e)
{
    const int64_t old = comm_number(b, e);
    const int first = crn_event_find(e, CRN_KIND_LIST, 0);
    const int second = first < 0 ? -1 : crn_event_find(e, CRN_KIND_LIST, first + 1);
    switch (e->place->call) {
    case CRN_CALL_MPI_Cart_create:
        return first < 0 ? 0 : 2 * e->list[first].n; /* two in each dimension */
    case CRN_CALL_MPI_Dist_graph_create_adjacent:
        return second < 0 ? 0 : e->list[second].n;
    case CRN_CALL_MPI_Comm_dup:
    case CRN_CALL_MPI_Comm_dup_with_info:
    case CRN_CALL_MPI_Comm_idup:
        return old < 0 ? 0 : b->comm.at[old].nneighbors;
    default:
        return 0;
    }
}

static cairn_status learn_new_comm(crn_bind *b, const crn_traced_event *e, int column)
{
    const uint64_t nneighbors = neighbors_of(b, e);
    const int64_t number = e->value[column];
    CRN_TRY(learn_comm(b, number, e->list[column + 1]));
    if (number >= 0 && (size_t)number < b->comm.n)
        b->comm.at[number].nneighbors = nneighbors;
    return CAIRN_OK;
}

uint64_t crn_bind_targets(const crn_bind *b, const crn_traced_event *e)
{
    const int64_t number = comm_number(b, e);
    if (number < 0)
        return 1;
    const crn_bound_comm *c = &b->comm.at[number];
    if (crn_call_has(e->place->call, CRN_TRAIT_NEIGHBORS))
        return CRN_MAX(c->nneighbors, 1);
    return (uint64_t)CRN_MAX(c->view.size, 1);
}

cairn_status crn_bind_learn(crn_bind *b, const crn_traced_event *e)
{
    int i = crn_event_find(e, CRN_KIND_COMM_NEW, 0);
    if (i >= 0 && i + 1 < e->ncolumns)
        CRN_TRY(learn_new_comm(b, e, i));
    if ((i = crn_event_find(e, CRN_KIND_FILE_NEW, 0)) >= 0)
        CRN_TRY(learn_name(b, &b->file.at, &b->file.n, &b->file.cap, e->value[i], e->place->name));
    if ((i = crn_event_find(e, CRN_KIND_FD_NEW, 0)) >= 0) {
        uint32_t name = e->place->name ? e->place->name : crn_bind_file(b, e); /* of the old one */
        CRN_TRY(learn_name(b, &b->fd.at, &b->fd.n, &b->fd.cap, e->value[i], name));
    }
    if (crn_call_has(e->place->call, CRN_TRAIT_PREPARES))
        CRN_TRY(learn_request(b, e, e->value[crn_event_find(e, CRN_KIND_REQ, 0)]));
    return CAIRN_OK;
}

uint64_t crn_bind_identity(const crn_bind *b, const crn_traced_event *e)
{
    const int64_t number = comm_number(b, e);
    return number < 0 ? 0 : b->comm.at[number].identity;
}

crn_comm_view crn_bind_comm(const crn_bind *b, const crn_traced_event *e)
{
    const int64_t number = comm_number(b, e);
    return number < 0 ? (crn_comm_view){0} : b->comm.at[number].view;
}

uint32_t crn_bind_file(const crn_bind *b, const crn_traced_event *e)
{
    int i;
    if (e->place->name)
        return e->place->name;
    if ((i = crn_event_find(e, CRN_KIND_FILE, 0)) >= 0)
        return (uint64_t)e->value[i] < b->file.n ? b->file.at[e->value[i]] : 0;
    if ((i = crn_event_find(e, CRN_KIND_FD, 0)) >= 0)
        return (uint64_t)e->value[i] < b->fd.n ? b->fd.at[e->value[i]] : 0;
    return 0;
}
