/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preparing a mark. The draft is a mark in memory whose tables start as copies of the newest
 * mark's; put replaces entries. store_commit.c makes a mark of it.
 */
#include "store/store_draft.h"

#include <assert.h>

/* Pass rc on; a failure stays with the draft. */
static cairn_status stay(crn_draft *d, cairn_status rc)
{
    if (rc < 0 && d->broken.code == CAIRN_OK)
        d->broken = *crn_err_peek();
    return rc;
}

/* Give the file's end back: on a disk that was too full for the mark, whatever else must be written
 * needs it. Both superblocks were whole in a file of that length. */
static void shrink_file(const crn_draft *d)
{
    const crn_err why = *crn_err_peek();
    uint64_t now;
    if (!d->part->doubt && crn_file_nbytes(d->part->file, &now) == CAIRN_OK && now > d->file_bytes)
        (void)crn_file_truncate(d->part->file, d->file_bytes);
    (void)crn_err_give(&why); /* what became of the mark is what matters */
}

void crn_draft_drop(crn_draft *d)
{
    if (!d)
        return;
    crn_part *part = d->part;
    crn_extents taken = d->gather->taken;
    memset(&d->gather->taken, 0, sizeof d->gather->taken);
    crn_gather_reset(d->gather); /* nothing may still be on its way to space that is given back */
    shrink_file(d);
    /* In doubt, a superblock may refer to this space: resolving derives it anew. Without memory the
     * space stays unused until the part is opened again. */
    if (!part->doubt) {
        crn_space_leave(&part->space, d->room.off, d->room.nbytes);
        (void)crn_space_give(&part->space, &taken);
    }
    crn_vec_done(&taken);
    for (size_t i = 0; i < d->var.n; i++)
        free(d->var.at[i].state);
    crn_vec_done(&d->var);
    crn_index_done(&d->fresh);
    crn_vec_done(&d->reread);
    crn_vec_done(&d->put);
    crn_vec_done(&d->twin);
    crn_mark_free(d->mark);
    part->drafting = false;
    free(d);
}

/* The newest mark, from which a draft inherits. */
static cairn_status load_tip(crn_part *part)
{
    crn_mark *tip;
    if (part->tip || part->cat.n == 0)
        return CAIRN_OK;
    cairn_status rc = crn_part_load(part, part->cat.at[part->cat.n - 1].version, &tip);
    if (rc == CAIRN_OK)
        crn_part_set_tip(part, tip);
    return crn_part_forgive(rc);
}

/*
 * Room for tables and record, as large as what the newest mark has of tables and wrote of pages,
 * before blocks take their share of the free space. A table must lie in one piece: if blocks came
 * first, scattered changes would fill the place that an older table left, and the file would grow
 * by a table with every mark.
 */
static crn_extent keep_room(crn_part *part)
{
    if (!part->tip)
        return (crn_extent){0};
    const uint64_t nbytes = crn_format_blob_room(part->cat.at[part->cat.n - 1].record.nbytes) +
                            part->page_bytes + part->table_bytes;
    return crn_space_take(&part->space, nbytes, nbytes, GRAIN);
}

cairn_status crn_draft_begin(crn_part *part, uint64_t version, crn_draft **ret)
{
    CRN_FAIL_IF(part->cat.n > 0 && version <= part->cat.at[part->cat.n - 1].version, CAIRN_EINVAL,
                "mark %" PRIu64 " would follow mark %" PRIu64 ": versions must grow", version,
                part->cat.at[part->cat.n - 1].version);
    CRN_TRY(crn_part_resolve(part));
    CRN_TRY(load_tip(part));
    return crn_draft_create(part, "", version, ret);
}

