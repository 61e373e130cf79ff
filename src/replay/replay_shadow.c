/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shadows: each rank walks what every other rank does. It posts the receives for what they send to
 * it, and knows what they bring to the collectives that they have in common. See DESIGN in
 * replay_play.h.
 */
#include "replay/replay.h"

/* What the rank of a shadow brings to a meeting that the player has not come to. */
typedef struct offer {
    crn_meeting_key key;
    uint64_t epoch; /* as of the meeting */
    uint64_t what;
    crn_coll_share share;
} offer;

typedef struct shadow {
    crn_walk *walk;
    crn_bind bind;
    crn_tally tally;
    CRN_VEC(offer) offer; /* in their order */
    uint64_t nevents;     /* walked */
    uint64_t epoch;       /* blocking collectives of all ranks that it has reached */
    bool over;
} shadow;

/* Another thread of a rank, of which messages alone matter. */
typedef struct side {
    int from;
    size_t lane;
    crn_walk *walk;
    crn_bind bind;
    uint64_t nevents;
    bool over;
    bool alone; /* the player has no such thread: its first one sets the pace */
} side;

struct crn_shadows {
    crn_flights flights;
    shadow *of; /* by rank; the player's own has its tally only */
    int n;
    CRN_VEC(side) side;
    uint64_t nevents, epoch; /* of the player */
    uint64_t *side_nevents;  /* of its other threads, by lane */
    crn_meaning meaning;
};

static bool is_of_all(const crn_traced_event *e, uint32_t nranks)
{
    int comm = crn_event_find(e, CRN_KIND_COMM, 0);
    return comm >= 0 && (e->value[comm] == CRN_COMM_WORLD || e->comm.size == (int64_t)nranks);
}

/* Only what all ranks block in separates epochs: others may come to it in different orders. */
static bool ends_epoch(const crn_traced_event *e, uint32_t nranks)
{
    return e->call->layer == CRN_LAYER_COLL && crn_event_find(e, CRN_KIND_REQ, 0) < 0 &&
           is_of_all(e, nranks);
}

static void shadow_done(shadow *o)
{
    crn_walk_close(o->walk);
    crn_bind_done(&o->bind);
    crn_tally_done(&o->tally);
    for (size_t i = 0; i < o->offer.n; i++)
        crn_share_done(&o->offer.at[i].share);
    crn_vec_done(&o->offer);
}

void crn_shadows_free(crn_shadows *s)
{
    if (!s)
        return;
    for (int i = 0; s->of && i < s->n; i++)
        shadow_done(&s->of[i]);
    for (size_t i = 0; i < s->side.n; i++) {
        crn_walk_close(s->side.at[i].walk);
        crn_bind_done(&s->side.at[i].bind);
    }
    crn_vec_done(&s->side);
    free(s->side_nevents);
    crn_flights_done(&s->flights);
    crn_meaning_done(&s->meaning);
    free(s->of);
    if (s->flights.comm != MPI_COMM_NULL)
        MPI_Comm_free(&s->flights.comm);
    free(s);
}

static cairn_status open_side(crn_player *p, crn_shadows *s, int from, size_t lane)
{
    uint64_t index;
    CRN_TRY(crn_vec_reserve(&s->side, 1));
    side *x = &s->side.at[s->side.n++];
    *x = (side){.from = from,
                .lane = lane,
                .alone = !crn_seq_find(&p->t->lane[lane].ranks, p->rank, &index)};
    CRN_TRY(crn_bind_init(&x->bind, p->t, (uint32_t)from));
    return crn_walk_open(p->t, lane, (uint32_t)from, p->opt->seed, &x->walk);
}

static cairn_status open_sides(crn_player *p, crn_shadows *s)
{
    uint64_t index;
    CRN_TRY(crn_alloc(&s->side_nevents, p->t->nlanes));
    for (size_t l = 1; l < p->t->nlanes; l++)
        for (int i = 0; i < s->n; i++)
            if (i != p->rank && crn_seq_find(&p->t->lane[l].ranks, i, &index))
                CRN_TRY(open_side(p, s, i, l));
    return CAIRN_OK;
}

static cairn_status open_shadows(crn_player *p, crn_shadows *s)
{
    CRN_TRY(crn_alloc(&s->of, (size_t)s->n));
    for (int i = 0; i < s->n; i++) {
        CRN_TRY(crn_bind_init(&s->of[i].bind, p->t, (uint32_t)i));
        CRN_TRY(crn_tally_init(&s->of[i].tally, i, p->rank));
        if (i != p->rank)
            CRN_TRY(crn_walk_open(p->t, 0, (uint32_t)i, p->opt->seed, &s->of[i].walk));
    }
    if (p->by_shadows)
        CRN_TRY(open_sides(p, s));
    CRN_TRY_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &s->flights.comm));
    return CAIRN_OK;
}

