/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn plan: the best interval and levels, from numbers on the command line; how flat the optimum
 * is, and what becomes of it when failures or global marks get worse.
 */
#include "cmd/cmd.h"

#include <math.h>

#include <cairn/planner.h>

static const char usage[] =
    "cairn plan --state SIZE [--at-once SIZE] [--pace TIME] [--local SPEC] [--partner SPEC] "
    "[--encoded SPEC] [--global SPEC] [--simulate RUNS] [--json]";

/* What the command line asks for. */
typedef struct request {
    cairn_plan_input in;
    const char *level[CAIRN_PLAN_LEVELS]; /* names of those given, the cheapest first */
    unsigned nruns;                       /* to simulate, or 0 */
} request;

typedef struct words {
    const char *state, *at_once, *pace, *runs;
    const char *spec[CAIRN_PLAN_LEVELS];
    bool json;
} words;

static const char *const LEVEL_NAMES[CAIRN_PLAN_LEVELS] = {"local", "partner", "encoded", "global"};

static cairn_status parse_bytes(const char *text, double *ret)
{
    uint64_t nbytes;
    CRN_TRY(crn_parse_nbytes(text, &nbytes));
    *ret = (double)nbytes;
    return CAIRN_OK;
}

/* What one SPEC says; restart below 0 when it does not say. */
typedef struct spec {
    double bandwidth, mtbf, fixed, restart, background;
} spec;

typedef struct spec_key {
    const char *name;
    cairn_status (*parse)(const char *text, double *ret);
    size_t off;
} spec_key;

static const spec_key SPEC_KEYS[] = {
    {"bandwidth", parse_bytes, offsetof(spec, bandwidth)},
    {"mtbf", crn_parse_seconds, offsetof(spec, mtbf)},
    {"fixed", crn_parse_seconds, offsetof(spec, fixed)},
    {"restart", crn_parse_seconds, offsetof(spec, restart)},
    {"background", crn_parse_seconds, offsetof(spec, background)},
};

/* One "key=value" of a SPEC; word is changed. */
static cairn_status parse_pair(char *word, spec *s)
{
    char *value = strchr(word, '=');
    CRN_FAIL_IF(!value, CAIRN_EINVAL, "'%s' is not of the form KEY=VALUE", word);
    *value++ = 0;
    crn_nearest near = crn_nearest_to(word);
    for (size_t i = 0; i < sizeof SPEC_KEYS / sizeof *SPEC_KEYS; i++) {
        const spec_key *k = &SPEC_KEYS[i];
        if (strcmp(word, k->name) == 0)
            return k->parse(value, (double *)((char *)s + k->off));
        crn_nearest_offer(&near, k->name);
    }
    return crn_fail(CAIRN_EINVAL, "a level has no '%s'%s", word, near.hint);
}

static cairn_status parse_pairs(char *text, spec *s)
{
    for (char *save, *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save))
        CRN_TRY(parse_pair(word, s));
    CRN_FAIL_IF(s->bandwidth == 0, CAIRN_EINVAL, "a level needs a bandwidth: bandwidth=SIZE");
    CRN_FAIL_IF(s->mtbf == 0, CAIRN_EINVAL,
                "a level needs the mean time between failures that need it: mtbf=TIME");
    return CAIRN_OK;
}

static cairn_status parse_level(const char *name, const char *text, double state,
                                cairn_plan_level *ret)
{
    spec s = {.restart = -1};
    char *copy;
    CRN_TRY(crn_strdup(text, &copy));
    cairn_status rc = parse_pairs(copy, &s);
    free(copy);
    if (rc < 0) {
        crn_err_prefix("--%s: ", name);
        return rc;
    }
    *ret = (cairn_plan_level){.rate = 1 / s.mtbf,
                              .restart = s.restart >= 0 ? s.restart : state / s.bandwidth,
                              .fixed = s.fixed,
                              .bandwidth = s.bandwidth,
                              .background = s.background};
    return CAIRN_OK;
}

static cairn_status parse_runs(const char *text, unsigned *ret)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    CRN_FAIL_IF(*end || text[0] < '0' || text[0] > '9' || n < 2 || n > 100000, CAIRN_EINVAL,
                "--simulate: '%s' is not a number of runs from 2 to 100000", text);
    *ret = (unsigned)n;
    return CAIRN_OK;
}

/* Without --pace all of the state changes at once; with it only what --at-once says. */
static cairn_status parse_change(const words *w, double state, cairn_plan_input *in)
{
    in->changed_at_once = w->pace ? 0 : state;
    in->change_pace = 1;
    if (w->at_once)
        CRN_TRY(parse_bytes(w->at_once, &in->changed_at_once));
    CRN_FAIL_IF(in->changed_at_once > state, CAIRN_EINVAL,
                "--at-once: '%s' is more than the state, '%s'", w->at_once, w->state);
    if (w->pace) {
        CRN_TRY(crn_parse_seconds(w->pace, &in->change_pace));
        in->changed_in_time = state - in->changed_at_once;
    }
    return CAIRN_OK;
}

