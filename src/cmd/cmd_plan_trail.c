/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn plan --trail: what a run did, what would have been best, and what that would have gained
 * against the failures that it really had.
 */
#include "cmd/cmd_plan.h"
#include "report/report.h"

#include <limits.h>

/* The failures of a run against one setting; the first is what was done. */
typedef struct again {
    const cairn_plan_schedule *s;
    cairn_plan_outcome o;
} again;

enum {
    AGAIN_DONE,
    AGAIN_AROUND,
    AGAIN_BEST = AGAIN_AROUND + PLAN_AROUND / 2, /* in the middle of those around it */
    NAGAIN = AGAIN_AROUND + PLAN_AROUND
};

typedef struct past_plan {
    char run[NAME_MAX + 1];
    cairn_plan_past past;
    cmd_plan_request r;
    cmd_plan_answer a;
    again again[NAGAIN];
} past_plan;

static double outcome_efficiency(const cairn_plan_outcome *o)
{
    return o->wall > 0 ? o->work / o->wall : 0;
}

static cairn_status play_again(past_plan *p)
{
    const cairn_plan_past *past = &p->past;
    for (size_t i = 0; i < NAGAIN; i++) {
        again *g = &p->again[i];
        g->s = i == AGAIN_DONE ? &past->done : &p->a.around[i - AGAIN_AROUND];
        g->o.struct_bytes = sizeof g->o;
        CRN_TRY(cairn_plan_replay(&past->in, g->s, past->outcome.work, past->failures,
                                  past->nfailures, &g->o));
    }
    return CAIRN_OK;
}

/* --- showing -------------------------------------------------------------------------------- */

static const char *seconds(double s, char *buf)
{
    return crn_format_seconds(s, buf, CRN_NUMBER_TEXT);
}

static void print_failures(const past_plan *p)
{
    const char *comma = "failures: ";
    for (size_t l = 0; l < p->past.in.nlevels; l++)
        if (p->past.outcome.nfailures[l] > 0) {
            printf("%s%" PRIu64 " that needed %s", comma, p->past.outcome.nfailures[l],
                   p->past.name[l]);
            comma = ", ";
        }
    printf("%s\n", p->past.nfailures > 0 ? "" : "no failures");
}

static void print_done(const past_plan *p)
{
    char t[5][CRN_NUMBER_TEXT], levels[PLAN_WORDS];
    const cairn_plan_outcome *o = &p->past.outcome;
    uint64_t nmarks = 0;
    for (size_t l = 0; l < p->past.in.nlevels; l++)
        nmarks += o->nmarks[l];
    cmd_line("%s: %" PRIu64 " marks in %zu leg%s, one every %s of computing: %s", p->run, nmarks,
             p->past.nlegs, p->past.nlegs == 1 ? "" : "s", seconds(p->past.done.interval, t[0]),
             cmd_plan_levels(&p->r, &p->past.done, levels));
    cmd_line("it took %s: %s computing, %s held by marks, %s lost, %s coming back; efficiency "
             "%.1f %%",
             seconds(o->wall, t[0]), seconds(o->work, t[1]), seconds(o->held, t[2]),
             seconds(o->lost, t[3]), seconds(o->restarting, t[4]), 100 * p->past.done.efficiency);
    print_failures(p);
    printf("%s\n\n",
           p->past.tuned
               ? "costs and failure rates as its planner believed last"
               : "costs as measured by its marks; failure rates by default, and what was seen");
}

static void print_gain(const past_plan *p)
{
    char then[CRN_NUMBER_TEXT], now[CRN_NUMBER_TEXT];
    const cairn_plan_outcome *done = &p->again[AGAIN_DONE].o, *best = &p->again[AGAIN_BEST].o;
    const double gain = done->wall > 0 ? 1 - best->wall / done->wall : 0;
    cairn_plan_schedule expected = p->past.done;
    if (!done->finished || !best->finished) {
        printf("what the best setting would have gained is not known: it takes too long to "
               "replay\n");
        return;
    }
    printf("the best setting would have taken %s instead of %s: %.1f %% %s\n",
           seconds(best->wall, now), seconds(done->wall, then), 100 * (gain < 0 ? -gain : gain),
           gain < 0 ? "more" : "less");
    if (cairn_plan_predict(&p->past.in, &expected) < 0 ||
        !crn_report_fits(&p->past, expected.efficiency, done->wall))
        printf("the run itself took %s: the model, which is about long times, does not describe "
               "it\n",
               seconds(p->past.outcome.wall, then));
}

