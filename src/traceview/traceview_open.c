/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opening a trace, and what is known of it as a whole.
 */
#include "traceview/traceview.h"

enum { RANGES_MAX = 16 }; /* of ranks, in a line for people */

static void put_range(crn_buf *b, unsigned before, int64_t first, int64_t last)
{
    if (before > RANGES_MAX)
        return;
    if (before == RANGES_MAX)
        crn_put_text(b, ",...");
    else if (last > first)
        crn_put_text(b, "%s%lld-%lld", before ? "," : "", (long long)first, (long long)last);
    else
        crn_put_text(b, "%s%lld", before ? "," : "", (long long)first);
}

uint32_t crn_put_ranks(crn_buf *b, const crn_seq *ranks)
{
    crn_seq_iter it;
    int64_t v, first = -1, last = -1;
    unsigned nranges = 0;
    uint32_t n = 0;
    bool more;
    crn_seq_iter_init(&it, ranks);
    do {
        more = ranks->n > 0 && crn_seq_next(&it, &v);
        n += more;
        if (more && last >= 0 && v == last + 1) {
            last = v;
            continue;
        }
        if (last >= 0)
            put_range(b, nranges++, first, last);
        first = last = v;
    } while (more);
    return n;
}

/* "ranks 3-5 ended before MPI_Finalize, 12 events were not kept" */
static void say_incomplete(const crn_trace *t, crn_buf *b)
{
    const struct {
        const crn_seq *ranks;
        const char *words;
    } why[] = {{&t->missing, "left nothing"}, {&t->cut, "ended before MPI_Finalize"}};
    for (size_t i = 0; i < 2; i++) {
        const uint64_t n = why[i].ranks->n > 0 ? crn_seq_count(why[i].ranks) : 0;
        if (n == 0)
            continue;
        crn_put_text(b, "%srank%s ", b->n ? ", " : "", n == 1 ? "" : "s");
        crn_put_ranks(b, why[i].ranks);
        crn_put_text(b, " %s", why[i].words);
    }
    if (t->dropped > 0)
        crn_put_text(b, "%s%llu event%s not kept", b->n ? ", " : "", (unsigned long long)t->dropped,
                     t->dropped == 1 ? " was" : "s were");
    crn_buf_text(b);
}

/* Of a run that did not come to its end there is what its ranks have kept aside. */
static cairn_status load(const char *path, crn_trace **ret)
{
    cairn_status rc = crn_trace_load(path, ret);
    if (rc != CAIRN_ENOTFOUND || crn_trace_salvage(path, ret) == CAIRN_OK)
        return rc == CAIRN_ENOTFOUND ? CAIRN_OK : rc;
    return crn_trace_load(path, ret); /* to say so again */
}

int cairn_trace_open(const char *path, cairn_trace **ret)
{
    cairn_trace *trace;
    cairn_status rc;
    CRN_TRY(crn_alloc(&trace, 1));
    CRN_TRY_OUT(rc, crn_strdup(path, &trace->path));
    CRN_TRY_OUT(rc, load(path, &trace->t));
    if (!crn_trace_complete(trace->t))
        say_incomplete(trace->t, &trace->incomplete);
    CRN_TRY_OUT(rc, crn_buf_status(&trace->incomplete));
    CRN_TRY_OUT(rc, crn_alloc(&trace->stack, trace->t->nsites));
    *ret = trace;
    return CAIRN_OK;
out:
    cairn_trace_close(trace);
    return rc;
}

void cairn_trace_close(cairn_trace *trace)
{
    if (!trace)
        return;
    for (size_t i = 0; trace->stack && i < trace->t->nsites; i++)
        free(trace->stack[i]);
    free(trace->stack);
    crn_trace_files_done(trace);
    crn_lines_close(trace->lines);
    crn_limit_free(trace->limit);
    crn_buf_done(&trace->incomplete);
    crn_trace_free(trace->t);
    free(trace->path);
    free(trace);
}

/* The events of all ranks on a lane. */
static cairn_status count_events(const crn_trace *t, size_t lane, uint64_t *ret)
{
    const crn_lane *l = &t->lane[lane];
    crn_seq_iter it;
    int64_t rank;
    uint64_t *count, sum = 0;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&count, l->nsymbols));
    crn_seq_iter_init(&it, &l->ranks);
    while (l->ranks.n > 0 && crn_seq_next(&it, &rank)) {
        CRN_TRY_OUT(rc, crn_lane_counts(t, lane, (uint32_t)rank, count));
        for (size_t i = 0; i < l->nsymbols; i++)
            sum += l->symbol[i].call != CRN_CALL_NONE ? count[i] : 0;
    }
    *ret += sum;
out:
    free(count);
    return rc;
}

/* Of the ranks that are looked at. */
static uint64_t count_threads(const cairn_trace *trace, size_t lane)
{
    crn_seq_iter it;
    int64_t rank;
    uint64_t n = 0;
    crn_seq_iter_init(&it, &trace->t->lane[lane].ranks);
    while (trace->t->lane[lane].ranks.n > 0 && crn_seq_next(&it, &rank))
        n += crn_limit_rank(trace, (uint32_t)rank);
    return n;
}

int cairn_trace_describe(cairn_trace *trace, cairn_trace_info *info)
{
    const crn_trace *t = trace->t;
    CRN_TRY(crn_struct_check(info));
    cairn_trace_info i = {.program = t->string[t->program],
                          .incomplete =
                              trace->incomplete.n > 0 ? (char *)trace->incomplete.at : NULL,
                          .nranks = t->nranks,
                          .nthreads = (uint32_t)t->nlanes,
                          .precision = t->precision,
                          .began_ns = t->began,
                          .lasted_ns = t->lasted,
                          .ndropped = t->dropped,
                          .limited = crn_limit_names_ranks(trace)};
    for (size_t l = 0; l < t->nlanes; l++) {
        CRN_TRY(count_events(t, l, &i.nevents));
        i.times |= t->lane[l].took != NULL;
        i.nall_threads += count_threads(trace, l);
        for (size_t s = 0; s < t->lane[l].nsymbols; s++) {
            bool loop = t->lane[l].symbol[s].call == CRN_CALL_NONE;
            i.nplaces += !loop;
            i.nloops += loop && s != t->lane[l].root;
        }
    }
    return crn_struct_out(&i, info);
}
