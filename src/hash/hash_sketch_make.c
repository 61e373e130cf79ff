/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Making the sketch of a reference: where its values lie in their cells, and the shift that has the
 * edges far from all of a group. Nothing here can make a wrong proof (hash_sketch.c): a bad choice
 * only lets equal blocks have different digests.
 */
#include "hash/hash_sketch.h"

#include <math.h>

/* Places of edges in a cell that a shift chooses from. */
enum { PLACES = 256 };

/* Where a value lies in its cell. */
typedef struct spot {
    bool free;   /* it is its own key: edges do not matter */
    double at;   /* 0 to 1, in the direction of larger values */
    double need; /* how far an edge has to be, in widths */
    int narrow;  /* the neighbour cell down (-1) or up (1) may be half as wide, and need is twice */
} spot;

/* A value's bits, and how many of them are the mantissa. */
typedef struct anatomy {
    double x;
    uint64_t size; /* without the sign */
    uint64_t infinite;
} anatomy;

static anatomy anatomy_of(size_t item, const unsigned char *p)
{
    uint64_t u64;
    uint32_t u32;
    float f;
    anatomy a;
    if (item == 8) {
        memcpy(&u64, p, sizeof u64);
        memcpy(&a.x, p, sizeof a.x);
        a.size = u64 & INT64_MAX;
        a.infinite = UINT64_C(0x7ff) << 52;
        return a;
    }
    memcpy(&u32, p, sizeof u32);
    memcpy(&f, p, sizeof f);
    a.x = (double)f;
    a.size = u32 & INT32_MAX;
    a.infinite = UINT64_C(0xff) << 23;
    return a;
}

/* A hundredth of the bound, with a little more since the other value may be the larger one; bounds
 * count as far as cells can be so wide. */
static double tolerated(double bound)
{
    return bound * 0.0101;
}

static spot spot_in_width(const crn_sketcher *s, double x)
{
    const double w = s->rules.width, relative = CRN_MIN(s->bound.relative, 0.5);
    if (w == 0)
        return (spot){.free = true};
    const double of = x / w;
    const double bound = CRN_MAX(CRN_MIN(s->bound.absolute, 2 * w), relative * fabs(x));
    return (spot){.at = of - floor(of), .need = tolerated(bound) / w};
}

/* Rule 2: cells of integers. An edge is at a whole one, which may be one nearer than was asked for;
 * and values whose noise is less than a step have none. */
static spot spot_in_binade(const crn_sketcher *s, const anatomy *a)
{
    const uint64_t cell = 2 * s->rules.half, off = a->size & (cell - 1);
    const uint64_t mantissa = a->infinite & -a->infinite; /* lowest exponent bit: integers of one */
    const double relative = CRN_MIN(s->bound.relative, 0.5);
    int e;
    (void)frexp(relative, &e); /* 2^-m is 2^(e - 1) */
    spot p = {.need = tolerated(relative * ldexp(1, 2 - e))};
    const double at = (double)off / (double)cell;
    p.at = a->x < 0 && off > 0 ? 1 - at : at;
    p.free = 2 * p.need * (double)cell < 1;
    p.need += 1 / (double)cell;
    if ((a->size & (mantissa - 1)) < cell)
        p.narrow = a->x < 0 ? 1 : -1;
    return p;
}

static spot spot_of(const crn_sketcher *s, const unsigned char *p)
{
    const anatomy a = anatomy_of(s->item, p);
    if (fabs(a.x) < s->rules.limit)
        return spot_in_width(s, a.x);
    if (s->rules.only_absolute || a.size >= a.infinite)
        return (spot){.free = true};
    return spot_in_binade(s, &a);
}

/* --- bits ------------------------------------------------------------------------------------ */

/* The bit of a value: are the cells better moved by half a width? */
static bool is_off_centre(const crn_sketcher *s, const unsigned char *p)
{
    const spot at = spot_of(s, p);
    return at.at > 0.25 && at.at < 0.75;
}

static void put_bits(const crn_sketcher *s, const unsigned char *src, size_t nvalues, size_t nbytes,
                     crn_buf *buf)
{
    for (size_t i = 0; i < nbytes; i++) {
        unsigned byte = 0;
        for (size_t k = 0; k < 8 && 8 * i + k < nvalues; k++)
            byte |= (unsigned)is_off_centre(s, src + (8 * i + k) * s->item) << k;
        crn_put_u8(buf, (uint8_t)byte);
    }
}

