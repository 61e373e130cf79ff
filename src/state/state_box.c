/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Getting boxes of an array from the pieces that others had. Boxes of one array that are asked for
 * together are filled side by side, so that a block which several of them need is read once. Large
 * ones, from a file that lies in memory, are got by two threads: there copying and digesting is
 * work for a processor.
 */
#include "state/state_fill.h"
#include "state/state_read.h"

enum { HALVES_BYTES = 8 << 20 }; /* from here on a second thread pays for itself */

/* What a piece and memory that is asked for have in common, and how far that is filled. */
typedef struct box_part {
    crn_box want, common;
    unsigned char *data;
    crn_stretches at;
    bool more; /* at is a stretch that is not filled yet */
} box_part;

typedef struct box_work {
    const cairn_shelf *shelf;
    crn_part *part;
    const crn_mark *mark;
    crn_var *var;
    crn_box has;
    box_part *box;
    size_t n;
    cairn_status status; /* of a thread's, and why */
    crn_err why;
} box_work;

static bool is_same_box(const crn_box *a, const crn_box *b)
{
    const size_t n = a->ndims * sizeof *a->lo;
    return memcmp(a->lo, b->lo, n) == 0 && memcmp(a->hi, b->hi, n) == 0;
}

/* The box whose next stretch comes first in the piece; NULL: none has one. */
static box_part *first_of(const box_work *w)
{
    box_part *first = NULL;
    for (size_t i = 0; i < w->n; i++)
        if (w->box[i].more && (!first || w->box[i].at.from < first->at.from))
            first = &w->box[i];
    return first;
}

static cairn_status fill_boxes(const box_work *w)
{
    const uint64_t item = w->var->spec.item;
    state_fill f;
    cairn_status rc = crn_fill_begin(&f, w->shelf, w->part, w->mark, w->var);
    for (size_t i = 0; i < w->n; i++) {
        box_part *b = &w->box[i];
        b->at = crn_stretches_of(&b->common, &w->has, &b->want);
        b->more = crn_stretches_next(&b->at);
    }
    for (box_part *b; rc == CAIRN_OK && (b = first_of(w));) {
        rc = crn_fill_add(&f, b->at.from * item, b->data + b->at.to * item, b->at.n * item);
        b->more = crn_stretches_next(&b->at);
    }
    return crn_fill_end(&f, rc);
}

/* --- two threads -------------------------------------------------------------------------- */

static void *half_main(void *arg)
{
    box_work *w = arg;
    w->status = fill_boxes(w);
    if (w->status < 0)
        w->why = *crn_err_peek();
    return NULL;
}

/* Where to cut: the middle, in the first dimension in which the boxes together have two elements.
 */
static bool find_middle(const box_work *w, uint32_t *ret_dim, uint64_t *ret)
{
    for (uint32_t d = 0; d < w->has.ndims; d++) {
        uint64_t lo = UINT64_MAX, hi = 0;
        for (size_t i = 0; i < w->n; i++) {
            lo = CRN_MIN(lo, w->box[i].common.lo[d]);
            hi = CRN_MAX(hi, w->box[i].common.hi[d]);
        }
        if (hi - lo > 1) {
            *ret_dim = d;
            *ret = lo + (hi - lo) / 2;
            return true;
        }
    }
    return false;
}

/* The boxes below the middle stay w's, those above become half's, for which there is room. */
static void cut_boxes(box_work *w, box_work *half, uint32_t d, uint64_t middle)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        box_part b = w->box[i];
        if (b.common.hi[d] > middle) {
            half->box[half->n] = b;
            crn_box *upper = &half->box[half->n++].common;
            upper->lo[d] = CRN_MAX(upper->lo[d], middle);
        }
        b.common.hi[d] = CRN_MIN(b.common.hi[d], middle);
        if (b.common.hi[d] > b.common.lo[d])
            w->box[n++] = b;
    }
    w->n = n;
}

static cairn_status fill_in_halves(box_work *w, uint32_t d, uint64_t middle)
{
    box_work half = *w;
    pthread_t thread;
    CRN_TRY(crn_alloc(&half.box, w->n));
    half.n = 0;
    cut_boxes(w, &half, d, middle);
    const bool beside = crn_thread_start(&thread, half_main, &half) == 0;
    cairn_status rc = fill_boxes(w);
    const crn_err why = *crn_err_peek();
    if (beside)
        pthread_join(thread, NULL);
    else
        half_main(&half);
    free(half.box);
    if (rc < 0)
        return crn_err_give(&why);
    return half.status < 0 ? crn_err_give(&half.why) : CAIRN_OK;
}

/* Then whoever reads the blocks shares the work better than we cut it. */
static bool is_one_stretch(const box_work *w)
{
    crn_stretches at = crn_stretches_of(&w->box[0].common, &w->has, &w->box[0].want);
    return w->n == 1 && crn_stretches_next(&at) && at.n == crn_box_volume(&w->box[0].common);
}

static cairn_status fill_all(box_work *w)
{
    uint64_t n = 0, middle;
    uint32_t d;
    CRN_TRY(crn_mark_table(w->part, w->mark, w->var)); /* threads only read it */
    for (size_t i = 0; i < w->n; i++)
        n += crn_box_volume(&w->box[i].common) * w->var->spec.item;
    if (n < HALVES_BYTES || is_one_stretch(w) || !crn_part_is_cached(w->part) ||
        !crn_has_processors() || !find_middle(w, &d, &middle))
        return fill_boxes(w);
    return fill_in_halves(w, d, middle);
}

/* --- the boxes of a share ----------------------------------------------------------------- */

/* Has every process all of an array? Then the first one's is enough. */
static bool is_copy(const crn_var_spec *s)
{
    for (uint32_t d = 0; d < s->ndims; d++)
        if (s->count[d] != s->global[d])
            return false;
    return true;
}

static cairn_status add_box(getting *g, box_work *w, size_t i)
{
    const crn_var_spec *spec = &g->spec[i];
    box_part *b = &w->box[w->n];
    *b = (box_part){.want = crn_box_of(spec->ndims, spec->offset, spec->count),
                    .data = g->field[i].data};
    if (!crn_box_cut(&w->has, &b->want, &b->common) ||
        (is_copy(&w->var->spec) && g->got[i] == spec->nbytes))
        return CAIRN_OK;
    CRN_TRY(crn_vec_push(&g->claim[i], (crn_claim){(uint32_t)g->claim[i].n, b->common}));
    g->got[i] += crn_box_volume(&b->common) * w->var->spec.item;
    w->n++;
    return CAIRN_OK;
}

cairn_status crn_get_boxes(getting *g, crn_part *part, const crn_mark *m, crn_var *v, size_t first)
{
    box_work w = {.shelf = g->shelf, .part = part, .mark = m, .var = v};
    size_t n = 0;
    w.has = crn_box_of(v->spec.ndims, v->spec.offset, v->spec.count);
    for (size_t i = first; i != STATE_NO_FIELD; i = g->next[i])
        n++;
    CRN_TRY(crn_alloc(&w.box, n));
    cairn_status rc = CAIRN_OK;
    for (size_t i = first; i != STATE_NO_FIELD && rc == CAIRN_OK; i = g->next[i])
        rc = add_box(g, &w, i);
    if (rc < 0)
        w.n = 0;
    if (w.n == 1 && is_same_box(&w.has, &w.box[0].want))
        rc = crn_mark_read(part, m, v, 0, v->nblocks, w.box[0].data, NULL);
    else if (w.n > 0)
        rc = fill_all(&w);
    free(w.box);
    return rc;
}