cairn_status crn_shadows_create(crn_player *p, crn_shadows **ret)
{
    crn_shadows *s;
    CRN_TRY(crn_alloc(&s, 1));
    s->flights.comm = MPI_COMM_NULL;
    s->n = p->size;
    cairn_status rc = open_shadows(p, s);
    if (rc < 0) {
        crn_shadows_free(s);
        return rc;
    }
    *ret = s;
    return CAIRN_OK;
}

/* ---- messages ---- */

static bool fits(uint64_t nbytes)
{
    return nbytes <= INT32_MAX;
}

/* Messages of a thread are in order among themselves. */
static int tag_of(size_t lane)
{
    return (int)lane + 1;
}

/* No thread but the first comes to collectives: its messages are completed when all ends. */
static uint64_t epoch_of(size_t lane, uint64_t of_first)
{
    return lane == 0 ? of_first : UINT64_MAX - 1;
}

cairn_status crn_shadows_send(crn_player *p, const cairn_trace_message *m, size_t lane)
{
    crn_shadows *s = p->shadows;
    const uint64_t epoch = epoch_of(lane, s->epoch);
    char *buf;
    if (!m->sent || m->peer < 0 || m->peer >= p->size || !fits(m->nbytes))
        return CAIRN_OK;
    if (m->peer == p->rank)
        CRN_TRY(crn_flights_receive(&s->flights, m->nbytes, p->rank, tag_of(lane), epoch));
    CRN_TRY(crn_play_bytes(&p->payload, m->nbytes, p->opt->seed, &buf));
    CRN_TRY(crn_flights_send(&s->flights, buf, m->nbytes, (int)m->peer, tag_of(lane), epoch));
    p->result->sent_bytes += m->nbytes;
    return CAIRN_OK;
}

cairn_status crn_shadows_wait(crn_player *p)
{
    return crn_flights_wait(&p->shadows->flights, crn_play_expected_end(p));
}

cairn_status crn_shadows_look(crn_player *p)
{
    return crn_flights_wait(&p->shadows->flights, 0);
}

/* What an event of a thread of another rank sends to the player. */
static cairn_status receive_all(crn_player *p, int from, size_t lane, const crn_bind *bind,
                                const crn_traced_event *e)
{
    crn_shadows *s = p->shadows;
    const uint64_t epoch = epoch_of(lane, s->of[from].epoch);
    CRN_TRY(crn_meaning_of(&s->meaning, bind, e, &e->comm, NULL));
    const cairn_trace_message *m = s->meaning.many.n > 0 ? s->meaning.many.at : s->meaning.few;
    for (size_t i = 0; i < s->meaning.nmessages; i++)
        if (m[i].sent && m[i].peer == p->rank && fits(m[i].nbytes))
            CRN_TRY(crn_flights_receive(&s->flights, m[i].nbytes, from, tag_of(lane), epoch));
    return CAIRN_OK;
}

/* Another thread of another rank comes as far as n events. */
static cairn_status step_side(crn_player *p, side *x, uint64_t n)
{
    crn_traced_event e;
    while (!x->over && x->nevents < n) {
        x->over = !crn_walk_next(x->walk, &e);
        if (x->over)
            break;
        x->nevents++;
        if (e.call->layer == CRN_LAYER_P2P)
            CRN_TRY(receive_all(p, x->from, x->lane, &x->bind, &e));
        CRN_TRY(crn_bind_learn(&x->bind, &e));
    }
    return CAIRN_OK;
}

/* ---- meetings ---- */

static cairn_status note_offer(crn_player *p, shadow *o, const crn_traced_event *e)
{
    offer new = {.epoch = o->epoch, .what = crn_meeting_what(p, e)};
    bool with_player;
    if (!crn_tally_meet(&o->tally, e, &new.key, &with_player) || !with_player)
        return CAIRN_OK;
    CRN_TRY(crn_vec_reserve(&o->offer, 1));
    CRN_TRY(crn_share_of(p, e, (size_t)e->comm.size, &new.share));
    o->offer.at[o->offer.n++] = new;
    return CAIRN_OK;
}

