/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as the payload of a trace, looked at through the public calls: described, visited,
 * walked, summed, outlined. Callbacks end what takes too long: a few bytes can mean 2^48 events.
 */
#include "traceview/traceview.h"

enum { EVENTS = 1000, RANKS = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_event(void *arg, const cairn_trace_event *e)
{
    int *left = arg;
    size_t text = strlen(e->call) + strlen(e->layer) + (e->file ? strlen(e->file) : 0);
    for (size_t i = 0; i < e->nvalues; i++)
        for (size_t k = 0; k < e->value[i].nlist; k++)
            text += (size_t)e->value[i].list[k];
    for (size_t i = 0; i < e->nmessages; i++)
        text += e->message[i].nbytes;
    return --*left <= 0 || text == SIZE_MAX;
}

static int on_piece(void *arg, const cairn_trace_piece *p)
{
    int *left = arg;
    return --*left <= 0 || strlen(p->ranks) == SIZE_MAX;
}

static int on_gap(void *arg, const cairn_trace_gap *g)
{
    int *left = arg;
    return --*left <= 0 || g->n == UINT64_MAX;
}

static int on_contrast(void *arg, const cairn_trace_contrast *c)
{
    int *left = arg;
    return --*left <= 0 || c->nranks == 0;
}

static int on_row(void *arg, const cairn_trace_row *row)
{
    int *left = arg;
    return --*left <= 0 || row->nevents == UINT64_MAX;
}

/* Sums go through all ranks before they give a row: of small traces only. */
static void sum(cairn_trace *t)
{
    static const unsigned by[] = {
        0, CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_CALL, CAIRN_TRACE_BY_SITE | CAIRN_TRACE_BY_RANK,
        CAIRN_TRACE_BY_RANK | CAIRN_TRACE_BY_PEER, CAIRN_TRACE_BY_FILE | CAIRN_TRACE_BY_SIZE};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        int left = EVENTS;
        (void)!cairn_trace_sum(t, by[i], on_row, &left);
    }
}

static void look(cairn_trace *t)
{
    cairn_trace_info info = {.struct_bytes = sizeof info};
    char site[64];
    int left = EVENTS;
    bool small = true;
    if (cairn_trace_describe(t, &info) < 0)
        return;
    for (uint32_t i = 0; i < 3; i++)
        cairn_trace_site(t, i, site, sizeof site);
    for (uint32_t r = 0; r < CRN_MIN(info.nranks, RANKS); r++) {
        left = EVENTS;
        (void)!cairn_trace_visit(t, r, on_event, &left);
        small &= left > 0;
        left = EVENTS;
        (void)!cairn_trace_walk(t, r, 0, on_event, &left);
    }
    if (small && info.nranks <= RANKS)
        sum(t);
    left = EVENTS;
    (void)!cairn_trace_outline(t, on_piece, &left);
    left = EVENTS;
    (void)!cairn_trace_gaps(t, on_gap, &left);
    left = EVENTS;
    (void)!cairn_trace_contrasts(t, on_contrast, &left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[] = "fuzz";
    for (unsigned version = 1; version <= CAIRN_TRACE_FORMAT; version++) {
        cairn_trace t = {.path = name};
        if (crn_trace_parse(version, data, size, &t.t) < 0)
            continue;
        look(&t);
        crn_trace_files_done(&t);
        crn_trace_free(t.t);
    }
    return 0;
}
