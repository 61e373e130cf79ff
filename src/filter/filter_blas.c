/* SPDX-License-Identifier: BSD-3-Clause */
#include "filter/filter_blas.h"

#if CRN_WITH_LAPACKE

#define NAME(name) #name,
static crn_blas blas_calls;
static const char *const blas_names[] = {CRN_BLAS_CALLS(NAME) NULL};
static crn_library blas_library = {CRN_BLAS_LIBRARY, blas_names, (void **)&blas_calls,
                                   PTHREAD_MUTEX_INITIALIZER, false};
static crn_lapacke lapacke_calls;
static const char *const lapacke_names[] = {CRN_LAPACKE_CALLS(NAME) NULL};
static crn_library lapacke_library = {CRN_LAPACKE_LIBRARY, lapacke_names, (void **)&lapacke_calls,
                                      PTHREAD_MUTEX_INITIALIZER, false};

cairn_status crn_filter_load(const crn_blas **blas, const crn_lapacke **lapacke)
{
    CRN_TRY(crn_library_load(&blas_library));
    CRN_TRY(crn_library_load(&lapacke_library));
    blas_calls.openblas_set_num_threads(1); /* another number would sum in another order */
    *blas = &blas_calls;
    *lapacke = &lapacke_calls;
    return CAIRN_OK;
}

cairn_status crn_filter_kernel(const char **ret)
{
    const crn_blas *blas;
    const crn_lapacke *lapacke;
    CRN_TRY(crn_filter_load(&blas, &lapacke));
    *ret = blas->openblas_get_corename();
    return CAIRN_OK;
}

static cairn_status judge(const char *call, lapack_int info)
{
    CRN_FAIL_IF(info != 0, CAIRN_EINTERNAL, "LAPACK's '%s' gives up with %d", call, (int)info);
    return CAIRN_OK;
}

cairn_status crn_filter_product(size_t n, size_t m, size_t k, double alpha, const double *a,
                                const double *b, bool transposed, double *c)
{
    const crn_blas *blas;
    const crn_lapacke *lapacke;
    CRN_TRY(crn_filter_load(&blas, &lapacke));
    blas->cblas_dgemm(CblasColMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, (int)n,
                      (int)m, (int)k, alpha, a, (int)n, b, (int)(transposed ? m : k), 0, c, (int)n);
    return CAIRN_OK;
}

/* The block's share of gram and right, added. */
static void add_block(const crn_blas *blas, size_t nobs, size_t n, const double *s, const double *d,
                      double *gram, double *right)
{
    blas->cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, (int)n, (int)n, (int)nobs, 1, s,
                      (int)nobs, s, (int)nobs, 1, gram, (int)n);
    for (size_t j = 0; j < n; j++) {
        double sum = 0;
        for (size_t i = 0; i < nobs; i++)
            sum += s[i + j * nobs] * d[i];
        right[j] += sum;
    }
}

/* S and d of the observations first to first + nobs. */
static void scale_block(const crn_filter_case *c, size_t first, size_t nobs, double *s, double *d)
{
    for (size_t i = 0; i < nobs; i++) {
        const double *y = c->y + first + i;
        double mean = 0, scale = 1 / sqrt(c->variance[first + i]);
        const double factor = c->prior > 0 ? c->prior * scale : scale;
        for (size_t j = 0; j < c->nmembers; j++)
            mean += y[j * c->nobs];
        mean /= (double)c->nmembers;
        for (size_t j = 0; j < c->nmembers; j++)
            s[i + j * nobs] = (y[j * c->nobs] - mean) * factor;
        d[i] = (c->value[first + i] - mean) * scale;
    }
}

void crn_filter_scale(const crn_filter_case *c, double *s, double *d)
{
    scale_block(c, 0, c->nobs, s, d);
}

