/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bringing a mark of a program that has died from the nodes into the trail.
 */
#include <mpi.h>

#include "ckpt/ckpt_session.h"

#include <cairn/keep.h>
#include <inttypes.h>

cairn_status crn_ckpt_find_existing(cairn *c)
{
    const char *name = crn_config_text(c->cfg, CRN_OPT_RUN_NAME);
    const char *trail = crn_config_text(c->cfg, CRN_OPT_RUN_TRAIL);
    CRN_TRY(crn_trail_open(trail, false, &c->trail));
    if (*name)
        return crn_run_open(c->trail, name, true, &c->run);
    CRN_TRY(crn_ckpt_newest_unfinished(c, &c->run));
    CRN_FAIL_IF(!c->run, CAIRN_ENOTFOUND, "trail '%s' has no unfinished run: name one", trail);
    return CAIRN_OK;
}

/* The manifest says that the mark is in the trail only when it is, on all ranks. */
cairn_status crn_ckpt_drain_mark(cairn *c, size_t i, uint64_t *ret_nbytes)
{
    const uint64_t start = crn_now_ns(), version = c->mark.at[i].version;
    crn_raise_stats stats;
    CRN_TRY(crn_vault_drain(c->vault, &c->mark.at[i], crn_ckpt_keep(c, CRN_LEVEL_GLOBAL), &stats));
    uint64_t stored = stats.stored_bytes;
    CRN_TRY(crn_comm_allreduce_u64(c->comm, CRN_REDUCE_SUM, &stored, 1));
    c->mark.at[i].levels |= 1u << CRN_LEVEL_GLOBAL;
    crn_ckpt_retain(c, CRN_LEVEL_GLOBAL);
    CRN_TRY(crn_ckpt_publish(c, c->comm, crn_run_manifest(c->run)->finished));
    crn_ckpt_event(c, &(crn_event){.kind = CRN_EVENT_DRAINED,
                                   .drained = {.version = version,
                                               .seconds = (double)(crn_now_ns() - start) * 1e-9,
                                               .stored = stored}});
    *ret_nbytes = stored;
    return CAIRN_OK;
}

static cairn_status drain(cairn *c, const char *config, cairn_drained *out)
{
    CRN_TRY(crn_ckpt_join(c, config, crn_ckpt_find_existing));
    CRN_FAIL_IF(c->mark.n == 0, CAIRN_ENOTFOUND, "run '%s' has no mark", crn_run_name(c->run));
    CRN_TRY(crn_vault_survey(c->vault, c->mark.at, c->mark.n));
    for (size_t i = c->mark.n; i-- > 0;) {
        out->version = c->mark.at[i].version;
        if (c->mark.at[i].levels & 1u << CRN_LEVEL_GLOBAL)
            return CAIRN_NOTHING;
        cairn_status rc = crn_vault_can_load(c->vault, &c->mark.at[i]);
        if (rc == CAIRN_OK)
            rc = crn_ckpt_drain_mark(c, i, &out->nbytes);
        if (rc != CAIRN_ENOTFOUND)
            return rc;
        out->nlost++;
        crn_log_write(&c->log, CRN_LOG_WARN, CRN_LOG_ROOT, "%s", crn_err_peek()->text);
    }
    /* the record tells of the oldest mark, which was tried last */
    crn_err_prefix("run '%s': none of %zu marks can be produced: ", crn_run_name(c->run),
                   c->mark.n);
    return CAIRN_ENOTFOUND;
}

int cairn_drain(MPI_Comm comm, const char *config, cairn_drained *ret)
{
    cairn *c;
    cairn_drained out = {0};
    CRN_TRY(crn_struct_check(ret));
    CRN_TRY(crn_ckpt_create(&c));
    cairn_status rc = crn_comm_create(comm, &c->comm);
    if (rc == CAIRN_OK)
        rc = drain(c, config, &out);
    crn_err why = *crn_err_peek();
    crn_ckpt_free(c);
    if (rc < 0)
        return crn_err_give(&why);
    CRN_TRY(crn_struct_out(&out, ret));
    return rc;
}
