/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tolerant digest of anything but plain floating-point values: integers, complex numbers, and
 * structures of numbers. A block is replaced by its image, of the same size, which has a key in the
 * place of each number and zeros in the place of what is no member; the image is digested. As in
 * hash_tolerant.c, equal keys prove that numbers do not differ:
 *
 *   Integers. With the absolute bound A, cells have w = floor(A) + 1 integers, counted from the
 *   smallest of the type: two in one cell are at most w - 1 <= A apart. The relative part is not
 *   used, which only makes cells smaller than they might be.
 *
 *   Complex numbers. Each part has a key as a floating-point number, for the bound 0.7 A, 0.7 R. So
 *   with m the largest of the parts' absolute values, equal keys of both parts give
 *       |a - b| <= sqrt(2) max(0.7 A, 0.7 R m) <= 0.99 max(A, R max(|a|, |b|)),
 *   and what is left takes the rounding of the comparison.
 *
 *   A member of a structure may have a bound of its own, which then takes the place of A and R.
 *
 *   Bytes are their own keys; and so are numbers that lie across the end of a block, which only
 *   structures of odd sizes have.
 */
#include "hash/hash.h"

#include <math.h>

enum { PACKED = 4096 };

struct crn_structured {
    uint32_t item;
    size_t n; /* bounds */
    crn_fields fields;
    crn_tolerant **keys; /* of each field, for all bounds; NULL: no floating-point numbers */
    crn_bound bound[CRN_BOUNDS_MAX];
    unsigned char *image;
    /* numbers that get their keys together, and where they lie in the image */
    unsigned char packed[PACKED], keyed[PACKED];
    uint32_t at[PACKED];
    size_t npacked;
    bool nan;
};

static bool is_real(const crn_field *f)
{
    return f->kind == CRN_VALUE_F32 || f->kind == CRN_VALUE_F64;
}

/* Bytes of one number: a complex one has two. */
static uint32_t width_of(const crn_field *f)
{
    return f->is_complex ? f->item / 2 : f->item;
}

/* The bound of a member that has one of its own; else a negative one. */
static crn_bound own_bound(const void *arg, const char *path)
{
    const crn_bound *b = arg ? crn_named_bounds_find(arg, path, 0) : NULL;
    return b ? *b : (crn_bound){-1, -1};
}

static crn_bound bound_at(const crn_structured *s, const crn_field *f, size_t k)
{
    return f->bound.absolute < 0 ? s->bound[k] : f->bound;
}

static cairn_status make_keys(crn_structured *s, const crn_field *f, crn_tolerant **ret)
{
    crn_bound scaled[CRN_BOUNDS_MAX];
    const double part = f->is_complex ? 0.7 : 1;
    if (!is_real(f))
        return CAIRN_OK;
    for (size_t k = 0; k < s->n; k++) {
        const crn_bound b = bound_at(s, f, k);
        scaled[k] = (crn_bound){part * b.absolute, part * b.relative};
    }
    return crn_tolerant_create(width_of(f), scaled, s->n, ret);
}

cairn_status crn_structured_create(const char *type, uint32_t item, uint32_t block,
                                   const crn_bound *bound, size_t n,
                                   const crn_named_bounds *members, crn_structured **ret)
{
    crn_structured *s;
    cairn_status rc;
    CRN_TRY(crn_alloc(&s, 1));
    s->item = item;
    s->n = n;
    memcpy(s->bound, bound, n * sizeof *bound);
    CRN_TRY_OUT(rc, crn_fields_read(type, own_bound, members, &s->fields));
    CRN_TRY_OUT(rc, crn_alloc(&s->keys, s->fields.n));
    CRN_TRY_OUT(rc, crn_alloc(&s->image, block));
    for (size_t i = 0; i < s->fields.n; i++)
        CRN_TRY_OUT(rc, make_keys(s, &s->fields.at[i], &s->keys[i]));
    *ret = s;
    return CAIRN_OK;
out:
    crn_structured_free(s);
    return rc;
}

void crn_structured_free(crn_structured *s)
{
    if (!s)
        return;
    for (size_t i = 0; s->keys && i < s->fields.n; i++)
        crn_tolerant_free(s->keys[i]);
    free(s->keys);
    free(s->image);
    crn_vec_done(&s->fields);
    free(s);
}

/* The key of an integer, in its place. */
static void key_integer(const crn_field *f, double absolute, const unsigned char *src,
                        unsigned char *dst)
{
    const uint64_t x = crn_value_order(f->kind, f->item, src);
    const uint64_t key =
        absolute >= 0x1p63 ? x >> 63 >> (absolute >= 0x1p64) : x / ((uint64_t)absolute + 1);
    memcpy(dst, &key, f->item); /* little-endian, and no larger than x */
}

/* Give the numbers that were packed their keys. */
static void flush(crn_structured *s, size_t field, size_t k)
{
    const uint32_t width = width_of(&s->fields.at[field]);
    if (s->npacked == 0)
        return;
    s->nan |= crn_tolerant_keys(s->keys[field], k, s->packed, s->keyed, s->npacked * width);
    for (size_t i = 0; i < s->npacked; i++)
        memcpy(s->image + s->at[i], s->keyed + i * width, width);
    s->npacked = 0;
}

/* See to the number at data + at, of which the block has all. */
static void take_number(crn_structured *s, size_t field, size_t k, const unsigned char *data,
                        uint32_t at)
{
    const crn_field *f = &s->fields.at[field];
    const uint32_t width = width_of(f);
    if (f->kind == CRN_VALUE_OTHER) {
        memcpy(s->image + at, data + at, width);
    } else if (!is_real(f)) {
        key_integer(f, bound_at(s, f, k).absolute, data + at, s->image + at);
    } else {
        memcpy(s->packed + s->npacked * width, data + at, width);
        s->at[s->npacked++] = at;
        if ((s->npacked + 1) * width > PACKED)
            flush(s, field, k);
    }
}

/* All numbers of a field in [off, off + nbytes) of the variable, which lie at data. */
static void take_field(crn_structured *s, size_t field, size_t k, uint64_t off,
                       const unsigned char *data, uint32_t nbytes)
{
    const crn_field *f = &s->fields.at[field];
    const uint32_t width = width_of(f), count = f->count * (f->item / width);
    const uint64_t end = off + nbytes;
    for (uint64_t e = off / s->item; e * s->item < end; e++) {
        for (uint32_t j = 0; j < count; j++) {
            const uint64_t p = e * s->item + f->offset + (uint64_t)j * width;
            const uint64_t from = CRN_MAX(p, off), to = CRN_MIN(p + width, end);
            if (from == p && to == p + width)
                take_number(s, field, k, data, (uint32_t)(p - off));
            else if (from < to)
                memcpy(s->image + (from - off), data + (from - off), to - from);
        }
    }
    flush(s, field, k);
}

bool crn_structured_digest(crn_structured *s, uint64_t off, const void *data, uint32_t nbytes,
                           crn_digest *ret)
{
    s->nan = false;
    for (size_t k = 0; k < s->n; k++) {
        memset(s->image, 0, nbytes);
        for (size_t i = 0; i < s->fields.n; i++)
            take_field(s, i, k, off, data, nbytes);
        ret[k] = crn_digest_of(s->image, nbytes);
    }
    return s->nan;
}
