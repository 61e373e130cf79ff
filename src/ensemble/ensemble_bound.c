/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A twin study in one process, whose truth is known: Lorenz-96 with 40 variables, F = 8 and steps
 * of 0.05, all observed at each step with errors of variance 1, and an ensemble transform Kalman
 * filter of 24 members. Its states are coded by zfp with an absolute bound in each cycle, before
 * they are propagated.
 */
#include "ensemble/ensemble.h"

#include <math.h>

#include "filter/filter.h"

enum { NX = 40, MEMBERS = 24, SPIN = 200, SETTLE = 1000 };

static void slope(const double *x, double *d)
{
    for (int i = 0; i < NX; i++)
        d[i] = (x[(i + 1) % NX] - x[(i + NX - 2) % NX]) * x[(i + NX - 1) % NX] - x[i] + 8;
}

static void advance(double *x)
{
    static const double part[] = {0, 0.5, 0.5, 1}, weight[] = {1, 2, 2, 1};
    const double dt = 0.05;
    double d[NX] = {0}, at[NX], sum[NX] = {0};
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < NX; i++)
            at[i] = x[i] + part[s] * dt * d[i];
        slope(at, d);
        for (int i = 0; i < NX; i++)
            sum[i] += weight[s] * d[i];
    }
    for (int i = 0; i < NX; i++)
        x[i] += dt / 6 * sum[i];
}

typedef struct twin {
    crn_filter_case c;
    double truth[NX], x[MEMBERS][NX], *member[MEMBERS];
    crn_codec_setting setting;
    bool lossy;
    double coded, all; /* bytes */
} twin;

static void begin(twin *t, uint64_t seed)
{
    t->c = (crn_filter_case){.study = seed, .nmembers = MEMBERS, .inflation = 1.02, .rotate = true};
    for (int i = 0; i < NX; i++)
        t->truth[i] = 8 + (i == 0) * 0.01;
    for (int s = 0; s < SETTLE + (int)(seed % 97); s++) /* onto the attractor, elsewhere each */
        advance(t->truth);
    for (size_t j = 0; j < MEMBERS; j++) {
        const crn_rng_key key = {seed, CRN_FOR_INITIAL, 0, j};
        t->member[j] = t->x[j];
        for (uint64_t i = 0; i < NX; i++)
            t->x[j][i] = t->truth[i] + sqrt(0.001) * crn_rng_normal_at(&key, i);
    }
}

static cairn_status code(twin *t, double *x)
{
    const crn_state_field f = {.type = CAIRN_FLOAT64, .ndims = 1, .global = {NX}, .count = {NX}};
    double rate;
    CRN_TRY(crn_field_code(&t->setting, &f, x, &rate));
    t->all += NX * sizeof *x;
    t->coded += NX * sizeof *x / rate;
    return CAIRN_OK;
}

static double error_of_mean(const twin *t)
{
    double square = 0;
    for (int i = 0; i < NX; i++) {
        double mean = 0;
        for (size_t j = 0; j < MEMBERS; j++)
            mean += t->x[j][i] / MEMBERS;
        square += (mean - t->truth[i]) * (mean - t->truth[i]) / NX;
    }
    return sqrt(square);
}

/* All one step on, observed and filtered; the error of the analysis. */
static cairn_status cycle(twin *t, double *ret)
{
    double value[NX], variance[NX], y[NX * MEMBERS], w[MEMBERS * MEMBERS];
    const crn_filter_ops *f = crn_filter_of_name("etkf");
    const crn_rng_key key = {t->c.study, CRN_FOR_OBSERVATION, t->c.cycle, 0};
    advance(t->truth);
    for (uint64_t i = 0; i < NX; i++) {
        value[i] = t->truth[i] + crn_rng_normal_at(&key, i);
        variance[i] = 1;
    }
    for (size_t j = 0; j < MEMBERS; j++) {
        if (t->lossy)
            CRN_TRY(code(t, t->x[j]));
        advance(t->x[j]);
        memcpy(y + j * NX, t->x[j], NX * sizeof *y);
    }
    t->c.nobs = NX, t->c.value = value, t->c.variance = variance, t->c.y = y;
    CRN_TRY(crn_filter_weights(f, &t->c, w));
    CRN_TRY(crn_filter_update(w, MEMBERS, NX, t->member));
    *ret = error_of_mean(t);
    return CAIRN_OK;
}

cairn_status crn_twin_run(uint32_t ncycles, uint64_t seed, double bound, double *ret_rmse,
                          double *ret_rate)
{
    twin t = {.lossy = bound > 0};
    double sum = 0, error;
    char text[CRN_CODEC_TEXT];
    snprintf(text, sizeof text, "zfp:accuracy=%.17g", bound);
    if (t.lossy)
        CRN_TRY(crn_codec_parse(text, "", &t.setting));
    begin(&t, seed);
    for (t.c.cycle = 1; t.c.cycle <= SPIN + ncycles; t.c.cycle++) {
        CRN_TRY(cycle(&t, &error));
        sum += t.c.cycle > SPIN ? error : 0;
    }
    *ret_rmse = sum / ncycles;
    *ret_rate = t.coded > 0 ? t.all / t.coded : 1;
    return CAIRN_OK;
}
