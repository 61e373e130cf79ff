/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What server and runners of a particle filter have in common, and the server's own.
 */
#ifndef CAIRN_ENSEMBLE_PARTICLE_H
#define CAIRN_ENSEMBLE_PARTICLE_H

#include "base/base.h"

/* number of a done: there is a result; there is none, because of the model; because of storage. */
enum { CRN_DONE_WELL = 0, CRN_DONE_REFUSED = 1, CRN_DONE_STORAGE = 2 };

/* The data of a task. */
typedef struct crn_particle_task {
    uint32_t parent;
    uint32_t purpose; /* of the random numbers, */
    double deviation; /* and of what is added to the rows of the copy; 0: nothing */
    uint64_t nrows;   /* all rows, or 0 */
    double *row;      /* added to them */
} crn_particle_task;

void crn_particle_task_put(crn_buf *b, const crn_particle_task *t);

/* nrows: of the model. CAIRN_EPEER: it is no such data. */
cairn_status crn_particle_task_get(const crn_buf *data, uint64_t nrows, crn_particle_task *ret);
void crn_particle_task_done(crn_particle_task *t);

#endif
