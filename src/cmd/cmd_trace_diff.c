/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn trace diff: two traces compared by sums: calls, messages between pairs of ranks, files.
 * Call sites are left out, since they change with every build.
 */
#include "cmd/cmd_trace.h"

static const char usage[] = "cairn trace diff [--only WHAT] [--where TERMS] [--json] FILE FILE";

typedef struct subject {
    const char *name;
    unsigned by;
    bool times; /* seconds are compared, not events and bytes */
} subject;

static const subject subjects[] = {
    {"calls", CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_CALL, false},
    {"pairs", CAIRN_TRACE_BY_RANK | CAIRN_TRACE_BY_PEER, false},
    {"files", CAIRN_TRACE_BY_FILE | CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_CALL, false},
    {"times", CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_CALL, true},
};

enum { NSUBJECTS = sizeof subjects / sizeof *subjects };

/* Times never are the same: what differs by less than a fifth, or by less than a hundredth of the
 * time of all ranks, is not worth a line. */
#define TIMES_RATIO 1.2
#define TIMES_SHARE 0.01

typedef struct comparison {
    bool json;
    bool only_times; /* they alone were asked for, and decide */
    double least;    /* difference of times that counts, seconds */
    json_t *list;
    uint64_t ndifferent;
    cmd_columns table;
    crn_buf name; /* of the row, as text */
} comparison;

static int compare_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

/* In the order in which cairn_trace_sum gives rows. */
static int compare(const cairn_trace_row *a, const cairn_trace_row *b)
{
    int d = (a->rank > b->rank) - (a->rank < b->rank);
    d = d ? d : (a->peer > b->peer) - (a->peer < b->peer);
    d = d ? d : compare_text(a->file, b->file);
    d = d ? d : compare_text(a->layer, b->layer);
    d = d ? d : compare_text(a->call, b->call);
    return d ? d : compare_text(a->within, b->within);
}

/* "rank 0 to 1", "pwrite out.dat" */
static const char *name_row(const subject *s, const cairn_trace_row *r, crn_buf *b)
{
    b->n = 0;
    if (s->by & CAIRN_TRACE_BY_PEER)
        crn_put_text(b, "rank %" PRIu32 " to %" PRId64, r->rank, r->peer);
    else
        crn_put_text(b, "%s%s%s%s%s", r->call, r->within ? " < " : "", r->within ? r->within : "",
                     r->file ? " " : "", r->file ? r->file : "");
    const char *name = crn_buf_text(b);
    return name ? name : "(no memory)";
}

static bool same_times(const comparison *c, const cairn_trace_row *a, const cairn_trace_row *b)
{
    const double low = CRN_MIN(a->seconds, b->seconds), high = CRN_MAX(a->seconds, b->seconds);
    return high < TIMES_RATIO * low || high - low < c->least;
}

static void differ_in_times(comparison *c, const char *name, const cairn_trace_row *a,
                            const cairn_trace_row *b)
{
    char first[CRN_NUMBER_TEXT], second[CRN_NUMBER_TEXT];
    c->ndifferent += c->only_times;
    if (c->json) {
        cmd_json_append(&c->list,
                        json_pack("{s:s, s:o, s:[o,o]}", "of", "times", "what", cmd_json_text(name),
                                  "seconds", cmd_trace_seconds(a->seconds),
                                  cmd_trace_seconds(b->seconds)));
        return;
    }
    cmd_cell(&c->table, "times");
    cmd_cell(&c->table, "%s", name);
    cmd_cell(&c->table, "%s : %s", crn_format_seconds(a->seconds, first, sizeof first),
             crn_format_seconds(b->seconds, second, sizeof second));
    cmd_cell(&c->table, a->seconds > 0 ? "%.2f times" : "-", b->seconds / a->seconds);
}

/* One of the two may be NULL: only the other trace has such a row. */
static void differ(comparison *c, const subject *s, const cairn_trace_row *a,
                   const cairn_trace_row *b)
{
    const cairn_trace_row none = {0};
    const char *name = name_row(s, a ? a : b, &c->name);
    a = a ? a : &none;
    b = b ? b : &none;
    if (s->times) {
        if (!same_times(c, a, b))
            differ_in_times(c, name, a, b);
        return;
    }
    c->ndifferent++;
    if (c->json) {
        cmd_json_append(&c->list, json_pack("{s:s, s:o, s:[I,I], s:[I,I]}", "of", s->name, "what",
                                            cmd_json_text(name), "events", (json_int_t)a->nevents,
                                            (json_int_t)b->nevents, "nbytes", (json_int_t)a->nbytes,
                                            (json_int_t)b->nbytes));
        return;
    }
    cmd_cell(&c->table, "%s", s->name);
    cmd_cell(&c->table, "%s", name);
    cmd_cell(&c->table, "%" PRIu64 " : %" PRIu64 " events", a->nevents, b->nevents);
    cmd_cell(&c->table, "%" PRIu64 " : %" PRIu64 " bytes", a->nbytes, b->nbytes);
}

