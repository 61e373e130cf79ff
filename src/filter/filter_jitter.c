/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Regularisation of a particle filter: children of one parent are moved apart by a normal vector
 * with the covariance of the weighted ensemble, so that copies of a deterministic model do not stay
 * copies. The size is that of a Gaussian kernel's bandwidth, N^(-1/(n + 4)) (Silverman 1986, 4.3),
 * times a factor.
 */
#include "filter/filter_ops.h"

#include <math.h>

/* A square root of the weighted covariance, without bias: n rows of dim columns, column by column.
 * Of the plain covariance where one member has all the weight: that of a point is zero. */
static void find_root(const double *x, const double *w, size_t n, size_t dim, double *root)
{
    double squares = 0, plain = 1 / (double)n;
    for (size_t j = 0; j < n; j++)
        squares += w[j] * w[j];
    bool degenerate = squares > 1 - 1e-9;
    double unbias = 1 / (1 - (degenerate ? plain : squares));
    for (size_t i = 0; i < dim; i++) {
        double mean = 0;
        for (size_t j = 0; j < n; j++)
            mean += (degenerate ? plain : w[j]) * x[j * dim + i];
        for (size_t j = 0; j < n; j++)
            root[j + i * n] = sqrt(unbias * (degenerate ? plain : w[j])) * (x[j * dim + i] - mean);
    }
}

static void move(const double *root, size_t nrows, size_t n, size_t dim, double factor,
                 const crn_rng_key *key, double *child)
{
    for (size_t j = 0; j < nrows; j++) {
        double a = factor * crn_rng_normal_at(key, j);
        for (size_t i = 0; i < dim; i++)
            child[i] += a * root[j + i * n];
    }
}

/* R of the root's QR, dim by dim, has the same covariance and needs fewer random numbers. */
static cairn_status shrink(size_t n, size_t dim, double *root, size_t *ret_nrows)
{
    *ret_nrows = n;
    if (n <= dim)
        return CAIRN_OK;
    CRN_TRY(crn_filter_triangle(n, dim, root));
    *ret_nrows = dim;
    return CAIRN_OK;
}

cairn_status crn_filter_jitter(const crn_jitter *o, const double *x, const double *w, size_t n,
                               size_t dim, const uint32_t *count, double *child)
{
    CRN_FAIL_IF(n < 2 || dim == 0, CAIRN_EINVAL, "%zu members of %zu variables have no covariance",
                n, dim);
    double *root, factor = o->factor * pow((double)n, -1 / ((double)dim + 4));
    size_t nrows = 0;
    uint64_t number = 0;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&root, n * dim));
    if (factor > 0) {
        find_root(x, w, n, dim, root);
        CRN_TRY_OUT(rc, shrink(n, dim, root, &nrows));
    }
    for (size_t j = 0; j < n; j++)
        for (uint32_t k = 0; k < count[j]; k++, number++, child += dim) {
            const crn_rng_key key = {o->study, CRN_FOR_JITTER, o->cycle, number};
            memcpy(child, x + j * dim, dim * sizeof *child);
            if (k > 0)
                move(root, nrows, n, dim, factor, &key, child);
        }
out:
    free(root);
    return rc;
}
