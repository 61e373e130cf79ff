/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parity files on all nodes and the sets that wrote them, whatever the ranks and nodes
 * are now: which ranks' marks they protect, and whether enough is left of a set.
 */
#include "level/level_encoded.h"

#include <inttypes.h>

/* One mark in one parity file protects the data of a rank. */
typedef struct cover {
    uint32_t series, rank;
    uint64_t version, wall_ns;
    size_t off; /* of the layout in the survey's bytes */
} cover;

struct crn_parity {
    crn_gathered found; /* what each rank has read of its node's files */
    size_t nbytes;
    CRN_VEC(cover) cover; /* sorted; of equals the latest first */
};

void crn_parity_free(crn_parity *p)
{
    if (!p)
        return;
    crn_gathered_done(&p->found);
    crn_vec_done(&p->cover);
    free(p);
}

/* --- reading ------------------------------------------------------------------------------ */

/* The layout in a file's mark, behind what names that mark. What cannot be read is absent. */
static void put_layout(crn_vault *v, const crn_sighting *s, crn_buf *buf)
{
    crn_part_id id = crn_vault_id(v, CRN_ROLE_PARITY, s->series, s->rank, s->nranks);
    crn_part *part;
    crn_mark *mark = NULL;
    crn_layout layout;
    if (crn_vault_part(v, &id, false, &part) == CAIRN_OK &&
        crn_part_load(part, s->version, &mark) == CAIRN_OK &&
        crn_layout_read(part, mark, &layout) == CAIRN_OK &&
        layout.seat[layout.own].file == s->rank) {
        crn_put_u32(buf, s->series);
        crn_put_u64(buf, s->version);
        crn_put_u64(buf, s->wall_ns);
        crn_layout_put(&layout, buf);
    }
    crn_mark_free(mark);
}

static cairn_status read_layouts(crn_vault *v, crn_buf *buf)
{
    for (size_t i = 0; i < v->seen.n && !buf->failed; i++) {
        const crn_sighting *s = &v->seen.at[i];
        if (s->role == CRN_ROLE_PARITY && (int)s->node == v->nodes.node &&
            crn_vault_looks_at(v, s->rank))
            put_layout(v, s, buf);
    }
    crn_vault_close_readers(v);
    return crn_buf_status(buf);
}

/* --- all get to know ---------------------------------------------------------------------- */

static int compare_covers(const void *x, const void *y)
{
    const cover *a = x, *b = y;
    if (a->series != b->series)
        return a->series < b->series ? -1 : 1;
    if (a->version != b->version)
        return a->version < b->version ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->wall_ns != b->wall_ns)
        return a->wall_ns > b->wall_ns ? -1 : 1;
    return a->off < b->off ? -1 : a->off > b->off; /* the same order on all ranks */
}

static cairn_status index_covers(crn_parity *p)
{
    crn_cursor cur = crn_cursor_of(p->found.data, p->nbytes);
    crn_layout layout;
    while (cur.n > 0) {
        cover c = {.series = crn_get_u32(&cur)};
        c.version = crn_get_u64(&cur);
        c.wall_ns = crn_get_u64(&cur);
        c.off = p->nbytes - cur.n;
        CRN_TRY(crn_layout_get(&cur, &layout));
        for (uint32_t i = 0; i < layout.stripes.nseats; i++) {
            c.rank = layout.seat[i].rank;
            if (c.rank != CRN_SEAT_IDLE)
                CRN_TRY(crn_vec_push(&p->cover, c));
        }
    }
    if (p->cover.n > 0)
        qsort(p->cover.at, p->cover.n, sizeof *p->cover.at, compare_covers);
    return CAIRN_OK;
}

cairn_status crn_encoded_survey(crn_vault *v)
{
    crn_parity *p = NULL;
    crn_buf buf = {0};
    cairn_status rc = crn_alloc(&p, 1);
    if (rc == CAIRN_OK)
        rc = read_layouts(v, &buf);
    CRN_TRY_OUT(rc, crn_comm_agree(v->comm, rc));
    CRN_TRY_OUT(rc, crn_comm_gatherv(v->comm, buf.at, buf.n, CRN_COMM_ALL, &p->found));
    p->nbytes = p->found.off[v->nranks];
    rc = index_covers(p);
    CRN_TRY_OUT(rc, crn_comm_agree(v->comm, rc));
    crn_parity_free(v->parity);
    v->parity = p;
    p = NULL;
out:
    crn_parity_free(p);
    crn_buf_done(&buf);
    return rc;
}

/* --- questions ---------------------------------------------------------------------------- */

