/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Going through a variable stretch by stretch, also through one that lies in larger memory, whose
 * stretches are gathered before they are looked at.
 */
#include "ckpt/ckpt_session.h"

/* --- stretches of a variable --------------------------------------------------------------- */

/* A stretch in the making. */
typedef struct packing {
    unsigned char *data;
    size_t nbytes, cap; /* gathered so far; of a whole one */
    uint64_t i;         /* its number */
    ckpt_stretch_fn *fn;
    void *arg;
} packing;

static cairn_status pass_on(packing *p)
{
    cairn_status rc = p->fn(p->arg, p->i++, p->data, p->nbytes);
    p->nbytes = 0;
    return rc;
}

static cairn_status pack(packing *p, const unsigned char *from, uint64_t n)
{
    while (n > 0) {
        const size_t part = CRN_MIN(n, p->cap - p->nbytes);
        memcpy(p->data + p->nbytes, from, part);
        p->nbytes += part;
        from += part;
        n -= part;
        if (p->nbytes == p->cap)
            CRN_TRY(pass_on(p));
    }
    return CAIRN_OK;
}

static cairn_status each_packed(const ckpt_var *v, packing *p)
{
    crn_box box[CKPT_BOXES_MAX];
    const uint32_t n = crn_ckpt_boxes(v, box);
    CRN_TRY(crn_alloc(&p->data, p->cap));
    cairn_status rc = CAIRN_OK;
    for (uint32_t i = 0; i < n; i++) {
        crn_stretches s = crn_stretches_of(&box[i], &box[i], &v->memory);
        while (rc == CAIRN_OK && crn_stretches_next(&s))
            rc = pack(p, (const unsigned char *)v->data + s.to * v->item, s.n * v->item);
    }
    if (rc == CAIRN_OK && p->nbytes > 0)
        rc = pass_on(p);
    free(p->data);
    return rc;
}

cairn_status crn_ckpt_each_stretch(const ckpt_var *v, size_t cap, ckpt_stretch_fn *fn, void *arg)
{
    packing p = {.cap = cap, .fn = fn, .arg = arg};
    if (v->padded)
        return v->nbytes > 0 ? each_packed(v, &p) : CAIRN_OK;
    for (uint64_t off = 0; off < v->nbytes; off += cap)
        CRN_TRY(fn(arg, off / cap, (const unsigned char *)v->data + off,
                   CRN_MIN(cap, v->nbytes - off)));
    return CAIRN_OK;
}

/* --- blocks ---------------------------------------------------------------------------------- */

typedef struct putting {
    crn_draft *draft;
    size_t number;
    crn_put *how;
} putting;

static cairn_status put_block(void *arg, uint64_t i, const unsigned char *data, size_t nbytes)
{
    const putting *p = arg;
    const crn_digest now = crn_digest_of(data, nbytes);
    const bool fresh = !crn_draft_inherited(p->draft, p->number, i);
    const bool same = crn_draft_keeps(p->draft, p->number, i, data, &now);
    const bool put = !same || p->how->way == CRN_PUT_FULL;
    p->how->hashed += nbytes;
    p->how->fresh += fresh ? nbytes : 0;
    p->how->changed += same ? 0 : nbytes;
    p->how->stored += put ? nbytes : 0;
    return put ? crn_draft_put(p->draft, p->number, i, data, &now) : CAIRN_OK;
}

cairn_status crn_ckpt_put_padded(crn_draft *d, size_t number, const ckpt_var *v, crn_put *how)
{
    putting p = {d, number, how};
    return crn_ckpt_each_stretch(v, v->block, put_block, &p);
}

void crn_ckpt_copy_padded(const ckpt_var *v, unsigned char *to)
{
    crn_box box[CKPT_BOXES_MAX];
    const uint32_t n = v->nbytes > 0 ? crn_ckpt_boxes(v, box) : 0;
    for (uint32_t i = 0; i < n; i++) {
        crn_stretches s = crn_stretches_of(&box[i], &box[i], &v->memory);
        while (crn_stretches_next(&s)) {
            memcpy(to, (const unsigned char *)v->data + s.to * v->item, s.n * v->item);
            to += s.n * v->item;
        }
    }
}
