/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Retention: which marks a part keeps, and which space that leaves free.
 *
 * The marks of a catalogue are a chain: each inherits blocks from the one before it, at the same
 * place of the same variable's table. So what the oldest marks alone refer to is found by comparing
 * each with its successor, without looking at the others. Where that is impossible (a damaged
 * record, marks dropped elsewhere) the free space is derived from all that is retained. A chain
 * with a mark taken out is still one: a block that the next mark does not have, no later one has.
 */
#include "store/store_part.h"
#include "store/store_uses.h"

#include <assert.h>

static cairn_status use(crn_extents *used, uint64_t off, uint64_t nbytes)
{
    return nbytes == 0 ? CAIRN_OK
                       : crn_vec_push(used, (crn_extent){off, crn_format_blob_room(nbytes)});
}

/* Blocks below a sector share sectors, and a sector is in use while one of its blocks is. */
static bool is_crumb(const crn_block *b)
{
    return b->nbytes < GRAIN && !(b->codec & CRN_OUTSIDE);
}

/* The sectors that a crumb lies in, which are one or two. */
static cairn_status use_sectors(crn_extents *used, const crn_block *b)
{
    for (uint64_t at = b->off & ~(uint64_t)(GRAIN - 1); at < b->off + b->nbytes; at += GRAIN)
        CRN_TRY(crn_vec_push(used, (crn_extent){at, GRAIN}));
    return CAIRN_OK;
}

static cairn_status use_block(crn_extents *used, const crn_block *b)
{
    if (b->codec & CRN_OUTSIDE)
        return CAIRN_OK;
    if (is_crumb(b))
        return use_sectors(used, b);
    return crn_vec_push(used, (crn_extent){b->off, crn_format_block_room(b)});
}

static cairn_status use_var(crn_part *part, const crn_mark *m, crn_var *v, crn_extents *used)
{
    CRN_TRY(crn_mark_table(part, m, v));
    CRN_TRY(use(used, v->place.off, v->place.nbytes));
    for (uint64_t i = 0; i < v->nblocks; i++)
        CRN_TRY(use_block(used, &v->table[i]));
    return CAIRN_OK;
}

cairn_status crn_mark_extents(crn_part *part, const part_entry *entry, crn_mark *m,
                              crn_extents *used)
{
    CRN_TRY(use(used, entry->record.off, entry->record.nbytes));
    for (size_t i = 0; i < m->npages; i++)
        CRN_TRY(use(used, m->page[i].off, m->page[i].nbytes));
    for (size_t i = 0; i < m->nvars; i++)
        CRN_TRY(use_var(part, m, &m->var[i], used));
    return CAIRN_OK;
}

static cairn_status use_mark(crn_part *part, const part_entry *entry, crn_extents *used)
{
    crn_mark *m;
    const size_t first = used->n;
    CRN_TRY(crn_part_load_record(part, entry, false, &m));
    cairn_status rc = crn_mark_extents(part, entry, m, used);
    if (rc == CAIRN_OK && part->uses)
        rc = crn_uses_add(part->uses, used->at + first, used->n - first, m);
    crn_mark_free(m);
    return rc;
}

static cairn_status use_retained(crn_part *part, crn_extents *used)
{
    for (size_t i = 0; i < part->pieces.n; i++)
        CRN_TRY(crn_vec_push(used, part->pieces.at[i]));
    for (size_t i = 0; i < part->older.n; i++)
        CRN_TRY(crn_vec_push(used, part->older.at[i]));
    for (size_t i = 0; i < part->cat.n; i++)
        CRN_TRY(use_mark(part, &part->cat.at[i], used));
    return CAIRN_OK;
}

cairn_status crn_part_derive(crn_part *part)
{
    crn_extents used = {0};
    cairn_status rc = crn_uses_renew(part);
    if (rc == CAIRN_OK)
        rc = use_retained(part, &used);
    part->uses_partial = rc < 0;
    if (rc == CAIRN_ECORRUPT || rc == CAIRN_EIO) {
        /* Which blocks a mark uses that cannot be read is unknown, so none is overwritten: the file
         * only grows until that mark is no longer retained. */
        used.n = 0;
        rc = use(&used, DATA_START, part->super.end - DATA_START);
    }
    if (rc == CAIRN_OK)
        rc = crn_space_derive(&part->space, DATA_START, &used);
    crn_vec_done(&used);
    return rc;
}

/* --- dropping the oldest -------------------------------------------------------------------- */

/* What dropped marks alone used. Of crumbs, the sectors: others in them may still be in use. */
typedef struct leftover {
    crn_extents *whole;
    crn_extents crumbs;
} leftover;

static cairn_status unused_block(const crn_block *b, leftover *ret)
{
    return is_crumb(b) ? use_sectors(&ret->crumbs, b) : use_block(ret->whole, b);
}

