/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The model's side: what <cairn/ensemble.h> declares.
 */
#include "ensemble/ensemble_member.h"

const char *cairn_member_error(void)
{
    return crn_err_peek()->text;
}

int cairn_member_open(MPI_Comm comm, uint64_t nsteps, cairn_ensemble **ret)
{
    cairn_ensemble *e;
    CRN_FAIL_IF(!ret, CAIRN_EINVAL, "cairn_member_open: an argument is NULL");
    *ret = NULL;
    CRN_TRY(crn_alloc(&e, 1));
    cairn_status rc = crn_comm_create(comm, &e->comm);
    if (rc < 0) {
        free(e);
        return rc;
    }
    crn_comm_set_patient(e->comm, true);
    e->mpi = comm;
    e->alone_steps = nsteps;
    rc = crn_particle_create(e, &e->particle);
    if (rc == CAIRN_OK && !e->particle)
        rc = crn_runner_create(e, &e->runner);
    if (rc < 0)
        cairn_member_close(e);
    else
        *ret = e;
    return rc;
}

cairn_status crn_member_split(cairn_ensemble *e, int node)
{
    CRN_FAIL_IF(MPI_Comm_split(e->mpi, node, crn_comm_rank(e->comm), &e->node) != MPI_SUCCESS,
                CAIRN_EPEER, "MPI cannot part the ranks by their nodes");
    e->split = true;
    return CAIRN_OK;
}

cairn_status crn_member_open_shelf(cairn_ensemble *e, const char *path, cairn_shelf **ret)
{
    int rc = cairn_shelf_open_group(e->node, path, NULL, ret);
    CRN_FAIL_IF(rc < 0, (cairn_status)rc, "%s", cairn_error_text());
    return CAIRN_OK;
}

static cairn_status add_field(cairn_ensemble *e, cairn_role role, const cairn_field *field)
{
    crn_member_field *f;
    CRN_FAIL_IF(!field, CAIRN_EINVAL, "cairn_member_field: an argument is NULL");
    CRN_TRY(crn_member_field_check(e, role, field));
    CRN_TRY(crn_alloc(&f, 1));
    memcpy(f->name, field->name, strlen(field->name));
    f->role = role;
    f->piece = *field;
    f->piece.name = f->name;
    cairn_status rc = crn_vec_push(&e->field, f);
    if (rc < 0)
        free(f);
    return rc;
}

int cairn_member_field(cairn_ensemble *e, cairn_role role, const cairn_field *field)
{
    CRN_FAIL_IF(!e, CAIRN_EINVAL, "cairn_member_field: an argument is NULL");
    size_t before = e->field.n;
    cairn_status rc = crn_comm_agree(e->comm, add_field(e, role, field));
    if (rc < 0 && e->field.n > before) /* another rank refused it */
        free(e->field.at[--e->field.n]);
    return rc;
}

static int next_alone(cairn_ensemble *e, cairn_task *task)
{
    bool first = !e->begun;
    e->begun = true;
    *task = (cairn_task){.struct_bytes = sizeof *task, .nsteps = e->alone_steps};
    return first && e->alone_steps > 0;
}

static int next_in_study(cairn_ensemble *e, cairn_task *task)
{
    return e->particle ? crn_particle_next(e, task) : crn_runner_next(e, task);
}

int cairn_member_next(cairn_ensemble *e, cairn_task *task)
{
    cairn_task mine;
    CRN_FAIL_IF(!e || !task, CAIRN_EINVAL, "cairn_member_next: an argument is NULL");
    CRN_TRY(crn_struct_check(task));
    int more = e->runner || e->particle ? next_in_study(e, &mine) : next_alone(e, &mine);
    if (more > 0)
        CRN_TRY(crn_struct_out(&mine, task));
    return more;
}

int cairn_member_refuse(cairn_ensemble *e, const char *why)
{
    CRN_FAIL_IF(!e, CAIRN_EINVAL, "cairn_member_refuse: an argument is NULL");
    if (e->runner)
        crn_runner_refuse(e->runner, why);
    if (e->particle)
        crn_particle_refuse(e->particle, why);
    return CAIRN_OK;
}

bool cairn_member_is_alone(const cairn_ensemble *e)
{
    return !e->runner && !e->particle;
}

void cairn_member_close(cairn_ensemble *e)
{
    if (!e)
        return;
    crn_runner_free(e->runner);
    crn_particle_free(e->particle);
    if (e->split)
        MPI_Comm_free(&e->node);
    for (size_t i = 0; i < e->field.n; i++)
        free(e->field.at[i]);
    crn_vec_done(&e->field);
    crn_comm_free(e->comm);
    free(e);
}
