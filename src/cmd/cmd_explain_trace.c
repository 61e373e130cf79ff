/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What two traces say of the stretch between two marks. Each thread of each rank is walked in both;
 * of the stretch only the order-dependent events are kept: whom wildcard receives got, and which
 * files were read.
 */
#include "cmd/cmd_explain.h"

/* Texts as numbers, which are the same for both traces. */
typedef struct names {
    json_t *number; /* by text */
    CRN_VEC(const char *) text;
} names;

typedef struct receipt {
    uint32_t site; /* number of its text */
    const char *call;
    int64_t source, tag;
} receipt;

/* One trace, and what a thread of it did in the stretch. */
typedef struct side {
    const char *path;
    cairn_trace *t;
    cairn_trace_info info;
    const cmd_stretch *stretch;
    names *names;
    CRN_VEC(uint32_t) site;   /* by site: number of its text + 1; 0: not asked yet */
    CRN_VEC(receipt) receipt; /* from here on of the thread */
    CRN_VEC(uint32_t) file;   /* that were read; one for reads that follow each other */
    const char *call;         /* the newest one that is no remark */
    bool within, ended;       /* the first mark was met; the second one, too */
    bool has_from, has_to;    /* some thread of the rank met them */
    bool failed;
} side;

typedef struct explainer {
    names names;
    side side[2];
    CRN_VEC(cmd_match) match;
    cmd_deviation_fn *fn;
    void *arg;
} explainer;

/* ---- names ---- */

static bool number_of(names *n, const char *text, uint32_t *ret)
{
    json_t *known = json_object_get(n->number, text);
    if (!known) {
        known = json_integer((json_int_t)n->text.n);
        if (crn_vec_reserve(&n->text, 1) < 0 ||
            json_object_set_new_nocheck(n->number, text, known) < 0)
            return false;
        n->text.at[n->text.n++] =
            json_object_iter_key(json_object_iter_at(n->number, text)); /* as long as the object */
    }
    *ret = (uint32_t)json_integer_value(known);
    return true;
}

static bool site_number(side *s, uint32_t site, uint32_t *ret)
{
    char text[512];
    while (s->site.n <= site)
        if (crn_vec_push(&s->site, 0) < 0)
            return false;
    if (s->site.at[site] == 0) {
        if (!number_of(s->names, cairn_trace_site(s->t, site, text, sizeof text), ret))
            return false;
        s->site.at[site] = *ret + 1;
    }
    *ret = s->site.at[site] - 1;
    return true;
}

/* ---- one thread of one trace ---- */

static bool keep_receipt(side *s, const cairn_trace_event *e)
{
    receipt r = {.call = s->call, .source = e->value[0].value, .tag = e->value[1].value};
    return site_number(s, e->site, &r.site) && crn_vec_push(&s->receipt, r) == CAIRN_OK;
}

/* What MPI-IO reads below itself follows from what it is asked for. */
static bool is_read(const cairn_trace_event *e)
{
    return e->file && !e->within && (strstr(e->call, "read") || strcmp(e->call, "mmap") == 0);
}

static bool keep_read(side *s, const cairn_trace_event *e)
{
    uint32_t file;
    if (!number_of(s->names, e->file, &file))
        return false;
    if (s->file.n > 0 && s->file.at[s->file.n - 1] == file)
        return true;
    return crn_vec_push(&s->file, file) == CAIRN_OK;
}

/*
 * A run that is resumed passes a mark again, and a thread is taken to have begun within the stretch
 * until it passes the first mark: what was before no longer counts.
 */
static bool at_mark(side *s, uint64_t version)
{
    if (version == s->stretch->from && !s->stretch->from_start) {
        s->within = s->has_from = true;
        s->receipt.n = s->file.n = 0;
    }
    s->has_to |= version == s->stretch->to;
    s->ended = s->within && version == s->stretch->to;
    return s->ended;
}

static int on_event(void *arg, const cairn_trace_event *e)
{
    side *s = arg;
    bool kept = true;
    if (strcmp(e->call, "@mark") == 0)
        return at_mark(s, (uint64_t)e->value[0].value);
    if (strcmp(e->call, "@match") == 0)
        kept = !s->within || keep_receipt(s, e);
    else
        s->call = e->call;
    if (s->within && is_read(e))
        kept = keep_read(s, e);
    s->failed |= !kept;
    return s->failed;
}

static int collect(side *s, uint32_t rank, uint32_t thread)
{
    s->receipt.n = s->file.n = 0;
    s->within = s->stretch->from_start || thread > 0; /* the first one begins with the run */
    s->ended = s->failed = false;
    if (cairn_trace_walk(s->t, rank, thread, on_event, s) < 0)
        return cmd_fail("%s", cairn_error_text());
    return s->failed ? cmd_fail("no memory for what '%s' tells", s->path) : CMD_YES;
}

/* ---- two of them ---- */

