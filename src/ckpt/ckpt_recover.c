/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A manifest that was lost, made again. The store has asked the part files in the trail; here the
 * nodes are asked for the marks that are on their storage only. A mark counts when every rank's
 * share of it can be produced: all ranks had committed it.
 */
#include "ckpt/ckpt_holding.h"

#include <inttypes.h>

/* --- which marks there are ------------------------------------------------------------------ */

static crn_manifest_mark *find_mark(crn_holding *h, const crn_manifest_mark *like)
{
    for (size_t i = 0; i < h->mark.n; i++) {
        crn_manifest_mark *m = &h->mark.at[i];
        if (m->series == like->series && m->version == like->version && m->wall_ns == like->wall_ns)
            return m;
    }
    return NULL;
}

/* Bytes of a mark's state over all ranks, whose shares are asked for in turns. Collective. */
static cairn_status measure(crn_holding *h, crn_manifest_mark *mark)
{
    const uint32_t size = (uint32_t)crn_comm_size(h->comm), me = (uint32_t)crn_comm_rank(h->comm);
    uint64_t nbytes = 0;
    for (uint32_t first = 0; first < mark->nranks; first += size) {
        const uint32_t rank = first + me;
        crn_mark *share = NULL;
        CRN_TRY(crn_vault_describe(h->vault, mark, &rank, rank < mark->nranks, &share));
        for (size_t i = 0; share && i < share->nvars; i++)
            nbytes += share->var[i].spec.nbytes;
        crn_mark_free(share);
    }
    CRN_TRY(crn_comm_allreduce_u64(h->comm, CRN_REDUCE_SUM, &nbytes, 1));
    mark->nbytes = nbytes;
    return CAIRN_OK;
}

/* Take in a mark that the nodes have, unless it is not whole. Collective. */
static cairn_status take_mark(crn_holding *h, const crn_manifest_mark *seen)
{
    crn_manifest_mark *known = find_mark(h, seen);
    if (known) { /* in the trail */
        known->levels |= seen->levels;
        return CAIRN_OK;
    }
    crn_manifest_mark mark = *seen;
    cairn_status rc = crn_vault_can_load(h->vault, &mark);
    if (rc == CAIRN_OK)
        rc = measure(h, &mark);
    if (rc == CAIRN_ENOTFOUND)
        return CAIRN_OK;
    CRN_TRY(rc);
    mark.levels |= 1u << CRN_LEVEL_LOCAL; /* also one that is whole only over several levels */
    return crn_comm_agree(h->comm, crn_vec_push(&h->mark, mark));
}

/* Versions grow from mark to mark: what does not fit was abandoned for what came later. */
static void drop_abandoned(crn_holding *h)
{
    size_t kept = h->mark.n;
    if (h->mark.n == 0)
        return;
    qsort(h->mark.at, h->mark.n, sizeof *h->mark.at, crn_manifest_order);
    for (size_t i = h->mark.n; i-- > 0;)
        if (kept == h->mark.n || h->mark.at[i].version < h->mark.at[kept].version)
            h->mark.at[--kept] = h->mark.at[i];
    h->mark.n -= kept;
    memmove(h->mark.at, h->mark.at + kept, h->mark.n * sizeof *h->mark.at);
}

static cairn_status ask_nodes(crn_holding *h)
{
    crn_marks seen = {0};
    CRN_TRY(crn_vault_survey(h->vault, NULL, 0));
    cairn_status rc = crn_comm_agree(h->comm, crn_vault_sighted(h->vault, &seen));
    if (rc == CAIRN_OK) /* once more, without the files of other marks of the same versions */
        rc = crn_vault_survey(h->vault, seen.at, seen.n);
    for (size_t i = 0; rc == CAIRN_OK && i < seen.n; i++)
        rc = take_mark(h, &seen.at[i]);
    crn_vec_done(&seen);
    drop_abandoned(h);
    return rc;
}

/* --- telling -------------------------------------------------------------------------------- */

/* The version of the last mark that the log tells of. */
static int on_event(void *arg, const char *line)
{
    static const crn_event_filter marks = {.kinds = CRN_EVENT_BIT(MARK)};
    crn_event e;
    if (!crn_event_decode(line, &marks, &e))
        return 0;
    *(uint64_t *)arg = e.mark.version;
    crn_event_done(&e);
    return 0;
}

/*
 * A run that has had marks and has none now must not begin anew without a word. And a command that
 * does not see all of them, on a login node, must not let the manifest forget the others; the
 * program itself may, since it goes on from what there is. On rank 0.
 */
static cairn_status check_found(crn_holding *h, bool goes_on)
{
    uint64_t had = CRN_NO_VERSION;
    if (crn_run_manifest(h->run)->finished)
        return CAIRN_OK;
    CRN_TRY(crn_run_events(h->run, on_event, &had));
    if (had == CRN_NO_VERSION)
        return CAIRN_OK;
    CRN_FAIL_IF(!goes_on && h->mark.n > 0 && h->mark.at[h->mark.n - 1].version < had,
                CAIRN_ENOTFOUND,
                "run '%s' has lost its manifest, and its mark %" PRIu64
                " is not here: start its program or this command on the nodes that it had",
                crn_run_name(h->run), had);
    CRN_FAIL_IF(h->mark.n == 0, CAIRN_ENOTFOUND,
                "run '%s' has lost its manifest, and none of its marks is whole in the trail or on "
                "the nodes here: start it on the nodes that it had, or remove the directory of the "
                "run to begin anew",
                crn_run_name(h->run));
    return CAIRN_OK;
}

cairn_status crn_holding_recover(crn_holding *h, bool goes_on)
{
    const bool root = crn_comm_rank(h->comm) == 0;
    unsigned char lost = root && crn_run_was_rebuilt(h->run);
    CRN_TRY(crn_comm_bcast(h->comm, &lost, sizeof lost, 0));
    if (!lost)
        return CAIRN_OK;
    CRN_TRY(ask_nodes(h));
    CRN_TRY(crn_comm_agree(h->comm, root ? check_found(h, goes_on) : CAIRN_OK));
    CRN_TRY(crn_holding_publish(h, h->comm, crn_run_manifest(h->run)->finished));
    crn_holding_choose_series(h);
    crn_vault_begin_series(h->vault, h->series);
    crn_log_write(&h->log, CRN_LOG_WARN, CRN_LOG_ROOT,
                  "run '%s' had lost its manifest: %zu marks were found again",
                  crn_run_name(h->run), h->mark.n);
    crn_holding_event(h,
                      &(crn_event){.kind = CRN_EVENT_RECOVERED, .recovered = {.marks = h->mark.n}});
    return CAIRN_OK;
}
