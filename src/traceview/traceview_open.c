/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opening a trace, and what is known of it as a whole.
 */
#include "traceview/traceview.h"

uint32_t crn_format_ranks(const crn_seq *ranks, char *buf, size_t cap)
{
    crn_seq_iter it;
    int64_t v, first = -1, last = -1;
    size_t used = 0;
    uint32_t n = 0;
    bool more;
    buf[0] = 0;
    crn_seq_iter_init(&it, ranks);
    do {
        more = ranks->n > 0 && crn_seq_next(&it, &v);
        n += more;
        if (more && last >= 0 && v == last + 1) {
            last = v;
            continue;
        }
        if (last >= 0 && used < cap)
            used +=
                (size_t)snprintf(buf + used, cap - used, last > first ? "%s%lld-%lld" : "%s%lld",
                                 used ? "," : "", (long long)first, (long long)last);
        first = last = v;
    } while (more);
    if (used >= cap && cap > 4)
        memcpy(buf + cap - 4, "...", 4);
    return n;
}

/* "rank 3 ended early, 12 events were not kept" */
static void say_incomplete(const crn_trace *t, char *buf, size_t cap)
{
    char ranks[48];
    size_t used = 0;
    const struct {
        const crn_seq *ranks;
        const char *words;
    } why[] = {{&t->missing, "left nothing"}, {&t->cut, "ended before MPI_Finalize"}};
    buf[0] = 0;
    for (size_t i = 0; i < 2; i++) {
        uint32_t n = crn_format_ranks(why[i].ranks, ranks, sizeof ranks);
        if (n > 0 && used < cap)
            used += (size_t)snprintf(buf + used, cap - used, "%srank%s %s %s", used ? ", " : "",
                                     n == 1 ? "" : "s", ranks, why[i].words);
    }
    if (t->dropped > 0 && used < cap)
        snprintf(buf + used, cap - used, "%s%llu event%s not kept", used ? ", " : "",
                 (unsigned long long)t->dropped, t->dropped == 1 ? " was" : "s were");
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
        say_incomplete(trace->t, trace->incomplete, sizeof trace->incomplete);
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

int cairn_trace_describe(cairn_trace *trace, cairn_trace_info *info)
{
    const crn_trace *t = trace->t;
    CRN_TRY(crn_struct_check(info));
    cairn_trace_info i = {.program = t->string[t->program],
                          .incomplete = trace->incomplete[0] ? trace->incomplete : NULL,
                          .nranks = t->nranks,
                          .nthreads = (uint32_t)t->nlanes,
                          .precision = t->precision,
                          .began_ns = t->began,
                          .lasted_ns = t->lasted,
                          .ndropped = t->dropped};
    for (size_t l = 0; l < t->nlanes; l++) {
        CRN_TRY(count_events(t, l, &i.nevents));
        i.times |= t->lane[l].took != NULL;
        for (size_t s = 0; s < t->lane[l].nsymbols; s++) {
            bool loop = t->lane[l].symbol[s].call == CRN_CALL_NONE;
            i.nplaces += !loop;
            i.nloops += loop && s != t->lane[l].root;
        }
    }
    return crn_struct_out(&i, info);
}

char *cairn_trace_site(const cairn_trace *trace, uint32_t site, char *buf, size_t cap)
{
    const crn_trace *t = trace->t;
    size_t used = 0;
    snprintf(buf, cap, "?");
    for (uint32_t s = site; s > 0 && s < t->nsites && used < cap; s = t->site[s].outer) {
        const char *module = t->string[t->site[s].module], *base = strrchr(module, '/');
        used += (size_t)snprintf(buf + used, cap - used, "%s%s+0x%llx", used ? " < " : "",
                                 base ? base + 1 : module, (unsigned long long)t->site[s].off);
    }
    return buf;
}
