/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which ranks fail together: real nodes by shared memory, virtual ones by counting.
 */
#include "comm/comm_ops.h"

#include <assert.h>

/* Turn each rank's leader (the lowest rank of its node) into numbers 0, 1, ... in place. */
static void number_nodes(const crn_comm *c, crn_nodes *n)
{
    for (int i = 0; i < c->size; i++) {
        /* a leader comes before the others of its node, so its number is there already */
        int leader = n->of_rank[i];
        n->of_rank[i] = leader == i ? n->nnodes++ : n->of_rank[leader];
    }
}

static void count_ranks(const crn_comm *c, crn_nodes *n)
{
    n->node = n->of_rank[c->rank];
    for (int i = 0; i < c->size; i++) {
        if (i == c->rank)
            n->local = n->nranks[n->node];
        n->nranks[n->of_rank[i]]++;
    }
    n->nlocal = n->nranks[n->node];
}

static cairn_status make_room(crn_comm *c, crn_nodes *n)
{
    cairn_status rc = crn_alloc(&n->of_rank, (size_t)c->size);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&n->nranks, (size_t)c->size);
    return crn_comm_agree(c, rc);
}

cairn_status crn_comm_nodes(crn_comm *c, int node_size, crn_nodes *ret)
{
    assert(node_size >= 0);
    crn_nodes n = {0};
    int leader = node_size > 0 ? c->rank - c->rank % node_size : 0;
    cairn_status rc;
    CRN_TRY_OUT(rc, make_room(c, &n));
    if (node_size == 0)
        CRN_TRY_OUT(rc, c->ops->leader(c, &leader));
    CRN_TRY_OUT(rc, crn_comm_gather(c, &leader, sizeof leader, CRN_COMM_ALL, n.of_rank));
    number_nodes(c, &n);
    count_ranks(c, &n);
    *ret = n;
out:
    if (rc < 0)
        crn_nodes_done(&n);
    return rc;
}

cairn_status crn_comm_nodes_by(crn_comm *c, int number, crn_nodes *ret)
{
    crn_nodes n = {0};
    int *all = NULL;
    cairn_status rc = crn_comm_agree(c, crn_alloc(&all, (size_t)c->size));
    CRN_TRY(rc);
    CRN_TRY_OUT(rc, make_room(c, &n));
    CRN_TRY_OUT(rc, crn_comm_gather(c, &number, sizeof number, CRN_COMM_ALL, all));
    for (int i = 0; i < c->size; i++)
        while (all[n.of_rank[i]] != all[i]) /* from 0 on, the lowest rank with this number */
            n.of_rank[i]++;
    number_nodes(c, &n);
    count_ranks(c, &n);
    *ret = n;
out:
    free(all);
    if (rc < 0)
        crn_nodes_done(&n);
    return rc;
}

void crn_nodes_done(crn_nodes *nodes)
{
    free(nodes->of_rank);
    free(nodes->nranks);
    *nodes = (crn_nodes){0};
}