static cairn_status parse_request(const words *w, request *ret)
{
    request r = {.in = {.struct_bytes = sizeof r.in}};
    double state;
    CRN_TRY(parse_bytes(w->state, &state));
    CRN_TRY(parse_change(w, state, &r.in));
    for (size_t l = 0; l < CAIRN_PLAN_LEVELS; l++) {
        if (!w->spec[l])
            continue;
        r.level[r.in.nlevels] = LEVEL_NAMES[l];
        CRN_TRY(parse_level(LEVEL_NAMES[l], w->spec[l], state, &r.in.level[r.in.nlevels++]));
    }
    if (w->runs)
        CRN_TRY(parse_runs(w->runs, &r.nruns));
    *ret = r;
    return CAIRN_OK;
}

/* Below this a week of work takes twenty years. */
static const double HOPELESS = 0.001;

enum { SCALES = 3, AROUND = 5 };
static const double SCALE[SCALES] = {1, 2, 10};
static const double STEP[AROUND] = {0.25, 0.5, 1, 2, 4};

typedef struct answer {
    cairn_plan_schedule best;
    cairn_plan_schedule around[AROUND];        /* the same levels, other intervals */
    cairn_plan_schedule worse[SCALES][SCALES]; /* [failures][costs of the highest level] */
    cairn_plan_trial trial;
} answer;

static cairn_status solve_worse(const request *r, double failures, double costs,
                                cairn_plan_schedule *ret)
{
    cairn_plan_input in = r->in;
    cairn_plan_level *top = &in.level[in.nlevels - 1];
    for (size_t l = 0; l < in.nlevels; l++)
        in.level[l].rate *= failures;
    top->fixed *= costs;
    top->bandwidth /= costs;
    ret->struct_bytes = sizeof *ret;
    CRN_TRY(cairn_plan_best(&in, ret));
    return CAIRN_OK;
}

static cairn_status simulate(const request *r, answer *a)
{
    double marks = 1;
    for (size_t l = 0; l < r->in.nlevels; l++)
        marks *= a->best.ratio[l];
    /* long enough for many marks of the highest level, so that where a run ends does not matter */
    a->trial = (cairn_plan_trial){.struct_bytes = sizeof a->trial,
                                  .nruns = r->nruns,
                                  .seed = 1,
                                  .work = 50 * marks * a->best.interval};
    CRN_TRY(cairn_plan_simulate(&r->in, &a->best, &a->trial));
    return CAIRN_OK;
}

static cairn_status solve(const request *r, answer *a)
{
    *a = (answer){.best = {.struct_bytes = sizeof a->best}};
    CRN_TRY(cairn_plan_best(&r->in, &a->best));
    for (size_t i = 0; i < AROUND; i++) {
        a->around[i] = a->best;
        a->around[i].interval *= STEP[i];
        CRN_TRY(cairn_plan_predict(&r->in, &a->around[i]));
    }
    for (size_t i = 0; i < SCALES; i++)
        for (size_t k = 0; k < SCALES; k++)
            CRN_TRY(solve_worse(r, SCALE[i], SCALE[k], &a->worse[i][k]));
    if (r->nruns > 0 && a->best.efficiency >= HOPELESS)
        CRN_TRY(simulate(r, a));
    return CAIRN_OK;
}

/* Four digits: the numbers that went in have no more. */
static json_t *json_number(double v)
{
    char text[CRN_NUMBER_TEXT];
    snprintf(text, sizeof text, "%.4g", v);
    return json_real(strtod(text, NULL));
}

static json_t *json_schedule(const request *r, const cairn_plan_schedule *s)
{
    json_t *every = json_object();
    int period = 1;
    for (size_t l = 0; l < r->in.nlevels; l++) {
        period *= (int)s->ratio[l];
        json_object_set_new(every, r->level[l], json_integer(period));
    }
    return json_pack("{s:o, s:o, s:o}", "interval", json_number(s->interval), "every", every,
                     "efficiency", json_number(s->efficiency));
}

static json_t *json_worse(const request *r, const answer *a)
{
    json_t *list = json_array();
    for (size_t i = 0; i < SCALES; i++)
        for (size_t k = 0; k < SCALES; k++) {
            json_t *row = json_schedule(r, &a->worse[i][k]);
            json_object_set_new(row, "failures", json_integer((int)SCALE[i]));
            json_object_set_new(row, "costs", json_integer((int)SCALE[k]));
            json_array_append_new(list, row);
        }
    return list;
}

