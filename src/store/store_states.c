/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States of a part: begun from any other one, found by key and version, dropped in any order.
 */
#include "store/store_draft.h"
#include "store/store_uses.h"

#include <assert.h>
#include <sys/statvfs.h>

bool crn_key_is_valid(const char *key)
{
    return strnlen(key, CRN_KEY_MAX + 1) <= CRN_KEY_MAX && crn_name_is_safe(key);
}

static bool is_called(const part_entry *e, crn_state_name name)
{
    return e->version == name.version && strcmp(e->key, name.key) == 0;
}

/* --- by name ------------------------------------------------------------------------------ */

/*
 * A part has thousands of states, and whoever puts one must not look at all of them. They are found
 * by the hash of their name, and the one of a key that was put last by that of the key. Positions
 * change with every drop, so the index has sequence numbers, by which the list is sorted. Should
 * those outgrow it, or memory be short, all are looked at.
 */
static uint64_t hash_of(const char *key, const uint64_t *version)
{
    const uint64_t h = crn_hash_text(key);
    return version ? crn_hash_bytes((uint64_t[]){h, *version}, 2 * sizeof h) : h;
}

static const part_entry *at_seq(const crn_part *part, uint64_t seq)
{
    size_t lo = 0, hi = part->cat.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (part->cat.at[mid].seq < seq)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < part->cat.n && part->cat.at[lo].seq == seq ? &part->cat.at[lo] : NULL;
}

/* The state that the index has for a key. */
static const part_entry *last_of(const crn_part *part, const char *key, uint64_t hash)
{
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&part->by_key, hash, &probe, &at);) {
        const part_entry *e = at_seq(part, at);
        if (e && strcmp(e->key, key) == 0)
            return e;
    }
    return NULL;
}

static cairn_status know(crn_part *part, const part_entry *e)
{
    const uint64_t hash = hash_of(e->key, NULL);
    const part_entry *before = last_of(part, e->key, hash);
    if (e->seq >= UINT32_MAX)
        return CAIRN_ENOMEM;
    if (before)
        crn_index_remove(&part->by_key, hash, before->seq);
    CRN_TRY(crn_index_add(&part->by_key, hash, e->seq));
    return crn_index_add(&part->by_name, hash_of(e->key, &e->version), e->seq);
}

static const part_entry *last_before(const crn_part *part, const char *key, size_t i)
{
    while (i > 0 && strcmp(part->cat.at[i - 1].key, key) != 0)
        i--;
    return i > 0 ? &part->cat.at[i - 1] : NULL;
}

/* A state is about to leave the list; those behind it that do so, too, are not known any more. */
static cairn_status unknow(crn_part *part, const part_entry *e)
{
    const uint64_t hash = hash_of(e->key, NULL);
    crn_index_remove(&part->by_name, hash_of(e->key, &e->version), e->seq);
    if (last_of(part, e->key, hash) != e)
        return CAIRN_OK;
    crn_index_remove(&part->by_key, hash, e->seq);
    const part_entry *before = last_before(part, e->key, (size_t)(e - part->cat.at));
    return before ? crn_index_add(&part->by_key, hash, before->seq) : CAIRN_OK;
}

/* Only those in left stay in the list. */
static void unknow_others(crn_part *part, const part_catalogue *left)
{
    cairn_status rc = CAIRN_OK;
    size_t stay = left->n;
    for (size_t i = part->cat.n; i > 0 && part->indexed && rc == CAIRN_OK; i--) {
        if (stay > 0 && left->at[stay - 1].seq == part->cat.at[i - 1].seq)
            stay--;
        else
            rc = unknow(part, &part->cat.at[i - 1]);
    }
    if (rc < 0)
        crn_states_forget(part);
}

void crn_states_note(crn_part *part)
{
    if (part->indexed && know(part, &part->cat.at[part->cat.n - 1]) < 0)
        crn_states_forget(part);
}

void crn_states_forget(crn_part *part)
{
    crn_index_done(&part->by_key);
    crn_index_done(&part->by_name);
    part->indexed = false;
}

static bool is_indexed(crn_part *part)
{
    part->indexed = part->indexed || part->cat.n == 0;
    if (part->indexed)
        return true;
    for (size_t i = 0; i < part->cat.n; i++) {
        const bool sorted = i == 0 || part->cat.at[i].seq > part->cat.at[i - 1].seq;
        if (!sorted || know(part, &part->cat.at[i]) < 0) {
            crn_states_forget(part);
            return false;
        }
    }
    return part->indexed = true;
}

