/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bringing a mark of a program that has died from the nodes into the trail.
 */
#include <mpi.h>

#include "ckpt/ckpt_holding.h"

#include <cairn/keep.h>
#include <inttypes.h>

/* The manifest says that the mark is in the trail only when it is, on all ranks. */
cairn_status crn_holding_drain_mark(crn_holding *h, size_t i, uint64_t *ret_nbytes)
{
    const uint64_t start = crn_now_ns(), version = h->mark.at[i].version;
    crn_raise_stats stats;
    CRN_TRY(
        crn_vault_drain(h->vault, &h->mark.at[i], crn_holding_keep(h, CRN_LEVEL_GLOBAL), &stats));
    uint64_t stored = stats.stored_bytes;
    CRN_TRY(crn_comm_allreduce_u64(h->comm, CRN_REDUCE_SUM, &stored, 1));
    h->mark.at[i].levels |= 1u << CRN_LEVEL_GLOBAL;
    crn_holding_touch(h, i);
    crn_holding_retain(h, CRN_LEVEL_GLOBAL);
    CRN_TRY(crn_holding_publish(h, h->comm, crn_run_manifest(h->run)->finished));
    crn_holding_event(h, &(crn_event){.kind = CRN_EVENT_DRAINED,
                                      .drained = {.version = version,
                                                  .seconds = (double)(crn_now_ns() - start) * 1e-9,
                                                  .stored = stored}});
    *ret_nbytes = stored;
    return CAIRN_OK;
}

static cairn_status drain(crn_holding *h, const char *config, cairn_drain_result *out)
{
    CRN_TRY(crn_holding_join(h, config, crn_find_existing));
    CRN_FAIL_IF(h->mark.n == 0, CAIRN_ENOTFOUND, "run '%s' has no mark", crn_run_name(h->run));
    CRN_TRY(crn_vault_survey(h->vault, h->mark.at, h->mark.n));
    for (size_t i = h->mark.n; i-- > 0;) {
        out->version = h->mark.at[i].version;
        if (h->mark.at[i].levels & 1u << CRN_LEVEL_GLOBAL)
            return CAIRN_NOTHING;
        cairn_status rc = crn_vault_can_load(h->vault, &h->mark.at[i]);
        if (rc == CAIRN_OK)
            rc = crn_holding_drain_mark(h, i, &out->nbytes);
        if (rc != CAIRN_ENOTFOUND)
            return rc;
        out->nlost++;
        crn_log_write(&h->log, CRN_LOG_WARN, CRN_LOG_ROOT, "%s", crn_err_peek()->text);
    }
    /* the record tells of the oldest mark, which was tried last */
    crn_err_prefix("run '%s': none of %zu marks can be produced: ", crn_run_name(h->run),
                   h->mark.n);
    return CAIRN_ENOTFOUND;
}

int cairn_drain(MPI_Comm comm, const char *config, cairn_drain_result *ret)
{
    crn_holding h;
    cairn_drain_result out = {0};
    CRN_TRY(crn_struct_check(ret));
    crn_holding_init(&h);
    cairn_status rc = crn_comm_create(comm, &h.comm);
    if (rc == CAIRN_OK)
        rc = drain(&h, config, &out);
    crn_holding_done(&h);
    if (rc < 0)
        return rc;
    CRN_TRY(crn_struct_out(&out, ret));
    return rc;
}
