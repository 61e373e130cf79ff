/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mark in the making: what store_draft.c prepares and store_commit.c writes.
 */
#ifndef CAIRN_STORE_DRAFT_H
#define CAIRN_STORE_DRAFT_H

#include "store/store_gather.h"

/* What a block of a draft is. */
enum { BLOCK_MISSING, BLOCK_INHERITED, BLOCK_PUT };

typedef struct draft_var {
    unsigned char *state; /* of each block */
    uint64_t missing;     /* blocks that must still be put */
    bool same_table;      /* as in the newest mark: nothing was put, nothing added or cut */
    crn_encoding encoding;
} draft_var;

struct crn_draft {
    crn_part *part;
    crn_mark *mark;
    CRN_VEC(draft_var) var; /* one for each variable of the mark */
    uint64_t file_bytes;    /* before it; UINT64_MAX once it is committed */
    size_t cap;             /* of mark->var */
    crn_gather *gather;     /* the part's */
    crn_extent room;        /* kept for tables and record; what is left of it is free */
    uint64_t meta_bytes;
    uint64_t page_bytes; /* of them, for pages of the record */
    uint64_t nlost; /* pieces that the newest mark has but storage lost: they are not inherited */
    crn_err broken; /* why it cannot be committed any more: an add or a put has failed half-way */
    crn_block_fn *watch;
    void *watch_arg;
    size_t watch_var; /* of the block before: blocks come in rows */
};

/* Does a block lie in the table of a variable? */
static inline bool crn_draft_has(const crn_var *v, const crn_block *block)
{
    return v->table && block >= v->table && block < v->table + v->nblocks;
}

#endif
