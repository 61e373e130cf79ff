/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn trace dump: every event of a thread of a rank, in order.
 */
#include "cmd/cmd_trace.h"

static const char usage[] = "cairn trace dump --rank R [--thread N] [--where TERMS] [--json] FILE";

typedef struct dumper {
    cairn_trace *t;
    bool json;
    crn_buf values; /* of the event, as text */
    uint64_t n;     /* events so far */
    int code;
} dumper;

enum { LIST_SHOWN = 8 };

/* "count=100", "reqs={0,1,2}" */
static void put_value(crn_buf *b, const cairn_trace_value *v)
{
    if (!v->list && v->nlist == 0) {
        crn_put_text(b, " %s=%s%" PRId64, v->kind, v->drawn ? "~" : "", v->value);
        return;
    }
    crn_put_text(b, " %s={", v->kind);
    for (size_t i = 0; i < CRN_MIN(v->nlist, LIST_SHOWN); i++)
        crn_put_text(b, "%s%" PRId64, i ? "," : "", v->list[i]);
    if (v->nlist > LIST_SHOWN)
        crn_put_text(b, ",...%zu", v->nlist);
    crn_put_text(b, "}");
}

static void print_event(dumper *d, const cairn_trace_event *e)
{
    crn_buf *b = &d->values;
    b->n = 0;
    for (size_t i = 0; i < e->nvalues; i++)
        put_value(b, &e->value[i]);
    const char *values = crn_buf_text(b);
    if (!values)
        d->code = cmd_fail("no memory for event %" PRIu64, d->n);
    else
        cmd_line("%" PRIu64 " %s%s%s%s%s%s [%s]", d->n, e->call, e->within ? " within " : "",
                 e->within ? e->within : "", e->file ? " " : "", e->file ? e->file : "", values,
                 cmd_trace_site(d->t, e->site));
}

static json_t *json_of_value(const cairn_trace_value *v)
{
    if (!v->list && v->nlist == 0)
        return json_integer(v->value);
    json_t *list = json_array();
    for (size_t i = 0; i < v->nlist; i++)
        cmd_json_append(&list, json_integer(v->list[i]));
    return list;
}

/* Values as [kind, value] pairs, since a kind may come twice. */
static json_t *json_of_event(const dumper *d, const cairn_trace_event *e)
{
    json_t *values = json_array();
    for (size_t i = 0; i < e->nvalues; i++)
        cmd_json_append(&values,
                        json_pack("[s, o]", e->value[i].kind, json_of_value(&e->value[i])));
    return json_pack("{s:I, s:s, s:s, s:s?, s:o?, s:I, s:o, s:o}", "index", (json_int_t)d->n,
                     "call", e->call, "layer", e->layer, "within", e->within, "file",
                     e->file ? cmd_json_text(e->file) : NULL, "nbytes", (json_int_t)e->nbytes,
                     "values", values, "site", cmd_json_text(cmd_trace_site(d->t, e->site)));
}

static int on_event(void *arg, const cairn_trace_event *e)
{
    dumper *d = arg;
    if (d->json) {
        json_t *o = json_of_event(d, e);
        if (!o || json_dumpf(o, stdout, JSON_COMPACT) < 0)
            d->code = cmd_fail("cannot print JSON");
        printf("\n");
        json_decref(o);
    } else {
        print_event(d, e);
    }
    d->n++;
    return d->code != CMD_YES || ferror(stdout);
}

static int dump(dumper *d, const char *path, uint32_t rank, uint32_t thread)
{
    int rc = cairn_trace_walk(d->t, rank, thread, on_event, d);
    if (rc < 0)
        return cmd_fail("%s", cairn_error_text());
    if (rc == CAIRN_NOTHING && d->n == 0)
        return cmd_fail("'%s' has no thread %" PRIu32 " of rank %" PRIu32, path, thread, rank);
    return d->code;
}

int cmd_trace_dump(int argc, char **argv)
{
    dumper d = {.code = CMD_YES};
    cmd_trace_look look = {0};
    cairn_trace_info info;
    const char *rank = NULL, *thread = NULL;
    uint64_t r = 0, n = 0;
    int code;
    const cmd_option options[] = {
        CMD_TEXT('r', "rank", "R", &rank, "whose events"),
        CMD_TEXT('t', "thread", "N", &thread, "of which thread (0)"), CMD_TRACE_LOOK(&look),
        CMD_FLAG('j', "json", &d.json, "print an object of JSON on a line for each event"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 1 || !rank)
        return cmd_misuse(usage, "one trace and a rank must be named");
    if (cmd_trace_number("--rank", rank, UINT32_MAX, &r) != CMD_YES ||
        (thread && cmd_trace_number("--thread", thread, UINT32_MAX, &n) != CMD_YES) ||
        cmd_trace_look_at(argv[0], &look, &d.t, &info) != CMD_YES)
        return CMD_UNKNOWN;
    code = dump(&d, argv[0], (uint32_t)r, (uint32_t)n);
    crn_buf_done(&d.values);
    cmd_trace_done(d.t);
    return code;
}