/* Append what variable a uses and its successor b (or NULL) does not. */
static cairn_status unused_by_var(const crn_var *a, const crn_var *b, leftover *ret)
{
    if (b && a->place.nbytes > 0 && b->place.off == a->place.off && b->place.nbytes > 0)
        return CAIRN_OK; /* the same table has the same blocks */
    CRN_TRY(use(ret->whole, a->place.off, a->place.nbytes));
    for (uint64_t i = 0; i < a->nblocks; i++)
        if (!b || i >= b->nblocks || b->table[i].off != a->table[i].off ||
            b->table[i].codec & CRN_OUTSIDE)
            CRN_TRY(unused_block(&a->table[i], ret));
    return CAIRN_OK;
}

/* Do both have the same page of their records there? */
static bool share_page(const crn_mark *a, const crn_mark *b, size_t page)
{
    return page < a->npages && page < b->npages && a->page[page].off == b->page[page].off;
}

/* Of a, only what it does not share with b need be loaded. */
static cairn_status unused_by_mark(crn_part *part, crn_mark *a, crn_mark *b, leftover *ret)
{
    for (size_t i = 0; i < a->npages; i++)
        if (!share_page(a, b, i))
            CRN_TRY(use(ret->whole, a->page[i].off, a->page[i].nbytes));
    for (size_t i = 0; i < a->nvars; i++) {
        if (share_page(a, b, i / PAGE_VARS))
            continue;
        crn_var *other = crn_mark_find(b, a->var[i].spec.name);
        CRN_TRY(crn_mark_table(part, a, &a->var[i]));
        if (other)
            CRN_TRY(crn_mark_table(part, b, other));
        CRN_TRY(unused_by_var(&a->var[i], other, ret));
    }
    return CAIRN_OK;
}

static int by_offset(const void *x, const void *y)
{
    const uint64_t a = ((const crn_extent *)x)->off, b = ((const crn_extent *)y)->off;
    return (a > b) - (a < b);
}

static void sort_unique(crn_extents *list)
{
    size_t n = 0;
    if (list->n > 0)
        qsort(list->at, list->n, sizeof *list->at, by_offset);
    for (size_t i = 0; i < list->n; i++)
        if (n == 0 || list->at[n - 1].off != list->at[i].off)
            list->at[n++] = list->at[i];
    list->n = n;
}

/*
 * Of sectors with crumbs that dropped marks no longer need, those that nobody does. A sector is
 * written once, by one mark, and to none of it again before all of it is free. So whatever is still
 * in use of it was put no later than what was dropped, and the oldest retained mark, b, has it: a
 * block that this does not have, no later one has.
 */
static cairn_status free_sectors(crn_part *part, crn_mark *b, leftover *u)
{
    crn_extents live = {0};
    cairn_status rc = CAIRN_OK;
    if (u->crumbs.n == 0)
        return CAIRN_OK;
    for (size_t v = 0; v < b->nvars && rc == CAIRN_OK; v++) {
        rc = crn_mark_table(part, b, &b->var[v]);
        for (uint64_t i = 0; i < b->var[v].nblocks && rc == CAIRN_OK; i++)
            if (is_crumb(&b->var[v].table[i]))
                rc = use_sectors(&live, &b->var[v].table[i]);
    }
    sort_unique(&live);
    sort_unique(&u->crumbs);
    for (size_t i = 0; i < u->crumbs.n && rc == CAIRN_OK; i++)
        if (!crn_extents_have(&live, &u->crumbs.at[i]))
            rc = crn_vec_push(u->whole, u->crumbs.at[i]);
    crn_vec_done(&live);
    return rc;
}

/* The i-th mark of the chain that newest (if any) will be the end of, if it is in memory. */
static crn_mark *remembered(const crn_part *part, crn_mark *newest, size_t i)
{
    const part_entry *e = &part->cat.at[i];
    if (i == part->cat.n)
        return newest;
    if (part->tip && part->tip->seq == e->seq)
        return part->tip;
    return part->before && part->before->seq == e->seq ? part->before : NULL;
}

/* Read of a mark what it does not share with its successor b. */
static cairn_status load_beside(crn_part *part, const part_entry *e, const crn_mark *b,
                                crn_mark **ret)
{
    crn_mark *m;
    CRN_TRY(crn_part_load_record(part, e, true, &m));
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < m->npages && rc == CAIRN_OK; i++)
        if (!share_page(m, b, i))
            rc = crn_mark_load_page(part, m, i);
    if (rc == CAIRN_OK)
        *ret = m;
    else
        crn_mark_free(m);
    return rc;
}

/* Append what the i-th mark of the chain uses and the next one does not; of the last one that goes,
 * the sectors as well. */
