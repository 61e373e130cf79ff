/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing runs: mark by mark, each cut into units that processes and threads share; and files, in
 * the same way. See diff.h.
 */
#include <mpi.h>

#include "diff/diff.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

/* A comparison under way, the same on all processes but for rows. */
typedef struct comparison {
    crn_comm *comm;
    cairn_comparison_options how;
    enum { RUNS, GATE, FILES } kind;  /* gate: the first side is a golden file */
    const crn_diff_source *source[2]; /* NULL: runs, or files */
    diff_question ask;
    diff_side side[2];
    diff_files *files; /* instead of sides */
    unsigned nthreads;
    diff_worker **worker; /* one for each thread */
    diff_crew *crew;      /* the threads beside this one */
    cairn_comparison result;
    uint64_t nrows; /* of variables, by the first process */
    uint64_t total_bytes;
    bool stopped; /* by the caller's function */
} comparison;

/* A mark under way, or all of two files, shared by the threads of a process. */
typedef struct mark_work {
    comparison *c;
    const diff_mark *mark[2];
    uint64_t nunits, nbytes;
    atomic_ullong next; /* which unit to take; its order does not matter */
    diff_rows rows;     /* guarded by mutex */
    crn_err err;        /* likewise: the first failure */
    uint64_t seen;      /* likewise: bytes that this process has seen to */
    pthread_mutex_t mutex;
} mark_work;

/* --- units ---------------------------------------------------------------------------------- */

/* The other processes are taken to be as far as this one. */
static void on_seen(void *arg, uint64_t nbytes)
{
    mark_work *m = arg;
    comparison *c = m->c;
    pthread_mutex_lock(&m->mutex);
    m->seen += nbytes * (unsigned)crn_comm_size(c->comm);
    c->how.progress(c->how.arg, c->result.nbytes + CRN_MIN(m->seen, m->nbytes), c->total_bytes);
    pthread_mutex_unlock(&m->mutex);
}

static void unit_failed(mark_work *m)
{
    pthread_mutex_lock(&m->mutex);
    if (m->err.code == 0)
        m->err = *crn_err_peek();
    pthread_mutex_unlock(&m->mutex);
}

static void work(void *arg, diff_worker *w)
{
    mark_work *m = arg;
    comparison *c = m->c;
    for (;;) {
        /* relaxed: units are independent, and results are passed on under the mutex */
        const uint64_t i = atomic_fetch_add_explicit(&m->next, 1, memory_order_relaxed);
        const uint64_t unit =
            i * (unsigned)crn_comm_size(c->comm) + (unsigned)crn_comm_rank(c->comm);
        if (unit >= m->nunits)
            return;
        cairn_status rc =
            c->kind == FILES
                ? crn_diff_files_unit(w, c->files, unit, &m->rows, &m->mutex)
                : crn_diff_unit(w, c->side, m->mark, (uint32_t)unit, &m->rows, &m->mutex);
        if (rc < 0)
            unit_failed(m);
    }
}

/* Compare this process's units. */
static cairn_status compare_units(comparison *c, mark_work *m)
{
    const bool tells = c->how.progress && crn_comm_rank(c->comm) == 0;
    for (unsigned i = 0; i < c->nthreads; i++) {
        c->worker[i]->seen = tells ? on_seen : NULL;
        c->worker[i]->seen_arg = m;
    }
    crn_diff_crew_do(c->crew, c->worker[0], false, work, m);
    return m->err.code < 0 ? crn_err_give(&m->err) : CAIRN_OK;
}

/* --- rows ----------------------------------------------------------------------------------- */

