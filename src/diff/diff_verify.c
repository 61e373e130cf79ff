/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking at blocks that trees did not prove equal: fetched from both sides in batches, of which
 * one is compared while the others are on their way; by as many threads as have nothing else to do.
 * Batches are small, so that values are still in the processor's cache, where their digests were
 * checked, when they are compared.
 */
#include "diff/diff.h"

#include <inttypes.h>
#include <stdatomic.h>

enum { DEPTH = 64 };

cairn_status crn_diff_worker_create(const diff_question *ask, diff_worker **ret)
{
    diff_worker *w;
    cairn_status rc;
    CRN_TRY(crn_alloc(&w, 1));
    w->ask = ask;
    CRN_TRY_OUT(rc, crn_io_create(CRN_IO_AUTO, DEPTH, &w->io));
    for (int k = 0; k < 2; k++) {
        CRN_TRY_OUT(rc, crn_io_memory(DIFF_MEMORY, &w->data[k]));
        for (int i = 0; i < DIFF_BATCHES; i++)
            CRN_TRY_OUT(rc, crn_fetch_create(&w->batch[i].fetch[k]));
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
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < DIFF_BATCHES; i++) {
            crn_fetch_free(w->batch[i].fetch[k]);
            crn_vec_done(&w->batch[i].bad[k]);
        }
        free(w->data[k]);
    }
    free(w);
}

void crn_diff_see(diff_worker *w, uint64_t nbytes)
{
    if (w->seen)
        w->seen(w->seen_arg, nbytes);
}

crn_value_rule crn_diff_rule(const diff_worker *w, const diff_row *row, const crn_var_spec *spec)
{
    return (crn_value_rule){.kind = crn_value_kind_of(spec->type),
                            .item = spec->item,
                            .bound = row->bound,
                            .fields = row->fields,
                            .nan_differs = w->ask->nan_differs};
}

/* Blocks of two variables that are to be compared, by any number of threads. */
typedef struct verification {
    diff_share *share[2];
    crn_var *var[2]; /* with their tables */
    const crn_var_spec *spec;
    const uint64_t *block;
    size_t n, step;     /* blocks, and how many a batch has */
    atomic_size_t next; /* the first block that nobody has taken */
    diff_joint joint;
} verification;

/* What one thread does of it. */
typedef struct effort {
    verification *v;
    diff_worker *w;
    diff_row row; /* what it has found */
    /* while a block is compared: */
    uint64_t base; /* its first value */
    const unsigned char *a, *b;
} effort;

/* --- batches -------------------------------------------------------------------------------- */

static unsigned char *slot_data(const effort *e, int k, size_t slot)
{
    return e->w->data[k] + slot * e->v->step * e->v->spec->block;
}

/* Take the next batch; false: there is none. */
static bool take(verification *v, size_t *ret_first)
{
    /* relaxed: batches are independent, and results are passed on under a mutex */
    *ret_first = atomic_fetch_add_explicit(&v->next, v->step, memory_order_relaxed);
    return *ret_first < v->n;
}

static cairn_status start(void *arg, size_t slot)
{
    const effort *e = arg;
    const verification *v = e->v;
    diff_worker *w = e->w;
    size_t first;
    if (!take(e->v, &first))
        return CAIRN_NOTHING;
    w->batch[slot].first = first;
    w->batch[slot].n = CRN_MIN(v->step, v->n - first);
    w->batch[slot].nfetches = 0;
    for (int k = 0; k < 2; k++) {
        w->batch[slot].bad[k].n = 0;
        w->batch[slot].nfetches++; /* also when it fails: some of it may be on its way */
        CRN_TRY(crn_fetch_start(w->batch[slot].fetch[k], w->io, v->share[k]->part,
                                v->share[k]->data, v->var[k], v->block + first, w->batch[slot].n,
                                slot_data(e, k, slot)));
    }
    return CAIRN_OK;
}

static cairn_status finish(void *arg, size_t slot)
{
    diff_worker *w = ((const effort *)arg)->w;
    cairn_status rc = CAIRN_OK;
    for (int k = 0; k < w->batch[slot].nfetches; k++) {
        cairn_status end = crn_fetch_finish(w->batch[slot].fetch[k], w->io, &w->batch[slot].bad[k]);
        if (rc == CAIRN_OK)
            rc = end;
    }
    return rc;
}

/* --- comparing ------------------------------------------------------------------------------ */

static void on_stretch(void *arg, uint64_t first, uint64_t n)
{
    effort *e = arg;
    const size_t off = first * e->v->spec->item;
    crn_diff_row_note(&e->row, e->v->spec, e->v->share[0]->rank, e->base + first, n, e->a + off,
                      e->b + off);
}