static const part_entry *find_state(crn_part *part, crn_state_name name)
{
    uint32_t at;
    if (!is_indexed(part)) {
        size_t i = part->cat.n;
        while (i > 0 && !is_called(&part->cat.at[i - 1], name))
            i--;
        return i > 0 ? &part->cat.at[i - 1] : NULL;
    }
    const uint64_t hash = hash_of(name.key, &name.version);
    for (size_t probe = 0; crn_index_next(&part->by_name, hash, &probe, &at);) {
        const part_entry *e = at_seq(part, at);
        if (e && is_called(e, name))
            return e;
    }
    return NULL;
}

bool crn_part_find_state(crn_part *part, crn_state_name name, uint64_t *ret_wall_ns)
{
    const part_entry *e = find_state(part, name);
    if (e && ret_wall_ns)
        *ret_wall_ns = e->wall_ns;
    return e != NULL;
}

crn_state_name crn_part_state(const crn_part *part, size_t i, uint64_t *ret_wall_ns)
{
    const part_entry *e = &part->cat.at[i];
    *ret_wall_ns = e->wall_ns;
    return (crn_state_name){e->key, e->version};
}

cairn_status crn_part_load_state(crn_part *part, crn_state_name name, crn_mark **ret)
{
    const part_entry *e = find_state(part, name);
    CRN_FAIL_IF(!e, CAIRN_ENOTFOUND, "'%s' has no state '%s' %" PRIu64, part->name, name.key,
                name.version);
    return crn_part_load_record(part, e, false, ret);
}

/* --- beginning ---------------------------------------------------------------------------- */

/* The state of a key that was put last. */
static const part_entry *newest_of(crn_part *part, const char *key)
{
    if (is_indexed(part))
        return last_of(part, key, hash_of(key, NULL));
    return last_before(part, key, part->cat.n);
}

/* Whom a new state takes after: its own last version is most like it, then the parent. */
static const part_entry *choose_base(crn_part *part, const char *key, const char *parent)
{
    const part_entry *base = newest_of(part, key);
    if (!base && parent)
        base = newest_of(part, parent);
    if (!base && part->cat.n > 0)
        base = &part->cat.at[part->cat.n - 1];
    return base;
}

/* What cannot be read is not inherited. */
static cairn_status set_tip(crn_part *part, const part_entry *base)
{
    if (part->tip && base && part->tip->seq == base->seq && !part->rechecks)
        return CAIRN_OK;
    crn_part_set_tip(part, NULL);
    if (!base)
        return CAIRN_OK;
    crn_mark *tip;
    cairn_status rc = crn_part_load_record(part, base, false, &tip);
    if (rc == CAIRN_OK)
        crn_part_set_tip(part, tip);
    return crn_part_forgive(rc);
}

cairn_status crn_state_begin(crn_part *part, crn_state_name name, const char *parent,
                             crn_draft **ret)
{
    CRN_FAIL_IF(part->super.id.role != CRN_ROLE_STATES, CAIRN_EINVAL, "'%s' is not for states",
                part->name);
    CRN_FAIL_IF(!crn_key_is_valid(name.key), CAIRN_EINVAL,
                "'%s' is no key: use up to %d letters, digits, '.', '_' and '-'", name.key,
                CRN_KEY_MAX);
    CRN_FAIL_IF(find_state(part, name), CAIRN_EINVAL, "'%s' has a state '%s' %" PRIu64 " already",
                part->name, name.key, name.version);
    CRN_TRY(crn_part_resolve(part));
    CRN_TRY(set_tip(part, choose_base(part, name.key, parent)));
    return crn_draft_create(part, name.key, name.version, ret);
}

/* --- equal blocks -------------------------------------------------------------------------- */

void crn_part_set_recheck(crn_part *part, bool recheck)
{
    part->rechecks = recheck;
}

/* What cannot be read is as bad as what was damaged; without memory to read it, nobody knows. */
bool crn_draft_trusts(crn_draft *d, const crn_block *b)
{
    bool good = !d->part->rechecks;
    if (!good && crn_vec_reserve(&d->reread, b->nbytes) == CAIRN_OK &&
        crn_file_read(d->part->file, d->reread.at, b->nbytes, b->off) == CAIRN_OK) {
        const crn_digest now = crn_digest_of(d->reread.at, b->nbytes);
        good = crn_digest_equal(&now, b->codec ? &b->stored : &b->digest);
    }
    if (!good) {
        d->nlost++;
        crn_uses_distrust(d->part->uses, b->off);
    }
    return good;
}

