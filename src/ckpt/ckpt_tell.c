/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a session has chosen, for the person who asks with CAIRN_LOG=info: five lines of rank 0.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>

#define TELL(c, ...) crn_log_write(&(c)->held.log, CRN_LOG_INFO, CRN_LOG_ROOT, __VA_ARGS__)

static void tell_run(const cairn *c)
{
    const size_t n = crn_run_manifest(c->held.run)->mark.n;
    TELL(c, "trail '%s', run '%s', which has %zu mark%s",
         crn_config_text(c->held.cfg, CRN_OPT_RUN_TRAIL), crn_run_name(c->held.run), n,
         n == 1 ? "" : "s");
}

static void tell_nodes(const cairn *c)
{
    const int size = crn_comm_size(c->held.comm), nodes = crn_vault_nodes(c->held.vault)->nnodes;
    TELL(c, "%d rank%s on %d node%s, local storage %s%s%s", size, size == 1 ? "" : "s", nodes,
         nodes == 1 ? "" : "s", c->held.local ? "'" : "none: all is in the trail",
         c->held.local ? c->held.local : "", c->held.local ? "'" : "");
}

/* Local is every mark; what the configuration wants and cannot be had is left out. */
static void tell_levels(const cairn *c)
{
    char text[256];
    size_t n = (size_t)snprintf(text, sizeof text, "%s", crn_level_name(CRN_LEVEL_LOCAL));
    for (crn_level l = CRN_LEVEL_RAISED; l < CRN_NLEVELS && n < sizeof text; l++) {
        const uint64_t every = c->usable >> l & 1 ? crn_tune_every(c, l) : 0;
        if (every > 0)
            n += (size_t)snprintf(text + n, sizeof text - n, ", %s every %" PRIu64,
                                  crn_level_name(l), every);
    }
    TELL(c, "levels: %s; plan.tune = %s", text, crn_config_text(c->held.cfg, CRN_OPT_PLAN_TUNE));
}

static void tell_io(const cairn *c)
{
    crn_io *io;
    if (crn_io_create(CRN_IO_AUTO, 1, &io) < 0) {
        TELL(c, "input and output: %s", crn_err_peek()->text);
        return;
    }
    TELL(c, "input and output by %s, marks in mode %s", crn_io_name(io),
         crn_config_text(c->held.cfg, CRN_OPT_MARK_MODE));
    crn_io_free(io);
}

static void tell_tracking(const cairn *c)
{
    crn_tracker *t;
    const bool kernel = crn_tracker_create(&t) == CAIRN_OK;
    TELL(c, "tracking: variable.track = %s, the kernel %s; trees for comparing: %s",
         crn_config_text(c->held.cfg, CRN_OPT_VARIABLE_TRACK),
         kernel ? "tells what was written" : "cannot tell what was written",
         crn_config_bool(c->held.cfg, CRN_OPT_COMPARE_TREES) ? "yes" : "no");
    if (kernel)
        crn_tracker_free(t);
}

void crn_ckpt_tell(const cairn *c)
{
    if (c->held.log.level < CRN_LOG_INFO || crn_comm_rank(c->held.comm) != 0)
        return;
    tell_run(c);
    tell_nodes(c);
    tell_levels(c);
    tell_io(c);
    tell_tracking(c);
}
