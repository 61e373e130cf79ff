/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checking the trees of a run. What a trees file has is checked by its digests. What it should have
 * cannot be seen from it: a file that was cut looks like one whose last records were never written,
 * as a crash leaves it. Marks for comparing only are nowhere else; but the log tells of those that
 * all ranks had.
 */
#include "event/event.h"
#include "store/store_inspect.h"

/* A mark for comparing only that was finished. */
typedef struct finished_mark {
    uint64_t version;
    double time; /* seconds since 1970: its records are older, what replaces them is newer */
    uint32_t nranks;
} finished_mark;

typedef struct finished_marks {
    CRN_VEC(finished_mark) at; /* by ascending versions */
    bool failed;               /* no memory */
} finished_marks;

/* --- what the log tells --------------------------------------------------------------------- */

/* A mark of a version replaces all of that version and above: the run went back. */
static void replace_marks(finished_marks *f, uint64_t version)
{
    while (f->at.n > 0 && f->at.at[f->at.n - 1].version >= version)
        f->at.n--;
}

static void take_trees(finished_marks *f, const crn_event *e)
{
    const uint64_t nranks = e->trees.nranks;
    if (e->trees.version == CRN_EVENT_NO_VERSION)
        return;
    replace_marks(f, e->trees.version);
    f->failed |=
        crn_vec_push(&f->at,
                     (finished_mark){.version = e->trees.version,
                                     .time = e->time,
                                     .nranks = nranks <= CRN_RANKS_MAX ? (uint32_t)nranks : 0}) < 0;
}

static int take_line(void *arg, const char *line)
{
    static const crn_event_filter marks = {.kinds = CRN_EVENT_BIT(MARK) | CRN_EVENT_BIT(TREES)};
    finished_marks *f = arg;
    crn_event e;
    if (!crn_event_decode(line, &marks, &e))
        return 0;
    if (e.kind == CRN_EVENT_TREES)
        take_trees(f, &e);
    else
        replace_marks(f, e.mark.version);
    crn_event_done(&e);
    return f->failed;
}

/* --- a rank's file -------------------------------------------------------------------------- */

static cairn_status check_marks(crn_verification *v, crn_trees *t)
{
    for (size_t i = 0; i < crn_trees_nmarks(t); i++) {
        crn_trees_mark *m = crn_trees_at(t, i);
        v->now.version = m->version;
        for (size_t k = 0; k < m->nvars && !v->stopped; k++) {
            v->now.variable = m->var[k].var.spec.name;
            cairn_status rc = crn_trees_load(t, m, &m->var[k]);
            crn_trees_unload(&m->var[k]);
            if (rc < 0)
                CRN_TRY(crn_verify_note(v, rc));
        }
    }
    return CAIRN_OK;
}

/* Is a mark in the file of a rank, or has it given way to a newer one, which need not have been
 * finished? last: the newest record there of at most its version, or NULL. */
static bool is_accounted_for(const finished_mark *m, const crn_trees_mark *last)
{
    return last && (last->version == m->version || (double)last->wall_ns * 1e-9 > m->time);
}

/* What is lost of a rank, and of those behind it up to last when none of them has a file: t is NULL
 * then. */
static cairn_status check_finished(crn_verification *v, const crn_trees *t, uint32_t last,
                                   const finished_marks *f)
{
    const size_t nmarks = t ? crn_trees_nmarks(t) : 0;
    const crn_trees_mark *newest = NULL;
    uint64_t nlost = 0;
    uint32_t nranks = 0;
    char more[64] = "";
    for (size_t i = 0, k = 0; i < f->at.n; i++) {
        const finished_mark *m = &f->at.at[i];
        for (; k < nmarks && crn_trees_at(t, k)->version <= m->version; k++)
            newest = crn_trees_at(t, k);
        nranks = CRN_MAX(nranks, m->nranks);
        if (v->now.rank < m->nranks && !is_accounted_for(m, newest) && nlost++ == 0)
            v->now.version = m->version;
    }
    if (nlost == 0)
        return CAIRN_OK;
    last = CRN_MIN(last, nranks - 1);
    if (last > v->now.rank)
        snprintf(more, sizeof more, ", nor are those up to 'trees-%06u'", last);
    return crn_verify_note(v,
                           crn_fail(CAIRN_ECORRUPT,
                                    "the trees of %" PRIu64 " mark%s from here on were finished, "
                                    "and are gone: 'trees-%06u' is %s%s",
                                    nlost, nlost == 1 ? "" : "s", v->now.rank,
                                    t ? "cut or damaged" : "not there", more));
}

