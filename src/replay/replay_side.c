/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Other threads of the rank, beside the first one.
 *
 * DESIGN. They need no threads here, and no MPI that allows them: receives follow from sends
 * (replay_play.h), so that nothing of theirs blocks, and the player reissues what is due of them
 * between events of the first thread and while that computes. By the recorded times, events of all
 * threads of a rank keep their order, more or less. What they send and transfer is made again; what
 * they waited for is not, since nobody waits for them, and neither are their collectives, in which
 * the order of a process's threads matters exactly. Those are counted.
 *
 * The times are drawn from histograms, so that an event can be due before another thread has
 * opened the file that it uses. Its thread then waits until the file is open, or until no other
 * thread of the rank has anything left that could open it.
 */
#include "replay/replay.h"

#include <math.h>

typedef struct side {
    size_t lane;
    crn_walk *walk;
    crn_bind bind;
    crn_times times;
    crn_traced_event e; /* the next one */
    double due;         /* when it was, in nanoseconds since the run began, */
    double at;          /* and is, since the replay did */
    bool over;
} side;

struct crn_sides {
    CRN_VEC(side) side;
    bool unopened; /* nothing is left that could open the files that threads wait for */
    crn_meaning meaning;
};

void crn_sides_free(crn_sides *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->side.n; i++) {
        crn_walk_close(s->side.at[i].walk);
        crn_bind_done(&s->side.at[i].bind);
        crn_times_done(&s->side.at[i].times);
    }
    crn_vec_done(&s->side);
    crn_meaning_done(&s->meaning);
    free(s);
}

static void fetch(const crn_player *p, side *x)
{
    x->over = !crn_walk_next(x->walk, &x->e);
    const crn_gap *gap = x->over ? NULL : crn_times_gap(&x->times, &x->e);
    const double drawn = gap ? crn_times_draw(&x->times, gap) : 0;
    x->due += drawn;
    x->at += drawn / crn_play_speed(p);
}

static cairn_status open_side(crn_player *p, crn_sides *s, size_t lane)
{
    const uint32_t rank = (uint32_t)p->rank;
    CRN_TRY(crn_vec_reserve(&s->side, 1));
    side *x = &s->side.at[s->side.n++];
    *x = (side){.lane = lane};
    CRN_TRY(crn_walk_open(p->t, lane, rank, p->opt->seed, &x->walk));
    CRN_TRY(crn_bind_init(&x->bind, p->t, rank));
    CRN_TRY(crn_times_init(&x->times, p->t, lane, rank));
    fetch(p, x);
    return CAIRN_OK;
}

cairn_status crn_sides_create(crn_player *p, crn_sides **ret)
{
    crn_sides *s;
    cairn_status rc = CAIRN_OK;
    uint64_t index;
    CRN_TRY(crn_alloc(&s, 1));
    for (size_t i = 1; i < p->t->nlanes && rc == CAIRN_OK; i++)
        if (crn_seq_find(&p->t->lane[i].ranks, p->rank, &index))
            rc = open_side(p, s, i);
    if (rc < 0) {
        crn_sides_free(s);
        return rc;
    }
    *ret = s;
    return CAIRN_OK;
}

/* ---- events ---- */

static cairn_status send_messages(crn_player *p, side *x)
{
    crn_meaning *m = &p->sides->meaning;
    CRN_TRY(crn_meaning_of(m, &x->bind, &p->e, &p->e.comm, NULL));
    const cairn_trace_message *message = m->many.n > 0 ? m->many.at : m->few;
    for (size_t i = 0; i < m->nmessages; i++)
        CRN_TRY(crn_shadows_send(p, &message[i], x->lane));
    return CAIRN_OK;
}

/* The player's current event, which is one of the thread's. */
static cairn_status reissue(crn_player *p, side *x)
{
    p->result->nevents++;
    switch (p->e.call->layer) {
    case CRN_LAYER_P2P:
        return send_messages(p, x);
    case CRN_LAYER_WAIT: /* what it waited for is looked after by the player */
        return CAIRN_OK;
    case CRN_LAYER_POSIX:
        return crn_play_reissue(p);
    case CRN_LAYER_MPIIO:
        if (!(p->e.call->traits & CRN_TRAIT_COLLECTIVE)) /* one rank can do it alone */
            return crn_play_reissue(p);
        break;
    case CRN_LAYER_COLL:
    case CRN_LAYER_COMM:
    case CRN_LAYER_RMA:
        break;
    default: /* remarks */
        p->result->nevents--;
        return CAIRN_OK;
    }
    crn_play_skip(p);
    return CAIRN_OK;
}

static cairn_status play_next(crn_player *p, side *x)
{
    const crn_traced_event of_first = p->e;
    const crn_passing call = crn_times_passing(&x->times, x->e.symbol);
    const uint64_t skipped = p->result->nskipped;
    p->e = x->e;
    cairn_status rc = reissue(p, x);
    p->e = of_first;
    if (rc < 0)
        crn_err_prefix("thread %zu, %s: ", x->lane, x->e.call->name);
    CRN_TRY(rc);
    p->result->nskipped_threads += p->result->nskipped - skipped;
    x->due += call.least + call.waited;
    x->at += call.least + call.waited / crn_play_speed(p);
    CRN_TRY(crn_bind_learn(&x->bind, &x->e));
    if (p->by_shadows)
        CRN_TRY(crn_shadows_follow_thread(p, x->lane));
    fetch(p, x);
    return CAIRN_OK;
}

/* The first thread has come as far, or it is time. */
static bool is_due(const crn_player *p, const side *x)
{
    return x->due <= p->clock || (!p->opt->no_delay && x->at <= (double)(crn_now_ns() - p->began));
}

static bool is_waiting(const crn_player *p, const side *x)
{
    return !p->sides->unopened && !crn_play_has_file(p, &x->e);
}

/* What is due of one thread; ends early where it waits for a file. */
static cairn_status play_due(crn_player *p, side *x)
{
    const bool timed = p->t->lane[0].took != NULL;
    bool again = true;
    for (; !x->over && again && is_due(p, x) && !is_waiting(p, x); again = timed)
        CRN_TRY(play_next(p, x)); /* without times: by turns */
    return CAIRN_OK;
}

cairn_status crn_sides_play(crn_player *p, uint64_t *ret_next)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < p->sides->side.n; i++) {
        side *x = &p->sides->side.at[i];
        CRN_TRY(play_due(p, x));
        if (!x->over && !is_waiting(p, x))
            next = CRN_MIN(next, p->began + (uint64_t)x->at);
    }
    *ret_next = next;
    return CAIRN_OK;
}

static bool all_over(const crn_sides *s)
{
    size_t n = 0;
    while (n < s->side.n && s->side.at[n].over)
        n++;
    return n == s->side.n;
}

cairn_status crn_sides_finish(crn_player *p)
{
    uint64_t next;
    if (p->opt->no_delay)
        p->clock = INFINITY;
    while (!all_over(p->sides)) {
        CRN_TRY(crn_sides_play(p, &next));
        if (p->by_shadows)
            CRN_TRY(crn_shadows_look(p));
        p->sides->unopened |= next == UINT64_MAX;
        if (next == UINT64_MAX)
            continue;
        crn_watch_expect(p->watch, next);
        if (!p->opt->no_delay)
            crn_play_sleep_until(p, next);
    }
    return CAIRN_OK;
}
