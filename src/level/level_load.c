/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Coming back: the levels are asked in the order of their cost, and each next one only for what is
 * still missing. Also what the levels of plain copies share, whose files differ by their role only.
 */
#include "level/level_ops.h"

#include <inttypes.h>

/* --- descriptions --------------------------------------------------------------------------- */

/* Collective: the sum over all ranks. */
static cairn_status count_all(crn_vault *v, uint64_t own, uint64_t *ret)
{
    CRN_TRY(crn_comm_allreduce_u64(v->comm, CRN_REDUCE_SUM, &own, 1));
    *ret = own;
    return CAIRN_OK;
}

static uint64_t count_unanswered(const crn_ask *ask, size_t n)
{
    uint64_t missing = 0;
    for (size_t i = 0; i < n; i++)
        missing += ask[i].mark == NULL;
    return missing;
}

static cairn_status describe_missing(const crn_manifest_mark *mark, const crn_ask *ask, size_t n)
{
    for (size_t i = 0; i < n; i++)
        CRN_FAIL_IF(!ask[i].mark, CAIRN_ENOTFOUND,
                    "mark %" PRIu64 ": no whole description of the share of rank %" PRIu32
                    " was found, in its own part or at any other level",
                    mark->version, ask[i].rank);
    return CAIRN_OK;
}

static cairn_status ask_levels(crn_vault *v, const crn_manifest_mark *mark, crn_ask *ask, size_t n)
{
    for (int level = 0; level < CRN_NLEVELS; level++) {
        uint64_t missing;
        CRN_TRY(count_all(v, count_unanswered(ask, n), &missing));
        if (missing == 0)
            return CAIRN_OK;
        CRN_TRY(crn_comm_agree(v->comm, crn_level_describe(v, level, mark, ask, n)));
    }
    return crn_comm_agree(v->comm, describe_missing(mark, ask, n));
}

cairn_status crn_vault_describe(crn_vault *v, const crn_manifest_mark *mark, const uint32_t *ranks,
                                size_t n, crn_mark **ret)
{
    crn_ask *ask = NULL;
    cairn_status rc = crn_alloc(&ask, n);
    CRN_TRY_OUT(rc, crn_comm_agree(v->comm, rc));
    for (size_t i = 0; i < n; i++)
        ask[i].rank = ranks[i];
    CRN_TRY_OUT(rc, ask_levels(v, mark, ask, n));
    for (size_t i = 0; i < n; i++)
        ret[i] = ask[i].mark;
out:
    for (size_t i = 0; ask && rc < 0 && i < n; i++)
        crn_mark_free(ask[i].mark);
    free(ask);
    crn_vault_close_readers(v);
    return rc;
}

bool crn_role_holds(const crn_vault *v, uint32_t role, const crn_manifest_mark *mark, uint32_t rank)
{
    crn_part_id id = crn_vault_id(v, role, mark->series, rank, mark->nranks);
    if (role == CRN_ROLE_TRAIL)
        return (mark->levels & CRN_IN_TRAIL) != 0;
    return crn_vault_holder(v, &id, mark->version, 0) >= 0;
}

cairn_status crn_role_describe(crn_vault *v, uint32_t role, const crn_manifest_mark *mark,
                               crn_ask *ask, size_t n)
{
    crn_mark_fetch *fetch = NULL;
    cairn_status rc = crn_comm_agree(v->comm, crn_alloc(&fetch, n));
    for (int nth = 0; rc == CAIRN_OK && nth < crn_vault_ncopies(v, role, mark); nth++) {
        size_t nfetch = 0;
        for (size_t i = 0; i < n; i++) {
            if (ask[i].mark)
                continue;
            crn_part_id id = crn_vault_id(v, role, mark->series, ask[i].rank, mark->nranks);
            fetch[nfetch++] =
                (crn_mark_fetch){.holder = crn_vault_holder(v, &id, mark->version, nth),
                                 .id = id,
                                 .version = mark->version};
        }
        rc = crn_fetch_marks(v, fetch, nfetch);
        for (size_t i = 0, k = 0; rc == CAIRN_OK && i < n; i++)
            if (!ask[i].mark)
                ask[i].mark = fetch[k++].mark;
    }
    free(fetch);
    return rc;
}

