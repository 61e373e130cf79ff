/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dynamic mode: each state of a study is stored by the codec with the best rate that keeps a bound,
 * variable by variable, and what goes on is what a reader of the shelf would get.
 *
 * The server says before each cycle which codecs may be used, in their order; the runners code,
 * check, fall to the next, and write down what they used before they put the state. In trial
 * cycles, the first and each dynamic.retry-th after it, all codecs are tried. From their rates, and
 * from nothing that depends on time, the order of the following cycles is made: any layout and any
 * deaths give the same. Only where the gain is measured (dynamic.measure) do clocks decide whether
 * states are coded at all.
 *
 *     c<cycle>.codecs        orders: written before the first task of the cycle is given
 *     c<cycle>.coded<m>      of member m: what was tried and used; until the next orders are there
 *     dynamic.csv            the same, of all cycles
 */
#ifndef CAIRN_ENSEMBLE_DYNAMIC_H
#define CAIRN_ENSEMBLE_DYNAMIC_H

#include <cairn/state.h>

#include "comm/comm.h"
#include "ensemble/ensemble_side.h"

/* Codecs of a variable. */
typedef struct crn_ladder {
    char field[64]; /* "": of all that have none of their own */
    double sigma;   /* the largest error that is tolerated */
    crn_codings coding;
} crn_ladder;

typedef CRN_VEC(crn_ladder) crn_ladders;

typedef struct crn_dynamic {
    bool check, measure;
    uint32_t retry;
    crn_ladders ladder;
} crn_dynamic;

/* What a study's configuration says; *ret is NULL where it has no dynamic mode. CAIRN_EINVAL. */
cairn_status crn_dynamic_read(const crn_study *s, crn_dynamic **ret);
void crn_dynamic_free(crn_dynamic *d); /* NULL is allowed */

/* Ladders from a JSON file as seed 003's Listing 9.1 has it. */
cairn_status crn_listing_dynamic(const char *path, crn_ladders *ret);

void crn_ladders_done(crn_ladders *l);

/* --- orders --------------------------------------------------------------------------------- */

/* For a cycle: of each field that may be coded, the codecs in the order of their use. */
typedef struct crn_orders {
    uint32_t cycle;
    bool check, trial, stopped;
    uint32_t control; /* each so many-th member is stored without loss, to compare; 0: none */
    crn_ladders ladder;
} crn_orders;

void crn_orders_put(const crn_orders *o, crn_buf *b);
cairn_status crn_orders_get(const char *text, crn_orders *ret);
void crn_orders_done(crn_orders *o);

/* --- runners -------------------------------------------------------------------------------- */

/* What a state is to become: between choosing and the end of its put. */
typedef struct crn_chosen {
    size_t n;
    const cairn_field *field;
    void **reads; /* of each field: what is read of it; NULL: what was put */
} crn_chosen;

/*
 * Choose codecs for the fields of a member's state, tell the shelf, and write them down. Then the
 * state is put, and crn_dynamic_settle leaves in its memory what a reader gets. Collective. A
 * failure leaves the fields to be stored without loss.
 */
cairn_status crn_dynamic_choose(const char *dir, crn_comm *comm, cairn_shelf *shelf, uint32_t cycle,
                                uint32_t member, const cairn_field *field, size_t n,
                                crn_chosen *ret);
void crn_dynamic_settle(crn_chosen *c);

#endif
