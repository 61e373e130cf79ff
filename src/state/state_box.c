/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Getting a box of an array from the pieces that others had: the blocks that the box touches are
 * read in windows of bounded size, and its elements copied to their places.
 */
#include "state/state_read.h"

enum { WINDOW = STATE_WINDOW, WORTH = 1 << 20 /* of whole blocks, to be read past it */ };

/* A window on the bytes of a piece: whole blocks. */
typedef struct window {
    uint64_t first, n; /* blocks; none at first */
} window;

static bool is_same_box(const crn_box *a, const crn_box *b)
{
    const size_t n = a->ndims * sizeof *a->lo;
    return memcmp(a->lo, b->lo, n) == 0 && memcmp(a->hi, b->hi, n) == 0;
}

/* Copy a stretch of bytes of the piece, window by window. */
static cairn_status copy_stretch(getting *g, crn_part *part, const crn_mark *m, crn_var *v,
                                 window *w, uint64_t from, unsigned char *to, uint64_t nbytes)
{
    const uint64_t block = v->spec.block;
    while (nbytes > 0) {
        const uint64_t at = from / block;
        if (from % block == 0 &&
            nbytes >= CRN_MAX(WORTH, block)) { /* whole blocks go to where they are wanted */
            CRN_TRY(crn_mark_read(part, m, v, at, nbytes / block, to, NULL));
            const uint64_t whole = nbytes / block * block;
            from += whole;
            to += whole;
            nbytes -= whole;
            continue;
        }
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
    const crn_var_spec *spec = &g->spec[i];
    const crn_box want = crn_box_of(spec->ndims, spec->offset, spec->count);
    const crn_box has = crn_box_of(v->spec.ndims, v->spec.offset, v->spec.count);
    const uint64_t item = v->spec.item;
    unsigned char *data = g->field[i].data;
    window w = {0};
    crn_box common;
    if (!crn_box_cut(&has, &want, &common))
        return CAIRN_OK;
    g->got[i] += crn_box_volume(&common) * item;
    if (is_same_box(&has, &want))
        return crn_mark_read(part, m, v, 0, v->nblocks, data, NULL);
    if (!g->window)
        CRN_TRY(crn_io_memory(WINDOW, &g->window));
    crn_stretches s = crn_stretches_of(&common, &has, &want);
    while (crn_stretches_next(&s))
        CRN_TRY(copy_stretch(g, part, m, v, &w, s.from * item, data + s.to * item, s.n * item));
    return CAIRN_OK;
}
