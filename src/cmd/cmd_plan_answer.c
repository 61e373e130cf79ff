/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn plan: the best schedule for numbers that are known, how flat the optimum is, and what
 * becomes of it when failures or global marks get worse.
 */
#include "cmd/cmd_plan.h"

static const double SCALE[PLAN_SCALES] = {1, 2, 10};
static const double STEP[PLAN_AROUND] = {0.25, 0.5, 1, 2, 4};

/* Failures of a class that are enough to know its cost; marks of all simulated runs that take
 * seconds. */
static const double SEEN = 30, MARKS_MAX = 1e7;

static cairn_status solve_worse(const cmd_plan_request *r, double failures, double costs,
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

/* How often a class of failures is expected in all runs. */
static double expected(const cmd_plan_request *r, const cmd_plan_answer *a, size_t level)
{
    return r->in.level[level].rate * a->trial.work * r->nruns;
}

/*
 * Long enough for many marks of the highest level, so that where a run ends does not matter, and
 * for failures of every class: one that is rare and dear, and never came, would be missing from the
 * error as well. But we have seconds only.
 */
static double work_of_runs(const cmd_plan_request *r, const cmd_plan_answer *a)
{
    double marks = 1, enough = 0;
    for (size_t l = 0; l < r->in.nlevels; l++) {
        marks *= a->best.ratio[l];
        if (r->in.level[l].rate > 0)
            enough = CRN_MAX(enough, SEEN / (r->in.level[l].rate * r->nruns));
    }
    const double most = MARKS_MAX / r->nruns * a->best.interval;
    return CRN_MAX(50 * marks * a->best.interval, CRN_MIN(enough, most));
}

static bool is_unseen(const cmd_plan_request *r, const cmd_plan_answer *a, size_t level)
{
    return r->in.level[level].rate > 0 && expected(r, a, level) < SEEN / 2;
}

static cairn_status simulate(const cmd_plan_request *r, cmd_plan_answer *a)
{
    a->trial = (cairn_plan_trial){
        .struct_bytes = sizeof a->trial, .nruns = r->nruns, .seed = 1, .work = work_of_runs(r, a)};
    CRN_TRY(cairn_plan_simulate(&r->in, &a->best, &a->trial));
    return CAIRN_OK;
}

static cairn_status solve(const cmd_plan_request *r, cmd_plan_answer *a)
{
    *a = (cmd_plan_answer){.best = {.struct_bytes = sizeof a->best}};
    CRN_TRY(cairn_plan_best(&r->in, &a->best));
    for (size_t i = 0; i < PLAN_AROUND; i++) {
        a->around[i] = a->best;
        a->around[i].interval *= STEP[i];
        CRN_TRY(cairn_plan_predict(&r->in, &a->around[i]));
    }
    for (size_t i = 0; i < PLAN_SCALES; i++)
        for (size_t k = 0; k < PLAN_SCALES; k++)
            CRN_TRY(solve_worse(r, SCALE[i], SCALE[k], &a->worse[i][k]));
    if (r->nruns > 0 && a->best.efficiency >= PLAN_HOPELESS)
        CRN_TRY(simulate(r, a));
    return CAIRN_OK;
}

int cmd_plan_solve(const cmd_plan_request *r, cmd_plan_answer *ret)
{
    if (solve(r, ret) < 0)
        return cmd_fail("%s", cairn_error_text());
    return ret->best.efficiency >= PLAN_HOPELESS ? CMD_YES : CMD_NO;
}

/* Four digits: the numbers that went in have no more. */
json_t *cmd_plan_number(double v)
{
    char text[CRN_NUMBER_TEXT];
    snprintf(text, sizeof text, "%.4g", v);
    return json_real(strtod(text, NULL));
}

json_t *cmd_plan_json_schedule(const cmd_plan_request *r, const cairn_plan_schedule *s)
{
    json_t *every = json_object();
    int period = 1;
    for (size_t l = 0; l < r->in.nlevels; l++) {
        period *= (int)s->ratio[l];
        json_object_set_new(every, r->level[l], json_integer(period));
    }
    return json_pack("{s:o, s:o, s:o}", "interval", cmd_plan_number(s->interval), "every", every,
                     "efficiency", cmd_plan_number(s->efficiency));
}

static json_t *json_worse(const cmd_plan_request *r, const cmd_plan_answer *a)
{
    json_t *list = json_array();
    for (size_t i = 0; i < PLAN_SCALES; i++)
        for (size_t k = 0; k < PLAN_SCALES; k++) {
            json_t *row = cmd_plan_json_schedule(r, &a->worse[i][k]);
            json_object_set_new(row, "failures", json_integer((int)SCALE[i]));
            json_object_set_new(row, "costs", json_integer((int)SCALE[k]));
            json_array_append_new(list, row);
        }
    return list;
}

json_t *cmd_plan_json(const cmd_plan_request *r, const cmd_plan_answer *a)
{
    json_t *around = json_array();
    for (size_t i = 0; i < PLAN_AROUND; i++)
        json_array_append_new(around, cmd_plan_json_schedule(r, &a->around[i]));
    json_t *all = json_pack("{s:o, s:o, s:o}", "best", cmd_plan_json_schedule(r, &a->best),
                            "around", around, "worse", json_worse(r, a));
    if (a->trial.efficiency > 0) {
        json_t *unseen = json_array();
        for (size_t l = 0; l < r->in.nlevels; l++)
            if (is_unseen(r, a, l))
                json_array_append_new(unseen, json_string(r->level[l]));
        json_object_set_new(all, "simulated",
                            json_pack("{s:o, s:o, s:o}", "efficiency",
                                      cmd_plan_number(a->trial.efficiency), "error",
                                      cmd_plan_number(a->trial.error), "unseen", unseen));
    }
    return all;
}

/* Levels that no mark ends at are left out. */
char *cmd_plan_levels(const cmd_plan_request *r, const cairn_plan_schedule *s, char *buf)
{
    unsigned period = 1;
    size_t used = 0;
    buf[0] = 0;
    for (size_t l = 0; l < r->in.nlevels && used < PLAN_WORDS; l++) {
        period *= s->ratio[l];
        if (l + 1 < r->in.nlevels && s->ratio[l + 1] == 1)
            continue;
        const char *comma = used ? ", " : "";
        used += (size_t)(period == 1
                             ? snprintf(buf + used, PLAN_WORDS - used, "%s%s", comma, r->level[l])
                             : snprintf(buf + used, PLAN_WORDS - used, "%s1 in %u %s", comma,
                                        period, r->level[l]));
    }
    return buf;
}

static void print_schedule(cmd_columns *t, const cmd_plan_request *r, const cairn_plan_schedule *s)
{
    char interval[CRN_NUMBER_TEXT], levels[PLAN_WORDS];
    cmd_cell(t, "%s", crn_format_seconds(s->interval, interval, sizeof interval));
    cmd_cell(t, "%s", cmd_plan_levels(r, s, levels));
    cmd_cell(t, "%.1f %%", 100 * s->efficiency);
}

int cmd_plan_print(const cmd_plan_request *r, const cmd_plan_answer *a, int code)
{
    char interval[CRN_NUMBER_TEXT], levels[PLAN_WORDS];
    if (code == CMD_NO) {
        printf("no schedule lets such a run end: marks or restarts take longer than failures let "
               "them\n");
        return code;
    }
    printf("a mark every %s of computing: %s\n",
           crn_format_seconds(a->best.interval, interval, sizeof interval),
           cmd_plan_levels(r, &a->best, levels));
    printf("efficiency %.1f %%", 100 * a->best.efficiency);
    if (a->trial.efficiency > 0)
        printf(", simulated %.1f +- %.1f %%", 100 * a->trial.efficiency, 196 * a->trial.error);
    printf("\n");
    for (size_t l = 0; a->trial.efficiency > 0 && l < r->in.nlevels; l++)
        if (is_unseen(r, a, l))
            printf("failures that take a %s mark are too rare to be seen in %u simulated runs\n",
                   r->level[l], r->nruns);
    printf("\nother intervals\n");
    cmd_columns around = {.align = "rlr"}, worse = {.align = "llrlr"};
    for (size_t i = 0; i < PLAN_AROUND; i++)
        print_schedule(&around, r, &a->around[i]);
    if (cmd_columns_print(&around, 2, CMD_YES) != CMD_YES)
        return CMD_UNKNOWN;
    printf("\nif failures and %s marks get worse\n", r->level[r->in.nlevels - 1]);
    for (size_t i = 0; i < PLAN_SCALES; i++)
        for (size_t k = 0; k < PLAN_SCALES; k++) {
            cmd_cell(&worse, "failures x%g", SCALE[i]);
            cmd_cell(&worse, "costs x%g", SCALE[k]);
            print_schedule(&worse, r, &a->worse[i][k]);
        }
    return cmd_columns_print(&worse, 2, code);
}
