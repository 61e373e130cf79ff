/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing pieces of a variable that are cut differently: range by range of values that lie
 * contiguous in both, through windows that are read ahead.
 */
#include "diff/diff.h"

#include <inttypes.h>

/* What of a piece is in memory. */
typedef struct window {
    diff_share *share;
    crn_var *var;
    unsigned char *data;    /* DIFF_MEMORY bytes */
    uint64_t first, nbytes; /* of the piece, that data holds */
} window;

typedef struct ranges {
    diff_worker *w;
    diff_row *row;
    const crn_var_spec *spec; /* of the first piece */
    crn_value_rule rule;
    crn_value_delta delta;
    window win[2];
    uint64_t ncompared; /* values */
    uint64_t base;      /* while a range is compared: its first value in the first piece */
    const unsigned char *a, *b;
} ranges;

/* Let the window hold the bytes from off on; how many it has of them is in *ret_n. */
static cairn_status reach(ranges *r, window *w, uint64_t off, const unsigned char **ret,
                          uint64_t *ret_n)
{
    const uint64_t block = w->var->spec.block;
    if (off < w->first || off >= w->first + w->nbytes) {
        const uint64_t first = off / block;
        const uint64_t n = CRN_MIN(DIFF_MEMORY / block, w->var->nblocks - first);
        w->nbytes = 0;
        CRN_TRY(crn_mark_read(w->share->part, w->share->data, w->var, first, n, w->data, NULL));
        w->first = first * block;
        w->nbytes = CRN_MIN(n * block, w->var->spec.nbytes - w->first);
        r->row->read_bytes += w->nbytes;
    }
    *ret = w->data + (off - w->first);
    *ret_n = w->first + w->nbytes - off;
    return CAIRN_OK;
}

static void on_stretch(void *arg, uint64_t first, uint64_t n)
{
    ranges *r = arg;
    const size_t off = first * r->spec->item;
    crn_diff_row_note(r->row, r->spec, r->win[0].share->rank, r->base + first, n, r->a + off,
                      r->b + off);
}

/* A value may lie across the end of a window: then it is put together from both sides of it. */
static cairn_status compare_cut(ranges *r, uint64_t a, uint64_t b)
{
    enum { ITEM_MAX = 65536 };
    static _Thread_local unsigned char value[2][ITEM_MAX];
    const uint64_t at[2] = {a, b};
    CRN_FAIL_IF(r->spec->item > ITEM_MAX, CAIRN_EUNSUPPORTED,
                "variable '%s': values of %u bytes cannot be compared across blocks", r->spec->name,
                r->spec->item);
    for (int k = 0; k < 2; k++) {
        for (uint64_t done = 0; done < r->spec->item;) {
            const unsigned char *p;
            uint64_t n;
            CRN_TRY(reach(r, &r->win[k], at[k] * r->spec->item + done, &p, &n));
            n = CRN_MIN(n, r->spec->item - done);
            memcpy(value[k] + done, p, n);
            done += n;
        }
    }
    r->base = a;
    r->a = value[0];
    r->b = value[1];
    crn_values_compare(&r->rule, r->a, r->b, 1, &r->delta, on_stretch, r);
    return CAIRN_OK;
}

/* Compare n values from a on in the first piece with those from b on in the second. */
static cairn_status compare_range(ranges *r, uint64_t a, uint64_t b, uint64_t n)
{
    const uint64_t item = r->spec->item;
    r->ncompared += n;
    while (n > 0) {
        uint64_t have[2];
        CRN_TRY(reach(r, &r->win[0], a * item, &r->a, &have[0]));
        CRN_TRY(reach(r, &r->win[1], b * item, &r->b, &have[1]));
        uint64_t m = CRN_MIN(n, CRN_MIN(have[0], have[1]) / item);
        if (m > 0) {
            r->base = a;
            crn_values_compare(&r->rule, r->a, r->b, m, &r->delta, on_stretch, r);
        } else {
            CRN_TRY(compare_cut(r, a, b));
            m = 1;
        }
        a += m, b += m, n -= m;
    }
    return CAIRN_OK;
}

