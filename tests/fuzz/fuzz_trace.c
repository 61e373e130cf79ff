/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as the payload of a trace: refused with a sentence, or a trace that can be walked,
 * summed, written and read again.
 */
#include "tracefmt/tracefmt.h"

enum { EVENTS = 2000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const crn_trace *t, size_t lane)
{
    crn_walk *w;
    crn_traced_event e;
    crn_buf text = {0};
    crn_trace_texts names = crn_names_of_trace(t);
    uint32_t rank = (uint32_t)crn_seq_at(&t->lane[lane].ranks, 0);
    if (crn_walk_open(t, lane, rank, 1, &w) < 0)
        __builtin_trap();
    for (int i = 0; i < EVENTS && crn_walk_next(w, &e); i++) {
        text.n = 0;
        crn_text_event(&text, &names, &e);
    }
    crn_walk_close(w);
    crn_buf_done(&text);
}

static void sum(const crn_trace *t, size_t lane)
{
    const crn_lane *l = &t->lane[lane];
    uint32_t rank = (uint32_t)crn_seq_at(&l->ranks, 0);
    uint64_t *count;
    if (crn_alloc(&count, l->nsymbols) < 0 || crn_lane_counts(t, lane, rank, count) < 0)
        __builtin_trap();
    for (size_t i = 0; i < l->nsymbols; i++) {
        crn_runs runs;
        crn_site_run run;
        if (l->symbol[i].call == CRN_CALL_NONE ||
            !crn_runs_init(&runs, &l->symbol[i], rank, count[i]))
            continue;
        for (int k = 0; k < EVENTS && crn_runs_next(&runs, &run); k++)
            ;
    }
    free(count);
}

static void look(unsigned version, const uint8_t *data, size_t size)
{
    crn_trace *t, *again;
    crn_buf b = {0};
    if (crn_trace_parse(version, data, size, &t) < 0)
        return;
    for (size_t i = 0; i < t->nlanes && i < 4; i++) {
        walk(t, i);
        sum(t, i);
    }
    if (crn_trace_encode(t, CRN_TRACE_QUICK, &b) < 0 || crn_trace_decode(b.at, b.n, &again) < 0)
        __builtin_trap();
    crn_buf_done(&b);
    crn_trace_free(again);
    if (t->precision == 100 && crn_trace_finish(t) == CAIRN_OK) { /* below it draws all values */
        if (crn_trace_encode(t, CRN_TRACE_QUICK, &b) < 0 || crn_trace_decode(b.at, b.n, &again) < 0)
            __builtin_trap();
        crn_trace_free(again);
    }
    crn_trace_free(t);
    crn_buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (unsigned version = 1; version <= CAIRN_TRACE_FORMAT; version++)
        look(version, data, size);
    return 0;
}
