/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Curves through measurements. Both are weighted least squares in which each new sample lowers the
 * weight of the older ones by KEEP: the curve follows a program or a file system that changes,
 * within about ten marks. Neither fit can fail or turn negative, however few or odd the samples.
 */
#include "plan/plan_check.h"

static const double KEEP = 0.9;

static void add(crn_plan_line *f, double w, double x, double y)
{
    f->w += w;
    f->x += w * x;
    f->y += w * y;
    f->xx += w * x * x;
    f->xy += w * x * y;
}

/*
 * ridge: the weight of a pull of the constant part towards 0. It decides, in favour of a line
 * through the origin, when the samples' x differ by less than about sqrt(ridge) of their mean.
 */
static void solve(const crn_plan_line *f, double ridge, double *ret_at0, double *ret_slope)
{
    double w = f->w * (1 + ridge), det = w * f->xx - f->x * f->x;
    double at0 = 0, slope = 0;
    if (det > 0) {
        at0 = (f->y * f->xx - f->x * f->xy) / det;
        slope = (w * f->xy - f->x * f->y) / det;
    }
    if (at0 < 0 || !(det > 0)) {
        at0 = 0;
        slope = f->xx > 0 ? f->xy / f->xx : 0;
    }
    if (slope < 0 || !(f->xx > 0)) {
        at0 = f->w > 0 ? f->y / f->w : 0;
        slope = 0;
    }
    *ret_at0 = at0;
    *ret_slope = slope;
}

void crn_plan_line_add(crn_plan_line *f, double x, double y)
{
    f->w *= KEEP, f->x *= KEEP, f->y *= KEEP, f->xx *= KEEP, f->xy *= KEEP;
    add(f, 1, x, y);
}

/* Times are noisy: a constant part is believed once the sizes of marks differ by a tenth. */
void crn_plan_line_solve(const crn_plan_line *f, double *ret_at0, double *ret_slope)
{
    solve(f, 0.01, ret_at0, ret_slope);
}

void crn_plan_growth_add(crn_plan_growth_fit *f, size_t level, double t, double nbytes)
{
    size_t i = f->n[level]++ % CRN_PLAN_SAMPLES;
    f->t[level][i] = t;
    f->nbytes[level][i] = nbytes;
}

/* The samples of all levels in a row, each with its weight. */
typedef struct samples {
    size_t n;
    struct {
        double w, t, nbytes;
    } at[CRN_PLAN_LEVELS * CRN_PLAN_SAMPLES];
    double t_min, t_max, nbytes_max; /* t_min: of those above 0 */
} samples;

static samples collect(const crn_plan_growth_fit *f)
{
    samples s = {.t_min = HUGE_VAL};
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++) {
        double w = 1;
        for (size_t age = 1; age <= CRN_MIN(f->n[l], CRN_PLAN_SAMPLES); age++, w *= KEEP) {
            size_t i = (f->n[l] - age) % CRN_PLAN_SAMPLES;
            s.at[s.n].w = w;
            s.at[s.n].t = f->t[l][i];
            s.at[s.n++].nbytes = f->nbytes[l][i];
            if (f->t[l][i] > 0)
                s.t_min = fmin(s.t_min, f->t[l][i]);
            s.t_max = fmax(s.t_max, f->t[l][i]);
            s.nbytes_max = fmax(s.nbytes_max, f->nbytes[l][i]);
        }
    }
    return s;
}

/*
 * Marks at two distances do not determine three parameters; then the curve without a floor is the
 * likelier one, and a small price for the floor finds it.
 */
static const double FLOOR_PRICE = 1e-4;

/* For a given pace the curve is a line over 1 - exp(-t / theta), capped at total. */
static crn_plan_growth fit_with(const samples *s, double theta, double total)
{
    crn_plan_line line = {0}, left = {0};
    for (size_t i = 0; i < s->n; i++) {
        double x = -expm1(-s->at[i].t / theta);
        add(&line, s->at[i].w, x, s->at[i].nbytes);
        add(&left, s->at[i].w, 1 - x, total - s->at[i].nbytes);
    }
    crn_plan_growth g = {.theta = theta};
    solve(&line, FLOOR_PRICE, &g.floor, &g.span);
    if (g.floor + g.span > total) { /* then through (1, total): what is left to change */
        g.span = left.xx > 0 ? fmin(fmax(left.xy / left.xx, 0), total) : 0;
        g.floor = total - g.span;
    }
    return g;
}

static double misfit(const samples *s, const crn_plan_growth *g)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        double off = s->at[i].nbytes - crn_plan_growth_at(g, s->at[i].t);
        sum += s->at[i].w * (off * off + FLOOR_PRICE * g->floor * g->floor);
    }
    return sum;
}

typedef struct found {
    crn_plan_growth g;
    double off;
} found;

/*
 * Try paces from slow to fast: of curves that fit alike the slowest is taken, which expects most of
 * what it has not seen yet.
 */
static void scan(const samples *s, double slow, double step, int npoints, double total, found *best)
{
    double alike = 1e-9 * s->nbytes_max * s->nbytes_max;
    for (int i = 0; i <= npoints; i++) {
        crn_plan_growth g = fit_with(s, slow * pow(step, i), total);
        double off = misfit(s, &g);
        if (off + alike < best->off)
            *best = (found){.g = g, .off = off};
    }
}

crn_plan_growth crn_plan_growth_solve(const crn_plan_growth_fit *f, double total)
{
    enum { COARSE = 48, FINE = 16 };
    samples s = collect(f);
    if (s.t_max == 0)
        return (crn_plan_growth){.floor = total, .theta = 1};

    double slow = 64 * s.t_max, step = pow(s.t_min / 16 / slow, 1.0 / COARSE);
    found best = {.g = {.theta = slow}, .off = HUGE_VAL};
    scan(&s, slow, step, COARSE, total, &best);
    scan(&s, best.g.theta / step, pow(step, 2.0 / FINE), FINE, total, &best);
    return best.g;
}
