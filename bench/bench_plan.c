/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What tuning gains, as a table like Figure 3(a) of Amrizal et al. (docs/design/planner.md):
 * failure rates and costs of global marks by 1, 2 and 10, efficiency at the neutral start, with the
 * setting of their closed forms, after tuning, and at the best setting; how far prediction and
 * simulation are apart; and what a prediction and a search cost.
 *
 * Of the two sparse kernels the pace at which they change memory is measured here. The scale is
 * not: bandwidths and rates are theirs, and the state is set so large (2.5 GB, of which a tenth
 * is rewritten at once and the rest within about 20 minutes by the random kernel) that, as there, a
 * tenfold rate can be borne and a tenfold rate with tenfold cost can not.
 */
#include <math.h>

#include "bench.h"
#include "plan/plan.h"

enum { ROWS = 1 << 20, NONZEROS = 8, BLOCK = 4096, STEPS = 32, PER_STEP = ROWS / STEPS };

static const double STATE = 2.5e9, FLOOR = 0.1, RANDOM_PACE = 1250;

/* A sparse matrix in the form of its columns, and the vectors. */
typedef struct kernel {
    uint32_t *column; /* [ROWS][NONZEROS] */
    double *x, *y, *mark;
} kernel;

static kernel make_kernel(bool diagonal)
{
    kernel k = {0};
    bench_need(crn_alloc(&k.column, (size_t)ROWS * NONZEROS));
    bench_need(crn_alloc(&k.x, ROWS));
    bench_need(crn_alloc(&k.y, ROWS));
    bench_need(crn_alloc(&k.mark, ROWS));
    crn_rng rng = crn_rng_of(1, 0);
    for (size_t i = 0; i < ROWS; i++) {
        k.x[i] = 1 + crn_rng_unit(&rng);
        for (size_t j = 0; j < NONZEROS; j++)
            k.column[i * NONZEROS + j] =
                (uint32_t)(diagonal ? (i + j) % ROWS : crn_rng_below(&rng, ROWS));
    }
    return k;
}

static void free_kernel(kernel *k)
{
    free(k->column);
    free(k->x);
    free(k->y);
    free(k->mark);
}

static void multiply(kernel *k, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        double sum = 0;
        for (size_t j = 0; j < NONZEROS; j++)
            sum += k->x[k->column[i * NONZEROS + j]];
        k->y[i] = sum;
    }
}

/* Bytes of the blocks of y that differ from the mark. */
static double changed_bytes(const kernel *k)
{
    size_t n = 0;
    for (size_t i = 0; i < ROWS; i += BLOCK / sizeof *k->y)
        n += memcmp(&k->y[i], &k->mark[i], BLOCK) != 0;
    return (double)n * BLOCK;
}

/* Seconds that the kernel takes to change half of its result, by the curve through its growth. */
static double measure_pace(kernel *k)
{
    crn_plan_growth_fit fit = {0};
    double computing = 0, half = 0, total = (double)ROWS * sizeof *k->y;
    memcpy(k->mark, k->y, ROWS * sizeof *k->y);
    for (size_t i = 0; i < STEPS; i++) {
        double start = bench_seconds();
        multiply(k, i * PER_STEP, (i + 1) * PER_STEP);
        computing += bench_seconds() - start;
        crn_plan_growth_add(&fit, i % 2, computing, changed_bytes(k));
    }
    crn_plan_growth g = crn_plan_growth_solve(&fit, total);
    for (double t = 0; t < 10 * computing && half == 0; t += computing / 1000)
        half = crn_plan_growth_at(&g, t) >= total / 2 ? t : 0;
    return half;
}

/* How many times faster the diagonal kernel changes memory. */
static double compare_paces(void)
{
    kernel diagonal = make_kernel(true), random = make_kernel(false);
    double pace_d[BENCH_TURNS], pace_r[BENCH_TURNS];
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        memset(diagonal.y, 0, ROWS * sizeof *diagonal.y);
        memset(random.y, 0, ROWS * sizeof *random.y);
        pace_d[i] = measure_pace(&diagonal);
        pace_r[i] = measure_pace(&random);
    }
    free_kernel(&diagonal);
    free_kernel(&random);
    double d = bench_median(pace_d, BENCH_TURNS), r = bench_median(pace_r, BENCH_TURNS);
    bench_print(&(bench_result){.name = "plan.growth",
                                .ours = 1 / d,
                                .peer = 1 / r,
                                .unit = "half-states/s",
                                .note =
                                    "pace of change, diagonal by random sparse matrix; the paper "
                                    "has about 3"});
    return r / d;
}

