/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn trace show: the structure of a trace, loops in loops, for people.
 */
#include "cmd/cmd_trace.h"

static const char usage[] = "cairn trace show [--where TERMS] [--json] FILE";

typedef struct shower {
    cairn_trace *t;
    uint32_t thread; /* of the piece before */
    bool json;
    json_t *list;
} shower;

static void print_head(const char *path, const cairn_trace_info *info)
{
    char date[CMD_WORDS], lasted[CRN_NUMBER_TEXT];
    cmd_line("%s: %s on %" PRIu32 " rank%s, %s, began %s", path, info->program, info->nranks,
             info->nranks == 1 ? "" : "s",
             crn_format_seconds((double)info->lasted_ns * 1e-9, lasted, sizeof lasted),
             cmd_date(info->began_ns, date));
    cmd_line("%" PRIu64 " events in %zu place%s and %zu loop%s, precision %" PRIu32 "%%%s",
             info->nevents, info->nplaces, info->nplaces == 1 ? "" : "s", info->nloops,
             info->nloops == 1 ? "" : "s", info->precision, info->times ? "" : ", without times");
}

static void print_loop(const cairn_trace_piece *p)
{
    double turns = p->met > 0 ? (double)p->total / (double)p->met : 0;
    bool whole = p->met > 0 && p->total % p->met == 0;
    cmd_line("%*sloop #%" PRIu32 ": %s%.*f turn%s, ranks %s%s", (int)(2 * p->depth), "", p->number,
             whole ? "" : "about ", whole ? 0 : 1, turns, turns == 1 ? "" : "s", p->ranks,
             p->shown ? ", as above" : "");
}

static void print_place(const shower *s, const cairn_trace_piece *p)
{
    char took[CRN_NUMBER_TEXT], each[64] = "";
    double repeat = p->met > 0 ? (double)p->total / (double)p->met : 0;
    if (repeat != 1)
        snprintf(each, sizeof each, " x %s%.*f", p->met > 0 && p->total % p->met == 0 ? "" : "~",
                 p->met > 0 && p->total % p->met == 0 ? 0 : 1, repeat);
    cmd_line("%*s%s%s%s%s%s%s %s  [ranks %s%s%s; %s]", (int)(2 * p->depth), "", p->call, each,
             p->within ? " within " : "", p->within ? p->within : "", p->file ? " " : "",
             p->file ? p->file : "", p->values, p->ranks, p->seconds > 0 ? "; " : "",
             p->seconds > 0 ? crn_format_seconds(p->seconds, took, sizeof took) : "",
             cmd_trace_site(s->t, p->site));
}

static json_t *json_of(const shower *s, const cairn_trace_piece *p)
{
    json_t *o = json_pack("{s:i, s:i, s:i, s:s, s:i, s:I, s:I}", "thread", (int)p->thread, "depth",
                          (int)p->depth, "number", (int)p->number, "ranks", p->ranks, "nranks",
                          (int)p->nranks, "met", (json_int_t)p->met, "total", (json_int_t)p->total);
    if (!p->call)
        return cmd_json_merge(o, json_pack("{s:n, s:b}", "call", "shown", (int)p->shown));
    return cmd_json_merge(o, json_pack("{s:s, s:s, s:s?, s:o?, s:s, s:o, s:o}", "call", p->call,
                                       "layer", p->layer, "within", p->within, "file",
                                       p->file ? cmd_json_text(p->file) : NULL, "values", p->values,
                                       "site", cmd_json_text(cmd_trace_site(s->t, p->site)),
                                       "seconds", json_real(p->seconds)));
}

static int on_piece(void *arg, const cairn_trace_piece *p)
{
    shower *s = arg;
    if (s->json) {
        cmd_json_append(&s->list, json_of(s, p));
        return 0;
    }
    if (p->thread != s->thread) {
        cmd_line("thread %" PRIu32, p->thread);
        s->thread = p->thread;
    }
    if (p->call)
        print_place(s, p);
    else
        print_loop(p);
    return 0;
}

int cmd_trace_show(int argc, char **argv)
{
    shower s = {.json = false};
    cmd_trace_look look = {0};
    cairn_trace_info info;
    int code;
    const cmd_option options[] = {CMD_TRACE_LOOK(&look), CMD_JSON(&s.json), CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 1)
        return cmd_misuse(usage, "one trace must be named");
    if (cmd_trace_look_at(argv[0], &look, &s.t, &info) != CMD_YES)
        return CMD_UNKNOWN;
    if (s.json)
        s.list = json_array();
    else
        print_head(argv[0], &info);
    code = CMD_YES;
    if (cairn_trace_outline(s.t, on_piece, &s) < 0)
        code = cmd_fail("'%s': %s", argv[0], cairn_error_text());
    if (s.json)
        code = cmd_print_json(
            cmd_json_merge(cmd_trace_json(&info), json_pack("{s:o}", "outline", s.list)), code);
    cmd_trace_done(s.t);
    return code;
}
