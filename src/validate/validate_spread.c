/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sums of ensembles, in one pass over blocks of all members. Mean and variance of an ensemble
 * at an element are made in two passes over the block, which is in the cache by then; what they are
 * without one member follows by taking that member out again. Where this would lose digits, because
 * the member has most of the variance, or the variance is at the last digits of the mean, or a
 * value is not finite, the element is computed again by itself in wider arithmetic: that is rare,
 * and not fast.
 *
 * Sums have eight lanes whatever vectors the processor has, and products and sums are never fused:
 * so all processors give the same bits.
 */
#include "validate/validate.h"

#include <float.h>
#include <math.h>

enum { LANES = 8, BLOCK = CRN_SPREAD_BLOCK };

/* Below this share of the variance, taking a member out loses too much. */
#define LEAST_SHARE (1. / 64)
/* Sums of squares below this may have lost digits by underflow. */
#define LEAST_SQUARE 1e-250

typedef double lanes __attribute__((vector_size(64)));
typedef double loose __attribute__((vector_size(64), aligned(8), may_alias));
typedef long long choice __attribute__((vector_size(64)));
typedef long long loose_choice __attribute__((vector_size(64), aligned(8), may_alias));

/* All members of an ensemble at the elements of a block. */
typedef struct moments {
    double mean[BLOCK];  /* about */
    double rest[BLOCK];  /* of the mean, to be added */
    double m2[BLOCK];    /* weighted sum of squared deviations */
    double least[BLOCK]; /* what must be left of it without a member, to be taken for right */
} moments;

/* A member of ensemble 0 in a block. */
typedef struct crn_spread_basis {
    double pull[BLOCK];    /* of this member on the mean: added to a distance from it, it is out */
    double inverse[BLOCK]; /* of the variance of the others; -1: the element goes by itself */
    double mean, left, xx; /* of its values: about, what is left, central sum of squares */
    double min, max, most;
    bool plain; /* these are right */
} basis;

typedef struct part { /* of a row, in a block */
    double z0, z, share, error, min, max, most;
    double sum, left, square, product;    /* of d, or of x for ensemble 0 */
    double own_sum, own_left, own_square; /* of y */
    long nself;                           /* elements that go by themselves */
} part;

typedef struct factors { /* of taking a member out */
    double others;       /* their weight */
    double out;          /* of the squared deviation */
    double off;          /* of the deviation */
    double pull;         /* of the deviation: the others' mean is so far from that of all */
} factors;

struct work {
    moments m, m0; /* of this ensemble and of ensemble 0 */
    part part;
    long long self[BLOCK]; /* not 0: this element goes by itself */
    double d[BLOCK];
};

/* --- vectors -------------------------------------------------------------------------------- */

#define LOAD(p)       (*(const loose *)(p))
#define STORE(p, v)   (*(loose *)(p) = (v))
#define PICK(c, a, b) ((lanes)(((choice)(a) & (c)) | ((choice)(b) & ~(c))))
#define ALL(x)        ((lanes){(x), (x), (x), (x), (x), (x), (x), (x)})
#define ABS(v)        ((lanes)((choice)(v)&ALL_MAGNITUDE))
#define ALL_MAGNITUDE                                                                              \
    ((choice){INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,         \
              INT64_MAX})
#define SUM(v) (((v)[0] + (v)[4]) + ((v)[2] + (v)[6]) + (((v)[1] + (v)[5]) + ((v)[3] + (v)[7])))

#define FOLD(v, best, better)                                                                      \
    do {                                                                                           \
        (best) = (v)[0];                                                                           \
        for (int l = 1; l < LANES; l++)                                                            \
            if ((v)[l] better(best))                                                               \
                (best) = (v)[l];                                                                   \
    } while (0)

/* --- for each width of vectors -------------------------------------------------------------- */

typedef struct kernels {
    void (*find_moments)(const crn_spread *, const double *const *, size_t, moments *);
    void (*add_basis)(const moments *, const factors *, const double *, size_t, basis *,
                      struct work *);
    void (*add_other)(const moments *, const factors *, const double *, const double *, size_t,
                      const basis *, struct work *);
} kernels;

