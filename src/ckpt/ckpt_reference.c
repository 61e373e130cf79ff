/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reference, a run or a golden file: each mark is compared with the same mark of it as it is
 * taken, and the program is told when they part. Of a golden file nothing but its sketch is needed:
 * noise does not let the reference's blocks be read.
 *
 * Each rank compares its own share, whose trees are still in memory and whose blocks are in its
 * part, with what the reference has of it; that is done by whoever has the job and needs no
 * communication. Then the ranks agree what was found, which takes as many messages as a reduction:
 * no rank ever has the findings of all others. Where the reference had another number of ranks,
 * rank 0 compares what is no piece of an array for all of them, and they agree first that they hold
 * it alike. What goes wrong here costs a sentence in the log, never a mark.
 */
#include <cairn/compare.h>

#include "ckpt/ckpt_session.h"

#include <inttypes.h>
#include <stdatomic.h>

/* What a rank found; once agreed upon, what counts. To be sent as it is. */
typedef struct finding {
    cairn_verdict verdict;
    uint64_t order; /* of the variable, in the rank's own list */
    uint64_t place; /* in the global array, or else which rank: to find the first */
    cairn_divergence where;
} finding;

/* Used by whoever has the job, but for what is said. */
struct ckpt_reference {
    char *name;
    diff_side side[2]; /* this run, of which only the name counts, and the reference */
    diff_question ask;
    diff_worker *worker;
    diff_mark mine;      /* the mark under way */
    diff_rows rows;      /* what this rank found of the mark under way, */
    finding found;       /* and what comes of it */
    finding first;       /* the divergence; written before it is said, and not after */
    atomic_bool is_said; /* likewise: there is one */
};

static bool is_said(const ckpt_reference *r)
{
    /* acquire: the program's thread reads what the engine's has written before */
    return atomic_load_explicit(&r->is_said, memory_order_acquire);
}

/* --- opening -------------------------------------------------------------------------------- */

void crn_reference_free(ckpt_reference *r)
{
    if (!r)
        return;
    crn_diff_worker_free(r->worker);
    crn_diff_rows_done(&r->rows);
    crn_diff_close(&r->side[1]);
    free(r->side[0].name);
    free(r->name);
    free(r);
}

static cairn_status prepare(cairn *c, const char *name)
{
    ckpt_reference *r;
    CRN_FAIL_IF(!crn_config_bool(c->held.cfg, CRN_OPT_COMPARE_TREES), CAIRN_EINVAL,
                "compare.reference needs trees: do not set compare.trees = no");
    CRN_TRY(crn_alloc(&c->leg.reference, 1));
    r = c->leg.reference;
    r->ask.own_bounds = true;
    CRN_TRY(crn_strdup(name, &r->name));
    CRN_TRY(crn_strdup("this run", &r->side[0].name));
    return crn_diff_worker_create(&r->ask, &r->worker);
}

static cairn_status check_other(const cairn *c)
{
    if (!c->leg.reference->side[1].run) /* a golden file */
        return CAIRN_OK;
    const crn_manifest *mine = crn_run_manifest(c->held.run);
    const crn_manifest *theirs = crn_run_manifest(c->leg.reference->side[1].run);
    CRN_FAIL_IF(memcmp(mine->run, theirs->run, sizeof mine->run) == 0, CAIRN_EINVAL,
                "a run cannot be its own reference");
    return CAIRN_OK;
}

cairn_status crn_reference_open(cairn *c)
{
    const char *name = crn_config_text(c->held.cfg, CRN_OPT_COMPARE_REFERENCE);
    if (*name == 0)
        return CAIRN_OK;
    CRN_TRY(crn_comm_agree(c->held.comm, prepare(c, name)));
    cairn_status rc = crn_diff_open(&c->leg.reference->side[1], name, c->held.comm);
    if (rc == CAIRN_OK)
        rc = crn_comm_agree(c->held.comm, check_other(c));
    if (rc < 0)
        crn_err_prefix("compare.reference: ");
    return rc;
}

/* --- this rank's share ---------------------------------------------------------------------- */

uint32_t crn_reference_leaf(cairn *c, const char *name)
{
    ckpt_reference *r = c->leg.reference;
    const diff_mark *theirs = r ? crn_diff_find_mark(&r->side[1], c->leg.job.version) : NULL;
    diff_share share = {0};
    diff_var v = {0};
    if (!theirs || !theirs->in_trees)
        return 0;
    const uint32_t rank = (uint32_t)crn_comm_rank(c->held.comm) % theirs->nranks;
    if (crn_diff_share_open(&r->side[1], theirs, rank, &share) == CAIRN_OK)
        (void)crn_diff_share_find(&share, name, &v);
    const uint32_t leaf = v.trees ? v.trees->var.spec.block : 0;
    crn_diff_share_close(&share);
    return leaf;
}

/* Note what cannot be compared. */
static void note_sentence(finding *f, cairn_verdict verdict, const char *text)
{
    *f = (finding){.verdict = verdict};
    snprintf(f->where.text, sizeof f->where.text, "%s", text);
}

