/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The progress line: one line, rewritten in place a few times a second.
 */
#include "cmd/cmd.h"

#include <unistd.h>

enum { PATIENCE_NS = 1000000000, PERIOD_NS = 200000000 };

#define WIPE "\r\033[K" /* to the first column, and clear to the end of the line */

void cmd_progress_start(cmd_progress *p, const char *what)
{
    uint64_t now = crn_now_ns();
    *p = (cmd_progress){.what = what, .start_ns = now, .next_ns = now + PATIENCE_NS};
    p->to = isatty(STDERR_FILENO) ? stderr : NULL;
    p->now = crn_now_ns;
}

void cmd_progress_update(cmd_progress *p, uint64_t done_bytes, uint64_t total_bytes)
{
    char done[CRN_NUMBER_TEXT], total[CRN_NUMBER_TEXT], rate[CRN_NUMBER_TEXT];
    uint64_t now;
    if (!p->to || (now = p->now()) < p->next_ns)
        return;
    p->next_ns = now + PERIOD_NS;
    p->shown = true;
    double seconds = (double)(now - p->start_ns) * 1e-9;
    double share = total_bytes > 0 ? (double)done_bytes / (double)total_bytes : 1;
    fprintf(p->to, WIPE "%s: %.0f%% (%s of %s), %s/s", p->what, 100 * share,
            crn_format_nbytes(done_bytes, done, sizeof done),
            crn_format_nbytes(total_bytes, total, sizeof total),
            crn_format_nbytes((uint64_t)((double)done_bytes / seconds), rate, sizeof rate));
    fflush(p->to);
}

void cmd_progress_end(cmd_progress *p)
{
    if (p->shown)
        fprintf(p->to, WIPE);
    p->shown = false;
}