#define NAMED(name) name##_plain
#define TARGET
#include "validate/validate_spread_kernel.h"
static const kernels kernels_plain = {find_moments_plain, add_basis_plain, add_other_plain};

#if defined(__x86_64__)
#define NAMED(name) name##_avx2
#define TARGET      __attribute__((target("avx2")))
#include "validate/validate_spread_kernel.h"
static const kernels kernels_avx2 = {find_moments_avx2, add_basis_avx2, add_other_avx2};

#define NAMED(name) name##_avx512
#define TARGET      __attribute__((target("avx512f,avx512dq")))
#include "validate/validate_spread_kernel.h"
static const kernels kernels_avx512 = {find_moments_avx512, add_basis_avx512, add_other_avx512};

static const kernels *best_kernels(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return &kernels_avx512;
    return __builtin_cpu_supports("avx2") ? &kernels_avx2 : &kernels_plain;
}
#else
static const kernels *best_kernels(void)
{
    return &kernels_plain;
}
#endif

/* --- elements that go by themselves ----------------------------------------------------------- */

/* What the others are at an element: their mean is about + rest. */
typedef struct others {
    double about;
    long double rest, variance;
} others;

/* False: there are none, or one is not finite. */
static bool others_of(const crn_spread *s, const double *const *v, uint32_t member, size_t i,
                      others *ret)
{
    long double total = 0, sum = 0, rest = 0, square = 0;
    double about = NAN;
    for (uint32_t k = 0; k < s->nmembers; k++) {
        if (k == member || s->weight[k] == 0)
            continue;
        if (!isfinite(v[k][i]))
            return false;
        if (total == 0) /* so that equal values have no variance at all */
            about = v[k][i];
        total += s->weight[k];
        sum += s->weight[k] * ((long double)v[k][i] - about);
    }
    if (total == 0)
        return false;
    const long double mean = sum / total;
    for (uint32_t k = 0; k < s->nmembers; k++)
        if (k != member && s->weight[k] > 0) {
            const long double d = ((long double)v[k][i] - about) - mean;
            rest += s->weight[k] * d;
            square += s->weight[k] * d * d;
        }
    *ret = (others){about, mean + rest / total, (square - rest * rest / total) / total};
    return true;
}

/* z^2 of a value; false: it has none, and *off counts where it lies off a point. */
static bool square_of(double y, const others *o, long double *ret, uint64_t *off)
{
    const long double d = ((long double)y - o->about) - o->rest;
    if (!isfinite(y) || (o->variance <= 0 && d != 0)) {
        *off += isfinite(y) ? 1 : 0;
        return false;
    }
    *ret = d == 0 ? 0 : d * d / o->variance;
    return true;
}

static void add_element(const crn_spread *s, const double *const *value, uint32_t ensemble,
                        uint32_t member, size_t i, crn_spread_row *row)
{
    const double *const *own = value + (size_t)ensemble * s->nmembers;
    const double x = value[member][i], y = own[member][i];
    long double z;
    others o;
    if (others_of(s, own, member, i, &o) && square_of(y, &o, &z, &row->nlost)) {
        row->z += z;
        row->nz++;
    }
    if (others_of(s, value, member, i, &o) && square_of(y, &o, &z, &row->noutside)) {
        row->z0 += z;
        row->nz0++;
        const long double d = (long double)y - x;
        if (d != 0 && isfinite(x) && o.variance > 0)
            row->share += d * d / o.variance;
    }
}

/* Pairs of n elements, any values. */
static void add_pairs(const double *x, const double *y, size_t n, crn_spread_row *row)
{
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]))
            row->most_x = fmax(row->most_x, fabs(x[i]));
    crn_deviation_add(&row->pair, x, y, n);
    crn_deviation_add(&row->own, y, y, n);
}

/* --- blocks --------------------------------------------------------------------------------- */

static factors factors_of(const crn_spread *s, uint32_t member)
{
    const double own = s->weight[member];
    double left = 0;
    for (uint32_t k = 0; k < s->nmembers; k++)
        left += k == member ? 0 : s->weight[k];
    if (left <= 0) /* nothing is left: no element is right */
        return (factors){1, INFINITY, 0, 0};
    return (factors){left, own * (s->total / left), s->total / left, own / left};
}

