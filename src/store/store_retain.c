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

#include <assert.h>

static cairn_status use(crn_extents *used, uint64_t off, uint64_t nbytes)
{
    return nbytes == 0 ? CAIRN_OK
                       : crn_vec_push(used, (crn_extent){off, crn_format_blob_room(nbytes)});
}

static cairn_status use_block(crn_extents *used, const crn_block *b)
{
    if (b->codec & CRN_OUTSIDE)
        return CAIRN_OK;
    return crn_vec_push(used, (crn_extent){b->off, crn_format_block_room(b->nbytes)});
}

static cairn_status use_var(crn_part *part, const crn_mark *m, crn_var *v, crn_extents *used)
{
    CRN_TRY(crn_mark_table(part, m, v));
    CRN_TRY(use(used, v->table_off, v->table_bytes));
    for (uint64_t i = 0; i < v->nblocks; i++)
        CRN_TRY(use_block(used, &v->table[i]));
    return CAIRN_OK;
}

static cairn_status use_mark(crn_part *part, const part_entry *entry, crn_extents *used)
{
    crn_mark *m;
    CRN_TRY(use(used, entry->record.off, entry->record.nbytes));
    CRN_TRY(crn_part_load(part, entry->version, &m));
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < m->nvars && rc == CAIRN_OK; i++)
        rc = use_var(part, m, &m->var[i], used);
    crn_mark_free(m);
    return rc;
}

static cairn_status use_retained(crn_part *part, crn_extents *used)
{
    CRN_TRY(use(used, part->super.catalogue.off, part->super.catalogue.nbytes));
    CRN_TRY(use(used, part->older_catalogue.off, part->older_catalogue.nbytes));
    for (size_t i = 0; i < part->cat.n; i++)
        CRN_TRY(use_mark(part, &part->cat.at[i], used));
    return CAIRN_OK;
}

cairn_status crn_part_derive(crn_part *part)
{
    crn_extents used = {0};
    cairn_status rc = use_retained(part, &used);
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

/* Append what variable a uses and its successor b (or NULL) does not. */
static cairn_status unused_by_var(const crn_var *a, const crn_var *b, crn_extents *ret)
{
    if (!b || b->table_off != a->table_off || b->table_bytes == 0)
        CRN_TRY(use(ret, a->table_off, a->table_bytes));
    else
        return CAIRN_OK;
    for (uint64_t i = 0; i < a->nblocks; i++)
        if (!b || i >= b->nblocks || b->table[i].off != a->table[i].off ||
            b->table[i].codec & CRN_OUTSIDE)
            CRN_TRY(use_block(ret, &a->table[i]));
    return CAIRN_OK;
}

static cairn_status load_tables(crn_part *part, crn_mark *m)
{
    for (size_t i = 0; i < m->nvars; i++)
        CRN_TRY(crn_mark_table(part, m, &m->var[i]));
    return CAIRN_OK;
}

static cairn_status unused_by_mark(crn_part *part, crn_mark *a, crn_mark *b, crn_extents *ret)
{
    CRN_TRY(load_tables(part, a));
    CRN_TRY(load_tables(part, b));
    for (size_t i = 0; i < a->nvars; i++)
        CRN_TRY(unused_by_var(&a->var[i], crn_mark_find(b, a->var[i].spec.name), ret));
    return CAIRN_OK;
}

/* The i-th mark of the chain that newest (if any) will be the end of; freed by the caller if owned.
 */
static cairn_status chain_mark(crn_part *part, crn_mark *newest, size_t i, crn_mark **ret,
                               bool *ret_owned)
{
    *ret_owned = false;
    if (i == part->cat.n)
        *ret = newest;
    else if (i + 1 == part->cat.n && part->tip)
        *ret = part->tip;
    else
        *ret_owned = true;
    return *ret_owned ? crn_part_load(part, part->cat.at[i].version, ret) : CAIRN_OK;
}

cairn_status crn_part_unused(crn_part *part, crn_mark *newest, size_t n, crn_extents *ret)
{
    for (size_t i = 0; i < n; i++) {
        crn_mark *a, *b;
        bool own_a, own_b;
        CRN_TRY(chain_mark(part, newest, i, &a, &own_a));
        cairn_status rc = chain_mark(part, newest, i + 1, &b, &own_b);
        if (rc == CAIRN_OK) {
            rc = unused_by_mark(part, a, b, ret);
            if (own_b)
                crn_mark_free(b);
        }
        if (own_a)
            crn_mark_free(a);
        CRN_TRY(rc);
        CRN_TRY(use(ret, part->cat.at[i].record.off, part->cat.at[i].record.nbytes));
    }
    return CAIRN_OK;
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
    CRN_TRY_OUT(rc, crn_part_write_super(part, &s));
    crn_part_forget(part, n);
    rc = known ? crn_space_give(&part->space, &unused) : crn_part_derive(part);
out:
    crn_vec_done(&unused);
    return rc;
}

static bool is_listed(const uint64_t *version, size_t n, uint64_t wanted)
{
    while (n > 0 && version[n - 1] != wanted)
        n--;
    return n > 0;
}

cairn_status crn_part_retain(crn_part *part, const uint64_t *version, size_t n)
{
    assert(part->write && !part->drafting);
    CRN_TRY(crn_part_resolve(part));
    part_entry *left;
    size_t nleft = 0, oldest = 0;
    uint64_t nbytes;
    CRN_TRY(crn_alloc(&left, part->cat.n));
    for (size_t i = 0; i < part->cat.n; i++) {
        if (i + 1 < part->cat.n && !is_listed(version, n, part->cat.at[i].version))
            continue;
        oldest = nleft == 0 ? i : oldest;
        left[nleft++] = part->cat.at[i];
    }
    cairn_status rc = CAIRN_OK;
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
    crn_mark_free(part->tip);
    part->tip = NULL;
    return crn_part_derive(part);
}
