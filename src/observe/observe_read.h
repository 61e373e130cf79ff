/* SPDX-License-Identifier: BSD-3-Clause
 *
 * observe, inside: what readers of files fill, and how operators are made.
 */
#ifndef CAIRN_OBSERVE_READ_H
#define CAIRN_OBSERVE_READ_H

#include "observe/observe.h"

#define CRN_OBS_NO_INDEX UINT64_MAX

/* An observation as a file has it. */
typedef struct crn_obs_record {
    uint64_t cycle, index, order;
    double time, value, variance, place[CRN_OBS_DIMS];
    uint32_t type;
    uint32_t group; /* CRN_OBS_NONE */
    uint32_t rank;  /* in its group */
    int ncoords;    /* of its place; 0: it has none */
} crn_obs_record;

/* Covariances that a file gives for a group of a cycle and type. */
typedef struct crn_obs_matrix {
    uint64_t cycle;
    uint32_t type, group;
    size_t n;
    double *value; /* n by n */
} crn_obs_matrix;

struct crn_obs {
    crn_obs_setup setup;
    CRN_VEC(crn_obs_type) type;
    CRN_VEC(crn_obs_record) record; /* by cycle, then as the file has them */
    CRN_VEC(crn_obs_matrix) matrix;
    CRN_VEC(const cairn_operator *) plugin; /* of each type; NULL */
    CRN_VEC(void *) library;
};

/* Files. */
cairn_status crn_obs_read_text(crn_obs *o, FILE *f);
cairn_status crn_obs_read_hdf5(crn_obs *o);

/* The number of a type; made of the field with its name, where it is not declared. */
cairn_status crn_obs_type_of(crn_obs *o, const char *name, uint32_t *ret);

/* Add a record of which time may stand for cycle: NAN where it has none. where names it. */
cairn_status crn_obs_add(crn_obs *o, const char *where, bool has_cycle, crn_obs_record *r);

/* All records are there: sort them. */
cairn_status crn_obs_settle(crn_obs *o);

/* Load the operator of a type. */
cairn_status crn_obs_plugin_load(crn_obs *o, uint32_t type);

/* The entries of an item, pushed to the list; CRN_OBS_OUTSIDE in *ret_flag. Fills in its place. */
typedef CRN_VEC(crn_obs_entry) crn_obs_entries;
cairn_status crn_obs_operate(const crn_obs *o, uint64_t cycle, crn_obs_item *item,
                             crn_obs_entries *list, crn_obs_flag *ret_flag);
cairn_observed crn_obs_observed(const crn_obs *o, uint64_t cycle, const crn_obs_item *item);

/* Order of matrices: by cycle, type and group. */
int crn_obs_matrix_order(const void *a, const void *b);

/* The blocks of a set whose items are final. */
cairn_status crn_obs_blocks_make(crn_obs_set *set);
void crn_obs_blocks_free(crn_obs_set *set);

/* The part of the blocks that is kept, of observations as they were before. */
cairn_status crn_obs_blocks_shrink(crn_obs_set *set, const crn_obs_flag *flag);

#endif
