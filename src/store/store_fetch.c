/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fetching scattered blocks: any blocks of a variable, in one go, while others are in flight on the
 * same queue. Neighbours in the file that are wanted together are read together. Blocks that lie
 * outside of the part are not on the queue: they are read when the fetch is finished.
 */
#include "store/store_coder.h"
#include "store/store_part.h"

#include <assert.h>

enum { PIECE_BYTES = 1 << 20 }; /* of one read, at most */

struct crn_fetch {
    crn_part *part;
    const crn_mark *mark;
    crn_var *var;
    bool outside;
    const uint64_t *block;
    size_t nblocks;
    unsigned char *dst;
    CRN_VEC(crn_op) op;
    CRN_VEC(struct iovec) iov;
    CRN_VEC(size_t) first; /* of each operation, among the blocks */
    size_t pending;
    crn_coder coder;
};

cairn_status crn_fetch_create(crn_fetch **ret)
{
    return crn_alloc(ret, 1);
}

void crn_fetch_free(crn_fetch *f)
{
    if (!f)
        return;
    assert(f->pending == 0);
    crn_vec_done(&f->op);
    crn_vec_done(&f->iov);
    crn_vec_done(&f->first);
    crn_coder_done(&f->coder);
    free(f);
}

/* Does block k lie right behind the one before it, in the file and in memory? Encoded blocks, which
 * are shorter, each go to their own place. */
static bool follows(const crn_fetch *f, size_t k)
{
    const crn_block *t = f->var->table, *b = &t[f->block[k]], *before = &t[f->block[k - 1]];
    return before->nbytes == f->var->spec.block && b->off == before->off + before->nbytes;
}

/* Make one operation of the blocks from k on; the first one that is not in it. */
static size_t add_op(crn_fetch *f, size_t k)
{
    const size_t first = k++;
    const crn_block *t = f->var->table;
    size_t nbytes = t[f->block[first]].nbytes;
    while (k < f->nblocks && follows(f, k) && nbytes + t[f->block[k]].nbytes <= PIECE_BYTES)
        nbytes += t[f->block[k++]].nbytes;
    struct iovec *iov = &f->iov.at[f->iov.n++];
    *iov = (struct iovec){f->dst + first * f->var->spec.block, nbytes};
    f->first.at[f->first.n++] = first;
    f->op.at[f->op.n++] = (crn_op){.kind = CRN_OP_READ,
                                   .file = f->part->file,
                                   .iov = iov,
                                   .niov = 1,
                                   .off = t[f->block[first]].off,
                                   .user = f};
    return k;
}

cairn_status crn_fetch_start(crn_fetch *f, crn_io *io, crn_part *part, const crn_mark *m,
                             crn_var *v, const uint64_t *block, size_t n, unsigned char *dst)
{
    assert(f->pending == 0);
    CRN_TRY(crn_mark_table(part, m, v));
    *f = (crn_fetch){.part = part,
                     .mark = m,
                     .var = v,
                     .block = block,
                     .nblocks = n,
                     .dst = dst,
                     .op = f->op,
                     .iov = f->iov,
                     .first = f->first,
                     .coder = f->coder};
    f->op.n = f->iov.n = f->first.n = 0;
    f->coder.apart = part->distrusted;
    CRN_TRY(crn_vec_reserve(&f->op, n));
    CRN_TRY(crn_vec_reserve(&f->iov, n));
    CRN_TRY(crn_vec_reserve(&f->first, n));
    f->outside = n > 0 && v->table->codec & CRN_OUTSIDE;
    for (size_t k = 0; k < n && !f->outside;)
        k = add_op(f, k);
    for (size_t i = 0; i < f->op.n; i++) {
        CRN_TRY(crn_io_submit(io, &f->op.at[i]));
        f->pending++;
    }
    return CAIRN_OK;
}

static cairn_status check(crn_fetch *f, size_t i, crn_bad_blocks *bad)
{
    const size_t end = i + 1 < f->first.n ? f->first.at[i + 1] : f->nblocks;
    for (size_t k = f->first.at[i]; k < end; k++) {
        unsigned char *at = f->dst + k * f->var->spec.block;
        bool good = false;
        if (f->op.at[i].status == CAIRN_OK)
            CRN_TRY(crn_coder_bring(&f->coder, f->var, f->block[k], at, at, &good));
        if (!good)
            CRN_TRY(crn_vec_push(bad, f->block[k]));
    }
    return CAIRN_OK;
}

static cairn_status read_outside(crn_fetch *f, crn_bad_blocks *bad)
{
    for (size_t k = 0, n; k < f->nblocks; k += n) {
        for (n = 1; k + n < f->nblocks && f->block[k + n] == f->block[k] + n;)
            n++;
        CRN_TRY(crn_mark_read(f->part, f->mark, f->var, f->block[k], n,
                              f->dst + k * f->var->spec.block, bad));
    }
    return CAIRN_OK;
}

cairn_status crn_fetch_finish(crn_fetch *f, crn_io *io, crn_bad_blocks *bad)
{
    if (f->outside)
        return read_outside(f, bad);
    while (f->pending > 0) {
        crn_op *op;
        CRN_TRY(crn_io_wait(io, &op));
        ((crn_fetch *)op->user)->pending--;
    }
    for (size_t i = 0; i < f->op.n; i++)
        CRN_TRY(check(f, i, bad));
    return CAIRN_OK;
}
