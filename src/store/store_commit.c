/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commit protocol of a part. Everything that a new catalogue refers to lies in space that no
 * retained mark uses, and is synced before the older of the two superblocks is replaced; that
 * replacement is the commit, and it is synced, too. A crash in the first half leaves both
 * superblocks as they were; in the second half the other superblock is whole, and whatever either
 * refers to is still there. Space that a commit sets free is reused only after that.
 */
#include "store/store_draft.h"

/* --- parts -------------------------------------------------------------------------------- */

cairn_status crn_part_write_super(crn_part *part, const part_super *s)
{
    unsigned char slot[SLOT_BYTES];
    crn_format_put_super(s, slot);
    part->doubt = true;
    CRN_TRY(crn_file_write(part->file, slot, sizeof slot, SLOT_BYTES * (s->seq % NSLOTS)));
    CRN_TRY(crn_file_sync(part->file));
    part->doubt = false;
    part->fallback = false;
    const part_ref gone = part->older_catalogue; /* of the superblock that was just replaced */
    part->older_catalogue = part->super.catalogue;
    part->super = *s;
    if (gone.off != part->super.catalogue.off && gone.off != part->older_catalogue.off)
        crn_space_leave(&part->space, gone.off, crn_format_blob_room(gone.nbytes));
    return CAIRN_OK;
}

cairn_status crn_part_commit(crn_part *part, const part_entry *entry, size_t n,
                             uint64_t *ret_nbytes)
{
    part_super s = part->super;
    crn_buf blob = {0};
    crn_format_put_catalogue(entry, n, &blob);
    cairn_status rc = crn_part_write_blob(part, &blob, &s.catalogue);
    *ret_nbytes = blob.n + SLOT_BYTES;
    crn_buf_done(&blob);
    CRN_TRY(rc);
    rc = crn_file_sync(part->file);
    if (rc < 0) {
        crn_space_leave(&part->space, s.catalogue.off, crn_format_blob_room(s.catalogue.nbytes));
        return rc;
    }
    s.seq++;
    s.end = part->space.end;
    s.dropped = 0;
    return crn_part_write_super(part, &s);
}

cairn_status crn_part_resolve(crn_part *part)
{
    if (!part->doubt)
        return CAIRN_OK;
    /* The slot in doubt, or that of the older superblock, is written again, with what is known to
     * be whole: should this fail, too, the other slot is what it was. */
    part_super s = part->super;
    s.seq += 3;
    CRN_TRY(crn_part_write_super(part, &s));
    return crn_part_derive(part);
}

/* --- drafts ------------------------------------------------------------------------------- */

static cairn_status tree_root(const crn_var *v, crn_digest *ret)
{
    crn_digest *leaf;
    crn_tree tree;
    CRN_TRY(crn_alloc(&leaf, v->nblocks));
    for (uint64_t i = 0; i < v->nblocks; i++)
        leaf[i] = v->table[i].digest;
    cairn_status rc = crn_tree_build(leaf, v->nblocks, &tree);
    free(leaf);
    CRN_TRY(rc);
    *ret = crn_tree_root(&tree);
    crn_tree_done(&tree);
    return CAIRN_OK;
}

/* Write a piece of the mark: to the room that was kept, or elsewhere where it does not fit. */
static cairn_status write_piece(crn_draft *d, const crn_buf *blob, part_ref *ret)
{
    CRN_TRY(crn_buf_status(blob));
    uint64_t nbytes = crn_format_blob_room(blob->n);
    CRN_TRY(crn_vec_reserve(&d->gather->taken, 1));
    if (nbytes <= d->room.nbytes) {
        CRN_TRY(crn_file_write(d->part->file, blob->at, blob->n, d->room.off));
        *ret = (part_ref){d->room.off, blob->n, crn_digest_of(blob->at, blob->n)};
        d->room.off += nbytes;
        d->room.nbytes -= nbytes;
    } else {
        CRN_TRY(crn_part_write_blob(d->part, blob, ret));
    }
    d->gather->taken.at[d->gather->taken.n++] = (crn_extent){ret->off, nbytes};
    d->meta_bytes += blob->n;
    return CAIRN_OK;
}

/* Write the tables that are new, together; those of untouched variables are shared. */
static cairn_status write_tables(crn_draft *d)
{
    crn_mark *m = d->mark;
    crn_buf blob = {0};
    part_ref all;
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < m->nvars; i++) {
        crn_var *v = &m->var[i];
        if (d->var.at[i].same_table) {
            const crn_var *old = crn_mark_find(d->part->tip, v->spec.name);
            v->table_off = old->table_off;
            v->table_bytes = old->table_bytes;
            v->table_digest = old->table_digest;
            v->root = old->root;
            continue;
        }
        v->table_off = blob.n; /* in the blob, until that has its place */
        v->table_bytes = v->nblocks * ENTRY_BYTES;
        crn_format_put_table(v->table, v->nblocks, &blob);
        CRN_TRY_OUT(rc, crn_buf_status(&blob));
        const unsigned char *table = v->nblocks > 0 ? blob.at + v->table_off : NULL;
        v->table_digest = crn_digest_of(table, v->table_bytes);
        CRN_TRY_OUT(rc, tree_root(v, &v->root));
        crn_put_zeros(&blob, crn_format_blob_room(blob.n) - blob.n);
    }
    if (blob.n == 0)
        goto out;
    CRN_TRY_OUT(rc, write_piece(d, &blob, &all));
    for (size_t i = 0; i < m->nvars; i++)
        if (!d->var.at[i].same_table)
            m->var[i].table_off += all.off;