static int print_json(const request *r, const answer *a, int code)
{
    json_t *around = json_array();
    for (size_t i = 0; i < AROUND; i++)
        json_array_append_new(around, json_schedule(r, &a->around[i]));
    json_t *all = json_pack("{s:o, s:o, s:o}", "best", json_schedule(r, &a->best), "around", around,
                            "worse", json_worse(r, a));
    if (a->trial.efficiency > 0)
        json_object_set_new(all, "simulated",
                            json_pack("{s:o, s:o}", "efficiency", json_number(a->trial.efficiency),
                                      "error", json_number(a->trial.error)));
    return cmd_print_json(all, code);
}

/* "1 in 12 partner, 1 in 120 global": levels that no mark ends at are left out. */
static void format_levels(const request *r, const cairn_plan_schedule *s, char *buf, size_t cap)
{
    unsigned period = 1;
    size_t used = 0;
    buf[0] = 0;
    for (size_t l = 0; l < r->in.nlevels && used < cap; l++) {
        period *= s->ratio[l];
        if (l + 1 < r->in.nlevels && s->ratio[l + 1] == 1)
            continue;
        const char *comma = used ? ", " : "";
        used += (size_t)(period == 1 ? snprintf(buf + used, cap - used, "%s%s", comma, r->level[l])
                                     : snprintf(buf + used, cap - used, "%s1 in %u %s", comma,
                                                period, r->level[l]));
    }
}

static void print_schedule(cmd_columns *t, const request *r, const cairn_plan_schedule *s)
{
    char interval[CRN_NUMBER_TEXT], levels[160];
    format_levels(r, s, levels, sizeof levels);
    cmd_cell(t, "%s", crn_format_seconds(s->interval, interval, sizeof interval));
    cmd_cell(t, "%s", levels);
    cmd_cell(t, "%.1f %%", 100 * s->efficiency);
}

static int print_text(const request *r, const answer *a, int code)
{
    char interval[CRN_NUMBER_TEXT], levels[160];
    if (code == CMD_NO) {
        printf("no schedule lets such a run end: marks or restarts take longer than failures let "
               "them\n");
        return code;
    }
    format_levels(r, &a->best, levels, sizeof levels);
    printf("a mark every %s of computing: %s\n",
           crn_format_seconds(a->best.interval, interval, sizeof interval), levels);
    printf("efficiency %.1f %%", 100 * a->best.efficiency);
    if (a->trial.efficiency > 0)
        printf(", simulated %.1f +- %.1f %%", 100 * a->trial.efficiency, 196 * a->trial.error);
    printf("\n\nother intervals\n");
    cmd_columns around = {.align = "rlr"}, worse = {.align = "llrlr"};
    for (size_t i = 0; i < AROUND; i++)
        print_schedule(&around, r, &a->around[i]);
    if (cmd_columns_print(&around, 2, CMD_YES) != CMD_YES)
        return CMD_UNKNOWN;
    printf("\nif failures and %s marks get worse\n", r->level[r->in.nlevels - 1]);
    for (size_t i = 0; i < SCALES; i++)
        for (size_t k = 0; k < SCALES; k++) {
            cmd_cell(&worse, "failures x%g", SCALE[i]);
            cmd_cell(&worse, "costs x%g", SCALE[k]);
            print_schedule(&worse, r, &a->worse[i][k]);
        }
    return cmd_columns_print(&worse, 2, code);
}

static bool has_level(const words *w)
{
    for (size_t l = 0; l < CAIRN_PLAN_LEVELS; l++)
        if (w->spec[l])
            return true;
    return false;
}

int cmd_plan(int argc, char **argv)
{
    words w = {0};
    request r;
    answer a;
    int code;
    const cmd_option options[] = {
        CMD_TEXT('s', "state", "SIZE", &w.state, "how much a full mark holds"),
        CMD_TEXT(0, "at-once", "SIZE", &w.at_once, "how much of it changes within a step"),
        CMD_TEXT(0, "pace", "TIME", &w.pace, "in which two thirds of the rest change"),
        CMD_TEXT(0, "local", "SPEC", &w.spec[0], "the level that survives processes"),
        CMD_TEXT(0, "partner", "SPEC", &w.spec[1], "the level that survives a node"),
        CMD_TEXT(0, "encoded", "SPEC", &w.spec[2], "the level that survives several nodes"),
        CMD_TEXT(0, "global", "SPEC", &w.spec[3], "the level that survives the machine"),
        CMD_TEXT(0, "simulate", "RUNS", &w.runs, "also simulate so many runs"),
        CMD_JSON(&w.json),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc > 0)
        return cmd_misuse(usage, "'%s' is too much", argv[0]);
    if (!w.state || !has_level(&w))
        return cmd_misuse(usage, "--state and at least one level are needed");
    if (parse_request(&w, &r) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    if (solve(&r, &a) < 0)
        return cmd_fail("%s", cairn_error_text());
    code = a.best.efficiency >= HOPELESS ? CMD_YES : CMD_NO;
    return w.json ? print_json(&r, &a, code) : print_text(&r, &a, code);
}