/* The number of the value with a global index in a piece. */
static uint64_t value_of(const crn_var_spec *s, const uint64_t *index)
{
    uint64_t n = 0;
    for (uint32_t d = 0; d < s->ndims; d++)
        n = n * s->count[d] + (index[d] - s->offset[d]);
    return n;
}

/* Compare the box [low, high) of the global array, which both pieces have. Inner dimensions that it
 * spans in both lie contiguous, together with the one before them. */
static cairn_status compare_box(ranges *r, const crn_var_spec *other, const uint64_t *low,
                                const uint64_t *high)
{
    const crn_var_spec *s = r->spec;
    uint64_t at[CRN_DIMS_MAX], n = 1;
    uint32_t inner = s->ndims - 1;
    while (inner > 0 && high[inner] - low[inner] == s->count[inner] &&
           high[inner] - low[inner] == other->count[inner])
        inner--;
    for (uint32_t d = inner; d < s->ndims; d++)
        n *= high[d] - low[d];
    memcpy(at, low, s->ndims * sizeof *at);
    for (;;) {
        CRN_TRY(compare_range(r, value_of(s, at), value_of(other, at), n));
        uint32_t d = inner;
        while (d > 0 && ++at[d - 1] == high[d - 1]) {
            at[d - 1] = low[d - 1];
            d--;
        }
        if (d == 0)
            return CAIRN_OK;
    }
}

/* Where two pieces of one array overlap; false: nowhere. */
static bool overlap(const crn_var_spec *a, const crn_var_spec *b, uint64_t *low, uint64_t *high)
{
    for (uint32_t d = 0; d < a->ndims; d++) {
        low[d] = CRN_MAX(a->offset[d], b->offset[d]);
        high[d] = CRN_MIN(a->offset[d] + a->count[d], b->offset[d] + b->count[d]);
        if (low[d] >= high[d])
            return false;
    }
    return true;
}

static cairn_status compare_with(ranges *r, diff_share *second)
{
    uint64_t low[CRN_DIMS_MAX], high[CRN_DIMS_MAX];
    diff_var v;
    if (!crn_diff_share_find(second, r->spec->name, &v))
        return CAIRN_OK;
    const crn_var_spec *other = &v.var->spec;
    if (strcmp(other->type, r->spec->type) != 0 || other->item != r->spec->item)
        return CAIRN_OK;
    if (r->spec->ndims > 0 &&
        (other->ndims != r->spec->ndims || !overlap(r->spec, other, low, high)))
        return CAIRN_OK;
    r->win[1] = (window){.share = second, .data = r->w->data[1]};
    CRN_TRY(crn_diff_share_data(second, r->spec->name, &r->win[1].var));
    if (r->spec->ndims > 0)
        return compare_box(r, other, low, high);
    return compare_range(r, 0, 0, r->spec->nbytes / r->spec->item);
}

cairn_status crn_diff_ranges(diff_worker *w, diff_share *first, diff_share *second, size_t n,
                             const crn_var_spec *spec, diff_row *row)
{
    ranges r = {.w = w, .row = row, .spec = spec, .rule = crn_diff_rule(w, row, spec)};
    if (spec->nbytes == 0)
        return CAIRN_OK;
    r.win[0] = (window){.share = first, .data = w->data[0]};
    row->nflagged = row->nblocks;
    CRN_TRY(crn_diff_share_data(first, spec->name, &r.win[0].var));
    for (size_t i = 0; i < n; i++)
        CRN_TRY(compare_with(&r, &second[i]));
    crn_diff_row_count(row, &r.delta);
    if (r.ncompared < spec->nbytes / spec->item)
        crn_diff_row_judge(row, CAIRN_UNTOLD,
                           "of rank %u's values, the second run has only %" PRIu64 " of %" PRIu64
                           " as %s of this array",
                           first->rank, r.ncompared, spec->nbytes / spec->item, spec->type);
    return CAIRN_OK;
}
