/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Going on with other ranks in the same job. Some of the old ones may be gone, and the old
 * communicators with them: nothing here waits for them or communicates with them.
 */
#include "ckpt/ckpt_session.h"

/* Let go of everything that belongs to the old ranks. What the program has declared stays. */
void crn_ckpt_leave(cairn *c, void (*drop)(crn_comm *comm))
{
    crn_engine_abandon(c);
    crn_draft_drop(c->leg.job.draft);
    crn_signals_done(c);
    crn_ckpt_trees_free(c->leg.trees);
    crn_reference_free(c->leg.reference);
    json_decref(c->leg.told_changes);
    crn_tally_reset(c);
    crn_coded_reset(c);
    for (size_t i = 0; i < c->var.n; i++) /* what has changed since a mark in other files? all */
        crn_change_done(&c->var.at[i].change);
    c->small.listed = false;
    crn_holding_leave(&c->held, drop);
    drop(c->leg.engine_comm);
    c->leg = ckpt_leg_begun;
}

static cairn_status enter(cairn *c)
{
    c->held.log.rank = crn_comm_rank(c->held.comm);
    CRN_TRY(crn_comm_barrier(c->held.comm)); /* until whoever held the run's lock has let it go */
    CRN_TRY(crn_holding_enter(&c->held, crn_find_again));
    return crn_ckpt_start(c);
}

cairn_status crn_ckpt_reopen(cairn *c, crn_comm *comm)
{
    char *name = NULL;
    cairn_status rc = crn_comm_agree(comm, crn_strdup(crn_run_name(c->held.run), &name));
    if (rc < 0) { /* nothing is lost yet */
        free(name);
        crn_comm_free(comm);
        return rc;
    }
    free(c->held.name);
    c->held.name = name;
    crn_ckpt_leave(c, crn_comm_abandon);
    c->held.comm = comm;
    return enter(c);
}
