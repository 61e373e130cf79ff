/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Small variables, where a program has many. One at a time, each would cost microseconds of a mark
 * though nothing of it has changed. So they stand together in every mark, behind the others, in an
 * order of their own; what the program waits for is one pass over their memory, which is compared
 * by digest with what the mark before has, and the copies of those that changed. The draft takes
 * over the others from that mark on the engine's thread.
 *
 * This holds as long as the draft inherits from the very mark that the digests are of, and nothing
 * was declared in between. Otherwise they are captured like all other variables, and noted.
 */
#include "ckpt/ckpt_session.h"

#include <math.h>

enum {
    SMALL = 8 << 10,     /* bytes: such variables have one block, of any size that is looked for */
    MANY = 64,           /* of fewer, each is told in the log by its name */
    COPY_MAX = 64 << 20, /* bytes of changed ones that wait for the engine; as staging allows */
    COPY_KEPT = 1 << 20  /* bytes of memory for them that stay from mark to mark */
};

static const ckpt_mark_id none = {CRN_NO_VERSION, 0};

/* --- which they are ------------------------------------------------------------------------- */

static bool is_small(const cairn *c, const ckpt_var *v)
{
    return v->nbytes > 0 && v->nbytes < CRN_MIN((uint32_t)SMALL, v->block + 1) && !v->padded &&
           !v->share && !v->change.watch && (v->nbounds == 0 || !c->leg.trees) &&
           crn_change_is_found(c, v->name);
}

static cairn_status sort(cairn *c, ckpt_smalls *s)
{
    s->at.n = s->large.n = 0;
    s->nbytes = 0;
    for (size_t i = 0; i < c->var.n; i++) {
        ckpt_var *v = &c->var.at[i];
        v->small = is_small(c, v);
        if (!v->small)
            CRN_TRY(crn_vec_push(&s->large, (uint32_t)i));
        else
            CRN_TRY(crn_vec_push(&s->at, (ckpt_small){.data = v->data,
                                                      .nbytes = (uint32_t)v->nbytes,
                                                      .place = (uint32_t)i}));
        s->nbytes += v->small ? v->nbytes : 0;
    }
    return CAIRN_OK;
}

cairn_status crn_small_sort(cairn *c)
{
    ckpt_smalls *s = &c->small;
    if (s->listed)
        return CAIRN_OK;
    CRN_TRY(sort(c, s));
    s->captured = none;
    if (s->at.n < MANY) { /* all are large, in the order in which they were declared */
        s->at.n = s->large.n = 0;
        for (size_t i = 0; i < c->var.n; i++) {
            c->var.at[i].small = false;
            CRN_TRY(crn_vec_push(&s->large, (uint32_t)i));
        }
    }
    s->listed = true;
    return CAIRN_OK;
}

void crn_small_done(ckpt_smalls *s)
{
    crn_vec_done(&s->at);
    crn_vec_done(&s->large);
    crn_vec_done(&s->changed);
    free(s->copy);
    memset(s, 0, sizeof *s);
}

/* --- noting --------------------------------------------------------------------------------- */

void crn_small_distrust(cairn *c)
{
    c->small.captured = none;
}

void crn_small_begin(cairn *c)
{
    ckpt_smalls *s = &c->small;
    s->changed.n = s->used = s->taken = 0;
    s->tally = 0;
    s->pending = false;
    if (s->room > COPY_KEPT) {
        free(s->copy);
        s->copy = NULL;
        s->room = 0;
    }
}

void crn_small_note(cairn *c, size_t first)
{
    ckpt_smalls *s = &c->small;
    const crn_draft *d = c->leg.job.draft;
    s->captured = none;
    if (c->leg.job.status < 0 || c->leg.job.diverted || crn_draft_mark(d)->nvars != first + s->at.n)
        return;
    for (size_t i = 0; i < s->at.n; i++)
        s->at.at[i].digest = crn_digest_of(s->at.at[i].data, s->at.at[i].nbytes);
    s->first = first;
    s->captured = (ckpt_mark_id){c->leg.job.version, c->leg.job.wall_ns};
}

