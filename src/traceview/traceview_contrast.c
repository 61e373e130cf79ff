/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranks that differ: the classes of times (tracefmt_timing.h) as the public sees them.
 */
#include "traceview/traceview.h"

typedef struct showing {
    cairn_trace *trace;
    const crn_trace *t;
    const crn_lane *lane;
    double tests; /* that were made of the lane */
    CRN_VEC(uint32_t) rank;
    crn_buf text;
    cairn_trace_contrast_fn *fn;
    void *arg;
    int stop;
} showing;

/* Those ranks of a class that come to a place: the class may name others. */
static cairn_status list_ranks(showing *s, const crn_class *class, uint32_t place)
{
    crn_seq_iter it;
    int64_t rank, base;
    crn_seq ranks;
    CRN_VEC(int64_t) list = {0};
    cairn_status rc = CAIRN_OK;
    s->rank.n = s->text.n = 0;
    crn_seq_iter_init(&it, &class->ranks);
    while (crn_seq_next(&it, &rank)) {
        if (!crn_limit_rank(s->trace, (uint32_t)rank) ||
            !crn_column_group(s->lane->symbol[place].column, (uint32_t)rank, &base))
            continue;
        CRN_TRY_OUT(rc, crn_vec_push(&s->rank, (uint32_t)rank));
        CRN_TRY_OUT(rc, crn_vec_push(&list, rank));
    }
    CRN_TRY_OUT(rc, crn_seq_of(list.at, list.n, &ranks));
    crn_put_ranks(&s->text, &ranks);
    crn_seq_done(&ranks);
    rc =
        crn_buf_text(&s->text) ? CAIRN_OK : crn_fail(CAIRN_ENOMEM, "no memory for a list of ranks");
out:
    crn_vec_done(&list);
    return rc;
}

/* Bonferroni: as if each rank had been tested at each place, and one of all had come out so. */
static double confidence_of(const showing *s, const crn_contrast *c)
{
    return c->repetitions < CRN_REPETITIONS ? 0 : CRN_MAX(1 - c->p * s->tests, 0);
}

static cairn_status show_class(showing *s, const crn_timing *time, const crn_class *class,
                               cairn_trace_contrast *row, uint32_t place)
{
    const crn_class *most = &time->class[0];
    const crn_contrast c = crn_class_contrast(class, most);
    const double mean = crn_hist_mean(&class->hist), others = crn_hist_mean(&most->hist);
    const uint64_t n = crn_hist_count(&class->hist) / CRN_MAX(class->nranks, 1);
    const double ratio = mean < others ? 1 / c.ratio : c.ratio;
    CRN_TRY(list_ranks(s, class, place));
    row->nranks = (uint32_t)s->rank.n;
    row->rank = s->rank.at;
    row->ranks = (char *)s->text.at;
    row->n = n;
    row->seconds = mean * 1e-9;
    row->others = others * 1e-9;
    row->ratio = ratio;
    row->more = (mean - others) * 1e-9 * (double)n;
    row->confidence = confidence_of(s, &c);
    s->stop = row->nranks > 0 ? s->fn(s->arg, row) : 0;
    return CAIRN_OK;
}

static cairn_status show(showing *s, const crn_timing *time, cairn_trace_contrast row,
                         uint32_t place)
{
    for (size_t i = 1; i < time->nclasses && !s->stop; i++)
        CRN_TRY(show_class(s, time, &time->class[i], &row, place));
    return CAIRN_OK;
}

/* What a program does of its own between its calls. */
static cairn_status show_gap(showing *s, cairn_trace_contrast row, const crn_gap *g)
{
    const crn_symbol *from = g->from == CRN_NO_SYMBOL ? NULL : &s->lane->symbol[g->from];
    const crn_symbol *to = &s->lane->symbol[g->to];
    if ((from && from->within != CRN_CALL_NONE) || to->within != CRN_CALL_NONE ||
        !crn_limit_symbol(s->trace, row.thread, g->to))
        return CAIRN_OK;
    row.from = from ? crn_call_row(from->call)->name : NULL;
    row.to = crn_call_row(to->call)->name;
    row.from_site = from ? from->site : 0;
    row.to_site = to->site;
    return show(s, &g->time, row, g->to);
}

/* Calls that end by themselves: those on files. */
static cairn_status show_call(showing *s, cairn_trace_contrast row, uint32_t place)
{
    const crn_symbol *at = &s->lane->symbol[place];
    const crn_layer layer = crn_call_row(at->call)->layer;
    if ((layer != CRN_LAYER_MPIIO && layer != CRN_LAYER_POSIX) || at->within != CRN_CALL_NONE ||
        !crn_limit_symbol(s->trace, row.thread, place))
        return CAIRN_OK;
    row.from = "";
    row.to = crn_call_row(at->call)->name;
    row.from_site = row.to_site = at->site;
    return show(s, &s->lane->took[place], row, place);
}

static cairn_status show_lane(showing *s, uint32_t thread)
{
    const crn_lane *l = s->lane;
    const cairn_trace_contrast row = {.struct_bytes = sizeof row, .thread = thread};
    s->tests = (double)crn_seq_count(&l->ranks) * (double)(l->nsymbols + l->ngaps);
    for (size_t i = 0; i < l->ngaps && !s->stop; i++)
        CRN_TRY(show_gap(s, row, &l->gap[i]));
    for (uint32_t i = 0; l->took && i < l->nsymbols && !s->stop; i++)
        CRN_TRY(show_call(s, row, i));
    return CAIRN_OK;
}

int cairn_trace_contrasts(cairn_trace *trace, cairn_trace_contrast_fn *fn, void *arg)
{
    showing s = {.trace = trace, .t = trace->t, .fn = fn, .arg = arg};
    cairn_status rc = crn_limit_symbols(trace);
    for (size_t i = 0; i < s.t->nlanes && rc == CAIRN_OK && !s.stop; i++) {
        s.lane = &s.t->lane[i];
        rc = show_lane(&s, (uint32_t)i);
    }
    crn_vec_done(&s.rank);
    crn_buf_done(&s.text);
    return rc < 0 ? rc : s.stop ? CAIRN_NOTHING : CAIRN_OK;
}
