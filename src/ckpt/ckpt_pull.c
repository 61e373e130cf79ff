/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running pulls: each round's blocks are read from the levels that have them.
 */
#include "ckpt/ckpt_redist.h"

static void add_stats(crn_load_stats *sum, const crn_load_stats *s)
{
    for (int l = 0; l < CRN_NLEVELS; l++) {
        sum->from[l].blocks += s->from[l].blocks;
        sum->from[l].bytes += s->from[l].bytes;
        sum->from[l].bad += s->from[l].bad;
        sum->from[l].absent += s->from[l].absent;
    }
}

static cairn_status run_rounds(crn_round *r, crn_pulls *p, crn_comm *comm, crn_vault *vault,
                               const crn_manifest_mark *mark, crn_load_stats *sum)
{
    uint64_t more = 1;
    for (size_t at = 0; more;) {
        crn_load_stats stats = {0};
        CRN_TRY(crn_comm_agree(comm, crn_round_fill(r, p, &at)));
        CRN_TRY(crn_vault_load(vault, mark, r->want.at, r->want.n, &stats));
        crn_round_copy(r);
        add_stats(sum, &stats);
        more = at < p->n;
        CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, &more, 1));
    }
    return CAIRN_OK;
}

cairn_status crn_pulls_run(crn_pulls *p, crn_comm *comm, crn_vault *vault,
                           const crn_manifest_mark *mark, crn_load_stats *ret_stats)
{
    crn_round r = {0};
    crn_load_stats sum = {0};
    cairn_status rc = run_rounds(&r, p, comm, vault, mark, &sum);
    crn_round_done(&r);
    if (rc == CAIRN_OK)
        *ret_stats = sum;
    return rc;
}
