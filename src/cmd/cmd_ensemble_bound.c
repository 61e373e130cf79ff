/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn ensemble bound: the largest bound of the loss that a filter bears, by twin studies of
 * Lorenz-96 in this process, with and without loss, paired by their seeds.
 */
#include <inttypes.h>

#include "cmd/cmd_ensemble.h"

enum { SEEDS = 24, TWIN_CYCLES = 1000, BOUND_STEPS = 32 };

static cairn_status run_one(void *arg, uint64_t seed, double bound, double *ret_rmse,
                            double *ret_rate)
{
    return crn_twin_run(*(const uint32_t *)arg, seed, bound, ret_rmse, ret_rate);
}

static void show(void *arg, const crn_bound_trial *t)
{
    (void)arg;
    cmd_line("%10.3g %8.3f %+9.3f%% +-%7.3f%%  %s", t->bound, t->rate, 100 * t->paired.change,
             100 * t->paired.half, t->safe ? "safe" : "not shown to be");
}

int cmd_ensemble_bound(const char *seeds, const char *cycles)
{
    uint32_t ncycles = cycles ? (uint32_t)strtoul(cycles, NULL, 10) : TWIN_CYCLES;
    crn_bound_case c = {.seed = 1,
                        .nseeds = seeds ? (uint32_t)strtoul(seeds, NULL, 10) : SEEDS,
                        .tolerance = 0.01,
                        .low = 1e-4,
                        .high = 1e4,
                        .nsteps = BOUND_STEPS,
                        .run = run_one,
                        .tell = show,
                        .arg = &ncycles};
    crn_bound_result r;
    if (ncycles < 1 || c.nseeds < 2)
        return cmd_fail("two seeds and a cycle are needed at least");
    cmd_line("Lorenz-96 of 40 variables, ETKF of 24 members, %u seeds, %u cycles, zfp each cycle",
             c.nseeds, ncycles);
    cmd_line("%10s %8s %10s %10s", "bound", "rate", "RMSE", "95%");
    if (crn_bound_find(&c, &r) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    if (!r.found) {
        cmd_line("no bound from %g on is safe; RMSE without loss: %.4f", c.low, r.rmse);
        return CMD_NO;
    }
    cmd_line("the largest bound that leaves the RMSE (%.4f without loss) within 1%%: %.3g "
             "(%+.2f%% +- %.2f%%), %.2f times smaller",
             r.rmse, r.best.bound, 100 * r.best.paired.change, 100 * r.best.paired.half,
             r.best.rate);
    return CMD_YES;
}
