/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the generated wrappers for Fortran need: parameters come by reference, handles and statuses
 * in Fortran's form, indices from 1, names with blanks at the end.
 */
#ifndef CAIRN_TRACE_FORTRAN_H
#define CAIRN_TRACE_FORTRAN_H

#include "trace/trace.h"

/*
 * The routine that a wrapper stands before: by its second name, or, where there is none (as in
 * MPICH's module mpi_f08), the next one of the same name.
 */
#define CRN_FORTRAN(name)                                                                          \
    (__extension__({                                                                               \
        static _Atomic(void *) at_;                                                                \
        p##name ? p##name : (__typeof__(&name))crn_next(&at_, #name);                              \
    }))

/* A buffer; Fortran's MPI_IN_PLACE becomes C's. */
void *crn_fortran_buf(void *buf);

int crn_fortran_index(MPI_Fint index);
int *crn_fortran_indices(crn_ev *e, MPI_Fint n, const MPI_Fint *index);
MPI_Request *crn_fortran_requests(crn_ev *e, MPI_Fint n, const MPI_Fint *request);
/* Of the two lists that a call has, the first or the other one. */
const MPI_Datatype *crn_fortran_types(crn_ev *e, bool other, int64_t n, const MPI_Fint *type);
size_t crn_fortran_length(const char *name, size_t n);

/* Where the call is to put its statuses, and what they say afterwards. */
MPI_Fint *crn_fortran_status(crn_ev *e, MPI_Fint *status);
MPI_Fint *crn_fortran_statuses(crn_ev *e, MPI_Fint n, MPI_Fint *statuses);
void crn_fortran_status_done(crn_ev *e, const MPI_Fint *status);
void crn_fortran_statuses_done(crn_ev *e, MPI_Fint n, const MPI_Fint *statuses);

#endif
