/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Going through the parts of a run to check them, and telling which are not there. A manifest of a
 * few bytes may claim millions of ranks or marks: what is done and told is bounded by the files.
 */
#include "store/store_inspect.h"

#include <unistd.h>

bool crn_verify_is_stale(const crn_verification *v)
{
    enum { SEQ_OFF = 32 }; /* docs/format.md, section 3 */
    const crn_run *run = v->t->run.at[v->run].run;
    unsigned char head[SEQ_OFF + 8];
    crn_file *file;
    if (crn_run_was_rebuilt(run) || crn_file_open(run->fd, "manifest", CRN_READ, &file) < 0)
        return true;
    cairn_status rc = crn_file_read(file, head, sizeof head, 0);
    crn_file_close(file);
    crn_cursor c = crn_cursor_of(head + SEQ_OFF, 8);
    return rc < 0 || crn_get_u64(&c) != run->manifest.seq;
}

/* --- what is lost --------------------------------------------------------------------------- */

/* Leave out of v->lost what the program that writes the run has dropped since. */
static void leave_out_dropped(crn_verification *v)
{
    crn_run *run;
    size_t kept = 0;
    if (!crn_verify_is_stale(v) ||
        crn_run_open(v->t->trail, v->t->run.at[v->run].name, false, &run) < 0)
        return;
    crn_manifest *m = &run->manifest;
    if (m->mark.n > 1)
        qsort(m->mark.at, m->mark.n, sizeof *m->mark.at, crn_manifest_order);
    for (size_t i = 0; i < v->lost.n && m->mark.n > 0; i++) {
        const crn_manifest_mark *k =
            bsearch(v->lost.at[i], m->mark.at, m->mark.n, sizeof *m->mark.at, crn_manifest_order);
        if (k && k->levels & CRN_IN_TRAIL)
            v->lost.at[kept++] = v->lost.at[i];
    }
    v->lost.n = kept;
    crn_run_close(run);
}

/* Tell of the marks that are lost for the same reason, as one finding. */
static cairn_status tell_lost(crn_verification *v)
{
    leave_out_dropped(v);
    const size_t n = v->lost.n;
    if (n == 0)
        return CAIRN_OK;
    v->now.version = v->lost.at[0]->version;
    v->now.variable = NULL;
    v->lost.n = 0;
    if (n > 1)
        (void)crn_fail(v->why.code, "%s (%zu marks from here on)", v->why.text, n);
    else
        (void)crn_err_give(&v->why);
    return crn_verify_note(v, v->why.code);
}

/* A mark is lost, for the reason that this thread's record has. */
static cairn_status lose(crn_verification *v, const crn_manifest_mark *k, cairn_status rc)
{
    const crn_err why = *crn_err_peek();
    if (v->lost.n > 0 && v->why.code != rc)
        CRN_TRY(tell_lost(v));
    if (v->lost.n == 0)
        v->why = why;
    return crn_vec_push(&v->lost, k);
}

/* --- the parts of a series ------------------------------------------------------------------ */

/* The marks of one series. */
typedef struct series_marks {
    const crn_manifest_mark **at;
    size_t n;
    uint32_t nranks; /* the most that one has */
} series_marks;

/* All marks that rank has a share of are lost, as this thread's record says. */
static cairn_status lose_all(crn_verification *v, const series_marks *s, uint32_t rank,
                             cairn_status rc)
{
    const crn_err why = *crn_err_peek();
    v->now.rank = rank;
    for (size_t i = 0; i < s->n; i++) {
        (void)crn_err_give(&why);
        if (s->at[i]->nranks > rank)
            CRN_TRY(lose(v, s->at[i], rc));
    }
    return CAIRN_OK;
}

/* The parts of ranks from first on, before last, are not there. */
static cairn_status lack_ranks(crn_verification *v, const series_marks *s, uint32_t first,
                               uint32_t last)
{
    const uint32_t series = s->at[0]->series;
    cairn_status rc;
    if (first >= last)
        return CAIRN_OK;
    if (last - first == 1)
        rc = crn_fail(CAIRN_ENOTFOUND, "series %u: 'part-%06u' is not there", series, first);
    else
        rc = crn_fail(CAIRN_ENOTFOUND,
                      "series %u: 'part-%06u' to 'part-%06u' are not there, of %u ranks", series,
                      first, last - 1, last - first);
    CRN_TRY(lose_all(v, s, first, rc));
    return tell_lost(v);
}

