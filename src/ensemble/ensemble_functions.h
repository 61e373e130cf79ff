/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of the user's own for validators (<cairn/validator_plugin.h>). They run in child
 * processes, which share nothing with the validator but where they leave their numbers: one that
 * crashes or does not end loses its own numbers and no others.
 */
#ifndef CAIRN_ENSEMBLE_FUNCTIONS_H
#define CAIRN_ENSEMBLE_FUNCTIONS_H

#include <cairn/validator_plugin.h>

#include "ensemble/ensemble_study.h"

enum { CRN_FUNCTION_NAME = 32, CRN_FUNCTIONS = 256 };

typedef struct crn_function {
    char name[CRN_FUNCTION_NAME];
    uint32_t file, index; /* of which shared object, and which of its functions */
    cairn_join how;
    bool compares;
} crn_function;

typedef struct crn_functions {
    char **file;
    uint32_t nfiles, n;
    crn_function at[CRN_FUNCTIONS];
    double patience_s; /* for one function and stretch, all states */
} crn_functions;

/* Why a function has no number: below 0 it took too long, above 0 the signal that ended it. */
enum { CRN_FUNCTION_WELL = 0, CRN_FUNCTION_LATE = -1, CRN_FUNCTION_LEFT = 1000 };

/* What a study names; CAIRN_EINVAL where it cannot be loaded, or has no such table. */
cairn_status crn_functions_open(const crn_study *s, crn_functions *ret);
void crn_functions_done(crn_functions *f);

/* States of a stretch, number ensemble * nmembers + member. */
typedef struct crn_function_case {
    cairn_stretch stretch; /* but for setting and member */
    uint32_t nensembles, nmembers;
    const char *const *setting; /* of ensembles */
    const double *const *value; /* of states */
    void (*beat)(void *arg);    /* while it waits */
    void *arg;
} crn_function_case;

/* All functions of all states: value[function * nstates + state], why[function]. Comparisons of
 * ensemble 0 are NaN. CAIRN_ENOMEM, CAIRN_EIO. */
cairn_status crn_functions_call(const crn_functions *f, const crn_function_case *c, double *value,
                                int32_t *why);

/* Join what n stretches said of the states: value[stretch][state], to ret[state]. */
cairn_status crn_functions_join(const crn_functions *f, uint32_t function,
                                const double *const *value, size_t n, uint32_t nstates, double *ret,
                                int32_t *why);

#endif
