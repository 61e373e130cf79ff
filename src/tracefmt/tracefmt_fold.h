/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Folding: the sequence of places that a thread passes becomes a few rules, as it happens and
 * within bounded memory. Only structure is folded here; what the events carried goes into columns
 * (tracefmt_build.h), whatever becomes of the structure.
 *
 * Two states take turns:
 *
 *   spelling   symbols are appended to the list of what happened; when its last p symbols equal the
 *              p before them, or the body of the rule before them, they become (part of) a rule
 *   following  the newest rule is still running: each place is looked for where the rule says it
 *              comes next. Loops inside it may take any number of turns, none at all included, and
 *              places may be missing from a turn: that is a count in a column, not a new rule. When
 *              a place comes that the rule does not know, what was begun is spelt out again.
 *
 * In the steady state of a program an event costs a comparison or two.
 */
#ifndef CAIRN_TRACEFMT_FOLD_H
#define CAIRN_TRACEFMT_FOLD_H

#include "tracefmt/tracefmt_seq.h"

enum {
    CRN_FOLD_PERIOD = 4096,    /* symbols of a rule at most */
    CRN_FOLD_LENGTH = 1 << 20, /* symbols of the list, about: beyond, events are dropped */
    CRN_FOLD_DEPTH = 64        /* rules within rules */
};

typedef struct crn_fold_symbol {
    uint32_t *body; /* of a rule; NULL for a place */
    uint32_t nbody, depth;
    uint64_t hash;       /* of the body */
    crn_seq_build count; /* column 0: repeats of a place, turns of a rule */
    uint64_t last;       /* turns of the newest meeting, not yet in count: it may still grow */
    bool has_last;
    size_t at;   /* newest index in the list */
    size_t tail; /* index in the list of the newest meeting, if it stands there itself */
} crn_fold_symbol;

typedef struct crn_fold_frame {
    const uint32_t *body; /* of the rule */
    uint32_t nbody;
    uint32_t rule;
    uint32_t pos;   /* symbols of the body that are behind us in this turn */
    uint64_t turns; /* complete ones */
} crn_fold_frame;

/* A symbol of the list, and what is needed to find repetition. */
typedef struct crn_fold_item {
    uint32_t symbol;
    size_t before;      /* index of the same symbol before it */
    size_t rule_before; /* index of the last rule before it */
    uint64_t hash;      /* of the list up to and with this one */
} crn_fold_item;

typedef struct crn_fold {
    uint32_t place; /* the place that repeats now, and how often so far: 0, none */
    uint64_t repeat;
    CRN_VEC(crn_fold_symbol) symbol;
    CRN_VEC(crn_fold_item) list;
    CRN_VEC(uint32_t) spelt; /* what is spelt out again */
    crn_fold_frame frame[CRN_FOLD_DEPTH];
    int depth; /* 0: spelling */
    uint64_t dropped;
    uint64_t *power; /* of the hash's base */
    bool failed;     /* an allocation failed: no event is taken any more */
} crn_fold;

cairn_status crn_fold_init(crn_fold *f);
void crn_fold_done(crn_fold *f);

/* A new place; its number counts places and rules together. */
cairn_status crn_fold_new_place(crn_fold *f, uint32_t *ret);

void crn_fold_move(crn_fold *f, uint32_t place);

/* The next event is at place. */
static inline void crn_fold_event(crn_fold *f, uint32_t place)
{
    if (place == f->place && f->repeat > 0)
        f->repeat++;
    else
        crn_fold_move(f, place);
}

/*
 * The whole as of now, f staying as it is: the body of the root into ret_root (an array of *ret_n,
 * to be freed), column 0 of each symbol by crn_fold_count.
 */
cairn_status crn_fold_root(const crn_fold *f, uint32_t **ret_root, size_t *ret_n);
cairn_status crn_fold_count(const crn_fold *f, uint32_t symbol, crn_seq *ret, uint64_t *ret_n);

size_t crn_fold_nbytes(const crn_fold *f);

#endif
