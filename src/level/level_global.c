/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The global level: a copy of each rank's part in the trail, on the file system that all share.
 * Without node-local storage the own parts lie there from the beginning, and there is nothing to
 * copy. Every rank reads the trail itself; nothing travels between ranks.
 */
#include "level/level_ops.h"

static cairn_status global_check(const crn_vault *v)
{
    CRN_FAIL_IF(v->opt.form != CRN_FORM_PARTS && !v->local, CAIRN_EINVAL,
                "global.format: files for other tools are made of marks elsewhere, but level.local "
                "is 'trail': name a directory there, which may be on the shared file system");
    return CAIRN_OK;
}

/* --- raising -------------------------------------------------------------------------------- */

static crn_part_id trail_id(const crn_vault *v)
{
    return crn_vault_id(v, CRN_ROLE_TRAIL, v->opt.series, (uint32_t)v->rank, (uint32_t)v->nranks);
}

static cairn_status copy_blocks(crn_part *from, crn_mark *mark, crn_copy *copy)
{
    crn_gaps w = crn_gaps_of(mark, copy->lacking);
    unsigned char *piece;
    w.moved = true;
    CRN_TRY(crn_alloc_aligned(&piece, w.cap, 4096));
    cairn_status rc = CAIRN_OK;
    while (rc == CAIRN_OK && crn_gaps_next(&w)) {
        crn_var *var = &mark->var[w.v];
        rc = crn_mark_read_moved(from, mark, var, w.first, w.n, piece);
        /* just verified against the digest that it is put with */
        const unsigned char *at = piece;
        for (uint64_t i = w.first; i < w.first + w.n && rc == CAIRN_OK; i++) {
            rc = crn_draft_put_moved(copy->draft, w.v, i, at, var);
            at += crn_block_moved_bytes(var, i);
        }
    }
    free(piece);
    return rc;
}

static cairn_status copy_own(crn_vault *v, uint64_t version, crn_mark **mark, crn_copy *copy)
{
    crn_part *own, *part;
    crn_part_id id = trail_id(v);
    CRN_TRY(crn_vault_own_mark(v, version, &own, mark));
    CRN_TRY(crn_vault_part(v, &id, true, &part));
    CRN_TRY(crn_copy_begin(v, part, *mark, v->distrusted >> CRN_LEVEL_GLOBAL & 1, copy));
    return copy_blocks(own, *mark, copy);
}

static cairn_status global_raise(crn_vault *v, uint64_t version, uint64_t keep,
                                 crn_raise_stats *stats)
{
    if (!v->local)
        return crn_level_local.raise(v, version, keep, stats);
    if (v->opt.form != CRN_FORM_PARTS)
        return crn_outside_raise(v, version, keep, stats);
    crn_mark *mark = NULL;
    crn_copy copy = {0};
    cairn_status rc = copy_own(v, version, &mark, &copy);
    rc = crn_copies_finish(v->comm, &copy, 1, rc, keep, stats);
    crn_copy_done(&copy);
    crn_mark_free(mark);
    return rc;
}

/* --- marks that no node has room for -------------------------------------------------------- */

/* Let the part take a mark of this version: one that is there was left by a try that failed, or by
 * a leg that went another way. */
static cairn_status clear_version(crn_part *part, uint64_t version)
{
    crn_part_info info;
    crn_part_describe(part, &info);
    if (info.nmarks == 0 || crn_part_version(part, info.nmarks - 1) != version)
        return CAIRN_OK;
    return crn_part_rewind(part, version > 0 ? version - 1 : CRN_NO_VERSION);
}

cairn_status crn_vault_divert(crn_vault *v, uint64_t version, crn_draft **ret, bool *ret_anew)
{
    crn_part_id id = trail_id(v);
    crn_part *part;
    uint64_t nlost;
    CRN_TRY(crn_vault_part(v, &id, true, &part));
    CRN_TRY(clear_version(part, version));
    *ret_anew = v->distrusted >> CRN_LEVEL_GLOBAL & 1;
    if (!*ret_anew)
        CRN_TRY(crn_part_scrub(part, &nlost));
    return crn_draft_begin(part, version, ret);
}

cairn_status crn_vault_raise_diverted(crn_vault *v, uint64_t version, crn_draft *diverted,
                                      uint64_t keep, crn_raise_stats *ret_stats)
{
    crn_mark *mark = NULL;
    crn_copy copy = {.draft = diverted, .version = version};
    crn_part_id id = trail_id(v);
    *ret_stats = (crn_raise_stats){0};
    cairn_status rc =
        diverted ? crn_vault_part(v, &id, true, &copy.part) : copy_own(v, version, &mark, &copy);
    rc = crn_copies_finish(v->comm, &copy, 1, rc, keep, ret_stats);
    crn_copy_done(&copy);
    crn_mark_free(mark);
    if (rc == CAIRN_OK)
        v->distrusted &= ~(1u << CRN_LEVEL_GLOBAL);
    return rc;
}

/* --- visiting ------------------------------------------------------------------------------- */

/* Where the trail holds the own parts themselves, they are the local level's to visit. */
static cairn_status global_each(crn_vault *v, cairn_status (*visit)(crn_part *, uint64_t),
                                uint64_t arg)
{
    crn_part_id id = trail_id(v);
    crn_part *part;
    if (!v->local)
        return CAIRN_OK;
    CRN_TRY(crn_vault_visit(v, &id, visit, arg));
    if (v->opt.form == CRN_FORM_PARTS)
        return CAIRN_OK;
    if (crn_vault_part(v, &id, false, &part) < 0)
        return CAIRN_OK; /* no part, nothing to sweep */
    return crn_run_sweep(v->opt.run, part, NULL);
}

const crn_level_ops crn_level_global = {
    .role = CRN_ROLE_TRAIL,
    .check = global_check,
    .raise = global_raise,
    .each = global_each,
};
