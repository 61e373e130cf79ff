/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the files that rebuild: level_encoded_load.c knows who wants what and talks with other
 * ranks, level_encoded_batch.c has the stripes of which that is made.
 */
#ifndef CAIRN_LEVEL_ENCODED_BATCH_H
#define CAIRN_LEVEL_ENCODED_BATCH_H

#include "level/level_encoded.h"

/* A seat of the set from which units may come. */
typedef struct crn_parity_source {
    crn_part_id own_id, parity_id;
    int own, parity;  /* who reads these files; -1: nobody */
    uint64_t nparity; /* units of its parity */
    crn_mark *mark;   /* NULL: its data is lost */
    crn_stream stream;
} crn_parity_source;

/* A piece of a block that is larger than a unit, to be copied to its unit when it has come. */
typedef struct crn_slice {
    size_t fetch; /* the block */
    uint64_t off; /* in it */
    size_t at;    /* in the batch's units */
    uint32_t nbytes;
} crn_slice;

/* A few units of one seat, whose stripes are rebuilt together. */
typedef struct crn_batch {
    const crn_layout *layout; /* the caller's */
    uint32_t seat;
    uint64_t version;
    crn_parity_source *source; /* one for each seat; the caller fills them */
    size_t cap, n;             /* units that fit, and that there are; */
    uint64_t *unit;            /* the caller fills these, ascending */
    /* from here on its own */
    int ndata;
    crn_erasure *code;
    crn_rebuild *plan; /* for the pattern below, which neighbours mostly share */
    bool present[CRN_ERASURE_MAX];
    int wanted;
    unsigned char *data;  /* cap units for each seat */
    unsigned char *state; /* of each of those */
    crn_wants fetch;
    CRN_VEC(crn_slice) slice; /* by ascending fetch */
} crn_batch;

cairn_status crn_batch_init(crn_batch *b, const crn_layout *layout, uint32_t seat,
                            uint64_t version);
void crn_batch_done(crn_batch *b); /* a zeroed one is allowed; also frees the marks of sources */

/* Begin with the units that the caller has filled in. */
void crn_batch_start(crn_batch *b);

/* Fill b->fetch with what the stripes lack. CAIRN_NOTHING when that is nothing, or cannot be had.
 * After they were fetched, whatever came of it: crn_batch_take. */
cairn_status crn_batch_ask(crn_batch *b);
void crn_batch_take(crn_batch *b);

/* Compute what can be computed. Then the i-th unit, or NULL; units that follow each other in the
 * batch do so in memory. */
cairn_status crn_batch_rebuild(crn_batch *b);
const unsigned char *crn_batch_unit(const crn_batch *b, size_t i);

#endif