/* --- blocks --------------------------------------------------------------------------------- */

static cairn_status want_all(crn_want *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        want[i].missing = (crn_bad_blocks){0};
    for (size_t i = 0; i < n; i++) {
        crn_want *w = &want[i];
        w->name = w->var->spec.name;
        w->block = w->var->spec.block;
        w->nbytes = w->var->spec.nbytes;
        w->table = w->var->table;
        CRN_TRY(crn_vec_reserve(&w->missing, w->n));
        for (uint64_t k = 0; k < w->n; k++)
            w->missing.at[w->missing.n++] = w->first + k;
    }
    return CAIRN_OK;
}

static void count_missing(const crn_want *want, size_t n, uint64_t *ret_blocks, uint64_t *ret_bytes)
{
    *ret_blocks = *ret_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        *ret_blocks += want[i].missing.n;
        for (size_t k = 0; k < want[i].missing.n; k++)
            *ret_bytes += crn_var_block_bytes(want[i].var, want[i].missing.at[k]);
    }
}

static cairn_status still_missing(const crn_manifest_mark *mark, const crn_want *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        CRN_FAIL_IF(want[i].missing.n > 0, CAIRN_ENOTFOUND,
                    "mark %" PRIu64 ", rank %" PRIu32 ", variable '%s': block %" PRIu64
                    " (and %zu more) is damaged or lost in the own part and at every other level",
                    mark->version, want[i].rank, want[i].var->spec.name, want[i].missing.at[0],
                    want[i].missing.n - 1);
    return CAIRN_OK;
}

/* One level's round. It should have had what the manifest says was committed there. */
static cairn_status load_from(crn_vault *v, crn_level level, const crn_manifest_mark *mark,
                              crn_want *want, size_t n, crn_load_stats *stats)
{
    uint64_t blocks, bytes, left, left_bytes;
    count_missing(want, n, &blocks, &bytes);
    CRN_TRY(crn_comm_agree(v->comm, crn_level_load(v, level, mark, want, n)));
    count_missing(want, n, &left, &left_bytes);
    stats->from[level].blocks += blocks - left;
    stats->from[level].bytes += bytes - left_bytes;
    for (size_t i = 0; mark->levels >> level & 1 && i < n; i++) {
        const bool there = crn_level_holds(v, level, mark, want[i].rank);
        *(there ? &stats->from[level].bad : &stats->from[level].absent) += want[i].missing.n;
    }
    return CAIRN_OK;
}

/* From all levels, or from those only that have copies of blocks as they are stored. */
static cairn_status load_levels(crn_vault *v, const crn_manifest_mark *mark, crn_want *want,
                                size_t n, bool stored, crn_load_stats *stats)
{
    for (int level = 0; level < CRN_NLEVELS; level++) {
        uint64_t blocks, bytes, missing;
        if (stored && crn_level_table[level]->load)
            continue;
        count_missing(want, n, &blocks, &bytes);
        CRN_TRY(count_all(v, blocks, &missing));
        if (missing == 0)
            return CAIRN_OK;
        CRN_TRY(load_from(v, level, mark, want, n, stats));
    }
    return CAIRN_OK;
}

/* --- as they are stored --------------------------------------------------------------------- */

/* Let the blocks that do not move wait for their turn, in decoded. */
static cairn_status set_apart(crn_want *w)
{
    size_t n = 0;
    w->decoded.n = 0;
    CRN_TRY(crn_vec_reserve(&w->decoded, w->n));
    for (size_t k = 0; k < w->missing.n; k++) {
        const uint64_t i = w->missing.at[k];
        if (w->moved && crn_block_moves(w->var, i))
            w->missing.at[n++] = i;
        else
            w->decoded.at[w->decoded.n++] = i;
    }
    w->missing.n = n;
    return CAIRN_OK;
}

/* Those that did not come are to be decoded, too. */
static void join(crn_want *w)
{
    for (size_t k = 0; k < w->missing.n; k++)
        w->decoded.at[w->decoded.n++] = w->missing.at[k];
    crn_bad_blocks_sort(&w->decoded);
    memcpy(w->missing.at, w->decoded.at, w->decoded.n * sizeof *w->decoded.at);
    w->missing.n = w->decoded.n;
    w->moved = false;
}

