/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The simulator: walks a run from event to event, with the model's costs and nothing else of it.
 * It keeps what the model only reasons about: for each level the mark that is there. Agreement of
 * the two is a test of both.
 */
#include "plan/plan_check.h"

/* Marks and failures of a run that are played: some seconds of ours, years of its own. */
enum { STEPS_MAX = 10000000 };

/* Where failures come from: the next one after those given out. */
typedef struct source source;
struct source {
    cairn_plan_failure (*next)(source *src); /* at = HUGE_VAL when there is none */
    const cairn_plan_failure *events;        /* recorded */
    size_t nevents, taken;
    const crn_plan_model *m; /* random: one renewal process per class */
    const crn_plan_trial *trial;
    crn_rng rng;
    double scale[CRN_PLAN_LEVELS], due[CRN_PLAN_LEVELS];
};

static cairn_plan_failure next_recorded(source *src)
{
    if (src->taken == src->nevents)
        return (cairn_plan_failure){.at = HUGE_VAL};
    return src->events[src->taken++];
}

/* Time to the next failure of a class: Weibull with the class's mean, by inversion. */
static double draw(source *src, size_t class)
{
    if (src->m->level[class].rate == 0)
        return HUGE_VAL;
    double u = crn_rng_unit(&src->rng);
    return src->scale[class] * pow(-log1p(-u), 1 / src->trial->shape[class]);
}

static cairn_plan_failure next_random(source *src)
{
    size_t first = 0;
    for (size_t l = 1; l < src->m->nlevels; l++)
        if (src->due[l] < src->due[first])
            first = l;
    cairn_plan_failure e = {.at = src->due[first], .level = first};
    src->due[first] += draw(src, first);
    return e;
}

static source random_source(const crn_plan_model *m, const crn_plan_trial *trial, unsigned run)
{
    source src = {.next = next_random, .m = m, .trial = trial, .rng = crn_rng_of(trial->seed, run)};
    for (size_t l = 0; l < m->nlevels; l++) {
        if (m->level[l].rate > 0)
            src.scale[l] = 1 / (m->level[l].rate * tgamma(1 + 1 / trial->shape[l]));
        src.due[l] = draw(&src, l);
    }
    return src;
}

/* A mark: the work that it holds, and its place in the pattern of levels. */
typedef struct point {
    double work;
    uint64_t nmarks;
} point;

typedef struct run {
    const crn_plan_model *m;
    const cairn_plan_schedule *s;
    source *src;
    cairn_plan_failure failure; /* the next one; never before 'now' */
    double now, wall_max;
    uint64_t nsteps;
    point at;                    /* the last mark that the program passed */
    point safe[CRN_PLAN_LEVELS]; /* the newest mark on each level */
    cairn_plan_outcome out;
} run;

static bool is_given_up(const run *r)
{
    return r->now >= r->wall_max || r->nsteps >= STEPS_MAX;
}

/* Let d seconds pass; false when a failure ends them, with the time spent in *ret_spent. */
static bool pass(run *r, double d, double *ret_spent)
{
    bool ok = r->now + d <= r->failure.at;
    *ret_spent = ok ? d : r->failure.at - r->now;
    r->now += *ret_spent;
    r->nsteps++;
    return ok;
}

/* The failure that has come: take it, and see to the one after it. */
static size_t suffer(run *r)
{
    size_t class = r->failure.level;
    r->out.nfailures[class]++;
    r->failure = r->src->next(r->src);
    return class;
}

/* Back to the newest mark that the failure leaves; the restart puts it on the levels below. */
static void restart(run *r, size_t class)
{
    double spent;
    while (!pass(r, r->m->level[class].restart, &spent)) {
        r->out.restarting += spent;
        size_t next = suffer(r);
        class = CRN_MAX(class, next);
        if (is_given_up(r))
            return;
    }
    r->out.restarting += spent;
    r->out.lost += r->at.work - r->safe[class].work;
    r->at = r->safe[class];
    for (size_t l = 0; l < class; l++)
        r->safe[l] = r->at;
}

/* Compute, then mark. */
static void advance(run *r, double work)
{
    double computing = CRN_MIN(r->s->interval, work - r->at.work), spent;
    point next = {.work = r->at.work + computing, .nmarks = r->at.nmarks + 1};
    size_t level = crn_plan_level_of(r->s, r->m->nlevels, next.nmarks);
    double cost = crn_plan_cost(r->m, level, next.work - r->safe[level].work);
    if (!pass(r, computing + cost, &spent)) {
        r->out.lost += CRN_MIN(spent, computing);
        r->out.held += CRN_MAX(spent - computing, 0);
        restart(r, suffer(r));
        return;
    }
    r->out.held += cost;
    r->out.nmarks[level]++;
    r->at = next;
    for (size_t l = 0; l <= level; l++)
        r->safe[l] = next;
}