/* Bring the rows of all processes to the first. Collective. */
static cairn_status gather_rows(comparison *c, mark_work *m)
{
    crn_buf b = {0};
    crn_gathered all = {0};
    if (crn_comm_size(c->comm) == 1)
        return CAIRN_OK;
    crn_diff_rows_put(&m->rows, &b);
    cairn_status rc = crn_comm_agree(c->comm, crn_buf_status(&b));
    if (rc == CAIRN_OK)
        rc = crn_comm_gatherv(c->comm, b.at, b.n, 0, &all);
    const int size = crn_comm_rank(c->comm) == 0 ? crn_comm_size(c->comm) : 0;
    for (int r = 1; rc == CAIRN_OK && r < size; r++) {
        crn_cursor cur = crn_cursor_of(all.data + all.off[r], all.off[r + 1] - all.off[r]);
        rc = crn_diff_rows_get(&cur, &m->rows);
    }
    crn_gathered_done(&all);
    crn_buf_done(&b);
    return crn_comm_agree(c->comm, rc);
}

/* Strings of the result's first row: they outlive the comparison. */
static _Thread_local struct {
    char variable[CRN_VAR_NAME + 1], type[CRN_VAR_TYPE + 1], bound[CRN_BOUND_TEXT],
        text[CRN_ERR_TEXT];
} kept;

static void keep_first(cairn_comparison *to, const cairn_comparison_row *row)
{
    to->first = *row;
    snprintf(kept.text, sizeof kept.text, "%s", row->text);
    to->first.text = kept.text;
    if (!row->variable)
        return;
    snprintf(kept.variable, sizeof kept.variable, "%s", row->variable);
    snprintf(kept.type, sizeof kept.type, "%s", row->type);
    snprintf(kept.bound, sizeof kept.bound, "%s", row->bound);
    to->first.variable = kept.variable;
    to->first.type = kept.type;
    to->first.bound = kept.bound;
}

/* What ends a comparison that is not to be of all: with a golden file, that something is not proven
 * equal, since no more can be known. */
static cairn_verdict gravity(const comparison *c)
{
    return c->kind == GATE ? CAIRN_UNPROVEN : CAIRN_ONLY_FIRST;
}

/* Does a mark that one run does not have make them different? */
static bool needs_all_marks(const comparison *c)
{
    return c->how.marks == CAIRN_MARKS_ALL || (c->how.marks == CAIRN_MARKS_AUTO && c->kind == GATE);
}

/* Hand a row to the caller, on the first process. */
static void report(comparison *c, cairn_comparison_row *row)
{
    const bool counts = row->variable || needs_all_marks(c);
    row->struct_bytes = sizeof *row;
    if (counts && row->verdict >= gravity(c) && c->result.first.struct_bytes == 0)
        keep_first(&c->result, row);
    if (counts)
        c->result.verdict = CRN_MAX(c->result.verdict, row->verdict);
    c->result.read_bytes += row->read_bytes;
    if (c->how.row && !c->stopped)
        c->stopped = c->how.row(c->how.arg, row) != 0;
}

/* How many variables of a mark were left out by their names? */
static uint64_t count_excluded(const diff_rows *rows)
{
    uint64_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        bool again = !rows->at[i].excluded;
        for (size_t k = 0; k < i && !again; k++)
            again = strcmp(rows->at[k].variable, rows->at[i].variable) == 0;
        n += !again;
    }
    return n;
}

static void report_row(comparison *c, uint64_t version, const diff_row *r)
{
    char bound[CRN_BOUND_TEXT];
    cairn_comparison_row row = {.version = version,
                                .variable = r->variable,
                                .type = r->type,
                                .bound = crn_bound_format(&r->bound, bound),
                                .verdict = r->verdict,
                                .text = r->text,
                                .ndims = r->ndims,
                                .nvalues = r->nvalues,
                                .ndiffering = r->ndiffering,
                                .max = r->max,
                                .placed = r->placed,
                                .rank = r->rank,
                                .nblocks = r->nblocks,
                                .nflagged = r->nflagged,
                                .nfalse = r->nfalse,
                                .read_bytes = r->read_bytes};
    row.nnonfinite = r->nnonfinite;
    row.rms = crn_diff_sum_rms(&r->squares, r->ndiffering - CRN_MIN(r->nnonfinite, r->ndiffering));
    for (uint32_t d = 0; d < r->ndims; d++) {
        row.shape[d] = r->shape[d];
        row.index[d] = r->index[d];
        row.low[d] = r->low[d];
        row.high[d] = r->high[d];
    }
    row.nslices = r->nslices;
    memcpy(row.slice, r->slice, sizeof row.slice);
    memcpy(row.first, r->first, sizeof row.first);
    memcpy(row.second, r->second, sizeof row.second);
    c->nrows++;
    c->result.nproven += r->nproven;
    report(c, &row);
}