void crn_small_tally(cairn *c, const ckpt_tally *t)
{
    ckpt_tally all = {.way = t->way, .predicted = t->predicted};
    if (c->small.tally == 0) {
        if (crn_strdup(CRN_SMALL_NAME, &all.name) < 0)
            return;
        if (crn_vec_push(&c->tally, all) < 0) {
            free(all.name);
            return;
        }
        c->small.tally = c->tally.n;
    }
    ckpt_tally *sum = &c->tally.at[c->small.tally - 1];
    sum->nbytes += t->nbytes;
    sum->hashed += t->hashed;
    sum->changed += t->changed;
    sum->stored += t->stored;
    sum->capture_ns += t->capture_ns;
}

/* --- capture -------------------------------------------------------------------------------- */

bool crn_small_is_known(const cairn *c)
{
    const ckpt_smalls *s = &c->small;
    const ckpt_job *j = &c->leg.job;
    uint64_t wall_ns = 0;
    if (s->at.n == 0 || s->captured.version == CRN_NO_VERSION || c->damaged || c->leg.reference ||
        j->status < 0 || j->diverted)
        return false;
    return crn_draft_base(j->draft, &wall_ns) == s->captured.version &&
           wall_ns == s->captured.wall_ns && crn_draft_is_whole(j->draft);
}

/* Room for one more that changed; CAIRN_ENOSPC: as many wait as may. */
static cairn_status make_room(cairn *c, uint32_t nbytes)
{
    ckpt_smalls *s = &c->small;
    const uint64_t most =
        CRN_MIN((uint64_t)COPY_MAX, crn_config_nbytes(c->held.cfg, CRN_OPT_MARK_STAGING));
    if (s->used + nbytes > most)
        return CAIRN_ENOSPC;
    CRN_TRY(crn_vec_reserve(&s->changed, 1));
    return crn_vec_grow((void **)&s->copy, &s->room, s->used, nbytes, 1);
}

static cairn_status copy(cairn *c, size_t i)
{
    ckpt_smalls *s = &c->small;
    const ckpt_small *v = &s->at.at[i];
    cairn_status rc = make_room(c, v->nbytes);
    if (rc == CAIRN_ENOSPC) { /* what waits goes to the draft's own buffers, now */
        CRN_TRY(crn_small_take(c, i));
        rc = make_room(c, v->nbytes);
    }
    CRN_TRY(rc);
    memcpy(s->copy + s->used, v->data, v->nbytes);
    s->changed.at[s->changed.n++] = (ckpt_small_changed){.number = i, .off = s->used};
    s->used += v->nbytes;
    return CAIRN_OK;
}

cairn_status crn_small_capture(cairn *c)
{
    ckpt_smalls *s = &c->small;
    ckpt_tally t = {.way = CRN_PUT_COMPARE, .nbytes = s->nbytes, .hashed = s->nbytes};
    const uint64_t start = crn_now_ns();
    t.predicted = NAN;
    s->pending = true;
    s->captured = none; /* until all digests are of this mark */
    c->leg.job.nbytes += s->nbytes;
    for (size_t i = 0; i < s->at.n; i++) {
        ckpt_small *v = &s->at.at[i];
        const crn_digest now = crn_digest_of(v->data, v->nbytes);
        if (crn_digest_equal(&now, &v->digest))
            continue;
        v->digest = now;
        t.changed += v->nbytes;
        CRN_TRY(copy(c, i));
    }
    s->captured = (ckpt_mark_id){c->leg.job.version, c->leg.job.wall_ns};
    t.stored = t.changed; /* before codecs */
    t.capture_ns = crn_now_ns() - start;
    crn_small_tally(c, &t);
    return CAIRN_OK;
}

