/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which MPI the program uses, found by symbols without calling it: a library that was compiled for
 * another one must not make a single call, since even the handle of all ranks means something else.
 */
#ifndef CAIRN_BASE_MPI_H
#define CAIRN_BASE_MPI_H

typedef enum crn_mpi_kind {
    CRN_MPI_UNKNOWN, /* none, or one that is neither */
    CRN_MPI_OPEN,    /* Open MPI */
    CRN_MPI_MPICH    /* MPICH or its kin */
} crn_mpi_kind;

crn_mpi_kind crn_mpi_of_program(void);
const char *crn_mpi_name(crn_mpi_kind kind);

/* What a recorder of the wrong MPI appends to the trace's name for a note that says so, which
 * 'cairn trace record' reads and removes. */
#define CRN_MPI_REFUSED ".refused"

#endif
