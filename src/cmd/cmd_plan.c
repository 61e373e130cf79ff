/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn plan: the best interval and levels, from numbers on the command line or from a run.
 */
#include "cmd/cmd_plan.h"

#define LEVEL_USAGE(id, word, ...) "[--" #word " SPEC] "

static const char usage[] = "cairn plan --state SIZE [--at-once SIZE] [--pace TIME] " CRN_LEVELS(
    LEVEL_USAGE, LEVEL_USAGE) "[--simulate RUNS] [--json]\n"
                              "cairn plan --trail TRAIL[/RUN] [--simulate RUNS] [--json]";

typedef struct words {
    const char *state, *at_once, *pace, *runs, *trail;
    const char *spec[CAIRN_PLAN_LEVELS];
    bool json;
} words;

static cairn_status parse_bytes(const char *text, double *ret)
{
    uint64_t nbytes;
    CRN_TRY(crn_parse_nbytes(text, &nbytes));
    *ret = (double)nbytes;
    return CAIRN_OK;
}

/* The values of one SPEC; restart is below 0 when it is not given. */
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

static cairn_status parse_request(const words *w, cmd_plan_request *ret)
{
    cmd_plan_request r = {.in = {.struct_bytes = sizeof r.in}};
    double state;
    CRN_TRY(parse_bytes(w->state, &state));
    CRN_TRY(parse_change(w, state, &r.in));
    for (size_t l = 0; l < CAIRN_PLAN_LEVELS; l++) {
        if (!w->spec[l])
            continue;
        const char *name = crn_level_name((crn_level)l);
        r.level[r.in.nlevels] = name;
        CRN_TRY(parse_level(name, w->spec[l], state, &r.in.level[r.in.nlevels++]));
    }
    if (w->runs)
        CRN_TRY(parse_runs(w->runs, &r.nruns));
    *ret = r;
    return CAIRN_OK;
}

static bool has_level(const words *w)
{
    for (size_t l = 0; l < CAIRN_PLAN_LEVELS; l++)
        if (w->spec[l])
            return true;
    return false;
}

static int plan_numbers(const words *w)
{
    cmd_plan_request r;
    cmd_plan_answer a;
    if (parse_request(w, &r) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    const int code = cmd_plan_solve(&r, &a);
    if (code == CMD_UNKNOWN)
        return code;
    return w->json ? cmd_print_json(cmd_plan_json(&r, &a), code) : cmd_plan_print(&r, &a, code);
}

static int plan_trail(const words *w)
{
    unsigned nruns = 0;
    if (w->runs && parse_runs(w->runs, &nruns) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    return cmd_plan_trail(w->trail, nruns, w->json);
}

#define LEVEL_OPTION(id, word, survives, ...)                                                      \
    CMD_TEXT(0, #word, "SPEC", &w.spec[CRN_LEVEL_##id], "the level that survives " survives),

int cmd_plan(int argc, char **argv)
{
    words w = {0};
    int code;
    const cmd_option options[] = {
        CMD_TEXT('s', "state", "SIZE", &w.state, "how much a full mark holds"),
        CMD_TEXT(0, "at-once", "SIZE", &w.at_once, "how much of it changes within a step"),
        CMD_TEXT(0, "pace", "TIME", &w.pace, "in which two thirds of the rest change"),
        CRN_LEVELS(LEVEL_OPTION, LEVEL_OPTION)
            CMD_TEXT('t', "trail", "TRAIL[/RUN]", &w.trail, "take all of this from a run"),
        CMD_TEXT(0, "simulate", "RUNS", &w.runs, "also simulate so many runs"),
        CMD_JSON(&w.json),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc > 0)
        return cmd_misuse(usage, "unexpected argument '%s'", argv[0]);
    const bool numbers = w.state || w.at_once || w.pace || has_level(&w);
    if (w.trail && numbers)
        return cmd_misuse(usage, "--trail takes all numbers from a run");
    if (!w.trail && (!w.state || !has_level(&w)))
        return cmd_misuse(usage, "--state and at least one level are needed, or --trail");
    return w.trail ? plan_trail(&w) : plan_numbers(&w);
}