static void compare_rows(comparison *c, const subject *s, const cmd_trace_rows *a,
                         const cmd_trace_rows *b)
{
    size_t i = 0, k = 0;
    while (i < a->row.n || k < b->row.n) {
        const cairn_trace_row *x = i < a->row.n ? &a->row.at[i] : NULL;
        const cairn_trace_row *y = k < b->row.n ? &b->row.at[k] : NULL;
        int d = !x ? 1 : !y ? -1 : compare(x, y);
        if (d != 0 || s->times || x->nevents != y->nevents || x->nbytes != y->nbytes)
            differ(c, s, d <= 0 ? x : NULL, d >= 0 ? y : NULL);
        i += d <= 0;
        k += d >= 0;
    }
}

static int compare_subject(comparison *c, const subject *s, cairn_trace *a, cairn_trace *b)
{
    cmd_trace_rows x, y;
    if (cmd_trace_sum(a, s->by, &x) != CMD_YES)
        return CMD_UNKNOWN;
    if (cmd_trace_sum(b, s->by, &y) != CMD_YES) {
        cmd_trace_rows_done(&x);
        return CMD_UNKNOWN;
    }
    compare_rows(c, s, &x, &y);
    cmd_trace_rows_done(&x);
    cmd_trace_rows_done(&y);
    return CMD_YES;
}

static int print_result(comparison *c)
{
    int code = c->ndifferent > 0 ? CMD_NO : CMD_YES;
    if (c->json)
        return cmd_print_json(
            json_pack("{s:b, s:o}", "same", code == CMD_YES, "differences", c->list), code);
    return cmd_columns_print(&c->table, 0, code);
}

/* What comes first: nothing else can be the same then. */
static void compare_ranks(comparison *c, uint32_t a, uint32_t b)
{
    if (a == b)
        return;
    c->ndifferent++;
    if (c->json) {
        cmd_json_append(&c->list,
                        json_pack("{s:s, s:[i,i]}", "of", "ranks", "nranks", (int)a, (int)b));
        return;
    }
    cmd_cell(&c->table, "ranks");
    cmd_cell(&c->table, "their number");
    cmd_cell(&c->table, "%" PRIu32 " : %" PRIu32 " ranks", a, b);
    cmd_cell(&c->table, "-");
}

static int diff(comparison *c, const char *only, cairn_trace *a, cairn_trace *b)
{
    int code = CMD_YES;
    for (size_t i = 0; i < NSUBJECTS && code == CMD_YES; i++)
        if (!only || strcmp(only, subjects[i].name) == 0)
            code = compare_subject(c, &subjects[i], a, b);
    return code == CMD_YES ? print_result(c) : code;
}

static bool is_subject(const char *name)
{
    crn_nearest near = crn_nearest_to(name);
    for (size_t i = 0; i < NSUBJECTS; i++) {
        if (strcmp(name, subjects[i].name) == 0)
            return true;
        crn_nearest_offer(&near, subjects[i].name);
    }
    cmd_fail("--only: '%s' is none of calls, pairs, files and times%s", name, near.hint);
    return false;
}

int cmd_trace_diff(int argc, char **argv)
{
    comparison c = {.table = {.align = "llll"}};
    cairn_trace *a, *b;
    cairn_trace_info info, second;
    const char *only = NULL;
    cmd_trace_look look = {0};
    int code;
    const cmd_option options[] = {
        CMD_TEXT(0, "only", "WHAT", &only, "compare only calls, pairs, files or times"),
        CMD_TRACE_LOOK(&look), CMD_JSON(&c.json), CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 2)
        return cmd_misuse(usage, "two traces must be named");
    if ((only && !is_subject(only)) || cmd_trace_look_at(argv[0], &look, &a, &info) != CMD_YES)
        return CMD_UNKNOWN;
    if (cmd_trace_look_at(argv[1], &look, &b, &second) != CMD_YES) {
        cairn_trace_close(a);
        return CMD_UNKNOWN;
    }
    c.list = c.json ? json_array() : NULL;
    c.only_times = only && strcmp(only, "times") == 0;
    c.least = TIMES_SHARE * 1e-9 * (double)CRN_MAX(info.lasted_ns, second.lasted_ns) *
              CRN_MAX(info.nranks, second.nranks);
    compare_ranks(&c, info.nranks, second.nranks);
    code = diff(&c, only, a, b);
    crn_buf_done(&c.name);
    cairn_trace_close(a);
    cairn_trace_close(b);
    return code;
}
