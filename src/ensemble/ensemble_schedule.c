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
    s->nlimits = 0;
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

double crn_schedule_need_s(const crn_server *s)
{
    double median, spread;
    if (s->seconds.n == 0)
        return 0;
    middle(s, &median, &spread);
    return median + 4 * spread;
}

const char *crn_cause_word(crn_cause cause)
{
    static const char *const words[] = {[CRN_CAUSE_LOST] = "lost",
                                        [CRN_CAUSE_REFUSED] = "refused",
                                        [CRN_CAUSE_LIMIT] = "limit",
                                        [CRN_CAUSE_HANG] = "hang",
                                        [CRN_CAUSE_STATE] = "state"};
    return words[cause];
}

/* Jobs whose time is over burn no attempt; but if none lasts long enough, nothing is ever done. */
static cairn_status check_limits(crn_server *s, crn_cause cause)
{
    s->nlimits = cause == CRN_CAUSE_LIMIT ? s->nlimits + 1 : s->nlimits;
    CRN_FAIL_IF(s->nlimits > 3 * s->study->runners + 2, CAIRN_EPEER,
                "%u tasks in a row were ended with the time of their jobs: a member takes longer "
                "than a runner has",
                s->nlimits);
    return CAIRN_OK;
}

/* No attempt is left. */
static cairn_status give_up(crn_server *s, uint32_t member, const char *why)
{
    crn_member_row *m = &s->member[member];
    if (s->study->failing == CRN_FAILING_STOP)
        return crn_fail(CAIRN_EPEER,
                        "member %u failed %u times in cycle %u: %s; 'cairn ensemble try %s %u' "
                        "propagates its state once more",
                        member, m->burned, s->cycle, why, s->study->file, member);
    m->state = CRN_MEMBER_FAILED;
    return CAIRN_OK;
}

/* A member's task has ended without a result. */
cairn_status crn_schedule_failed(crn_server *s, uint32_t member, uint32_t runner, crn_cause cause,
                                 const char *why)
{
    const bool model = cause == CRN_CAUSE_REFUSED || cause == CRN_CAUSE_STATE;
    const bool gone = cause == CRN_CAUSE_LOST || cause == CRN_CAUSE_HANG;
    crn_member_row *m = &s->member[member];
    s->nfailures++;
    m->copies -= m->copies > 0;
    if (m->state != CRN_MEMBER_RUNNING)
        return CAIRN_OK;
    m->losses += gone;
    const bool burns = model || (gone && m->losses > 1);
    m->burned += burns;
    memmove(m->avoid + 1, m->avoid, sizeof m->avoid - sizeof *m->avoid);
    m->avoid[0] = runner;
    crn_study_event(s->study, "failed", "{s:i,s:i,s:o,s:s,s:i,s:s}", "cycle", s->cycle, "member",
                    member, "runner", json_sprintf("r%u", runner), "kind", crn_cause_word(cause),
                    "burned", m->burned, "cause", why);
    if (burns)
        crn_failed_keep(s, member);
    CRN_TRY(check_limits(s, cause));
    if (m->burned >= s->study->attempts)
        return give_up(s, member, why);
    if (m->copies == 0)
        m->state = CRN_MEMBER_TODO;
    m->overdue = false;
    return CAIRN_OK;
}
