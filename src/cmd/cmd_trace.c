/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn trace: the table of its parts, and what they share.
 */
#include "cmd/cmd_trace.h"

static const char usage[] =
    "cairn trace record [-o FILE] [--precision P] [--no-times] -- COMMAND [ARGUMENT ...]\n"
    "cairn trace show [--where TERMS] [--json] FILE\n"
    "cairn trace stat [--where TERMS] [--top N] [--own] [--json] FILE\n"
    "cairn trace dump --rank R [--thread N] [--where TERMS] [--json] FILE\n"
    "cairn trace diff [--only WHAT] [--where TERMS] [--json] FILE FILE\n"
    "cairn trace export [--format FORMAT] [--where TERMS] [-o FILE] FILE\n"
    "mpirun -n RANKS cairn trace replay [--speed F | --no-delay] [--no-io] [--scratch DIR] "
    "[--keep] "
    "[--patience TIME] [--json] FILE";

static const struct {
    const char *name;
    cmd_function *run;
} parts[] = {{"record", cmd_trace_record}, {"show", cmd_trace_show}, {"stat", cmd_trace_stat},
             {"dump", cmd_trace_dump},     {"diff", cmd_trace_diff}, {"export", cmd_trace_export},
             {"replay", cmd_trace_replay}};

enum { NPARTS = sizeof parts / sizeof *parts };

static int report_unknown(const char *name)
{
    crn_nearest near = crn_nearest_to(name);
    for (size_t i = 0; i < NPARTS; i++)
        crn_nearest_offer(&near, parts[i].name);
    return cmd_misuse(usage, "'%s' is nothing that can be done with a trace%s", name, near.hint);
}

int cmd_trace(int argc, char **argv)
{
    const cmd_option options[] = {CMD_END};
    char *self = argv[0];
    int code;
    for (size_t i = 0; argc > 1 && i < NPARTS; i++) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            argv[1] = self; /* the manual page is cairn-trace(1) for all parts */
            return parts[i].run(argc - 1, argv + 1);
        }
    }
    if (argc > 1 && argv[1][0] != '-')
        return report_unknown(argv[1]);
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    return cmd_misuse(usage, "what is to be done with which trace?");
}

int cmd_trace_open(const char *path, cairn_trace **ret, cairn_trace_info *info)
{
    cairn_trace *t;
    *info = (cairn_trace_info){.struct_bytes = sizeof *info};
    if (cairn_trace_open(path, &t) < 0)
        return cmd_fail("%s", cairn_error_text());
    if (cairn_trace_describe(t, info) < 0) {
        cairn_trace_close(t);
        return cmd_fail("'%s': %s", path, cairn_error_text());
    }
    if (info->incomplete)
        cmd_fail("'%s' is incomplete: %s", path, info->incomplete);
    *ret = t;
    return CMD_YES;
}

int cmd_trace_look_at(const char *path, const cmd_trace_look *look, cairn_trace **ret,
                      cairn_trace_info *info)
{
    cairn_trace *t;
    if (cmd_trace_open(path, &t, info) != CMD_YES)
        return CMD_UNKNOWN;
    /* without libdw, addresses are what there is */
    int rc = look->addresses ? CAIRN_OK : cairn_trace_lines(t, look->modules);
    if (rc < 0 && rc != CAIRN_EUNSUPPORTED)
        cmd_fail("'%s': %s", path, cairn_error_text());
    rc = cairn_trace_limit(t, look->where);
    if (rc == CAIRN_OK)
        rc = cairn_trace_describe(t, info);
    if (rc < 0) {
        cmd_fail("%s%s", look->where ? "--where: " : "", cairn_error_text());
        cairn_trace_close(t);
        return CMD_UNKNOWN;
    }
    *ret = t;
    return CMD_YES;
}

void cmd_trace_done(cairn_trace *t)
{
    const char *why = cairn_trace_unnamed(t);
    for (size_t n; why && *why; why += n + (why[n] == '\n')) {
        n = strcspn(why, "\n");
        cmd_fail("%.*s", (int)n, why);
    }
    cairn_trace_close(t);
}

int cmd_trace_beside(const char *trail, const char *run, char **ret)
{
    const size_t cap = strlen(trail) + strlen(run) + sizeof "/.ctr";
    if (crn_alloc(ret, cap) < 0)
        return cmd_fail("no memory");
    snprintf(*ret, cap, "%s/%s.ctr", trail, run);
    return CMD_YES;
}

static int collect(void *arg, const cairn_trace_row *row)
{
    cmd_trace_rows *r = arg;
    r->failed = crn_vec_push(&r->row, *row) < 0;
    return r->failed;
}

int cmd_trace_sum(cairn_trace *t, unsigned by, cmd_trace_rows *ret)
{
    *ret = (cmd_trace_rows){.failed = false};
    int rc = cairn_trace_sum(t, by, collect, ret);
    if (rc == CAIRN_OK)
        return CMD_YES;
    cmd_trace_rows_done(ret);
    return ret->failed ? cmd_fail("no memory for rows") : cmd_fail("%s", cairn_error_text());
}

void cmd_trace_rows_done(cmd_trace_rows *r)
{
    crn_vec_done(&r->row);
}

void cmd_trace_heads(cmd_columns *c, const char *const *names)
{
    for (; *names; names++)
        cmd_cell(c, "%s", *names);
}

const char *cmd_trace_site(cairn_trace *t, uint32_t site)
{
    const char *stack = cairn_trace_stack(t, site);
    return stack ? stack : "(no memory)";
}

json_t *cmd_trace_seconds(double seconds)
{
    char text[CRN_NUMBER_TEXT];
    snprintf(text, sizeof text, "%.4g", seconds);
    return json_real(strtod(text, NULL));
}

json_t *cmd_trace_json(const cairn_trace_info *i)
{
    return json_pack(
        "{s:o, s:i, s:i, s:i, s:b, s:b, s:o?, s:I, s:I, s:o, s:I, s:I, s:I}", "program",
        cmd_json_text(i->program), "nranks", (int)i->nranks, "nthreads", (int)i->nthreads,
        "precision", (int)i->precision, "times", (int)i->times, "complete", i->incomplete == NULL,
        "incomplete", i->incomplete ? cmd_json_text(i->incomplete) : NULL, "dropped",
        (json_int_t)i->ndropped, "began_ns", (json_int_t)i->began_ns, "seconds",
        cmd_trace_seconds((double)i->lasted_ns * 1e-9), "events", (json_int_t)i->nevents, "places",
        (json_int_t)i->nplaces, "loops", (json_int_t)i->nloops);
}

int cmd_trace_number(const char *option, const char *text, uint64_t max, uint64_t *ret)
{
    uint64_t n;
    if (crn_parse_count(text, &n) < 0)
        return cmd_fail("%s: %s", option, crn_err_peek()->text);
    if (n > max)
        return cmd_fail("%s: %" PRIu64 " is above %" PRIu64, option, n, max);
    *ret = n;
    return CMD_YES;
}
