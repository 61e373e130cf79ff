/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copying blocks from one part to another as they are stored: read straight into the buffers that
 * they are written from, checked there, and never decoded.
 */
#include "store/store_draft.h"

/* What is read in one go: of a file in memory, what the processor's cache holds until it is
 * checked. */
enum { RUN_BYTES = 1 << 20, TURN_BYTES = 1 << 18 };

typedef struct copying {
    crn_draft *draft;
    size_t v;
    crn_part *from;
    crn_var *var;
    uint64_t first, n; /* blocks that are read together */
    uint64_t nbytes, most;
    unsigned char *to;
} copying;

/* Is block i the one before it goes on with, in both files? */
static bool follows(const copying *c, uint64_t i)
{
    const crn_block *b = &c->var->table[i], *before = b - 1;
    return b->codec == 0 && before->codec == 0 && b->off == before->off + before->nbytes &&
           c->nbytes + b->nbytes <= c->most && crn_gather_has_room(c->draft->gather, b->nbytes);
}

/* Has the draft, or its part, the block already? */
static bool is_there(const copying *c, uint64_t i)
{
    const crn_block *b = &c->var->table[i];
    const crn_block *has = &c->draft->mark->var[c->v].table[i];
    if (crn_draft_inherited(c->draft, c->v, i) && crn_digest_equal(&has->digest, &b->digest) &&
        crn_digest_equal(&has->origin, &b->origin) && crn_draft_trusts(c->draft, has))
        return true;
    return crn_digest_equal(&b->digest, &b->origin) &&
           crn_draft_share(c->draft, c->v, i, &b->origin);
}

/* The next blocks to be read together, from i on, and room for them; the first behind them. */
static cairn_status gather(copying *c, uint64_t i, uint64_t *ret)
{
    c->n = c->nbytes = 0;
    for (; i < c->var->nblocks; i++) {
        unsigned char *at;
        if (c->n > 0 && !follows(c, i))
            break;
        if (is_there(c, i)) {
            if (c->n == 0)
                continue;
            i++;
            break;
        }
        CRN_TRY(crn_draft_put_stored(c->draft, c->v, i, &c->var->table[i], &at));
        if (c->n++ == 0) {
            c->first = i;
            c->to = at;
        }
        c->nbytes += c->var->table[i].nbytes;
    }
    *ret = i;
    return CAIRN_OK;
}

static cairn_status check(const copying *c)
{
    const unsigned char *at = c->to;
    for (uint64_t i = c->first; i < c->first + c->n; i++) {
        const crn_block *b = &c->var->table[i];
        const crn_digest now = crn_digest_of(at, b->nbytes);
        CRN_FAIL_IF(!crn_digest_equal(&now, b->codec ? &b->stored : &b->digest), CAIRN_ECORRUPT,
                    "'%s': variable '%s', block %" PRIu64 " is damaged (%u bytes at byte %" PRIu64
                    ")",
                    c->from->name, c->var->spec.name, i, b->nbytes, b->off);
        at += b->nbytes;
    }
    return CAIRN_OK;
}

cairn_status crn_draft_copy(crn_draft *d, size_t v, crn_part *from, const crn_mark *m, crn_var *var,
                            bool (*go_on)(void *arg, uint64_t nbytes), void *arg)
{
    copying c = {.draft = d, .v = v, .from = from, .var = var};
    c.most = from->cached ? TURN_BYTES : RUN_BYTES;
    CRN_TRY(crn_mark_table(from, m, var));
    for (uint64_t i = 0; i < var->nblocks;) {
        CRN_TRY(gather(&c, i, &i));
        if (c.n == 0)
            break;
        CRN_FAIL_IF(var->table[c.first].codec >= CRN_OUTSIDE || !var->has_stored,
                    CAIRN_EUNSUPPORTED, "variable '%s' is not stored in this part", var->spec.name);
        CRN_TRY(crn_file_read(from->file, c.to, c.nbytes, var->table[c.first].off));
        CRN_TRY(check(&c));
        CRN_FAIL_IF(!go_on(arg, c.nbytes), CAIRN_ECANCELED, "it was cancelled");
    }
    return CAIRN_OK;
}

/* --- block by block ------------------------------------------------------------------------- */

bool crn_block_moves(const crn_var *v, uint64_t i)
{
    const uint32_t codec = v->table[i].codec;
    return v->has_stored && codec != 0 && codec < CRN_OUTSIDE;
}

uint32_t crn_block_moved_bytes(const crn_var *v, uint64_t i)
{
    return crn_block_moves(v, i) ? v->table[i].nbytes : crn_var_block_bytes(v, i);
}

static cairn_status check_stored(const char *name, const crn_var *v, uint64_t i, const void *data)
{
    const crn_digest now = crn_digest_of(data, v->table[i].nbytes);
    CRN_FAIL_IF(!crn_digest_equal(&now, &v->table[i].stored), CAIRN_ECORRUPT,
                "'%s': variable '%s', block %" PRIu64 " is damaged (%u bytes at byte %" PRIu64 ")",
                name, v->spec.name, i, v->table[i].nbytes, v->table[i].off);
    return CAIRN_OK;
}

cairn_status crn_mark_read_moved(crn_part *part, const crn_mark *m, crn_var *v, uint64_t first,
                                 uint64_t n, unsigned char *dst)
{
    CRN_TRY(crn_mark_table(part, m, v));
    for (uint64_t i = first, next; i < first + n; i = next) {
        const crn_block *b = &v->table[i];
        next = i + 1;
        if (crn_block_moves(v, i)) {
            CRN_TRY(crn_file_read(part->file, dst, b->nbytes, b->off));
            CRN_TRY(check_stored(part->name, v, i, dst));
            dst += b->nbytes;
            continue;
        }
        while (next < first + n && !crn_block_moves(v, next))
            next++;
        CRN_TRY(crn_mark_read(part, m, v, i, next - i, dst, NULL));
        for (uint64_t k = i; k < next; k++)
            dst += crn_var_block_bytes(v, k);
    }
    return CAIRN_OK;
}

cairn_status crn_draft_put_moved(crn_draft *d, size_t v, uint64_t i, const void *data,
                                 const crn_var *as)
{
    const crn_block *b = &as->table[i];
    unsigned char *to;
    if (!crn_block_moves(as, i))
        return crn_draft_put_copy(d, v, i, data, b);
    CRN_TRY(check_stored("a copy", as, i, data));
    CRN_TRY(crn_draft_put_stored(d, v, i, b, &to));
    memcpy(to, data, b->nbytes);
    return CAIRN_OK;
}
