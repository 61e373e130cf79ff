/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The decision what a mark must keep: pure, no session, no memory of the program.
 *
 * Design. A mark is taken at a place, before some region. Whether an element is needed by a program
 * that goes on from there is told by the first region behind the place that touches it. If that
 * reads the element, it is kept: copied then, when it still is what it was at the place. If it is
 * overwritten first, it is not. What nobody has modified since the end of the initialisation phase
 * is not looked at: the program makes it again. What is still undecided at the end of the
 * look-ahead is kept.
 *
 * A set of bits says which variables have undecided elements; of most variables that is all that is
 * ever known, since most accesses are to all of a variable. Boxes come in where the first access is
 * to a part: then the decision has a set of them, until then it is what was modified.
 */
#ifndef CAIRN_REGION_DECIDE_H
#define CAIRN_REGION_DECIDE_H

#include "region/region_boxes.h"

typedef enum crn_keep_rule {
    CRN_KEEP_NEEDED, /* as the accesses decide */
    CRN_KEEP_ALWAYS,
    CRN_KEEP_NEVER
} crn_keep_rule;

/* A variable. */
typedef struct crn_region_var {
    crn_box whole;
    uint64_t item;      /* bytes of an element, */
    uint64_t nbytes;    /* and of all of it */
    crn_boxes modified; /* since the end of the initialisation phase */
    bool all_modified;  /* all of it was: modified is the whole */
    crn_keep_rule rule;
} crn_region_var;

typedef CRN_VEC(crn_region_var) crn_region_vars;

/* Make v the variable that fills whole, of which nothing was modified. */
void crn_region_var_init(crn_region_var *v, const crn_box *whole, uint64_t item);
void crn_region_var_done(crn_region_var *v);

/* An access of a region, to a box of a variable that is not empty. A region that reads and writes
 * the same may have one of each, or one that does both. */
typedef struct crn_access {
    uint32_t var;
    bool reads, writes;
    bool all; /* the box is the variable */
    crn_box box;
} crn_access;

/* All that regions of one kind access. */
typedef struct crn_accesses {
    const crn_access *at;
    size_t n;
    const uint64_t *touched; /* bits of variables, as many words as the decision has */
} crn_accesses;

/* Called with what is kept: now it is to be copied. */
typedef cairn_status crn_keep_fn(void *arg, size_t var, const crn_boxes *boxes);

/* More boxes than these of one variable are not tracked: what is left of it is kept. */
enum { CRN_REGION_FRAGMENTS = 256 };

typedef struct crn_decision {
    size_t nvars;
    uint64_t *open;  /* bits: something of the variable is undecided, */
    uint64_t *known; /* and rest says what; else it is all that was modified */
    crn_boxes *rest;
} crn_decision;

cairn_status crn_decision_init(crn_decision *d, size_t nvars);
void crn_decision_done(crn_decision *d); /* a zeroed one is allowed */

/* Begin at a place. Variables that are always kept are kept at once. */
cairn_status crn_decision_begin(crn_decision *d, const crn_region_vars *vars, crn_keep_fn *keep,
                                void *arg);

/* A region is about to run, or, in a shadow, would be. To be called before crn_modify. */
cairn_status crn_decision_step(crn_decision *d, const crn_region_vars *vars, const crn_accesses *a,
                               crn_keep_fn *keep, void *arg);

/* The look-ahead is over: keep the rest, of all variables or of one. */
cairn_status crn_decision_end(crn_decision *d, const crn_region_vars *vars, crn_keep_fn *keep,
                              void *arg);
cairn_status crn_decision_end_var(crn_decision *d, const crn_region_vars *vars, size_t var,
                                  crn_keep_fn *keep, void *arg);

bool crn_decision_is_made(const crn_decision *d); /* nothing is undecided */

/* The region that is about to run modifies what it writes. */
cairn_status crn_modify(crn_region_vars *vars, const crn_accesses *a);

/* Words of a set of bits for n variables, and one of the bits. */
static inline size_t crn_bits_words(size_t n)
{
    return (n + 63) / 64;
}

static inline bool crn_bit(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static inline void crn_bit_set(uint64_t *bits, size_t i)
{
    bits[i / 64] |= UINT64_C(1) << i % 64;
}

static inline void crn_bit_clear(uint64_t *bits, size_t i)
{
    bits[i / 64] &= ~(UINT64_C(1) << i % 64);
}

#endif