static void report_missing(comparison *c, uint64_t version, int has)
{
    char text[CRN_ERR_TEXT];
    snprintf(text, sizeof text, "'%s' does not have it", c->side[!has].name);
    *(has == 0 ? &c->result.nonly_first : &c->result.nonly_second) += 1;
    report(c, &(cairn_comparison_row){.version = version,
                                      .verdict = has == 0 ? CAIRN_ONLY_FIRST : CAIRN_ONLY_SECOND,
                                      .text = text});
}

/* --- marks ---------------------------------------------------------------------------------- */

/* Do all units, whose mutex is not made yet, and tell what they found. Collective. */
static cairn_status do_work(comparison *c, mark_work *m, uint64_t version)
{
    pthread_mutex_init(&m->mutex, NULL);
    cairn_status rc = crn_comm_agree(c->comm, compare_units(c, m));
    if (rc == CAIRN_OK)
        rc = gather_rows(c, m);
    crn_diff_rows_sort(&m->rows);
    for (size_t i = 0; rc == CAIRN_OK && crn_comm_rank(c->comm) == 0 && i < m->rows.n; i++)
        if (!m->rows.at[i].excluded)
            report_row(c, version, &m->rows.at[i]);
    if (c->ask.exclude)
        c->result.nskipped = CRN_MAX(c->result.nskipped, count_excluded(&m->rows));
    c->result.nbytes += m->nbytes;
    crn_diff_rows_done(&m->rows);
    pthread_mutex_destroy(&m->mutex);
    return rc;
}

static cairn_status compare_mark(comparison *c, const diff_mark *a, const diff_mark *b)
{
    mark_work m = {
        .c = c, .mark = {a, b}, .nunits = CRN_MAX(a->nranks, b->nranks), .nbytes = a->nbytes};
    c->result.nmarks++;
    if (a->in_trees && b->in_trees)
        c->result.tree_bytes += a->nbytes;
    c->result.nsketched += crn_diff_is_sketched(&c->side[0], a);
    return do_work(c, &m, a->version);
}

/* Does the first process see a reason to end? Collective. */
static cairn_status is_over(comparison *c, bool *ret)
{
    uint64_t over = c->stopped || (!c->how.all && c->result.verdict >= gravity(c));
    CRN_TRY(crn_comm_bcast(c->comm, &over, sizeof over, 0));
    *ret = over;
    return CAIRN_OK;
}

static cairn_status compare_marks(comparison *c)
{
    const diff_side *a = &c->side[0], *b = &c->side[1];
    size_t i = 0, k = 0;
    bool over = false;
    while (i < a->mark.n || k < b->mark.n) {
        const uint64_t x = i < a->mark.n ? a->mark.at[i].version : UINT64_MAX;
        const uint64_t y = k < b->mark.n ? b->mark.at[k].version : UINT64_MAX;
        if (over)
            c->result.nleft += x == y;
        else if (x == y)
            CRN_TRY(compare_mark(c, &a->mark.at[i], &b->mark.at[k]));
        else if (crn_comm_rank(c->comm) == 0)
            report_missing(c, CRN_MIN(x, y), x > y);
        i += x <= y;
        k += y <= x;
        if (!over)
            CRN_TRY(is_over(c, &over));
    }
    if (c->result.nmarks == 0 && !needs_all_marks(c)) /* they may still be the same, or not */
        c->result.verdict = CAIRN_INCONCLUSIVE;
    return CAIRN_OK;
}

