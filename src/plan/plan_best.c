/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The optimum. crn_plan_closed extends Young's interval level by level, as Amrizal et al. do for
 * two; crn_plan_best searches on the predicted efficiency. That surface may have several hills
 * (when what changed grows evenly, many tiny marks at the highest level are about as good as few
 * large ones with local ones between), but a prediction is cheap, so the search can afford to be
 * plain: a coarse grid of ratios and intervals, then a climb from the best point in each stretch of
 * intervals and from the closed form, by factors and by single steps, until none helps.
 */
#include "plan/plan_check.h"

crn_plan_limits crn_plan_limits_default(void)
{
    return (crn_plan_limits){.interval_min = 1, .interval_max = 86400, .ratio_max = 1000};
}

cairn_status crn_plan_limits_check(const crn_plan_limits *lim)
{
    CRN_TRY(crn_plan_check_positive("the shortest interval", lim->interval_min));
    CRN_TRY(crn_plan_check_positive("the longest interval", lim->interval_max));
    CRN_FAIL_IF(lim->interval_min > lim->interval_max, CAIRN_EINVAL,
                "the shortest interval, %g s, is above the longest, %g s", lim->interval_min,
                lim->interval_max);
    CRN_FAIL_IF(lim->ratio_max < 1 || lim->ratio_max > CRN_PLAN_RATIO_MAX, CAIRN_EINVAL,
                "the largest ratio is %u: it must be 1 to %d", lim->ratio_max, CRN_PLAN_RATIO_MAX);
    return CAIRN_OK;
}

static double clamp(double v, double lo, double hi)
{
    return fmin(fmax(v, lo), hi);
}

/*
 * Equations (7) to (9) for one level below another. With q = 1 - P = t1 / t2, inserting (9) into
 * (8) and squaring gives
 *     t2^2 q^2 - 2 M1 (c2 - c1) q - 2 M1 c1 = 0,
 * of which this is the positive root, in the form that does not cancel.
 */
static double share_of_higher(double c1, double mtbf1, double c2, double t2)
{
    double b = mtbf1 * (c2 - c1), c = 2 * mtbf1 * c1;
    double root = sqrt(b * b + t2 * t2 * c);
    if (b > 0)
        return (b + root) / (t2 * t2);
    return root - b > 0 ? c / (root - b) : 0;
}

/* The levels that get marks of their own, and the failures that each must answer for. */
typedef struct ladder {
    bool used[CRN_PLAN_LEVELS];
    double rate[CRN_PLAN_LEVELS];
    double t[CRN_PLAN_LEVELS]; /* computing time between marks of at least this level */
} ladder;

/*
 * One way down the ladder with marks of costs c[]. False when a level turned out not to be worth
 * its marks (q >= 1: those above come often enough for its failures): it is then unused, and its
 * failures have become those of the level above.
 */
static bool step_down(ladder *d, size_t nlevels, const double *c, double t_min, double t_max)
{
    size_t above = nlevels - 1;
    double mean = c[above]; /* of marks of at least the level above */
    d->t[above] = d->rate[above] > 0 ? sqrt(2 * mean / d->rate[above]) : t_max; /* (7) */
    d->t[above] = clamp(d->t[above], t_min, t_max);
    for (size_t l = above; l-- > 0;) {
        if (!d->used[l])
            continue;
        double q = d->rate[l] > 0 ? share_of_higher(c[l], 1 / d->rate[l], mean, d->t[above]) : 1;
        if (q >= 1) {
            d->used[l] = false;
            d->rate[above] += d->rate[l];
            return false;
        }
        d->t[l] = fmax(q * d->t[above], t_min); /* (9) */
        mean = (1 - q) * c[l] + q * mean;       /* (6) */
        above = l;
    }
    for (size_t l = nlevels - 1; l-- > 0;)
        if (!d->used[l])
            d->t[l] = d->t[l + 1];
    return true;
}

/*
 * Costs depend on the intervals and these on the costs: a fixed point. Growth curves are concave,
 * so doubling an interval at most doubles its cost, which the square root halves: each round at
 * least halves the error (in logarithms), and 50 leave none.
 */
static ladder solve_closed(const crn_plan_model *m, const crn_plan_limits *lim)
{
    enum { ROUNDS = 50 };
    double t_max = lim->interval_max * lim->ratio_max, c[CRN_PLAN_LEVELS] = {0};
    ladder d = {0};
    for (size_t l = 0; l < m->nlevels; l++)
        c[l] = crn_plan_cost(m, l, t_max);
    for (int i = 0; i < ROUNDS; i++) {
        for (size_t l = 0; l < m->nlevels; l++) {
            d.used[l] = true;
            d.rate[l] = m->level[l].rate;
        }
        while (!step_down(&d, m->nlevels, c, lim->interval_min, t_max))
            ; /* each time with one level less */
        for (size_t l = 0; l < m->nlevels; l++)
            c[l] = crn_plan_cost(m, l, d.t[l]);
    }
    return d;
}

