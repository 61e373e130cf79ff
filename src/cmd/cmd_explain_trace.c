/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How what two traces say of the stretch between two marks differs: rank by rank, thread by thread.
 *
 * Threads are numbered as they first call MPI or use a file, which need not be the same in two
 * runs: those that did the very same are taken for each other first, and explain nothing; what is
 * left is compared by number.
 */
#include "cmd/cmd_explain.h"

typedef struct explainer {
    const cmd_stretch *stretch;
    cmd_names names;
    cmd_side side[2];
    cmd_lanes lane[2];      /* of the rank that is looked at */
    cmd_passing passing[2]; /* its first thread, which has all marks */
    CRN_VEC(cmd_match) match;
    cmd_deviation_fn *fn;
    void *arg;
    cmd_remarks *remarks;
} explainer;

/* ---- two threads ---- */

static bool same_message(const cmd_receipt *p, const cmd_receipt *q)
{
    return p->source == q->source && p->tag == q->tag;
}

static bool same_place(const explainer *x, const cmd_receipt *p, const cmd_receipt *q)
{
    return x->remarks->rebuilt || p->site == q->site;
}

static bool compare_receipts(explainer *x, const cmd_lane *a, const cmd_lane *b, cmd_deviation *d)
{
    const size_t n = CRN_MIN(a->receipt.n, b->receipt.n);
    x->match.n = 0;
    for (; d->ncommon < n && !d->parted; d->ncommon += !d->parted) {
        const cmd_receipt *p = &a->receipt.at[d->ncommon], *q = &b->receipt.at[d->ncommon];
        d->parted = !same_place(x, p, q);
        if (d->parted || same_message(p, q))
            continue;
        if (crn_vec_push(&x->match, (cmd_match){.nth = d->ncommon + 1,
                                                .call = p->call,
                                                .site = x->names.text.at[p->site],
                                                .source = {p->source, q->source},
                                                .tag = {p->tag, q->tag}}) < 0)
            return false;
    }
    d->nreceived[0] = a->receipt.n;
    d->nreceived[1] = b->receipt.n;
    d->match = x->match.at;
    d->nmatches = x->match.n;
    return true;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* A sorted copy; NULL without memory. */
static uint32_t *sorted(const cmd_lane *l)
{
    uint32_t *copy;
    if (crn_alloc(&copy, l->file.n + 1) < 0)
        return NULL;
    for (size_t i = 0; i < l->file.n; i++)
        copy[i] = l->file.at[i];
    qsort(copy, l->file.n, sizeof *copy, by_number);
    return copy;
}

static bool same_files(const cmd_lane *a, const cmd_lane *b, bool *ret)
{
    uint32_t *p = sorted(a), *q = sorted(b);
    *ret = p && q && a->file.n == b->file.n && memcmp(p, q, a->file.n * sizeof *p) == 0;
    const bool had_memory = p && q;
    free(p);
    free(q);
    return had_memory;
}

static bool compare_files(const explainer *x, const cmd_lane *a, const cmd_lane *b,
                          cmd_deviation *d)
{
    size_t i = 0;
    while (i < a->file.n && i < b->file.n && a->file.at[i] == b->file.at[i])
        i++;
    if (i == a->file.n && i == b->file.n)
        return true;
    d->nth_file = i + 1;
    d->file[0] = i < a->file.n ? x->names.text.at[a->file.at[i]] : NULL;
    d->file[1] = i < b->file.n ? x->names.text.at[b->file.at[i]] : NULL;
    return same_files(a, b, &d->same_files);
}

/* b NULL: the trace has no such thread. */
static int compare_lanes(explainer *x, uint32_t rank, const cmd_lane *a, const cmd_lane *b,
                         cmd_deviation *ret)
{
    static const cmd_lane none;
    *ret = (cmd_deviation){.rank = rank,
                           .thread = {a ? (int64_t)a->thread : -1, b ? (int64_t)b->thread : -1}};
    a = a ? a : &none;
    b = b ? b : &none;
    return compare_receipts(x, a, b, ret) && compare_files(x, a, b, ret) ? CMD_YES
                                                                         : cmd_fail("no memory");
}

/* How much there is to tell; 0: nothing. */
static size_t weight(const cmd_deviation *d)
{
    return d->nmatches + (d->parted || d->nreceived[0] != d->nreceived[1]) + (d->nth_file > 0);
}

/* ---- threads that other threads' marks do not stop ---- */

static cmd_span join(cmd_span a, cmd_span b)
{
    return (cmd_span){CRN_MIN(a.first, b.first), CRN_MAX(a.end, b.end)};
}

static bool same_span(cmd_span a, cmd_span b)
{
    return a.first == b.first && a.end == b.end;
}

/* Has nothing stopped either thread at the marks, which came after other numbers of things? */
static bool are_met_elsewhere(const explainer *x, const cmd_lane *a, const cmd_lane *b)
{
    return a && b && !a->marks && !b->marks &&
           x->passing[0].first_mark == x->passing[1].first_mark &&
           !(same_span(a->receipts, b->receipts) && same_span(a->files, b->files));
}

/*
 * Compare receipts and files by number, of both stretches. *ret_like: what came before was the
 * same.
 */
static int compare_by_number(explainer *x, uint32_t rank, const cmd_lane *a, const cmd_lane *b,
                             cmd_deviation *ret, bool *ret_like)
{
    const cmd_span receipts = join(a->receipts, b->receipts), files = join(a->files, b->files);
    cmd_lane p, q;
    if (cmd_lane_collect_spans(&x->side[0], rank, a, receipts, files, &p) != CMD_YES)
        return CMD_UNKNOWN;
    int code = cmd_lane_collect_spans(&x->side[1], rank, b, receipts, files, &q);
    if (code == CMD_YES) {
        code = compare_lanes(x, rank, &p, &q, ret);
        *ret_like = p.history == q.history;
        cmd_lane_done(&q);
    }
    cmd_lane_done(&p);
    ret->cut = a->receipts.end != b->receipts.end;
    ret->ncut[0] = a->receipts.end;
    ret->ncut[1] = b->receipts.end;
    return code;
}

/*
 * Between the marks first. Where these met the threads at other places, numbers tell what belongs
 * together, if the threads were alike up to there; if not, then whatever leaves less to explain:
 * chance makes differences, not likeness.
 */
static int compare_pair(explainer *x, uint32_t rank, const cmd_lane *a, const cmd_lane *b,
                        cmd_deviation *ret)
{
    cmd_deviation d;
    bool like;
    if (compare_lanes(x, rank, a, b, ret) != CMD_YES)
        return CMD_UNKNOWN;
    if (weight(ret) == 0 || !are_met_elsewhere(x, a, b))
        return CMD_YES;
    if (compare_by_number(x, rank, a, b, &d, &like) != CMD_YES)
        return CMD_UNKNOWN;
    if (!like && weight(&d) >= weight(ret))
        return compare_lanes(x, rank, a, b, ret); /* its matches were overwritten */
    *ret = d;
    return CMD_YES;
}

static int tell_pair(explainer *x, uint32_t rank, const cmd_lane *a, const cmd_lane *b)
{
    cmd_deviation d;
    if (compare_pair(x, rank, a, b, &d) != CMD_YES)
        return CMD_UNKNOWN;
    if (weight(&d) > 0 || d.cut)
        x->fn(x->arg, &d);
    return CMD_YES;
}

/* ---- the threads of a rank ---- */

static bool did_the_same(const explainer *x, const cmd_lane *a, const cmd_lane *b)
{
    if (a->receipt.n != b->receipt.n || a->file.n != b->file.n)
        return false;
    for (size_t i = 0; i < a->receipt.n; i++)
        if (!same_place(x, &a->receipt.at[i], &b->receipt.at[i]) ||
            !same_message(&a->receipt.at[i], &b->receipt.at[i]))
            return false;
    for (size_t i = 0; i < a->file.n; i++)
        if (a->file.at[i] != b->file.at[i])
            return false;
    return true;
}

/* What two threads have in common. */
enum {
    SAME = 1,   /* all that they did */
    NUMBER = 2, /* also the how-manyth they are that have it */
    ROLE = 4,   /* who takes the marks */
    BUSY = 8,   /* they did something at all */
    BEGIN = 16  /* the first thing that they did */
};

static bool began_alike(const cmd_lane *a, const cmd_lane *b)
{
    const int what = a->began[0] == 0 || b->began[0] == 0;
    return a->began[what] != 0 && a->began[what] == b->began[what];
}

static bool is_busy(const cmd_lane *l)
{
    return l->receipt.n > 0 || l->file.n > 0;
}

static bool have_in_common(const explainer *x, const cmd_lane *a, const cmd_lane *b, unsigned what)
{
    return !(what & ROLE && a->marks != b->marks) &&
           !(what & NUMBER && (a->thread != b->thread || a->life != b->life)) &&
           !(what & BUSY && !(is_busy(a) && is_busy(b))) && !(what & BEGIN && !began_alike(a, b)) &&
           !(what & SAME && !did_the_same(x, a, b));
}

static void find_partner(explainer *x, cmd_lane *a, unsigned what)
{
    for (size_t i = 0; i < x->lane[1].n && !a->paired; i++) {
        cmd_lane *b = &x->lane[1].at[i];
        if (b->paired || !have_in_common(x, a, b, what))
            continue;
        a->paired = b->paired = true;
        a->other = b;
    }
}

static void pair_up(explainer *x)
{
    static const unsigned what[] = {
        SAME | BUSY | NUMBER, SAME | BUSY, BEGIN | ROLE | NUMBER, BEGIN | ROLE, ROLE | NUMBER,
        ROLE | BUSY,          NUMBER};
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        for (size_t k = 0; k < x->lane[0].n; k++)
            find_partner(x, &x->lane[0].at[k], what[i]);
}

static int tell_threads(explainer *x, uint32_t rank)
{
    pair_up(x);
    for (size_t i = 0; i < x->lane[0].n; i++)
        if (tell_pair(x, rank, &x->lane[0].at[i], x->lane[0].at[i].other) != CMD_YES)
            return CMD_UNKNOWN;
    for (size_t i = 0; i < x->lane[1].n; i++)
        if (!x->lane[1].at[i].paired && tell_pair(x, rank, NULL, &x->lane[1].at[i]) != CMD_YES)
            return CMD_UNKNOWN;
    return CMD_YES;
}

/* A thread that ended before the stretch, and whose number another one has got since, is left out.
 */
static int collect_threads(explainer *x, int which, uint32_t rank)
{
    cmd_side *s = &x->side[which];
    cmd_passing passing;
    cmd_lanes_cut(&x->lane[which], 0);
    x->passing[which] = (cmd_passing){0};
    for (uint32_t t = 0; t < s->info.nthreads; t++) {
        if (cmd_lane_collect(s, rank, t, x->stretch, &x->lane[which], &passing) != CMD_YES)
            return CMD_UNKNOWN;
        if (t == 0)
            x->passing[which] = passing;
        x->remarks->nnameless += passing.whole ? passing.nnameless : 0;
    }
    return CMD_YES;
}

/* ---- the ranks ---- */

/* The rank's first thread has not both marks: say which is missing. */
static int say_unmarked(const explainer *x, int which, uint32_t rank)
{
    const cmd_stretch *s = x->stretch;
    const bool has_from = s->from_start || x->passing[which].has_from;
    if (has_from && x->passing[which].has_to)
        return cmd_fail("in '%s' mark %" PRIu64 " of rank %" PRIu32 " does not follow mark %" PRIu64
                        ": name the trace of the leg in which it was taken",
                        x->side[which].path, s->to, rank, s->from);
    return cmd_fail("'%s' has no mark %" PRIu64 " of rank %" PRIu32
                    ": is it of this run, and of the leg in which it was taken?",
                    x->side[which].path, has_from ? s->to : s->from, rank);
}

/* Programs that are built alike call MPI_Init at the same place. */
static bool were_rebuilt(const explainer *x)
{
    const uint32_t a = x->side[0].start, b = x->side[1].start;
    return a > 0 && b > 0 && a != b;
}

static int compare_rank(explainer *x, uint32_t rank)
{
    for (int i = 0; i < 2; i++) {
        if (collect_threads(x, i, rank) != CMD_YES)
            return CMD_UNKNOWN;
        if (!x->passing[i].whole)
            return say_unmarked(x, i, rank);
    }
    x->remarks->rebuilt = were_rebuilt(x);
    return tell_threads(x, rank);
}

static int compare_ranks(explainer *x)
{
    const uint32_t nranks = x->side[0].info.nranks;
    if (nranks != x->side[1].info.nranks)
        return cmd_fail("'%s' has %" PRIu32 " ranks, '%s' %" PRIu32
                        ": their messages cannot be compared",
                        x->side[0].path, nranks, x->side[1].path, x->side[1].info.nranks);
    for (uint32_t r = 0; r < nranks; r++)
        if (compare_rank(x, r) != CMD_YES)
            return CMD_UNKNOWN;
    return CMD_YES;
}

/* Only said: clocks may be wrong. */
static void doubt_time(const cmd_side *s, const cmd_stretch *stretch, uint64_t taken)
{
    enum { NEAR = 1000000000 }; /* clocks of several machines */
    char from[CMD_WORDS], to[CMD_WORDS], at[CMD_WORDS];
    const uint64_t began = s->info.began_ns, ended = began + s->info.lasted_ns;
    if (taken == 0 || began == 0 || (taken + NEAR >= began && taken <= ended + NEAR))
        return;
    cmd_fail("'%s' was recorded from %s to %s, but mark %" PRIu64 " was taken at %s: is it of this "
             "run?",
             s->path, cmd_date(began, from), cmd_date(ended, to), stretch->to, cmd_date(taken, at));
}

static int open_traces(explainer *x, char *const path[2])
{
    x->names.number = json_object();
    if (!x->names.number)
        return cmd_fail("no memory");
    for (int i = 0; i < 2; i++) {
        cmd_side *s = &x->side[i];
        s->path = path[i];
        s->names = &x->names;
        if (cmd_trace_open(path[i], &s->t, &s->info) != CMD_YES)
            return CMD_UNKNOWN;
        if (s->info.precision < 100)
            return cmd_fail("'%s' was recorded with a precision of %" PRIu32
                            " per cent: it does not tell single messages",
                            path[i], s->info.precision);
        doubt_time(s, x->stretch, x->stretch->taken_ns[i]);
    }
    return CMD_YES;
}

int cmd_explain_traces(char *const path[2], const cmd_stretch *stretch, cmd_deviation_fn *fn,
                       void *arg, cmd_remarks *ret)
{
    explainer x = {.stretch = stretch, .fn = fn, .arg = arg, .remarks = ret};
    *ret = (cmd_remarks){0};
    int code = open_traces(&x, path);
    if (code == CMD_YES)
        code = compare_ranks(&x);
    for (int i = 0; i < 2; i++) {
        cmd_lanes_cut(&x.lane[i], 0);
        crn_vec_done(&x.lane[i]);
        cairn_trace_close(x.side[i].t);
        crn_vec_done(&x.side[i].site);
    }
    crn_vec_done(&x.match);
    crn_vec_done(&x.names.text);
    json_decref(x.names.number);
    return code;
}
