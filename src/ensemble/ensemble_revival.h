/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the death of the server costs: by the model (plan), with the times that this server has
 * measured, and as it was, if this server has taken up the study of another one.
 */
#ifndef CAIRN_ENSEMBLE_REVIVAL_H
#define CAIRN_ENSEMBLE_REVIVAL_H

#include "base/base.h"

typedef struct crn_revival {
    double propagate, update, keep; /* sums of seconds over cycles */
    uint32_t ncycles, nkept;
    double get_analysis, get_background; /* seconds of all states; 0: this server has read none */
    /* of a study that was taken up */
    bool taken_up;
    uint64_t died_ns;      /* wall clock; 0: not known */
    double elapsed;        /* seconds of the cycle at that time */
    uint32_t cycle, ndone; /* what there was: members done in the cycle */
    double cost;           /* seconds until that was there again; 0: not yet */
} crn_revival;

#endif
