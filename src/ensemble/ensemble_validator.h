/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A validator, inside: its slices, what was found in them, and the tables of a cycle
 * (ensemble_validator_tables.c).
 */
#ifndef CAIRN_ENSEMBLE_VALIDATOR_H
#define CAIRN_ENSEMBLE_VALIDATOR_H

#include <cairn/state.h>

#include "ensemble/ensemble_extra.h"
#include "ensemble/ensemble_side.h"

/* A box of a variable of at most SLICE elements, which are neighbours in memory; or, with planes,
 * all planes of a member, whose structure is compared. */
typedef struct crn_validator_slice {
    size_t field;
    uint64_t offset[8], count[8];
    uint64_t first, all; /* the place of its first element; elements of the variable */
    size_t n;
    bool planes;
    uint32_t member;
} crn_validator_slice;

typedef CRN_VEC(crn_validator_slice) crn_validator_slices;

typedef struct crn_validator {
    crn_study *s;
    const crn_side *side;
    cairn_shelf *shelf;
    crn_link *launcher;
    uint32_t number;
    crn_state_fields field;
    crn_validator_slices slice;
    double *weight, **value; /* of members; of states */
    crn_functions function;
    const char **setting; /* names, of ensembles */
    uint32_t nstates;
    uint64_t beat_ns;
} crn_validator;

/* What all slices of a variable say together. */
typedef struct crn_validated {
    crn_spread sums;
    crn_extra extra;
    size_t nsampled;
    double *structure;       /* [state]; NULL: it has no planes */
    CRN_VEC(double *) value; /* of each slice, [function][state] */
    int32_t *why;            /* [function]: the first reason why there is no number */
} crn_validated;

/* All tables of a cycle; the statistics last, whose file says that it is validated. rate: of
 * [state][field]. */
cairn_status crn_validator_write(const crn_validator *v, uint32_t cycle, const crn_validated *all,
                                 const double *rate);

#endif
