/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking at blocks that trees did not prove equal: fetched scattered from both sides, many reads
 * in flight, one batch being compared while the next is on its way.
 */
#include "diff/diff.h"

#include <inttypes.h>

enum { DEPTH = 64 };

cairn_status crn_diff_worker_create(const diff_question *ask, diff_worker **ret)
{
    diff_worker *w;
    cairn_status rc;
    CRN_TRY(crn_alloc(&w, 1));
    w->ask = ask;
    CRN_TRY_OUT(rc, crn_io_create(CRN_IO_AUTO, DEPTH, &w->io));
    for (int i = 0; i < DIFF_BATCHES; i++) {
        for (int k = 0; k < 2; k++) {
            CRN_TRY_OUT(rc, crn_fetch_create(&w->batch[i].fetch[k]));
            CRN_TRY_OUT(rc, crn_io_memory(DIFF_BATCH, &w->batch[i].data[k]));
        }
    }
    *ret = w;
    return CAIRN_OK;
out:
    crn_diff_worker_free(w);
    return rc;
}

void crn_diff_worker_free(diff_worker *w)
{
    if (!w)
        return;
    crn_io_free(w->io);
    for (int i = 0; i < DIFF_BATCHES; i++) {
        for (int k = 0; k < 2; k++) {
            crn_fetch_free(w->batch[i].fetch[k]);
            crn_vec_done(&w->batch[i].bad[k]);
            free(w->batch[i].data[k]);
        }
    }
    free(w->window[0]);
    free(w->window[1]);
    free(w);
}

crn_value_rule crn_diff_rule(const diff_worker *w, const diff_row *row, const crn_var_spec *spec)
{
    return (crn_value_rule){.kind = crn_value_kind_of(spec->type),
                            .item = spec->item,
                            .bound = row->bound,
                            .nan_differs = w->ask->nan_differs};
}

/* A verification under way. */
typedef struct verification {
    diff_worker *w;
    diff_share *share[2];
    crn_var *var[2];
    const crn_var_spec *spec;
    const uint64_t *block;
    size_t n, step; /* blocks, and how many a batch has */
    diff_row *row;
    /* while a block is compared: */
    uint64_t base; /* its first value */
    const unsigned char *a, *b;
} verification;

static void on_stretch(void *arg, uint64_t first, uint64_t n)
{
    verification *v = arg;
    const size_t off = first * v->spec->item;
    crn_diff_row_note(v->row, v->spec, v->share[0]->rank, v->base + first, n, v->a + off,
                      v->b + off);
}

static cairn_status start(verification *v, int slot, size_t first)
{
    v->w->batch[slot].first = first;
    v->w->batch[slot].n = CRN_MIN(v->step, v->n - first);
    for (int k = 0; k < 2; k++) {
        v->w->batch[slot].bad[k].n = 0;
        CRN_TRY(crn_fetch_start(v->w->batch[slot].fetch[k], v->w->io, v->share[k]->part,
                                v->share[k]->data, v->var[k], v->block + first, v->w->batch[slot].n,
                                v->w->batch[slot].data[k]));
    }
    return CAIRN_OK;
}

static bool is_bad(verification *v, int slot, uint64_t block)
{
    for (int k = 0; k < 2; k++) {
        const crn_bad_blocks *bad = &v->w->batch[slot].bad[k];
        for (size_t i = 0; i < bad->n; i++) {
            if (bad->at[i] != block)
                continue;
            crn_diff_row_judge(v->row, CAIRN_UNTOLD,
                               "block %" PRIu64 " of rank %u is damaged or cannot be read in '%s'",
                               block, v->share[k]->rank, v->share[k]->side->name);
            return true;
        }
    }
    return false;
}

static void compare(verification *v, int slot)
{
    const crn_value_rule rule = crn_diff_rule(v->w, v->row, v->spec);
    crn_value_delta delta = {.max = v->row->max};
    for (size_t i = 0; i < v->w->batch[slot].n; i++) {
        const uint64_t block = v->block[v->w->batch[slot].first + i];
        const uint32_t nbytes = crn_var_block_bytes(v->var[0], block);
        v->row->read_bytes += 2 * (uint64_t)nbytes;
        if (is_bad(v, slot, block))
            continue;
        const uint64_t before = delta.n;
        v->base = block * v->spec->block / v->spec->item;
        v->a = v->w->batch[slot].data[0] + i * v->spec->block;
        v->b = v->w->batch[slot].data[1] + i * v->spec->block;
        crn_values_compare(&rule, v->a, v->b, nbytes / v->spec->item, &delta, on_stretch, v);
        v->row->nfalse += delta.n == before;
    }
    v->row->max = delta.max;
    v->row->sum_squares += delta.sum_squares;
    if (delta.n > 0)
        crn_diff_row_judge(v->row, CAIRN_DIFFERENT, "values differ");
}

static cairn_status finish(verification *v, int slot)
{
    cairn_status rc[2];
    for (int k = 0; k < 2; k++)
        rc[k] = crn_fetch_finish(v->w->batch[slot].fetch[k], v->w->io, &v->w->batch[slot].bad[k]);
    CRN_TRY(rc[0]);
    return rc[1];
}

static cairn_status pump(verification *v)
{
    int slot = 0;
    cairn_status rc = start(v, slot, 0);
    for (size_t first = 0; first < v->n; first += v->step, slot ^= 1) {
        cairn_status next = CAIRN_OK;
        if (rc == CAIRN_OK && first + v->step < v->n)
            next = start(v, slot ^ 1, first + v->step);
        cairn_status end = finish(v, slot);
        if (rc == CAIRN_OK)
            rc = end;
        if (rc == CAIRN_OK)
            compare(v, slot);
        if (rc == CAIRN_OK)
            rc = next;
        if (rc < 0) { /* what was started must be waited for */
            (void)finish(v, slot ^ 1);
            return rc;
        }
    }
    return rc;
}

cairn_status crn_diff_verify(diff_worker *w, diff_share *share[2], const crn_var_spec *spec,
                             const uint64_t *block, size_t n, diff_row *row)
{
    _Static_assert(DIFF_BATCHES == 2, "one is compared while the other is on its way");
    verification v = {.w = w,
                      .share = {share[0], share[1]},
                      .spec = spec,
                      .block = block,
                      .n = n,
                      .step = DIFF_BATCH / spec->block,
                      .row = row};
    for (int k = 0; k < 2; k++)
        CRN_TRY(crn_diff_share_data(share[k], spec->name, &v.var[k]));
    return n > 0 ? pump(&v) : CAIRN_OK;
}