/* A name that nobody has, or all names left out, is a mistake, and not what agrees. Collective. */
static cairn_status check_found(comparison *c)
{
    cairn_status rc = CAIRN_OK;
    const bool nothing =
        crn_comm_rank(c->comm) == 0 && c->nrows == 0 && c->result.verdict == CAIRN_SAME;
    if (nothing && c->result.nskipped > 0)
        rc = crn_fail(CAIRN_ENOTFOUND, "nothing is left to compare: '%s' leaves out all of it",
                      c->ask.exclude);
    else if (nothing && c->ask.variable)
        rc = crn_fail(CAIRN_ENOTFOUND, "neither '%s' nor '%s' has a variable '%s'", c->side[0].name,
                      c->side[1].name, c->ask.variable);
    return crn_comm_agree(c->comm, rc);
}

/* --- the call ------------------------------------------------------------------------------- */

static unsigned count_processors(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)CRN_MIN(n, 64) : 1;
}

static cairn_status prepare(comparison *c)
{
    const cairn_comparison_options *how = &c->how;
    CRN_FAIL_IF((unsigned)how->marks > CAIRN_MARKS_ALL, CAIRN_EINVAL,
                "there is no way %d to take marks", (int)how->marks);
    c->ask = (diff_question){.variable = how->variable,
                             .exclude = c->kind == FILES ? NULL : how->exclude,
                             .nan_differs = how->nan_differs,
                             .direct = how->direct};
    if (how->bound)
        CRN_TRY(crn_diff_bounds_parse(how->bound, &c->ask));
    c->nthreads = how->nthreads > 0 ? how->nthreads : count_processors();
    CRN_TRY(crn_alloc(&c->worker, c->nthreads));
    for (unsigned i = 0; i < c->nthreads; i++)
        CRN_TRY(crn_diff_worker_create(&c->ask, &c->worker[i]));
    CRN_TRY(crn_diff_crew_create(c->worker + 1, c->nthreads - 1, &c->crew));
    for (unsigned i = 0; i < c->nthreads; i++)
        c->worker[i]->crew = c->crew;
    return CAIRN_OK;
}

/* Let all processes have the result of the first. */
static cairn_status share_result(comparison *c)
{
    CRN_TRY(crn_comm_bcast(c->comm, &c->result, sizeof c->result, 0));
    CRN_TRY(crn_comm_bcast(c->comm, &kept, sizeof kept, 0));
    if (c->result.first.struct_bytes > 0) {
        const bool whole = !c->result.first.variable; /* tells, though it points nowhere here */
        c->result.first.text = kept.text;
        c->result.first.variable = whole ? NULL : kept.variable;
        c->result.first.type = whole ? NULL : kept.type;
        c->result.first.bound = whole ? NULL : kept.bound;
    }
    return CAIRN_OK;
}

static cairn_status compare_files(comparison *c, const char *first, const char *second)
{
    mark_work m = {.c = c};
    CRN_TRY(crn_comm_agree(c->comm, crn_diff_files_open(first, second, &c->how, &c->files)));
    m.nunits = crn_diff_files_nunits(c->files);
    m.nbytes = c->total_bytes = crn_diff_files_nbytes(c->files);
    c->result.nskipped = crn_diff_files_nskipped(c->files);
    cairn_status rc = CAIRN_OK;
    if (crn_comm_rank(c->comm) == 0)
        rc = crn_diff_files_rows(c->files, &m.rows);
    rc = crn_comm_agree(c->comm, rc);
    if (rc < 0) {
        crn_diff_rows_done(&m.rows);
        return rc;
    }
    return do_work(c, &m, 0);
}

static cairn_status open_sides(comparison *c, const char *first, const char *second)
{
    if (c->source[0]) {
        cairn_status rc = crn_diff_open_source(&c->side[0], c->source[0]);
        if (rc == CAIRN_OK)
            rc = crn_diff_open_source(&c->side[1], c->source[1]);
        return crn_comm_agree(c->comm, rc);
    }
    CRN_TRY(c->kind == GATE ? crn_diff_open_golden(&c->side[0], first, c->comm)
                            : crn_diff_open_run(&c->side[0], first, c->comm));
    return crn_diff_open_run(&c->side[1], second, c->comm);
}

