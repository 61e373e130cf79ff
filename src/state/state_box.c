/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Getting a box of an array from the pieces that others had: the blocks that the box touches are
 * read in windows of bounded size, and its elements copied to their places.
 */
#include "state/state_read.h"

enum { WINDOW = CRN_BLOCK_MAX }; /* one block of any size at least */

/* A window on the bytes of a piece: whole blocks. */
typedef struct window {
    uint64_t first, n; /* blocks; none at first */
} window;

/* What both boxes of an array have; false when that is nothing. */
static bool cut(const crn_var_spec *a, const crn_var_spec *b, uint64_t *offset, uint64_t *count)
{
    bool any = true;
    for (uint32_t d = 0; d < a->ndims; d++) {
        const uint64_t lo = CRN_MAX(a->offset[d], b->offset[d]);
        const uint64_t hi = CRN_MIN(a->offset[d] + a->count[d], b->offset[d] + b->count[d]);
        any = any && lo < hi;
        offset[d] = lo;
        count[d] = hi - lo;
    }
    return any;
}

/* The same box: straight into memory. */
static bool is_same_box(const crn_var_spec *a, const crn_var_spec *b)
{
    const size_t n = a->ndims * sizeof *a->offset;
    return memcmp(a->offset, b->offset, n) == 0 && memcmp(a->count, b->count, n) == 0;
}

/* Where an element of the array, by its indices, lies in a box of it. */
static uint64_t place_in(const crn_var_spec *s, const uint64_t *at)
{
    uint64_t place = 0;
    for (uint32_t d = 0; d < s->ndims; d++)
        place = place * s->count[d] + (at[d] - s->offset[d]);
    return place;
}

/* The next row of a box: its last index stays. False: there are no more. */
static bool next_row(uint32_t ndims, const uint64_t *offset, const uint64_t *count, uint64_t *at)
{
    for (uint32_t d = ndims - 1; d > 0; d--) {
        if (++at[d - 1] < offset[d - 1] + count[d - 1])
            return true;
        at[d - 1] = offset[d - 1];
    }
    return false;
}

/* Copy a stretch of bytes of the piece, window by window. */
static cairn_status copy_stretch(getting *g, crn_part *part, const crn_mark *m, crn_var *v,
                                 window *w, uint64_t from, unsigned char *to, uint64_t nbytes)
{
    const uint64_t block = v->spec.block;
    while (nbytes > 0) {
        const uint64_t at = from / block;
        if (at < w->first || at >= w->first + w->n) {
            w->first = at;
            w->n = CRN_MIN(CRN_MAX(WINDOW / block, 1), v->nblocks - at);
            CRN_TRY(crn_mark_read(part, m, v, w->first, w->n, g->window, NULL));
        }
        const uint64_t end = CRN_MIN((w->first + w->n) * block, v->spec.nbytes);
        const uint64_t n = CRN_MIN(nbytes, end - from);
        memcpy(to, g->window + (from - w->first * block), n);
        from += n;
        to += n;
        nbytes -= n;
    }
    return CAIRN_OK;
}

cairn_status crn_get_box(getting *g, crn_part *part, const crn_mark *m, crn_var *v, size_t i)
{
    const crn_var_spec *want = &g->spec[i], *has = &v->spec;
    uint64_t offset[CRN_DIMS_MAX], count[CRN_DIMS_MAX], at[CRN_DIMS_MAX], nrows = 1;
    unsigned char *data = g->field[i].data;
    window w = {0};
    if (!cut(has, want, offset, count))
        return CAIRN_OK;
    const uint64_t row = count[want->ndims - 1] * has->item;
    for (uint32_t d = 0; d + 1 < want->ndims; d++)
        nrows *= count[d];
    g->got[i] += nrows * row;
    if (is_same_box(has, want))
        return crn_mark_read(part, m, v, 0, v->nblocks, data, NULL);
    if (!g->window)
        CRN_TRY(crn_io_memory(WINDOW, &g->window));
    memcpy(at, offset, want->ndims * sizeof *at);
    do
        CRN_TRY(copy_stretch(g, part, m, v, &w, place_in(has, at) * has->item,
                             data + place_in(want, at) * has->item, row));
    while (next_row(want->ndims, offset, count, at));
    return CAIRN_OK;
}
