/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ensemble: studies of many members. Row 5. A library of its own, libcairn-ensemble; states pass
 * through the public <cairn/state.h>.
 *
 *     ensemble_member.c   the model's side: fields, tasks
 */
#ifndef CAIRN_ENSEMBLE_ENSEMBLE_H
#define CAIRN_ENSEMBLE_ENSEMBLE_H

#include <mpi.h>

#include <cairn/ensemble.h>

#include "base/base.h"
#include "comm/comm.h"

enum { CRN_MEMBER_FIELDS = 256 };

/* A field of the state, as the model declared it. */
typedef struct crn_member_field {
    char name[64];
    cairn_role role;
    cairn_field piece; /* its name points to name */
} crn_member_field;

struct cairn_ensemble {
    crn_comm *comm;
    uint64_t alone_steps;
    bool begun;
    CRN_VEC(crn_member_field *) field;
};

/* Is the field one that may be declared beside those that are there? CAIRN_EINVAL. */
cairn_status crn_member_field_check(const cairn_ensemble *e, cairn_role role, const cairn_field *f);

#endif