static cairn_status compare(comparison *c, const char *first, const char *second)
{
    CRN_TRY(crn_comm_agree(c->comm, prepare(c)));
    if (c->kind == FILES) {
        CRN_TRY(compare_files(c, first, second));
        return share_result(c);
    }
    CRN_TRY(open_sides(c, first, second));
    c->result.sketch_bytes = c->side[0].sketch_bytes;
    for (size_t i = 0; i < c->side[0].mark.n; i++)
        c->total_bytes += c->side[0].mark.at[i].nbytes;
    CRN_FAIL_IF(c->side[0].mark.n == 0 && c->side[1].mark.n == 0, CAIRN_ENOTFOUND,
                "neither '%s' nor '%s' has a mark to compare", first, second);
    CRN_TRY(compare_marks(c));
    CRN_TRY(check_found(c));
    return share_result(c);
}

static void done(comparison *c)
{
    crn_diff_crew_free(c->crew);
    for (unsigned i = 0; c->worker && i < c->nthreads; i++)
        crn_diff_worker_free(c->worker[i]);
    free(c->worker);
    crn_diff_close(&c->side[0]);
    crn_diff_close(&c->side[1]);
    crn_diff_files_free(c->files);
    crn_diff_bounds_done(&c->ask);
    crn_comm_free(c->comm);
}

static cairn_status check_arguments(comparison *c, const cairn_comparison_options *how,
                                    cairn_comparison *ret)
{
    if (how)
        CRN_TRY(crn_struct_in(how, &c->how));
    return crn_struct_check(ret);
}

/* c->comm is there. */
static int finish_comparison(comparison *c, const char *first, const char *second,
                             cairn_comparison *ret)
{
    cairn_status rc = compare(c, first, second);
    if (rc == CAIRN_OK)
        rc = crn_struct_out(&c->result, ret);
    const crn_err why = *crn_err_peek();
    done(c);
    return rc < 0 ? crn_err_give(&why) : c->stopped ? CAIRN_NOTHING : CAIRN_OK;
}

static int run_comparison(comparison *c, MPI_Comm comm, const char *first, const char *second,
                          const cairn_comparison_options *how, cairn_comparison *ret)
{
    CRN_FAIL_IF(!first || !second, CAIRN_EINVAL, "comparing: an argument is NULL");
    CRN_TRY(check_arguments(c, how, ret));
    CRN_TRY(crn_comm_create(comm, &c->comm));
    return finish_comparison(c, first, second, ret);
}

cairn_status crn_diff_sources(crn_comm *comm, const crn_diff_source *first,
                              const crn_diff_source *second, const cairn_comparison_options *how,
                              cairn_comparison *ret)
{
    comparison c = {.comm = comm, .source = {first, second}};
    const cairn_status rc = check_arguments(&c, how, ret);
    if (rc < 0) {
        crn_comm_free(comm);
        return rc;
    }
    return (cairn_status)finish_comparison(&c, first->name, second->name, ret);
}

int cairn_compare(MPI_Comm comm, const char *first, const char *second,
                  const cairn_comparison_options *how, cairn_comparison *ret)
{
    comparison c = {0};
    return run_comparison(&c, comm, first, second, how, ret);
}

int cairn_gate(MPI_Comm comm, const char *golden, const char *run,
               const cairn_comparison_options *how, cairn_comparison *ret)
{
    comparison c = {.kind = GATE};
    return run_comparison(&c, comm, golden, run, how, ret);
}

int cairn_compare_files(MPI_Comm comm, const char *first, const char *second,
                        const cairn_comparison_options *how, cairn_comparison *ret)
{
    comparison c = {.kind = FILES};
    return run_comparison(&c, comm, first, second, how, ret);
}
