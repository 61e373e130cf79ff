/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gathering: blocks of any size on their way to free space become few large writes, several in
 * flight. Blocks of at least a page, smaller ones, and those below a sector, which share sectors,
 * go to separate buffers, so that the first stay aligned for direct writes. Blocks that a codec is
 * to store are gathered as they are, and encoded when they are written.
 *
 * A full buffer is written at once. With staging, it is held back until the gathering ends, as long
 * as the buffers stay within the limit: whoever adds blocks then pays for a copy only.
 */
#ifndef CAIRN_STORE_GATHER_H
#define CAIRN_STORE_GATHER_H

#include "store/store_coder.h"
#include "store/store_part.h"

enum {
    GATHER_BYTES = CRN_BLOCK_MAX,   /* of a buffer: at least one block of any size */
    GATHER_LENT = 4 * GATHER_BYTES, /* of the program's memory in one write */
    GATHER_BUFFERS = 6,             /* without staging */
    GATHER_THREADS = 64,            /* that encode, at most */
    GATHER_STREAMS = 3
};

/* How a block is stored. */
typedef struct crn_encoding {
    crn_codec_setting setting; /* family none: as it is */
    crn_elem elem;
    crn_codec_shape shape;    /* of the variable, and where the block begins in it */
    crn_codec_counts *counts; /* of the variable; NULL: nobody counts */
} crn_encoding;

static inline bool crn_encodes(const crn_encoding *e)
{
    return e->setting.family != CRN_FAMILY_NONE;
}

typedef struct gather_item {
    crn_block *block; /* gets its place, and what it is stored as, when the buffer is flushed */
    uint32_t pos, room;
    crn_encoding encoding;
} gather_item;

typedef CRN_VEC(gather_item) gather_items;

typedef struct gather_buffer {
    unsigned char *data;  /* own memory; NULL until needed */
    unsigned char *start; /* of what will be written: data, or memory that was lent */
    uint32_t fill;
    gather_items item;
    bool encodes;  /* some item has a codec, and was not encoded yet */
    size_t nlarge; /* items before those that were encoded */
    CRN_VEC(crn_op) op;
    CRN_VEC(struct iovec) iov;
    int stream;
    bool held;        /* full, and not yet written */
    unsigned pending; /* operations in flight */
} gather_buffer;

/* Told of every block before it is written, or when someone wants to see what was gathered. */
typedef void gather_watch_fn(void *arg, const crn_block *block, const void *data);

typedef struct crn_gather {
    crn_part *part;
    gather_watch_fn *watch; /* NULL: nobody */
    void *watch_arg;
    CRN_VEC(gather_buffer *) buffer;     /* as many as were needed so far */
    uint64_t staging;                    /* bytes that may be held back; 0: none */
    gather_buffer *open[GATHER_STREAMS]; /* being filled; NULL: none */
    crn_extents taken;                   /* all space that was used, to be given back on failure */
    uint64_t nbytes, nwrites;
    crn_coder coder[GATHER_THREADS];
    gather_items small; /* of the buffer that is being encoded: what is now below a page; */
    crn_buf small_data; /* and of buffers that are encoded together, its bytes */
    bool scarce;        /* memory: no more buffers in this draft */
} crn_gather;

cairn_status crn_gather_create(crn_part *part, crn_gather **ret);
void crn_gather_free(crn_gather *g); /* NULL is allowed */

/* Bytes of a buffer of the stream that a block takes. */
uint32_t crn_gather_room(int stream, const crn_block *block);

/* Encode those items of full buffers that are to be encoded, where they lie. */
cairn_status crn_gather_encode(crn_gather *g, gather_buffer *const *b, size_t n);

/* Wait for what is in flight; its failures were reported before, or no longer matter. */
void crn_gather_quieten(crn_gather *g);

/* The same, and forget all but the buffers. */
void crn_gather_reset(crn_gather *g);

/* Room for the bytes of a block, to be filled before the next call. *block must stay where it is.
 */
cairn_status crn_gather_add(crn_gather *g, crn_block *block, const crn_encoding *encoding,
                            unsigned char **ret);

/* Would a block of nbytes, of at least a page, go right behind the one that was added last? */
bool crn_gather_has_room(const crn_gather *g, uint32_t nbytes);

/* Forget the block that was added last, by crn_gather_add, with all that its room was filled with.
 */
void crn_gather_take_back(crn_gather *g, const crn_block *block);

/*
 * May a block of nbytes stay where it lies until it is written? That saves a copy where the kernel
 * makes another one. crn_gather_lend is then the other way to add it; before the memory may change,
 * crn_gather_finish must have been called.
 */
bool crn_gather_can_lend(const crn_gather *g, uint32_t nbytes);
cairn_status crn_gather_lend(crn_gather *g, crn_block *block, const void *data);

/* Write what is left and wait for everything, also when that fails. */
cairn_status crn_gather_finish(crn_gather *g);

#endif