static void tell_fallback(crn_verification *v)
{
    char text[CRN_ERR_TEXT];
    crn_part_info info;
    crn_part_describe(v->t->part, &info);
    if (!info.fallback)
        return;
    snprintf(text, sizeof text, "a superblock of '%s' is damaged; the other one is used",
             v->t->part->name);
    v->damaged = true;
    v->now.version = UINT64_MAX;
    v->now.variable = NULL;
    crn_verify_tell(v, CAIRN_ECORRUPT, text, UINT64_MAX);
}

/* Does the part that is open have a mark, as the manifest has it? */
static cairn_status check_has(const crn_verification *v, const crn_manifest_mark *k)
{
    const crn_part *part = v->t->part;
    CRN_FAIL_IF(part->super.id.nranks != k->nranks, CAIRN_EMISMATCH,
                "'%s' is of %u ranks, and the manifest says that the mark has %u", part->name,
                part->super.id.nranks, k->nranks);
    CRN_FAIL_IF(!crn_part_has(part, k->version), CAIRN_ENOTFOUND, "'%s' has no mark %" PRIu64,
                part->name, k->version);
    return CAIRN_OK;
}

static cairn_status verify_share(crn_verification *v, const crn_manifest_mark *k)
{
    const cairn_status rc = check_has(v, k);
    if (rc < 0)
        return lose(v, k, rc);
    CRN_TRY(tell_lost(v));
    return crn_verify_share(v, k);
}

static cairn_status verify_rank(crn_verification *v, const series_marks *s, uint32_t rank)
{
    size_t newest = s->n - 1;
    while (s->at[newest]->nranks <= rank)
        newest--; /* one has more: rank is below s->nranks */
    v->now.rank = rank;
    v->now.variable = NULL;
    const cairn_status opened = crn_inspect_open(v->t, v->run, s->at[newest], rank);
    if (opened == CAIRN_OK)
        tell_fallback(v);
    else
        CRN_TRY(lose_all(v, s, rank, opened));
    for (size_t i = 0; opened == CAIRN_OK && i < s->n && !v->stopped; i++)
        if (s->at[i]->nranks > rank)
            CRN_TRY(verify_share(v, s->at[i]));
    return tell_lost(v);
}

/* Marks of a series without a single part are only gathered: the next series may be like it. */
static cairn_status verify_series(crn_verification *v, const series_marks *s)
{
    char dir[PATH_TEXT];
    crn_ranks ranks;
    uint32_t next = 0;
    crn_series_name(s->at[0]->series, dir);
    cairn_status rc = crn_run_ranks(v->t->run.at[v->run].run, dir, "part-", &ranks);
    if (rc == CAIRN_OK && ranks.n == 0)
        rc = crn_fail(CAIRN_ENOTFOUND, "'%s' has no part, of %u rank%s", dir, s->nranks,
                      s->nranks == 1 ? "" : "s");
    if (rc < 0) {
        crn_vec_done(&ranks);
        return lose_all(v, s, 0, rc);
    }
    rc = tell_lost(v);
    for (size_t i = 0; i < ranks.n && rc == CAIRN_OK && !v->stopped; i++) {
        const uint32_t rank = ranks.at[i];
        if (rank >= s->nranks)
            break;
        rc = lack_ranks(v, s, next, rank);
        if (rc == CAIRN_OK)
            rc = verify_rank(v, s, rank);
        next = rank + 1;
    }
    if (rc == CAIRN_OK && !v->stopped)
        rc = lack_ranks(v, s, next, s->nranks);
    crn_vec_done(&ranks);
    return rc;
}

/* --- all of them ---------------------------------------------------------------------------- */

/* By series, and within one as the manifest has them. */
static int compare_marks(const void *a, const void *b)
{
    const crn_manifest_mark *x = *(const crn_manifest_mark *const *)a,
                            *y = *(const crn_manifest_mark *const *)b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    return (x > y) - (x < y);
}

cairn_status crn_verify_parts(crn_verification *v, size_t first, size_t last)
{
    const crn_manifest *m = crn_run_manifest(v->t->run.at[v->run].run);
    const crn_manifest_mark **marks;
    size_t n = 0;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&marks, last - first));
    for (size_t i = first; i < last; i++)
        if (m->mark.at[i].levels & CRN_IN_TRAIL)
            marks[n++] = &m->mark.at[i];
    if (n > 1)
        qsort(marks, n, sizeof *marks, compare_marks);
    for (size_t i = 0; i < n && rc == CAIRN_OK && !v->stopped;) {
        series_marks s = {.at = marks + i};
        for (; i < n && marks[i]->series == s.at[0]->series; i++, s.n++)
            s.nranks = CRN_MAX(s.nranks, marks[i]->nranks);
        rc = verify_series(v, &s);
    }
    if (rc == CAIRN_OK && !v->stopped)
        rc = tell_lost(v);
    crn_vec_done(&v->lost);
    free(marks);
    return rc;
}