/* One event of another rank. */
static cairn_status step(crn_player *p, int from)
{
    shadow *o = &p->shadows->of[from];
    crn_traced_event e;
    if (!crn_walk_next(o->walk, &e)) {
        o->over = true;
        return CAIRN_OK;
    }
    o->nevents++;
    o->epoch += ends_epoch(&e, p->t->nranks);
    if (e.call->layer == CRN_LAYER_COLL)
        CRN_TRY(note_offer(p, o, &e));
    if (e.call->layer == CRN_LAYER_P2P && p->by_shadows)
        CRN_TRY(receive_all(p, from, 0, &o->bind, &e));
    CRN_TRY(crn_tally_learn(&o->tally, &e, p->rank));
    return crn_bind_learn(&o->bind, &e);
}

/* What a rank brings to a meeting; false if it never comes. */
static cairn_status take_offer(crn_player *p, int64_t from, crn_meeting_key key, offer *ret,
                               bool *ret_comes)
{
    *ret_comes = false;
    if (from < 0 || from >= p->size) /* as only a damaged trace says */
        return CAIRN_OK;
    shadow *o = &p->shadows->of[from];
    for (size_t i = 0;; i++) {
        while (i == o->offer.n && !o->over)
            CRN_TRY(step(p, (int)from));
        if (i == o->offer.n)
            return CAIRN_OK;
        offer *at = &o->offer.at[i];
        if (at->key.comm != key.comm || at->key.nth != key.nth)
            continue;
        *ret = *at;
        memmove(at, at + 1, (--o->offer.n - i) * sizeof *at);
        *ret_comes = true;
        return CAIRN_OK;
    }
}

void crn_meeting_done(crn_meeting *m)
{
    for (size_t i = 0; i < m->n; i++)
        crn_share_done(&m->share[i]);
    free(m->share);
}

cairn_status crn_shadows_meet(crn_player *p, crn_meeting *ret)
{
    crn_shadows *s = p->shadows;
    const crn_comm_view *comm = &p->e.comm;
    const uint64_t what = crn_meeting_what(p, &p->e);
    crn_meeting_key key;
    bool with_player;
    s->epoch += ends_epoch(&p->e, p->t->nranks);
    *ret = (crn_meeting){.in_step = true};
    if (!crn_tally_meet(&s->of[p->rank].tally, &p->e, &key, &with_player))
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&ret->share, (size_t)comm->size));
    ret->n = (size_t)comm->size;
    ret->all_come = true;
    for (size_t i = 0; i < ret->n; i++) {
        int64_t from = comm->world ? comm->world[i] : (int64_t)i;
        offer o = {.epoch = s->epoch, .what = what};
        bool comes = true;
        if (from == p->rank)
            CRN_TRY(crn_share_of(p, &p->e, ret->n, &o.share));
        else
            CRN_TRY(take_offer(p, from, key, &o, &comes));
        ret->share[i] = o.share;
        ret->all_come &= comes && (o.what == what || comm->rank < 0);
        ret->in_step &= o.epoch == s->epoch;
    }
    return CAIRN_OK;
}

cairn_status crn_shadows_learn(crn_player *p)
{
    return crn_tally_learn(&p->shadows->of[p->rank].tally, &p->e, p->rank);
}

/* ---- going on ---- */

/* Let all shadows come as far as the player, but not past what it has not reached. */
cairn_status crn_shadows_follow(crn_player *p)
{
    crn_shadows *s = p->shadows;
    s->nevents++;
    for (int i = 0; i < s->n; i++) {
        shadow *o = &s->of[i];
        while (i != p->rank && !o->over && o->epoch <= s->epoch && o->nevents < s->nevents)
            CRN_TRY(step(p, i));
    }
    for (size_t i = 0; i < s->side.n; i++)
        if (s->side.at[i].alone)
            CRN_TRY(step_side(p, &s->side.at[i], s->nevents));
    return CAIRN_OK;
}

cairn_status crn_shadows_follow_thread(crn_player *p, size_t lane)
{
    crn_shadows *s = p->shadows;
    const uint64_t n = ++s->side_nevents[lane];
    for (size_t i = 0; i < s->side.n; i++)
        if (s->side.at[i].lane == lane)
            CRN_TRY(step_side(p, &s->side.at[i], n));
    return CAIRN_OK;
}

cairn_status crn_shadows_settle(crn_player *p)
{
    return ends_epoch(&p->e, p->t->nranks)
               ? crn_flights_complete(&p->shadows->flights, p->shadows->epoch)
               : CAIRN_OK;
}

cairn_status crn_shadows_finish(crn_player *p)
{
    crn_shadows *s = p->shadows;
    for (int i = 0; i < s->n; i++)
        while (i != p->rank && !s->of[i].over)
            CRN_TRY(step(p, i));
    for (size_t i = 0; i < s->side.n; i++)
        CRN_TRY(step_side(p, &s->side.at[i], UINT64_MAX));
    return crn_flights_complete(&s->flights, UINT64_MAX);
}
