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

/* The older superblock was replaced: what only its catalogue had is free. */
static void shift_pieces(crn_part *part, crn_extents *pieces)
{
    crn_extents gone = part->older;
    if (pieces) {
        part->older = part->pieces;
        part->pieces = *pieces;
        memset(pieces, 0, sizeof *pieces);
    } else {
        memset(&part->older, 0, sizeof part->older); /* both have the same one */
    }
    for (size_t i = 0; i < gone.n; i++)
        if (!crn_extents_have(&part->pieces, &gone.at[i]) &&
            !crn_extents_have(&part->older, &gone.at[i]))
            crn_space_leave(&part->space, gone.at[i].off, gone.at[i].nbytes);
    crn_vec_done(&gone);
}

cairn_status crn_part_write_super(crn_part *part, const part_super *s, crn_extents *pieces)
{
    unsigned char slot[SLOT_BYTES];
    crn_format_put_super(s, slot);
    part->doubt = true;
    CRN_TRY(crn_file_write(part->file, slot, sizeof slot, SLOT_BYTES * (s->seq % NSLOTS)));
    CRN_TRY(crn_file_sync(part->file));
    part->doubt = false;
    part->fallback = false;
    part->super = *s;
    shift_pieces(part, pieces);
    return CAIRN_OK;
}

/* Write the new pages of a catalogue, in one piece; *ret is where. */
static cairn_status write_list_pages(crn_part *part, const crn_buf *blob, part_list *list,
                                     part_ref *ret)
{
    if (blob->n == 0)
        return CAIRN_OK;
    CRN_TRY(crn_part_write_blob(part, blob, ret));
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].fresh) {
            list->at[i].ref.off += ret->off;
            list->at[i].fresh = false;
        }
    return CAIRN_OK;
}

/* Write a catalogue of the entries, pages before root, and sync all that a superblock will lead to.
 * What was written is added to *written, also on failure. */
static cairn_status write_catalogue(crn_part *part, const part_entry *entry, size_t n,
                                    part_list *list, part_ref *root, crn_extents *written)
{
    crn_buf pages = {0}, head = {0};
    part_ref all = {0};
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_vec_reserve(written, 2));
    CRN_TRY_OUT(rc, crn_catalogue_plan(&part->list, entry, n, list, &pages));
    CRN_TRY_OUT(rc, write_list_pages(part, &pages, list, &all));
    if (all.nbytes > 0)
        written->at[written->n++] = (crn_extent){all.off, crn_format_blob_room(all.nbytes)};
    crn_format_put_list(list, &head);
    CRN_TRY_OUT(rc, crn_part_write_blob(part, &head, root));
    written->at[written->n++] = (crn_extent){root->off, crn_format_blob_room(root->nbytes)};
    rc = crn_file_sync(part->file);
out:
    crn_buf_done(&pages);
    crn_buf_done(&head);
    return rc;
}

/* The entries lie in the pages of the list, in order. Of a page whose first and last entry know it
 * already the others do, too. */
static void note_pages(const part_list *list, part_entry *entry)
{
    for (size_t i = 0; i < list->n; entry += list->at[i++].n) {
        const uint32_t n = list->at[i].n;
        if (entry[0].page == i + 1 && entry[n - 1].page == i + 1)
            continue;
        for (uint32_t k = 0; k < n; k++)
            entry[k].page = i + 1;
    }
}

cairn_status crn_part_commit(crn_part *part, part_entry *entry, size_t n, uint64_t *ret_nbytes)
{
    part_super s = part->super;
    part_list list = {0};
    crn_extents written = {0}, pieces = {0};
    cairn_status rc = write_catalogue(part, entry, n, &list, &s.catalogue, &written);
    *ret_nbytes = SLOT_BYTES;
    for (size_t i = 0; i < written.n; i++)
        *ret_nbytes += written.at[i].nbytes;
    if (rc == CAIRN_OK)
        rc = crn_catalogue_extents(&s.catalogue, &list, &pieces);
    if (rc < 0) {
        for (size_t i = 0; i < written.n; i++)
            crn_space_leave(&part->space, written.at[i].off, written.at[i].nbytes);
    } else {
        s.format = CAIRN_FORMAT;
        s.seq++;
        s.end = part->space.end;
        s.dropped = 0;
        rc = crn_part_write_super(part, &s, &pieces);
    }
    if (rc == CAIRN_OK) {
        note_pages(&list, entry);
        crn_vec_done(&part->list);
        part->list = list;
    } else {
        crn_vec_done(&list);
    }
    crn_vec_done(&pieces);
    crn_vec_done(&written);
    return rc;
}

