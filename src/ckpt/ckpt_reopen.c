/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Going on with other ranks in the same job. Some of the old ones may be gone, and the old
 * communicators with them: nothing here waits for them or communicates with them.
 */
#include "ckpt/ckpt_session.h"

/* Let go of everything that belongs to the old ranks. What the program has declared stays, and so
 * does the trail: by its name it might not be found again, as the program may have gone to another
 * directory. */
void crn_ckpt_leave(cairn *c, void (*drop)(crn_comm *comm))
{
    crn_engine_abandon(c);
    crn_draft_drop(c->job.draft);
    crn_signals_done(c);
    crn_ckpt_trees_free(c->trees);
    crn_reference_free(c->reference);
    crn_tally_reset(c);
    for (size_t i = 0; i < c->var.n; i++) /* what has changed since a mark in other files? all */
        crn_change_done(&c->var.at[i].change);
    c->home = crn_vault_home(c->vault);
    crn_vault_free(c->vault);
    crn_run_close(c->run);
    drop(c->engine_comm);
    drop(c->comm);
    c->trees = NULL;
    c->reference = NULL;
    c->vault = NULL;
    c->run = NULL;
    c->engine_comm = c->comm = NULL;
    c->job = (ckpt_job){0};
    c->open = c->resumed = false;
    c->behind = (crn_err){0};
    c->mark.n = 0;
    c->series = 0;
    c->resumed_from = c->lost_from = CRN_NO_VERSION;
    c->rewind = c->unchecked = true;
}

/* On rank 0: the run that the session is in. */
static cairn_status find_again(cairn *c)
{
    return crn_run_open(c->trail, c->name, true, &c->run);
}

static cairn_status enter(cairn *c)
{
    c->log.rank = crn_comm_rank(c->comm);
    CRN_TRY(crn_comm_barrier(c->comm)); /* until whoever held the run's lock has let it go */
    CRN_TRY(crn_ckpt_enter(c, find_again));
    return crn_ckpt_start(c);
}

cairn_status crn_ckpt_reopen(cairn *c, crn_comm *comm)
{
    char *name = NULL;
    cairn_status rc = crn_comm_agree(comm, crn_strdup(crn_run_name(c->run), &name));
    if (rc < 0) { /* nothing is lost yet */
        free(name);
        crn_comm_free(comm);
        return rc;
    }
    free(c->name);
    c->name = name;
    crn_ckpt_leave(c, crn_comm_abandon);
    c->comm = comm;
    return enter(c);
}