static cairn_plan_schedule schedule_of(const ladder *d, size_t nlevels, const crn_plan_limits *lim)
{
    cairn_plan_schedule s = {.interval = clamp(d->t[0], lim->interval_min, lim->interval_max),
                             .ratio = {1}};
    double t = s.interval;
    for (size_t l = 1; l < nlevels; l++) {
        s.ratio[l] = (unsigned)clamp(round(d->t[l] / t), 1, lim->ratio_max);
        t *= s.ratio[l];
    }
    return s;
}

static cairn_status check(const crn_plan_model *m, const crn_plan_limits *lim)
{
    CRN_TRY(crn_plan_model_check(m));
    CRN_TRY(crn_plan_limits_check(lim));
    return CAIRN_OK;
}

cairn_status crn_plan_closed(const crn_plan_model *m, const crn_plan_limits *lim,
                             cairn_plan_schedule *ret)
{
    CRN_TRY(check(m, lim));
    ladder d = solve_closed(m, lim);
    for (size_t l = 0; l < m->nlevels; l++) {
        double cost = crn_plan_cost(m, l, d.t[l]);
        CRN_FAIL_IF(d.used[l] && cost * d.rate[l] >= 1, CAIRN_EINVAL,
                    "a mark at level %zu takes %g s but a failure that needs it comes every %g s",
                    l, cost, 1 / d.rate[l]);
    }
    *ret = schedule_of(&d, m->nlevels, lim);
    return CAIRN_OK;
}

/* A schedule and what it gives. */
typedef struct candidate {
    cairn_plan_schedule s;
    crn_plan_prediction p;
} candidate;

static double efficiency_at(const crn_plan_model *m, cairn_plan_schedule s, double interval)
{
    s.interval = interval;
    return crn_plan_solve(m, &s).efficiency;
}

/*
 * The largest efficiency in [lo, hi], which has one maximum there: golden sections of the
 * logarithm, because what matters is an interval's ratio to the best one.
 */
static double narrow(const crn_plan_model *m, const cairn_plan_schedule *s, double lo, double hi)
{
    enum { STEPS = 30 }; /* 0.618^30 < 1e-6 of the bracket: the optimum is flat far wider */
    const double golden = 0.6180339887498949;
    double a = log(lo), b = log(hi);
    double x = b - golden * (b - a), y = a + golden * (b - a);
    double at_x = efficiency_at(m, *s, exp(x)), at_y = efficiency_at(m, *s, exp(y));
    for (int i = 0; i < STEPS; i++) {
        if (at_x >= at_y) {
            b = y, y = x, at_y = at_x;
            x = b - golden * (b - a);
            at_x = efficiency_at(m, *s, exp(x));
        } else {
            a = x, x = y, at_x = at_y;
            y = a + golden * (b - a);
            at_y = efficiency_at(m, *s, exp(y));
        }
    }
    return exp((a + b) / 2);
}

/* The interval that the ratios of s allow: no level is asked for a mark before its last is safe. */
static double shortest(const crn_plan_model *m, const crn_plan_limits *lim,
                       const cairn_plan_schedule *s)
{
    double lo = lim->interval_min;
    for (size_t l = 0; l < m->nlevels; l++)
        lo = fmax(lo, m->level[l].background / (double)crn_plan_period(s, l));
    return fmin(lo, lim->interval_max);
}

/* Take next in place of best when it is better by more than rounding; was it? */
static bool take_better(candidate *best, const candidate *next)
{
    if (!(next->p.efficiency > best->p.efficiency * (1 + 1e-12)))
        return false;
    *best = *next;
    return true;
}

/* Best interval for the ratios of c, within a factor of the one that it has; never a worse one. */
static void best_near(const crn_plan_model *m, const crn_plan_limits *lim, candidate *c,
                      double factor)
{
    double lo = shortest(m, lim, &c->s), hi = lim->interval_max;
    c->s.interval = clamp(c->s.interval, lo, hi);
    c->p = crn_plan_solve(m, &c->s);
    candidate next = *c;
    next.s.interval =
        narrow(m, &c->s, fmax(lo, c->s.interval / factor), fmin(hi, c->s.interval * factor));
    next.s.interval = clamp(next.s.interval, lo, hi);
    next.p = crn_plan_solve(m, &next.s);
    take_better(c, &next);
}

/* Try the ratios of best with those of levels l and (unless it is 0) k changed. */
static bool try_ratios(const crn_plan_model *m, const crn_plan_limits *lim, candidate *best,
                       size_t l, double r, size_t k, double rk)
{
    candidate next = *best;
    next.s.ratio[l] = (unsigned)clamp(round(r), 1, lim->ratio_max);
    if (k)
        next.s.ratio[k] = (unsigned)clamp(round(rk), 1, lim->ratio_max);
    if (memcmp(next.s.ratio, best->s.ratio, sizeof next.s.ratio) == 0)
        return false;
    best_near(m, lim, &next, 8);
    return take_better(best, &next);
}

