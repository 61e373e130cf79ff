/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A copy of a mark in another part: what it lacks, putting that, and the end of a raise on all
 * ranks.
 */
#include "level/level_ops.h"

#include <assert.h>
#include <inttypes.h>

/* --- beginning ---------------------------------------------------------------------------- */

static bool is_same_var(const crn_var *a, const crn_var *b)
{
    return b && a->spec.block == b->spec.block && a->spec.nbytes == b->spec.nbytes &&
           a->spec.item == b->spec.item && strcmp(a->spec.type, b->spec.type) == 0 &&
           crn_digest_equal(&a->root, &b->root);
}

static bool is_same_mark(const crn_mark *a, const crn_mark *b)
{
    if (a->version != b->version || a->wall_ns != b->wall_ns || a->nvars != b->nvars)
        return false;
    for (size_t i = 0; i < a->nvars; i++)
        if (!is_same_var(&a->var[i], crn_mark_find(b, a->var[i].spec.name)))
            return false;
    return true;
}

/*
 * Make the part ready for a mark of this version. One of that version that differs was left by a
 * leg that went another way; the same one was raised before, and *ret_there says so.
 */
static cairn_status make_way(crn_part *part, const crn_mark *mark, bool anew, bool *ret_there)
{
    crn_part_info info;
    crn_part_describe(part, &info);
    uint64_t newest = info.nmarks > 0 ? crn_part_version(part, info.nmarks - 1) : 0;
    *ret_there = false;
    if (info.nmarks == 0 || newest < mark->version)
        return CAIRN_OK;
    CRN_FAIL_IF(newest > mark->version, CAIRN_EINVAL,
                "mark %" PRIu64 " cannot be copied behind mark %" PRIu64 ", which is newer",
                mark->version, newest);
    crn_mark *old;
    if (!anew && crn_part_load(part, newest, &old) == CAIRN_OK) {
        *ret_there = is_same_mark(mark, old);
        crn_mark_free(old);
    }
    if (*ret_there)
        return CAIRN_OK;
    return crn_part_rewind(part, newest > 0 ? newest - 1 : CRN_NO_VERSION);
}

size_t crn_mark_bits(const crn_mark *mark)
{
    uint64_t n = 0;
    for (size_t v = 0; v < mark->nvars; v++)
        n += mark->var[v].nblocks;
    return (size_t)(n + 7) / 8;
}

static cairn_status add_var(const crn_vault_options *opt, crn_copy *c, size_t v, uint64_t base,
                            bool anew)
{
    const crn_var *var = &c->mark->var[v];
    size_t number;
    CRN_TRY(crn_draft_add(c->draft, &var->spec, &number));
    assert(number == v);
    for (uint64_t i = 0; i < var->nblocks; i++) {
        if (!anew && crn_draft_adopts(c->draft, v, i, &var->table[i]))
            continue;
        crn_bit_set(c->lacking, base + i);
        c->nblocks++;
    }
    if (opt->codec && !var->has_stored) { /* else it moves as it is stored */
        const crn_codec_setting own = opt->codec(opt->codec_arg, var->spec.name);
        crn_draft_encode_copy(c->draft, v, &own);
    }
    return CAIRN_OK;
}

cairn_status crn_copy_begin(const crn_vault *vault, crn_part *part, const crn_mark *mark, bool anew,
                            crn_copy *ret)
{
    crn_copy c = {.part = part, .mark = mark, .version = mark->version};
    uint64_t nlost;
    bool there;
    CRN_TRY(make_way(part, mark, anew, &there));
    if (!there && !anew)
        CRN_TRY(crn_part_scrub(part, &nlost));
    c.nlacking = crn_mark_bits(mark);
    CRN_TRY(crn_alloc(&c.lacking, c.nlacking));
    cairn_status rc = there ? CAIRN_OK : crn_draft_begin(part, mark->version, &c.draft);
    if (c.draft)
        crn_draft_set_time(c.draft, mark->wall_ns);
    uint64_t base = 0;
    for (size_t v = 0; c.draft && rc == CAIRN_OK && v < mark->nvars; v++) {
        rc = add_var(&vault->opt, &c, v, base, anew);
        base += mark->var[v].nblocks;
    }
    if (rc < 0) {
        crn_copy_done(&c);
        return rc;
    }
    *ret = c;
    return CAIRN_OK;
}

