/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What two pieces of an array have in common: runs of values that lie contiguous in both, and the
 * blocks that hold them. Nothing here reads.
 */
#include "diff/diff.h"

/* Where both pieces are; false: nowhere. */
static bool cut(const crn_var_spec *a, const crn_var_spec *b, uint64_t *low, uint64_t *high)
{
    for (uint32_t d = 0; d < a->ndims; d++) {
        low[d] = CRN_MAX(a->offset[d], b->offset[d]);
        high[d] = CRN_MIN(a->offset[d] + a->count[d], b->offset[d] + b->count[d]);
        if (low[d] >= high[d])
            return false;
    }
    return true;
}

/* Inner dimensions that the common box spans in both pieces lie contiguous, together with the one
 * before them; the others count runs. */
static uint32_t count_outer(const crn_var_spec *a, const crn_var_spec *b, const uint64_t *extent)
{
    uint32_t d = a->ndims - 1;
    while (d > 0 && extent[d] == a->count[d] && extent[d] == b->count[d])
        d--;
    return d;
}

bool crn_diff_overlap_of(const crn_var_spec *a, const crn_var_spec *b, diff_overlap *ret)
{
    uint64_t low[CRN_DIMS_MAX], high[CRN_DIMS_MAX], stride[2] = {1, 1};
    *ret = (diff_overlap){.n = a->nbytes / a->item, .nruns = 1};
    if (a->ndims == 0)
        return true;
    if (!cut(a, b, low, high))
        return false;
    for (uint32_t d = 0; d < a->ndims; d++)
        ret->extent[d] = high[d] - low[d];
    ret->nouter = count_outer(a, b, ret->extent);
    ret->n = 1;
    for (uint32_t d = a->ndims; d-- > 0;) {
        *(d < ret->nouter ? &ret->nruns : &ret->n) *= ret->extent[d];
        ret->first[0] += (low[d] - a->offset[d]) * stride[0];
        ret->first[1] += (low[d] - b->offset[d]) * stride[1];
        ret->stride[0][d] = stride[0];
        ret->stride[1][d] = stride[1];
        stride[0] *= a->count[d];
        stride[1] *= b->count[d];
    }
    return true;
}

uint64_t crn_diff_overlap_size(const diff_overlap *o)
{
    uint64_t n = o->run ? 0 : o->n * o->nruns;
    for (uint64_t i = 0; o->run && i < o->nruns; i++)
        n += o->run[i].n;
    return n;
}

static diff_range run_of(const diff_overlap *o, uint64_t k)
{
    if (o->run)
        return o->run[k];
    diff_range r = {o->first[0], o->first[1], o->n};
    for (uint32_t d = o->nouter; d-- > 0; k /= o->extent[d]) {
        r.a += k % o->extent[d] * o->stride[0][d];
        r.b += k % o->extent[d] * o->stride[1][d];
    }
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
