/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which member goes to which runner: the lowest that is to do, but not to a runner on which it has
 * failed while there are others; when none is to do, an overdue one a second time. A task is due
 * after what tasks took so far, with room for their spread.
 */
#include "ensemble/ensemble_server.h"

#include <math.h>

enum { DURATIONS = 256 };

void crn_schedule_begin(crn_server *s)
{
    s->ndone = 0;
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state != CRN_MEMBER_DROPPED)
            s->member[m] = (crn_member_row){.state = CRN_MEMBER_TODO};
    s->cycle_ns = crn_now_ns();
}

static bool avoids(const crn_member_row *m, uint32_t runner)
{
    for (size_t i = 0; i < CRN_AVOID; i++)
        if (m->avoid[i] == runner)
            return true;
    return false;
}

/* Has it failed on every runner there is? Then any will do. */
static bool avoids_all(const crn_server *s, const crn_member_row *m)
{
    for (size_t i = 0; i < s->runner.n; i++)
        if (!avoids(m, s->runner.at[i]->number))
            return false;
    return true;
}

bool crn_schedule_choose(crn_server *s, const crn_runner_row *r, uint32_t *ret)
{
    const crn_member_row *m = s->member;
    for (int pass = 0; pass < 3; pass++)
        for (uint32_t i = 0; i < s->nmembers; i++) {
            bool todo = m[i].state == CRN_MEMBER_TODO;
            bool again = m[i].state == CRN_MEMBER_RUNNING && m[i].overdue && m[i].copies < 2;
            if ((pass == 0 && todo && !avoids(&m[i], r->number)) ||
                (pass == 1 && again && !avoids(&m[i], r->number)) ||
                (pass == 2 && todo && avoids_all(s, &m[i]))) {
                *ret = i;
                return true;
            }
        }
    return false;
}

void crn_schedule_took(crn_server *s, double seconds)
{
    if (s->seconds.n < DURATIONS)
        (void)crn_vec_push(&s->seconds, seconds);
    else
        s->seconds.at[s->nseconds % DURATIONS] = seconds;
    s->nseconds++;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median, and the median of the distances from it. */
static void middle(const crn_server *s, double *ret_median, double *ret_spread)
{
    double v[DURATIONS];
    size_t n = s->seconds.n;
    memcpy(v, s->seconds.at, n * sizeof *v);
    qsort(v, n, sizeof *v, by_size);
    *ret_median = v[n / 2];
    for (size_t i = 0; i < n; i++)
        v[i] = fabs(v[i] - *ret_median);
    qsort(v, n, sizeof *v, by_size);
    *ret_spread = v[n / 2];
}

double crn_schedule_due_s(const crn_server *s)
{
    double median, spread;
    if (s->seconds.n == 0) /* nothing is known of the model yet: only its death counts */
        return INFINITY;
    middle(s, &median, &spread);
    return fmax(s->study->due_s, 2 * median + 6 * spread);
}

/* No attempt is left. */
static cairn_status give_up(crn_server *s, uint32_t member, const char *why)
{
    crn_member_row *m = &s->member[member];
    if (s->study->failing == CRN_FAILING_STOP)
        return crn_fail(CAIRN_EPEER,
                        "member %u failed %u times in cycle %u: %s; its analysis a%06u of cycle %u "
                        "is on the shelf, to run it by hand",
                        member, m->burned, s->cycle, why, member, s->cycle - 1);
    m->state = CRN_MEMBER_FAILED;
    return CAIRN_OK;
}

/* A member's task has ended without a result. What the model or its state is to blame for burns an
 * attempt; a lost or hung runner from the second on. */
cairn_status crn_schedule_failed(crn_server *s, uint32_t member, uint32_t runner, bool model,
                                 const char *why)
{
    crn_member_row *m = &s->member[member];
    s->nfailures++;
    m->copies -= m->copies > 0;
    if (m->state != CRN_MEMBER_RUNNING)
        return CAIRN_OK;
    m->losses += !model;
    m->burned += model || m->losses > 1;
    memmove(m->avoid + 1, m->avoid, sizeof m->avoid - sizeof *m->avoid);
    m->avoid[0] = runner;
    crn_study_event(s->study, "failed", "{s:i,s:i,s:o,s:i,s:s}", "cycle", s->cycle, "member",
                    member, "runner", json_sprintf("r%u", runner), "burned", m->burned, "cause",
                    why);
    if (m->burned >= s->study->attempts)
        return give_up(s, member, why);
    if (m->copies == 0)
        m->state = CRN_MEMBER_TODO;
    m->overdue = false;
    return CAIRN_OK;
}