cairn_status crn_part_resolve(crn_part *part)
{
    if (!part->doubt)
        return CAIRN_OK;
    /* The slot in doubt, or that of the older superblock, is written again, with what is known to
     * be whole: should this fail, too, the other slot is what it was. */
    part_super s = part->super;
    s.seq += 3;
    CRN_TRY(crn_part_write_super(part, &s, NULL));
    return crn_part_derive(part);
}

/* --- drafts ------------------------------------------------------------------------------- */

cairn_status crn_var_root(const crn_var *v, crn_digest *ret)
{
    crn_digest *leaf;
    crn_tree tree;
    CRN_TRY(crn_alloc(&leaf, v->nblocks));
    for (uint64_t i = 0; i < v->nblocks; i++)
        leaf[i] = v->table[i].origin;
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

/* What a variable has of the newest mark, in which it is the same. */
static void take_table(const crn_draft *d, const draft_var *dv, crn_var *v)
{
    const crn_var *old = &d->part->tip->var[dv->of_tip];
    v->place = old->place;
    v->root = old->root;
}

/* Write the tables that are new and too long for the record, together; those of untouched
 * variables are shared. */
static cairn_status write_tables(crn_draft *d)
{
    crn_mark *m = d->mark;
    crn_buf blob = {0};
    part_ref all;
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < m->nvars; i++) {
        crn_var *v = &m->var[i];
        v->has_stored = true;
        v->entry_bytes = crn_format_entry_bytes(v);
        if (d->var.at[i].same_table)
            take_table(d, &d->var.at[i], v);
        else
            CRN_TRY_OUT(rc, crn_var_root(v, &v->root));
        if (crn_format_is_inline(v))
            v->place = (crn_ref){0};
        if (d->var.at[i].same_table || crn_format_is_inline(v))
            continue;
        v->place = (crn_ref){.off = blob.n, .nbytes = v->nblocks * v->entry_bytes};
        crn_format_put_table(v, &blob); /* at its place in the blob, until that has its own */
        CRN_TRY_OUT(rc, crn_buf_status(&blob));
        v->place.digest = crn_digest_of(blob.at + v->place.off, v->place.nbytes);
        crn_put_zeros(&blob, crn_format_blob_room(blob.n) - blob.n);
    }
    if (blob.n == 0)
        goto out;
    CRN_TRY_OUT(rc, write_piece(d, &blob, &all));
    for (size_t i = 0; i < m->nvars; i++)
        if (!d->var.at[i].same_table && m->var[i].place.nbytes > 0)
            m->var[i].place.off += all.off;
out:
    crn_buf_done(&blob);
    return rc;
}

static bool same_declaration(const crn_var *a, const crn_var *b)
{
    const crn_var_spec *x = &a->spec, *y = &b->spec;
    return x->item == y->item && x->block == y->block && x->nbytes == y->nbytes &&
           x->ndims == y->ndims && strcmp(x->name, y->name) == 0 && strcmp(x->type, y->type) == 0 &&
           strcmp(x->attributes, y->attributes) == 0 &&
           memcmp(a->dims, b->dims, 3 * x->ndims * sizeof *a->dims) == 0;
}

/* Is a page of the record what the newest mark has there, and can that be read? */
static bool is_same_page(const crn_draft *d, size_t page)
{
    const crn_mark *m = d->mark, *tip = d->part->tip;
    size_t n, n_tip;
    if (!tip || page >= tip->npages || crn_part_is_lost(d->part, tip->page[page].off))
        return false;
    const size_t first = crn_page_vars(m, page, &n);
    (void)crn_page_vars(tip, page, &n_tip);
    for (size_t i = first; i < first + n && n == n_tip; i++)
        if (!d->var.at[i].same_table || (!(d->var.at[i].taken && d->var.at[i].of_tip == i) &&
                                         !same_declaration(&m->var[i], &tip->var[i])))
            return false;
    return n == n_tip;
}