static crn_plan_model paper_model(double rates, double costs, double pace)
{
    const double local = 6.25e9 / 8, global = 125e6 / 8;
    return (crn_plan_model){
        .nlevels = 2,
        .changed = {.floor = FLOOR * STATE, .span = (1 - FLOOR) * STATE, .theta = pace},
        .level = {{.rate = 0.1757e-2 * rates,
                   .restart = STATE / local,
                   .fixed = 0.05,
                   .bandwidth = local},
                  {.rate = 0.1778e-4 * rates,
                   .restart = STATE / global,
                   .fixed = 0.5,
                   .bandwidth = global / costs}}};
}

static crn_plan_limits limits(void)
{
    crn_plan_limits lim = crn_plan_limits_default();
    lim.ratio_max = 200;
    return lim;
}

static double efficiency(const crn_plan_model *m, const cairn_plan_schedule *s)
{
    crn_plan_prediction p;
    bench_need(crn_plan_predict(m, s, &p));
    return p.efficiency;
}

/* The schedule of a program whose marks cost what the model says, after so many decisions. */
static cairn_plan_schedule tune(const crn_plan_model *m, uint64_t nretuned)
{
    crn_plan_options opt = {
        .nlevels = 2, .trust = 2, .limits = limits(), .rate = {m->level[0].rate, m->level[1].rate}};
    crn_plan_tuner t;
    double work = 0, last[CRN_PLAN_LEVELS] = {0};
    bench_need(crn_plan_tuner_init(&t, &opt));
    for (size_t l = 0; l < 2; l++)
        bench_need(crn_plan_tuner_restart(&t, l, m->level[l].restart));
    while (t.nretuned < nretuned) {
        size_t level = crn_plan_tuner_level(&t);
        crn_plan_measure mark = {.level = level, .full = t.nmarks == 0, .total = STATE};
        work += mark.full ? 0 : t.schedule.interval;
        mark.elapsed = work - last[level];
        mark.nbytes = mark.full ? STATE : crn_plan_growth_at(&m->changed, mark.elapsed);
        mark.held = m->level[level].fixed + mark.nbytes / m->level[level].bandwidth;
        bench_need(crn_plan_tuner_mark(&t, &mark));
        for (size_t l = 0; l <= level; l++)
            last[l] = work;
    }
    return t.schedule;
}

enum { ROWS_OF_FIGURE = 18 };

typedef struct row {
    const char *kernel;
    double rates, costs;
    double neutral, closed, tuned, best; /* closed: as the paper tunes, by (7) to (9) */
    cairn_plan_schedule schedule;        /* after tuning */
} row;

static row make_row(size_t i, double faster)
{
    const double by[] = {1, 2, 10};
    bool random = i < ROWS_OF_FIGURE / 2;
    row r = {.kernel = random ? "random" : "diagonal", .rates = by[i / 3 % 3], .costs = by[i % 3]};
    crn_plan_model m = paper_model(r.rates, r.costs, random ? RANDOM_PACE : RANDOM_PACE / faster);
    crn_plan_limits lim = limits();
    cairn_plan_schedule neutral = crn_plan_neutral(2), best, closed;
    crn_plan_prediction at_best;
    bench_need(crn_plan_best(&m, &lim, &best, &at_best));
    if (crn_plan_closed(&m, &lim, &closed) == CAIRN_OK) /* else no setting is any good */
        r.closed = efficiency(&m, &closed);
    r.schedule = tune(&m, 8);
    r.neutral = efficiency(&m, &neutral);
    r.tuned = efficiency(&m, &r.schedule);
    r.best = at_best.efficiency;
    return r;
}

static void print_row(const row *r)
{
    printf("%-9s  x%-4g  x%-4g  %6.1f %%  %6.1f %%  %+6.1f  %6.1f %%  %+6.1f  %6.1f %%  %8.1f s  "
           "%4u:1\n",
           r->kernel, r->rates, r->costs, 100 * r->neutral, 100 * r->closed,
           100 * (r->closed - r->neutral), 100 * r->tuned, 100 * (r->tuned - r->neutral),
           100 * r->best, r->schedule.interval, r->schedule.ratio[1] - 1);
}

