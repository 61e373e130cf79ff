/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Meetings: which collectives of two ranks are one, and what a rank brings to one.
 *
 * Ranks number their communicators each for itself. What the members of one have in common is how
 * it came to be: from which parent, as its how manieth, of which ranks. From these each rank makes
 * the same 64 bits, with a generator that mixes well. The nth collective on a communicator is the
 * same meeting for all its members, in whatever order a rank starts those on several.
 */
#include "replay/replay.h"

enum { NUMBERS_MAX = 1 << 20 };
enum { ID_WORLD = 1, ID_SELF = 2, BY_GROUP = 3 }; /* more than any rank makes of one parent: none */

/* ---- communicators ---- */

static cairn_status set_comm(crn_tally *t, int64_t number, crn_tally_comm c)
{
    if (number < 0 || number >= NUMBERS_MAX)
        return CAIRN_OK;
    while (t->comm.n <= (size_t)number)
        CRN_TRY(crn_vec_push(&t->comm, (crn_tally_comm){0}));
    t->comm.at[number] = c;
    return CAIRN_OK;
}

cairn_status crn_tally_init(crn_tally *t, int of, int player)
{
    CRN_TRY(set_comm(t, CRN_COMM_WORLD, (crn_tally_comm){.id = ID_WORLD, .with_player = true}));
    return set_comm(t, CRN_COMM_SELF, (crn_tally_comm){.id = ID_SELF, .with_player = of == player});
}

void crn_tally_done(crn_tally *t)
{
    crn_vec_done(&t->comm);
}

static crn_tally_comm *comm_of(crn_tally *t, const crn_traced_event *e)
{
    int64_t number = crn_event_value(e, CRN_KIND_COMM, 0, CRN_COMM_NULL);
    bool known = number >= 0 && (size_t)number < t->comm.n && t->comm.at[number].id != 0;
    return known ? &t->comm.at[number] : NULL;
}

static uint64_t id_of_ranks(const int64_t *world, size_t n)
{
    uint64_t id = n;
    for (size_t i = 0; i < n; i++)
        id = crn_hash_mix(id, world ? (uint64_t)world[i] : i);
    return id;
}

/* Both sides of two groups that join must find the same, though each has the other's ranks. */
static uint64_t id_of_new(const crn_traced_event *e, crn_list ranks, crn_tally_comm *parent)
{
    const uint64_t group = id_of_ranks(ranks.at, ranks.n);
    const uint64_t tag = (uint64_t)crn_event_value(e, CRN_KIND_INT, 0, 0);
    switch (e->place->call) {
    case CRN_CALL_MPI_Intercomm_create:
        return crn_hash_mix(group + id_of_ranks(e->comm.world, (size_t)e->comm.size), tag);
    case CRN_CALL_MPI_Comm_create_group: /* of which the parent's other members know nothing */
        return crn_hash_mix(crn_hash_mix(parent->id, group), crn_hash_mix(BY_GROUP, tag));
    default:
        return crn_hash_mix(crn_hash_mix(parent->id, group), parent->nmade++);
    }
}

cairn_status crn_tally_learn(crn_tally *t, const crn_traced_event *e, int player)
{
    crn_tally_comm *parent = comm_of(t, e), c = {0};
    int at = crn_event_find(e, CRN_KIND_COMM_NEW, 0);
    if (at < 0 || at + 1 >= e->ncolumns)
        return CAIRN_OK;
    crn_list ranks = e->list[at + 1];
    if (parent)
        c.id = id_of_new(e, ranks, parent);
    for (size_t i = 0; i < ranks.n; i++)
        c.with_player |= ranks.at[i] == player;
    return set_comm(t, e->value[at], c);
}

bool crn_tally_meet(crn_tally *t, const crn_traced_event *e, crn_meeting_key *ret,
                    bool *ret_with_player)
{
    crn_tally_comm *c = comm_of(t, e);
    if (!c)
        return false;
    *ret = (crn_meeting_key){c->id, c->nmet++};
    *ret_with_player = c->with_player;
    return true;
}

/* ---- what a rank brings ---- */

int crn_coll_side(const crn_traced_event *e)
{
    const unsigned traits = e->call->traits;
    const bool inplace = crn_event_value(e, CRN_KIND_INPLACE, 0, 0) != 0;
    return traits & CRN_COLL_LISTS ? 0 : (traits & CRN_TRAIT_SCATTERS ? !inplace : inplace);
}

void crn_share_done(crn_coll_share *s)
{
    free(s->counts);
    *s = (crn_coll_share){0};
}

/* As many as fit the numbers of MPI's calls: a drawn value may be any. */
static int times(int64_t count, uint64_t unit)
{
    return count > 0 ? (int)CRN_MIN((uint64_t)count * unit, INT32_MAX) : 0;
}

/* Bytes in all, but not to whom: the same to each. In place what is received is also sent. */
static void spread(const crn_traced_event *e, crn_coll_share *s)
{
    int side = crn_event_value(e, CRN_KIND_INPLACE, 0, 0) != 0;
    int64_t total = crn_event_value(e, CRN_KIND_BYTES, side, 0), n = (int64_t)s->ncounts;
    for (int64_t i = 0; i < n; i++)
        s->counts[i] = times(total / n + (i < total % n), 1);
}

/* What must be the same on all members, or MPI would take one call for another. */
uint64_t crn_meeting_what(const crn_player *p, const crn_traced_event *e)
{
    uint64_t what = crn_hash_mix(e->place->call, (uint64_t)crn_event_value(e, CRN_KIND_ROOT, 0, 0));
    if (crn_event_find(e, CRN_KIND_OP, 0) >= 0)
        what = crn_hash_mix(what,
                            crn_play_type_of(p, crn_event_value(e, CRN_KIND_TYPE, 0, -1))->nbytes);
    return what;
}

cairn_status crn_share_of(const crn_player *p, const crn_traced_event *e, size_t n,
                          crn_coll_share *ret)
{
    const bool sums = e->call->traits & CRN_TRAIT_SUMS;
    const int side = crn_coll_side(e);
    const bool reduces = crn_event_find(e, CRN_KIND_OP, 0) >= 0;
    const int64_t type = crn_event_value(e, CRN_KIND_TYPE, side, -1);
    const uint64_t unit = reduces ? 1 : crn_play_type_of(p, type)->nbytes;
    crn_list list = crn_event_list(e, CRN_KIND_LIST, 0);
    *ret = (crn_coll_share){.count = times(crn_event_value(e, CRN_KIND_COUNT, side, 0), unit)};
    if (!(e->call->traits & CRN_TRAIT_LISTS_0) && !sums)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&ret->counts, n));
    ret->ncounts = n;
    if (sums && n > 0)
        spread(e, ret);
    for (size_t i = 0; !sums && i < CRN_MIN(n, list.n); i++)
        ret->counts[i] = times(list.at[i], unit);
    return CAIRN_OK;
}
