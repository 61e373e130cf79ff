/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The partner level: a copy of each rank's part on the next node, where the rank of the same place
 * keeps it. Every rank sends to one keeper and may keep for none, one or several.
 *
 *   sender                                keeper
 *     description: variables, digests  ->
 *                                      <- a bit for each block that the copy lacks
 *     those blocks, in pieces          ->   verified, put into a draft
 *                  both: commit on all ranks, or on none
 */
#include "level/level_ops.h"

#include <inttypes.h>

static bool partner_applies(const crn_vault *v)
{
    return v->local && v->nodes.nnodes > 1;
}

/* The rank that keeps a copy for a rank at a place of a node. */
static int keeper_at(const crn_vault *v, int node, int place)
{
    return crn_vault_rank_at(v, (node + 1) % v->nodes.nnodes, place);
}

static cairn_status partner_check(const crn_vault *v)
{
    CRN_FAIL_IF(!v->local, CAIRN_EINVAL,
                "level 'partner' needs node-local storage: name a directory with level.local");
    CRN_FAIL_IF(v->nodes.nnodes < 2, CAIRN_EINVAL,
                "level 'partner' needs at least 2 nodes, and this job has 1");
    return CAIRN_OK;
}

/* --- the sender ----------------------------------------------------------------------------- */

typedef struct sender {
    crn_part *part;
    crn_mark *mark;
    crn_buf description;
    crn_parcels answer; /* the keeper's bits */
    crn_gaps ahead, now;
    uint64_t moved_bytes;
    cairn_status rc; /* the first failure to read */
    crn_err err;
} sender;

static cairn_status describe_own(crn_vault *v, uint64_t version, sender *s)
{
    CRN_TRY(crn_vault_own_mark(v, version, &s->part, &s->mark));
    crn_mark_put_moved(s->mark, &s->description);
    return crn_buf_status(&s->description);
}

static cairn_status take_answer(sender *s)
{
    CRN_FAIL_IF(s->answer.in.n != 1 || s->answer.in.at[0].n != crn_mark_bits(s->mark),
                CAIRN_EINTERNAL, "the partner did not list the blocks that it lacks");
    s->ahead = crn_gaps_of(s->mark, s->answer.in.at[0].data);
    s->ahead.moved = true;
    s->now = s->ahead;
    return CAIRN_OK;
}

static size_t sender_next(void *arg)
{
    sender *s = arg;
    return crn_gaps_next(&s->ahead) ? s->ahead.nbytes : 0;
}

static void sender_fill(void *arg, unsigned char *piece, size_t nbytes)
{
    sender *s = arg;
    (void)crn_gaps_next(&s->now);
    s->moved_bytes += nbytes;
    if (s->rc < 0) {
        memset(piece, 0, nbytes);
        return;
    }
    s->rc = crn_mark_read_moved(s->part, s->mark, &s->mark->var[s->now.v], s->now.first, s->now.n,
                                piece);
    if (s->rc < 0)
        s->err = *crn_err_peek();
}

static void sender_done(sender *s)
{
    crn_mark_free(s->mark);
    crn_buf_done(&s->description);
    crn_parcels_done(&s->answer);
}

/* --- the keeper ----------------------------------------------------------------------------- */

typedef struct keeper {
    int peer;
    crn_mark *mark; /* as the sender describes it */
    crn_copy *copy; /* one of the raise's */
    crn_gaps ahead, now;
    cairn_status rc; /* the first failure to put */
    crn_err err;
} keeper;

static cairn_status keeper_begin(crn_vault *v, uint64_t version, const crn_parcel *from, keeper *k)
{
    crn_cursor c = crn_cursor_of(from->data, from->n);
    crn_part *part;
    crn_part_id id =
        crn_vault_id(v, CRN_ROLE_PARTNER, v->opt.series, (uint32_t)from->peer, (uint32_t)v->nranks);
    CRN_TRY(crn_mark_get(&c, &k->mark));
    CRN_FAIL_IF(k->mark->version != version, CAIRN_EINTERNAL,
                "rank %d describes mark %" PRIu64 " instead", from->peer, k->mark->version);
    CRN_TRY(crn_vault_part(v, &id, true, &part));
    CRN_TRY(crn_copy_begin(v, part, k->mark, v->distrusted >> CRN_LEVEL_PARTNER & 1, k->copy));
    k->ahead = crn_gaps_of(k->mark, k->copy->lacking);
    k->ahead.moved = true;
    k->now = k->ahead;
    return CAIRN_OK;
}

static size_t keeper_next(void *arg)
{
    keeper *k = arg;
    return crn_gaps_next(&k->ahead) ? k->ahead.nbytes : 0;
}

static void keeper_take(void *arg, unsigned char *piece, size_t nbytes)
{
    keeper *k = arg;
    (void)nbytes, (void)crn_gaps_next(&k->now);
    const crn_var *var = &k->mark->var[k->now.v];
    for (uint64_t i = k->now.first; i < k->now.first + k->now.n && k->rc == CAIRN_OK; i++) {
        k->rc = crn_copy_put(k->copy, k->now.v, i, piece);
        piece += crn_block_moved_bytes(var, i);
        if (k->rc < 0)
            k->err = *crn_err_peek();
    }
}

/* --- both ----------------------------------------------------------------------------------- */

typedef struct partner_raise {
    sender sender;
    size_t nkeep; /* ranks that this one keeps a copy for: as many of each of these */
    keeper *keeper;
    crn_copy *copy;
    crn_flow *in, out;
} partner_raise;

