/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Getting a box of an array from the pieces that others had. A large one, from a file that lies in
 * memory, is got by two threads: there copying and digesting is work for a processor.
 */
#include "state/state_fill.h"
#include "state/state_read.h"

enum { HALVES_BYTES = 8 << 20 }; /* from here on a second thread pays for itself */

/* What a piece and the memory that is asked for have in common. */
typedef struct box_work {
    const getting *g;
    crn_part *part;
    const crn_mark *mark;
    crn_var *var;
    crn_box has, want, common;
    unsigned char *data;
    cairn_status status; /* of a thread's, and why */
    crn_err why;
} box_work;

static bool is_same_box(const crn_box *a, const crn_box *b)
{
    const size_t n = a->ndims * sizeof *a->lo;
    return memcmp(a->lo, b->lo, n) == 0 && memcmp(a->hi, b->hi, n) == 0;
}

static cairn_status get_common(const box_work *w)
{
    const uint64_t item = w->var->spec.item;
    state_fill f;
    cairn_status rc = crn_fill_begin(&f, w->g->shelf, w->part, w->mark, w->var);
    crn_stretches s = crn_stretches_of(&w->common, &w->has, &w->want);
    while (rc == CAIRN_OK && crn_stretches_next(&s))
        rc = crn_fill_add(&f, s.from * item, w->data + s.to * item, s.n * item);
    return crn_fill_end(&f, rc);
}

static void *half_main(void *arg)
{
    box_work *w = arg;
    w->status = get_common(w);
    if (w->status < 0)
        w->why = *crn_err_peek();
    return NULL;
}

/* Cut the box in two, along the first dimension in which it has two elements. */
static bool cut_in_two(box_work *w, box_work *half)
{
    uint32_t d = 0;
    while (d < w->common.ndims && w->common.hi[d] - w->common.lo[d] < 2)
        d++;
    if (d == w->common.ndims)
        return false;
    const uint64_t middle = w->common.lo[d] + (w->common.hi[d] - w->common.lo[d]) / 2;
    *half = *w;
    half->common.lo[d] = w->common.hi[d] = middle;
    return true;
}

static cairn_status get_in_halves(box_work *w)
{
    const uint64_t nbytes = crn_box_volume(&w->common) * w->var->spec.item;
    box_work half;
    pthread_t thread;
    CRN_TRY(crn_mark_table(w->part, w->mark, w->var)); /* threads only read it */
    if (nbytes < HALVES_BYTES || !crn_part_is_cached(w->part) || !crn_has_processors() ||
        !cut_in_two(w, &half))
        return get_common(w);
    if (crn_thread_start(&thread, half_main, &half) != 0)
        half_main(&half);
    else {
        const cairn_status rc = get_common(w);
        pthread_join(thread, NULL);
        CRN_TRY(rc);
        return half.status < 0 ? crn_err_give(&half.why) : CAIRN_OK;
    }
    CRN_TRY(half.status);
    return get_common(w);
}

/* Has every process all of an array? Then the first one's is enough. */
static bool is_copy(const crn_var_spec *s)
{
    for (uint32_t d = 0; d < s->ndims; d++)
        if (s->count[d] != s->global[d])
            return false;
    return true;
}

cairn_status crn_get_box(getting *g, crn_part *part, const crn_mark *m, crn_var *v, size_t i)
{
    const crn_var_spec *spec = &g->spec[i];
    box_work w = {.g = g, .part = part, .mark = m, .var = v, .data = g->field[i].data};
    w.want = crn_box_of(spec->ndims, spec->offset, spec->count);
    w.has = crn_box_of(v->spec.ndims, v->spec.offset, v->spec.count);
    if (!crn_box_cut(&w.has, &w.want, &w.common) ||
        (is_copy(&v->spec) && g->got[i] == spec->nbytes))
        return CAIRN_OK;
    g->got[i] += crn_box_volume(&w.common) * v->spec.item;
    if (is_same_box(&w.has, &w.want))
        return crn_mark_read(part, m, v, 0, v->nblocks, w.data, NULL);
    return get_in_halves(&w);
}
