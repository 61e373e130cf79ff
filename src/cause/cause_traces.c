/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How two traces differ in the stretch between two marks: rank by rank, thread by thread.
 *
 * Threads are numbered as they first call MPI or use a file, which need not be the same in two
 * runs: those that did the very same are taken for each other first, and explain nothing; what is
 * left is compared by number.
 */
#include "cause/cause.h"

#include <inttypes.h>

typedef struct explainer {
    crn_mark_interval stretch;
    crn_names names;
    crn_story side[2];
    crn_acts lane[2];          /* of the rank that is looked at */
    crn_passing_by passing[2]; /* its first thread, which has all marks */
    CRN_VEC(cairn_match) match;
    cairn_deviation_fn *fn;
    void *arg;
    cairn_explain_remarks *remarks;
} explainer;

/* ---- two threads ---- */

static bool same_message(const crn_receipt *p, const crn_receipt *q)
{
    return p->source == q->source && p->tag == q->tag;
}

static bool same_place(const explainer *x, const crn_receipt *p, const crn_receipt *q)
{
    return x->remarks->rebuilt || p->site == q->site;
}

static bool compare_receipts(explainer *x, const crn_act *a, const crn_act *b, cairn_deviation *d)
{
    const size_t n = CRN_MIN(a->receipt.n, b->receipt.n);
    x->match.n = 0;
    for (; d->ncommon < n && !d->parted; d->ncommon += !d->parted) {
        const crn_receipt *p = &a->receipt.at[d->ncommon], *q = &b->receipt.at[d->ncommon];
        d->parted = !same_place(x, p, q);
        if (d->parted || same_message(p, q))
            continue;
        if (crn_vec_push(&x->match, (cairn_match){.nth = d->ncommon + 1,
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
static uint32_t *sorted(const crn_act *l)
{
    uint32_t *copy;
    if (crn_alloc(&copy, l->file.n + 1) < 0)
        return NULL;
    for (size_t i = 0; i < l->file.n; i++)
        copy[i] = l->file.at[i];
    qsort(copy, l->file.n, sizeof *copy, by_number);
    return copy;
}

static bool same_files(const crn_act *a, const crn_act *b, bool *ret)
{
    uint32_t *p = sorted(a), *q = sorted(b);
    *ret = p && q && a->file.n == b->file.n && memcmp(p, q, a->file.n * sizeof *p) == 0;
    const bool had_memory = p && q;
    free(p);
    free(q);
    return had_memory;
}

static bool compare_files(const explainer *x, const crn_act *a, const crn_act *b,
                          cairn_deviation *d)
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
static cairn_status compare_lanes(explainer *x, uint32_t rank, const crn_act *a, const crn_act *b,
                                  cairn_deviation *ret)
{
    static const crn_act none;
    *ret = (cairn_deviation){.rank = rank,
                             .thread = {a ? (int64_t)a->thread : -1, b ? (int64_t)b->thread : -1}};
    a = a ? a : &none;
    b = b ? b : &none;
    CRN_FAIL_IF(!compare_receipts(x, a, b, ret) || !compare_files(x, a, b, ret), CAIRN_ENOMEM,
                "no memory");
    return CAIRN_OK;
}

/* Number of differences to report. */
static size_t weight(const cairn_deviation *d)
{
    return d->nmatches + (d->parted || d->nreceived[0] != d->nreceived[1]) + (d->nth_file > 0);
}

/* ---- threads that other threads' marks do not stop ---- */

static crn_span join(crn_span a, crn_span b)
{
    return (crn_span){CRN_MIN(a.first, b.first), CRN_MAX(a.end, b.end)};
}

static bool same_span(crn_span a, crn_span b)
{
    return a.first == b.first && a.end == b.end;
}

/* Has nothing stopped either thread at the marks, which came after other numbers of things? */
static bool are_met_elsewhere(const explainer *x, const crn_act *a, const crn_act *b)
{
    return a && b && !a->marks && !b->marks &&
           x->passing[0].first_mark == x->passing[1].first_mark &&
           !(same_span(a->receipts, b->receipts) && same_span(a->files, b->files));
}

/*
 * Compare receipts and files by number, of both stretches. *ret_like: what came before was the
 * same.
 */
static cairn_status compare_by_number(explainer *x, uint32_t rank, const crn_act *a,
                                      const crn_act *b, cairn_deviation *ret, bool *ret_like)
{
    const crn_span receipts = join(a->receipts, b->receipts), files = join(a->files, b->files);
    crn_act p, q;
    CRN_TRY(crn_act_collect_spans(&x->side[0], rank, a, receipts, files, &p));
    cairn_status code = crn_act_collect_spans(&x->side[1], rank, b, receipts, files, &q);
    if (code == CAIRN_OK) {
        code = compare_lanes(x, rank, &p, &q, ret);
        *ret_like = p.history == q.history;
        crn_act_done(&q);
    }
    crn_act_done(&p);
    ret->cut = a->receipts.end != b->receipts.end;
    ret->ncut[0] = a->receipts.end;
    ret->ncut[1] = b->receipts.end;
    return code;
}

/*
 * Between the marks first. Where these met the threads at other places, numbers decide what belongs
 * together, if the threads were alike up to there; if not, then whatever leaves less to explain:
 * chance makes differences, not likeness.
 */
static cairn_status compare_pair(explainer *x, uint32_t rank, const crn_act *a, const crn_act *b,
                                 cairn_deviation *ret)
{
    cairn_deviation d;
    bool like = false;
    CRN_TRY(compare_lanes(x, rank, a, b, ret));
    if (weight(ret) == 0 || !are_met_elsewhere(x, a, b))
        return CAIRN_OK;
    CRN_TRY(compare_by_number(x, rank, a, b, &d, &like));
    if (!like && weight(&d) >= weight(ret))
        return compare_lanes(x, rank, a, b, ret); /* its matches were overwritten */
    *ret = d;
    return CAIRN_OK;
}

static cairn_status tell_pair(explainer *x, uint32_t rank, const crn_act *a, const crn_act *b)
{
    cairn_deviation d;
    CRN_TRY(compare_pair(x, rank, a, b, &d));
    if (weight(&d) > 0 || d.cut)
        x->fn(x->arg, &d);
    return CAIRN_OK;
}

/* ---- the threads of a rank ---- */

static bool did_the_same(const explainer *x, const crn_act *a, const crn_act *b)
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
    NUMBER = 2, /* also their ordinal among those that have it */
    ROLE = 4,   /* who takes the marks */
    BUSY = 8,   /* they did something at all */
    BEGIN = 16  /* the first thing that they did */
};

static bool began_alike(const crn_act *a, const crn_act *b)
{
    const int what = a->began[0] == 0 || b->began[0] == 0;
    return a->began[what] != 0 && a->began[what] == b->began[what];
}

static bool is_busy(const crn_act *l)
{
    return l->receipt.n > 0 || l->file.n > 0;
}

static bool have_in_common(const explainer *x, const crn_act *a, const crn_act *b, unsigned what)
{
    return !(what & ROLE && a->marks != b->marks) &&
           !(what & NUMBER && (a->thread != b->thread || a->life != b->life)) &&
           !(what & BUSY && !(is_busy(a) && is_busy(b))) && !(what & BEGIN && !began_alike(a, b)) &&
           !(what & SAME && !did_the_same(x, a, b));
}

static void find_partner(explainer *x, crn_act *a, unsigned what)
{
    for (size_t i = 0; i < x->lane[1].n && !a->paired; i++) {
        crn_act *b = &x->lane[1].at[i];
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

static cairn_status tell_threads(explainer *x, uint32_t rank)
{
    pair_up(x);
    for (size_t i = 0; i < x->lane[0].n; i++)
        CRN_TRY(tell_pair(x, rank, &x->lane[0].at[i], x->lane[0].at[i].other));
    for (size_t i = 0; i < x->lane[1].n; i++)
        if (!x->lane[1].at[i].paired)
            CRN_TRY(tell_pair(x, rank, NULL, &x->lane[1].at[i]));
    return CAIRN_OK;
}

/* A thread that ended before the stretch, and whose number another one has got since, is left out.
 */
static cairn_status collect_threads(explainer *x, int which, uint32_t rank)
{
    crn_story *s = &x->side[which];
    crn_passing_by passing;
    crn_acts_cut(&x->lane[which], 0);
    x->passing[which] = (crn_passing_by){0};
    for (uint32_t t = 0; t < s->info.nthreads; t++) {
        CRN_TRY(crn_act_collect(s, rank, t, &x->stretch, &x->lane[which], &passing));
        if (t == 0)
            x->passing[which] = passing;
        x->remarks->nnameless += passing.whole ? passing.nnameless : 0;
    }
    return CAIRN_OK;
}

/* ---- the ranks ---- */

/* The rank's first thread has not both marks: name the missing one. */
static cairn_status say_unmarked(const explainer *x, int which, uint32_t rank)
{
    const crn_mark_interval *s = &x->stretch;
    const bool has_from = s->from_start || x->passing[which].has_from;
    if (has_from && x->passing[which].has_to)
        return crn_fail(CAIRN_EMISMATCH,
                        "in '%s' mark %" PRIu64 " of rank %" PRIu32 " does not follow mark %" PRIu64
                        ": name the trace of the leg in which it was taken",
                        x->side[which].path, s->to, rank, s->from);
    return crn_fail(CAIRN_EMISMATCH,
                    "'%s' has no mark %" PRIu64 " of rank %" PRIu32
                    ": is it of this run, and of the leg in which it was taken?",
                    x->side[which].path, has_from ? s->to : s->from, rank);
}

/* Programs that are built alike call MPI_Init at the same place. */
static bool were_rebuilt(const explainer *x)
{
    const uint32_t a = x->side[0].start, b = x->side[1].start;
    return a > 0 && b > 0 && a != b;
}

static cairn_status compare_rank(explainer *x, uint32_t rank)
{
    for (int i = 0; i < 2; i++) {
        CRN_TRY(collect_threads(x, i, rank));
        if (!x->passing[i].whole)
            return say_unmarked(x, i, rank);
    }
    x->remarks->rebuilt = were_rebuilt(x);
    return tell_threads(x, rank);
}

static cairn_status compare_ranks(explainer *x)
{
    const uint32_t nranks = x->side[0].info.nranks;
    if (nranks != x->side[1].info.nranks)
        return crn_fail(CAIRN_EMISMATCH,
                        "'%s' has %" PRIu32 " ranks, '%s' %" PRIu32
                        ": their messages cannot be compared",
                        x->side[0].path, nranks, x->side[1].path, x->side[1].info.nranks);
    for (uint32_t r = 0; r < nranks; r++)
        CRN_TRY(compare_rank(x, r));
    return CAIRN_OK;
}

static cairn_status open_trace(crn_story *s, const char *path, crn_names *names)
{
    s->path = path;
    s->names = names;
    s->info = (cairn_trace_info){.struct_bytes = sizeof s->info};
    CRN_TRY(cairn_trace_open(path, &s->t));
    CRN_TRY(cairn_trace_describe(s->t, &s->info));
    CRN_FAIL_IF(s->info.precision < 100, CAIRN_EUNSUPPORTED,
                "'%s' was recorded with a precision of %" PRIu32
                " per cent: it does not have single messages",
                path, s->info.precision);
    return CAIRN_OK;
}

static void explainer_done(explainer *x)
{
    for (int i = 0; i < 2; i++) {
        crn_acts_cut(&x->lane[i], 0);
        crn_vec_done(&x->lane[i]);
        cairn_trace_close(x->side[i].t);
        crn_vec_done(&x->side[i].site);
    }
    for (size_t i = 0; i < x->names.text.n; i++)
        free(x->names.text.at[i]);
    crn_vec_done(&x->names.text);
    crn_index_done(&x->names.number);
    crn_vec_done(&x->match);
}

int cairn_explain_traces(const cairn_explanation *why, const char *first, const char *second,
                         cairn_deviation_fn *fn, void *arg, cairn_explain_remarks *remarks)
{
    const cairn_parting *p = &why->parting;
    cairn_explain_remarks ours = {.struct_bytes = sizeof ours};
    explainer x = {.stretch = {p->from_start, p->from, p->to}, .fn = fn, .arg = arg};
    CRN_FAIL_IF(!p->differ, CAIRN_EINVAL, "the runs do not differ: there is nothing to explain");
    x.remarks = &ours;
    cairn_status rc = open_trace(&x.side[0], first, &x.names);
    if (rc == CAIRN_OK)
        rc = open_trace(&x.side[1], second, &x.names);
    if (rc == CAIRN_OK)
        rc = compare_ranks(&x);
    explainer_done(&x);
    CRN_TRY(rc);
    return remarks ? crn_struct_out(&ours, remarks) : CAIRN_OK;
}
