/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Merging the times of lanes, and which ranks differ in them.
 */
#include "tracefmt/tracefmt_merge_impl.h"

/* What b has of a place or a gap of a. */
static cairn_status unite(const crn_lane *a, const crn_lane *b, const crn_bar *bar, crn_timing *x,
                          crn_timing *y)
{
    return crn_timing_unite(x, &a->ranks, y, &b->ranks, bar);
}

/* Those of a ascend, and its symbols have kept their numbers; what is new stands behind. */
static cairn_status merge_gaps(crn_lane *a, crn_lane *b, const uint32_t *map, const crn_bar *bar)
{
    CRN_TRY(crn_realloc(&a->gap, a->ngaps + b->ngaps));
    const crn_lane known = {.gap = a->gap, .ngaps = a->ngaps};
    for (size_t i = 0; i < b->ngaps; i++) {
        crn_gap *g = &b->gap[i];
        g->to = map[g->to];
        if (g->from != CRN_NO_SYMBOL)
            g->from = map[g->from];
        const crn_gap *same = crn_lane_gap(&known, g->from, g->to);
        if (same) {
            CRN_TRY(unite(a, b, bar, &a->gap[same - a->gap].time, &g->time));
        } else {
            a->gap[a->ngaps++] = *g;
            g->time = (crn_timing){.nranks = 0}; /* it has moved */
        }
    }
    return CAIRN_OK;
}

cairn_status crn_merge_times(crn_lane *a, crn_lane *b, const uint32_t *map, uint64_t lasted)
{
    const uint64_t nranks = crn_seq_count(&a->ranks) + crn_seq_count(&b->ranks);
    if (!a->took || !b->took)
        return CAIRN_OK;
    for (size_t k = 0; k < b->nsymbols; k++) {
        if (map[k] == CRN_NO_SYMBOL)
            continue;
        const crn_bar bar = crn_bar_of(a->symbol[map[k]].call, nranks, 1, lasted, false);
        CRN_TRY(unite(a, b, &bar, &a->took[map[k]], &b->took[k]));
    }
    const crn_bar bar = crn_bar_of(CRN_CALL_NONE, nranks, 1, lasted, false);
    return merge_gaps(a, b, map, &bar);
}

cairn_status crn_finish_times(crn_lane *l, uint64_t lasted)
{
    const uint64_t nranks = crn_seq_count(&l->ranks);
    const size_t n = l->nsymbols + l->ngaps;
    for (size_t i = 0; l->took && i < l->nsymbols; i++) {
        const crn_bar bar = crn_bar_of(l->symbol[i].call, nranks, n, lasted, true);
        CRN_TRY(crn_timing_finish(&l->took[i], &l->ranks, &bar));
    }
    const crn_bar bar = crn_bar_of(CRN_CALL_NONE, nranks, n, lasted, true);
    for (size_t i = 0; i < l->ngaps; i++)
        CRN_TRY(crn_timing_finish(&l->gap[i].time, &l->ranks, &bar));
    return CAIRN_OK;
}
