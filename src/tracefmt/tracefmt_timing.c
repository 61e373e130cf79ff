/* SPDX-License-Identifier: BSD-3-Clause */
#include "tracefmt/tracefmt.h"

#include <math.h>

enum { MEMBERS = 2 * CRN_CLASSES }; /* of two timings */

void crn_timing_done(crn_timing *t)
{
    for (size_t i = 0; i < t->nclasses; i++)
        crn_seq_done(&t->class[i].ranks);
    free(t->class);
    memset(t, 0, sizeof *t);
}

const crn_hist *crn_timing_of(const crn_timing *t, uint32_t rank)
{
    uint64_t index;
    for (size_t i = 1; i < t->nclasses; i++) {
        if (crn_seq_find(&t->class[i].ranks, rank, &index))
            return &t->class[i].hist;
    }
    return t->nclasses > 0 ? &t->class[0].hist : &t->all;
}

/* ---- the test ---- */

/* The variance of a trimmed mean of n values (Yuen): of so many of the core's values. */
static double mean_variance(const crn_core *c, double n)
{
    const double kept = n * c->kept;
    return kept > 1 ? c->variance * (n - 1) / (kept * (kept - 1)) : 0;
}

/* Wallace's normal deviate for Student's t: within a per cent from 3 degrees of freedom on. */
static double normal_of(double t, double freedom)
{
    if (freedom <= 0)
        return 0;
    return (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log1p(t * t / freedom));
}

static double probability(double apart, double variance, double freedom)
{
    if (variance <= 0)
        return apart > 0 ? 0 : 1;
    return erfc(normal_of(apart / sqrt(variance), freedom) / sqrt(2));
}

/*
 * One side's noise is that of a single rank: the extreme ones of many ranks that are alike differ
 * from the rest by more than the mean of all of them is uncertain.
 */
crn_contrast crn_class_contrast(const crn_class *a, const crn_class *b)
{
    const crn_core x = crn_hist_core(&a->hist), y = crn_hist_core(&b->hist);
    const double reps_a = x.n / (double)CRN_MAX(a->nranks, 1);
    const double reps_b = y.n / (double)CRN_MAX(b->nranks, 1);
    const double of_a = mean_variance(&x, reps_a) + mean_variance(&y, y.n);
    const double of_b = mean_variance(&y, reps_b) + mean_variance(&x, x.n);
    const double apart = fabs(x.mean - y.mean);
    const double p = CRN_MAX(probability(apart, of_a, reps_a * x.kept - 1),
                             probability(apart, of_b, reps_b * y.kept - 1));
    return (crn_contrast){.ratio = (CRN_MAX(x.mean, y.mean) + 1) / (CRN_MIN(x.mean, y.mean) + 1),
                          .p = p,
                          .more = fabs(crn_hist_mean(&a->hist) - crn_hist_mean(&b->hist)) *
                                  CRN_MAX(reps_a, reps_b),
                          .repetitions = CRN_MIN(reps_a, reps_b)};
}

bool crn_call_waits(uint32_t call)
{
    const crn_layer layer = crn_call_row(call)->layer;
    return call != CRN_CALL_NONE && layer >= CRN_LAYER_P2P && layer <= CRN_LAYER_RMA;
}

/*
 * Calls that wait take long because of other ranks, and differ in any program by its structure:
 * there only much of it is worth its bytes.
 */
crn_bar crn_bar_of(uint32_t call, uint64_t nranks, size_t ntimings, uint64_t lasted, bool last)
{
    const bool waits = crn_call_waits(call);
    const double run = (double)lasted, n = (double)CRN_MAX(nranks, 1);
    crn_bar bar = {.ratio = waits ? 1.5 : 1.1,
                   .p = 0.01 / (n * (double)CRN_MAX(ntimings, 1)),
                   .more = (waits ? 0.01 : 0.001) * run,
                   .few_ratio = 1.5,
                   .few_more = (waits ? 0.02 : 0.01) * run};
    if (!last) {
        bar.ratio = sqrt(bar.ratio);
        bar.p = CRN_MIN(0.05, 4 / n);
        bar.more /= 2;
    }
    return bar;
}

bool crn_contrast_passes(const crn_contrast *c, const crn_bar *bar)
{
    if (c->repetitions < CRN_REPETITIONS)
        return c->ratio >= bar->few_ratio && c->more >= bar->few_more;
    return c->ratio >= bar->ratio && c->p <= bar->p && c->more >= bar->more;
}

/* ---- clusters of classes ---- */

/* A class of one of the two timings that are united. */
typedef struct member {
    const crn_class *class;
    const crn_seq *side; /* all ranks that its timing is of */
    size_t first, end;   /* the members of that timing */
    bool rest;           /* it has what the others of that timing do not name */
} member;

typedef struct cluster {
    crn_class sum; /* without ranks */
    uint32_t members;
} cluster;

typedef struct clusters {
    member member[MEMBERS];
    size_t nmembers;
    cluster at[MEMBERS]; /* ascending by mean */
    size_t n;
} clusters;

static void add_member(clusters *c, const crn_class *class, member m)
{
    const double mean = crn_hist_core(&class->hist).mean;
    size_t i = c->n++;
    for (; i > 0 && crn_hist_core(&c->at[i - 1].sum.hist).mean > mean; i--)
        c->at[i] = c->at[i - 1];
    c->at[i] = (cluster){{.nranks = class->nranks, .hist = class->hist}, 1u << c->nmembers};
    m.class = class;
    c->member[c->nmembers++] = m;
}

