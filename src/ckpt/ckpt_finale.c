/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that comes to MPI_Finalize without cairn_close. Its marks are settled as long as MPI
 * still works; whether it came to its end or gave up nobody has said, so its run can be resumed.
 * What is left of the session can only be closed.
 */
#include "ckpt/ckpt_session.h"

static void settle_at_finalize(void *arg)
{
    cairn *c = arg;
    if (!c->held.vault) /* it was not reopened */
        return;
    if (c->leg.open)
        (void)cairn_cancel(c);
    if (crn_ckpt_catch_up(c) < 0)
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_ROOT, "%s", crn_err_peek()->text);
    crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_ROOT,
                  "the program let MPI end without cairn_close: run '%s' does not count as "
                  "finished, and the next start goes on with its newest mark",
                  crn_run_name(c->held.run));
    crn_tune_conclude(c);
    crn_holding_event(&c->held,
                      &(crn_event){.kind = CRN_EVENT_CLOSE, .close = {.forgotten = true}});
    c->ended = true;
    crn_ckpt_leave(c, crn_comm_free);
}

cairn_status crn_ckpt_await_finalize(cairn *c)
{
    return crn_comm_agree(c->held.comm, crn_finale_create(settle_at_finalize, c, &c->finale));
}
