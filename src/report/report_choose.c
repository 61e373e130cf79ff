/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which marks of a long run a report shows, so that its page opens at once: all of a run that has
 * no more than SHOWN_ALL; else the newest, the first and the last one of each leg, those that did
 * not get to a level, and of each of STRETCHES equal stretches of the run the first, and those that
 * held the program longest, wrote most and came latest after the one before. Of legs and failures
 * there may be very many, too: then every so-manyth is shown. The report says how many there are.
 */
#include "report/report_log.h"

enum { SHOWN_ALL = 2000, STRETCHES = 256, NEWEST = 256, SPECIAL = 512, TUNED = 1000 };

static double held(const crn_logged_mark *m)
{
    return m->held;
}

static double written(const crn_logged_mark *m)
{
    return (double)m->written;
}

static double since(const crn_logged_mark *m)
{
    return m->since;
}

static void choose_stretch(const crn_report_log *log, size_t first, size_t end, bool *shown)
{
    double (*const by[])(const crn_logged_mark *) = {held, written, since};
    shown[first] = true;
    for (size_t k = 0; k < sizeof by / sizeof *by; k++) {
        size_t most = first;
        for (size_t i = first; i < end; i++)
            if (by[k](&log->mark.at[i]) > by[k](&log->mark.at[most]))
                most = i;
        shown[most] = true;
    }
}

/* The first and last mark of a leg, and those that failed. */
static bool is_special(const crn_report_log *log, size_t i)
{
    const crn_logged_mark *m = &log->mark.at[i];
    return m->failed || i == 0 || i + 1 == log->mark.n || m[-1].leg != m->leg || m[1].leg != m->leg;
}

/* Number i of n: is it the first of one of so many equal stretches, or the last of all? */
static bool begins_stretch(uint64_t i, uint64_t n, uint64_t nstretches)
{
    return n <= nstretches || i == 0 || i + 1 == n ||
           i * nstretches / n != (i - 1) * nstretches / n;
}

static void choose_special(const crn_report_log *log, bool *shown)
{
    size_t n = 0, k = 0;
    for (size_t i = 0; i < log->mark.n; i++)
        n += is_special(log, i);
    for (size_t i = 0; i < log->mark.n; i++)
        if (is_special(log, i))
            shown[i] |= begins_stretch(k++, n, SPECIAL);
}

cairn_status crn_report_choose(const crn_report_log *log, report_choice *ret)
{
    const size_t n = log->mark.n;
    report_choice c = {0};
    CRN_TRY(crn_alloc(&c.mark, n));
    for (size_t i = 0; i < n; i++)
        c.mark[i] = n <= SHOWN_ALL || i + NEWEST >= n;
    if (n > SHOWN_ALL) {
        choose_special(log, c.mark);
        for (size_t s = 0; s < STRETCHES; s++)
            choose_stretch(log, s * n / STRETCHES, (s + 1) * n / STRETCHES, c.mark);
    }
    for (size_t i = 0; i < n; i++) {
        c.nmarks += c.mark[i];
        c.nfailed += c.mark[i] && log->mark.at[i].failed;
    }
    *ret = c;
    return CAIRN_OK;
}

bool crn_report_shows_tuned(const crn_report_log *log, uint64_t number)
{
    return begins_stretch(number, log->ntuned, TUNED);
}
