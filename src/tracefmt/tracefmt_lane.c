/* SPDX-License-Identifier: BSD-3-Clause */
#include "tracefmt/tracefmt.h"
#include "tracefmt/tracefmt_lane.h"

typedef struct order {
    const crn_lane *lane;
    uint32_t *number; /* new number + 1, or 0 */
    uint32_t next;
} order;

static void number_from(order *o, uint32_t symbol)
{
    const crn_symbol *s = &o->lane->symbol[symbol];
    if (o->number[symbol])
        return;
    for (size_t i = 0; i < s->nbody; i++)
        number_from(o, s->body[i]);
    o->number[symbol] = ++o->next;
}

static int by_places(const void *a, const void *b)
{
    const crn_gap *x = a, *y = b;
    uint64_t kx = (uint64_t)(x->from + 1) << 32 | x->to, ky = (uint64_t)(y->from + 1) << 32 | y->to;
    return (kx > ky) - (kx < ky);
}

/* Gaps of places that are gone, go. */
static void order_gaps(crn_lane *l, const uint32_t *number)
{
    size_t n = 0;
    for (size_t i = 0; i < l->ngaps; i++) {
        crn_gap g = l->gap[i];
        if (number[g.to] == 0 || (g.from != CRN_NO_SYMBOL && number[g.from] == 0)) {
            crn_timing_done(&g.time);
            continue;
        }
        g.to = number[g.to] - 1;
        if (g.from != CRN_NO_SYMBOL)
            g.from = number[g.from] - 1;
        l->gap[n++] = g;
    }
    if (n > 0)
        qsort(l->gap, n, sizeof *l->gap, by_places);
    l->ngaps = n;
}

static void move_symbols(crn_lane *l, const order *o, crn_symbol *to, crn_timing *took)
{
    for (size_t i = 0; i < l->nsymbols; i++) {
        crn_symbol *s = &l->symbol[i];
        if (o->number[i] == 0) {
            crn_symbol_done(s);
            if (took)
                crn_timing_done(&l->took[i]);
            continue;
        }
        for (size_t k = 0; k < s->nbody; k++)
            s->body[k] = o->number[s->body[k]] - 1;
        to[o->number[i] - 1] = *s;
        if (took)
            took[o->number[i] - 1] = l->took[i];
    }
}

cairn_status crn_lane_order(crn_lane *l)
{
    order o = {.lane = l};
    crn_symbol *symbol = NULL;
    crn_timing *took = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_alloc(&o.number, l->nsymbols));
    number_from(&o, l->root);
    CRN_TRY_OUT(rc, crn_alloc(&symbol, o.next));
    if (l->took)
        CRN_TRY_OUT(rc, crn_alloc(&took, o.next));
    order_gaps(l, o.number);
    move_symbols(l, &o, symbol, took);
    l->root = o.number[l->root] - 1;
    free(l->symbol);
    free(l->took);
    l->symbol = symbol;
    l->took = took;
    l->nsymbols = o.next;
    free(o.number);
    return CAIRN_OK;
out:
    free(o.number);
    free(symbol);
    free(took);
    return rc;
}
