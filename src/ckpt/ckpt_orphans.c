/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files that other runs have left on the nodes: a session removes what is old, a command what
 * nobody needs.
 */
#include <mpi.h>

#include "ckpt/ckpt_holding.h"

#include <cairn/keep.h>
#include <inttypes.h>

/* --- sessions ------------------------------------------------------------------------------- */

static void log_orphan(void *arg, const crn_orphan *o)
{
    crn_holding *h = arg;
    char size[32];
    if (o->goes)
        crn_log_write(&h->log, o->need == CRN_NEED_NONE ? CRN_LOG_INFO : CRN_LOG_WARN, CRN_LOG_EACH,
                      "'%s': removed what run %s had left, %s, for keep.orphans: %s", h->local,
                      o->id, crn_format_nbytes(o->nbytes, size, sizeof size), o->why);
}

void crn_holding_clean_node(crn_holding *h)
{
    const crn_sweep how = {.after_s = crn_config_seconds(h->cfg, CRN_OPT_KEEP_ORPHANS),
                           .report = log_orphan,
                           .arg = h};
    const crn_err before = *crn_err_peek();
    crn_vault_settle(h->vault, crn_config_text(h->cfg, CRN_OPT_RUN_TRAIL));
    crn_vault_sweep(h->vault, &how);
    (void)crn_err_give(&before); /* what went wrong here is nobody's failure */
}

/* --- the call ------------------------------------------------------------------------------- */

typedef struct cleaning {
    const char *local;
    const cairn_orphan_options *how;
    cairn_orphan_result *ret;
    double after_s;
} cleaning;

static void describe(const cleaning *k, const crn_orphan *o, char *text, size_t cap)
{
    char size[32], wait[80] = "", time[32];
    crn_format_nbytes(o->nbytes, size, sizeof size);
    if (!o->goes && o->need == CRN_NEED_UNKNOWN && k->after_s > 0)
        snprintf(wait, sizeof wait, "; it goes %s after it was written last (keep.orphans)",
                 crn_format_seconds(k->after_s, time, sizeof time));
    snprintf(text, cap, "%s/%s, %s, %s: %s%s", k->local, o->id, size,
             !o->goes      ? "stays"
             : k->how->dry ? "would be removed"
                           : "removed",
             o->why, wait);
}

static void count_orphan(void *arg, const crn_orphan *o)
{
    cleaning *k = arg;
    char text[2 * CRN_ERR_TEXT];
    k->ret->nruns += o->goes;
    k->ret->nkept += !o->goes;
    k->ret->nbytes += o->goes ? o->nbytes : 0;
    describe(k, o, text, sizeof text);
    if (k->how->report)
        k->how->report(k->how->arg, text, o->goes);
}

static cairn_status clean(crn_holding *h, const char *config, const cairn_orphan_options *how,
                          cairn_orphan_result *ret)
{
    crn_nodes nodes = {0};
    CRN_TRY(crn_holding_configure(h, config));
    CRN_TRY(crn_comm_nodes(h->comm, 0, &nodes));
    cleaning k = {h->local, how, ret, crn_config_seconds(h->cfg, CRN_OPT_KEEP_ORPHANS)};
    const crn_sweep sweep = {
        .after_s = k.after_s, .at_once = true, .dry = how->dry, .report = count_orphan, .arg = &k};
    if (h->local && nodes.local == 0)
        crn_local_sweep(h->local, "", &sweep);
    crn_nodes_done(&nodes);
    uint64_t sum[] = {ret->nruns, ret->nkept, ret->nbytes};
    CRN_TRY(crn_comm_allreduce_u64(h->comm, CRN_REDUCE_SUM, sum, 3));
    ret->nruns = sum[0];
    ret->nkept = sum[1];
    ret->nbytes = sum[2];
    return CAIRN_OK;
}

int cairn_prune_orphans(MPI_Comm comm, const char *config, const cairn_orphan_options *how,
                        cairn_orphan_result *ret)
{
    crn_holding h;
    cairn_orphan_options ours;
    cairn_orphan_result result = {0};
    CRN_TRY(crn_struct_in(how, &ours));
    if (ret)
        CRN_TRY(crn_struct_check(ret));
    crn_holding_init(&h);
    cairn_status rc = crn_comm_create(comm, &h.comm);
    if (rc == CAIRN_OK)
        rc = clean(&h, config, &ours, &result);
    crn_holding_done(&h);
    return rc < 0 || !ret ? rc : crn_struct_out(&result, ret);
}
