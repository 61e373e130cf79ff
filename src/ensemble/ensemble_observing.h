/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a study's configuration says about fields, places and types of observations, as the module
 * observe needs it: [space], [field NAME], [observation NAME], [region NAME].
 */
#ifndef CAIRN_ENSEMBLE_OBSERVING_H
#define CAIRN_ENSEMBLE_OBSERVING_H

#include "ensemble/ensemble_layout.h"
#include "ensemble/ensemble_study.h"
#include "observe/observe.h"

/* A part of space, for statistics. */
typedef struct crn_region {
    const char *name;
    double lo[CRN_OBS_DIMS], hi[CRN_OBS_DIMS];
} crn_region;

typedef struct crn_observing {
    crn_obs_setup setup; /* fields are numbered as the state's */
    crn_obs_field *field;
    crn_obs_type *type;
    double *deviation; /* of each field: of perturbations */
    uint64_t *smooth;  /* passes over them */
    bool *whole;       /* of each field: local filters update it by all observations */
    crn_region *region;
    size_t nregions;
    char (*coordinate)[CRN_OBS_DIMS][CRN_OBS_NAME]; /* of each field: fields of the model that have
                                                       its coordinates; "" */
    CRN_VEC(double *) owned;
} crn_observing;

/* CAIRN_EINVAL says which key is wrong. The study must outlive it. */
cairn_status crn_observing_init(crn_observing *g, const crn_study *s,
                                const crn_state_fields *fields);
void crn_observing_done(crn_observing *g);

/* Take coordinates that fields of the model have, from a state. Before observations are made rows;
 * once is enough: they do not change. */
cairn_status crn_observing_place(crn_observing *g, const crn_state_layout *layout,
                                 const unsigned char *state);

bool crn_region_has(const crn_region *r, int ndims, const double *place);

#endif