/* Block i of v is not put, because another one is as good. */
static void note_shared(crn_draft *d, size_t v, uint64_t i)
{
    draft_var *dv = &d->var.at[v];
    dv->missing -= dv->state[i] == BLOCK_MISSING;
    dv->state[i] = BLOCK_SHARED;
    dv->same_table = false;
}

/* A block of the draft that is being written and has the digest, or NULL. */
static const draft_twin *find_fresh(const crn_draft *d, const crn_digest *digest, uint32_t nbytes)
{
    uint32_t at;
    const uint64_t hash = crn_hash_bytes(digest, sizeof *digest);
    for (size_t probe = 0; crn_index_next(&d->fresh, hash, &probe, &at);) {
        const draft_twin *t = &d->put.at[at];
        const crn_var *v = &d->mark->var[t->v];
        if (crn_var_block_bytes(v, t->i) == nbytes &&
            crn_digest_equal(&v->table[t->i].digest, digest))
            return t;
    }
    return NULL;
}

/* Without memory, a block that comes again is written again, and no harm is done. */
static void remember(crn_draft *d, size_t v, uint64_t i, const crn_digest *digest)
{
    if (crn_vec_push(&d->put, (draft_twin){.v = v, .i = i}) < 0)
        return;
    if (crn_index_add(&d->fresh, crn_hash_bytes(digest, sizeof *digest), d->put.n - 1) < 0)
        d->put.n--;
}

bool crn_draft_share(crn_draft *d, size_t v, uint64_t i, const crn_digest *digest)
{
    crn_var *var = &d->mark->var[v];
    const uint32_t nbytes = crn_var_block_bytes(var, i);
    if (!d->part->uses || nbytes < GRAIN)
        return false;
    for (const crn_block *known; (known = crn_uses_find(d->part->uses, digest, nbytes));)
        if (crn_draft_trusts(d, known)) {
            var->table[i] = *known;
            note_shared(d, v, i);
            return true;
        }
    const crn_encoding *e = &d->var.at[v].encoding;
    const draft_twin *t = crn_encodes(e) ? NULL : find_fresh(d, digest, nbytes);
    if (!t || crn_vec_push(&d->twin, (draft_twin){v, t->v, i, t->i}) < 0) {
        if (!crn_codec_is_lossy(&e->setting)) /* another variable may have to keep all of it */
            remember(d, v, i, digest);
        return false;
    }
    var->table[i] = d->mark->var[t->v].table[t->i]; /* its digests; the place is not known yet */
    note_shared(d, v, i);
    return true;
}

void crn_draft_settle_twins(crn_draft *d)
{
    for (size_t k = 0; k < d->twin.n; k++) {
        const draft_twin *t = &d->twin.at[k];
        d->mark->var[t->v].table[t->i] = d->mark->var[t->of_v].table[t->of_i];
    }
}

/* --- counting and dropping ----------------------------------------------------------------- */

cairn_status crn_states_take(crn_part *part, const part_entry *entry, crn_mark *m)
{
    crn_extents piece = {0};
    cairn_status rc = crn_mark_extents(part, entry, m, &piece);
    if (rc == CAIRN_OK)
        rc = crn_uses_add(part->uses, piece.at, piece.n, m);
    crn_vec_done(&piece);
    return rc;
}

/* What a state refers to, appended; CAIRN_ECORRUPT when it cannot be read any more. */
static cairn_status find_pieces(crn_part *part, const part_entry *e, crn_extents *ret)
{
    crn_mark *m;
    CRN_TRY(crn_part_load_record(part, e, false, &m));
    cairn_status rc = crn_mark_extents(part, e, m, ret);
    crn_mark_free(m);
    return rc;
}

static bool is_named(const part_entry *e, const crn_state_name *name, size_t n)
{
    while (n > 0 && !is_called(e, name[n - 1]))
        n--;
    return n > 0;
}

/* The entries that stay, to *left; what the others refer to, to *piece, with *known false when that
 * cannot be told. */
static cairn_status part_entries(crn_part *part, const crn_state_name *name, size_t n,
                                 part_catalogue *left, crn_extents *piece, bool *known)
{
    CRN_TRY(crn_vec_reserve(left, part->cat.n));
    *known = !part->uses_partial;
    for (size_t i = 0; i < part->cat.n; i++) {
        const part_entry *e = &part->cat.at[i];
        if (!is_named(e, name, n))
            left->at[left->n++] = *e;
        else if (*known)
            *known = find_pieces(part, e, piece) == CAIRN_OK;
    }
    return CAIRN_OK;
}

/* The states are gone: their space is free. What fails here costs space until the part is opened
 * again, and nothing else. */