bool crn_parity_find(const crn_vault *v, const crn_manifest_mark *mark, uint32_t rank,
                     crn_layout *ret_layout, uint32_t *ret_seat)
{
    const crn_parity *p = v->parity;
    cover key = {
        .series = mark->series, .version = mark->version, .rank = rank, .wall_ns = UINT64_MAX};
    size_t low = 0, high = p ? p->cover.n : 0;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare_covers(&p->cover.at[mid], &key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (!p || low == p->cover.n || p->cover.at[low].series != mark->series ||
        p->cover.at[low].version != mark->version || p->cover.at[low].rank != rank)
        return false;
    crn_cursor cur =
        crn_cursor_of(p->found.data + p->cover.at[low].off, p->nbytes - p->cover.at[low].off);
    if (crn_layout_get(&cur, ret_layout) < 0)
        return false;
    *ret_seat = 0;
    while (ret_layout->seat[*ret_seat].rank != rank)
        ++*ret_seat;
    return true;
}

crn_part_id crn_parity_id(const crn_vault *v, const crn_manifest_mark *mark, const crn_seat *seat)
{
    return crn_vault_id(v, CRN_ROLE_PARITY, mark->series, seat->file, mark->nranks);
}

crn_part_id crn_parity_own_id(const crn_vault *v, const crn_manifest_mark *mark,
                              const crn_seat *seat)
{
    return crn_vault_id(v, CRN_ROLE_OWN, mark->series, seat->rank, mark->nranks);
}

/* Which seats' data and parity are still there, as far as the files show. */
static void look_for(const crn_vault *v, const crn_manifest_mark *mark, const crn_layout *l,
                     bool *data, bool *parity)
{
    for (uint32_t i = 0; i < l->stripes.nseats; i++) {
        crn_part_id own = crn_parity_own_id(v, mark, &l->seat[i]);
        crn_part_id file = crn_parity_id(v, mark, &l->seat[i]);
        data[i] = l->seat[i].nunits == 0 || crn_vault_holder(v, &own, mark->version, 0) >= 0;
        parity[i] = crn_vault_holder(v, &file, mark->version, 0) >= 0;
    }
}

/* Can a seat's data come from the others, whatever it has itself? Each turn of the roles counts. */
bool crn_encoded_holds(const crn_vault *v, const crn_manifest_mark *mark, uint32_t rank)
{
    bool data[CRN_ERASURE_MAX], parity[CRN_ERASURE_MAX];
    crn_layout l;
    uint32_t seat;
    if (!crn_parity_find(v, mark, rank, &l, &seat))
        return false;
    look_for(v, mark, &l, data, parity);
    for (uint32_t turn = 0; turn < l.stripes.nseats; turn++) {
        uint64_t stripe = (uint64_t)turn * l.stripes.chunk;
        uint32_t there = 0;
        for (uint32_t i = 0; i < l.stripes.nseats; i++)
            there += i != seat && (crn_stripe_is_data(&l.stripes, stripe, i) ? data[i] : parity[i]);
        if (crn_stripe_is_data(&l.stripes, stripe, seat) &&
            there < l.stripes.nseats - l.stripes.nparity)
            return false;
    }
    return true;
}

/* --- descriptions ------------------------------------------------------------------------- */

/* A description that is asked for, from one of the seats that keep it. */
typedef struct share {
    crn_ask *ask;
    uint64_t nbytes;
    char name[32]; /* of the variable */
} share;

typedef CRN_VEC(share) shares;

/* Ask the nth seat behind each one whose description is missing. CAIRN_NOTHING: none is left. */
static cairn_status ask_shares(crn_vault *v, const crn_manifest_mark *mark, crn_ask *ask, size_t n,
                               uint32_t nth, shares *list, crn_wants *fetch)
{
    crn_layout l;
    uint32_t seat;
    for (size_t i = 0; i < n; i++) {
        if (ask[i].mark || !crn_parity_find(v, mark, ask[i].rank, &l, &seat) ||
            nth > l.stripes.nparity)
            continue;
        const crn_seat *keeper = &l.seat[(seat + nth) % l.stripes.nseats];
        crn_want f = {.id = crn_parity_id(v, mark, keeper),
                      .version = mark->version,
                      .block = CRN_META_BLOCK,
                      .nbytes = l.seat[seat].share_bytes,
                      .n = (l.seat[seat].share_bytes + CRN_META_BLOCK - 1) / CRN_META_BLOCK};
        f.holder = crn_vault_holder(v, &f.id, mark->version, 0);
        CRN_TRY(crn_vec_reserve(fetch, 1));
        CRN_TRY(crn_vec_push(list, (share){.ask = &ask[i], .nbytes = f.nbytes}));
        snprintf(list->at[list->n - 1].name, sizeof list->at->name, CRN_VAR_SHARE "%" PRIu32,
                 ask[i].rank);
        CRN_TRY(crn_alloc(&f.dst, f.nbytes));
        fetch->at[fetch->n++] = f;
    }
    for (size_t i = 0; i < list->n; i++)
        fetch->at[i].name = list->at[i].name; /* which stay where they are from now on */
    return list->n > 0 ? CAIRN_OK : CAIRN_NOTHING;
}

static cairn_status take_shares(const shares *list, const crn_want *fetch)
{
    for (size_t i = 0; i < list->n; i++) {
        crn_cursor cur = crn_cursor_of(fetch[i].dst, fetch[i].nbytes);
        crn_mark *mark;
        if (fetch[i].missing.n > 0)
            continue;
        cairn_status rc = crn_mark_get(&cur, &mark);
        if (rc == CAIRN_OK)
            list->at[i].ask->mark = mark;
        else if (rc != CAIRN_ECORRUPT)
            return rc;
    }
    return CAIRN_OK;
}

cairn_status crn_encoded_describe(crn_vault *v, const crn_manifest_mark *mark, crn_ask *ask,
                                  size_t n)
{
    cairn_status rc = CAIRN_OK;
    for (uint32_t nth = 1; rc == CAIRN_OK; nth++) {
        shares list = {0};
        crn_wants fetch = {0};
        rc = crn_comm_agree(v->comm, ask_shares(v, mark, ask, n, nth, &list, &fetch));
        if (rc == CAIRN_OK)
            rc = crn_fetch_blocks(v, fetch.at, fetch.n);
        if (rc == CAIRN_OK)
            rc = crn_comm_agree(v->comm, take_shares(&list, fetch.at));
        for (size_t i = 0; i < fetch.n; i++) {
            crn_vec_done(&fetch.at[i].missing);
            free(fetch.at[i].dst);
        }
        crn_vec_done(&fetch);
        crn_vec_done(&list);
    }
    return rc == CAIRN_NOTHING ? CAIRN_OK : rc;
}