static bool is_plain(double square, double range)
{
    return isfinite(square) && (square > LEAST_SQUARE || range == 0);
}

static void note_basis(const part *p, size_t n, basis *b)
{
    b->mean = p->sum / (double)n;
    b->left = p->left / (double)n;
    b->xx = p->square - p->left * b->left;
    b->min = p->min;
    b->max = p->max;
    b->most = p->most;
    b->plain = is_plain(p->square, p->max - p->min);
}

/* A row's part of a block: n elements in lanes. */
static void take_part(const part *p, const basis *b, size_t n, bool other, crn_spread_row *row)
{
    const double mean = other ? p->sum / (double)n : 0, left = p->left / (double)n;
    crn_deviation more = {
        .n = n, .min = b->min, .max = b->max, .about_x = b->mean, .mean_x = b->left, .xx = b->xx};
    if (other) {
        more.error = p->error;
        more.mean_d = (long double)mean + left;
        more.dd = p->square - p->left * left;
        more.xd = p->product - p->left * b->left;
    }
    const double own_left = p->own_left / (double)n;
    const crn_deviation own = {.n = n,
                               .min = p->min,
                               .max = p->max,
                               .about_x = p->own_sum / (double)n,
                               .mean_x = own_left,
                               .xx = p->own_square - p->own_left * own_left};
    crn_deviation_merge(&row->pair, &more);
    crn_deviation_merge(&row->own, &own);
    row->most_x = fmax(row->most_x, b->most);
}

/* What the lanes found, and what they left. n: elements in lanes; all: of the block. */
static void finish_row(const crn_spread *s, const double *const *value, uint32_t ensemble,
                       uint32_t member, size_t n, size_t all, const basis *b, const struct work *w)
{
    crn_spread_row *row = &s->row[(size_t)ensemble * s->nmembers + member];
    const double *x = value[member], *y = value[(size_t)ensemble * s->nmembers + member];
    const part *p = &w->part;
    const size_t nright = n - (size_t)p->nself;
    row->z += p->z;
    row->z0 += p->z0;
    row->share += ensemble > 0 ? p->share : 0;
    row->nz += nright;
    row->nz0 += nright;
    for (size_t i = 0; p->nself > 0 && i < n; i++)
        if (w->self[i])
            add_element(s, value, ensemble, member, i, row);
    if (n > 0 && b->plain && is_plain(p->own_square, p->max - p->min) &&
        (ensemble == 0 || is_plain(p->square, p->error)))
        take_part(p, b, n, ensemble > 0, row);
    else
        add_pairs(x, y, n, row);
    for (size_t i = n; i < all; i++)
        add_element(s, value, ensemble, member, i, row);
    if (all > n)
        add_pairs(x + n, y + n, all - n, row);
}

static void add_block(crn_spread *s, const double *const *value, size_t all)
{
    const kernels *k = best_kernels();
    basis *b = s->scratch;
    struct work w;
    const size_t n = all / LANES * LANES;
    for (uint32_t e = 0; e < s->nensembles; e++) {
        const double *const *own = value + (size_t)e * s->nmembers;
        if (n > 0)
            k->find_moments(s, own, n, &w.m);
        for (uint32_t p = 0; p < s->nmembers; p++) {
            const factors f = factors_of(s, p);
            w.part = (part){0};
            if (n > 0 && e == 0) {
                k->add_basis(&w.m, &f, own[p], n, &b[p], &w);
                note_basis(&w.part, n, &b[p]);
                w.m0 = w.m;
            } else if (n > 0)
                k->add_other(&w.m, &f, value[p], own[p], n, &b[p], &w);
            finish_row(s, value, e, p, n, all, &b[p], &w);
        }
    }
}

/* --- the whole ------------------------------------------------------------------------------ */

