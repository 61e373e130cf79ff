/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tuner: measurements into curves, curves into a model, the model's optimum into the schedule.
 *
 * Three things keep it calm. Old samples fade slowly, so one slow mark moves little. A schedule
 * that the model finds almost as good as the best stays (HYSTERESIS). And a change goes most of
 * the way only (DAMPING): what the model got wrong because it extrapolated is measured on the way.
 */
#include "plan/plan_check.h"

static const double HYSTERESIS = 0.003;   /* relative gain in efficiency that is worth a change */
static const double DAMPING = 0.75;       /* of the way, in logarithms, per change */
static const double BANDWIDTH_MAX = 1e15; /* stands for a cost that does not depend on bytes */

cairn_plan_schedule crn_plan_neutral(size_t nlevels)
{
    cairn_plan_schedule s = {.interval = 100, .ratio = {1, 2, 2, 2}};
    if (nlevels > 1)
        s.ratio[nlevels - 1] = 3;
    return s;
}

static cairn_status check_options(const crn_plan_options *opt)
{
    CRN_FAIL_IF(opt->nlevels < 1 || opt->nlevels > CRN_PLAN_LEVELS, CAIRN_EINVAL,
                "a tuner has 1 to %d levels, not %zu", CRN_PLAN_LEVELS, opt->nlevels);
    for (size_t l = 0; l < opt->nlevels; l++)
        CRN_TRY(crn_plan_check_natural("the expected failure rate", opt->rate[l]));
    CRN_TRY(crn_plan_check_positive("the trust in the expected rates", opt->trust));
    CRN_TRY(crn_plan_limits_check(&opt->limits));
    return CAIRN_OK;
}

static void bound_schedule(cairn_plan_schedule *s, size_t nlevels, const crn_plan_limits *lim)
{
    s->interval = fmin(fmax(s->interval, lim->interval_min), lim->interval_max);
    for (size_t l = 1; l < nlevels; l++)
        s->ratio[l] = CRN_MIN(s->ratio[l], lim->ratio_max);
}

cairn_status crn_plan_tuner_init(crn_plan_tuner *t, const crn_plan_options *opt)
{
    CRN_TRY(check_options(opt));
    cairn_plan_schedule start =
        opt->start.interval == 0 ? crn_plan_neutral(opt->nlevels) : opt->start;
    CRN_TRY(crn_plan_schedule_check(&start, opt->nlevels));
    bound_schedule(&start, opt->nlevels, &opt->limits);
    *t = (crn_plan_tuner){.opt = *opt, .schedule = start, .better = start};
    return CAIRN_OK;
}

size_t crn_plan_tuner_level(const crn_plan_tuner *t)
{
    size_t level = t->opt.nlevels - 1;
    while (t->nmarks > 0 && level > 0 && t->since[level] + 1 < crn_plan_period(&t->schedule, level))
        level--;
    return level;
}

/*
 * Expected rates count like 'trust' failures. While less is seen than was expected, in the time
 * that these would take to come. When more is seen, as many times the logarithm: on a machine that
 * fails a hundred times as often as expected, that time would outweigh hundreds of real failures.
 */
static double rate_of(const crn_plan_tuner *t, size_t class)
{
    double expected = t->opt.rate[class], seen = t->nfailures[class], trust = t->opt.trust;
    double measured = seen > 0 && t->observed > 0 ? seen / t->observed : 0;
    if (expected > 0 && measured > expected)
        return expected * pow(measured / expected, seen / (trust + seen));
    if (expected > 0)
        return (trust + seen) / (trust / expected + t->observed);
    return measured;
}

/* A level that had no mark yet is taken to cost what the next measured one above it does. */
static size_t measured_level(const crn_plan_tuner *t, size_t level)
{
    for (size_t l = level; l < t->opt.nlevels; l++)
        if (t->held[l].w > 0)
            return l;
    for (size_t l = level; l-- > 0;)
        if (t->held[l].w > 0)
            return l;
    return 0;
}

crn_plan_model crn_plan_tuner_model(const crn_plan_tuner *t)
{
    crn_plan_model m = {.nlevels = t->opt.nlevels,
                        .changed = crn_plan_growth_solve(&t->growth, t->total)};
    for (size_t l = 0; l < m.nlevels; l++) {
        size_t from = measured_level(t, l);
        double slope, safe_at0, safe_slope;
        crn_plan_line_solve(&t->held[from], &m.level[l].fixed, &slope);
        crn_plan_line_solve(&t->safe[from], &safe_at0, &safe_slope);
        double period = t->schedule.interval * (double)crn_plan_period(&t->schedule, l);
        double nbytes = crn_plan_growth_at(&m.changed, period);
        m.level[l].rate = rate_of(t, l);
        m.level[l].bandwidth = 1 / fmax(slope, 1 / BANDWIDTH_MAX);
        m.level[l].background =
            fmax(0, safe_at0 + (safe_slope - slope) * nbytes - m.level[l].fixed);
        /* not measured yet: a restart moves everything, the way that a mark moves what changed */
        m.level[l].restart = t->restart[l] > 0 ? t->restart[l] : safe_at0 + safe_slope * t->total;
    }
    return m;
}