static cairn_status check_file(crn_verification *v, crn_trees *t, const finished_marks *f)
{
    const size_t nplaces = crn_trees_ndamaged(t);
    if (nplaces > 0)
        CRN_TRY(crn_verify_note(v, crn_fail(CAIRN_ECORRUPT,
                                            "'trees-%06u' is damaged in %zu place%s: trees that "
                                            "were there are gone",
                                            v->now.rank, nplaces, nplaces == 1 ? "" : "s")));
    CRN_TRY(check_marks(v, t));
    v->now.variable = NULL;
    return check_finished(v, t, v->now.rank, f);
}

/* Ranks without a file are fine, unless the log says otherwise: not all runs have trees. */
static cairn_status check_absent(crn_verification *v, uint32_t first, uint32_t end,
                                 const finished_marks *f)
{
    if (first >= end)
        return CAIRN_OK;
    v->now.rank = first;
    v->now.version = UINT64_MAX;
    v->now.variable = NULL;
    return check_finished(v, NULL, end - 1, f);
}

static cairn_status check_rank(crn_verification *v, uint32_t rank, const finished_marks *f)
{
    crn_trees *t;
    cairn_status rc = crn_run_trees(v->t->run.at[v->run].run, rank, false, &t);
    if (rc == CAIRN_ENOTFOUND) /* it went meanwhile */
        return check_absent(v, rank, rank + 1, f);
    v->now.rank = rank;
    v->now.version = UINT64_MAX;
    v->now.variable = NULL;
    if (rc < 0)
        return crn_verify_note(v, rc);
    rc = check_file(v, t, f);
    crn_trees_close(t);
    return rc;
}

/* --- all of them ---------------------------------------------------------------------------- */

/* Ranks that a finished mark tells of. */
static uint32_t count_ranks(const finished_marks *f)
{
    uint32_t n = 0;
    for (size_t i = 0; i < f->at.n; i++)
        n = CRN_MAX(n, f->at.at[i].nranks);
    return n;
}

static cairn_status check_ranks(crn_verification *v, const finished_marks *f)
{
    crn_ranks ranks;
    uint32_t next = 0;
    cairn_status rc = crn_run_ranks(v->t->run.at[v->run].run, "trees", "trees-", &ranks);
    if (rc < 0) {
        crn_vec_done(&ranks);
        return crn_verify_note(v, rc);
    }
    for (size_t i = 0; rc == CAIRN_OK && !v->stopped && i < ranks.n; i++) {
        rc = check_absent(v, next, ranks.at[i], f);
        if (rc == CAIRN_OK && !v->stopped)
            rc = check_rank(v, ranks.at[i], f);
        next = ranks.at[i] + 1;
        crn_verify_tell(v, CAIRN_OK, "", UINT64_MAX);
    }
    crn_vec_done(&ranks);
    return rc < 0 || v->stopped ? rc : check_absent(v, next, count_ranks(f), f);
}

cairn_status crn_verify_trees(crn_verification *v)
{
    crn_run *run = v->t->run.at[v->run].run;
    finished_marks f = {0};
    /* first, so that what is told of is there by now */
    cairn_status rc = crn_run_events(run, take_line, &f);
    v->now.version = UINT64_MAX;
    v->now.variable = NULL;
    if (rc == CAIRN_NOTHING)
        rc = crn_fail(CAIRN_ENOMEM, "no memory for what the log of run '%s' tells", run->name);
    else if (rc < 0)
        rc = crn_verify_note(v, rc);
    if (rc == CAIRN_OK)
        rc = check_ranks(v, &f);
    crn_vec_done(&f.at);
    return rc;
}
