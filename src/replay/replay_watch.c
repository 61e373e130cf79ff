/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The watchdog: says where a replay stands when it stands still. It proves nothing about a replay
 * that ends but that it ended.
 */
#include "replay/replay.h"

#include <time.h>

enum { LEVELS = 16, SLOTS = 8, LOOK_NS = 100000000 };

/* What the player is at: copied before each event, put into words only when it stands still. */
typedef struct snapshot {
    int rank;
    bool begun;
    uint64_t nevents;
    const crn_call *call;
    int ncolumns;
    uint8_t kind[CRN_COLUMNS];
    int64_t value[CRN_COLUMNS];
    crn_walk_level level[LEVELS];
    size_t slot[SLOTS]; /* requests that are under way, the first of them */
    size_t nlevels, nslots, nlate;
} snapshot;

struct crn_watchdog {
    pthread_t thread;
    const cairn_replay_options *opt;
    uint64_t patience_ns;
    _Atomic bool over;        /* written by the player at the end */
    _Atomic uint64_t nevents; /* written by the player before each event */
    _Atomic uint64_t until;   /* written by the player: it computes until then */
    pthread_mutex_t lock;     /* guards what follows */
    snapshot now;
};

static void take(snapshot *s, const crn_player *p)
{
    const crn_walk_level *level;
    const size_t n = (size_t)p->e.ncolumns;
    s->begun = true;
    s->nevents = p->result->nevents;
    s->call = p->e.call;
    s->ncolumns = p->e.ncolumns;
    memcpy(s->kind, p->e.kind, n * sizeof *s->kind);
    memcpy(s->value, p->e.value, n * sizeof *s->value);
    s->nlevels = CRN_MIN(crn_walk_levels(p->walk, &level), LEVELS);
    memcpy(s->level, level, s->nlevels * sizeof *s->level);
    s->nslots = 0;
    for (size_t i = 0; i < p->slot.n && s->nslots < SLOTS; i++)
        if (p->slot.at[i].request != MPI_REQUEST_NULL)
            s->slot[s->nslots++] = i;
    s->nlate = p->late.n;
}

static void describe(crn_buf *b, const snapshot *s)
{
    if (!s->begun) {
        crn_put_text(b, "rank %d has not begun", s->rank);
        return;
    }
    crn_put_text(b, "rank %d, event %llu: %s", s->rank, (unsigned long long)s->nevents,
                 s->call->name);
    for (int i = 0; i < s->ncolumns; i++)
        crn_put_text(b, " %s=%lld", crn_kind_name(s->kind[i]), (long long)s->value[i]);
    for (size_t i = 0; i < s->nlevels; i++)
        crn_put_text(b, "%sturn %llu of %llu", i ? ", " : "\n  in ",
                     (unsigned long long)s->level[i].turn + 1,
                     (unsigned long long)s->level[i].turns);
    for (size_t i = 0; i < s->nslots; i++)
        crn_put_text(b, "\n  request %zu is under way", s->slot[i]);
    if (s->nlate > 0)
        crn_put_text(b, "\n  %zu requests go on in the background", s->nlate);
}

void crn_watch_note(crn_watchdog *w, const crn_player *p, uint64_t expected_ns)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    take(&w->now, p);
    pthread_mutex_unlock(&w->lock);
    crn_watch_expect(w, crn_now_ns() + expected_ns);
}

void crn_watch_expect(crn_watchdog *w, uint64_t until)
{
    if (!w)
        return;
    /* relaxed: only that they change matters */
    atomic_store_explicit(&w->until, until, memory_order_relaxed);
    atomic_fetch_add_explicit(&w->nevents, 1, memory_order_relaxed);
}

static void say(crn_watchdog *w)
{
    crn_buf state = {0};
    pthread_mutex_lock(&w->lock);
    describe(&state, &w->now);
    pthread_mutex_unlock(&w->lock);
    const char *text = crn_buf_text(&state);
    w->opt->stuck(w->opt->arg, text ? text : "there is no memory to describe its position");
    crn_buf_done(&state);
}

static void *watch(void *arg)
{
    crn_watchdog *w = arg;
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    uint64_t seen = 0, since = crn_now_ns();
    while (!atomic_load_explicit(&w->over, memory_order_acquire)) {
        uint64_t n = atomic_load_explicit(&w->nevents, memory_order_relaxed), now = crn_now_ns();
        uint64_t until = atomic_load_explicit(&w->until, memory_order_relaxed);
        if (n != seen || now < until) {
            seen = n;
            since = now;
        } else if (now - since > w->patience_ns) {
            say(w);
            break;
        }
        nanosleep(&pause, NULL);
    }
    return NULL;
}

cairn_status crn_watch_start(crn_player *p, crn_watchdog **ret)
{
    crn_watchdog *w;
    *ret = NULL;
    if (!p->opt->stuck)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&w, 1));
    w->opt = p->opt;
    w->patience_ns = (uint64_t)(1e9 * (p->opt->patience > 0 ? p->opt->patience : 60));
    pthread_mutex_init(&w->lock, NULL);
    w->now.rank = p->rank;
    int rc = pthread_create(&w->thread, NULL, watch, w);
    if (rc != 0) {
        free(w);
        return crn_fail_sys(rc, "cannot start the watchdog");
    }
    *ret = w;
    return CAIRN_OK;
}

void crn_watch_stop(crn_watchdog *w)
{
    if (!w)
        return;
    /* release: with it the thread sees that the player is done */
    atomic_store_explicit(&w->over, true, memory_order_release);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
