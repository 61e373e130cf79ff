/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How fast are the statistics of ensembles side by side, which read each state once? Against a copy
 * of the same states, slice by slice as validators have them.
 */
#include "bench.h"

#include "validate/validate.h"

enum { ENSEMBLES = 5, MEMBERS = 16, STATES = ENSEMBLES * MEMBERS, SLICE = 1 << 15, SLICES = 4 };

static double *state[STATES];

static void fill(void)
{
    for (uint32_t m = 0; m < STATES; m++) {
        const crn_rng_key key = {1, 1, 0, m % MEMBERS};
        const crn_rng_key loss = {1, 2, 0, m};
        state[m] = malloc((size_t)SLICES * SLICE * sizeof(double));
        for (size_t i = 0; state[m] && i < (size_t)SLICES * SLICE; i++)
            state[m][i] =
                crn_rng_normal_at(&key, i) + (m < MEMBERS ? 0 : 1e-6 * crn_rng_normal_at(&loss, i));
    }
}

static double time_statistics(void)
{
    const double begun = bench_seconds();
    crn_spread s;
    if (crn_spread_init(&s, ENSEMBLES, MEMBERS, NULL) < 0)
        exit(1);
    for (size_t k = 0; k < SLICES; k++) {
        const double *at[STATES];
        for (uint32_t m = 0; m < STATES; m++)
            at[m] = state[m] + k * SLICE;
        if (crn_spread_add(&s, at, SLICE) < 0)
            exit(1);
    }
    crn_spread_done(&s);
    return bench_seconds() - begun;
}

static double time_copy(double *to)
{
    const double begun = bench_seconds();
    for (size_t k = 0; k < SLICES; k++)
        for (uint32_t m = 0; m < STATES; m++)
            memcpy(to + m * SLICE, state[m] + k * SLICE, SLICE * sizeof *to);
    return bench_seconds() - begun;
}

int main(void)
{
    const double nbytes = (double)STATES * SLICES * SLICE * sizeof(double);
    double ours[BENCH_TURNS], peer[BENCH_TURNS];
    double *to = calloc((size_t)STATES * SLICE, sizeof *to);
    fill();
    if (!to || !state[STATES - 1])
        return 1;
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        ours[i] = nbytes / time_statistics() * 1e-9;
        peer[i] = nbytes / time_copy(to) * 1e-9;
    }
    bench_print(&(bench_result){.name = "validate.statistics",
                                .ours = bench_median(ours, BENCH_TURNS),
                                .peer = bench_median(peer, BENCH_TURNS),
                                .unit = "GB/s",
                                .bar = BENCH_AT_LEAST,
                                .limit = 0.5,
                                .note = "all sums of 5 ensembles of 16 members, over states read; "
                                        "peer: a copy of them"});
    free(to);
    for (uint32_t m = 0; m < STATES; m++)
        free(state[m]);
    return 0;
}