/* Put a page of the record behind others; its place is that in the blob. */
static cairn_status put_page(const crn_mark *m, size_t page, crn_buf *blob, crn_ref *ret)
{
    const size_t at = blob->n;
    crn_format_put_page(m, page, blob);
    CRN_TRY(crn_buf_status(blob));
    *ret = (crn_ref){at, blob->n - at, crn_digest_of(blob->at + at, blob->n - at)};
    crn_put_zeros(blob, crn_format_blob_room(blob->n) - blob->n);
    return CAIRN_OK;
}

/* Write the pages of the record that are new, together. */
static cairn_status write_pages(crn_draft *d)
{
    crn_mark *m = d->mark;
    crn_buf blob = {0};
    part_ref all;
    bool *fresh = NULL;
    cairn_status rc = CAIRN_OK;
    m->npages = m->nvars / PAGE_VARS + (m->nvars % PAGE_VARS != 0);
    CRN_TRY(crn_alloc(&m->page, m->npages));
    CRN_TRY(crn_alloc(&fresh, m->npages));
    for (size_t i = 0; i < m->npages; i++) {
        fresh[i] = !is_same_page(d, i);
        if (fresh[i])
            CRN_TRY_OUT(rc, put_page(m, i, &blob, &m->page[i]));
        else
            m->page[i] = d->part->tip->page[i];
    }
    if (blob.n > 0)
        CRN_TRY_OUT(rc, write_piece(d, &blob, &all));
    for (size_t i = 0; i < m->npages; i++)
        m->page[i].off += fresh[i] ? all.off : 0;
    d->page_bytes = blob.n;
out:
    free(fresh);
    crn_buf_done(&blob);
    return rc;
}

static cairn_status write_record(crn_draft *d, part_ref *ret)
{
    crn_buf blob = {0};
    CRN_TRY(write_pages(d));
    crn_format_put_root(d->mark, &blob);
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
        if (!crn_encodes(&d->var.at[i].encoding))
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
    memcpy(e.key, d->key, sizeof e.key);
    uint64_t nbytes;
    if (d->broken.code < 0)
        return crn_err_give(&d->broken);
    CRN_TRY(check_complete(d));
    CRN_TRY(crn_gather_finish(d->gather));
    crn_draft_settle_twins(d);
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
    crn_states_note(part);
    if (part->uses && crn_states_take(part, &part->cat.at[part->cat.n - 1], d->mark) < 0)
        known = false;
    crn_part_forget(part, ndrop);
    if (!part->uses) { /* the next mark but one may drop it */
        crn_mark_free(part->before);
        part->before = part->tip;
        part->tip = NULL;
    }
    crn_part_set_tip(part, d->mark);
    part->page_bytes = d->page_bytes;
    part->lost.n = 0; /* what the mark before had lost, this one has put */
    d->mark = NULL;
    d->gather->taken.n = 0;
    if (known)
        (void)crn_space_give(&part->space, &unused);
    else if (crn_part_derive(part) == CAIRN_OK)
        d->room.nbytes = 0; /* found free with all the rest: given back again, it would be twice */
    crn_vec_done(&unused);
}

cairn_status crn_draft_try(crn_draft *d, uint64_t keep, crn_draft_stats *ret_stats)
{
    size_t n = d->part->cat.n;
    size_t ndrop = keep <= n ? n + 1 - (size_t)CRN_MAX(keep, 1) : 0;
    CRN_TRY(commit(d, ndrop));
    if (ret_stats)
        count(d, ret_stats);
    conclude(d, ndrop);
    d->file_bytes = UINT64_MAX;
    crn_draft_drop(d);
    return CAIRN_OK;
}

cairn_status crn_draft_commit(crn_draft *d, uint64_t keep, crn_draft_stats *ret_stats)
{
    cairn_status rc = crn_draft_try(d, keep, ret_stats);
    if (rc < 0)
        crn_draft_drop(d);
    return rc;
}
