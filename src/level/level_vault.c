/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The vault itself: making it, and the calls that go to one level's row of the table.
 */
#include "level/level_ops.h"

#include <assert.h>

/* Order the ranks by node: rank_at[first[k]] is the lowest rank of node k. */
static cairn_status place_ranks(crn_vault *v)
{
    const crn_nodes *nodes = &v->nodes;
    CRN_TRY(crn_alloc(&v->rank_at, (size_t)v->nranks));
    CRN_TRY(crn_alloc(&v->first, (size_t)nodes->nnodes + 1));
    for (int k = 0; k < nodes->nnodes; k++)
        v->first[k + 1] = v->first[k] + nodes->nranks[k];
    for (int r = 0; r < v->nranks; r++)
        v->rank_at[v->first[nodes->of_rank[r]]++] = r;
    for (int k = nodes->nnodes; k > 0; k--) /* each has moved to the next one's start */
        v->first[k] = v->first[k - 1];
    v->first[0] = 0;
    return CAIRN_OK;
}

int crn_vault_rank_at(const crn_vault *v, int node, int local)
{
    return v->rank_at[v->first[node] + local % v->nodes.nranks[node]];
}

cairn_status crn_vault_create(crn_comm *comm, const crn_vault_options *opt, crn_vault **ret)
{
    crn_vault *v = NULL;
    cairn_status rc = crn_alloc(&v, 1);
    if (rc == CAIRN_OK) {
        v->comm = comm;
        v->opt = *opt;
        v->rank = crn_comm_rank(comm);
        v->nranks = crn_comm_size(comm);
        if (opt->local)
            rc = crn_strdup(opt->local, &v->local);
        v->opt.local = v->local;
    }
    CRN_TRY_OUT(rc, crn_comm_agree(comm, rc));
    CRN_TRY_OUT(rc, opt->home > 0 && opt->node_size > 0
                        ? crn_comm_nodes_by(comm, opt->home, &v->nodes)
                        : crn_comm_nodes(comm, opt->node_size, &v->nodes));
    v->home = (uint32_t)(opt->home > 0 ? opt->home - 1 : v->nodes.node);
    rc = place_ranks(v);
    CRN_TRY_OUT(rc, crn_comm_agree(comm, rc));
    *ret = v;
    return CAIRN_OK;
out:
    crn_vault_free(v);
    return rc;
}

void crn_vault_free(crn_vault *v)
{
    if (!v)
        return;
    crn_vault_close_all(v);
    crn_file_close(v->settled);
    crn_nodes_done(&v->nodes);
    crn_vec_done(&v->seen);
    crn_parity_free(v->parity);
    free(v->rank_at);
    free(v->first);
    free(v->local);
    free(v);
}

void crn_vault_use_comm(crn_vault *v, crn_comm *comm)
{
    assert(crn_comm_size(comm) == v->nranks && crn_comm_rank(comm) == v->rank);
    v->comm = comm;
}

const crn_nodes *crn_vault_nodes(const crn_vault *v)
{
    return &v->nodes;
}

int crn_vault_home(const crn_vault *v)
{
    return (int)v->home + 1;
}

cairn_status crn_vault_check(crn_vault *v, crn_level level)
{
    return crn_level_table[level]->check(v);
}

cairn_status crn_vault_raise(crn_vault *v, crn_level level, uint64_t version, uint64_t keep,
                             crn_raise_stats *ret_stats)
{
    crn_raise_stats stats = {0};
    CRN_TRY(crn_vault_check(v, level));
    CRN_TRY(crn_level_table[level]->raise(v, version, keep, &stats));
    v->distrusted &= ~(1u << level);
    if (ret_stats)
        *ret_stats = stats;
    return CAIRN_OK;
}

void crn_vault_distrust(crn_vault *v, crn_level level)
{
    v->distrusted |= 1u << level;
}

cairn_status crn_vault_trim(crn_vault *v, crn_level level, uint64_t keep)
{
    return crn_level_table[level]->each(v, crn_part_trim, CRN_MAX(keep, 1));
}

cairn_status crn_vault_retain_own(crn_vault *v, const uint64_t *version, size_t n)
{
    crn_part *part;
    CRN_TRY(crn_vault_own(v, &part));
    return crn_part_retain(part, version, n);
}

cairn_status crn_vault_rewind_trail(crn_vault *v, uint64_t version)
{
    return crn_level_global.each(v, crn_part_rewind, version);
}

void crn_vault_begin_series(crn_vault *v, uint32_t series)
{
    crn_vault_close_all(v);
    v->opt.series = series;
}

cairn_status crn_vault_rewind(crn_vault *v, uint64_t version)
{
    for (int level = 0; level < CRN_NLEVELS; level++)
        CRN_TRY(crn_level_table[level]->each(v, crn_part_rewind, version));
    return CAIRN_OK;
}
