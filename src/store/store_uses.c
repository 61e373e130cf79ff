/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/store_uses.h"

#include <assert.h>

/* A piece that is referred to. */
typedef struct used_piece {
    crn_extent at;
    uint32_t count;
    uint32_t nbytes; /* of the block in memory; 0: it is none that others may share */
    crn_block block;
} used_piece;

struct crn_uses {
    CRN_VEC(used_piece) piece;
    crn_index by_place, by_digest;
};

static uint64_t hash_of_place(uint64_t off)
{
    return crn_hash_bytes(&off, sizeof off);
}

static uint64_t hash_of_digest(const crn_digest *d)
{
    return crn_hash_bytes(d, sizeof *d);
}

void crn_uses_free(crn_uses *u)
{
    if (!u)
        return;
    crn_vec_done(&u->piece);
    crn_index_done(&u->by_place);
    crn_index_done(&u->by_digest);
    free(u);
}

cairn_status crn_uses_renew(crn_part *part)
{
    crn_uses_free(part->uses);
    part->uses = NULL;
    return part->super.id.role == CRN_ROLE_STATES ? crn_alloc(&part->uses, 1) : CAIRN_OK;
}

static used_piece *find_place(const crn_uses *u, uint64_t off)
{
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&u->by_place, hash_of_place(off), &probe, &at);)
        if (u->piece.at[at].at.off == off)
            return &u->piece.at[at];
    return NULL;
}

static cairn_status count(crn_uses *u, const crn_extent *e)
{
    used_piece *p = find_place(u, e->off);
    if (!p) {
        CRN_TRY(crn_vec_push(&u->piece, (used_piece){.at = *e}));
        CRN_TRY(crn_index_add(&u->by_place, hash_of_place(e->off), u->piece.n - 1));
        p = &u->piece.at[u->piece.n - 1];
    }
    p->at.nbytes = CRN_MAX(p->at.nbytes, e->nbytes);
    p->count++;
    return CAIRN_OK;
}

/* Codecs up to this one store bytes; those of later numbers store values (docs/format.md, 4.8). */
enum { LAST_OF_BYTES = 2 };

static bool is_sharable(const crn_block *b)
{
    return b->nbytes >= GRAIN && b->codec <= LAST_OF_BYTES &&
           crn_digest_equal(&b->digest,
                            &b->origin); /* who loses nothing shares what lost nothing */
}

/* Remember the blocks of a variable, whose places have been counted. */
static cairn_status know(crn_uses *u, const crn_var *v)
{
    for (uint64_t i = 0; v->has_stored && i < v->nblocks; i++) {
        const crn_block *b = &v->table[i];
        used_piece *p = is_sharable(b) ? find_place(u, b->off) : NULL;
        if (!p || p->nbytes > 0)
            continue;
        p->block = *b;
        CRN_TRY(
            crn_index_add(&u->by_digest, hash_of_digest(&b->origin), (size_t)(p - u->piece.at)));
        p->nbytes = crn_var_block_bytes(v, i);
    }
    return CAIRN_OK;
}

cairn_status crn_uses_add(crn_uses *u, const crn_extent *piece, size_t n, const crn_mark *m)
{
    for (size_t i = 0; i < n; i++)
        CRN_TRY(count(u, &piece[i]));
    for (size_t i = 0; i < m->nvars; i++)
        CRN_TRY(know(u, &m->var[i]));
    return CAIRN_OK;
}

/* Forget a piece; the last one takes its position. */
static void forget(crn_uses *u, used_piece *p)
{
    const size_t at = (size_t)(p - u->piece.at), last = u->piece.n - 1;
    const used_piece *moved = &u->piece.at[last];
    crn_index_remove(&u->by_place, hash_of_place(p->at.off), at);
    if (p->nbytes > 0)
        crn_index_remove(&u->by_digest, hash_of_digest(&p->block.origin), at);
    if (at != last) {
        crn_index_move(&u->by_place, hash_of_place(moved->at.off), last, at);
        if (moved->nbytes > 0)
            crn_index_move(&u->by_digest, hash_of_digest(&moved->block.origin), last, at);
        *p = *moved;
    }
    u->piece.n--;
}

cairn_status crn_uses_remove(crn_uses *u, const crn_extent *piece, size_t n, crn_extents *ret)
{
    CRN_TRY(crn_vec_reserve(ret, n));
    for (size_t i = 0; i < n; i++) {
        used_piece *p = find_place(u, piece[i].off);
        assert(p && p->count > 0);
        if (--p->count > 0)
            continue;
        ret->at[ret->n++] = p->at;
        forget(u, p);
    }
    return CAIRN_OK;
}

const crn_block *crn_uses_find(const crn_uses *u, const crn_digest *origin, uint32_t nbytes)
{
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&u->by_digest, hash_of_digest(origin), &probe, &at);) {
        const used_piece *p = &u->piece.at[at];
        if (p->nbytes == nbytes && crn_digest_equal(&p->block.origin, origin))
            return &p->block;
    }
    return NULL;
}

void crn_uses_distrust(crn_uses *u, uint64_t off)
{
    used_piece *p = find_place(u, off);
    if (!p || p->nbytes == 0)
        return;
    crn_index_remove(&u->by_digest, hash_of_digest(&p->block.origin), (size_t)(p - u->piece.at));
    p->nbytes = 0;
}