static int print_again(const past_plan *p, int code)
{
    static const char *const head[] = {"",     "INTERVAL", "LEVELS",      "TOOK",
                                       "HELD", "LOST",     "COMING BACK", "EFFICIENCY"};
    static const char *const name[NAGAIN] = {"done", "x0.25", "x0.5", "best", "x2", "x4"};
    char t[PLAN_WORDS];
    cmd_columns c = {.align = "lrlrrrrr"};
    printf("\nthe failures of this run, replayed with other settings\n");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        cmd_cell(&c, "%s", head[i]);
    for (size_t i = 0; i < NAGAIN; i++) {
        const cairn_plan_outcome *o = &p->again[i].o;
        const double times[] = {o->wall, o->held, o->lost, o->restarting};
        cmd_cell(&c, "%s", name[i]);
        cmd_cell(&c, "%s", seconds(p->again[i].s->interval, t));
        cmd_cell(&c, "%s", cmd_plan_levels(&p->r, p->again[i].s, t));
        for (size_t k = 0; k < sizeof times / sizeof *times; k++)
            cmd_cell(&c, "%s", o->finished ? seconds(times[k], t) : "-");
        if (o->finished)
            cmd_cell(&c, "%.1f %%", 100 * outcome_efficiency(o));
        else
            cmd_cell(&c, "-");
    }
    if (cmd_columns_print(&c, 2, CMD_YES) != CMD_YES)
        return CMD_UNKNOWN;
    print_gain(p);
    return code;
}

static json_t *json_outcome(const past_plan *p, const cairn_plan_outcome *o)
{
    json_t *nmarks = json_object(), *nfailures = json_object();
    for (size_t l = 0; l < p->past.in.nlevels; l++) {
        json_object_set_new(nmarks, p->past.name[l], json_integer((json_int_t)o->nmarks[l]));
        json_object_set_new(nfailures, p->past.name[l], json_integer((json_int_t)o->nfailures[l]));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "took", cmd_plan_number(o->wall),
                     "computing", cmd_plan_number(o->work), "held", cmd_plan_number(o->held),
                     "lost", cmd_plan_number(o->lost), "coming_back",
                     cmd_plan_number(o->restarting), "marks", nmarks, "failures", nfailures);
}

static json_t *json_costs(const past_plan *p)
{
    const cairn_plan_input *in = &p->past.in;
    json_t *levels = json_array();
    for (size_t l = 0; l < in->nlevels; l++)
        cmd_json_append(&levels,
                        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "level", p->past.name[l],
                                  "rate", cmd_plan_number(in->level[l].rate), "restart",
                                  cmd_plan_number(in->level[l].restart), "fixed",
                                  cmd_plan_number(in->level[l].fixed), "bandwidth",
                                  cmd_plan_number(in->level[l].bandwidth), "background",
                                  cmd_plan_number(in->level[l].background)));
    return json_pack("{s:b, s:[o,o,o], s:o}", "tuned", p->past.tuned, "changed",
                     cmd_plan_number(in->changed_at_once), cmd_plan_number(in->changed_in_time),
                     cmd_plan_number(in->change_pace), "levels", levels);
}

static json_t *json_again(const past_plan *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < NAGAIN; i++) {
        json_t *one = json_outcome(p, &p->again[i].o);
        json_object_set_new(one, "setting", cmd_plan_json_schedule(&p->r, p->again[i].s));
        json_object_set_new(one, "finished", json_boolean(p->again[i].o.finished));
        cmd_json_append(&list, one);
    }
    return list;
}

static json_t *json_past(const past_plan *p)
{
    json_t *done = json_outcome(p, &p->past.outcome);
    json_object_set_new(done, "setting", cmd_plan_json_schedule(&p->r, &p->past.done));
    json_object_set_new(done, "legs", json_integer((json_int_t)p->past.nlegs));
    return cmd_json_merge(json_pack("{s:s, s:o, s:o, s:o}", "run", p->run, "done", done, "measured",
                                    json_costs(p), "replayed", json_again(p)),
                          cmd_plan_json(&p->r, &p->a));
}

/* --- the run -------------------------------------------------------------------------------- */

/* Of several runs the newest is meant. */
static int read_run(const cmd_place *place, past_plan *p)
{
    cairn_run_info run = {.struct_bytes = sizeof run};
    if (place->first == place->end)
        return cmd_fail("there are no runs in this trail");
    if (cairn_trail_run(place->trail, place->end - 1, &run) < 0)
        return cmd_fail("%s", cairn_error_text());
    snprintf(p->run, sizeof p->run, "%s", run.name);
    p->past.struct_bytes = sizeof p->past;
    if (cairn_plan_recall(place->trail, place->end - 1, &p->past) < 0)
        return cmd_fail("run '%s': %s", p->run, cairn_error_text());
    p->r.in = p->past.in;
    memcpy(p->r.level, p->past.name, sizeof p->r.level);
    return CMD_YES;
}

static int solve_and_tell(past_plan *p, bool json)
{
    const int code = cmd_plan_solve(&p->r, &p->a);
    if (code == CMD_UNKNOWN)
        return code;
    if (play_again(p) < 0)
        return cmd_fail("run '%s': %s", p->run, cairn_error_text());
    if (json)
        return cmd_print_json(json_past(p), code);
    print_done(p);
    if (cmd_plan_print(&p->r, &p->a, code) == CMD_UNKNOWN)
        return CMD_UNKNOWN;
    return code == CMD_NO ? code : print_again(p, code);
}

int cmd_plan_trail(const char *name, unsigned nruns, bool json)
{
    cmd_place place;
    past_plan p = {.r = {.nruns = nruns}};
    if (cmd_place_open(name, &place) != CMD_YES)
        return CMD_UNKNOWN;
    int code = read_run(&place, &p);
    cmd_place_close(&place);
    if (code == CMD_YES)
        code = solve_and_tell(&p, json);
    cairn_plan_forget(&p.past);
    return code;
}