static bool is_bad(effort *e, size_t slot, uint64_t block)
{
    for (int k = 0; k < 2; k++) {
        const crn_bad_blocks *bad = &e->w->batch[slot].bad[k];
        const diff_share *share = e->v->share[k];
        for (size_t i = 0; i < bad->n; i++) {
            if (bad->at[i] != block)
                continue;
            crn_diff_row_judge(&e->row, CAIRN_INCONCLUSIVE,
                               "block %" PRIu64 " of rank %u is damaged or cannot be read in '%s'",
                               block, share->rank, share->side->name);
            return true;
        }
    }
    return false;
}

/* Of the variable's bytes, how many are seen to with the first so many blocks? */
static uint64_t seen_by(const verification *v, size_t nblocks)
{
    return (uint64_t)((double)v->spec->nbytes * (double)nblocks / (double)v->n);
}

static void compare(void *arg, size_t slot)
{
    effort *e = arg;
    const verification *v = e->v;
    const size_t first = e->w->batch[slot].first, n = e->w->batch[slot].n;
    const crn_value_rule rule = crn_diff_rule(e->w, &e->row, v->spec);
    diff_losses losses;
    const bool lossy = crn_diff_losses_of(&v->var[0]->spec, &v->var[1]->spec, &losses);
    for (size_t i = 0; i < n; i++) {
        const uint64_t block = v->block[first + i];
        const uint32_t nbytes = crn_var_block_bytes(v->var[0], block);
        crn_value_delta delta = {0};
        e->row.at.step = block;
        e->row.read_bytes += 2 * (uint64_t)nbytes;
        if (is_bad(e, slot, block))
            continue;
        e->base = block * v->spec->block / v->spec->item;
        e->a = slot_data(e, 0, slot) + i * v->spec->block;
        e->b = slot_data(e, 1, slot) + i * v->spec->block;
        const uint64_t count = nbytes / v->spec->item;
        if (!lossy)
            crn_values_compare(&rule, e->a, e->b, count, &delta, on_stretch, e);
        else if (!crn_diff_compare_lossy(&rule, &losses, e->a, e->b, count, &delta, on_stretch, e))
            crn_diff_row_judge(&e->row, CAIRN_INCONCLUSIVE, CRN_DIFF_UNPROVEN);
        crn_diff_row_count(&e->row, &delta);
        e->row.nfalse += delta.n == 0;
    }
    crn_diff_see(e->w, seen_by(v, first + n) - seen_by(v, first));
}

/* --- threads -------------------------------------------------------------------------------- */

static void work(void *arg, diff_worker *w)
{
    static const diff_flow flow = {start, finish, compare};
    verification *v = arg;
    effort e = {.v = v, .w = w, .row = v->joint.blank};
    cairn_status rc = crn_diff_flow_run(&flow, &e, DIFF_MEMORY / (v->step * v->spec->block));
    if (!crn_diff_joint_add(&v->joint, &e.row, rc))
        atomic_store_explicit(&v->next, v->n, memory_order_relaxed); /* let the others end, too */
}

bool crn_diff_is_outside(const crn_var *v)
{
    return v->nblocks > 0 && v->table->codec & CRN_OUTSIDE;
}

static cairn_status verify(verification *v, diff_worker *w, diff_row *row)
{
    const bool alone = v->n <= v->step * DIFF_BATCHES || crn_diff_is_outside(v->var[0]) ||
                       crn_diff_is_outside(v->var[1]);
    crn_diff_joint_init(&v->joint, row);
    crn_diff_crew_do(alone ? NULL : w->crew, w, true, work, v);
    return crn_diff_joint_end(&v->joint);
}

cairn_status crn_diff_verify(diff_worker *w, diff_share *share[2], const crn_var_spec *spec,
                             const uint64_t *block, size_t n, diff_row *row)
{
    _Static_assert(DIFF_MEMORY >= 2 * CRN_BLOCK_MAX, "one is compared while another is on its way");
    verification v = {.share = {share[0], share[1]},
                      .spec = spec,
                      .block = block,
                      .n = n,
                      .step = CRN_MAX(DIFF_BATCH / spec->block, 1u)};
    bool in_blocks = true;
    for (int k = 0; k < 2; k++) {
        CRN_TRY(crn_diff_share_data(share[k], spec->name, &v.var[k]));
        CRN_TRY(crn_mark_table(share[k]->part, share[k]->data, v.var[k]));
        const uint32_t own = v.var[k]->spec.block;
        in_blocks &= own == spec->block || spec->nbytes <= CRN_MIN(own, spec->block);
    }
    if (n == 0)
        return CAIRN_OK;
    return in_blocks ? verify(&v, w, row) : crn_diff_leaves(w, share, spec, block, n, row);
}
