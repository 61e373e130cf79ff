/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A filter of one's own (<cairn/filter_plugin.h>), to be copied and changed: the ensemble transform
 * Kalman filter with the symmetric square root (Hunt, Kostelich and Szunyogh 2007), with an option
 * "tune=X" that multiplies the anomalies of the analysis by X. Built and tried as
 *
 *     cc -shared -fPIC -o libmine.so filter_template.c -lm
 *     cairn ensemble filters ./libmine.so
 *
 * and named in study.ini by "[filter] name = ./libmine.so" or "name = ./libmine.so:tune=1.02".
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/error.h>
#include <cairn/filter_plugin.h>

static double tune_of(const char *options)
{
    return options[0] ? strtod(options + strlen("tune="), NULL) : 1;
}

/* 0: these are options of this filter. */
static int check(const char *options)
{
    char *end;
    if (!options[0])
        return 0;
    if (strncmp(options, "tune=", 5) != 0)
        return -1;
    double tune = strtod(options + 5, &end);
    return *end == 0 && tune > 0 && isfinite(tune) ? 0 : -1;
}

/* r = V f V^T, where the columns of V times f are made in scaled. */
static int function_of(const cairn_filter_case *c, const double *v, const double *f, double *scaled,
                       double *r)
{
    const size_t n = c->nmembers;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            scaled[i + k * n] = v[i + k * n] * f[k];
    return c->product(n, n, n, scaled, v, 1, r);
}

/* With S^T S = V L V^T: anomalies by V ((N - 1) / (N - 1 + L))^1/2 V^T, the mean by
 * V (N - 1 + L)^-1 V^T S^T d. work: 3 N N + 3 N numbers. */
static int transform(const cairn_filter_case *c, double tune, double *work, double *w)
{
    const size_t n = c->nmembers;
    const double n1 = (double)(n - 1);
    double *v = work, *scaled = v + n * n, *inverse = scaled + n * n;
    double *values = inverse + n * n, *f = values + n, *mean = f + n;
    memcpy(v, c->gram, n * n * sizeof *v);
    int rc = c->eigen(n, v, values);
    for (size_t k = 0; k < n; k++) /* rounding leaves values that should be 0 below it */
        f[k] = tune * sqrt(n1 / (n1 + fmax(values[k], 0)));
    if (rc == 0)
        rc = function_of(c, v, f, scaled, w);
    for (size_t k = 0; k < n; k++)
        f[k] = 1 / (n1 + fmax(values[k], 0));
    if (rc == 0)
        rc = function_of(c, v, f, scaled, inverse);
    if (rc == 0)
        rc = c->product(n, 1, n, inverse, c->right, 0, mean);
    for (size_t k = 0; rc == 0 && k < n; k++)
        for (size_t i = 0; i < n; i++)
            w[i + k * n] += mean[i];
    return rc;
}

static int weights(const cairn_filter_case *c, const char *options, double *w)
{
    const size_t n = c->nmembers;
    double *work = malloc((3 * n * n + 3 * n) * sizeof *work);
    if (!work)
        return CAIRN_ENOMEM;
    int rc = transform(c, tune_of(options), work, w);
    free(work);
    return rc;
}

CAIRN_FILTER_EXPORT const cairn_filter_table cairn_filter = {
    CAIRN_FILTER_VERSION, "template", "the ETKF, as a template for others", check, weights};