static void reclaim(crn_part *part, const crn_extents *piece, bool known)
{
    crn_extents unused = {0};
    if (known && crn_uses_remove(part->uses, piece->at, piece->n, &unused) == CAIRN_OK)
        (void)crn_space_give(&part->space, &unused);
    else
        (void)crn_part_derive(part);
    crn_vec_done(&unused);
}

/* All that no retained state needs: between what is needed, and behind it. */
static uint64_t count_free(const crn_part *part, uint64_t nbytes)
{
    return CRN_MAX(nbytes, part->space.end) - DATA_START - part->space.used;
}

bool crn_part_shrink(crn_part *part)
{
    const crn_space *s = &part->space;
    const uint64_t given = part->given;
    uint64_t nbytes;
    if (part->doubt || crn_file_nbytes(part->file, &nbytes) < 0)
        return false;
    for (size_t i = 0; i < s->hole.n; i++)
        if (crn_file_punch(part->file, s->hole.at[i].off, s->hole.at[i].nbytes) < 0)
            return false;
    if (nbytes > s->end && crn_file_punch(part->file, s->end, nbytes - s->end) < 0)
        return false;
    part->given = count_free(part, nbytes);
    return part->given > given;
}

/* Has the file system less room than that? */
static bool is_short(const crn_part *part, uint64_t nbytes)
{
    struct statvfs fs;
    return fstatvfs(crn_file_fd(part->file), &fs) == 0 &&
           (uint64_t)fs.f_bavail * fs.f_frsize < nbytes;
}

/*
 * Free space is for what the writer puts next, and to give it back and take it again costs as much
 * as to write it. So it is kept until it is twice what is needed, and some, or the disk is so full
 * that others may wait for it.
 */
static void shrink_rarely(crn_part *part)
{
    enum { SOME = 1 << 20 };
    uint64_t nbytes;
    if (crn_file_nbytes(part->file, &nbytes) < 0)
        return;
    const uint64_t free_bytes = count_free(part, nbytes);
    part->given = CRN_MIN(part->given, free_bytes);
    const uint64_t more = free_bytes - part->given;
    if (more > 2 * part->space.used + SOME || is_short(part, more))
        (void)crn_part_shrink(part);
}

/*
 * A disk so full that there is no room to say what goes: what goes gives its space back first. It
 * counts for nobody any more; its record comes first, so that whoever looks, should this be cut
 * short, finds no state there.
 */
static cairn_status drop_when_full(crn_part *part, part_catalogue *left, const crn_extents *piece)
{
    crn_extents unused = {0};
    uint64_t nbytes;
    cairn_status rc = crn_uses_remove(part->uses, piece->at, piece->n, &unused);
    for (size_t i = 0; i < unused.n && rc == CAIRN_OK; i++)
        rc = crn_file_punch(part->file, unused.at[i].off, unused.at[i].nbytes);
    crn_vec_done(&unused);
    if (rc == CAIRN_OK)
        rc = crn_part_resolve(part);
    if (rc == CAIRN_OK)
        rc = crn_part_commit(part, left->at, left->n, &nbytes);
    return rc;
}

cairn_status crn_part_drop(crn_part *part, const crn_state_name *name, size_t n)
{
    assert(part->write && !part->drafting && part->super.id.role == CRN_ROLE_STATES);
    part_catalogue left = {0};
    crn_extents piece = {0};
    bool known;
    uint64_t nbytes;
    cairn_status rc;
    size_t there = 0;
    for (size_t i = 0; i < n; i++)
        there += find_state(part, name[i]) != NULL;
    if (there == 0)
        return CAIRN_OK;
    CRN_TRY(crn_part_resolve(part));
    CRN_TRY_OUT(rc, part_entries(part, name, n, &left, &piece, &known));
    rc = crn_part_commit(part, left.at, left.n, &nbytes);
    if (rc == CAIRN_ENOSPC && known) {
        const crn_err why = *crn_err_peek();
        known = false; /* what was counted is not any more */
        rc = drop_when_full(part, &left, &piece);
        if (rc < 0) {
            (void)crn_part_derive(part);
            rc = crn_err_give(&why);
        }
    }
    if (rc < 0)
        goto out;
    unknow_others(part, &left);
    if (left.n > 0)
        memcpy(part->cat.at, left.at, left.n * sizeof *left.at);
    part->cat.n = left.n;
    crn_part_set_tip(part, NULL); /* it may be one of them */
    reclaim(part, &piece, known);
    shrink_rarely(part);
out:
    crn_vec_done(&left);
    crn_vec_done(&piece);
    return rc;
}
