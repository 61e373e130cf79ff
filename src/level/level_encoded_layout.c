/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who sits where in a set: from the nodes as they are now, and from what a parity file says of the
 * job that wrote it.
 */
#include "level/level_encoded.h"

#include <inttypes.h>

/* --- from the nodes ----------------------------------------------------------------------- */

static int most_ranks(const crn_vault *v, int first, int n)
{
    int most = 0;
    for (int i = first; i < first + n; i++)
        most = CRN_MAX(most, v->nodes.nranks[i]);
    return most;
}

int crn_sets_count(const crn_vault *v)
{
    int first, n;
    crn_group_of(v->nodes.nnodes, v->opt.group, v->nodes.node, &first, &n);
    int rest = most_ranks(v, first, n) - v->nodes.local; /* places from this rank's on */
    return (rest + v->nodes.nlocal - 1) / v->nodes.nlocal;
}

/*
 * The seat of a set on a node. Where the node has fewer ranks than the set's place, places count on
 * from its first rank again; such a lap gives no data, and its files need other names.
 */
static crn_seat seat_on(const crn_vault *v, int node, int place)
{
    uint32_t rank = (uint32_t)crn_vault_rank_at(v, node, place);
    uint32_t lap = (uint32_t)(place / v->nodes.nranks[node]);
    return (crn_seat){.file = rank + lap * (uint32_t)v->nranks,
                      .rank = lap == 0 ? rank : CRN_SEAT_IDLE};
}

cairn_status crn_set_init(crn_set *set, const crn_vault *v, int nth)
{
    int first, n, place = v->nodes.local + nth * v->nodes.nlocal;
    crn_group_of(v->nodes.nnodes, v->opt.group, v->nodes.node, &first, &n);
    set->layout = (crn_layout){
        .own = (uint32_t)(v->nodes.node - first),
        .stripes = {.nseats = (uint32_t)n, .nparity = (uint32_t)v->opt.nparity, .chunk = 1}};
    CRN_TRY(crn_alloc(&set->rank, (size_t)n));
    for (int i = 0; i < n; i++) {
        set->layout.seat[i] = seat_on(v, first + i, place);
        set->rank[i] = crn_vault_rank_at(v, first + i, place);
    }
    return CAIRN_OK;
}

void crn_set_done(crn_set *set)
{
    free(set->rank);
    set->rank = NULL;
}

crn_part_id crn_set_file(const crn_vault *v, const crn_set *set)
{
    return crn_vault_id(v, CRN_ROLE_PARITY, v->opt.series, set->layout.seat[set->layout.own].file,
                        (uint32_t)v->nranks);
}

/* --- from a file -------------------------------------------------------------------------- */

void crn_layout_put(const crn_layout *l, crn_buf *buf)
{
    crn_put_u32(buf, CRN_UNIT);
    crn_put_u32(buf, l->stripes.nseats);
    crn_put_u32(buf, l->stripes.nparity);
    crn_put_u32(buf, l->stripes.chunk);
    crn_put_u32(buf, l->own);
    crn_put_u32(buf, 0);
    crn_put_bytes(buf, l->seal.b, sizeof l->seal.b);
    for (uint32_t i = 0; i < l->stripes.nseats; i++) {
        crn_put_u32(buf, l->seat[i].file);
        crn_put_u32(buf, l->seat[i].rank);
        crn_put_u64(buf, l->seat[i].nunits);
        crn_put_u64(buf, l->seat[i].share_bytes);
    }
}

static void get_seat(crn_cursor *cur, crn_seat *ret)
{
    const uint64_t most = UINT64_MAX >> 20; /* units whose bytes and stripes can be counted */
    ret->file = crn_get_u32(cur);
    ret->rank = crn_get_u32(cur);
    ret->nunits = crn_get_u64(cur);
    ret->share_bytes = crn_get_u64(cur);
    crn_cursor_expect(cur, ret->nunits < most && ret->share_bytes <= CRN_COMM_PIECE);
    crn_cursor_expect(cur, ret->rank != CRN_SEAT_IDLE || ret->nunits == 0);
}

cairn_status crn_layout_get(crn_cursor *cur, crn_layout *ret)
{
    crn_layout l = {0};
    crn_cursor_expect(cur, crn_get_u32(cur) == CRN_UNIT);
    crn_stripes *s = &l.stripes;
    s->nseats = crn_get_u32(cur);
    s->nparity = crn_get_u32(cur);
    s->chunk = crn_get_u32(cur);
    l.own = crn_get_u32(cur);
    crn_cursor_expect(cur, crn_get_u32(cur) == 0);
    crn_cursor_expect(cur, s->nseats <= CRN_ERASURE_MAX && s->nparity > 0 &&
                               s->nparity < s->nseats && l.own < s->nseats);
    crn_cursor_expect(cur, s->chunk > 0 && s->chunk <= UINT16_MAX);
    crn_get_bytes(cur, l.seal.b, sizeof l.seal.b);
    for (uint32_t i = 0; !cur->failed && i < s->nseats; i++)
        get_seat(cur, &l.seat[i]);
    CRN_TRY(crn_cursor_status(cur, "layout of parity"));
    *ret = l;
    return CAIRN_OK;
}

cairn_status crn_layout_read(crn_part *part, crn_mark *mark, crn_layout *ret)
{
    crn_var *v = crn_mark_find(mark, CRN_VAR_LAYOUT);
    unsigned char *data;
    CRN_FAIL_IF(!v || v->spec.nbytes > sizeof(crn_layout), CAIRN_ECORRUPT,
                "mark %" PRIu64 " has no layout of parity", mark->version);
    CRN_TRY(crn_alloc(&data, v->spec.nbytes));
    cairn_status rc = crn_mark_read(part, mark, v, 0, v->nblocks, data, NULL);
    crn_cursor cur = crn_cursor_of(data, v->spec.nbytes);
    if (rc == CAIRN_OK)
        rc = crn_layout_get(&cur, ret);
    free(data);
    return rc;
}
