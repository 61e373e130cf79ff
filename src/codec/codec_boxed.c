/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks as boxes of values. A block is a stretch of an array in memory order, hardly ever whole
 * planes of it. It is cut into whole rows, planes and cubes, as large as the stretch has them, and
 * what is left at both ends:
 *
 *      ..#######      end of a row               1 dimension
 *      #########      rows to the plane's end    2
 *      #########
 *      #########      planes, four by four       3
 *      #####....      and so on, backwards
 *
 * The codec stores one box behind the other. The encoded form, little-endian:
 *
 *     u64 parameter of the codec | u32 values aside | u8 dimensions d, 3 x 0
 *     for d > 1: d - 1 u32, the extents but for the slowest | u32 phase | to a multiple of 8
 *     positions of the values aside, u32 each | to a multiple of 8 | their bits | to a multiple of
 * 8 the boxes, in order
 *
 * The phase is the position of the first value in its plane (of d - 1 dimensions).
 */
#include "codec/codec_ops.h"

enum { HEAD = 16, LAYER = 4 }; /* LAYER: zfp's blocks have so many values in each dimension */

/* --- shapes --------------------------------------------------------------------------------- */

crn_codec_shape crn_codec_shape_of(uint32_t ndims, const uint64_t *extent)
{
    crn_codec_shape s = {.ndims = CRN_MIN(ndims, (uint32_t)CRN_CODEC_DIMS)};
    const uint32_t slow = ndims - s.ndims; /* those are one, from here */
    for (uint32_t d = 0; d < s.ndims; d++)
        s.extent[d] = extent[slow + d];
    return s;
}

/* Merge dimension d and the slower one before it. */
static void merge(crn_codec_shape *s, uint32_t d)
{
    s->extent[d - 1] *= s->extent[d];
    memmove(&s->extent[d], &s->extent[d + 1], (s->ndims - d - 1) * sizeof *s->extent);
    s->ndims--;
}

static uint64_t plane_of(const crn_codec_shape *s)
{
    uint64_t n = 1;
    for (uint32_t d = 1; d < s->ndims; d++)
        n *= s->extent[d];
    return n;
}

crn_codec_shape crn_codec_normal_shape(const crn_codec_shape *shape)
{
    crn_codec_shape s = *shape;
    uint64_t all = 1;
    for (uint32_t d = 0; d < s.ndims; d++)
        if (s.extent[d] == 0 || __builtin_mul_overflow(all, s.extent[d], &all))
            s.ndims = 0;
    for (uint32_t d = s.ndims; d-- > 1;)
        if (s.extent[d] < LAYER)
            merge(&s, d);
    while (s.ndims > 1 && plane_of(&s) > UINT32_MAX) /* too large for any block */
        merge(&s, 1);
    if (s.ndims <= 1)
        return (crn_codec_shape){.ndims = 1};
    s.first %= plane_of(&s);
    return s;
}

/* One box of n values from the dimension d of a shape on, where the first has this extent. */
static crn_codec_box box_of(const crn_codec_shape *s, uint32_t d, size_t first, size_t lead)
{
    crn_codec_box b = {
        .ndims = s->ndims - d, .missing = d, .first = first, .n = lead, .extent = {lead}};
    for (uint32_t k = 1; k < b.ndims; k++) {
        b.extent[k] = s->extent[d + k];
        b.n *= b.extent[k];
    }
    return b;
}

/* Cut [first, end) of the block, which begins at phase of a plane of dimension d. */
static size_t cut(const crn_codec_shape *s, uint32_t d, size_t phase, size_t first, size_t end,
                  crn_codec_box *ret)
{
    size_t n = 0, plane = 1;
    if (first == end)
        return 0;
    for (uint32_t k = d + 1; k < s->ndims; k++)
        plane *= s->extent[k];
    if (plane == 1) {
        ret[0] = box_of(s, d, first, end - first);
        return 1;
    }
    if (phase % plane != 0) {
        const size_t head = CRN_MIN(plane - phase % plane, end - first);
        n += cut(s, d + 1, phase % plane, first, first + head, ret);
        first += head;
    }
    const size_t whole = (end - first) / plane / LAYER * LAYER;
    if (whole > 0) {
        ret[n++] = box_of(s, d, first, whole);
        first += whole * plane;
    }
    return n + cut(s, d + 1, 0, first, end, ret + n);
}

size_t crn_codec_boxes(const crn_codec_shape *shape, size_t n, crn_codec_box *ret)
{
    if (shape->ndims <= 1) {
        *ret = (crn_codec_box){.ndims = 1, .extent = {n}, .n = n};
        return 1;
    }
    return cut(shape, 0, (size_t)shape->first, 0, n, ret);
}

uint32_t crn_codec_block(const crn_codec_setting *s, crn_elem elem, const crn_codec_shape *shape)
{
    enum { PLANES = 128, FEWEST = 8, LARGEST = 4 << 20 };
    const bool boxed = s->family == CRN_FAMILY_ZFP || s->family == CRN_FAMILY_FPZIP ||
                       (s->family == CRN_FAMILY_AUTO && crn_codec_is_lossy(s));
    crn_codec_shape norm = crn_codec_normal_shape(shape);
    if (!boxed || s->flat || elem == CRN_ELEM_BYTES)
        return 0;
    while (norm.ndims > 1 && plane_of(&norm) * crn_elem_nbytes(elem) > LARGEST / FEWEST)
        merge(&norm, 1);
    if (norm.ndims <= 1)
        return 0;
    const uint64_t want = plane_of(&norm) * crn_elem_nbytes(elem) * PLANES;
    uint32_t block = 1024;
    while (block < want && block < LARGEST)
        block *= 2;
    return block;
}

