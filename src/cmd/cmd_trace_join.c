/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums by rank of many ranks, as few as a picture can show: neighbours are joined.
 */
#include "cmd/cmd_trace.h"

/* Equal shares: as page_changes.js names the groups. */
static int64_t group_of(int64_t rank, uint32_t nranks, uint32_t ngroups)
{
    return rank < 0 ? rank : rank * ngroups / nranks; /* below 0: no rank that is known */
}

static int by_group(const void *a, const void *b)
{
    const cairn_trace_row *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    return x->layer && y->layer ? strcmp(x->layer, y->layer) : 0;
}

static void add_row(cairn_trace_row *to, const cairn_trace_row *r)
{
    to->nevents += r->nevents;
    to->nbytes += r->nbytes;
    to->expected |= r->expected;
    to->seconds += r->seconds;
    to->waited += r->waited;
}

void cmd_trace_join(cmd_trace_rows *rows, uint32_t nranks, uint32_t ngroups)
{
    cairn_trace_row *row = rows->row.at;
    size_t n = 0;
    if (ngroups >= nranks || rows->row.n == 0)
        return;
    for (size_t i = 0; i < rows->row.n; i++) {
        row[i].rank = (uint32_t)group_of(row[i].rank, nranks, ngroups);
        row[i].peer = group_of(row[i].peer, nranks, ngroups);
    }
    qsort(row, rows->row.n, sizeof *row, by_group);
    for (size_t i = 1; i < rows->row.n; i++) {
        if (by_group(&row[n], &row[i]) == 0)
            add_row(&row[n], &row[i]);
        else
            row[++n] = row[i];
    }
    rows->row.n = n + 1;
}