static cairn_plan_outcome walk(const crn_plan_model *m, const cairn_plan_schedule *s, double work,
                               double wall_max, source *src)
{
    run r = {.m = m, .s = s, .src = src, .failure = src->next(src), .wall_max = wall_max};
    while (r.at.work < work && !is_given_up(&r))
        advance(&r, work);
    r.out.finished = r.at.work >= work;
    r.out.work = r.at.work;
    r.out.wall = r.now;
    return r.out;
}

static cairn_status check(const crn_plan_model *m, const cairn_plan_schedule *s, double work,
                          double wall_max)
{
    CRN_TRY(crn_plan_model_check(m));
    CRN_TRY(crn_plan_schedule_check(s, m->nlevels));
    CRN_TRY(crn_plan_check_positive("the work of the run", work));
    CRN_TRY(crn_plan_check_positive("the longest time of the run", wall_max));
    return CAIRN_OK;
}

cairn_status crn_plan_replay(const crn_plan_model *m, const cairn_plan_schedule *s, double work,
                             double wall_max, const cairn_plan_failure *events, size_t nevents,
                             cairn_plan_outcome *ret)
{
    CRN_TRY(check(m, s, work, wall_max));
    for (size_t i = 0; i < nevents; i++) {
        CRN_TRY(crn_plan_check_natural("the time of a failure", events[i].at));
        CRN_FAIL_IF(i > 0 && events[i].at < events[i - 1].at, CAIRN_EINVAL,
                    "failure %zu, at %g s, is earlier than the one before it", i, events[i].at);
        CRN_FAIL_IF(events[i].level >= m->nlevels, CAIRN_EINVAL,
                    "failure %zu is of class %zu, which no level survives", i, events[i].level);
    }
    source src = {.next = next_recorded, .events = events, .nevents = nevents};
    *ret = walk(m, s, work, wall_max, &src);
    return CAIRN_OK;
}

static void add_outcome(cairn_plan_outcome *sum, const cairn_plan_outcome *o)
{
    sum->work += o->work;
    sum->wall += o->wall;
    sum->held += o->held;
    sum->lost += o->lost;
    sum->restarting += o->restarting;
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++) {
        sum->nmarks[l] += o->nmarks[l];
        sum->nfailures[l] += o->nfailures[l];
    }
}

static cairn_status check_trial(const crn_plan_model *m, const crn_plan_trial *trial)
{
    CRN_FAIL_IF(trial->nruns < 2, CAIRN_EINVAL, "%u runs do not give an error: at least 2",
                trial->nruns);
    for (size_t l = 0; l < m->nlevels; l++)
        CRN_FAIL_IF(!(trial->shape[l] >= 0.1 && trial->shape[l] <= 100), CAIRN_EINVAL,
                    "the Weibull shape of level %zu is %g: it must be 0.1 to 100", l,
                    trial->shape[l]);
    return CAIRN_OK;
}

cairn_status crn_plan_simulate(const crn_plan_model *m, const cairn_plan_schedule *s,
                               const crn_plan_trial *trial, crn_plan_result *ret)
{
    CRN_TRY(crn_rng_present("a simulation"));
    CRN_TRY(check(m, s, trial->work, trial->wall_max));
    CRN_TRY(check_trial(m, trial));
    crn_plan_result res = {0};
    double n = trial->nruns, mean = 0, squares = 0; /* of efficiency's inverse, by Welford */
    for (unsigned i = 0; i < trial->nruns; i++) {
        source src = random_source(m, trial, i);
        cairn_plan_outcome o = walk(m, s, trial->work, trial->wall_max, &src);
        add_outcome(&res.mean, &o);
        res.nfinished += o.finished;
        double delta = o.wall - mean;
        mean += delta / (i + 1);
        squares += delta * (o.wall - mean);
    }
    /* Time is what adds up: its mean is unbiased, and efficiency's error follows from its. */
    res.efficiency = res.mean.work / res.mean.wall;
    res.error = res.efficiency * sqrt(squares / (n * (n - 1))) / mean;
    res.mean.finished = res.nfinished == trial->nruns;
    res.mean.work /= n, res.mean.wall /= n, res.mean.held /= n;
    res.mean.lost /= n, res.mean.restarting /= n;
    *ret = res;
    return CAIRN_OK;
}