/* *whole: where the one class of a timing without classes is put. */
static void add_timing(clusters *c, const crn_timing *t, const crn_seq *ranks, crn_class *whole)
{
    member m = {.side = ranks, .first = c->nmembers};
    m.end = m.first + CRN_MAX(t->nclasses, 1);
    *whole = (crn_class){.nranks = t->nranks, .hist = t->all};
    if (t->nranks == 0) /* a file that is complete, or of an earlier format */
        whole->nranks = crn_seq_count(ranks);
    m.rest = true;
    add_member(c, t->nclasses > 0 ? &t->class[0] : whole, m);
    m.rest = false;
    for (size_t i = 1; i < t->nclasses; i++)
        add_member(c, &t->class[i], m);
}

static void join(clusters *c, size_t i)
{
    cluster *a = &c->at[i], *b = a + 1;
    crn_hist_merge(&a->sum.hist, &b->sum.hist);
    a->sum.nranks = CRN_MIN(a->sum.nranks + b->sum.nranks, UINT32_MAX);
    a->members |= b->members;
    c->n--;
    memmove(b, b + 1, (c->n - i - 1) * sizeof *b);
}

/* Unite neighbours that do not differ, and the nearest ones while there are too many. */
static void gather(clusters *c, const crn_bar *bar)
{
    for (;;) {
        size_t best = c->n;
        double least = HUGE_VAL;
        for (size_t i = 0; i + 1 < c->n; i++) {
            const crn_contrast k = crn_class_contrast(&c->at[i].sum, &c->at[i + 1].sum);
            if (k.ratio < least && (c->n > CRN_CLASSES || !crn_contrast_passes(&k, bar))) {
                least = k.ratio;
                best = i;
            }
        }
        if (best == c->n)
            return;
        join(c, best);
    }
}

typedef CRN_VEC(int64_t) rank_list;

static bool is_named(const clusters *c, const member *m, int64_t rank)
{
    uint64_t index;
    for (size_t i = m->first; i < m->end; i++) {
        if (!c->member[i].rest && crn_seq_find(&c->member[i].class->ranks, rank, &index))
            return true;
    }
    return false;
}

static cairn_status list_ranks(const clusters *c, const member *m, rank_list *list)
{
    crn_seq_iter it;
    int64_t rank;
    crn_seq_iter_init(&it, m->rest ? m->side : &m->class->ranks);
    while (crn_seq_next(&it, &rank)) {
        if (!m->rest || !is_named(c, m, rank))
            CRN_TRY(crn_vec_push(list, rank));
    }
    return CAIRN_OK;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static cairn_status ranks_of(const clusters *c, uint32_t members, crn_seq *ret)
{
    rank_list list = {0};
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < c->nmembers; i++) {
        if (members >> i & 1)
            CRN_TRY_OUT(rc, list_ranks(c, &c->member[i], &list));
    }
    if (list.n > 0)
        qsort(list.at, list.n, sizeof *list.at, by_number);
    size_t n = 0; /* a forged file may name a rank twice */
    for (size_t i = 0; i < list.n; i++) {
        if (n == 0 || list.at[n - 1] != list.at[i])
            list.at[n++] = list.at[i];
    }
    CRN_TRY_OUT(rc, crn_seq_of(list.at, n, ret));
out:
    crn_vec_done(&list);
    return rc;
}

/* The one with most ranks; of several the fastest. */
static size_t largest(const clusters *c)
{
    size_t best = 0;
    for (size_t i = 1; i < c->n; i++) {
        if (c->at[i].sum.nranks > c->at[best].sum.nranks)
            best = i;
    }
    return best;
}

/* Classes from clusters, put in place of those of *t. */
static cairn_status set_classes(crn_timing *t, const clusters *c)
{
    crn_timing made = {.all = t->all, .nranks = t->nranks};
    const size_t rest = largest(c);
    cairn_status rc = CAIRN_OK;
    if (c->n > 1) {
        CRN_TRY(crn_alloc(&made.class, c->n));
        made.class[made.nclasses++] = c->at[rest].sum;
    }
    for (size_t i = 0; i < c->n && c->n > 1; i++) {
        if (i == rest)
            continue;
        crn_class *class = &made.class[made.nclasses];
        *class = c->at[i].sum;
        CRN_TRY_OUT(rc, ranks_of(c, c->at[i].members, &class->ranks));
        made.nclasses += class->ranks.n > 0; /* as it is, unless a file was forged */
    }
    if (made.nclasses == 1) {
        free(made.class);
        made.class = NULL;
        made.nclasses = 0;
    }
    crn_timing_done(t);
    *t = made;
    return CAIRN_OK;
out:
    crn_timing_done(&made);
    return rc;
}

cairn_status crn_timing_unite(crn_timing *a, const crn_seq *ra, crn_timing *b, const crn_seq *rb,
                              const crn_bar *bar)
{
    clusters c = {.n = 0};
    crn_class whole_a, whole_b;
    if (b->all.nbins == 0)
        return CAIRN_OK;
    if (a->all.nbins > 0) {
        add_timing(&c, a, ra, &whole_a);
        add_timing(&c, b, rb, &whole_b);
        crn_hist_merge(&a->all, &b->all);
        a->nranks = CRN_MIN(whole_a.nranks + whole_b.nranks, UINT32_MAX);
        gather(&c, bar);
        CRN_TRY(set_classes(a, &c));
        crn_timing_done(b);
    } else {
        *a = *b;
        memset(b, 0, sizeof *b);
    }
    return CAIRN_OK;
}

cairn_status crn_timing_finish(crn_timing *t, const crn_seq *ranks, const crn_bar *bar)
{
    clusters c = {.n = 0};
    crn_class whole;
    if (t->nclasses > 0) {
        add_timing(&c, t, ranks, &whole);
        gather(&c, bar);
        CRN_TRY(set_classes(t, &c));
    }
    t->nranks = 0;
    return CAIRN_OK;
}