/* --- on the way to storage ------------------------------------------------------------------- */

/* Let the draft have the i-th one: as the mark before has it, or by the copy. */
static cairn_status take(cairn *c, size_t i, const ckpt_small_changed *changed, ckpt_var *like)
{
    ckpt_smalls *s = &c->small;
    crn_draft *d = c->leg.job.draft;
    size_t number;
    CRN_TRY(crn_draft_take(d, s->from + i, &number));
    const crn_var_spec *spec = &crn_draft_mark(d)->var[number].spec;
    like->type = spec->type;
    like->nbytes = spec->nbytes;
    like->block = spec->block;
    like->name = (char *)spec->name;
    crn_ckpt_trees_add(c, like);
    if (!changed)
        return CAIRN_OK;
    crn_coded_put(c, spec->name, true, number);
    return crn_draft_put(d, number, 0, s->copy + changed->off, &s->at.at[i].digest);
}

cairn_status crn_small_take(cairn *c, size_t n)
{
    ckpt_smalls *s = &c->small;
    ckpt_var like = {.layout = CRN_LAYOUT_OWN};
    size_t next = 0;
    if (s->taken == 0) {
        s->from = s->first;
        s->first = crn_draft_mark(c->leg.job.draft)->nvars;
    }
    for (; s->taken < n; s->taken++) {
        const bool changed = next < s->changed.n && s->changed.at[next].number == s->taken;
        CRN_TRY(take(c, s->taken, changed ? &s->changed.at[next] : NULL, &like));
        next += changed;
    }
    s->changed.n = s->used = 0;
    return CAIRN_OK;
}

/* The own part cannot take the draft: let the trail's have those that it has, and the rest by their
 * copies or, where nothing changed, from the mark before, which the own part still has. */
static cairn_status divert_rest(cairn *c, crn_mark *before, crn_part *part)
{
    ckpt_smalls *s = &c->small;
    ckpt_job *j = &c->leg.job;
    unsigned char block[SMALL];
    size_t next = 0;
    for (size_t i = s->taken; i < s->at.n; i++) {
        crn_var *v = &before->var[s->from + i];
        crn_put how = {.way = j->anew ? CRN_PUT_FULL : CRN_PUT_COMPARE};
        const unsigned char *data = block;
        size_t number;
        while (next < s->changed.n && s->changed.at[next].number < i)
            next++;
        if (next < s->changed.n && s->changed.at[next].number == i)
            data = s->copy + s->changed.at[next].off;
        else
            CRN_TRY(crn_mark_read(part, before, v, 0, 1, block, NULL));
        CRN_TRY(crn_draft_add(j->draft, &v->spec, &number));
        crn_coded_put(c, v->spec.name, true, number);
        if (data == block) { /* it has lost what it may */
            const crn_codec_setting codec = crn_ckpt_codec(c->held.cfg, v->spec.name);
            crn_draft_encode_copy(j->draft, number, &codec);
        }
        CRN_TRY(crn_draft_put_changed(j->draft, number, data, &how));
    }
    return CAIRN_OK;
}

static cairn_status divert(cairn *c)
{
    crn_mark *before;
    crn_part *part;
    uint64_t wall_ns;
    const uint64_t version = crn_draft_base(c->leg.job.draft, &wall_ns);
    CRN_TRY(crn_divert(c, c->small.first + c->small.taken));
    CRN_TRY(crn_vault_own(c->held.vault, &part));
    CRN_TRY(crn_part_load(part, version, &before));
    cairn_status rc = divert_rest(c, before, part);
    crn_mark_free(before);
    return rc;
}

cairn_status crn_small_store(cairn *c)
{
    if (!c->small.pending)
        return CAIRN_OK;
    c->small.pending = false;
    cairn_status rc = crn_small_take(c, c->small.at.n);
    return crn_divert_helps(c, rc) ? divert(c) : rc;
}