/* From 'now' towards 'to' by DAMPING; whole ratios take at least one step. */
static unsigned damp_ratio(unsigned now, unsigned to)
{
    unsigned r = (unsigned)lround(now * pow((double)to / now, DAMPING));
    if (r == now && to != now)
        r += to > now ? 1 : -1;
    return r;
}

static cairn_plan_schedule damp(const cairn_plan_schedule *now, const cairn_plan_schedule *to,
                                size_t nlevels)
{
    cairn_plan_schedule s = *now;
    s.interval *= pow(to->interval / now->interval, DAMPING);
    for (size_t l = 1; l < nlevels; l++)
        s.ratio[l] = damp_ratio(now->ratio[l], to->ratio[l]);
    return s;
}

cairn_status crn_plan_tuner_retune(crn_plan_tuner *t)
{
    if (t->held[measured_level(t, 0)].w == 0)
        return CAIRN_OK;
    crn_plan_model m = crn_plan_tuner_model(t);
    crn_plan_prediction best, now = crn_plan_solve(&m, &t->schedule);
    CRN_TRY(crn_plan_best(&m, &t->opt.limits, &t->better, &best));
    t->nretuned++;
    t->prediction = now;
    if (t->opt.mode != CRN_PLAN_AUTO || best.efficiency <= now.efficiency * (1 + HYSTERESIS))
        return CAIRN_OK;

    cairn_plan_schedule next = damp(&t->schedule, &t->better, m.nlevels);
    crn_plan_prediction damped = crn_plan_solve(&m, &next);
    bool on_the_way = damped.efficiency > now.efficiency;
    t->schedule = on_the_way ? next : t->better;
    t->prediction = on_the_way ? damped : best;
    t->nchanged++;
    return CAIRN_OK;
}

static cairn_status check_measure(const crn_plan_tuner *t, const crn_plan_measure *measured)
{
    CRN_FAIL_IF(measured->level >= t->opt.nlevels, CAIRN_EINVAL,
                "a mark at level %zu of a tuner with %zu", measured->level, t->opt.nlevels);
    CRN_TRY(crn_plan_check_natural("the time since the last mark", measured->elapsed));
    CRN_TRY(crn_plan_check_natural("the size of the mark", measured->nbytes));
    CRN_TRY(crn_plan_check_natural("the size of the state", measured->total));
    CRN_TRY(crn_plan_check_natural("the time that the mark held the program", measured->held));
    CRN_TRY(crn_plan_check_natural("the background time of the mark", measured->background));
    return CAIRN_OK;
}

cairn_status crn_plan_tuner_recall(crn_plan_tuner *t, const crn_plan_measure *measured)
{
    CRN_TRY(check_measure(t, measured));
    size_t level = measured->level;
    t->nmarks++;
    for (size_t l = 0; l < t->opt.nlevels; l++)
        t->since[l] = l <= level ? 0 : t->since[l] + 1;
    if (t->opt.mode == CRN_PLAN_OFF)
        return CAIRN_OK;

    t->total = measured->total;
    crn_plan_line_add(&t->held[level], measured->nbytes, measured->held);
    crn_plan_line_add(&t->safe[level], measured->nbytes, measured->held + measured->background);
    if (!measured->full) {
        t->nsamples++;
        crn_plan_growth_add(&t->growth, level, measured->elapsed, measured->nbytes);
    }
    return CAIRN_OK;
}

cairn_status crn_plan_tuner_mark(crn_plan_tuner *t, const crn_plan_measure *measured)
{
    CRN_TRY(crn_plan_tuner_recall(t, measured));
    if (measured->level == t->opt.nlevels - 1 && t->nsamples > 0)
        CRN_TRY(crn_plan_tuner_retune(t));
    return CAIRN_OK;
}

cairn_status crn_plan_tuner_restart(crn_plan_tuner *t, size_t level, double seconds)
{
    CRN_FAIL_IF(level >= t->opt.nlevels, CAIRN_EINVAL,
                "a restart from level %zu of a tuner with %zu", level, t->opt.nlevels);
    CRN_TRY(crn_plan_check_natural("the time of the restart", seconds));
    t->restart[level] = seconds;
    return CAIRN_OK;
}

cairn_status crn_plan_tuner_observe(crn_plan_tuner *t, double seconds,
                                    const unsigned nfailures[CRN_PLAN_LEVELS])
{
    CRN_TRY(crn_plan_check_natural("the time under observation", seconds));
    t->observed += seconds;
    for (size_t l = 0; l < t->opt.nlevels; l++)
        t->nfailures[l] += nfailures[l];
    return CAIRN_OK;
}
