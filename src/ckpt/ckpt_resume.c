/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Coming back: which mark, does it fit what the program protects, and where its blocks are.
 */
#include "ckpt/ckpt_kept.h"
#include "ckpt/ckpt_redist.h"

#include <inttypes.h>

/* --- does it fit -------------------------------------------------------------------------- */

/* Are the cells that an index declares, and their items, those of the mark's index? */
static bool same_cells(const ckpt_var *v, const crn_var *there)
{
    for (uint64_t i = 0; i < there->nblocks && v->nbytes == there->spec.nbytes; i++) {
        const crn_digest d = crn_digest_of((const unsigned char *)v->data + i * there->spec.block,
                                           crn_var_block_bytes(there, i));
        if (!crn_digest_equal(&d, &there->table[i].digest))
            return false;
    }
    return v->nbytes == there->spec.nbytes;
}

bool crn_ckpt_stays(const ckpt_var *v, const crn_mark *share)
{
    const crn_var *there = crn_mark_find(share, v->name);
    if (!there || v->layout != crn_layout_of(&there->spec) ||
        strcmp(v->type, there->spec.type) != 0 || v->ndims != there->spec.ndims)
        return false;
    const bool none = crn_kept_is_none(there->spec.attributes);
    if (none || v->nbytes != there->spec.nbytes)
        return none && memcmp(v->dims, there->dims, 2 * v->ndims * sizeof *v->dims) == 0;
    if (v->layout == CRN_LAYOUT_INDEX)
        return same_cells(v, there);
    if (v->layout == CRN_LAYOUT_HALO)
        return strcmp(v->lines, there->spec.attributes) == 0;
    return memcmp(v->dims, there->dims, 3 * v->ndims * sizeof *v->dims) == 0;
}

/* Is everything that this rank protects as it was, and nothing else in the mark? */
static bool all_stay(cairn *c, const crn_mark *share)
{
    for (size_t i = 0; i < c->var.n; i++)
        if (!crn_ckpt_stays(&c->var.at[i], share))
            return false;
    return c->var.n == share->nvars || crn_config_bool(c->held.cfg, CRN_OPT_RESUME_SUBSET);
}

/* --- bringing it back --------------------------------------------------------------------- */

static cairn_status pull_all_of(const ckpt_var *v, uint32_t rank, crn_pulls *ret)
{
    crn_box box[CKPT_BOXES_MAX];
    uint64_t first = 0;
    unsigned char *to = (unsigned char *)v->data;
    if (!v->padded)
        return crn_pulls_add_range(ret, rank, v->name, v->item, 0, v->nbytes / v->item, to);
    const uint32_t n = crn_ckpt_boxes(v, box);
    for (uint32_t i = 0; i < n; i++) {
        CRN_TRY(crn_pulls_add_box(ret, rank, v->name, first, &box[i], &box[i], &v->memory, to));
        first += crn_box_volume(&box[i]);
    }
    return CAIRN_OK;
}

cairn_status crn_ckpt_pull_own(const ckpt_var *v, const crn_mark *share, uint32_t rank,
                               crn_pulls *ret)
{
    crn_kept kept = {0};
    if (v->nbytes == 0 || v->layout == CRN_LAYOUT_INDEX)
        return CAIRN_OK;
    CRN_TRY(crn_kept_parse(crn_mark_find(share, v->name)->spec.attributes, &kept));
    cairn_status rc =
        kept.partial ? crn_kept_pull(ret, rank, v, &kept, NULL, NULL) : pull_all_of(v, rank, ret);
    crn_vec_done(&kept.box);
    return rc;
}

static cairn_status plan_share(cairn *c, const crn_mark *share, crn_pulls *ret)
{
    for (size_t i = 0; i < c->var.n; i++) {
        const ckpt_var *v = &c->var.at[i];
        const size_t before = ret->n;
        CRN_TRY(crn_ckpt_pull_own(v, share, (uint32_t)crn_comm_rank(c->held.comm), ret));
        for (size_t k = before; k < ret->n; k++) {
            ret->at[k].share = share;
            ret->at[k].var = crn_mark_find(share, v->name);
        }
    }
    return CAIRN_OK;
}