static bool compare_receipts(explainer *x, cmd_deviation *d)
{
    const side *a = &x->side[0], *b = &x->side[1];
    const size_t n = CRN_MIN(a->receipt.n, b->receipt.n);
    x->match.n = 0;
    for (; d->ncommon < n && !d->parted; d->ncommon += !d->parted) {
        const receipt *p = &a->receipt.at[d->ncommon], *q = &b->receipt.at[d->ncommon];
        d->parted = p->site != q->site;
        if (d->parted || (p->source == q->source && p->tag == q->tag))
            continue;
        if (crn_vec_push(&x->match, (cmd_match){.nth = d->ncommon + 1,
                                                .call = p->call,
                                                .site = x->names.text.at[p->site],
                                                .source = {p->source, q->source},
                                                .tag = {p->tag, q->tag}}) < 0)
            return false;
    }
    for (int i = 0; i < 2; i++)
        d->nreceived[i] = x->side[i].receipt.n;
    d->match = x->match.at;
    d->nmatches = x->match.n;
    return true;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sorts them: the last thing that is done with the files of a thread. */
static bool same_files(side *a, side *b)
{
    if (a->file.n != b->file.n)
        return false;
    qsort(a->file.at, a->file.n, sizeof *a->file.at, by_number);
    qsort(b->file.at, b->file.n, sizeof *b->file.at, by_number);
    return memcmp(a->file.at, b->file.at, a->file.n * sizeof *a->file.at) == 0;
}

static void compare_files(explainer *x, cmd_deviation *d)
{
    side *a = &x->side[0], *b = &x->side[1];
    size_t i = 0;
    while (i < a->file.n && i < b->file.n && a->file.at[i] == b->file.at[i])
        i++;
    if (i == a->file.n && i == b->file.n)
        return;
    d->nth_file = i + 1;
    for (int k = 0; k < 2; k++)
        if (i < x->side[k].file.n)
            d->file[k] = x->names.text.at[x->side[k].file.at[i]];
    d->same_files = same_files(a, b);
}

static int compare_thread(explainer *x, uint32_t rank, uint32_t thread, bool *ret_marked)
{
    cmd_deviation d = {.rank = rank, .thread = thread};
    for (int i = 0; i < 2; i++)
        if (collect(&x->side[i], rank, thread) != CMD_YES)
            return CMD_UNKNOWN;
    if (!x->side[0].ended || !x->side[1].ended)
        return CMD_YES; /* a thread that ended before, or began after the stretch */
    *ret_marked = true;
    if (!compare_receipts(x, &d))
        return cmd_fail("no memory");
    compare_files(x, &d);
    if (d.nmatches > 0 || d.parted || d.nreceived[0] != d.nreceived[1] || d.nth_file > 0)
        x->fn(x->arg, &d);
    return CMD_YES;
}

/* No thread of the rank has both marks in both traces: say which is missing where. */
static int say_unmarked(const explainer *x, uint32_t rank)
{
    const cmd_stretch *s = x->side[0].stretch;
    const bool complete = (s->from_start || x->side[0].has_from) && x->side[0].has_to;
    const side *which = &x->side[complete];
    return cmd_fail("'%s' has no mark %" PRIu64 " of rank %" PRIu32
                    ": is it of this run, and of the leg in which it was taken?",
                    which->path, s->from_start || which->has_from ? s->to : s->from, rank);
}

static int compare_ranks(explainer *x)
{
    const uint32_t nranks = x->side[0].info.nranks,
                   nthreads = CRN_MIN(x->side[0].info.nthreads, x->side[1].info.nthreads);
    if (nranks != x->side[1].info.nranks)
        return cmd_fail("'%s' has %" PRIu32 " ranks, '%s' %" PRIu32
                        ": their messages cannot be compared",
                        x->side[0].path, nranks, x->side[1].path, x->side[1].info.nranks);
    for (uint32_t r = 0; r < nranks; r++) {
        bool marked = false;
        for (int i = 0; i < 2; i++)
            x->side[i].has_from = x->side[i].has_to = false;
        for (uint32_t t = 0; t < nthreads; t++)
            if (compare_thread(x, r, t, &marked) != CMD_YES)
                return CMD_UNKNOWN;
        if (!marked)
            return say_unmarked(x, r);
    }
    return CMD_YES;
}

static int open_traces(explainer *x, char *const path[2], const cmd_stretch *stretch)
{
    x->names.number = json_object();
    if (!x->names.number)
        return cmd_fail("no memory");
    for (int i = 0; i < 2; i++) {
        side *s = &x->side[i];
        s->path = path[i];
        s->stretch = stretch;
        s->names = &x->names;
        if (cmd_trace_open(path[i], &s->t, &s->info) != CMD_YES)
            return CMD_UNKNOWN;
        if (s->info.precision < 100)
            return cmd_fail("'%s' was recorded with a precision of %" PRIu32
                            " per cent: it does not tell single messages",
                            path[i], s->info.precision);
    }
    return CMD_YES;
}

int cmd_explain_traces(char *const path[2], const cmd_stretch *stretch, cmd_deviation_fn *fn,
                       void *arg)
{
    explainer x = {.fn = fn, .arg = arg};
    int code = open_traces(&x, path, stretch);
    if (code == CMD_YES)
        code = compare_ranks(&x);
    for (int i = 0; i < 2; i++) {
        cairn_trace_close(x.side[i].t);
        crn_vec_done(&x.side[i].site);
        crn_vec_done(&x.side[i].receipt);
        crn_vec_done(&x.side[i].file);
    }
    crn_vec_done(&x.match);
    crn_vec_done(&x.names.text);
    json_decref(x.names.number);
    return code;
}
