/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The model's side of an ensemble, inside.
 */
#ifndef CAIRN_ENSEMBLE_MEMBER_H
#define CAIRN_ENSEMBLE_MEMBER_H

#include <mpi.h>

#include <cairn/ensemble.h>
#include <cairn/state_mpi.h>

#include "base/base.h"
#include "comm/comm.h"
#include "ensemble/ensemble_layout.h"
#include "ensemble/ensemble_zmq.h"

/* A field of the state, as the model declared it. */
typedef struct crn_member_field {
    char name[64];
    cairn_role role;
    cairn_field piece; /* its name points to name */
} crn_member_field;

/* The model's part in a study; NULL where it runs alone. */
typedef struct crn_member_runner crn_member_runner;
typedef struct crn_particle_runner crn_particle_runner; /* of a particle filter */

struct cairn_ensemble {
    crn_comm *comm;
    MPI_Comm mpi; /* the program's, for the shelf */
    uint64_t alone_steps;
    bool begun;
    CRN_VEC(crn_member_field *) field;
    crn_member_runner *runner;
    crn_particle_runner *particle; /* instead of runner */
    MPI_Comm node;                 /* of its ranks on this node, for its cache */
    bool split;
};

/* Is the field one that may be declared beside those that are there? CAIRN_EINVAL. */
cairn_status crn_member_field_check(const cairn_ensemble *e, cairn_role role, const cairn_field *f);

/* The fields as their pieces in global arrays. Collective; agreed. */
cairn_status crn_member_pieces(cairn_ensemble *e, crn_state_fields *ret);

/* Part the ranks by their node, once; and open a shelf for those of this node. Collective. */
cairn_status crn_member_split(cairn_ensemble *e, int node);
cairn_status crn_member_open_shelf(cairn_ensemble *e, const char *path, cairn_shelf **ret);

/* The same as the calls below, where the study has a particle filter. */
cairn_status crn_particle_create(cairn_ensemble *e, crn_particle_runner **ret);
void crn_particle_free(crn_particle_runner *p);
int crn_particle_next(cairn_ensemble *e, cairn_task *ret);
void crn_particle_refuse(crn_particle_runner *p, const char *why);

/* Join the study that has started this process, if one has. Collective. */
cairn_status crn_runner_create(cairn_ensemble *e, crn_member_runner **ret);
void crn_runner_free(crn_member_runner *r);

/* Hand over the last result, if there is one, and get the next task: 1, 0: the study is over, or a
 * failure. Collective. */
int crn_runner_next(cairn_ensemble *e, cairn_task *ret);

/* The last task failed, because of the model. Collective. */
void crn_runner_refuse(crn_member_runner *r, const char *why);

#endif
