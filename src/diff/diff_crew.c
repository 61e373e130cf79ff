/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The threads of a comparison.
 *
 * Design. A task is work of which any number of threads may take a part, such as the units of a
 * mark, or the blocks of one variable: its function takes pieces until there are none left, and
 * returns. Whoever has such work does it himself, and keeps it open for others meanwhile. A thread
 * with nothing to do joins the task that has been open the longest. So a run of few ranks with much
 * data is no slower than one of many ranks, and nobody has to know which it is.
 *
 * Tasks are opened inside of tasks, but only so deep: a task that opens no others is a leaf, and
 * who waits for helpers joins nothing but leaves meanwhile.
 */
#include "diff/diff.h"

typedef struct task {
    diff_task_fn *fn;
    void *arg;
    bool leaf;
    /* guarded by the crew's mutex: */
    bool open;
    unsigned nhelpers;
    struct task *next;
} task;

typedef struct hand {
    pthread_t thread;
    diff_crew *crew;
    diff_worker *worker;
} hand;

struct diff_crew {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a task was opened or left, or it is over */
    task *open;             /* guarded by mutex, as is over: the longest open one first */
    bool over;
    unsigned nhands; /* threads beside the caller's */
    hand *hand;
};

static void open_task(diff_crew *c, task *t)
{
    task **end = &c->open;
    while (*end)
        end = &(*end)->next;
    *end = t;
    t->open = true;
    pthread_cond_broadcast(&c->changed);
}

static void close_task(diff_crew *c, task *t)
{
    task **at = &c->open;
    while (t->open && *at != t)
        at = &(*at)->next;
    if (t->open)
        *at = t->next;
    t->open = false;
}

/* Join a task, if one is open, with the mutex held but for the work. When a thread comes back
 * nothing of it is left to take. */
static bool join(diff_crew *c, diff_worker *w, bool only_leaf)
{
    task *t = c->open;
    while (t && only_leaf && !t->leaf)
        t = t->next;
    if (!t)
        return false;
    t->nhelpers++;
    pthread_mutex_unlock(&c->mutex);
    t->fn(t->arg, w);
    pthread_mutex_lock(&c->mutex);
    close_task(c, t);
    t->nhelpers--;
    pthread_cond_broadcast(&c->changed);
    return true;
}

static void *hand_main(void *arg)
{
    hand *h = arg;
    diff_crew *c = h->crew;
    pthread_mutex_lock(&c->mutex);
    while (!c->over)
        if (!join(c, h->worker, false))
            pthread_cond_wait(&c->changed, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

void crn_diff_crew_do(diff_crew *c, diff_worker *w, bool leaf, diff_task_fn *fn, void *arg)
{
    task t = {.fn = fn, .arg = arg, .leaf = leaf};
    if (!c || c->nhands == 0) {
        fn(arg, w);
        return;
    }
    pthread_mutex_lock(&c->mutex);
    open_task(c, &t);
    pthread_mutex_unlock(&c->mutex);
    fn(arg, w);
    pthread_mutex_lock(&c->mutex);
    close_task(c, &t);
    while (t.nhelpers > 0)
        if (leaf || !join(c, w, true))
            pthread_cond_wait(&c->changed, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
}

/* Threads that cannot be started are not missed. */
static void start_hands(diff_crew *c, diff_worker **worker, unsigned n)
{
    for (; c->nhands < n; c->nhands++) {
        hand *h = &c->hand[c->nhands];
        *h = (hand){.crew = c, .worker = worker[c->nhands]};
        if (pthread_create(&h->thread, NULL, hand_main, h) != 0)
            return;
    }
}

cairn_status crn_diff_crew_create(diff_worker **worker, unsigned n, diff_crew **ret)
{
    diff_crew *c;
    CRN_TRY(crn_alloc(&c, 1));
    cairn_status rc = crn_alloc(&c->hand, n + 1);
    if (rc < 0) {
        free(c);
        return rc;
    }
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->changed, NULL);
    start_hands(c, worker, n);
    *ret = c;
    return CAIRN_OK;
}

void crn_diff_crew_free(diff_crew *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->mutex);
    c->over = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    for (unsigned i = 0; i < c->nhands; i++)
        pthread_join(c->hand[i].thread, NULL);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
    free(c->hand);
    free(c);
}
