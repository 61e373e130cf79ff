/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What two pieces of an array have in common: runs of values that lie contiguous in both, and the
 * blocks that hold them. Nothing here reads.
 */
#include "diff/diff.h"

bool crn_diff_overlap_of(const crn_var_spec *a, const crn_var_spec *b, diff_overlap *ret)
{
    *ret = (diff_overlap){.nruns = 1, .stretches = {.n = a->nbytes / a->item}};
    if (a->ndims == 0)
        return true;
    const crn_box from = crn_box_of(a->ndims, a->offset, a->count);
    const crn_box to = crn_box_of(b->ndims, b->offset, b->count);
    crn_box common;
    if (!crn_box_cut(&from, &to, &common))
        return false;
    ret->stretches = crn_stretches_of(&common, &from, &to);
    ret->nruns = crn_stretches_count(&ret->stretches);
    return true;
}

uint64_t crn_diff_overlap_size(const diff_overlap *o)
{
    uint64_t n = o->run ? 0 : o->stretches.n * o->nruns;
    for (uint64_t i = 0; o->run && i < o->nruns; i++)
        n += o->run[i].n;
    return n;
}

static diff_range run_of(const diff_overlap *o, uint64_t k)
{
    if (o->run)
        return o->run[k];
    diff_range r = {.n = o->stretches.n};
    crn_stretches_at(&o->stretches, k, &r.a, &r.b);
    return r;
}

diff_walk crn_diff_walk_of(const diff_overlap *o, uint64_t from, uint64_t to)
{
    uint64_t low = 0, high = o->nruns;
    while (low < high) { /* the first run that does not end before from */
        const uint64_t middle = low + (high - low) / 2;
        const diff_range r = run_of(o, middle);
        if (r.a + r.n <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return (diff_walk){o, from, to, low};
}

bool crn_diff_walk_next(diff_walk *w, diff_range *ret)
{
    if (w->run == w->o->nruns)
        return false;
    diff_range r = run_of(w->o, w->run++);
    const uint64_t skip = w->from > r.a ? w->from - r.a : 0;
    if (r.a >= w->to)
        return false;
    *ret = (diff_range){r.a + skip, r.b + skip, CRN_MIN(r.n - skip, w->to - r.a - skip)};
    return true;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static size_t sort_blocks(uint64_t *block, size_t n)
{
    size_t kept = 0;
    qsort(block, n, sizeof *block, ascending);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || block[i] != block[kept - 1])
            block[kept++] = block[i];
    return kept;
}

/* Of runs in any order: each one's blocks, or, where these are no fewer, all from the first block
 * to the last. */
static size_t listed_blocks(const diff_overlap *o, const crn_var_spec *b, uint64_t from,
                            uint64_t to, uint64_t *ret)
{
    diff_walk w = crn_diff_walk_of(o, from, to);
    diff_range r;
    uint64_t low = UINT64_MAX, high = 0;
    size_t sum = 0;
    while (crn_diff_walk_next(&w, &r)) {
        const uint64_t first = r.b * b->item / b->block;
        const uint64_t last = ((r.b + r.n) * b->item - 1) / b->block;
        low = CRN_MIN(low, first);
        high = CRN_MAX(high, last);
        sum += last - first + 1;
    }
    if (sum == 0 || !ret)
        return sum == 0 ? 0 : CRN_MIN(sum, high - low + 1);
    if (high - low + 1 <= sum) {
        for (uint64_t i = low; i <= high; i++)
            ret[i - low] = i;
        return high - low + 1;
    }
    size_t n = 0;
    for (w = crn_diff_walk_of(o, from, to); crn_diff_walk_next(&w, &r);)
        for (uint64_t i = r.b * b->item / b->block; i <= ((r.b + r.n) * b->item - 1) / b->block;
             i++)
            ret[n++] = i;
    return sort_blocks(ret, n);
}

size_t crn_diff_overlap_blocks(const diff_overlap *o, const crn_var_spec *b, uint64_t from,
                               uint64_t to, uint64_t *ret)
{
    if (o->run)
        return listed_blocks(o, b, from, to, ret);
    diff_walk w = crn_diff_walk_of(o, from, to);
    diff_range r;
    uint64_t next = 0; /* the first block that is not listed yet: runs ascend here, too */
    size_t n = 0;
    while (crn_diff_walk_next(&w, &r)) {
        const uint64_t first = CRN_MAX(r.b * b->item / b->block, next);
        next = ((r.b + r.n) * b->item - 1) / b->block + 1;
        for (uint64_t i = first; ret && i < next; i++)
            ret[n + (i - first)] = i;
        n += next - first;
    }
    return n;
}