/* Every rank gets what it had. */
static cairn_status load_share(cairn *c, const crn_manifest_mark *mark, const crn_mark *share,
                               crn_load_stats *stats)
{
    crn_pulls pull = {0};
    cairn_status rc = crn_comm_agree(c->held.comm, plan_share(c, share, &pull));
    if (rc == CAIRN_OK)
        rc = crn_pulls_run(&pull, c->held.comm, c->held.vault, mark, stats);
    crn_vec_done(&pull);
    return rc;
}

/* Sizes of blocks that were found stay: the next mark inherits blocks of the same size only. */
static void inherit_blocks(cairn *c, const crn_mark *share)
{
    c->small.listed = false;
    for (size_t i = 0; i < c->var.n; i++) {
        const crn_var *there = crn_mark_find(share, c->var.at[i].name);
        if (there)
            crn_blocks_inherit(&c->var.at[i], there->spec.block);
    }
}

/* Load the mark as it is if that is all it takes; *ret_moves: some rank has another share now. */
static cairn_status load_same(cairn *c, const crn_manifest_mark *mark, crn_load_stats *stats,
                              bool *ret_moves)
{
    const uint32_t me = (uint32_t)crn_comm_rank(c->held.comm);
    crn_mark *share = NULL;
    CRN_TRY(crn_vault_describe(c->held.vault, mark, &me, 1, &share));
    uint64_t moves = !all_stay(c, share);
    cairn_status rc = crn_comm_allreduce_u64(c->held.comm, CRN_REDUCE_MAX, &moves, 1);
    if (rc == CAIRN_OK && !moves)
        rc = load_share(c, mark, share, stats);
    if (rc == CAIRN_OK && !moves)
        inherit_blocks(c, share);
    crn_mark_free(share);
    *ret_moves = moves;
    return rc;
}

static void tell(cairn *c, const crn_manifest_mark *mark, const crn_load_stats *mine,
                 uint64_t start)
{
    enum { BLOCKS, BYTES, BAD, ABSENT, NCOUNTS };
    uint64_t v[CRN_NLEVELS][NCOUNTS], blocks[CRN_NLEVELS];
    for (int l = 0; l < CRN_NLEVELS; l++) {
        v[l][BLOCKS] = mine->from[l].blocks;
        v[l][BYTES] = mine->from[l].bytes;
        v[l][BAD] = mine->from[l].bad;
        v[l][ABSENT] = mine->from[l].absent;
    }
    if (!c->held.local)
        v[CRN_LEVEL_LOCAL][BAD] = v[CRN_LEVEL_LOCAL][ABSENT] = 0;
    if (crn_comm_allreduce_u64(c->held.comm, CRN_REDUCE_SUM, *v, NCOUNTS * CRN_NLEVELS) < 0)
        return;
    /* whose file it was that a rank found damaged, all others cannot know: no rank inherits */
    const int own =
        c->held.local ? CRN_LEVEL_LOCAL : CRN_LEVEL_GLOBAL; /* where the own part lies */
    c->damaged = v[own][BAD] + v[own][ABSENT] > 0;
    for (int l = 0; l < CRN_NLEVELS; l++)
        if (v[l][BAD] > 0)
            crn_vault_distrust(c->held.vault, (crn_level)l);
    const double took = (double)(crn_now_ns() - start) * 1e-9;
    for (int l = 0; l < CRN_NLEVELS; l++)
        blocks[l] = v[l][BLOCKS];
    crn_tune_restart(c, blocks, took);
    json_t *from = json_object();
    for (int l = 0; l < CRN_NLEVELS; l++)
        if (v[l][BLOCKS] + v[l][BAD] + v[l][ABSENT] > 0)
            json_object_set_new(
                from, crn_level_name((crn_level)l),
                crn_event_source_encode(&(crn_event_source){.blocks = v[l][BLOCKS],
                                                            .bytes = v[l][BYTES],
                                                            .bad = v[l][BAD],
                                                            .absent = v[l][ABSENT]}));
    crn_holding_event(
        &c->held,
        &(crn_event){.kind = CRN_EVENT_RESUME,
                     .resume = {.version = mark->version, .seconds = took, .from = from}});
    crn_log_write(&c->held.log, CRN_LOG_INFO, CRN_LOG_ROOT, "resumed from mark %" PRIu64,
                  mark->version);
}

