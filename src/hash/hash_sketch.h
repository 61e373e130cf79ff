/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What making and using a sketch share. Inside of hash only.
 */
#ifndef CAIRN_HASH_SKETCH_H
#define CAIRN_HASH_SKETCH_H

#include "hash/hash_rules.h"
#include "hash/hash_xxh3.h"

enum {
    CRN_SKETCH_GROUP = 64, /* values that share a shift */
    CRN_SHIFT_NONE = 128,  /* the cells of the tolerant digest */
    CRN_SHIFT_SPLIT = 255, /* instead of a shift: the values of the group have a bit each */
    SKETCH_PIECE = 4096    /* bytes whose keys are made at once, as for tolerant digests */
};

struct grid; /* where cells lie: hash_sketch.c */

struct crn_sketcher {
    size_t item;
    crn_bound bound;
    crn_rules rules;
    void (*const *keys)(const crn_rules *r, const struct grid *g, const unsigned char *bits,
                        const unsigned char *src, unsigned char *dst, size_t nbytes);
    XXH3_state_t *state;
    unsigned char piece[SKETCH_PIECE]; /* keys */
    unsigned char tail[SKETCH_PIECE];  /* of a last piece that is not a whole number of vectors */
};

#endif