cairn_status crn_filter_gram(const crn_filter_case *c, double *gram, double *right)
{
    const crn_blas *blas;
    const crn_lapacke *lapacke;
    double *work;
    const size_t n = c->nmembers;
    CRN_TRY(crn_filter_load(&blas, &lapacke));
    CRN_TRY(crn_alloc(&work, CRN_FILTER_OBS * (n + 1)));
    memset(gram, 0, n * n * sizeof *gram);
    memset(right, 0, n * sizeof *right);
    for (size_t first = 0; first < c->nobs; first += CRN_FILTER_OBS) {
        size_t nobs = CRN_MIN((size_t)CRN_FILTER_OBS, c->nobs - first);
        scale_block(c, first, nobs, work, work + nobs * n);
        add_block(blas, nobs, n, work, work + nobs * n, gram, right);
    }
    free(work);
    return CAIRN_OK;
}

/* Normal numbers for the observations first to first + nobs, centred over the members. */
static void draw_block(const crn_filter_case *c, size_t first, size_t nobs, double *e)
{
    for (size_t j = 0; j < c->nmembers; j++) {
        const crn_rng_key key = {c->study, CRN_FOR_PERTURBED, c->cycle, j};
        for (size_t i = 0; i < nobs; i++)
            e[i + j * nobs] = crn_rng_normal_at(&key, c->number ? c->number[first + i] : first + i);
    }
    for (size_t i = 0; i < nobs; i++) {
        double mean = 0;
        for (size_t j = 0; j < c->nmembers; j++)
            mean += e[i + j * nobs];
        mean /= (double)c->nmembers;
        for (size_t j = 0; j < c->nmembers; j++)
            e[i + j * nobs] -= mean;
    }
}

cairn_status crn_filter_perturb(const crn_filter_case *c, double *perturbed)
{
    const crn_blas *blas;
    const crn_lapacke *lapacke;
    double *work;
    const size_t n = c->nmembers;
    CRN_TRY(crn_filter_load(&blas, &lapacke));
    CRN_TRY(crn_alloc(&work, CRN_FILTER_OBS * (2 * n + 1)));
    memset(perturbed, 0, n * n * sizeof *perturbed);
    for (size_t first = 0; first < c->nobs; first += CRN_FILTER_OBS) {
        size_t nobs = CRN_MIN((size_t)CRN_FILTER_OBS, c->nobs - first);
        double *s = work, *e = s + nobs * n, *d = e + nobs * n;
        scale_block(c, first, nobs, s, d);
        draw_block(c, first, nobs, e);
        blas->cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, (int)n, (int)n, (int)nobs, 1, s,
                          (int)nobs, e, (int)nobs, 1, perturbed, (int)n);
    }
    free(work);
    return CAIRN_OK;
}

/* Let the largest component of a vector be positive. */
static void fix_sign(size_t n, double *v)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs(v[i]) > fabs(v[at]))
            at = i;
    for (size_t i = 0; v[at] < 0 && i < n; i++)
        if (i != at)
            v[i] = -v[i];
    v[at] = fabs(v[at]);
}

cairn_status crn_filter_eigen(size_t n, double *a, double *values)
{
    const crn_blas *blas;
    const crn_lapacke *lapacke;
    CRN_TRY(crn_filter_load(&blas, &lapacke));
    CRN_TRY(judge("dsyev", lapacke->LAPACKE_dsyev(LAPACK_COL_MAJOR, 'V', 'U', (lapack_int)n, a,
                                                  (lapack_int)n, values)));
    for (size_t k = 0; k < n; k++)
        fix_sign(n, a + k * n);
    return CAIRN_OK;
}

/* Q of Haar's measure, n by n, into a: by QR of a normal matrix, with the diagonal of R positive.
 */
static cairn_status haar(const crn_lapacke *lapacke, const crn_rng_key *key, size_t n, double *a,
                         double *tau)
{
    const lapack_int m = (lapack_int)n;
    double *const sign = tau + n;
    for (size_t i = 0; i < n * n; i++)
        a[i] = crn_rng_normal_at(key, i);
    CRN_TRY(judge("dgeqrf", lapacke->LAPACKE_dgeqrf(LAPACK_COL_MAJOR, m, m, a, m, tau)));
    for (size_t k = 0; k < n; k++)
        sign[k] = a[k + k * n] < 0 ? -1 : 1;
    CRN_TRY(judge("dorgqr", lapacke->LAPACKE_dorgqr(LAPACK_COL_MAJOR, m, m, m, a, m, tau)));
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            a[i + k * n] *= sign[k];
    return CAIRN_OK;
}