cairn_status crn_draft_create(crn_part *part, const char *key, uint64_t version, crn_draft **ret)
{
    assert(part->write);
    CRN_FAIL_IF(part->drafting, CAIRN_EBUSY, "'%s': another mark is being written", part->name);
    CRN_FAIL_IF(version > CRN_VERSION_MAX, CAIRN_EINVAL,
                "%" PRIu64 " is not a version: they end at %" PRIu64, version, CRN_VERSION_MAX);
    if (!part->gather)
        CRN_TRY(crn_gather_create(part, &part->gather));
    crn_draft *d;
    CRN_TRY(crn_alloc(&d, 1));
    d->part = part;
    snprintf(d->key, sizeof d->key, "%s", key);
    d->gather = part->gather;
    d->gather->staging = part->staging;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_file_nbytes(part->file, &d->file_bytes));
    CRN_TRY_OUT(rc, crn_alloc(&d->mark, 1));
    d->mark->version = version;
    d->mark->wall_ns = crn_wall_ns();
    d->room = keep_room(part);
    part->drafting = true;
    *ret = d;
    return CAIRN_OK;
out:
    free(d);
    return rc;
}

void crn_draft_set_time(crn_draft *d, uint64_t wall_ns)
{
    d->mark->wall_ns = wall_ns;
}

uint64_t crn_draft_base(const crn_draft *d, uint64_t *ret_wall_ns)
{
    const crn_mark *tip = d->part->tip;
    if (tip)
        *ret_wall_ns = tip->wall_ns;
    return tip ? tip->version : CRN_NO_VERSION;
}

/* --- variables ---------------------------------------------------------------------------- */

/* Was a block of the newest mark cut off the file before we opened it? The file grows over its
 * place again, so only the length at that time tells. */
static bool is_cut_off(const crn_part *part, const crn_block *b)
{
    return part->tip->seq <= part->found_seq && b->off + b->nbytes > part->found_bytes;
}

/* Take over what the newest mark has of v, which is old there, or NULL. */
static cairn_status inherit(crn_draft *d, crn_var *v, crn_var *old, draft_var *dv)
{
    crn_part *part = d->part;
    dv->missing = v->nblocks;
    if (!old || old->spec.block != v->spec.block)
        return CAIRN_OK;
    dv->of_tip = (size_t)(old - part->tip->var);
    CRN_TRY(crn_part_forgive(crn_mark_table(part, part->tip, old)));
    const bool lost = crn_part_is_lost(part, old->place.off);
    const bool alike = crn_elem_of(&old->spec) == crn_elem_of(&v->spec);
    d->nlost += lost;
    for (uint64_t i = 0; old->table && i < CRN_MIN(v->nblocks, old->nblocks); i++) {
        const crn_block *b = &old->table[i];
        if (crn_var_block_bytes(v, i) != crn_var_block_bytes(old, i) || b->codec & CRN_OUTSIDE ||
            is_cut_off(part, b))
            continue; /* what lies outside goes with its mark */
        if (b->codec != 0 && (!alike || !old->has_stored))
            continue; /* who decodes it must know the kind of values, and what was stored */
        if (crn_part_is_lost(part, b->off)) {
            d->nlost++;
            continue;
        }
        v->table[i] = *b;
        dv->state[i] = BLOCK_INHERITED;
        dv->missing--;
    }
    dv->same_table = v->spec.nbytes == old->spec.nbytes && dv->missing == 0 && !lost;
    return CAIRN_OK;
}

/* Give a variable that was added its tables. */
static cairn_status furnish(crn_draft *d, crn_var *v, crn_var *old, draft_var *dv)
{
    CRN_TRY(crn_mark_index(d->mark));
    CRN_TRY(crn_alloc(&v->table, v->nblocks));
    CRN_TRY(crn_alloc(&dv->state, v->nblocks));
    return inherit(d, v, old, dv);
}

/* Room for one more variable. A variable's dimensions lie in it, and move along. */
static cairn_status make_room(crn_draft *d)
{
    crn_mark *m = d->mark;
    const size_t cap = d->cap;
    CRN_TRY(crn_vec_reserve(&d->var, 1));
    CRN_TRY(crn_vec_grow((void **)&m->var, &d->cap, m->nvars, 1, sizeof *m->var));
    for (size_t i = 0; d->cap != cap && i < m->nvars; i++) {
        crn_var *v = &m->var[i];
        v->spec.global = v->dims;
        v->spec.offset = v->dims + v->spec.ndims;
        v->spec.count = v->dims + 2 * (size_t)v->spec.ndims;
    }
    return CAIRN_OK;
}