static cairn_status unused_by(crn_part *part, crn_mark *newest, size_t i, bool last, leftover *ret)
{
    crn_mark *a = remembered(part, newest, i), *b = remembered(part, newest, i + 1);
    const bool own_a = !a, own_b = !b;
    cairn_status rc = CAIRN_OK;
    if (own_b)
        CRN_TRY(crn_part_load(part, part->cat.at[i + 1].version, &b));
    if (own_a)
        rc = load_beside(part, &part->cat.at[i], b, &a);
    if (rc == CAIRN_OK)
        rc = unused_by_mark(part, a, b, ret);
    if (rc == CAIRN_OK && last)
        rc = free_sectors(part, b, ret);
    if (own_b)
        crn_mark_free(b);
    if (own_a)
        crn_mark_free(a);
    return rc;
}

cairn_status crn_part_unused(crn_part *part, crn_mark *newest, size_t n, crn_extents *ret)
{
    leftover u = {.whole = ret};
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < n && rc == CAIRN_OK; i++) {
        const part_ref *record = &part->cat.at[i].record;
        rc = unused_by(part, newest, i, i + 1 == n, &u);
        if (rc == CAIRN_OK)
            rc = use(ret, record->off, record->nbytes);
    }
    crn_vec_done(&u.crumbs);
    return rc;
}

void crn_part_set_tip(crn_part *part, crn_mark *m)
{
    crn_mark_free(part->tip);
    part->tip = m;
    part->table_bytes = 0;
    for (size_t i = 0; m && i < m->nvars; i++)
        part->table_bytes += crn_format_blob_room(m->var[i].place.nbytes);
}

void crn_part_forget(crn_part *part, size_t n)
{
    part->cat.n -= n;
    memmove(part->cat.at, part->cat.at + n, part->cat.n * sizeof *part->cat.at);
}

cairn_status crn_part_trim(crn_part *part, uint64_t keep)
{
    assert(part->write && !part->drafting);
    CRN_TRY(crn_part_resolve(part));
    keep = CRN_MAX(keep, 1);
    if (part->cat.n <= keep)
        return CAIRN_OK;
    crn_extents unused = {0};
    size_t n = part->cat.n - (size_t)keep;
    bool known = crn_part_unused(part, NULL, n, &unused) == CAIRN_OK;
    part_super s = part->super;
    cairn_status rc;
    s.seq++;
    s.dropped += (uint32_t)n;
    CRN_TRY_OUT(rc, crn_part_write_super(part, &s, NULL));
    crn_part_forget(part, n);
    rc = known ? crn_space_give(&part->space, &unused) : crn_part_derive(part);
out:
    crn_vec_done(&unused);
    return rc;
}

static int by_version(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* In order, so that one of many is found at once; to be freed. */
static cairn_status sort_versions(const uint64_t *version, size_t n, uint64_t **ret)
{
    CRN_TRY(crn_alloc(ret, n));
    if (n > 0) {
        memcpy(*ret, version, n * sizeof *version);
        qsort(*ret, n, sizeof *version, by_version);
    }
    return CAIRN_OK;
}

cairn_status crn_part_retain(crn_part *part, const uint64_t *version, size_t n)
{
    assert(part->write && !part->drafting);
    CRN_TRY(crn_part_resolve(part));
    part_entry *left = NULL;
    size_t nleft = 0, oldest = 0;
    uint64_t nbytes, *listed;
    CRN_TRY(sort_versions(version, n, &listed));
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_alloc(&left, part->cat.n));
    for (size_t i = 0; i < part->cat.n; i++) {
        const part_entry *e = &part->cat.at[i];
        if (i + 1 < part->cat.n && !bsearch(&e->version, listed, n, sizeof *listed, by_version))
            continue;
        oldest = nleft == 0 ? i : oldest;
        left[nleft++] = *e;
    }
    if (part->cat.n - oldest == nleft) { /* only the oldest go, if any: that costs less */
        rc = nleft > 0 ? crn_part_trim(part, nleft) : CAIRN_OK;
        goto out;
    }
    CRN_TRY_OUT(rc, crn_part_commit(part, left, nleft, &nbytes));
    memcpy(part->cat.at, left, nleft * sizeof *left);
    part->cat.n = nleft;
    rc = crn_part_derive(part);
out:
    free(left);
    free(listed);
    return rc;
}

cairn_status crn_part_rewind(crn_part *part, uint64_t version)
{
    assert(part->write && !part->drafting);
    CRN_TRY(crn_part_resolve(part));
    size_t n = part->cat.n;
    while (n > 0 && (version == CRN_NO_VERSION || part->cat.at[n - 1].version > version))
        n--;
    if (n == part->cat.n)
        return CAIRN_OK;
    uint64_t nbytes;
    CRN_TRY(crn_part_commit(part, part->cat.at, n, &nbytes));
    part->cat.n = n;
    crn_part_set_tip(part, NULL);
    crn_mark_free(part->before);
    part->before = NULL;
    return crn_part_derive(part);
}