out:
    crn_buf_done(&blob);
    return rc;
}

static cairn_status write_record(crn_draft *d, part_ref *ret)
{
    crn_buf blob = {0};
    crn_format_put_mark(d->mark, &blob);
    cairn_status rc = write_piece(d, &blob, ret);
    crn_buf_done(&blob);
    return rc;
}

static cairn_status check_complete(const crn_draft *d)
{
    for (size_t i = 0; i < d->var.n; i++)
        CRN_FAIL_IF(d->var.at[i].missing > 0, CAIRN_EINVAL,
                    "mark %" PRIu64 ", variable '%s': %" PRIu64 " of %" PRIu64
                    " blocks were not given",
                    d->mark->version, d->mark->var[i].spec.name, d->var.at[i].missing,
                    d->mark->var[i].nblocks);
    return CAIRN_OK;
}

/* What blocks are stored as is known: so much they took. */
static void count_stored(crn_draft *d)
{
    for (size_t i = 0; i < d->var.n; i++) {
        crn_var *v = &d->mark->var[i];
        if (!d->var.at[i].encoding.codec)
            continue;
        v->stored_bytes = 0;
        for (uint64_t b = 0; b < v->nblocks; b++)
            v->stored_bytes += d->var.at[i].state[b] == BLOCK_PUT ? v->table[b].nbytes : 0;
    }
}

/* Write all that the new mark needs, then the catalogue that lists it and not the n oldest. */
static cairn_status commit(crn_draft *d, size_t ndrop)
{
    crn_part *part = d->part;
    part_entry e = {.version = d->mark->version, .wall_ns = d->mark->wall_ns};
    uint64_t nbytes;
    if (d->broken.code < 0)
        return crn_err_give(&d->broken);
    CRN_TRY(check_complete(d));
    CRN_TRY(crn_gather_finish(d->gather));
    count_stored(d);
    CRN_TRY(write_tables(d));
    e.seq = d->mark->seq = part->super.seq + 1;
    CRN_TRY(write_record(d, &e.record));
    CRN_TRY(crn_vec_push(&part->cat, e));
    cairn_status rc = crn_part_commit(part, part->cat.at + ndrop, part->cat.n - ndrop, &nbytes);
    part->cat.n--;
    d->meta_bytes += nbytes;
    return rc;
}

static void count(const crn_draft *d, crn_draft_stats *ret)
{
    *ret = (crn_draft_stats){.data_bytes = d->gather->nbytes,
                             .meta_bytes = d->meta_bytes,
                             .healed = d->nlost,
                             .nwrites = d->gather->nwrites};
    for (size_t i = 0; i < d->mark->nvars; i++) {
        ret->blocks += d->mark->var[i].nblocks;
        ret->changed += d->mark->var[i].nchanged;
    }
}

/* Make the draft's mark the newest of the part and set free what the dropped marks alone used. The
 * mark is committed whatever happens here: without memory, free space is found another time. */
static void conclude(crn_draft *d, size_t ndrop)
{
    crn_part *part = d->part;
    crn_extents unused = {0};
    bool known = crn_part_unused(part, d->mark, ndrop, &unused) == CAIRN_OK;
    part->cat.n++; /* the new entry, which commit has put behind the others */
    crn_part_forget(part, ndrop);
    crn_mark_free(part->tip);
    part->tip = d->mark;
    part->lost.n = 0; /* what the mark before had lost, this one has put */
    d->mark = NULL;
    d->gather->taken.n = 0;
    if (known)
        (void)crn_space_give(&part->space, &unused);
    else if (crn_part_derive(part) == CAIRN_OK)
        d->room.nbytes = 0; /* found free with all the rest: given back again, it would be twice */
    crn_vec_done(&unused);
}

cairn_status crn_draft_commit(crn_draft *d, uint64_t keep, crn_draft_stats *ret_stats)
{
    size_t n = d->part->cat.n;
    size_t ndrop = keep <= n ? n + 1 - (size_t)CRN_MAX(keep, 1) : 0;
    cairn_status rc = commit(d, ndrop);
    if (rc == CAIRN_OK) {
        if (ret_stats)
            count(d, ret_stats);
        conclude(d, ndrop);
        d->file_bytes = UINT64_MAX;
    }
    crn_draft_drop(d);
    return rc;
}
