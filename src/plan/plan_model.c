/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The model: what marks cost, which marks a schedule makes, and how long a run takes on average.
 *
 * A run is a chain of stretches: interval seconds of computing, then a mark. A failure in a stretch
 * leads to a restart from the last mark that its class leaves, and everything since is done again;
 * a failure in a restart leads to another one, of the higher of the two classes. The design note
 * derives the closed solution that is evaluated here; the unit test solves the chain state by state
 * and finds the same numbers.
 */
#include "plan/plan_check.h"

double crn_plan_growth_at(const crn_plan_growth *g, double t)
{
    return g->floor - g->span * expm1(-t / g->theta);
}

double crn_plan_cost(const crn_plan_model *m, size_t level, double t)
{
    const cairn_plan_level *l = &m->level[level];
    return l->fixed + crn_plan_growth_at(&m->changed, t) / l->bandwidth;
}

static cairn_status check_level(const cairn_plan_level *l)
{
    CRN_TRY(crn_plan_check_natural("the failure rate", l->rate));
    CRN_TRY(crn_plan_check_natural("the cost of a restart", l->restart));
    CRN_TRY(crn_plan_check_natural("the fixed cost of a mark", l->fixed));
    CRN_TRY(crn_plan_check_positive("the bandwidth", l->bandwidth));
    CRN_TRY(crn_plan_check_natural("the background time of a mark", l->background));
    return CAIRN_OK;
}

cairn_status crn_plan_model_check(const crn_plan_model *m)
{
    CRN_FAIL_IF(m->nlevels < 1 || m->nlevels > CRN_PLAN_LEVELS, CAIRN_EINVAL,
                "a model has 1 to %d levels, not %zu", CRN_PLAN_LEVELS, m->nlevels);
    CRN_TRY(crn_plan_check_natural("the data that always changes", m->changed.floor));
    CRN_TRY(crn_plan_check_natural("the data that changes with time", m->changed.span));
    CRN_TRY(crn_plan_check_positive("the time scale of change", m->changed.theta));
    for (size_t l = 0; l < m->nlevels; l++) {
        cairn_status rc = check_level(&m->level[l]);
        if (rc < 0) {
            crn_err_prefix("level %zu: ", l);
            return rc;
        }
    }
    return CAIRN_OK;
}

cairn_status crn_plan_schedule_check(const cairn_plan_schedule *s, size_t nlevels)
{
    CRN_TRY(crn_plan_check_positive("the interval", s->interval));
    CRN_FAIL_IF(s->ratio[0] != 1, CAIRN_EINVAL, "the ratio of the lowest level is %u: it must be 1",
                s->ratio[0]);
    for (size_t l = 1; l < nlevels; l++)
        CRN_FAIL_IF(s->ratio[l] < 1 || s->ratio[l] > CRN_PLAN_RATIO_MAX, CAIRN_EINVAL,
                    "the ratio of level %zu is %u: it must be 1 to %d", l, s->ratio[l],
                    CRN_PLAN_RATIO_MAX);
    return CAIRN_OK;
}

uint64_t crn_plan_period(const cairn_plan_schedule *s, size_t level)
{
    uint64_t period = 1;
    for (size_t l = 1; l <= level; l++)
        period *= s->ratio[l];
    return period;
}

size_t crn_plan_level_of(const cairn_plan_schedule *s, size_t nlevels, uint64_t n)
{
    size_t level = 0;
    for (uint64_t period = 1; level + 1 < nlevels; level++) {
        period *= s->ratio[level + 1];
        if (n % period)
            break;
    }
    return level;
}

double crn_plan_success(double rate, double d)
{
    return exp(-rate * d);
}

double crn_plan_failure(double rate_of_class, double rate, double d)
{
    return rate > 0 ? rate_of_class / rate * -expm1(-rate * d) : 0;
}

/* (4) divided out: 1 / rate - d / (exp(rate d) - 1), whose difference cancels for small rate d. */
double crn_plan_failure_time(double rate, double d)
{
    double x = rate * d;
    return x < 1e-4 ? d * (0.5 - x / 12) : 1 / rate - d / expm1(x);
}

/* What a failure leads to, in the mean over its class. */
typedef struct aftermath {
    double restarting; /* seconds spent in restarts, also those that fail */
    /* [l]: the probability that work is lost back to a mark of level l or higher */
    double reach[CRN_PLAN_LEVELS];
} aftermath;