/* "[3, 17]" */
static void format_index(const cairn_divergence *w, char *buf, size_t cap)
{
    size_t n = (size_t)snprintf(buf, cap, "[");
    for (uint32_t d = 0; d < w->ndims && n < cap; d++)
        n += (size_t)snprintf(buf + n, cap - n, "%s%" PRIu64, d ? ", " : "", w->index[d]);
    if (n < cap)
        snprintf(buf + n, cap - n, "]");
}

static void describe(cairn_divergence *w, const char *text)
{
    char index[200];
    if (w->ndims == 0) {
        snprintf(w->text, sizeof w->text, "rank %" PRIu32 ", variable '%s': %s", w->rank,
                 w->variable, text);
        return;
    }
    format_index(w, index, sizeof index);
    snprintf(w->text, sizeof w->text,
             "rank %" PRIu32 ", variable '%s', index %s: %s, and %s in the reference", w->rank,
             w->variable, index, w->here, w->there);
}

/* Where the first value that differs lies, for ranks to find out whose comes first. */
static uint64_t place_of(const diff_row *row, uint32_t rank)
{
    uint64_t place = 0;
    for (uint32_t d = 0; row->global && d < row->ndims; d++)
        place = place * row->shape[d] + row->index[d];
    return row->global ? place : rank;
}

static void note_row(finding *f, const diff_row *row, size_t order, uint32_t rank)
{
    cairn_divergence *w = &f->where;
    *f = (finding){.verdict = row->verdict, .order = order, .place = place_of(row, rank)};
    w->rank = rank;
    snprintf(w->variable, sizeof w->variable, "%s", row->variable);
    if (row->ndiffering > 0) {
        w->ndims = row->ndims;
        memcpy(w->index, row->index, row->ndims * sizeof *row->index);
        memcpy(w->here, row->first, sizeof w->here);
        memcpy(w->there, row->second, sizeof w->there);
    }
    describe(w, row->text);
}

/* The gravest row, and of those the first. */
static void sum_up(finding *f, const diff_rows *rows, uint32_t rank)
{
    size_t gravest = 0;
    for (size_t i = 1; i < rows->n; i++)
        if (rows->at[i].verdict > rows->at[gravest].verdict)
            gravest = i;
    if (rows->n > 0 && rows->at[gravest].verdict > CAIRN_SAME)
        note_row(f, &rows->at[gravest], gravest, rank);
}

/* This rank's share of the mark under way; its data is to be freed. */
static cairn_status open_own(cairn *c, diff_share *ret)
{
    ckpt_reference *r = c->leg.reference;
    const ckpt_job *j = &c->leg.job;
    r->mine = (diff_mark){.version = j->version,
                          .wall_ns = j->wall_ns,
                          .series = c->held.series,
                          .nranks = (uint32_t)crn_comm_size(c->held.comm)};
    *ret = (diff_share){.side = &r->side[0],
                        .mark = &r->mine,
                        .rank = (uint32_t)crn_comm_rank(c->held.comm),
                        .described = crn_ckpt_trees_made(c)};
    CRN_FAIL_IF(!ret->described, CAIRN_ENOTFOUND, "it has no trees");
    if (j->only_trees) {
        (void)crn_fail(CAIRN_ENOTFOUND, "this run's mark is for comparing only");
        crn_err_take(&ret->err);
        return CAIRN_OK;
    }
    CRN_TRY(crn_vault_own(c->held.vault, &ret->part));
    return crn_part_load(ret->part, j->version, &ret->data);
}

static cairn_status compare(cairn *c, const diff_mark *theirs)
{
    ckpt_reference *r = c->leg.reference;
    diff_share share;
    CRN_TRY(open_own(c, &share));
    const diff_mark *mark[2] = {&r->mine, theirs};
    cairn_status rc = crn_diff_share(r->worker, &share, r->side, mark, &r->rows);
    crn_mark_free(share.data);
    return rc;
}

/* Is there a mark to compare? */
static bool is_kept(const ckpt_job *j)
{
    return j->only_trees ? j->status == CAIRN_OK : j->stored;
}

void crn_reference_look(cairn *c)
{
    ckpt_reference *r = c->leg.reference;
    if (!r || !is_kept(&c->leg.job) || is_said(r))
        return;
    r->found = (finding){.verdict = CAIRN_SAME};
    crn_diff_rows_done(&r->rows);
    const diff_mark *theirs = crn_diff_find_mark(&r->side[1], c->leg.job.version);
    if (!theirs)
        note_sentence(&r->found, CAIRN_ONLY_FIRST, "the reference does not have it");
    else if (compare(c, theirs) < 0)
        note_sentence(&r->found, CAIRN_INCONCLUSIVE, crn_err_peek()->text);
}

/* --- all ranks' ----------------------------------------------------------------------------- */

/* The rank whose finding comes first of those that are as grave as any. Collective. */
static cairn_status find_owner(crn_comm *comm, const finding *f, uint64_t gravest, int *ret)
{
    const uint64_t key[] = {f->order, f->place, (uint64_t)crn_comm_rank(comm)};
    bool stays = f->verdict == (cairn_verdict)gravest;
    uint64_t least = 0;
    for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
        least = stays ? key[i] : UINT64_MAX;
        CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_MIN, &least, 1));
        stays &= key[i] == least;
    }
    *ret = (int)least;
    return CAIRN_OK;
}

