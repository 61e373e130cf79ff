/* SPDX-License-Identifier: BSD-3-Clause
 *
 * filter: what turns the background of an ensemble into its analysis. Pure arithmetic over matrices
 * in memory: no clock, no files, no processes. Row 3: stands on base only, and on LAPACKE and
 * OpenBLAS, which are loaded when a filter is first used.
 *
 * A filter looks at the ensemble in the space of the observations alone, and says by a matrix of
 * weights, members by members, how the analysis is combined of the background's anomalies. The rows
 * of the state (its elements) are then updated block by block, wherever they are.
 *
 *     crn_filter_weights(filter, &c, w);          once, or everywhere the same
 *     crn_filter_update(w, nmembers, n, member);  by each process for its rows
 *
 * The same bits for any layout: blocks of rows and of observations have a fixed size and begin at
 * its multiples, each is one call of BLAS on one thread, and blocks are summed by their index.
 * Bits hold for one kind of processor kernel: crn_filter_kernel() names it.
 *
 * To add a filter:
 *
 *   1. Write filter_<name>.c, with filter_none.c as the template.
 *   2. Declare its table of functions in filter_ops.h, and list it in filter_table.c.
 *   3. filter_conform.c has the tests that it must pass; tests/unit/test_filter.c runs them.
 *   4. Name it in docs/guide/ensemble.md.
 */
#ifndef CAIRN_FILTER_H
#define CAIRN_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

enum {
    CRN_FILTER_ROWS = 1024, /* of a block of the state */
    CRN_FILTER_OBS = 256,   /* observations of a block */
    CRN_FILTER_MEMBERS = 65536
};

/* What random numbers are for (crn_rng_key.purpose): pinned, since results depend on them. */
typedef enum crn_purpose {
    CRN_FOR_INITIAL = 1,     /* perturbation of the first state */
    CRN_FOR_TRUTH = 2,       /* that of the truth in a twin experiment */
    CRN_FOR_OBSERVATION = 3, /* errors of observations made from a truth */
    CRN_FOR_ROTATION = 4,    /* mean-preserving rotation of the analysis */
    CRN_FOR_PERTURBED = 5,   /* observations perturbed by a filter */
    CRN_FOR_DONOR = 6,       /* perturbation of a copy that replaces a member */
    CRN_FOR_RESAMPLING = 7,
    CRN_FOR_JITTER = 8,
    CRN_FOR_EVICTION = 9,
    CRN_FOR_PLACE = 11, /* where a twin experiment observes */
    CRN_FOR_RANK = 10,  /* errors added to members, to rank an observation among them */
    CRN_FOR_MODEL = 20, /* what is added before a propagation */
    CRN_FOR_NOISE = 21, /* the same, of the noise test: keyed by ensemble, too */
    CRN_FOR_COPY = 30,  /* what is added to copies of a particle */
} crn_purpose;

/* Observations first to first + n - 1, whose errors have these covariances, n by n. */
typedef struct crn_filter_block {
    size_t first, n;
    const double *covariance;
} crn_filter_block;

/* An ensemble in the space of its observations. Errors are independent, but for blocks. */
typedef struct crn_filter_case {
    uint64_t study, cycle; /* key the random numbers */
    size_t nmembers, nobs;
    const double *y;        /* nobs by nmembers: member j as it would be observed is y + j * nobs */
    const double *value;    /* what was observed: nobs */
    const double *variance; /* of its error: nobs, all above 0 */
    const uint64_t *number; /* of an observation in the whole study: keys its perturbation; NULL:
                               0 to nobs - 1 */
    const crn_filter_block *block; /* by their first observations; none overlaps another */
    size_t nblocks;
    double prior;     /* factor of the background's anomalies; 0: as 1, none */
    double inflation; /* factor of the analysis's anomalies; 1: none */
    double rtpp;      /* relaxation to prior perturbations: so much of the background's
                         anomalies is mixed into the analysis's; 0 to 1 */
    bool rotate;      /* the analysis's anomalies, at random, keeping mean and covariance */
} crn_filter_case;

typedef struct crn_filter_ops crn_filter_ops;

/* The filters, in a fixed order; NULL at the end, or when the name is unknown. */
const crn_filter_ops *crn_filter_at(size_t index);
const crn_filter_ops *crn_filter_of_name(const char *name);
const char *crn_filter_name(const crn_filter_ops *filter);
const char *crn_filter_summary(const crn_filter_ops *filter);

/* A filter of one's own: "file.so" or "file.so:options" (<cairn/filter_plugin.h>). Once loaded it
 * stays. CAIRN_EINVAL, CAIRN_EUNSUPPORTED: the sentence says what is wrong with the file. */
bool crn_filter_is_file(const char *text);
cairn_status crn_filter_of_file(const char *text, const crn_filter_ops **ret);

/* Called for each test that a filter must pass; why is "" if it has. */
typedef void crn_filter_finding_fn(void *arg, const char *test, const char *why);

/* The tests. CAIRN_NOTHING: it has failed some. CAIRN_EUNSUPPORTED, CAIRN_ENOMEM. */
cairn_status crn_filter_conform(const crn_filter_ops *filter, crn_filter_finding_fn *found,
                                void *arg);

/* Is it made of local analyses? */
bool crn_filter_is_local(const crn_filter_ops *filter);