/* --- the encoded form ----------------------------------------------------------------------- */

/* Where the parts of it lie. */
typedef struct layout {
    size_t aside, bits, boxes;
} layout;

static layout lay_out(uint32_t ndims, size_t naside, size_t width)
{
    layout l;
    l.aside = HEAD + (ndims > 1 ? CRN_ROUND_UP(ndims * sizeof(uint32_t), (size_t)8) : 0);
    l.bits = l.aside + CRN_ROUND_UP(naside * sizeof(uint32_t), (size_t)8);
    l.boxes = l.bits + CRN_ROUND_UP(naside * width, (size_t)8);
    return l;
}

static void put_head(unsigned char *to, const crn_boxed *what, const crn_codec_shape *shape)
{
    const uint32_t naside = (uint32_t)what->naside;
    memcpy(to, &what->param, 8);
    memcpy(to + 8, &naside, 4);
    to[12] = (unsigned char)shape->ndims;
    for (uint32_t d = 1; d < shape->ndims; d++) {
        const uint32_t extent = (uint32_t)shape->extent[d];
        memcpy(to + HEAD + 4 * (size_t)(d - 1), &extent, 4);
    }
    const uint32_t phase = (uint32_t)shape->first;
    if (shape->ndims > 1)
        memcpy(to + HEAD + 4 * (size_t)(shape->ndims - 1), &phase, 4);
}

cairn_status crn_boxed_encode(const crn_box_ops *ops, crn_elem elem, const crn_boxed *what,
                              const void *src, size_t nbytes, void *dst, size_t cap, size_t *ret_n)
{
    const size_t width = crn_elem_nbytes(elem);
    const crn_codec_shape flat = {.ndims = 1};
    const crn_codec_shape shape = ops->flat ? flat : crn_codec_normal_shape(&what->shape);
    const layout l = lay_out(shape.ndims, what->naside, width);
    crn_codec_box box[CRN_CODEC_BOXES];
    unsigned char *to = dst;
    size_t at = l.boxes;
    if (l.boxes > cap || nbytes / width > UINT32_MAX)
        return CAIRN_NOTHING;
    memset(to, 0, l.boxes);
    put_head(to, what, &shape);
    for (size_t i = 0; i < what->naside; i++) {
        memcpy(to + l.aside + i * 4, &what->aside[i], 4);
        memcpy(to + l.bits + i * width,
               (const unsigned char *)what->original + what->aside[i] * width, width);
    }
    const size_t nboxes = crn_codec_boxes(&shape, nbytes / width, box);
    for (size_t i = 0; i < nboxes; i++) {
        size_t n;
        cairn_status rc =
            ops->encode(elem, &box[i], what->param,
                        (const unsigned char *)src + box[i].first * width, to + at, cap - at, &n);
        if (rc != CAIRN_OK)
            return rc;
        at += n;
    }
    *ret_n = at;
    return CAIRN_OK;
}

/* Extents that no writer makes would make boxes without end. */
static bool get_shape(const unsigned char *from, size_t n, crn_codec_shape *ret)
{
    crn_codec_shape s = {.ndims = from[12], .extent = {1}};
    if (s.ndims < 1 || s.ndims > CRN_CODEC_DIMS || lay_out(s.ndims, 0, 8).aside > n)
        return false;
    for (uint32_t d = 1; d < s.ndims; d++) {
        uint32_t extent;
        memcpy(&extent, from + HEAD + 4 * (size_t)(d - 1), 4);
        s.extent[d] = extent;
        if (extent < LAYER || plane_of(&s) > UINT32_MAX)
            return false;
    }
    uint32_t phase = 0;
    if (s.ndims > 1)
        memcpy(&phase, from + HEAD + 4 * (size_t)(s.ndims - 1), 4);
    s.first = phase;
    *ret = s;
    return phase < plane_of(&s);
}

/* Put the values that were kept aside to their positions. */
static bool patch(const unsigned char *from, const layout *l, size_t naside, size_t width,
                  unsigned char *dst, size_t nvalues)
{
    for (size_t i = 0; i < naside; i++) {
        uint32_t at;
        memcpy(&at, from + l->aside + i * 4, 4);
        if (at >= nvalues)
            return false;
        memcpy(dst + at * width, from + l->bits + i * width, width);
    }
    return true;
}

bool crn_boxed_decode(const crn_box_ops *ops, crn_elem elem, const void *src, size_t n, void *dst,
                      size_t nbytes)
{
    const unsigned char *from = src;
    const size_t width = crn_elem_nbytes(elem), nvalues = nbytes / width;
    crn_codec_box box[CRN_CODEC_BOXES];
    crn_codec_shape shape;
    uint64_t param;
    uint32_t naside;
    if (n < HEAD || !get_shape(from, n, &shape) || (ops->flat && shape.ndims != 1))
        return false;
    memcpy(&param, from, 8);
    memcpy(&naside, from + 8, 4);
    if (naside > nvalues)
        return false;
    const layout l = lay_out(shape.ndims, naside, width);
    if (l.boxes > n)
        return false;
    size_t at = l.boxes;
    const size_t nboxes = crn_codec_boxes(&shape, nvalues, box);
    for (size_t i = 0; i < nboxes; i++) {
        const size_t took = ops->decode(elem, &box[i], param, from + at, n - at,
                                        (unsigned char *)dst + box[i].first * width);
        if (took == 0 || took > n - at)
            return false;
        at += took;
    }
    return at == n && patch(from, &l, naside, width, dst, nvalues);
}