/* Let f be the gravest finding of any rank. Collective. */
static cairn_status agree(crn_comm *comm, finding *f)
{
    uint64_t gravest = f->verdict;
    int owner;
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, &gravest, 1));
    if (gravest == CAIRN_SAME)
        return CAIRN_OK;
    CRN_TRY(find_owner(comm, f, gravest, &owner));
    return crn_comm_bcast(comm, f, sizeof *f, owner);
}

static const char *const verdict_name[] = {
    [CAIRN_SAME] = "same",
    [CAIRN_UNPROVEN] = "not proven equal",
    [CAIRN_INCONCLUSIVE] = "could not tell",
    [CAIRN_ONLY_FIRST] = "only in this run",
    [CAIRN_ONLY_SECOND] = "only in the reference",
    [CAIRN_DIFFERENT] = "different",
};

/* One line for each mark; */
static void tell_verdict(cairn *c, const finding *f)
{
    const char *text = f->where.text;
    crn_holding_event(&c->held, &(crn_event){.kind = CRN_EVENT_COMPARED,
                                             .compared = {.version = c->leg.job.version,
                                                          .reference = c->leg.reference->name,
                                                          .verdict = verdict_name[f->verdict],
                                                          .text = text[0] ? text : NULL}});
    if (f->verdict != CAIRN_SAME)
        crn_log_write(&c->held.log, f->verdict == CAIRN_DIFFERENT ? CRN_LOG_WARN : CRN_LOG_INFO,
                      CRN_LOG_ROOT, "mark %" PRIu64 " and reference '%s', %s: %s",
                      c->leg.job.version, c->leg.reference->name, verdict_name[f->verdict], text);
}

/* and one for the first that differs. */
static void tell_divergence(cairn *c, const cairn_divergence *w)
{
    const bool placed = w->ndims > 0;
    json_t *index = placed ? json_array() : NULL;
    for (uint32_t d = 0; placed && d < w->ndims; d++)
        json_array_append_new(index, json_integer((json_int_t)w->index[d]));
    crn_holding_event(&c->held, &(crn_event){.kind = CRN_EVENT_DIVERGED,
                                             .diverged = {.version = w->version,
                                                          .rank = w->rank,
                                                          .variable = w->variable,
                                                          .index = index,
                                                          .here = placed ? w->here : NULL,
                                                          .there = placed ? w->there : NULL}});
}

/* What this rank has found, after the ranks have agreed on what rank 0 compared for all.
 * Collective.
 */
static cairn_status conclude(cairn *c, crn_comm *comm, finding *ret)
{
    ckpt_reference *r = c->leg.reference;
    const diff_mark *theirs = crn_diff_find_mark(&r->side[1], c->leg.job.version);
    if (theirs && theirs->nranks != (uint32_t)crn_comm_size(comm))
        CRN_TRY(crn_reference_alike(comm, crn_ckpt_trees_made(c), &r->rows));
    if (theirs)
        CRN_TRY(crn_reference_items(c, comm, &r->side[1], theirs, open_own, &r->rows));
    if (r->found.verdict == CAIRN_SAME)
        sum_up(&r->found, &r->rows, (uint32_t)crn_comm_rank(comm));
    *ret = r->found;
    return CAIRN_OK;
}

void crn_reference_agree(cairn *c, crn_comm *comm)
{
    ckpt_reference *r = c->leg.reference;
    finding f;
    if (!r || !is_kept(&c->leg.job) || is_said(r)) /* the same on all ranks */
        return;
    if (conclude(c, comm, &f) < 0 || agree(comm, &f) < 0)
        return; /* a peer is gone: nothing counts any more */
    f.where.version = c->leg.job.version;
    tell_verdict(c, &f);
    if (f.verdict != CAIRN_DIFFERENT)
        return;
    tell_divergence(c, &f.where);
    r->first = f;
    /* release: what was written must be seen by whoever sees this */
    atomic_store_explicit(&r->is_said, true, memory_order_release);
}

/* --- for the program ------------------------------------------------------------------------ */

bool crn_reference_stops(const cairn *c)
{
    return c->leg.reference && is_said(c->leg.reference) &&
           crn_config_bool(c->held.cfg, CRN_OPT_COMPARE_STOP);
}

bool cairn_diverged(cairn *c, cairn_divergence *ret)
{
    if (crn_ckpt_check_usable(c, __func__) < 0)
        return false;
    const ckpt_reference *r = c->leg.reference;
    crn_ckpt_beat(c);
    if (!r)
        return false;
    crn_engine_progress(c);
    uint64_t all = is_said(r);
    if (crn_comm_allreduce_u64(c->held.comm, CRN_REDUCE_MIN, &all, 1) < 0 || !all)
        return false;
    if (ret)
        (void)crn_struct_out(&r->first.where, ret); /* the answer does not depend on it */
    return true;
}