/* Does it leave the ensemble as it is? Then nothing is updated: not even rounding changes it. */
bool crn_filter_is_free(const crn_filter_ops *filter);

/* The kind of processor kernel that the linear algebra uses: bits are promised for equal ones.
 * CAIRN_EUNSUPPORTED: built without, or it cannot be loaded. */
cairn_status crn_filter_kernel(const char **ret);

/*
 * The weights: nmembers by nmembers, column k for member k of the analysis, which is the
 * background's mean plus the sum over j of anomaly j times w[j + k * nmembers]. Inflation and
 * rotation are in them. CAIRN_EINVAL: fewer than 2 members, a value that is not finite, a variance
 * that is not above 0; CAIRN_EUNSUPPORTED, CAIRN_ENOMEM; CAIRN_EINTERNAL: LAPACK gives up.
 */
cairn_status crn_filter_weights(const crn_filter_ops *filter, const crn_filter_case *c, double *w);

/*
 * Update n rows of the state, in place: member[j] points to member j's n elements, of which the
 * first is at a multiple of CRN_FILTER_ROWS in the whole state. CAIRN_EUNSUPPORTED, CAIRN_ENOMEM.
 */
cairn_status crn_filter_update(const double *w, size_t nmembers, size_t n, double *const *member);

/*
 * Relaxation to prior spread (Whitaker and Hamill 2012): scale the anomalies of n rows such that
 * their standard deviation a becomes a + factor (b - a), b being that of the background. Not for
 * rows without spread in the analysis.
 */
void crn_filter_relax_spread(double factor, size_t nmembers, size_t n, const double *background,
                             double *const *member);

/* The standard deviation over the members, by N - 1, of n rows. */
void crn_filter_spread(size_t nmembers, size_t n, double *const *member, double *spread);

/*
 * Local analysis. Places have 1 to 3 coordinates. The taper is Gaspari and Cohn's function of the
 * distance, stretched by 1.82 to follow a Gaussian whose standard deviation is the radius of the
 * observation (within 0.04; DAPPER's convention): 0.63 at the radius, 0 from 3.64 radii on. A
 * radius may be INFINITY.
 */
typedef struct crn_locality {
    int ndims;
    double period[3];     /* of each axis; 0: it is not periodic */
    double sphere;        /* radius of the sphere on which places are longitude and latitude in
                             degrees, and a height; 0: places are on a plane */
    double vertical;      /* how far one unit of the third coordinate counts; 0: as the others */
    const double *place;  /* of each observation: ndims coordinates */
    const double *radius; /* of each observation, by its type: above 0 */
} crn_locality;

double crn_filter_taper(double distance, double radius);

/*
 * Local analyses of one case: observations are sorted into cells once, then fields are updated,
 * some of their points at a time. The case, what it points to and the locality stay the caller's,
 * and must stay. CAIRN_EINVAL: as crn_filter_weights, and where coordinates or radii are missing.
 */
typedef struct crn_local crn_local;
cairn_status crn_local_create(const crn_filter_ops *filter, const crn_filter_case *c,
                              const crn_locality *l, crn_local **ret);
void crn_local_free(crn_local *x); /* NULL is allowed */

/*
 * Update points of a field: point i has ndims coordinates at point + i * ndims, and member j's
 * element there is member[j][i]. Each point is computed by itself: any slices give the same bits.
 */
cairn_status crn_local_update(crn_local *x, size_t npoints, const double *point,
                              double *const *member);

/* All of it, for one field. */
cairn_status crn_filter_update_local(const crn_filter_ops *filter, const crn_filter_case *c,
                                     const crn_locality *l, size_t npoints, const double *point,
                                     double *const *member);

/* How an ensemble and its observations agree, with d the innovations and P the sample covariance of
 * the members, by N - 1. */
typedef struct crn_filter_fit {
    double square; /* d^T R^-1 d */
    double trace;  /* of HPH^T R^-1 */
    double chi2;   /* d^T (HPH^T + R)^-1 d: as large as there are observations, if all is right */
    double rank;   /* of HPH^T R^-1: the squared sum of its eigenvalues over the sum of squares */
} crn_filter_fit;

cairn_status crn_filter_fit_of(const crn_filter_case *c, crn_filter_fit *ret);

/* The continuous ranked probability score of n values, which are sorted here, against a truth:
 * mean |x - truth| - 1/2 mean |x - x'|. */
double crn_filter_crps(double *x, size_t n, double truth);

/* Regularisation of a particle filter. */
typedef struct crn_jitter {
    uint64_t study, cycle; /* key the random numbers, with the number of the child */
    double factor;         /* of the kernel's bandwidth; 0: copies stay copies */
} crn_jitter;

/*
 * Children of n members with dim variables each: member j is at x + j * dim, has the weight w[j]
 * (these sum up to 1) and count[j] children, which follow one another in child, in the order of
 * their parents. The first child of a member is its copy; further ones are moved by
 * factor n^(-1/(dim + 4)) times a normal vector with the covariance of the weighted ensemble.
 * CAIRN_EINVAL: fewer than two members, or no variables. CAIRN_EUNSUPPORTED, CAIRN_ENOMEM.
 */
cairn_status crn_filter_jitter(const crn_jitter *o, const double *x, const double *w, size_t n,
                               size_t dim, const uint32_t *count, double *child);

#endif
