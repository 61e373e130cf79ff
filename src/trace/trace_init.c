/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls with which recording begins and ends, in C and Fortran, and those that only end the
 * life of a handle.
 */
#include "trace/trace.h"

static void add_simple(uint32_t call, int64_t v, int ncolumns, const void *ret, const void *frame)
{
    crn_ev e;
    if (!crn_ev_enter(&e, call, ret, frame))
        return;
    e.r.value[0] = v;
    e.r.ncolumns = ncolumns;
    crn_ev_start(&e);
    crn_ev_stop(&e);
    crn_ev_leave(&e);
}

#define HERE __builtin_return_address(0), __builtin_frame_address(0)

CRN_EXPORT int MPI_Init(int *argc, char ***argv)
{
    int rc = PMPI_Init(argc, argv);
    if (rc == MPI_SUCCESS)
        crn_rec_start();
    add_simple(CRN_CALL_MPI_Init, 0, 0, HERE);
    return rc;
}

CRN_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rc = PMPI_Init_thread(argc, argv, required, provided);
    if (rc == MPI_SUCCESS)
        crn_rec_start();
    add_simple(CRN_CALL_MPI_Init_thread, required, 1, HERE);
    return rc;
}

CRN_EXPORT int MPI_Finalize(void)
{
    add_simple(CRN_CALL_MPI_Finalize, 0, 0, HERE);
    if (crn_rec_running())
        crn_finish();
    return PMPI_Finalize();
}

CRN_EXPORT int MPI_Abort(MPI_Comm comm, int code)
{
    if (crn_rec_running()) {
        add_simple(CRN_CALL_MPI_Abort, crn_comm_of(comm).number, 1, HERE);
        crn_keep_aside();
    }
    return PMPI_Abort(comm, code);
}

CRN_EXPORT int MPI_Type_free(MPI_Datatype *type)
{
    if (crn_rec_running())
        crn_type_drop(*type);
    return PMPI_Type_free(type);
}

/* A program that ends without MPI_Finalize. */
__attribute__((destructor)) static void at_end(void)
{
    if (crn_rec_running())
        crn_keep_aside();
}

/* ---- Fortran: the library's own routine does the call, since it knows Fortran's strings ---- */

#define FORWARD(name, ...)                                                                         \
    extern void p##name(__VA_ARGS__) __attribute__((weak));                                        \
    CRN_EXPORT void name(__VA_ARGS__);

FORWARD(mpi_init_, MPI_Fint *ierr)
FORWARD(mpi_init_f08_, MPI_Fint *ierr)
FORWARD(mpi_init_thread_, MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierr)
FORWARD(mpi_init_thread_f08_, MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierr)
FORWARD(mpi_finalize_, MPI_Fint *ierr)
FORWARD(mpi_finalize_f08_, MPI_Fint *ierr)
FORWARD(mpi_abort_, MPI_Fint *comm, MPI_Fint *code, MPI_Fint *ierr)
FORWARD(mpi_abort_f08_, MPI_Fint *comm, MPI_Fint *code, MPI_Fint *ierr)
FORWARD(mpi_type_free_, MPI_Fint *type, MPI_Fint *ierr)
FORWARD(mpi_type_free_f08_, MPI_Fint *type, MPI_Fint *ierr)

static void after_init(uint32_t call, int64_t level, int ncolumns, const void *ret,
                       const void *frame)
{
    int up = 0;
    PMPI_Initialized(&up);
    if (up)
        crn_rec_start();
    add_simple(call, level, ncolumns, ret, frame);
}

static void before_finalize(const void *ret, const void *frame)
{
    add_simple(CRN_CALL_MPI_Finalize, 0, 0, ret, frame);
    if (crn_rec_running())
        crn_finish();
}

static void before_abort(MPI_Fint comm, const void *ret, const void *frame)
{
    if (!crn_rec_running())
        return;
    add_simple(CRN_CALL_MPI_Abort, crn_comm_of(PMPI_Comm_f2c(comm)).number, 1, ret, frame);
    crn_keep_aside();
}

void mpi_init_(MPI_Fint *ierr)
{
    pmpi_init_(ierr);
    after_init(CRN_CALL_MPI_Init, 0, 0, HERE);
}

void mpi_init_f08_(MPI_Fint *ierr)
{
    pmpi_init_f08_(ierr);
    after_init(CRN_CALL_MPI_Init, 0, 0, HERE);
}

void mpi_init_thread_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierr)
{
    pmpi_init_thread_(required, provided, ierr);
    after_init(CRN_CALL_MPI_Init_thread, *required, 1, HERE);
}

void mpi_init_thread_f08_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierr)
{
    pmpi_init_thread_f08_(required, provided, ierr);
    after_init(CRN_CALL_MPI_Init_thread, *required, 1, HERE);
}

void mpi_finalize_(MPI_Fint *ierr)
{
    before_finalize(HERE);
    pmpi_finalize_(ierr);
}

void mpi_finalize_f08_(MPI_Fint *ierr)
{
    before_finalize(HERE);
    pmpi_finalize_f08_(ierr);
}

void mpi_abort_(MPI_Fint *comm, MPI_Fint *code, MPI_Fint *ierr)
{
    before_abort(*comm, HERE);
    pmpi_abort_(comm, code, ierr);
}

void mpi_abort_f08_(MPI_Fint *comm, MPI_Fint *code, MPI_Fint *ierr)
{
    before_abort(*comm, HERE);
    pmpi_abort_f08_(comm, code, ierr);
}

void mpi_type_free_(MPI_Fint *type, MPI_Fint *ierr)
{
    if (crn_rec_running())
        crn_type_drop(PMPI_Type_f2c(*type));
    pmpi_type_free_(type, ierr);
}

void mpi_type_free_f08_(MPI_Fint *type, MPI_Fint *ierr)
{
    if (crn_rec_running())
        crn_type_drop(PMPI_Type_f2c(*type));
    pmpi_type_free_f08_(type, ierr);
}
