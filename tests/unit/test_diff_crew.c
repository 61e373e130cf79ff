/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The threads of a comparison: all that is to be done is done once, and whoever has nothing to do
 * helps those who have.
 */
#include "diff/diff.h"
#include "harness/harness.h"

#include <stdatomic.h>
#include <time.h>

enum { HANDS = 6, UNITS = 23, PIECES = 57, PATIENCE = 120 };

typedef struct crowd {
    diff_worker worker[HANDS + 1];
    diff_crew *crew;
} crowd;

static void crowd_init(crowd *c, unsigned nhands)
{
    diff_worker *list[HANDS];
    memset(c, 0, sizeof *c);
    for (unsigned i = 0; i < HANDS; i++)
        list[i] = &c->worker[i + 1];
    assert_ok(crn_diff_crew_create(list, nhands, &c->crew));
    for (unsigned i = 0; i <= HANDS; i++)
        c->worker[i].crew = c->crew;
}

/* --- everything once ------------------------------------------------------------------------ */

typedef struct unit {
    atomic_int next, done[PIECES];
} unit;

typedef struct mark {
    atomic_int next;
    unit unit[UNITS];
} mark;

static void do_pieces(void *arg, diff_worker *w)
{
    unit *u = arg;
    int i;
    (void)w;
    while ((i = atomic_fetch_add(&u->next, 1)) < PIECES)
        atomic_fetch_add(&u->done[i], 1);
}

static void do_units(void *arg, diff_worker *w)
{
    mark *m = arg;
    int i;
    while ((i = atomic_fetch_add(&m->next, 1)) < UNITS)
        crn_diff_crew_do(w->crew, w, true, do_pieces, &m->unit[i]);
}

static void test_everything_once(void **state)
{
    (void)state;
    for (unsigned nhands = 0; nhands <= HANDS; nhands++) {
        crowd c;
        crowd_init(&c, nhands);
        for (int turn = 0; turn < 50; turn++) {
            static mark m;
            memset(&m, 0, sizeof m);
            crn_diff_crew_do(c.crew, &c.worker[0], false, do_units, &m);
            for (int i = 0; i < UNITS * PIECES; i++)
                assert_int_equal(m.unit[i / PIECES].done[i % PIECES], 1);
        }
        crn_diff_crew_free(c.crew);
    }
}

/* --- helping -------------------------------------------------------------------------------- */

/* Work that is only done when enough threads are in it at the same time. */
typedef struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int there, wanted; /* guarded by mutex, as is late */
    bool late;
    atomic_bool taken; /* by who opens the task inside */
} meeting;

static void meet(void *arg, diff_worker *w)
{
    meeting *m = arg;
    struct timespec until;
    (void)w;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    pthread_mutex_lock(&m->mutex);
    m->there++;
    pthread_cond_broadcast(&m->changed);
    while (m->there < m->wanted && !m->late)
        m->late = pthread_cond_timedwait(&m->changed, &m->mutex, &until) != 0;
    pthread_mutex_unlock(&m->mutex);
}

static void meet_inside(void *arg, diff_worker *w)
{
    meeting *m = arg;
    if (!atomic_exchange(&m->taken, true))
        crn_diff_crew_do(w->crew, w, true, meet, m);
}

/* All threads come to one task: directly, and to one that was opened by the only unit of another,
 * be it by a hand or by the thread whose units they are. */
static void test_all_come_to_help(void **state)
{
    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        crowd c;
        meeting m = {
            PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, HANDS + 1, false, false};
        crowd_init(&c, HANDS);
        if (turn % 2)
            crn_diff_crew_do(c.crew, &c.worker[0], false, meet_inside, &m);
        else
            crn_diff_crew_do(c.crew, &c.worker[0], true, meet, &m);
        crn_diff_crew_free(c.crew);
        assert_false(m.late);
        assert_int_equal(m.there, HANDS + 1);
    }
}

static void test_nobody_to_help(void **state)
{
    (void)state;
    meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 1, false, false};
    diff_worker w = {0};
    crn_diff_crew_do(NULL, &w, true, meet, &m);
    assert_int_equal(m.there, 1);
    crn_diff_crew_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_everything_once),
                                       cmocka_unit_test(test_all_come_to_help),
                                       cmocka_unit_test(test_nobody_to_help)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