/* Bring back one mark. CAIRN_ENOTFOUND: it cannot be produced, and an older one may be. */
static cairn_status try_mark(cairn *c, const crn_manifest_mark *mark)
{
    const uint64_t start = crn_now_ns();
    crn_load_stats stats = {0};
    bool moves = mark->nranks != (uint32_t)crn_comm_size(c->held.comm);
    CRN_TRY(crn_vault_can_load(c->held.vault, mark));
    crn_stage_enter(CRN_STAGE_RESUME);
    if (!moves)
        CRN_TRY(load_same(c, mark, &stats, &moves));
    if (moves)
        CRN_TRY(crn_redist_load(c, mark, &stats));
    tell(c, mark, &stats, start);
    return CAIRN_OK;
}

/* The newest mark, or the one called for, that can be brought back; older ones are tried where a
 * newer one turns out to be lost. */
static cairn_status resume(cairn *c, const uint64_t *wanted, uint64_t *ret)
{
    CRN_FAIL_IF(c->leg.open, CAIRN_EINVAL, "mark %" PRIu64 " is open", c->leg.job.version);
    crn_ckpt_beat(c);
    CRN_TRY(crn_ckpt_check_identity(c));
    CRN_TRY(crn_ckpt_catch_up(c));
    if (c->held.mark.n == 0 && !wanted) {
        c->leg.resumed = true;
        return CAIRN_NOTHING;
    }
    crn_vault_use_comm(c->held.vault, c->held.comm);
    CRN_TRY(crn_vault_survey(c->held.vault, c->held.mark.at, c->held.mark.n));
    cairn_status rc = CAIRN_NOTHING;
    crn_err first = {0};
    for (size_t i = c->held.mark.n; i-- > 0;) {
        const crn_manifest_mark mark = c->held.mark.at[i];
        if (wanted && mark.version != *wanted)
            continue;
        rc = try_mark(c, &mark);
        if (rc == CAIRN_OK) {
            c->leg.resumed = c->leg.rewind = true;
            c->leg.resumed_from = mark.version;
            c->last_mark_ns = crn_now_ns();
            crn_ckpt_tell_recorder(mark.version);
            if (ret)
                *ret = mark.version;
            return CAIRN_OK;
        }
        if (rc != CAIRN_ENOTFOUND)
            return rc;
        if (first.code == 0)
            first = *crn_err_peek();
        /* an older one that was asked for says nothing about those behind it */
        if (i + 1 == c->held.mark.n || c->held.mark.at[i + 1].version >= c->leg.lost_from)
            c->leg.lost_from = mark.version;
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_ROOT, "%s", crn_err_peek()->text);
        crn_holding_event(&c->held, &(crn_event){.kind = CRN_EVENT_LOST,
                                                 .lost = {.version = mark.version,
                                                          .text = crn_err_peek()->text}});
    }
    CRN_FAIL_IF(wanted && rc == CAIRN_NOTHING, CAIRN_ENOTFOUND, "run '%s' has no mark %" PRIu64,
                crn_run_name(c->held.run), *wanted);
    if (!wanted) { /* nothing can be produced: if the program goes on, it begins anew */
        c->leg.resumed = true;
        rc = crn_err_give(&first);
        crn_err_prefix("none of %zu marks can be produced; the newest: ", c->held.mark.n);
    }
    return rc;
}

int cairn_resume(cairn *c, uint64_t *version)
{
    CKPT_NEEDS(c);
    return crn_ckpt_result(c, resume(c, NULL, version));
}

int cairn_resume_at(cairn *c, uint64_t version)
{
    CKPT_NEEDS(c);
    return crn_ckpt_result(c, resume(c, &version, NULL));
}

/* The newest mark that can be produced, as far as the files and earlier tries tell. */
static cairn_status find_newest(cairn *c, crn_manifest_mark *ret)
{
    CRN_TRY(crn_ckpt_check_identity(c));
    CRN_TRY(crn_ckpt_catch_up(c));
    if (c->held.mark.n == 0)
        return CAIRN_NOTHING;
    crn_vault_use_comm(c->held.vault, c->held.comm);
    CRN_TRY(crn_vault_survey(c->held.vault, c->held.mark.at, c->held.mark.n));
    for (size_t i = c->held.mark.n; i-- > 0;) {
        if (c->held.mark.at[i].version >= c->leg.lost_from)
            continue;
        cairn_status rc = crn_vault_can_load(c->held.vault, &c->held.mark.at[i]);
        if (rc == CAIRN_OK)
            *ret = c->held.mark.at[i];
        if (rc != CAIRN_ENOTFOUND)
            return rc;
    }
    return crn_fail(CAIRN_ENOTFOUND, "run '%s' has marks, but none can be produced",
                    crn_run_name(c->held.run));
}

