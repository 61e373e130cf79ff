/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/trace_fortran.h"

/* Each MPI has its own mark for "in place"; the one that is not there is a null address. */
extern char mpi_fortran_in_place_ __attribute__((weak)); /* Open MPI */
extern void *MPIR_F_MPI_IN_PLACE __attribute__((weak));  /* MPICH */

enum { STATUS = sizeof(MPI_Status) / sizeof(MPI_Fint) + 2 }; /* room for one, in either MPI */

void *crn_fortran_buf(void *buf)
{
    if (&mpi_fortran_in_place_ && buf == &mpi_fortran_in_place_)
        return MPI_IN_PLACE;
    if (&MPIR_F_MPI_IN_PLACE && MPIR_F_MPI_IN_PLACE && buf == MPIR_F_MPI_IN_PLACE)
        return MPI_IN_PLACE;
    return buf;
}

int crn_fortran_index(MPI_Fint index)
{
    return index == MPI_UNDEFINED ? MPI_UNDEFINED : index - 1;
}

int *crn_fortran_indices(crn_ev *e, MPI_Fint n, const MPI_Fint *index)
{
    crn_thread *t = e->t;
    t->index.n = 0;
    if (n == MPI_UNDEFINED || crn_vec_reserve(&t->index, (size_t)CRN_MAX(n, 1)) < 0)
        return t->index.at;
    for (MPI_Fint i = 0; i < n; i++)
        t->index.at[i] = index[i] - 1;
    return t->index.at;
}

MPI_Request *crn_fortran_requests(crn_ev *e, MPI_Fint n, const MPI_Fint *request)
{
    crn_thread *t = e->t;
    if (crn_vec_reserve(&t->handle, (size_t)CRN_MAX(n, 1)) < 0)
        return NULL;
    for (MPI_Fint i = 0; i < n; i++)
        t->handle.at[i] = PMPI_Request_f2c(request[i]);
    return t->handle.at;
}

const MPI_Datatype *crn_fortran_types(crn_ev *e, bool other, int64_t n, const MPI_Fint *type)
{
    crn_thread *t = e->t;
    if (crn_vec_reserve(&t->type[other], (size_t)CRN_MAX(n, 1)) < 0)
        return NULL;
    for (int64_t i = 0; i < n; i++)
        t->type[other].at[i] = PMPI_Type_f2c(type[i]);
    return t->type[other].at;
}

size_t crn_fortran_length(const char *name, size_t n)
{
    while (n > 0 && name[n - 1] == ' ')
        n--;
    return n;
}

static MPI_Fint *room_for(crn_ev *e, size_t n)
{
    if (crn_vec_reserve(&e->t->fstatus, CRN_MAX(n, 1) * STATUS) < 0)
        return NULL;
    return e->t->fstatus.at;
}

MPI_Fint *crn_fortran_status(crn_ev *e, MPI_Fint *status)
{
    if (status != MPI_F_STATUS_IGNORE || !e->wild)
        return status;
    MPI_Fint *own = room_for(e, 1);
    return own ? own : status;
}

MPI_Fint *crn_fortran_statuses(crn_ev *e, MPI_Fint n, MPI_Fint *statuses)
{
    if (statuses != MPI_F_STATUSES_IGNORE || !e->wild)
        return statuses;
    MPI_Fint *own = room_for(e, (size_t)CRN_MAX(n, 0));
    return own ? own : statuses;
}

void crn_fortran_status_done(crn_ev *e, const MPI_Fint *status)
{
    if (status == MPI_F_STATUS_IGNORE || !e->wild)
        return;
    PMPI_Status_f2c(status, &e->one);
    e->status = &e->one;
}

void crn_fortran_statuses_done(crn_ev *e, MPI_Fint n, const MPI_Fint *statuses)
{
    crn_thread *t = e->t;
    if (statuses == MPI_F_STATUSES_IGNORE || !e->wild ||
        crn_vec_reserve(&t->status, (size_t)CRN_MAX(n, 1)) < 0)
        return;
    size_t each = sizeof(MPI_Status) / sizeof(MPI_Fint);
    for (MPI_Fint i = 0; i < n; i++)
        PMPI_Status_f2c(statuses + (size_t)i * each, &t->status.at[i]);
    e->status = t->status.at;
}
