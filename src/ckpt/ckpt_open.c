/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opening and closing a session.
 */
#include <mpi.h>

#include "ckpt/ckpt_session.h"

void crn_ckpt_free(cairn *c)
{
    if (!c)
        return;
    crn_finale_free(c->finale);
    if (c->guest.done)
        c->guest.done(c->guest.self);
    crn_signals_done(c);
    crn_engine_stop(c);
    crn_ckpt_trees_free(c->leg.trees);
    crn_reference_free(c->leg.reference);
    json_decref(c->leg.told_changes);
    while (c->var.n > 0)
        crn_ckpt_undeclare(c, &c->var.at[c->var.n - 1]);
    crn_vec_done(&c->var);
    crn_small_done(&c->small);
    crn_index_done(&c->var_name);
    crn_tracker_free(c->tracker);
    crn_tally_reset(c);
    crn_coded_reset(c);
    crn_choices_done(c);
    for (size_t i = 0; i < c->type.n; i++)
        free(c->type.at[i].text);
    crn_vec_done(&c->type);
    free(c->identity);
    crn_holding_done(&c->held);
    crn_comm_free(c->leg.engine_comm);
    free(c);
}

/* --- levels ------------------------------------------------------------------------------- */

/* A level that the user asked for must be possible; one that is only a default may be missing. */
static cairn_status check_levels(cairn *c)
{
    c->usable = 1u << CRN_LEVEL_LOCAL;
    for (crn_level l = CRN_LEVEL_RAISED; l < CRN_NLEVELS; l++) {
        cairn_status rc = crn_vault_check(c->held.vault, l);
        if (rc == CAIRN_OK)
            c->usable |= 1u << l;
        else if (crn_tune_is_configured(c, l) && crn_tune_every(c, l) > 0)
            return rc;
    }
    /* whoever asks for a form wants it, however often */
    if (crn_config_word(c->held.cfg, CRN_OPT_GLOBAL_FORMAT) != 0)
        CRN_TRY(crn_vault_check(c->held.vault, CRN_LEVEL_GLOBAL));
    return CAIRN_OK;
}

/* --- opening and closing ------------------------------------------------------------------ */

/* A place that cannot be used is better refused now than at the first mark; one that is only full
 * may have room by then. */
static cairn_status prepare_local(cairn *c)
{
    cairn_status rc = crn_vault_prepare(c->held.vault);
    if (rc < 0 && rc != CAIRN_ENOSPC)
        crn_err_prefix("level.local: ");
    return crn_comm_agree(c->held.comm, rc == CAIRN_ENOSPC ? CAIRN_OK : rc);
}

cairn_status crn_ckpt_start(cairn *c)
{
    CRN_TRY(prepare_local(c));
    crn_holding_clean_node(&c->held);
    CRN_TRY(check_levels(c));
    CRN_TRY(crn_tune_init(c));
    CRN_TRY(crn_reference_open(c));
    if (crn_comm_is_threaded(c->held.comm)) {
        CRN_TRY(crn_comm_dup(c->held.comm, &c->leg.engine_comm));
        crn_comm_set_patient(c->leg.engine_comm, true);
    }
    cairn_status rc = crn_stop_init(c);
    if (rc == CAIRN_OK)
        rc = crn_ckpt_trees_create(c->held.cfg, &c->leg.trees);
    if (rc == CAIRN_OK)
        rc = crn_engine_start(c);
    CRN_TRY(crn_comm_agree(c->held.comm, rc));
    char id[CRN_RUN_ID_TEXT];
    crn_holding_event(
        &c->held,
        &(crn_event){.kind = CRN_EVENT_OPEN,
                     .open = {.nranks = (uint64_t)crn_comm_size(c->held.comm),
                              .nnodes = (uint64_t)crn_vault_nodes(c->held.vault)->nnodes,
                              .seen = (double)crn_run_seen(c->held.run) * 1e-9,
                              .id = crn_run_id_format(crn_run_manifest(c->held.run)->run, id)}});
    crn_ckpt_tell(c);
    return CAIRN_OK;
}