static void raise_done(partner_raise *p)
{
    crn_flows_done(&p->out, 1);
    for (size_t i = 0; p->in && i < p->nkeep; i++)
        crn_flows_done(&p->in[i], 1);
    for (size_t i = 0; p->copy && i < p->nkeep; i++)
        crn_copy_done(&p->copy[i]);
    for (size_t i = 0; p->keeper && i < p->nkeep; i++)
        crn_mark_free(p->keeper[i].mark);
    free(p->in);
    free(p->copy);
    free(p->keeper);
    sender_done(&p->sender);
}

/* Begin a copy for every rank that sent a description, and list what it lacks. */
static cairn_status begin_copies(crn_vault *v, uint64_t version, const crn_parcels *described,
                                 partner_raise *p, crn_parcel **ret_answer)
{
    size_t n = described->in.n;
    CRN_TRY(crn_alloc(&p->keeper, n));
    CRN_TRY(crn_alloc(&p->copy, n));
    CRN_TRY(crn_alloc(&p->in, n));
    CRN_TRY(crn_alloc(ret_answer, n));
    p->nkeep = n;
    for (size_t i = 0; i < n; i++) {
        p->keeper[i].peer = described->in.at[i].peer;
        p->keeper[i].copy = &p->copy[i];
        CRN_TRY(keeper_begin(v, version, &described->in.at[i], &p->keeper[i]));
        (*ret_answer)[i] =
            (crn_parcel){described->in.at[i].peer, p->copy[i].lacking, p->copy[i].nlacking};
    }
    return CAIRN_OK;
}

/* Two swaps: descriptions to the keepers, bits back. The same status on all ranks. */
static cairn_status negotiate(crn_vault *v, uint64_t version, partner_raise *p)
{
    crn_parcels described = {0};
    crn_parcel *answer = NULL;
    sender *s = &p->sender;
    cairn_status rc = describe_own(v, version, s);
    crn_parcel own = {keeper_at(v, v->nodes.node, v->nodes.local), s->description.at,
                      s->description.n};
    CRN_TRY_OUT(rc, crn_parcels_swap(v->comm, rc, &own, 1, &described));
    rc = begin_copies(v, version, &described, p, &answer);
    rc = crn_parcels_swap(v->comm, rc, answer, rc < 0 ? 0 : p->nkeep, &s->answer);
out:
    free(answer);
    crn_parcels_done(&described);
    return rc;
}

static cairn_status prepare_flows(crn_vault *v, partner_raise *p)
{
    CRN_TRY(take_answer(&p->sender));
    p->out = (crn_flow){.peer = keeper_at(v, v->nodes.node, v->nodes.local),
                        .cap = p->sender.now.cap,
                        .next = sender_next,
                        .move = sender_fill,
                        .arg = &p->sender};
    CRN_TRY(crn_flows_prepare(&p->out, 1));
    for (size_t i = 0; i < p->nkeep; i++)
        p->in[i] = (crn_flow){.peer = p->keeper[i].peer,
                              .cap = p->keeper[i].now.cap,
                              .next = keeper_next,
                              .move = keeper_take,
                              .arg = &p->keeper[i]};
    return crn_flows_prepare(p->in, p->nkeep);
}

/* What went wrong while pieces flowed, if anything did. All learn of failures to read first: what a
 * keeper finds in bytes that could not be read follows from them. Collective. */
static cairn_status outcome(crn_comm *comm, const partner_raise *p, cairn_status rc)
{
    if (rc == CAIRN_OK && p->sender.rc < 0)
        rc = crn_err_give(&p->sender.err);
    CRN_TRY(crn_comm_agree(comm, rc));
    for (size_t i = 0; i < p->nkeep; i++)
        if (p->keeper[i].rc < 0)
            return crn_err_give(&p->keeper[i].err);
    return CAIRN_OK;
}

static cairn_status partner_raise_mark(crn_vault *v, uint64_t version, uint64_t keep,
                                       crn_raise_stats *stats)
{
    partner_raise p = {0};
    cairn_status rc;
    CRN_TRY_OUT(rc, negotiate(v, version, &p));
    rc = prepare_flows(v, &p);
    CRN_TRY_OUT(rc, crn_comm_agree(v->comm, rc));
    rc = crn_flows_run(v->comm, &p.out, 1, p.in, p.nkeep);
    rc = outcome(v->comm, &p, rc);
    CRN_TRY_OUT(rc, crn_copies_finish(v->comm, p.copy, p.nkeep, rc, keep, stats));
    stats->moved_bytes += p.sender.moved_bytes;
out:
    raise_done(&p);
    return rc;
}

/* --- files ---------------------------------------------------------------------------------- */

static cairn_status partner_each(crn_vault *v, cairn_status (*visit)(crn_part *, uint64_t),
                                 uint64_t arg)
{
    const crn_nodes *nodes = &v->nodes;
    int node = (nodes->node + nodes->nnodes - 1) % nodes->nnodes;
    for (int place = 0; partner_applies(v) && place < nodes->nranks[node]; place++) {
        uint32_t rank = (uint32_t)crn_vault_rank_at(v, node, place);
        crn_part_id id =
            crn_vault_id(v, CRN_ROLE_PARTNER, v->opt.series, rank, (uint32_t)v->nranks);
        if (keeper_at(v, node, place) == v->rank)
            CRN_TRY(crn_vault_visit(v, &id, visit, arg));
    }
    return CAIRN_OK;
}

const crn_level_ops crn_level_partner = {
    .role = CRN_ROLE_PARTNER,
    .file = "partner",
    .check = partner_check,
    .raise = partner_raise_mark,
    .each = partner_each,
};