/*
 * Restarts. A restart from level i takes restart[i] seconds if no failure comes; one of a class up
 * to i repeats it, one of a higher class j turns it into a restart from level j. So the highest
 * level is solved first and each lower one from those above it:
 *     time[i]     mean time in restarts from the first one at level i to the one that succeeds
 *     ends[i][j]  probability that the one that succeeds is at level j
 */
static aftermath solve_restarts(const crn_plan_model *m, double rate)
{
    double time[CRN_PLAN_LEVELS] = {0}, ends[CRN_PLAN_LEVELS][CRN_PLAN_LEVELS] = {{0}};
    aftermath mean = {0};
    for (size_t i = m->nlevels; i-- > 0;) {
        double r = m->level[i].restart;
        double ok = crn_plan_success(rate, r);
        double spent = ok * r + (1 - ok) * crn_plan_failure_time(rate, r);
        double leaves = ok;
        ends[i][i] = ok;
        for (size_t j = i + 1; j < m->nlevels; j++) {
            double p = crn_plan_failure(m->level[j].rate, rate, r);
            leaves += p;
            if (p > 0) /* time[j] may be infinite */
                spent += p * time[j];
            for (size_t k = j; k < m->nlevels; k++)
                ends[i][k] += p * ends[j][k];
        }
        time[i] = spent / leaves;
        for (size_t k = i; k < m->nlevels; k++)
            ends[i][k] = leaves > 0 ? ends[i][k] / leaves : 0;
    }
    for (size_t i = 0; i < m->nlevels; i++) {
        double share = m->level[i].rate / rate;
        if (share == 0)
            continue;
        mean.restarting += share * time[i];
        for (size_t k = i; k < m->nlevels; k++)
            for (size_t l = 0; l <= k; l++)
                mean.reach[l] += share * ends[i][k];
    }
    return mean;
}

/* (exp(rate d) - 1) / rate: mean time to get d seconds without failure, all restarts being free. */
static double stretch(double rate, double d)
{
    return rate > 0 ? expm1(rate * d) / rate : d;
}

/*
 * Mean time from one mark of the highest level to the next.
 *
 * Let a cycle of level l be what lies between two marks of level l or higher. Its mean time is
 * proportional to 1 + rate * (restarts + work that a failure of a class above l would lose), and
 * a[k] is that factor for a cycle that ends with a mark of level k. A cycle of level l is ratio[l]
 * cycles of level l - 1; each makes the loss of those that follow larger by the same factor 'grow',
 * hence the geometric sum. reach[l] is the share of failures that lose work back to level l.
 */
static double solve_cycle(const crn_plan_model *m, const cairn_plan_schedule *s, double rate,
                          const aftermath *after)
{
    double a[CRN_PLAN_LEVELS] = {0};
    uint64_t period = 1;
    for (size_t k = 0; k < m->nlevels; k++) {
        period *= s->ratio[k];
        a[k] = stretch(rate, s->interval + crn_plan_cost(m, k, s->interval * (double)period));
    }
    for (size_t l = 1; l < m->nlevels; l++) {
        if (s->ratio[l] ==
            1) /* level l - 1 makes no marks of its own: what they cost is no matter */
            continue;
        double n = s->ratio[l] - 1.0, lost = rate * after->reach[l];
        double log_grow = log1p(lost * a[l - 1]);
        double before = lost > 0 ? expm1(n * log_grow) / lost : n * a[l - 1];
        for (size_t k = l; k < m->nlevels; k++)
            a[k] = before + a[k] * exp(n * log_grow);
    }
    return a[m->nlevels - 1] * (1 + rate * after->restarting);
}

crn_plan_prediction crn_plan_solve(const crn_plan_model *m, const cairn_plan_schedule *s)
{
    double rate = 0;
    for (size_t l = 0; l < m->nlevels; l++)
        rate += m->level[l].rate;
    aftermath after = {0};
    if (rate > 0)
        after = solve_restarts(m, rate);

    double work = s->interval * (double)crn_plan_period(s, m->nlevels - 1);
    double expected = solve_cycle(m, s, rate, &after);
    if (!(expected < HUGE_VAL)) /* also NaN: 0 times infinity, deep in "never" */
        expected = HUGE_VAL;
    return (crn_plan_prediction){.efficiency = work / expected, .work = work, .expected = expected};
}

cairn_status crn_plan_predict(const crn_plan_model *m, const cairn_plan_schedule *s,
                              crn_plan_prediction *ret)
{
    CRN_TRY(crn_plan_model_check(m));
    CRN_TRY(crn_plan_schedule_check(s, m->nlevels));
    *ret = crn_plan_solve(m, s);
    return CAIRN_OK;
}
