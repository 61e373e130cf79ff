/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A piece of an array, put together from the pieces that a run has of it, whatever these are: so
 * that what is known of the piece alone, as in a golden file, can be held against the run's values.
 */
#include "diff/diff.h"

#include <inttypes.h>

/* Has another piece the same values at the same place? Ranks may have copies of an array. */
static bool is_copy(const diff_gather *g, const crn_var *told)
{
    for (size_t i = 0; i < g->source.n; i++) {
        const crn_var *other = g->source.at[i].told;
        if (crn_diff_same_place(&other->spec, &told->spec) &&
            other->spec.block == told->spec.block && crn_digest_equal(&other->root, &told->root))
            return true;
    }
    return false;
}

cairn_status crn_diff_gather_add(diff_gather *g, diff_share *share)
{
    diff_source s = {.share = share};
    diff_var v;
    if (!crn_diff_share_find(share, g->spec->name, &v) ||
        strcmp(v.var->spec.type, g->spec->type) != 0 || v.var->spec.ndims != g->spec->ndims ||
        !crn_diff_overlap_of(g->spec, &v.var->spec, &s.overlap) || is_copy(g, v.var))
        return CAIRN_OK;
    s.told = v.var;
    CRN_TRY(crn_diff_share_data(share, g->spec->name, &s.var));
    CRN_TRY(crn_mark_table(share->part, share->data, s.var));
    s.room = CRN_MAX(DIFF_BATCH / s.var->spec.block, 1);
    CRN_TRY(crn_io_memory(s.room * s.var->spec.block, &s.window));
    cairn_status rc = crn_vec_push(&g->source, s);
    if (rc < 0)
        free(s.window);
    return rc;
}

void crn_diff_gather_done(diff_gather *g)
{
    for (size_t i = 0; i < g->source.n; i++)
        free(g->source.at[i].window);
    crn_vec_done(&g->source);
}

uint64_t crn_diff_gather_covers(const diff_gather *g, uint64_t from, uint64_t to)
{
    uint64_t n = 0;
    for (size_t i = 0; i < g->source.n; i++) {
        diff_walk w = crn_diff_walk_of(&g->source.at[i].overlap, from, to);
        for (diff_range r; crn_diff_walk_next(&w, &r);)
            n += r.n;
    }
    return n;
}

/* Have a block of a source in its window, with those that follow: runs ascend. */
static cairn_status see_block(diff_gather *g, diff_source *s, uint64_t block)
{
    if (block >= s->first && block < s->first + s->n)
        return CAIRN_OK;
    const uint64_t n = CRN_MIN((uint64_t)s->room, s->var->nblocks - block);
    s->n = 0;
    CRN_TRY(crn_mark_read(s->share->part, s->share->data, s->var, block, n, s->window, NULL));
    s->first = block;
    s->n = n;
    for (uint64_t i = block; i < block + n; i++)
        g->read_bytes += crn_var_block_bytes(s->var, i);
    return CAIRN_OK;
}

/* Bytes [off, off + n) of a source to dst. */
static cairn_status copy_bytes(diff_gather *g, diff_source *s, uint64_t off, uint64_t n,
                               unsigned char *dst)
{
    const uint32_t size = s->var->spec.block;
    while (n > 0) {
        const uint64_t block = off / size, in = off % size, some = CRN_MIN(n, size - in);
        CRN_TRY(see_block(g, s, block));
        memcpy(dst, s->window + (block - s->first) * size + in, some);
        off += some;
        dst += some;
        n -= some;
    }
    return CAIRN_OK;
}

cairn_status crn_diff_gather_read(diff_gather *g, uint64_t from, uint64_t to, unsigned char *dst)
{
    const uint64_t item = g->spec->item;
    for (size_t i = 0; i < g->source.n; i++) {
        diff_source *s = &g->source.at[i];
        diff_walk w = crn_diff_walk_of(&s->overlap, from / item, (to + item - 1) / item);
        for (diff_range r; crn_diff_walk_next(&w, &r);) {
            /* values may lie across the ends of what is wanted */
            const uint64_t low = CRN_MAX(r.a * item, from), high = CRN_MIN((r.a + r.n) * item, to);
            CRN_TRY(
                copy_bytes(g, s, r.b * item + (low - r.a * item), high - low, dst + (low - from)));
        }
    }
    return CAIRN_OK;
}
