/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pieces that lie in larger memory: their blocks are gathered before they are looked at.
 */
#include "ckpt/ckpt_session.h"

/* A block in the making. */
typedef struct packing {
    crn_draft *draft;
    size_t number;
    unsigned char *block;
    uint32_t nbytes, cap; /* gathered so far; of a block */
    uint64_t i;           /* its number */
    crn_put *how;
} packing;

static cairn_status put_block(packing *p)
{
    const crn_digest now = crn_digest_of(p->block, p->nbytes);
    const crn_digest *old = crn_draft_inherited(p->draft, p->number, p->i);
    const bool same = old && crn_digest_equal(old, &now) && p->how->way != CRN_PUT_FULL;
    cairn_status rc = same ? CAIRN_OK : crn_draft_put(p->draft, p->number, p->i, p->block, &now);
    p->how->hashed += p->nbytes;
    p->how->fresh += old ? 0 : p->nbytes;
    p->how->changed += old && crn_digest_equal(old, &now) ? 0 : p->nbytes;
    p->how->stored += same ? 0 : p->nbytes;
    p->nbytes = 0;
    p->i++;
    return rc;
}

static cairn_status pack(packing *p, const unsigned char *from, uint64_t n)
{
    while (n > 0) {
        const uint32_t part = (uint32_t)CRN_MIN(n, (uint64_t)(p->cap - p->nbytes));
        memcpy(p->block + p->nbytes, from, part);
        p->nbytes += part;
        from += part;
        n -= part;
        if (p->nbytes == p->cap)
            CRN_TRY(put_block(p));
    }
    return CAIRN_OK;
}

cairn_status crn_ckpt_put_padded(crn_draft *d, size_t number, const ckpt_var *v, crn_put *how)
{
    packing p = {.draft = d, .number = number, .cap = v->block, .how = how};
    const crn_var_spec spec = crn_ckpt_spec(v);
    const crn_box piece = crn_ckpt_far_piece(&spec);
    if (v->nbytes == 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&p.block, p.cap));
    crn_stretches s = crn_stretches_of(&piece, &piece, &v->memory);
    cairn_status rc = CAIRN_OK;
    while (rc == CAIRN_OK && crn_stretches_next(&s))
        rc = pack(&p, (const unsigned char *)v->data + s.to * v->item, s.n * v->item);
    if (rc == CAIRN_OK && p.nbytes > 0)
        rc = put_block(&p);
    free(p.block);
    return rc;
}

void crn_ckpt_copy_padded(const ckpt_var *v, unsigned char *to)
{
    const crn_var_spec spec = crn_ckpt_spec(v);
    const crn_box piece = crn_ckpt_far_piece(&spec);
    if (v->nbytes == 0)
        return;
    crn_stretches s = crn_stretches_of(&piece, &piece, &v->memory);
    while (crn_stretches_next(&s)) {
        memcpy(to, (const unsigned char *)v->data + s.to * v->item, s.n * v->item);
        to += s.n * v->item;
    }
}
