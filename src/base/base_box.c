/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Boxes: cutting them, and walking over what two arrays have in common.
 */
#include "base/base.h"

#include <inttypes.h>

crn_box crn_box_of(uint32_t ndims, const uint64_t *offset, const uint64_t *count)
{
    crn_box b = {.ndims = ndims};
    for (uint32_t d = 0; d < ndims; d++) {
        b.lo[d] = offset ? offset[d] : 0;
        b.hi[d] = b.lo[d] + count[d];
    }
    return b;
}

uint64_t crn_box_volume(const crn_box *b)
{
    uint64_t v = 1;
    for (uint32_t d = 0; d < b->ndims; d++)
        v *= b->hi[d] - b->lo[d];
    return v;
}

bool crn_box_cut(const crn_box *a, const crn_box *b, crn_box *ret)
{
    crn_box cut = {.ndims = a->ndims};
    for (uint32_t d = 0; d < a->ndims; d++) {
        cut.lo[d] = CRN_MAX(a->lo[d], b->lo[d]);
        cut.hi[d] = CRN_MIN(a->hi[d], b->hi[d]);
        if (cut.lo[d] >= cut.hi[d])
            return false;
    }
    *ret = cut;
    return true;
}

char *crn_box_format(const crn_box *b, char buf[CRN_BOX_TEXT])
{
    size_t n = 0;
    for (uint32_t d = 0; d < b->ndims && n < CRN_BOX_TEXT; d++)
        n +=
            (size_t)snprintf(buf + n, CRN_BOX_TEXT - n, "%s%" PRIu64 ":%" PRIu64 "%s",
                             d == 0 ? "[" : ", ", b->lo[d], b->hi[d], d + 1 == b->ndims ? "]" : "");
    return buf;
}

/* --- stretches ---------------------------------------------------------------------------- */

static uint64_t extent(const crn_box *b, uint32_t d)
{
    return b->hi[d] - b->lo[d];
}

/* Where the walk counts, and where stretches go on: dimension d belongs to them when everything
 * faster is common as a whole to both arrays. */
static uint32_t count_outer(const crn_box *common, const crn_box *from, const crn_box *to)
{
    uint32_t d = common->ndims > 0 ? common->ndims - 1 : 0;
    while (d > 0 && extent(common, d) == extent(from, d) && extent(common, d) == extent(to, d))
        d--;
    return d;
}

crn_stretches crn_stretches_of(const crn_box *common, const crn_box *from, const crn_box *to)
{
    crn_stretches r = {.n = 1, .nouter = count_outer(common, from, to)};
    uint64_t from_stride = 1, to_stride = 1;
    for (uint32_t d = common->ndims; d-- > 0;) {
        r.from += (common->lo[d] - from->lo[d]) * from_stride;
        r.to += (common->lo[d] - to->lo[d]) * to_stride;
        if (d >= r.nouter)
            r.n *= extent(common, d);
        r.count[d] = extent(common, d);
        r.from_stride[d] = from_stride;
        r.to_stride[d] = to_stride;
        from_stride *= extent(from, d);
        to_stride *= extent(to, d);
    }
    return r;
}

bool crn_stretches_next(crn_stretches *r)
{
    if (!r->begun)
        return r->begun = true;
    for (uint32_t d = r->nouter; d-- > 0;) {
        r->from += r->from_stride[d];
        r->to += r->to_stride[d];
        if (++r->at[d] < r->count[d])
            return true;
        r->from -= r->count[d] * r->from_stride[d];
        r->to -= r->count[d] * r->to_stride[d];
        r->at[d] = 0;
    }
    return false;
}

uint64_t crn_stretches_count(const crn_stretches *r)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < r->nouter; d++)
        n *= r->count[d];
    return n;
}

void crn_stretches_at(const crn_stretches *r, uint64_t k, uint64_t *ret_from, uint64_t *ret_to)
{
    *ret_from = r->from;
    *ret_to = r->to;
    for (uint32_t d = r->nouter; d-- > 0; k /= r->count[d]) {
        *ret_from += k % r->count[d] * r->from_stride[d];
        *ret_to += k % r->count[d] * r->to_stride[d];
    }
}
