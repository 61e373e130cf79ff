/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Perturbations of states: normal numbers keyed by purpose, cycle, member and row, of the deviation
 * that each field has, smoothed over neighbours where the study wants that. Smoothing is a number
 * of passes of (1/4, 1/2, 1/4) along each dimension, around its ends; the deviation stays what was
 * asked for.
 */
#include "ensemble/ensemble_server.h"

#include <math.h>

/* One pass along a line of n elements that are stride apart. */
static void pass(double *x, uint64_t n, uint64_t stride, double *line)
{
    for (uint64_t i = 0; i < n; i++)
        line[i] = x[i * stride];
    for (uint64_t i = 0; i < n; i++)
        x[i * stride] = (line[(i + n - 1) % n] + 2 * line[i] + line[(i + 1) % n]) / 4;
}

/* The deviation of what the passes make of independent numbers of deviation 1. */
static double damping(uint64_t n, uint64_t passes, double *impulse, double *line)
{
    double sum = 0;
    memset(impulse, 0, n * sizeof *impulse);
    impulse[0] = 1;
    for (uint64_t k = 0; k < passes; k++)
        pass(impulse, n, 1, line);
    for (uint64_t i = 0; i < n; i++)
        sum += impulse[i] * impulse[i];
    return sqrt(sum);
}

static cairn_status smooth(const crn_state_field *f, uint64_t passes, double *x, uint64_t all)
{
    double *work;
    uint64_t stride = 1;
    for (int d = f->ndims - 1; d >= 0; stride *= f->global[d--]) {
        const uint64_t n = f->global[d];
        if (n < 3)
            continue;
        CRN_TRY(crn_alloc(&work, 2 * n));
        const double scale = 1 / damping(n, passes, work, work + n);
        for (uint64_t at = 0; at < all; at += at % stride == stride - 1 ? stride * (n - 1) + 1 : 1)
            for (uint64_t k = 0; k < passes; k++)
                pass(x + at, n, stride, work);
        for (uint64_t i = 0; i < all; i++)
            x[i] *= scale;
        free(work);
    }
    return CAIRN_OK;
}

static cairn_status perturb_field(const crn_server *s, size_t field, const crn_rng_key *key,
                                  uint64_t first, uint64_t n, double factor, double *row)
{
    const uint64_t passes = s->observing.smooth[field];
    double *x;
    CRN_TRY(crn_alloc(&x, n));
    for (uint64_t i = 0; i < n; i++)
        x[i] = crn_rng_normal_at(key, first + i);
    cairn_status rc = passes > 0 ? smooth(&s->layout.field.at[field], passes, x, n) : CAIRN_OK;
    for (uint64_t i = 0; rc == CAIRN_OK && i < n; i++)
        row[i] += factor * s->observing.deviation[field] * x[i];
    free(x);
    return rc;
}

static cairn_status perturb_rows(const crn_server *s, const crn_rng_key *key, double factor,
                                 double *row)
{
    uint64_t first = 0;
    for (size_t f = 0; f < s->layout.field.n; f++) {
        const crn_state_field *x = &s->layout.field.at[f];
        const uint64_t n = crn_field_nbytes(x) / cairn_type_bytes(x->type);
        if (x->role == CAIRN_CARRIED)
            continue;
        CRN_TRY(perturb_field(s, f, key, first, n, factor, row + first));
        first += n;
    }
    return CAIRN_OK;
}

cairn_status crn_perturb(const crn_server *s, crn_purpose purpose, uint32_t cycle, uint64_t member,
                         double factor, const unsigned char *from, unsigned char *to)
{
    const crn_rng_key key = {s->study->seed, purpose, cycle, member};
    double *row;
    if (to != from)
        memcpy(to, from, s->layout.nbytes);
    CRN_TRY(crn_alloc(&row, s->layout.nrows));
    crn_rows_read(&s->layout, from, row);
    cairn_status rc = perturb_rows(s, &key, factor, row);
    if (rc == CAIRN_OK)
        crn_rows_write(&s->layout, row, to);
    free(row);
    return rc;
}