/* Add a variable, which is old in the newest mark, or NULL. */
static cairn_status add(crn_draft *d, const crn_var_spec *spec, crn_var *old, size_t *ret)
{
    crn_mark *m = d->mark;
    CRN_FAIL_IF(m->nvars == VARS_MAX, CAIRN_EINVAL, "more than %d variables", VARS_MAX);
    CRN_TRY(make_room(d));
    crn_var *v = &m->var[m->nvars];
    draft_var *dv = &d->var.at[d->var.n];
    memset(v, 0, sizeof *v);
    memset(dv, 0, sizeof *dv);
    CRN_TRY(crn_var_declare(v, spec));
    m->nvars = ++d->var.n; /* from here on, drop frees it */
    CRN_TRY(stay(d, furnish(d, v, old, dv)));
    *ret = m->nvars - 1;
    return CAIRN_OK;
}

cairn_status crn_draft_add(crn_draft *d, const crn_var_spec *spec, size_t *ret)
{
    const crn_mark *tip = d->part->tip;
    CRN_TRY(crn_var_spec_check(spec));
    CRN_FAIL_IF(crn_mark_find(d->mark, spec->name), CAIRN_EINVAL, "variable '%s' is declared twice",
                spec->name);
    return add(d, spec, tip ? crn_mark_find(tip, spec->name) : NULL, ret);
}

bool crn_draft_is_whole(const crn_draft *d)
{
    return d->part->tip && d->part->lost.n == 0;
}

cairn_status crn_draft_take(crn_draft *d, size_t number, size_t *ret)
{
    crn_mark *tip = d->part->tip;
    size_t v;
    assert(tip && number < tip->nvars);
    CRN_TRY(add(d, &tip->var[number].spec, &tip->var[number], &v));
    d->var.at[v].taken = true;
    CRN_FAIL_IF(d->var.at[v].missing > 0, CAIRN_ECORRUPT,
                "'%s', mark %" PRIu64 ", variable '%s': it cannot be taken over", d->part->name,
                tip->version, tip->var[number].spec.name);
    *ret = v;
    return CAIRN_OK;
}

bool crn_var_loss(const crn_var_spec *spec, crn_loss *ret)
{
    char text[CRN_CODEC_TEXT];
    const char *line = crn_var_attribute(spec, CRN_LOSS_KEY);
    const size_t n = line ? strcspn(line, "\n") : 0;
    if (n == 0 || n >= sizeof text)
        return false;
    memcpy(text, line, n);
    text[n] = 0;
    return crn_loss_parse(text, ret) == CAIRN_OK;
}

static bool has_lost(const crn_block *b)
{
    return !crn_digest_equal(&b->digest, &b->origin);
}

/* Was it stored by the codec that the program has chosen for v now, if it has? What readers get
 * follows from that. */
static bool by_same_choice(const crn_var_spec *old, const crn_var_spec *v)
{
    const char *was = crn_var_attribute(old, CRN_CODEC_KEY);
    const char *now = crn_var_attribute(v, CRN_CODEC_KEY);
    const size_t n = now ? strcspn(now, "\n") : 0;
    return !now || (was && strcspn(was, "\n") == n && memcmp(was, now, n) == 0);
}

/* May blocks of the newest mark's variable that have lost something stand for those of v? */
static bool is_enough(const crn_draft *d, size_t v, const crn_codec_setting *s)
{
    const crn_mark *tip = d->part->tip;
    const crn_var *old = tip ? crn_mark_find(tip, d->mark->var[v].spec.name) : NULL;
    crn_loss was;
    if (!crn_codec_is_lossy(s) || (old && !by_same_choice(&old->spec, &d->mark->var[v].spec)))
        return false;
    return !s->bounded ||
           (old && crn_var_loss(&old->spec, &was) && (was.absolute > 0 || was.relative > 0) &&
            crn_loss_implies(&was, &s->loss));
}

static void set_encoding(crn_draft *d, size_t v, const crn_codec_setting *setting)
{
    const crn_var_spec *spec = &d->mark->var[v].spec;
    crn_encoding e = {.setting = *setting, .elem = crn_elem_of(spec)};
    if (spec->ndims > 1 && !setting->flat)
        e.shape = crn_codec_shape_of(spec->ndims, spec->count);
    d->var.at[v].encoding = e;
}