void crn_copy_done(crn_copy *c)
{
    crn_draft_drop(c->draft);
    free(c->lacking);
    *c = (crn_copy){0};
}

cairn_status crn_copy_put(crn_copy *c, size_t v, uint64_t i, const void *data)
{
    const crn_var *var = &c->mark->var[v];
    if (crn_block_moves(var, i))
        return crn_draft_put_moved(c->draft, v, i, data, var);
    crn_digest d = crn_digest_of(data, crn_var_block_bytes(var, i));
    CRN_FAIL_IF(!crn_digest_equal(&d, &var->table[i].digest), CAIRN_ECORRUPT,
                "mark %" PRIu64 ", variable '%s', block %" PRIu64 " arrived damaged",
                c->mark->version, var->spec.name, i);
    return crn_draft_put_copy(c->draft, v, i, data, &var->table[i]);
}

/* --- finishing ---------------------------------------------------------------------------- */

static cairn_status commit(crn_copy *c, uint64_t keep, crn_raise_stats *stats)
{
    crn_draft_stats written;
    crn_draft *draft = c->draft;
    if (!draft)
        return CAIRN_OK;
    c->draft = NULL; /* freed by the commit, whatever comes of it */
    c->tried = true; /* also when it fails: its last write may have reached the disk */
    CRN_TRY(crn_draft_commit(draft, keep, &written));
    stats->stored_bytes += written.data_bytes + written.meta_bytes;
    stats->nblocks += written.changed;
    stats->nhealed += written.healed;
    return CAIRN_OK;
}

/* Take back what was committed here. A mark 0 stays: nothing lies below it to rewind to, and a
 * later raise finds it there or refuses. A failure to take back leaves a mark that no manifest
 * counts. */
static void take_back(crn_copy *c)
{
    crn_err why = *crn_err_peek();
    if (c->tried && c->version > 0)
        (void)crn_part_rewind(c->part, c->version - 1);
    crn_draft_drop(c->draft);
    c->draft = NULL;
    (void)crn_err_give(&why);
}

cairn_status crn_copies_finish(crn_comm *comm, crn_copy *copy, size_t n, cairn_status local,
                               uint64_t keep, crn_raise_stats *stats)
{
    /* the mark before must outlast this one's commit: another rank may fail */
    uint64_t retain = keep == CRN_KEEP_ALL ? keep : CRN_MAX(keep, 1) + 1;
    cairn_status rc = crn_comm_agree(comm, local);
    if (rc == CAIRN_OK) {
        for (size_t i = 0; i < n && rc == CAIRN_OK; i++)
            rc = commit(&copy[i], retain, stats);
        rc = crn_comm_agree(comm, rc);
    }
    for (size_t i = 0; rc < 0 && i < n; i++)
        take_back(&copy[i]);
    return rc;
}

/* --- walking ------------------------------------------------------------------------------ */

/* The larger of CRN_PIECE_BYTES and the largest block of the mark. */
static size_t piece_cap(const crn_mark *mark)
{
    size_t cap = CRN_PIECE_BYTES;
    for (size_t v = 0; v < mark->nvars; v++)
        cap = CRN_MAX(cap, mark->var[v].spec.block);
    return cap;
}

crn_gaps crn_gaps_of(const crn_mark *mark, const unsigned char *bits)
{
    return (crn_gaps){.mark = mark, .bits = bits, .cap = piece_cap(mark)};
}

/* Go to the first set bit at or behind the run that was found last. */
static bool seek(crn_gaps *w)
{
    for (w->first += w->n; w->v < w->mark->nvars; w->v++) {
        uint64_t nblocks = w->mark->var[w->v].nblocks;
        while (w->first < nblocks && !crn_bit(w->bits, w->base + w->first))
            w->first++;
        if (w->first < nblocks)
            return true;
        w->base += nblocks;
        w->first = 0;
    }
    return false;
}

bool crn_gaps_next(crn_gaps *w)
{
    bool found = seek(w);
    w->n = w->nbytes = 0;
    if (!found)
        return false;
    const crn_var *var = &w->mark->var[w->v];
    for (uint64_t i = w->first; i < var->nblocks && crn_bit(w->bits, w->base + i); i++) {
        uint32_t more = w->moved ? crn_block_moved_bytes(var, i) : crn_var_block_bytes(var, i);
        if (w->nbytes + more > w->cap)
            break;
        w->nbytes += more;
        w->n++;
    }
    return true;
}