/* What some level has just as the description says comes as it is stored there. */
static cairn_status load_moved(crn_vault *v, const crn_manifest_mark *mark, crn_want *want,
                               size_t n)
{
    crn_load_stats stats = {0}; /* what fails here is tried again */
    uint64_t moved = 0;
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < n; i++)
        moved += want[i].moved;
    CRN_TRY(count_all(v, moved, &moved));
    if (moved == 0)
        return CAIRN_OK;
    for (size_t i = 0; i < n && rc == CAIRN_OK; i++)
        rc = set_apart(&want[i]);
    CRN_TRY(crn_comm_agree(v->comm, rc));
    CRN_TRY(load_levels(v, mark, want, n, true, &stats));
    for (size_t i = 0; i < n; i++)
        join(&want[i]);
    return CAIRN_OK;
}

cairn_status crn_vault_load(crn_vault *v, const crn_manifest_mark *mark, crn_want *want, size_t n,
                            crn_load_stats *ret_stats)
{
    crn_load_stats stats = {0};
    cairn_status rc = crn_comm_agree(v->comm, want_all(want, n));
    if (rc == CAIRN_OK)
        rc = load_moved(v, mark, want, n);
    if (rc == CAIRN_OK)
        rc = load_levels(v, mark, want, n, false, &stats);
    if (rc == CAIRN_OK)
        rc = crn_comm_agree(v->comm, still_missing(mark, want, n));
    for (size_t i = 0; i < n; i++)
        crn_vec_done(&want[i].missing);
    crn_vault_close_readers(v);
    if (rc == CAIRN_OK && ret_stats)
        *ret_stats = stats;
    return rc;
}

/* --- from plain copies ---------------------------------------------------------------------- */

/* Append each run of w->missing as a want of its own. */
static cairn_status split(const crn_want *w, crn_wants *ret)
{
    for (size_t i = 0, k; i < w->missing.n; i = k) {
        crn_want run = *w;
        for (k = i + 1; k < w->missing.n && w->missing.at[k] == w->missing.at[k - 1] + 1;)
            k++;
        run.first = w->missing.at[i];
        run.n = k - i;
        run.dst = w->dst + (run.first - w->first) * w->block;
        run.missing = (crn_bad_blocks){0};
        CRN_TRY(crn_vec_push(ret, run));
    }
    return CAIRN_OK;
}

/* What is bad now is a part of what was missing, in the same order: it fits where that was. */
static void keep_missing(crn_want *w, const crn_wants *f, size_t first, size_t end)
{
    w->missing.n = 0;
    for (size_t i = first; i < end; i++)
        for (size_t k = 0; k < f->at[i].missing.n; k++)
            w->missing.at[w->missing.n++] = f->at[i].missing.at[k];
}

static cairn_status load_nth(crn_vault *v, uint32_t role, int nth, const crn_manifest_mark *mark,
                             crn_want *want, size_t n, size_t *start)
{
    crn_wants f = {0};
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < n && rc == CAIRN_OK; i++) {
        crn_want *w = &want[i];
        w->id = crn_vault_id(v, role, mark->series, w->rank, mark->nranks);
        w->version = mark->version;
        w->holder = crn_vault_holder(v, &w->id, mark->version, nth);
        start[i] = f.n;
        rc = split(w, &f);
        start[i + 1] = f.n;
    }
    rc = crn_comm_agree(v->comm, rc);
    if (rc == CAIRN_OK)
        rc = crn_fetch_blocks(v, f.at, f.n);
    for (size_t i = 0; i < n && rc == CAIRN_OK; i++)
        keep_missing(&want[i], &f, start[i], start[i + 1]);
    for (size_t i = 0; i < f.n; i++)
        crn_vec_done(&f.at[i].missing);
    crn_vec_done(&f);
    return rc;
}

cairn_status crn_role_load(crn_vault *v, uint32_t role, const crn_manifest_mark *mark,
                           crn_want *want, size_t n)
{
    size_t *start = NULL;
    cairn_status rc = crn_comm_agree(v->comm, crn_alloc(&start, n + 1));
    for (int nth = 0; rc == CAIRN_OK && nth < crn_vault_ncopies(v, role, mark); nth++)
        rc = load_nth(v, role, nth, mark, want, n, start);
    free(start);
    return rc;
}