void crn_draft_count(crn_draft *d, size_t v, crn_codec_counts *counts)
{
    d->var.at[v].encoding.counts = counts;
}

void crn_draft_encode_beside(crn_draft *d, size_t v, const crn_beside *beside, size_t n)
{
    draft_var *dv = &d->var.at[v];
    dv->nbeside = CRN_MIN(n, (size_t)CRN_CHOICES);
    memcpy(dv->beside, beside, dv->nbeside * sizeof *beside);
}

void crn_draft_encode_copy(crn_draft *d, size_t v, const crn_codec_setting *setting)
{
    const crn_codec_setting exact = crn_codec_without_loss(setting);
    set_encoding(d, v, &exact);
}

void crn_draft_encode(crn_draft *d, size_t v, const crn_codec_setting *setting)
{
    const crn_var *var = &d->mark->var[v];
    draft_var *dv = &d->var.at[v];
    set_encoding(d, v, setting);
    const bool enough = is_enough(d, v, setting);
    for (uint64_t i = 0; !enough && i < var->nblocks; i++)
        if (dv->state[i] == BLOCK_INHERITED && has_lost(&var->table[i])) {
            dv->state[i] = BLOCK_MISSING;
            dv->missing++;
            dv->same_table = false;
        }
}

/* How block i of v is stored. */
static crn_encoding encoding_of(const crn_draft *d, size_t v, uint64_t i)
{
    enum { BESIDE_SHARE = 16 };
    const draft_var *dv = &d->var.at[v];
    crn_encoding e = dv->encoding;
    if (i % BESIDE_SHARE < dv->nbeside) {
        e.setting = dv->beside[i % BESIDE_SHARE].setting;
        e.counts = dv->beside[i % BESIDE_SHARE].counts;
    }
    e.shape.first = i * d->mark->var[v].spec.block / crn_elem_nbytes(e.elem);
    return e;
}

const crn_digest *crn_draft_inherited(const crn_draft *d, size_t v, uint64_t i)
{
    return d->var.at[v].state[i] == BLOCK_INHERITED ? &d->mark->var[v].table[i].origin : NULL;
}

/* An inherited block stands for something else from now on. */
static void keep_for(crn_draft *d, size_t v, uint64_t i, const crn_digest *origin)
{
    crn_block *b = &d->mark->var[v].table[i];
    if (crn_digest_equal(&b->origin, origin))
        return;
    b->origin = *origin;
    d->var.at[v].state[i] = BLOCK_KEPT;
    d->var.at[v].same_table = false;
}

bool crn_draft_keeps(crn_draft *d, size_t v, uint64_t i, const void *data, const crn_digest *now)
{
    const crn_block *b = &d->mark->var[v].table[i];
    if (d->var.at[v].state[i] != BLOCK_INHERITED)
        return false;
    const bool same = crn_digest_equal(&b->origin, now);
    if ((!same && !crn_digest_equal(&b->digest, now)) || !crn_draft_trusts(d, b))
        return false;
    if (same)
        return true;
    keep_for(d, v, i, now);
    if (d->watch)
        d->watch(d->watch_arg, v, i, data, crn_var_block_bytes(&d->mark->var[v], i));
    return true;
}

bool crn_draft_adopts(crn_draft *d, size_t v, uint64_t i, const crn_block *other)
{
    if (d->var.at[v].state[i] != BLOCK_INHERITED ||
        !crn_digest_equal(&d->mark->var[v].table[i].digest, &other->digest))
        return false;
    keep_for(d, v, i, &other->origin);
    return true;
}

/* --- blocks ------------------------------------------------------------------------------- */

/* Block i, which has its digest, will be written. */
static void note_put(crn_draft *d, size_t v, uint64_t i)
{
    crn_var *var = &d->mark->var[v];
    draft_var *dv = &d->var.at[v];
    var->table[i].stored = var->table[i].origin = var->table[i].digest; /* until it is encoded */
    dv->missing -= dv->state[i] == BLOCK_MISSING;
    dv->state[i] = BLOCK_PUT;
    dv->same_table = false;
    var->nchanged++;
    var->stored_bytes += var->table[i].nbytes; /* until a codec makes it less */
}

