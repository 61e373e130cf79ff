/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log of a run from any bytes: whatever it tells, a session learns from it without an error,
 * and the planner then has a schedule that can be followed. Marks matter more than their log.
 */
#include "ckpt/ckpt_history.h"

#include <assert.h>
#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void take_lines(ckpt_history *h, char *text)
{
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        (void)crn_history_take(h, line);
    assert(!h->failed);
    for (size_t i = 0; i < h->leg.n; i++) {
        crn_level needed;
        assert(h->leg.at[i].first <= crn_history_end(h, i));
        assert(crn_history_end(h, i) <= h->mark.n);
        if (crn_history_failed(h, i, &needed))
            assert(needed < CRN_NLEVELS);
    }
}

static void learn(const ckpt_history *h, const ckpt_ladder *ladder)
{
    crn_plan_options opt = {.mode = CRN_PLAN_AUTO,
                            .nlevels = ladder->n,
                            .rate = {1e-5},
                            .trust = CKPT_TRUST,
                            .limits = crn_plan_limits_default()};
    unsigned nfailures[CRN_PLAN_LEVELS] = {0};
    crn_plan_tuner t;
    (void)crn_history_schedule(h, ladder, &opt.start);
    assert(crn_plan_tuner_init(&t, &opt) == CAIRN_OK);
    assert(crn_history_teach(h, ladder, &t) == CAIRN_OK);
    const double seconds = crn_history_observe(h, ladder, nfailures);
    assert(crn_plan_tuner_observe(&t, seconds, nfailures) == CAIRN_OK);
    assert(crn_plan_tuner_retune(&t) >= 0);
    assert(isfinite(t.schedule.interval) && t.schedule.interval > 0);
    assert(crn_plan_tuner_level(&t) < ladder->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const ckpt_ladder ladders[] = {
        {1, {CRN_LEVEL_LOCAL}},
        {2, {CRN_LEVEL_LOCAL, CRN_LEVEL_GLOBAL}},
        {4, {CRN_LEVEL_LOCAL, CRN_LEVEL_PARTNER, CRN_LEVEL_ENCODED, CRN_LEVEL_GLOBAL}}};
    ckpt_history h = {0};
    char *text;
    if (crn_alloc(&text, nbytes + 1) < 0)
        return 0;
    memcpy(text, data, nbytes);
    text[nbytes] = 0;
    take_lines(&h, text);
    learn(&h, &ladders[nbytes % (sizeof ladders / sizeof *ladders)]);
    crn_history_done(&h);
    free(text);
    return 0;
}
