/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States in HDF5 files, which netCDF-4 files are, too: of models that are run by command, and for
 * people who want to read the states of a study.
 */
#ifndef CAIRN_ENSEMBLE_HDF5_H
#define CAIRN_ENSEMBLE_HDF5_H

#include "ensemble/ensemble_layout.h"

/* A dataset of a file, as a field: its name in the file, and data for all of it. */
typedef struct crn_dataset {
    char path[256]; /* "group/x" */
    crn_state_field field;
    unsigned char *data;
} crn_dataset;

typedef CRN_VEC(crn_dataset) crn_datasets;

/*
 * The datasets of a file that lists name (names between spaces or commas; "*" in carried: all
 * others that have numbers), with memory for their data. CAIRN_EINVAL: one is not there, or of no
 * type that its role allows. CAIRN_ENOTFOUND, CAIRN_EUNSUPPORTED, CAIRN_EIO.
 */
cairn_status crn_datasets_find(const char *file, const char *assimilated, const char *carried,
                               const char *parameter, crn_datasets *ret);
void crn_datasets_done(crn_datasets *d);

/* Fill the data from a file, whose datasets must have the same shapes, or put it into one. */
cairn_status crn_datasets_read(const char *file, crn_datasets *d);
cairn_status crn_datasets_write(const char *file, const crn_datasets *d);

/* One process may write it all, or several, each in its turn. */
typedef struct crn_ensemble_turn {
    bool first, last;
} crn_ensemble_turn;

/* Write n states, of these members, as one file: for each field a dataset [n][field's shape], and
 * "member". Atomic. NULL: a state that another process writes. */
cairn_status crn_ensemble_write(const char *file, const crn_state_layout *l,
                                unsigned char *const *state, const uint32_t *member, uint32_t n,
                                crn_ensemble_turn turn);

#endif
