/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Variables on their way to a file for other tools. The bytes of a rank are brought together in
 * slots, several of which are being written while the next is filled. A slot's memory has the
 * alignment of the place that it goes to, so that all of a long run but its ends can be written
 * past the page cache; short rows of strided pieces go through it, which gathers them again.
 */
#include "store/store_part.h"

enum {
    SLOT_DATA = 4 << 20, /* bytes of a slot: at least one block of any size */
    NSCATTER = 4,
    LONG_RUN = 64 << 10, /* from here on a write of its own pays */
    RUNS_MAX = SLOT_DATA / LONG_RUN + 1
};
_Static_assert((int)SLOT_DATA >= (int)CRN_BLOCK_MAX, "a block fits a slot");

typedef struct scatter_slot {
    unsigned char *memory; /* SLOT_DATA and a page */
    unsigned pending;      /* operations in flight */
    size_t nops;
    crn_op op[RUNS_MAX];
    struct iovec iov[RUNS_MAX];
} scatter_slot;

struct crn_scatter {
    crn_file *file;
    crn_io *io;
    unsigned inflight;
    size_t next; /* slot */
    scatter_slot slot[NSCATTER];
};

/* Wait for one operation; its failure is the call's. */
static cairn_status reap(crn_scatter *s)
{
    crn_op *op;
    CRN_TRY(crn_io_wait(s->io, &op));
    ((scatter_slot *)op->user)->pending--;
    s->inflight--;
    return op->status < 0 ? crn_err_give(&op->err) : CAIRN_OK;
}

void crn_scatter_free(crn_scatter *s)
{
    if (!s)
        return;
    while (s->inflight > 0) {
        const unsigned before = s->inflight;
        (void)reap(s);
        if (s->inflight == before)
            break; /* the queue itself is broken; freeing it waits */
    }
    crn_io_free(s->io);
    for (size_t i = 0; i < NSCATTER; i++)
        free(s->slot[i].memory);
    free(s);
}

cairn_status crn_scatter_create(crn_file *file, const crn_part_options *opt, crn_scatter **ret)
{
    crn_scatter *s;
    cairn_status rc;
    CRN_TRY(crn_alloc(&s, 1));
    s->file = file;
    CRN_TRY_OUT(rc, crn_io_create(opt->backend, opt->depth, &s->io));
    for (size_t i = 0; i < NSCATTER; i++)
        CRN_TRY_OUT(rc, crn_io_memory(SLOT_DATA + PAGE, &s->slot[i].memory));
    *ret = s;
    return CAIRN_OK;
out:
    crn_scatter_free(s);
    return rc;
}

static cairn_status start(crn_scatter *s, scatter_slot *slot, unsigned char *data, uint64_t nbytes,
                          uint64_t off)
{
    struct iovec *iov = &slot->iov[slot->nops];
    crn_op *op = &slot->op[slot->nops++];
    *iov = (struct iovec){data, nbytes};
    *op = (crn_op){
        .kind = CRN_OP_WRITE, .file = s->file, .iov = iov, .niov = 1, .off = off, .user = slot};
    CRN_TRY(crn_io_submit(s->io, op));
    slot->pending++;
    s->inflight++;
    return CAIRN_OK;
}

/* Write a run that has no gap in the file: a long one in flight, but for what a direct write cannot
 * take at its ends. */
static cairn_status write_run(crn_scatter *s, scatter_slot *slot, unsigned char *data,
                              uint64_t nbytes, uint64_t off)
{
    if (nbytes < LONG_RUN)
        return crn_file_write(s->file, data, nbytes, off);
    const uint64_t head = (PAGE - off % PAGE) % PAGE;
    const uint64_t body = (nbytes - head) / PAGE * PAGE, tail = nbytes - head - body;
    if (head > 0)
        CRN_TRY(crn_file_write(s->file, data, head, off));
    if (tail > 0)
        CRN_TRY(crn_file_write(s->file, data + head + body, tail, off + head + body));
    return start(s, slot, data + head, body, off + head);
}

/* Where byte pos of a variable goes, and how many bytes follow it there. */
static uint64_t place_of(const crn_var *v, uint32_t codec, uint64_t off, uint64_t pos,
                         uint64_t *ret_run)
{
    if (codec & CRN_OUTSIDE_ROWS)
        return off + crn_var_place(&v->spec, pos, ret_run);
    *ret_run = v->spec.nbytes - pos;
    return off + pos;
}

/* Blocks [first, first + n), which fit a slot. */
static cairn_status scatter_blocks(crn_scatter *s, crn_part *part, const crn_mark *m, crn_var *v,
                                   uint64_t first, uint64_t n, uint32_t codec, uint64_t off)
{
    scatter_slot *slot = &s->slot[s->next];
    uint64_t run, pos = first * v->spec.block;
    uint64_t left = CRN_MIN(n * v->spec.block, v->spec.nbytes - pos);
    s->next = (s->next + 1) % NSCATTER;
    while (slot->pending > 0)
        CRN_TRY(reap(s));
    slot->nops = 0;
    unsigned char *data = slot->memory + place_of(v, codec, off, pos, &run) % PAGE;
    CRN_TRY(crn_mark_read(part, m, v, first, n, data, NULL));
    while (left > 0) {
        const uint64_t to = place_of(v, codec, off, pos, &run);
        run = CRN_MIN(run, left);
        CRN_TRY(write_run(s, slot, data, run, to));
        data += run;
        pos += run;
        left -= run;
    }
    return CAIRN_OK;
}

cairn_status crn_scatter_variable(crn_scatter *s, crn_part *part, const crn_mark *m, crn_var *v,
                                  uint32_t codec, uint64_t off)
{
    const uint64_t step = SLOT_DATA / v->spec.block;
    for (uint64_t i = 0; i < v->nblocks; i += step)
        CRN_TRY(scatter_blocks(s, part, m, v, i, CRN_MIN(step, v->nblocks - i), codec, off));
    return CAIRN_OK;
}

cairn_status crn_scatter_finish(crn_scatter *s)
{
    while (s->inflight > 0)
        CRN_TRY(reap(s));
    return crn_file_sync(s->file);
}