static crn_block *block_to_put(const crn_draft *d, size_t v, uint64_t i)
{
    const crn_var *var = &d->mark->var[v];
    crn_block *block = &var->table[i];
    assert(i < var->nblocks && d->var.at[v].state[i] != BLOCK_PUT);
    block->nbytes = crn_var_block_bytes(var, i);
    block->codec = 0;
    return block;
}

cairn_status crn_draft_put(crn_draft *d, size_t v, uint64_t i, const void *data,
                           const crn_digest *digest)
{
    crn_block *block = block_to_put(d, v, i);
    const crn_encoding encoding = encoding_of(d, v, i);
    unsigned char *to;
    CRN_TRY(stay(d, crn_gather_add(d->gather, block, &encoding, &to)));
    if (digest) {
        memcpy(to, data, block->nbytes);
        block->digest = *digest;
    } else {
        block->digest = crn_digest_copy(to, data, block->nbytes);
    }
    note_put(d, v, i);
    return CAIRN_OK;
}

cairn_status crn_draft_put_stored(crn_draft *d, size_t v, uint64_t i, const crn_block *as,
                                  unsigned char **ret)
{
    crn_block *block = block_to_put(d, v, i);
    block->nbytes = as->nbytes;
    block->codec = as->codec;
    CRN_TRY(stay(d, crn_gather_add(d->gather, block, &(crn_encoding){0}, ret)));
    block->digest = as->digest;
    note_put(d, v, i);
    block->origin = as->origin;
    if (as->codec != 0)
        block->stored = as->stored;
    return CAIRN_OK;
}

cairn_status crn_draft_put_copy(crn_draft *d, size_t v, uint64_t i, const void *data,
                                const crn_block *other)
{
    CRN_TRY(crn_draft_put(d, v, i, data, &other->digest));
    d->mark->var[v].table[i].origin = other->origin;
    return CAIRN_OK;
}

/* Where a block of a variable lies, and what is known of it. */
typedef struct candidate {
    size_t v;
    uint64_t i;
    const unsigned char *data;
    uint32_t nbytes;
    const crn_digest *old; /* that it inherited, or NULL */
} candidate;

/* Digest first: what did not change is read once and not copied. */
static cairn_status put_compared(crn_draft *d, const candidate *c, crn_put *how)
{
    const crn_digest now = crn_digest_of(c->data, c->nbytes);
    if (crn_draft_keeps(d, c->v, c->i, c->data, &now))
        return CAIRN_OK;
    how->changed += c->nbytes;
    if (crn_draft_share(d, c->v, c->i, &now))
        return CAIRN_OK;
    return crn_draft_put(d, c->v, c->i, c->data, &now);
}

/* From memory that does not change before the gathering has ended. */
static cairn_status put_lent(crn_draft *d, const candidate *c, crn_put *how)
{
    const crn_digest now = crn_digest_of(c->data, c->nbytes);
    const bool same = crn_draft_keeps(d, c->v, c->i, c->data, &now);
    how->changed += same ? 0 : c->nbytes;
    if (how->way != CRN_PUT_FULL && (same || crn_draft_share(d, c->v, c->i, &now)))
        return CAIRN_OK;
    crn_block *block = block_to_put(d, c->v, c->i);
    block->digest = now;
    CRN_TRY(stay(d, crn_gather_lend(d->gather, block, c->data)));
    note_put(d, c->v, c->i);
    return CAIRN_OK;
}

/* Digest and copy in one pass; what turns out to be the same is taken back. */
static cairn_status put_copied(crn_draft *d, const candidate *c, crn_put *how)
{
    crn_block *block = &d->mark->var[c->v].table[c->i];
    const crn_block before = *block;
    const crn_encoding encoding = encoding_of(d, c->v, c->i);
    unsigned char *to;
    (void)block_to_put(d, c->v, c->i);
    CRN_TRY(stay(d, crn_gather_add(d->gather, block, &encoding, &to)));
    const crn_digest now = crn_digest_copy(to, c->data, c->nbytes);
    const crn_block fresh = *block;
    *block = before;
    const bool same = crn_draft_keeps(d, c->v, c->i, c->data, &now);
    how->changed += same ? 0 : c->nbytes;
    if (how->way != CRN_PUT_FULL && (same || crn_draft_share(d, c->v, c->i, &now))) {
        crn_gather_take_back(d->gather, &fresh);
        return CAIRN_OK;
    }
    *block = fresh;
    block->digest = now;
    note_put(d, c->v, c->i);
    return CAIRN_OK;
}

