/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_extra.h"

#include <math.h>

cairn_status crn_extra_init(crn_extra *x, uint32_t nensembles, uint32_t nmembers, size_t nsample,
                            uint32_t nfunctions)
{
    const size_t nstates = (size_t)nensembles * nmembers;
    const size_t ranks = nstates * sizeof *x->rank, samples = nstates * nsample * sizeof *x->sample;
    const size_t values = nstates * nfunctions * sizeof *x->value;
    *x = (crn_extra){.nensembles = nensembles,
                     .nmembers = nmembers,
                     .nfunctions = nfunctions,
                     .nsample = nsample,
                     .nbytes = ranks + samples + values + nfunctions * sizeof *x->why};
    CRN_TRY(crn_alloc(&x->data, x->nbytes));
    x->rank = (uint64_t *)(void *)x->data;
    x->sample = (double *)(void *)(x->data + ranks);
    x->value = (double *)(void *)(x->data + ranks + samples);
    x->why = (int32_t *)(void *)(x->data + ranks + samples + values);
    return CAIRN_OK;
}

void crn_extra_done(crn_extra *x)
{
    free(x->data);
    *x = (crn_extra){0};
}

/* --- samples -------------------------------------------------------------------------------- */

static uint64_t stride_of(uint64_t all)
{
    return CRN_MAX((all + CRN_SAMPLE - 1) / CRN_SAMPLE, (uint64_t)1);
}

size_t crn_sample_count(uint64_t all, uint64_t first, size_t n)
{
    const uint64_t stride = stride_of(all);
    return (size_t)((first + n + stride - 1) / stride - (first + stride - 1) / stride);
}

static void add_sample(crn_extra *x, const double *const *value, uint64_t all, uint64_t first,
                       size_t n)
{
    const uint64_t stride = stride_of(all);
    size_t k = 0;
    for (uint64_t i = (first + stride - 1) / stride * stride; i < first + n; i += stride, k++)
        for (uint32_t m = 0; m < x->nensembles * x->nmembers; m++)
            x->sample[m * x->nsample + k] = value[m][i - first];
}

/* --- ranks ---------------------------------------------------------------------------------- */

static void add_rank(crn_extra *x, const double *const *value, uint32_t member, size_t i)
{
    const double v = value[member][i];
    for (uint32_t e = 0; e < x->nensembles && isfinite(v); e++) {
        const double *const *of = value + (size_t)e * x->nmembers;
        uint32_t below = 0, equal = 0;
        for (uint32_t k = 0; k < x->nmembers; k++) {
            below += k != member && of[k][i] < v;
            equal += k != member && of[k][i] == v;
        }
        x->rank[(size_t)e * x->nmembers + below + equal / 2]++;
    }
}

void crn_extra_add(crn_extra *x, const double *const *value, uint64_t all, uint64_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_rank(x, value, (uint32_t)((first + i) % x->nmembers), i);
    add_sample(x, value, all, first, n);
}

void crn_extra_merge(crn_extra *x, const crn_extra *next, size_t *at)
{
    for (size_t i = 0; i < (size_t)x->nensembles * x->nmembers; i++) {
        x->rank[i] += next->rank[i];
        memcpy(x->sample + i * x->nsample + *at, next->sample + i * next->nsample,
               next->nsample * sizeof *x->sample);
    }
    *at += next->nsample;
}

double crn_extra_skew(const crn_extra *x, uint32_t ensemble)
{
    const uint64_t *with = x->rank + (size_t)ensemble * x->nmembers;
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t r = 0; r < x->nmembers; r++) {
        const double d = (double)with[r] - (double)x->rank[r];
        n += x->rank[r] > 0;
        sum += x->rank[r] > 0 ? d * d / (double)x->rank[r] : d * d;
    }
    return n > 1 ? sum / (n - 1) : sum;
}

/* --- distributions -------------------------------------------------------------------------- */

static cairn_status test_all(const crn_extra *x, double q, crn_ks *ret, bool *ret_rejected,
                             double *a, double *b)
{
    for (uint32_t e = 0; e < x->nensembles; e++) {
        double p[x->nmembers];
        size_t n;
        for (uint32_t m = 0; m < x->nmembers; m++) {
            const size_t state = (size_t)e * x->nmembers + m;
            memcpy(a, x->sample + m * x->nsample, x->nsample * sizeof *a);
            memcpy(b, x->sample + state * x->nsample, x->nsample * sizeof *b);
            ret[state] = e == 0 ? (crn_ks){0, 1} : crn_ks_test(a, b, x->nsample);
            p[m] = ret[state].p;
        }
        CRN_TRY(crn_discoveries(p, x->nmembers, q, ret_rejected + (size_t)e * x->nmembers, &n));
    }
    return CAIRN_OK;
}

cairn_status crn_extra_test(const crn_extra *x, double q, crn_ks *ret, bool *ret_rejected)
{
    double *a;
    CRN_TRY(crn_alloc(&a, CRN_MAX(2 * x->nsample, (size_t)1)));
    cairn_status rc = test_all(x, q, ret, ret_rejected, a, a + x->nsample);
    free(a);
    return rc;
}
