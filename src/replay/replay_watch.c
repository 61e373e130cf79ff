/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The watchdog: says where a replay stands when it stands still. It proves nothing about a replay
 * that ends but that it ended.
 */
#include "replay/replay_play.h"

#include <time.h>

enum { STATE = 2048, LOOK_NS = 100000000 };

struct crn_watch {
    pthread_t thread;
    const cairn_replay_options *opt;
    uint64_t patience_ns;
    _Atomic bool over;        /* written by the player at the end */
    _Atomic uint64_t nevents; /* written by the player before each event */
    _Atomic uint64_t until;   /* written by the player: it computes until then */
    pthread_mutex_t lock;     /* guards what follows */
    char state[STATE];        /* about the current event */
};

/* The text is made for each event: cheap beside an MPI call, and nothing else sees the player. */
static void describe(char *buf, const crn_player *p)
{
    const crn_walk_level *level;
    size_t nlevels = crn_walk_levels(p->walk, &level);
    size_t used = (size_t)snprintf(buf, STATE, "rank %d, event %llu: %s", p->rank,
                                   (unsigned long long)p->result->nevents, p->e.call->name);
    for (int i = 0; i < p->e.ncolumns && used < STATE; i++)
        used += (size_t)snprintf(buf + used, STATE - used, " %s=%lld", crn_kind_name(p->e.kind[i]),
                                 (long long)p->e.value[i]);
    for (size_t i = 0; i < nlevels && used < STATE; i++)
        used += (size_t)snprintf(buf + used, STATE - used, "%sturn %llu of %llu",
                                 i ? ", " : "\n  in ", (unsigned long long)level[i].turn + 1,
                                 (unsigned long long)level[i].turns);
    for (size_t i = 0; i < p->slot.n && used < STATE; i++)
        if (p->slot.at[i].request != MPI_REQUEST_NULL)
            used += (size_t)snprintf(buf + used, STATE - used, "\n  request %zu is under way", i);
    if (p->late.n > 0 && used < STATE)
        snprintf(buf + used, STATE - used, "\n  %zu requests go on in the background", p->late.n);
}

void crn_watch_note(crn_watch *w, const crn_player *p, uint64_t expected_ns)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    describe(w->state, p);
    pthread_mutex_unlock(&w->lock);
    /* relaxed: only that they change matters */
    atomic_store_explicit(&w->until, crn_now_ns() + expected_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&w->nevents, 1, memory_order_relaxed);
}

static void say(crn_watch *w)
{
    char state[STATE];
    pthread_mutex_lock(&w->lock);
    memcpy(state, w->state, sizeof state);
    pthread_mutex_unlock(&w->lock);
    w->opt->stuck(w->opt->arg, state);
}

static void *watch(void *arg)
{
    crn_watch *w = arg;
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

cairn_status crn_watch_start(crn_player *p, crn_watch **ret)
{
    crn_watch *w;
    *ret = NULL;
    if (!p->opt->stuck)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&w, 1));
    w->opt = p->opt;
    w->patience_ns = (uint64_t)(1e9 * (p->opt->patience > 0 ? p->opt->patience : 60));
    pthread_mutex_init(&w->lock, NULL);
    snprintf(w->state, sizeof w->state, "rank %d has not begun", p->rank);
    int rc = pthread_create(&w->thread, NULL, watch, w);
    if (rc != 0) {
        free(w);
        return crn_fail_sys(rc, "cannot start the watchdog");
    }
    *ret = w;
    return CAIRN_OK;
}

void crn_watch_stop(crn_watch *w)
{
    if (!w)
        return;
    /* release: with it the thread sees that the player is done */
    atomic_store_explicit(&w->over, true, memory_order_release);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