static cairn_status put_one(crn_draft *d, const candidate *c, bool lend, crn_put *how)
{
    how->hashed += c->nbytes;
    how->fresh += c->old ? 0 : c->nbytes;
    if (c->old && how->way == CRN_PUT_COMPARE)
        return put_compared(d, c, how);
    if (lend && crn_gather_can_lend(d->gather, c->nbytes))
        return put_lent(d, c, how);
    return put_copied(d, c, how);
}

/* Where much is new it is worth to write it from where it lies, and to wait for that here. */
static bool is_worth_lending(const crn_draft *d, size_t v, crn_put_way way)
{
    const crn_var *var = &d->mark->var[v];
    const uint64_t nblocks = way == CRN_PUT_COMPARE ? d->var.at[v].missing : var->nblocks;
    return d->gather->staging == 0 && !crn_encodes(&d->var.at[v].encoding) &&
           d->var.at[v].nbeside == 0 && nblocks * var->spec.block >= GATHER_LENT;
}

cairn_status crn_draft_put_changed(crn_draft *d, size_t v, const void *data, crn_put *how)
{
    const crn_var *var = &d->mark->var[v];
    const uint64_t stored = var->stored_bytes;
    const bool lend = is_worth_lending(d, v, how->way);
    const bool skips = how->is_clean && how->way != CRN_PUT_FULL;
    cairn_status rc = CAIRN_OK;
    how->hashed = how->changed = how->fresh = 0;
    for (uint64_t i = 0; i < var->nblocks && rc == CAIRN_OK; i++) {
        const candidate c = {v, i, (const unsigned char *)data + i * var->spec.block,
                             crn_var_block_bytes(var, i), crn_draft_inherited(d, v, i)};
        if (!c.old || !skips || !how->is_clean(how->arg, i))
            rc = put_one(d, &c, lend, how);
    }
    if (lend) { /* also after a failure: the memory is the program's again */
        cairn_status end = stay(d, crn_gather_finish(d->gather));
        rc = rc < 0 ? crn_err_give(&d->broken) : end;
    }
    how->stored = var->stored_bytes - stored;
    return rc;
}

cairn_status crn_draft_put_all(crn_draft *d, size_t v, const void *data)
{
    return crn_draft_put_changed(d, v, data, &(crn_put){.way = CRN_PUT_COMPARE});
}

void crn_draft_put_outside(crn_draft *d, size_t v, uint32_t codec, uint64_t off,
                           const crn_block *table)
{
    for (uint64_t i = 0; i < d->mark->var[v].nblocks; i++) {
        crn_block *block = block_to_put(d, v, i);
        block->codec = codec;
        block->off = off;
        block->digest = table[i].digest;
        note_put(d, v, i);
        block->origin = table[i].origin;
    }
}

/* --- watching ----------------------------------------------------------------------------- */

/* Find out which block it is by its place in the tables. */
static void on_block(void *arg, const crn_block *block, const void *data)
{
    crn_draft *d = arg;
    const crn_mark *m = d->mark;
    size_t v = d->watch_var;
    for (size_t tried = 0; !crn_draft_has(&m->var[v], block); tried++) {
        assert(tried < m->nvars);
        v = v + 1 < m->nvars ? v + 1 : 0;
    }
    d->watch_var = v;
    d->watch(d->watch_arg, v, (uint64_t)(block - m->var[v].table), data, block->nbytes);
}

void crn_draft_watch(crn_draft *d, crn_block_fn *fn, void *arg)
{
    d->watch = fn;
    d->watch_arg = arg;
    d->gather->watch = on_block;
    d->gather->watch_arg = d;
}

const crn_mark *crn_draft_mark(const crn_draft *d)
{
    return d->mark;
}