static cairn_status create(cairn **ret)
{
    cairn *c;
    CRN_TRY(crn_alloc(&c, 1));
    crn_engine_init(&c->engine);
    crn_holding_init(&c->held);
    c->leg = ckpt_leg_begun;
    *ret = c;
    return CAIRN_OK;
}

int cairn_open(MPI_Comm comm, const char *config, cairn **ret)
{
    cairn *c;
    CRN_FAIL_IF(!ret, CAIRN_EINVAL, "cairn_open: nowhere to put the session");
    *ret = NULL;
    CRN_TRY(create(&c));
    cairn_status rc = crn_comm_create(comm, &c->held.comm);
    if (rc == CAIRN_OK)
        rc = crn_holding_join(&c->held, config, crn_find_or_begin);
    if (rc == CAIRN_OK)
        rc = crn_ckpt_start(c);
    if (rc == CAIRN_OK)
        rc = crn_ckpt_await_finalize(c);
    if (rc < 0) {
        crn_ckpt_free(c);
        return rc;
    }
    *ret = c;
    return CAIRN_OK;
}

int cairn_reopen(cairn *c, MPI_Comm comm)
{
    CKPT_NEEDS(c);
    crn_comm *next;
    cairn_status rc = crn_comm_create(comm, &next);
    if (rc == CAIRN_OK)
        rc = crn_ckpt_reopen(c, next);
    return crn_ckpt_result(c, rc);
}

/* Did the program come to its end? Not if it was told to stop, nor if there are marks that it never
 * came back to: it has seen that they do not fit, say, and given up. */
static bool is_finished(const cairn *c)
{
    const bool untouched =
        c->leg.rewind && c->leg.resumed_from == CRN_NO_VERSION && c->held.mark.n > 0;
    return !c->stopping && !untouched;
}

/*
 * Nobody resumes a finished run: when its last mark is in the trail, what is on the nodes, which
 * may be their memory, is of no use any more. Unless all marks are to be kept, wherever they are.
 */
static bool leaves_nodes(const cairn *c)
{
    for (crn_level l = CRN_LEVEL_LOCAL; l < CRN_LEVEL_GLOBAL; l++)
        if (crn_holding_keep(&c->held, l) == CRN_KEEP_ALL)
            return false;
    return c->held.local &&
           (c->held.mark.n == 0 || c->held.mark.at[c->held.mark.n - 1].levels & CRN_IN_TRAIL);
}

/* Let the manifest say that the run came to its end; only then may files go that it named before.
 * What cannot be removed is only in the way: 'cairn prune --local'. */
static cairn_status finish_run(cairn *c)
{
    const bool leaves = leaves_nodes(c);
    uint64_t nfiles = 0;
    if (leaves)
        crn_holding_forget_nodes(&c->held);
    CRN_TRY(crn_holding_publish(&c->held, c->held.comm, true));
    if (leaves && crn_vault_remove(c->held.vault, &nfiles) < 0)
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_EACH, "%s", crn_err_peek()->text);
    return CAIRN_OK;
}

int cairn_close(cairn *c)
{
    if (!c)
        return CAIRN_OK;
    if (!c->held.vault) { /* it was not reopened, or MPI has ended */
        crn_ckpt_free(c);
        return CAIRN_OK;
    }
    if (c->guest.leave)
        c->guest.leave(c->guest.self);
    if (c->leg.open)
        (void)cairn_cancel(c);
    cairn_status rc = crn_ckpt_catch_up(c);
    crn_err why = *crn_err_peek();
    crn_stop_ask(c);
    cairn_status ended = is_finished(c) ? finish_run(c) : CAIRN_NOTHING;
    if (ended < 0 && rc == CAIRN_OK) {
        rc = ended;
        why = *crn_err_peek();
    }
    crn_tune_conclude(c);
    crn_holding_event(
        &c->held, &(crn_event){.kind = CRN_EVENT_CLOSE, .close = {.finished = ended == CAIRN_OK}});
    crn_ckpt_free(c);
    return rc < 0 ? crn_err_give(&why) : rc;
}

const char *cairn_last_error(const cairn *c)
{
    return c && c->err.code < 0 ? c->err.text : cairn_error_text();
}
