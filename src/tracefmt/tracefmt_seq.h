/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sequences of whole numbers, kept small as they grow: arithmetic runs, and loops of runs and of
 * loops. Everything in a trace that varies is one of these: a parameter over the calls of a place
 * in the program, the turns of a loop, the ranks that share something, a value over those ranks.
 *
 * An item of a sequence is a run (n values, a step apart; its start is given relative to the start
 * of the run before it) or a loop (n turns over a few items). Starts are relative, so what repeats
 * with a shift, such as the offsets of a nested loop, is a loop, too. The first value, the base, is
 * kept apart, so that ranks whose values differ by a constant have the same items.
 *
 *     values   0 10 20 30  100 110 120 130  200 210 220 230
 *     items    run(4 from +0 by 10)  loop(2: run(4 from +100 by 10))
 *
 * docs/format/trace.md has the bytes.
 */
#ifndef CAIRN_TRACEFMT_SEQ_H
#define CAIRN_TRACEFMT_SEQ_H

#include <stdbool.h>

#include "base/base.h"

#define CRN_RARE __attribute__((noinline, cold)) /* kept out of what each event passes */

enum {
    CRN_SEQ_DEPTH = 12,  /* loops within loops */
    CRN_SEQ_PERIOD = 64, /* items of a loop at most, for loops that are found */
};

#define CRN_SEQ_MAX ((uint64_t)1 << 48) /* values of a sequence at most */

/* An encoded sequence; owns its bytes. Without items it is the base, for ever. */
typedef struct crn_seq {
    int64_t base;
    unsigned char *at;
    size_t n;
} crn_seq;

void crn_seq_done(crn_seq *s);
cairn_status crn_seq_copy(const crn_seq *s, crn_seq *ret);
bool crn_seq_same_items(const crn_seq *a, const crn_seq *b);
bool crn_seq_equal(const crn_seq *a, const crn_seq *b);

/* Check bytes from a file; CAIRN_ECORRUPT. Every other function trusts its sequence. */
cairn_status crn_seq_check(const crn_seq *s);

/* The number of values; 0 for one without items. Takes time for the items, not the values. */
uint64_t crn_seq_count(const crn_seq *s);

/* The sum of the first n values, wrapping; a sequence that is too short starts over. */
int64_t crn_seq_sum(const crn_seq *s, uint64_t n);

/* Building: add values, encode at any time, go on. */
typedef struct crn_seq_item crn_seq_item;

typedef struct crn_seq_build {
    uint64_t count;            /* values so far */
    int64_t base;              /* the first one */
    uint64_t start, stride, n; /* the run that is growing; n = 0: none */
    uint64_t next;             /* the value that would continue it: of one value, the same */
    uint64_t before;           /* start of the run before it */
    crn_seq_item *item;        /* closed runs and loops that may still become part of a loop */
    size_t nitems, cap;
    size_t loops;   /* bytes of the loops' bodies */
    uint32_t again; /* runs that came again of the loop that is the last item; not in item yet */
    crn_buf old;    /* encoded items that left the window */
    bool failed;    /* an allocation failed */
} crn_seq_build;

void crn_seq_build_done(crn_seq_build *b);
void crn_seq_add_slow(crn_seq_build *b, int64_t v);
void crn_seq_add_run(crn_seq_build *b, int64_t v, int64_t stride, uint64_t n);

/* Add a value if it continues the growing run; false: nothing was added. */
static inline bool crn_seq_continue(crn_seq_build *b, int64_t v)
{
    if ((uint64_t)v != b->next)
        return false;
    b->count++;
    b->n++;
    b->next += b->stride;
    return true;
}

static inline void crn_seq_add(crn_seq_build *b, int64_t v)
{
    if (!crn_seq_continue(b, v))
        crn_seq_add_slow(b, v);
}

/* Bytes that b holds, for keeping within a memory bound; and without those of loops, however large
 * they are: how much of it is irregular. */
size_t crn_seq_build_nbytes(const crn_seq_build *b);
size_t crn_seq_build_irregular(const crn_seq_build *b);

/*
 * What was added so far, and one value more if more is given; b can go on. With fold, a constant
 * gets no items.
 */
cairn_status crn_seq_encode(crn_seq_build *b, const int64_t *more, bool fold, crn_seq *ret);

/* A sequence of the given values, with items even if constant. */
cairn_status crn_seq_of(const int64_t *value, size_t n, crn_seq *ret);

/* Are these its values? With a hash, to find a sequence by its values. */
bool crn_seq_is(const crn_seq *s, const int64_t *value, size_t n);
uint64_t crn_values_hash(const int64_t *value, size_t n);

/* The first na values of a, then the first nb of b. */
cairn_status crn_seq_concat(const crn_seq *a, uint64_t na, const crn_seq *b, uint64_t nb, bool fold,
                            crn_seq *ret);

/* Reading: value by value, or run by run. The sequence must outlive the iterator. */
typedef struct crn_seq_iter {
    const crn_seq *seq;
    crn_cursor c;
    uint64_t start;               /* of the current run */
    uint64_t value, stride, left; /* the next value, and what is left of the run */
    int depth;
    struct {
        crn_cursor body;
        uint64_t turns;        /* left, with the current one */
        uint64_t nitems, item; /* of the body; the next one */
    } loop[CRN_SEQ_DEPTH];
} crn_seq_iter;

void crn_seq_iter_init(crn_seq_iter *it, const crn_seq *s);

/* The next value; false at the end. */
bool crn_seq_next(crn_seq_iter *it, int64_t *ret);

/*
 * The next run: *ret_n values from *ret_v by *ret_stride; false at the end. At most max values are
 * taken. A constant gives max values each time.
 */
bool crn_seq_next_run(crn_seq_iter *it, uint64_t max, int64_t *ret_v, int64_t *ret_stride,
                      uint64_t *ret_n);

/* The index of v among ascending values, such as ranks; false if it is not there. */
bool crn_seq_find(const crn_seq *s, int64_t v, uint64_t *ret);

/* The value at an index; the index is taken modulo the count. */
int64_t crn_seq_at(const crn_seq *s, uint64_t index);

#endif