static void print_figure(double faster)
{
    row rows[ROWS_OF_FIGURE];
    double worst = 1;
    printf("kernel     rates  costs   neutral  (7)-(9)    gain     tuned    gain      best    "
           "interval   ratio\n");
    for (size_t i = 0; i < ROWS_OF_FIGURE; i++) {
        rows[i] = make_row(i, faster);
        worst = fmin(worst, rows[i].tuned / rows[i].best);
        print_row(&rows[i]);
    }
    for (size_t i = 0; i < ROWS_OF_FIGURE; i++) {
        const row *r = &rows[i];
        char name[64];
        snprintf(name, sizeof name, "plan.%s.rates%g.costs%g", r->kernel, r->rates, r->costs);
        bench_print(&(bench_result){.name = name,
                                    .ours = r->tuned,
                                    .peer = r->neutral,
                                    .unit = "efficiency",
                                    .bar = BENCH_AT_LEAST,
                                    .limit = 1,
                                    .note = "with tuning; the peer is the neutral start"});
    }
    bench_print(&(bench_result){.name = "plan.tuner",
                                .ours = worst,
                                .peer = 1,
                                .unit = "efficiency",
                                .bar = BENCH_AT_LEAST,
                                .limit = 0.98,
                                .note = "tuned by best, the worst of the table"});
}

static void check_model(void)
{
    crn_plan_model m = paper_model(2, 1, RANDOM_PACE);
    cairn_plan_schedule s = {.interval = 20, .ratio = {1, 30}};
    crn_plan_trial trial = {.work = 1e6, .wall_max = 1e9, .nruns = 50, .seed = 1, .shape = {1, 1}};
    crn_plan_result r;
    bench_need(crn_plan_simulate(&m, &s, &trial, &r));
    char note[128];
    snprintf(note, sizeof note, "predicted by simulated efficiency; standard error %.2g",
             r.error / r.efficiency);
    bench_print(&(bench_result){.name = "plan.model",
                                .ours = efficiency(&m, &s),
                                .peer = r.efficiency,
                                .unit = "efficiency",
                                .note = note});
    trial.shape[0] = trial.shape[1] = 0.7;
    bench_need(crn_plan_simulate(&m, &s, &trial, &r));
    bench_print(&(bench_result){.name = "plan.model.weibull",
                                .ours = efficiency(&m, &s),
                                .peer = r.efficiency,
                                .unit = "efficiency",
                                .note = "the same when failures come in bursts (shape 0.7)"});
}

static void time_search(size_t nlevels)
{
    crn_plan_model m = {.nlevels = nlevels, .changed = {.floor = 1e7, .span = 1e9, .theta = 300}};
    crn_plan_limits lim = crn_plan_limits_default();
    cairn_plan_schedule s;
    double search[BENCH_TURNS], predict[BENCH_TURNS];
    for (size_t l = 0; l < nlevels; l++)
        m.level[l] = (cairn_plan_level){.rate = 1e-3 / pow(5, (double)l),
                                        .restart = 2 + 10.0 * (double)l,
                                        .fixed = 0.05,
                                        .bandwidth = 1e9 / pow(4, (double)l)};
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        double start = bench_seconds();
        bench_need(crn_plan_best(&m, &lim, &s, NULL));
        search[i] = bench_seconds() - start;
        start = bench_seconds();
        for (int k = 0; k < 1000; k++) {
            s.interval *= 1.000001;
            (void)efficiency(&m, &s);
        }
        predict[i] = (bench_seconds() - start) / 1000;
    }
    char name[32];
    snprintf(name, sizeof name, "plan.search.levels%zu", nlevels);
    bench_print(&(bench_result){.name = name,
                                .ours = bench_median(search, BENCH_TURNS),
                                .peer = bench_median(predict, BENCH_TURNS),
                                .unit = "s",
                                .note = "the best schedule; the peer is one prediction"});
}

int main(void)
{
    print_figure(compare_paces());
    check_model();
    for (size_t nlevels = 2; nlevels <= CRN_PLAN_LEVELS; nlevels++)
        time_search(nlevels);
    return 0;
}
