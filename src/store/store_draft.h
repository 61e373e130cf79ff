/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mark in the making: what store_draft.c prepares and store_commit.c writes.
 */
#ifndef CAIRN_STORE_DRAFT_H
#define CAIRN_STORE_DRAFT_H

#include "store/store_gather.h"

/* What a block of a draft is. */
enum {
    BLOCK_MISSING,
    BLOCK_INHERITED,
    BLOCK_PUT,
    BLOCK_SHARED,
    BLOCK_KEPT /* inherited, but what the program had is another: see crn_draft_keeps */
};

typedef struct draft_var {
    unsigned char *state; /* of each block */
    uint64_t missing;     /* blocks that must still be put */
    bool same_table;      /* as in the newest mark: nothing was put, nothing added or cut; */
    bool taken;           /* and declared as there, */
    size_t of_tip;        /* where it has this number */
    crn_encoding encoding;
    crn_beside beside[CRN_CHOICES]; /* of blocks 0, 1, ... of sixteen */
    size_t nbeside;
} draft_var;

/* A block of the draft that is equal to another one of it, which is written. */
typedef struct draft_twin {
    size_t v, of_v;
    uint64_t i, of_i;
} draft_twin;

struct crn_draft {
    crn_part *part;
    char key[CRN_KEY_MAX + 1]; /* of a state; empty for a mark */
    crn_index fresh;           /* of a state: the blocks that it writes, by digest; */
    CRN_VEC(draft_twin) put;   /* those, */
    CRN_VEC(draft_twin) twin;  /* and their twins, which get their places */
    crn_mark *mark;
    CRN_VEC(draft_var) var; /* one for each variable of the mark */
    uint64_t file_bytes;    /* before it; UINT64_MAX once it is committed */
    size_t cap;             /* of mark->var */
    crn_gather *gather;     /* the part's */
    crn_extent room;        /* kept for tables and record; what is left of it is free */
    uint64_t meta_bytes;
    uint64_t page_bytes;           /* of them, for pages of the record */
    CRN_VEC(unsigned char) reread; /* a block, to look at it again */
    uint64_t nlost; /* pieces that the newest mark has but storage lost: they are not inherited */
    crn_err broken; /* why it cannot be committed any more: an add or a put has failed half-way */
    crn_block_fn *watch;
    void *watch_arg;
    size_t watch_var; /* of the block before: blocks come in rows */
};

/* Begin a draft of a mark or a state, which inherits from the part's tip. */
cairn_status crn_draft_create(crn_part *part, const char *key, uint64_t version, crn_draft **ret);

/*
 * In a part with states: does the part have a block like this one, which is not inherited, or the
 * draft itself? Then it has that one's place, or will have it, and need not be put.
 */
bool crn_draft_share(crn_draft *d, size_t v, uint64_t i, const crn_digest *digest);

/*
 * Is a block of the part, which the draft would refer to, still what was written? Without the
 * option that is believed. One that is not is shared by nobody from now on.
 */
bool crn_draft_trusts(crn_draft *d, const crn_block *b);

/* Room for the bytes of block i, to be filled before the next call: they will be stored as they
 * are, and as says what they are. */
cairn_status crn_draft_put_stored(crn_draft *d, size_t v, uint64_t i, const crn_block *as,
                                  unsigned char **ret);

/* Twins have their places once all is written. */
void crn_draft_settle_twins(crn_draft *d);

/* A draft was committed by entry: count what it refers to. */
cairn_status crn_states_take(crn_part *part, const part_entry *entry, crn_mark *m);

/* Does a block lie in the table of a variable? */
static inline bool crn_draft_has(const crn_var *v, const crn_block *block)
{
    return v->table && block >= v->table && block < v->table + v->nblocks;
}

#endif
