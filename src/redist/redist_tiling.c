/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Do boxes tile an array? Overlaps are looked for first. Boxes that do not overlap tile the array
 * if and only if they have its volume; only when they have not, the hole is searched for.
 */
#include "redist/redist.h"

/* --- overlaps ----------------------------------------------------------------------------- */

static int compare_in(const void *x, const void *y, void *arg)
{
    const crn_claim *a = x, *b = y;
    const uint32_t d = *(const uint32_t *)arg;
    if (a->box.lo[d] != b->box.lo[d])
        return a->box.lo[d] < b->box.lo[d] ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Every pair whose ranges in dimension 0 meet. */
static bool find_by_pairs(crn_claim *claim, size_t n, crn_tiling *ret)
{
    uint32_t d = 0;
    qsort_r(claim, n, sizeof *claim, compare_in, &d);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = i + 1; k < n && claim[k].box.lo[0] < claim[i].box.hi[0]; k++) {
            if (!crn_box_cut(&claim[i].box, &claim[k].box, &ret->where))
                continue;
            ret->fault = CRN_TILING_OVERLAP;
            ret->rank[0] = CRN_MIN(claim[i].rank, claim[k].rank);
            ret->rank[1] = CRN_MAX(claim[i].rank, claim[k].rank);
            return true;
        }
    }
    return false;
}

/*
 * Cut the claims into groups that do not meet in dimension d, and each group in the next dimension,
 * until none can be cut any more in any: whatever was made by cutting an array, its parts, and
 * their parts, all across, ends with groups of one. unsplit counts dimensions tried in vain.
 */
static bool find_overlap(crn_claim *claim, size_t n, uint32_t d, uint32_t unsplit, crn_tiling *ret)
{
    const uint32_t ndims = claim[0].box.ndims;
    if (n == 1)
        return false;
    if (unsplit == ndims)
        return find_by_pairs(claim, n, ret);
    qsort_r(claim, n, sizeof *claim, compare_in, &d);
    for (size_t first = 0, end; first < n; first = end) {
        uint64_t hi = claim[first].box.hi[d];
        for (end = first + 1; end < n && claim[end].box.lo[d] < hi; end++)
            hi = CRN_MAX(hi, claim[end].box.hi[d]);
        if (find_overlap(claim + first, end - first, (d + 1) % ndims,
                         end - first == n ? unsplit + 1 : 0, ret))
            return true;
    }
    return false;
}

/* --- holes -------------------------------------------------------------------------------- */

static uint64_t sum_volumes(const crn_claim *claim, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v += crn_box_volume(&claim[i].box);
    return v;
}

/* The edge of a claim inside region that is nearest to the middle of a dimension, by its share. */
static bool find_cut(const crn_claim *claim, size_t n, const crn_box *region, uint32_t *ret_dim,
                     uint64_t *ret_at)
{
    double best = 1;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < 2 * region->ndims; k++) {
            const uint32_t d = k / 2;
            const uint64_t at = k % 2 ? claim[i].box.hi[d] : claim[i].box.lo[d];
            if (at <= region->lo[d] || at >= region->hi[d])
                continue;
            double off = (double)(at - region->lo[d]) / (double)(region->hi[d] - region->lo[d]);
            off = off < 0.5 ? 0.5 - off : off - 0.5;
            if (off < best) {
                best = off;
                *ret_dim = d;
                *ret_at = at;
            }
        }
    }
    return best < 1;
}

/* What of n claims lies in region, cut to it, in place. */
static size_t keep_inside(crn_claim *claim, size_t n, const crn_box *region)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (crn_box_cut(&claim[i].box, region, &claim[kept].box))
            claim[kept++].rank = claim[i].rank;
    return kept;
}

/* A box that no claim meets. The claims are cut to what is left of the region as it is halved. */
static crn_box find_hole(crn_claim *claim, size_t n, crn_box region, crn_claim *spare)
{
    uint32_t d = 0;
    uint64_t at = 0;
    while (find_cut(claim, n, &region, &d, &at)) {
        crn_box low = region;
        low.hi[d] = at;
        memcpy(spare, claim, n * sizeof *claim);
        size_t kept = keep_inside(spare, n, &low);
        if (sum_volumes(spare, kept) < crn_box_volume(&low)) {
            region = low;
            memcpy(claim, spare, kept * sizeof *claim);
            n = kept;
        } else {
            region.lo[d] = at;
            n = keep_inside(claim, n, &region);
        }
    }
    return region;
}

/* Let a hole grow in every dimension as far as claims let it, and note whose they are. */
static void grow_hole(const crn_claim *claim, size_t n, const crn_box *whole, crn_tiling *t)
{
    for (uint32_t d = 0; d < whole->ndims; d++) {
        crn_box column = t->where, common;
        column.lo[d] = whole->lo[d];
        column.hi[d] = whole->hi[d];
        int64_t below = -1, above = -1;
        for (size_t i = 0; i < n; i++) {
            if (!crn_box_cut(&claim[i].box, &column, &common))
                continue;
            if (common.hi[d] <= t->where.lo[d]) {
                column.lo[d] = common.hi[d];
                below = claim[i].rank;
            } else {
                column.hi[d] = common.lo[d];
                above = claim[i].rank;
            }
        }
        t->where = column;
        t->rank[0] = t->rank[0] < 0 ? below : t->rank[0];
        t->rank[1] = t->rank[1] < 0 ? above : t->rank[1];
    }
}

static cairn_status describe_hole(const crn_claim *claim, size_t n, const crn_box *whole,
                                  crn_tiling *ret)
{
    crn_claim *copy;
    CRN_TRY(crn_alloc(&copy, 2 * n));
    if (n > 0)
        memcpy(copy, claim, n * sizeof *claim);
    *ret = (crn_tiling){
        .fault = CRN_TILING_HOLE, .rank = {-1, -1}, .where = find_hole(copy, n, *whole, copy + n)};
    free(copy);
    grow_hole(claim, n, whole, ret);
    return CAIRN_OK;
}

cairn_status crn_claims_check(crn_claim *claim, size_t n, const crn_box *whole, crn_tiling *ret)
{
    *ret = (crn_tiling){.fault = CRN_TILING_WHOLE};
    if (n > 0 && find_overlap(claim, n, 0, 0, ret))
        return CAIRN_OK;
    if (sum_volumes(claim, n) < crn_box_volume(whole))
        return describe_hole(claim, n, whole, ret);
    return CAIRN_OK;
}