cairn_status crn_filter_triangle(size_t n, size_t m, double *a)
{
    const crn_blas *blas;
    const crn_lapacke *lapacke;
    double *tau;
    CRN_TRY(crn_filter_load(&blas, &lapacke));
    CRN_TRY(crn_alloc(&tau, m));
    cairn_status rc =
        judge("dgeqrf", lapacke->LAPACKE_dgeqrf(LAPACK_COL_MAJOR, (lapack_int)n, (lapack_int)m, a,
                                                (lapack_int)n, tau));
    free(tau);
    CRN_TRY(rc);
    for (size_t i = 0; i < m; i++) {
        double sign = a[i + i * n] < 0 ? -1 : 1;
        for (size_t k = 0; k < m; k++)
            a[i + k * n] = k < i ? 0 : sign * a[i + k * n];
    }
    return CAIRN_OK;
}

/* Column k (from 0) of an orthonormal basis of what is orthogonal to the ones: Helmert's. */
static double basis(size_t i, size_t k)
{
    double norm = sqrt((double)(k + 1) * (double)(k + 2));
    return i <= k ? 1 / norm : i == k + 1 ? -(double)(k + 1) / norm : 0;
}

static cairn_status rotate(const crn_lapacke *lapacke, const crn_rng_key *key, size_t n,
                           double *work, double *q)
{
    const size_t m = n - 1;
    double *u = work, *h = u + n * m, *uh = h + m * m, *tau = uh + n * m;
    CRN_TRY(haar(lapacke, key, m, h, tau));
    for (size_t k = 0; k < m; k++)
        for (size_t i = 0; i < n; i++)
            u[i + k * n] = basis(i, k);
    CRN_TRY(crn_filter_product(n, m, m, 1, u, h, false, uh));
    CRN_TRY(crn_filter_product(n, n, m, 1, uh, u, true, q));
    for (size_t i = 0; i < n * n; i++)
        q[i] += 1 / (double)n;
    return CAIRN_OK;
}

cairn_status crn_filter_rotation(const crn_rng_key *key, size_t n, double *q)
{
    const crn_blas *blas;
    const crn_lapacke *lapacke;
    double *work;
    CRN_TRY(crn_filter_load(&blas, &lapacke));
    CRN_TRY(crn_alloc(&work, 3 * n * n + 2 * n));
    cairn_status rc = rotate(lapacke, key, n, work, q);
    free(work);
    return rc;
}

#else

static cairn_status missing(void)
{
    return crn_fail(CAIRN_EUNSUPPORTED, "this Cairn was built without LAPACKE and OpenBLAS, which "
                                        "filters need (-DCAIRN_WITH_LAPACKE=ON)");
}

cairn_status crn_filter_kernel(const char **ret)
{
    (void)ret;
    return missing();
}

cairn_status crn_filter_product(size_t n, size_t m, size_t k, double alpha, const double *a,
                                const double *b, bool transposed, double *c)
{
    (void)n, (void)m, (void)k, (void)alpha, (void)a, (void)b, (void)transposed, (void)c;
    return missing();
}

void crn_filter_scale(const crn_filter_case *c, double *s, double *d)
{
    (void)c, (void)s, (void)d;
}

cairn_status crn_filter_gram(const crn_filter_case *c, double *gram, double *right)
{
    (void)c, (void)gram, (void)right;
    return missing();
}

cairn_status crn_filter_perturb(const crn_filter_case *c, double *perturbed)
{
    (void)c, (void)perturbed;
    return missing();
}

cairn_status crn_filter_eigen(size_t n, double *a, double *values)
{
    (void)n, (void)a, (void)values;
    return missing();
}

cairn_status crn_filter_triangle(size_t n, size_t m, double *a)
{
    (void)n, (void)m, (void)a;
    return missing();
}

cairn_status crn_filter_rotation(const crn_rng_key *key, size_t n, double *q)
{
    (void)key, (void)n, (void)q;
    return missing();
}

#endif
