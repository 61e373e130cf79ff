/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/store_gather.h"

cairn_status crn_gather_create(crn_part *part, crn_gather **ret)
{
    crn_gather *g;
    CRN_TRY(crn_alloc(&g, 1));
    g->part = part;
    *ret = g;
    return CAIRN_OK;
}

/* Wait for one operation; its failure is ours. */
static cairn_status reap(crn_gather *g)
{
    crn_op *op;
    CRN_TRY(crn_io_wait(g->part->io, &op));
    if (!op)
        return CAIRN_OK;
    gather_buffer *b = op->user;
    b->pending--;
    return op->status < 0 ? crn_err_give(&op->err) : CAIRN_OK;
}

void crn_gather_quieten(crn_gather *g)
{
    for (size_t i = 0; i < g->buffer.n; i++)
        while (g->buffer.at[i]->pending > 0)
            (void)reap(g);
}

void crn_gather_reset(crn_gather *g)
{
    crn_gather_quieten(g);
    for (size_t i = 0; i < g->buffer.n; i++) {
        g->buffer.at[i]->held = false;
        g->buffer.at[i]->item.n = 0;
    }
    memset(g->open, 0, sizeof g->open);
    g->watch = NULL;
    g->taken.n = 0;
    g->nbytes = g->nwrites = 0;
    g->scarce = false;
}

void crn_gather_free(crn_gather *g)
{
    if (!g)
        return;
    crn_gather_reset(g);
    for (size_t i = 0; i < g->buffer.n; i++) {
        gather_buffer *b = g->buffer.at[i];
        free(b->data);
        crn_vec_done(&b->item);
        crn_vec_done(&b->op);
        crn_vec_done(&b->iov);
        free(b);
    }
    crn_vec_done(&g->buffer);
    crn_vec_done(&g->taken);
    for (size_t i = 0; i < GATHER_THREADS; i++)
        crn_coder_done(&g->coder[i]);
    crn_vec_done(&g->small);
    crn_buf_done(&g->small_data);
    free(g);
}

/* Streams: whole pages, whole sectors, and crumbs, which share sectors. */
enum { STREAM_PAGES, STREAM_SECTORS, STREAM_CRUMBS };

static int stream_of(const crn_block *block)
{
    if (block->nbytes >= PAGE && block->codec == 0) /* what is encoded takes sectors, not pages */
        return STREAM_PAGES;
    return block->nbytes >= GRAIN ? STREAM_SECTORS : STREAM_CRUMBS;
}

uint32_t crn_gather_room(int stream, const crn_block *block)
{
    if (stream == STREAM_CRUMBS)
        return CRN_ROUND_UP(block->nbytes, (uint32_t)CRUMB_UNIT);
    return (uint32_t)crn_format_block_room(block);
}

/* One operation for items [first, last) at off. */
static void add_op(gather_buffer *b, crn_file *file, size_t first, size_t last, uint64_t off)
{
    uint32_t start = b->item.at[first].pos;
    uint32_t end = b->item.at[last - 1].pos + b->item.at[last - 1].room;
    struct iovec *iov = &b->iov.at[b->iov.n++];
    *iov = (struct iovec){b->start + start, CRN_ROUND_UP(end - start, (uint32_t)GRAIN)};
    b->op.at[b->op.n++] =
        (crn_op){.kind = CRN_OP_WRITE, .file = file, .iov = iov, .niov = 1, .off = off, .user = b};
    for (size_t i = first; i < last; i++)
        b->item.at[i].block->off = off + (b->item.at[i].pos - start);
}

/* Find places for items [first, end): as few extents as there are, each full of blocks. Crumbs go
 * to one, since only the first of them begins at a sector. */
static cairn_status place(crn_gather *g, gather_buffer *b, size_t first, size_t end, uint64_t align)
{
    for (size_t last; first < end; first = last) {
        CRN_TRY(crn_vec_reserve(&g->taken, 1));
        const gather_item *it = &b->item.at[first], *final = &b->item.at[end - 1];
        const uint64_t want = CRN_ROUND_UP(final->pos + final->room - it->pos, (uint32_t)GRAIN);
        const uint64_t least = b->stream == STREAM_CRUMBS ? want : it->room;
        crn_extent e = crn_space_take(&g->part->space, want, least, align);
        for (last = first + 1; last < end; last++)
            if (b->item.at[last].pos + b->item.at[last].room - it->pos > e.nbytes)
                break;
        add_op(b, g->part->file, first, last, e.off);
        uint64_t full = b->iov.at[b->iov.n - 1].iov_len;
        crn_space_leave(&g->part->space, e.off + full, e.nbytes - full);
        g->taken.at[g->taken.n++] = (crn_extent){e.off, full};
    }
    return CAIRN_OK;
}

static cairn_status wait_all(crn_gather *g)
{
    for (size_t i = 0; i < g->buffer.n; i++)
        while (g->buffer.at[i]->pending > 0)
            CRN_TRY(reap(g));
    return CAIRN_OK;
}