int cairn_probe(cairn *c, uint64_t *version)
{
    CKPT_NEEDS(c);
    crn_manifest_mark mark;
    cairn_status rc = find_newest(c, &mark);
    if (rc == CAIRN_OK && version)
        *version = mark.version;
    return crn_ckpt_result(c, rc);
}

static cairn_status count_own(cairn *c, const crn_manifest_mark *mark, const char *name,
                              size_t *ret)
{
    const uint32_t me = (uint32_t)crn_comm_rank(c->held.comm);
    crn_mark *share;
    CRN_TRY(crn_vault_describe(c->held.vault, mark, &me, 1, &share));
    const crn_var *v = crn_mark_find(share, name);
    *ret = v ? (size_t)(v->spec.nbytes / v->spec.item) : 0;
    crn_mark_free(share);
    return CAIRN_OK;
}

static cairn_status probe_count(cairn *c, const char *name, size_t *ret)
{
    crn_manifest_mark mark;
    cairn_status rc = find_newest(c, &mark);
    if (rc != CAIRN_OK)
        return rc;
    if (mark.nranks != (uint32_t)crn_comm_size(c->held.comm))
        return crn_redist_count(c, &mark, name, ret);
    return count_own(c, &mark, name, ret);
}

int cairn_probe_count(cairn *c, const char *name, size_t *count)
{
    CKPT_NEEDS_ALSO(c, name);
    CKPT_NEEDS_ALSO(c, count);
    return crn_ckpt_result(c, probe_count(c, name, count));
}

/* --- one variable ----------------------------------------------------------------------------- */

static cairn_status read_own(cairn *c, const crn_manifest_mark *mark, const ckpt_var *v,
                             crn_load_stats *stats)
{
    const uint32_t me = (uint32_t)crn_comm_rank(c->held.comm);
    crn_pulls pull = {0};
    crn_mark *share = NULL;
    CRN_TRY(crn_vault_describe(c->held.vault, mark, &me, 1, &share));
    const crn_var *there = crn_mark_find(share, v->name);
    cairn_status rc = CAIRN_OK;
    if (!crn_ckpt_stays(v, share))
        rc = crn_fail(CAIRN_EMISMATCH,
                      "rank %" PRIu32 ": mark %" PRIu64 " has no variable '%s' of %" PRIu64
                      " bytes of this type",
                      me, mark->version, v->name, v->nbytes);
    else
        rc = crn_ckpt_pull_own(v, share, me, &pull);
    for (size_t i = 0; i < pull.n; i++) {
        pull.at[i].share = share;
        pull.at[i].var = there;
    }
    rc = crn_comm_agree(c->held.comm, rc);
    if (rc == CAIRN_OK)
        rc = crn_pulls_run(&pull, c->held.comm, c->held.vault, mark, stats);
    crn_vec_done(&pull);
    crn_mark_free(share);
    return rc;
}

static cairn_status probe_read(cairn *c, const ckpt_var *v)
{
    crn_manifest_mark mark;
    crn_load_stats stats = {0};
    cairn_status rc = find_newest(c, &mark);
    if (rc != CAIRN_OK)
        return rc;
    if (mark.nranks != (uint32_t)crn_comm_size(c->held.comm))
        return crn_redist_read(c, &mark, v, &stats);
    return read_own(c, &mark, v, &stats);
}

int cairn_probe_read(cairn *c, const char *name, void *data, cairn_type type, size_t count)
{
    CKPT_NEEDS_ALSO(c, name);
    ckpt_var v;
    cairn_status rc = crn_ckpt_begin_var(c, name, data, type, count, &v);
    if (rc == CAIRN_OK)
        rc = probe_read(c, &v);
    return crn_ckpt_result(c, rc);
}

int cairn_probe_cells(cairn *c, const char *name, size_t ncells, const uint64_t *cell,
                      uint64_t *nitems)
{
    CKPT_NEEDS_ALSO(c, name);
    crn_manifest_mark mark;
    if (ncells > 0 && (!cell || !nitems))
        return crn_ckpt_result(c, crn_fail(CAIRN_EINVAL, "variable '%s' has no cells", name));
    cairn_status rc = find_newest(c, &mark);
    if (rc == CAIRN_OK)
        rc = crn_redist_count_cells(c, &mark, name, ncells, cell, nitems);
    return crn_ckpt_result(c, rc);
}