/* --- bytes ----------------------------------------------------------------------------------- */

/* Note that edges should not lie at some places, counted around the cell. */
static void take_places(bool taken[PLACES], int first, int n)
{
    for (int i = 0; i < CRN_MIN(n, PLACES); i++)
        taken[(unsigned)(first + i) % PLACES] = true;
}

/* The longest stretch of places that are not taken, around the cell; ret: where it begins. */
static int longest_stretch(const bool taken[PLACES], int *ret)
{
    int best = 0, n = 0;
    for (int i = 0; i < 2 * PLACES && best < PLACES; i++) {
        n = taken[i % PLACES] ? 0 : n + 1;
        if (n <= best)
            continue;
        best = n;
        *ret = i + 1 - n;
    }
    return best;
}

/* The shift for a group of values; CRN_SHIFT_SPLIT where no edge is far enough from all of them. */
static uint8_t choose_shift(const crn_sketcher *s, const unsigned char *src, size_t nvalues)
{
    bool taken[PLACES] = {false};
    double need = 0;
    bool all_free = true;
    for (size_t i = 0; i < nvalues; i++) {
        const spot p = spot_of(s, src + i * s->item);
        if (p.free)
            continue;
        const int place = (int)(p.at * PLACES), more = (int)ceil(p.need * PLACES);
        take_places(taken, PLACES + place, 1);
        if (p.narrow)
            take_places(taken, PLACES + (p.narrow < 0 ? place - more : place), more + 1);
        need = CRN_MAX(need, p.need);
        all_free = false;
    }
    int first = 0;
    const int n = longest_stretch(taken, &first), far = (int)ceil(need * PLACES) + 1;
    if (all_free || n < 2 * far)
        return all_free ? CRN_SHIFT_NONE : CRN_SHIFT_SPLIT;
    /* far has room for one place less: 255 does not stand for a shift */
    const unsigned shift = (unsigned)(first + n / 2) % PLACES;
    return (uint8_t)(shift == CRN_SHIFT_SPLIT ? shift - 1 : shift);
}

static void put_bytes(const crn_sketcher *s, const unsigned char *src, size_t nvalues, crn_buf *buf)
{
    const size_t start = buf->n, ngroups = (nvalues + CRN_SKETCH_GROUP - 1) / CRN_SKETCH_GROUP;
    for (size_t i = 0; i < ngroups; i++) {
        const size_t first = i * CRN_SKETCH_GROUP;
        const size_t n = CRN_MIN(nvalues - first, (size_t)CRN_SKETCH_GROUP);
        crn_put_u8(buf, choose_shift(s, src + first * s->item, n));
    }
    for (size_t i = 0; i < ngroups && !buf->failed; i++) {
        const size_t first = i * CRN_SKETCH_GROUP;
        const size_t n = CRN_MIN(nvalues - first, (size_t)CRN_SKETCH_GROUP);
        if (buf->at[start + i] == CRN_SHIFT_SPLIT)
            put_bits(s, src + first * s->item, n, CRN_SKETCH_GROUP / 8, buf);
    }
}

crn_sketch_kind crn_sketch_make(crn_sketcher *s, crn_sketch_kind wanted, const void *data,
                                size_t nbytes, crn_buf *buf, crn_digest *ret)
{
    const size_t start = buf->n, nvalues = nbytes / s->item, nbits = (nvalues + 7) / 8;
    crn_sketch_kind kind = wanted;
    if (kind == CRN_SKETCH_BYTES)
        put_bytes(s, data, nvalues, buf);
    if (kind == CRN_SKETCH_BYTES && !buf->failed && buf->n - start >= nbits) {
        buf->n = start;
        kind = CRN_SKETCH_BITS;
    }
    if (kind == CRN_SKETCH_BITS)
        put_bits(s, data, nvalues, nbits, buf);
    if (!buf->failed)
        crn_sketch_digest(s, kind, buf->at + start, buf->n - start, data, nbytes, ret);
    return kind;
}