/* Writes of one file through the page cache exclude each other in the kernel, where the second of
 * two in flight would spin until the first has ended: it took a core and gained nothing. So they go
 * one by one, beside the digests of the next buffer, and only direct ones in numbers. */
static cairn_status submit(crn_gather *g, gather_buffer *b, crn_op *op)
{
    if (crn_file_direct_align(g->part->file) == 0)
        CRN_TRY(wait_all(g));
    CRN_TRY(crn_io_submit(g->part->io, op));
    b->pending++;
    g->nwrites++;
    g->nbytes += op->iov->iov_len;
    return CAIRN_OK;
}

static void show_buffer(crn_gather *g, gather_buffer *b)
{
    for (size_t i = 0; g->watch && i < b->item.n; i++)
        g->watch(g->watch_arg, b->item.at[i].block, b->start + b->item.at[i].pos);
}

static cairn_status write_buffer(crn_gather *g, gather_buffer *b)
{
    if (b->stream == STREAM_CRUMBS) /* the last sector is written, too: not what was there before */
        memset(b->data + b->fill, 0, CRN_ROUND_UP(b->fill, (uint32_t)GRAIN) - b->fill);
    b->op.n = b->iov.n = 0;
    CRN_TRY(crn_vec_reserve(&b->op, b->item.n));
    CRN_TRY(crn_vec_reserve(&b->iov, b->item.n));
    CRN_TRY(place(g, b, 0, b->nlarge, b->stream == STREAM_PAGES ? PAGE : GRAIN));
    CRN_TRY(place(g, b, b->nlarge, b->item.n, GRAIN));
    for (size_t i = 0; i < b->op.n; i++)
        CRN_TRY(submit(g, b, &b->op.at[i]));
    return CAIRN_OK;
}

/* Encode buffers together, and write one after the other. */
static cairn_status write_buffers(crn_gather *g, gather_buffer *const *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        show_buffer(g, b[i]);
        b[i]->held = false;
    }
    CRN_TRY(crn_gather_encode(g, b, n));
    for (size_t i = 0; i < n; i++)
        CRN_TRY(write_buffer(g, b[i]));
    return CAIRN_OK;
}

/* The buffer of a stream is full: write it, or hold it back. What several threads can encode
 * together waits for more of it. */
static cairn_status flush(crn_gather *g, int stream)
{
    gather_buffer *b = g->open[stream];
    g->open[stream] = NULL;
    if (g->staging == 0 && !(b->encodes && g->part->threads > 1))
        return write_buffers(g, &b, 1);
    b->held = true;
    return CAIRN_OK;
}

/* Write all that is held back, and what is still open, as many at once as there are threads. */
static cairn_status write_all(crn_gather *g)
{
    gather_buffer *some[GATHER_THREADS];
    const size_t most = CRN_MIN(CRN_MAX(g->part->threads, 1U), (unsigned)GATHER_THREADS);
    size_t n = 0;
    for (int stream = 0; stream < GATHER_STREAMS; stream++) {
        if (g->open[stream])
            g->open[stream]->held = true;
        g->open[stream] = NULL;
    }
    for (size_t i = 0; i < g->buffer.n; i++) {
        if (g->buffer.at[i]->held)
            some[n++] = g->buffer.at[i];
        if (n == most) {
            CRN_TRY(write_buffers(g, some, n));
            n = 0;
        }
    }
    return write_buffers(g, some, n);
}

static cairn_status new_buffer(crn_gather *g, gather_buffer **ret)
{
    gather_buffer *b;
    CRN_TRY(crn_vec_reserve(&g->buffer, 1));
    CRN_TRY(crn_alloc(&b, 1));
    g->buffer.at[g->buffer.n++] = b;
    *ret = b;
    return CAIRN_OK;
}

/* A buffer that is neither open, held nor being written, with memory of its own or without; NULL:
 * none. */
static gather_buffer *idle_buffer(const crn_gather *g, bool own)
{
    for (size_t i = 0; i < g->buffer.n; i++) {
        gather_buffer *b = g->buffer.at[i];
        if (b->pending == 0 && !b->held && b != g->open[0] && b != g->open[1] && b != g->open[2] &&
            (b->data || !own))
            return b;
    }
    return NULL;
}

/*
 * There is no memory for another buffer, as a limit or a small machine has it: write what is held
 * back, and give half of the buffers up, since others need memory as well. CAIRN_ENOMEM: there is
 * none at all.
 */
static cairn_status make_do(crn_gather *g)
{
    const crn_err why = *crn_err_peek();
    size_t n = 0;
    CRN_TRY(write_all(g));
    CRN_TRY(wait_all(g));
    for (size_t i = 0; i < g->buffer.n; i++) {
        gather_buffer *b = g->buffer.at[i];
        n += b->data != NULL;
        if (n % 2 == 0) {
            free(b->data);
            b->data = NULL;
        }
    }
    g->scarce = true;
    return n > 0 ? CAIRN_OK : crn_err_give(&why);
}

