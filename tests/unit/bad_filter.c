/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A filter of a shared object that is wrong in the way that its option names, for test_filter.
 */
#include <math.h>
#include <string.h>

#include <cairn/error.h>
#include <cairn/filter_plugin.h>

static int check(const char *options)
{
    return options[0] ? 0 : -1;
}

static void identity(size_t n, double *w)
{
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            w[i + k * n] = i == k;
}

/* Pull the mean towards the observations, by a factor for all members. */
static void pull(const cairn_filter_case *c, double factor, double *w)
{
    const size_t n = c->nmembers;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            w[i + k * n] += factor * c->right[i] / (double)(n - 1) / (1 + (double)c->nobs);
}

static int weights(const cairn_filter_case *c, const char *options, double *w)
{
    static double calls;
    const size_t n = c->nmembers;
    if (strcmp(options, "gives-up") == 0)
        return CAIRN_EINVAL;
    identity(n, w);
    if (strcmp(options, "forgets") == 0) /* what it gave depends on what it gave before */
        w[0] += 1e-15 * ++calls;
    else if (strcmp(options, "widens") == 0)
        for (size_t k = 0; k < n && c->nobs > 0; k++)
            w[k + k * n] = 1.01;
    else if (strcmp(options, "pushes") == 0)
        pull(c, -1, w);
    else if (strcmp(options, "keyless") == 0) /* random numbers by the place in the list */
        for (size_t k = 0; k < n && c->nobs > 1; k++)
            w[k + k * n] += 0.01 * c->anomaly[0] * c->normal(c, 1, k);
    else if (strcmp(options, "nan") == 0)
        w[3] = NAN;
    else if (strcmp(options, "outside") == 0)
        w[n * n] = 0;
    return 0;
}

CAIRN_FILTER_EXPORT const cairn_filter_table cairn_filter = {CAIRN_FILTER_VERSION, "bad", "wrong",
                                                             check, weights};