/* All moves of one ratio: by one and by factors, alone or with the next taking up the change. */
static bool move_ratio(const crn_plan_model *m, const crn_plan_limits *lim, candidate *best,
                       size_t l)
{
    const double factor[] = {4, 2, 1.25, 0.8, 0.5, 0.25};
    bool moved = false;
    for (size_t i = 0; i < sizeof factor / sizeof *factor; i++) {
        double r = best->s.ratio[l];
        moved |= try_ratios(m, lim, best, l, r * factor[i], 0, 0);
        if (l + 1 < m->nlevels)
            moved |= try_ratios(m, lim, best, l, best->s.ratio[l] * factor[i], l + 1,
                                best->s.ratio[l + 1] / factor[i]);
    }
    moved |= try_ratios(m, lim, best, l, best->s.ratio[l] + 1.0, 0, 0);
    moved |= try_ratios(m, lim, best, l, best->s.ratio[l] - 1.0, 0, 0);
    return moved;
}

static void climb(const crn_plan_model *m, const crn_plan_limits *lim, candidate *best)
{
    enum { ROUNDS = 20 }; /* factors reach any ratio in fewer */
    bool moved = true;
    best_near(m, lim, best, 2);
    for (int i = 0; i < ROUNDS && moved; i++) {
        moved = false;
        for (size_t l = 1; l < m->nlevels; l++)
            moved |= move_ratio(m, lim, best, l);
    }
}

enum { POINTS = 24, STRETCHES = 8 };

/* The best point of the grid in each stretch of intervals; efficiency -1 where there is none. */
typedef struct grid {
    double lo, step; /* the i-th interval is lo * step^i */
    candidate best[STRETCHES];
} grid;

static grid empty_grid(const crn_plan_limits *lim)
{
    grid g = {.lo = lim->interval_min,
              .step = pow(lim->interval_max / lim->interval_min, 1.0 / POINTS)};
    for (size_t i = 0; i < STRETCHES; i++)
        g.best[i].p.efficiency = -1;
    return g;
}

/* All intervals for the ratios of s. */
static void scan_intervals(const crn_plan_model *m, const crn_plan_limits *lim,
                           const cairn_plan_schedule *s, grid *g)
{
    candidate c = {.s = *s};
    double lo = shortest(m, lim, s);
    for (size_t i = 0; i <= POINTS; i++) {
        c.s.interval = clamp(g->lo * pow(g->step, (double)i), lo, lim->interval_max);
        c.p = crn_plan_solve(m, &c.s);
        candidate *best = &g->best[CRN_MIN(i * STRETCHES / POINTS, STRETCHES - 1)];
        if (c.p.efficiency > best->p.efficiency)
            *best = c;
    }
}

/* Ratios in powers of four, of all levels from l up: at most 7 values for each of 3 levels. */
static void scan_ratios(const crn_plan_model *m, const crn_plan_limits *lim, size_t l,
                        cairn_plan_schedule *s, grid *g)
{
    if (l == m->nlevels) {
        scan_intervals(m, lim, s, g);
        return;
    }
    for (unsigned r = 1; r <= lim->ratio_max; r *= 4) {
        s->ratio[l] = r;
        scan_ratios(m, lim, l + 1, s, g);
    }
}

cairn_status crn_plan_best(const crn_plan_model *m, const crn_plan_limits *lim,
                           cairn_plan_schedule *ret, crn_plan_prediction *ret_prediction)
{
    CRN_TRY(check(m, lim));
    ladder d = solve_closed(m, lim);
    candidate best = {.s = schedule_of(&d, m->nlevels, lim)};
    climb(m, lim, &best);
    grid g = empty_grid(lim);
    cairn_plan_schedule s = {.ratio = {1}};
    scan_ratios(m, lim, 1, &s, &g);
    for (size_t i = 0; i < STRETCHES; i++) {
        climb(m, lim, &g.best[i]);
        take_better(&best, &g.best[i]);
    }
    *ret = best.s;
    if (ret_prediction)
        *ret_prediction = best.p;
    return CAIRN_OK;
}

cairn_status crn_plan_best_interval(const crn_plan_model *m, const crn_plan_limits *lim,
                                    cairn_plan_schedule *s, crn_plan_prediction *ret_prediction)
{
    CRN_TRY(check(m, lim));
    cairn_plan_schedule any = *s;
    any.interval = lim->interval_min;
    CRN_TRY(crn_plan_schedule_check(&any, m->nlevels));
    grid g = empty_grid(lim);
    scan_intervals(m, lim, &any, &g);
    candidate best = g.best[0];
    for (size_t i = 0; i < STRETCHES; i++) {
        best_near(m, lim, &g.best[i], g.step);
        take_better(&best, &g.best[i]);
    }
    *s = best.s;
    if (ret_prediction)
        *ret_prediction = best.p;
    return CAIRN_OK;
}