/* One that is idle, or a new one while there may be more; *ret NULL: neither. */
static cairn_status find_buffer(crn_gather *g, bool own, gather_buffer **ret)
{
    const size_t most = CRN_MAX((size_t)(g->staging / GATHER_BYTES), (size_t)GATHER_BUFFERS);
    gather_buffer *b = idle_buffer(g, own);
    cairn_status rc = CAIRN_OK;
    *ret = b;
    if (b || g->scarce)
        return CAIRN_OK;
    b = idle_buffer(g, false);
    if (!b && g->buffer.n < most)
        rc = new_buffer(g, &b);
    if (rc == CAIRN_OK && b && own)
        rc = crn_io_memory(GATHER_BYTES, &b->data);
    if (rc < 0) {
        CRN_TRY(make_do(g));
        b = idle_buffer(g, own);
    }
    *ret = b;
    return CAIRN_OK;
}

/* An empty buffer for the stream: an idle one, a new one, or one that is waited for. */
static cairn_status begin(crn_gather *g, int stream, bool own, gather_buffer **ret)
{
    gather_buffer *b;
    CRN_TRY(find_buffer(g, own, &b));
    if (!b)
        CRN_TRY(write_all(g));
    while (!b) {
        CRN_TRY(reap(g));
        CRN_TRY(find_buffer(g, own, &b));
    }
    b->fill = 0;
    b->item.n = 0;
    b->encodes = false;
    b->stream = stream;
    *ret = b;
    return CAIRN_OK;
}

cairn_status crn_gather_add(crn_gather *g, crn_block *block, const crn_encoding *encoding,
                            unsigned char **ret)
{
    int stream = stream_of(block);
    uint32_t room = crn_gather_room(stream, block);
    gather_buffer *b = g->open[stream];
    if (b && (b->start != b->data || b->fill + room > GATHER_BYTES)) {
        CRN_TRY(flush(g, stream));
        b = NULL;
    }
    if (!b) {
        CRN_TRY(begin(g, stream, true, &b));
        b->start = b->data;
        g->open[stream] = b;
    }
    CRN_TRY(crn_vec_push(&b->item, (gather_item){block, b->fill, room, *encoding}));
    b->encodes |= crn_encodes(encoding);
    /* what follows a short block is written, too: it must not be another process's memory */
    memset(b->data + b->fill + block->nbytes, 0, room - block->nbytes);
    *ret = b->data + b->fill;
    b->fill += room;
    return CAIRN_OK;
}

bool crn_gather_has_room(const crn_gather *g, uint32_t nbytes)
{
    const gather_buffer *b = g->open[STREAM_PAGES];
    return nbytes >= PAGE && b && b->start == b->data && b->item.n > 0 &&
           b->item.at[b->item.n - 1].room == b->item.at[b->item.n - 1].block->nbytes &&
           b->fill + crn_gather_room(STREAM_PAGES, &(crn_block){.nbytes = nbytes}) <= GATHER_BYTES;
}

void crn_gather_take_back(crn_gather *g, const crn_block *block)
{
    gather_buffer *b = g->open[stream_of(block)];
    b->fill = b->item.at[--b->item.n].pos;
}

/* Direct writes from the program's own pages, which lie scattered, were slower than from buffers on
 * huge pages, the copy included. */
bool crn_gather_can_lend(const crn_gather *g, uint32_t nbytes)
{
    return g->staging == 0 && crn_file_direct_align(g->part->file) == 0 && nbytes >= PAGE &&
           CRN_ROUND_UP(nbytes, (uint32_t)PAGE) == nbytes;
}

cairn_status crn_gather_lend(crn_gather *g, crn_block *block, const void *data)
{
    unsigned char *at = (unsigned char *)(uintptr_t)data; /* only ever read */
    gather_buffer *b = g->open[0];
    if (b && (b->start + b->fill != at || b->fill + block->nbytes > GATHER_LENT)) {
        CRN_TRY(flush(g, 0));
        b = NULL;
    }
    if (!b) {
        CRN_TRY(begin(g, 0, false, &b));
        b->start = at;
        g->open[0] = b;
    }
    const gather_item item = {.block = block, .pos = b->fill, .room = block->nbytes};
    CRN_TRY(crn_vec_push(&b->item, item));
    b->fill += block->nbytes;
    return CAIRN_OK;
}

cairn_status crn_gather_finish(crn_gather *g)
{
    cairn_status rc = write_all(g);
    if (rc == CAIRN_OK)
        rc = wait_all(g);
    if (rc == CAIRN_OK)
        return CAIRN_OK;
    crn_err why = *crn_err_peek();
    crn_gather_quieten(g);
    return crn_err_give(&why);
}