cairn_status crn_spread_init(crn_spread *s, uint32_t nensembles, uint32_t nmembers,
                             const double *weight)
{
    *s = (crn_spread){.nensembles = nensembles, .nmembers = nmembers};
    cairn_status rc = crn_alloc(&s->weight, nmembers);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&s->row, (size_t)nensembles * nmembers);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&s->scratch, nmembers);
    for (uint32_t k = 0; rc == CAIRN_OK && k < nmembers; k++) {
        s->weight[k] = weight ? weight[k] : 1;
        s->total += s->weight[k];
        if (!(s->weight[k] >= 0) || !isfinite(s->weight[k]))
            rc = crn_fail(CAIRN_EINVAL, "the weight of member %u is %g; weights are 0 or more", k,
                          s->weight[k]);
    }
    if (rc == CAIRN_OK && (s->total <= 0 || !isfinite(s->total)))
        rc = crn_fail(CAIRN_EINVAL, "the weights of all members add up to %g", s->total);
    if (rc < 0)
        crn_spread_done(s);
    return rc;
}

void crn_spread_done(crn_spread *s)
{
    free(s->weight);
    free(s->row);
    free(s->scratch);
    *s = (crn_spread){0};
}

cairn_status crn_spread_add(crn_spread *s, const double *const *value, size_t n)
{
    const size_t nrows = (size_t)s->nensembles * s->nmembers;
    const double **at;
    CRN_TRY(crn_alloc(&at, nrows));
    for (size_t first = 0; first < n; first += BLOCK) {
        for (size_t r = 0; r < nrows; r++)
            at[r] = value[r] + first;
        add_block(s, at, CRN_MIN(n - first, (size_t)BLOCK));
    }
    free(at);
    return CAIRN_OK;
}

void crn_spread_merge(crn_spread *s, const crn_spread *next)
{
    for (size_t i = 0; i < (size_t)s->nensembles * s->nmembers; i++) {
        crn_spread_row *a = &s->row[i];
        const crn_spread_row *b = &next->row[i];
        crn_deviation_merge(&a->pair, &b->pair);
        crn_deviation_merge(&a->own, &b->own);
        a->most_x = fmax(a->most_x, b->most_x);
        a->z0 += b->z0;
        a->z += b->z;
        a->share += b->share;
        a->nz0 += b->nz0;
        a->nz += b->nz;
        a->noutside += b->noutside;
        a->nlost += b->nlost;
    }
}

/* --- what they say -------------------------------------------------------------------------- */

static double root_mean(long double sum, uint64_t n)
{
    return n == 0 ? NAN : (double)sqrtl(sum / (long double)n);
}

/* Over the range of y: 0 without an error, else infinite where the range is nothing. */
static double over_range(double error, const crn_spread_row *r)
{
    const double range = r->own.max - r->own.min;
    return error == 0 ? 0 : range > 0 ? error / range : INFINITY;
}

void crn_spread_stats_of(const crn_spread *s, uint32_t ensemble, uint32_t member,
                         crn_spread_stats *ret)
{
    const crn_spread_row *r = &s->row[(size_t)ensemble * s->nmembers + member];
    const crn_spread_row *r0 = &s->row[member];
    const crn_deviation *p = &r->pair, *own = &r->own;
    const double rms = crn_deviation_rms(p);
    *ret = (crn_spread_stats){
        .rmsz0 = root_mean(r->z0, r->nz0),
        .rmsz = root_mean(r->z, r->nz),
        .delta = fabs(root_mean(r->z0, r->nz0) - root_mean(r0->z0, r0->nz0)),
        .rmse = rms,
        .psnr = rms == 0 ? INFINITY : 20 * (double)log10l((long double)r->most_x / rms),
        .decorrelation = crn_deviation_decorrelation(p),
        .error = crn_deviation_error(p),
        .nrmse = over_range(rms, r),
        .npme = over_range(crn_deviation_error(p), r),
        .mean = own->n == 0 ? NAN : (double)(own->about_x + own->mean_x),
        .deviation = root_mean(fmaxl(own->xx, 0), own->n),
        .min = own->n == 0 ? NAN : own->min,
        .max = own->n == 0 ? NAN : own->max,
        .share = root_mean(r->share, r->nz0),
        .n = p->n,
        .nbroken = p->nbroken,
        .noutside = r->noutside,
    };
}
