/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls with which recording begins and ends, in C and Fortran, and those that only end the
 * life of a handle.
 */
#include "trace/trace.h"
#include "trace/trace_fortran.h"

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

/* Where Fortran's form was called, while it runs: MPICH's calls C's, which is recorded then. MPI
 * begins once, in one thread. */
static struct {
    const void *ret, *frame;
} fortran;

static void add_init(uint32_t call, int64_t level, int ncolumns, const void *ret, const void *frame)
{
    const bool inner = fortran.ret != NULL;
    add_simple(call, level, ncolumns, inner ? fortran.ret : ret, inner ? fortran.frame : frame);
}

CRN_EXPORT int MPI_Init(int *argc, char ***argv)
{
    int rc = PMPI_Init(argc, argv);
    if (rc == MPI_SUCCESS)
        crn_rec_start();
    add_init(CRN_CALL_MPI_Init, 0, 0, HERE);
    return rc;
}

CRN_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rc = PMPI_Init_thread(argc, argv, required, provided);
    if (rc == MPI_SUCCESS)
        crn_rec_start();
    add_init(CRN_CALL_MPI_Init_thread, required, 1, HERE);
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
        add_simple(CRN_CALL_MPI_Abort, crn_comm_of(comm)->number, 1, HERE);
        crn_keep_aside();
    }
    return PMPI_Abort(comm, code);
}

#if CRN_HAS_SESSIONS
/* A program may do without MPI_Init; then there is no world to merge the ranks' traces over. */
CRN_EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
{
    add_simple(CRN_CALL_MPI_Session_init, 0, 0, HERE);
    return PMPI_Session_init(info, handler, session);
}

CRN_EXPORT int MPI_Session_finalize(MPI_Session *session)
{
    int initialised = 0;
    PMPI_Initialized(&initialised);
    if (!initialised && atomic_load(&crn_rec.state) == CRN_BEFORE && !crn_rec.refused) {
        crn_rec.refused = true;
        crn_rec_refuse("the program uses MPI by sessions alone (MPI_Session_init); the recorder "
                       "begins with MPI_Init");
    }
    add_simple(CRN_CALL_MPI_Session_finalize, 0, 0, HERE);
    return PMPI_Session_finalize(session);
}
#endif

CRN_EXPORT int MPI_Type_free(MPI_Datatype *type)
{
    if (crn_rec_running())
        crn_type_drop(*type);
    return PMPI_Type_free(type);
}

/* ---- marks ---- */

static crn_thread *thread_at(size_t lane)
{
    crn_rec_lock();
    crn_thread *t = lane < crn_rec.thread.n ? crn_rec.thread.at[lane] : NULL;
    crn_rec_unlock();
    return t;
}

/*
 * The other threads have the mark in their lanes, wherever they are: so that their events
 * between two marks are known. Their plain logs hold what they did themselves.
 */
static void mark_others(uint64_t version)
{
    crn_record r = {.call = CRN_CALL_mark, .ncolumns = 1, .value = {(int64_t)version}};
    crn_thread *t;
    r.start = r.end = crn_now_ns();
    for (size_t i = 0; (t = thread_at(i)); i++) {
        if (t == crn_rec_self)
            continue;
        crn_short_lock(&t->lock);
        crn_build_add(&t->build, &r);
        crn_short_unlock(&t->lock);
    }
}

/*
 * A mark of the run lies here, or the program has resumed from it. libcairn calls this, if it finds
 * it in the process: so neither library needs the other.
 */
CRN_EXPORT void cairn_trace_mark(uint64_t version);

void cairn_trace_mark(uint64_t version)
{
    add_simple(CRN_CALL_mark, (int64_t)version, 1, HERE);
    if (crn_rec_running())
        mark_others(version);
}

/* A program that ends without MPI_Finalize. */
__attribute__((destructor)) static void at_end(void)
{
    if (crn_rec_running())
        crn_keep_aside();
}

/* ---- Fortran: the library's own routine does the call, since it knows Fortran's strings ---- */

#define FORTRAN_FORM(name, before, after, params, args)                                            \
    extern void p##name params __attribute__((weak));                                              \
    CRN_EXPORT void name params;                                                                   \
    void name params                                                                               \
    {                                                                                              \
        before;                                                                                    \
        CRN_FORTRAN(name) args;                                                                    \
        after;                                                                                     \
    }

#define FORTRAN(name, before, after, params, args)                                                 \
    FORTRAN_FORM(name##_, before, after, params, args)                                             \
    FORTRAN_FORM(name##__, before, after, params, args)                                            \
    FORTRAN_FORM(name##_f08_, before, after, params, args)

static void nothing(void)
{
}

static void before_init(const void *ret, const void *frame)
{
    fortran.ret = ret;
    fortran.frame = frame;
}

/* MPICH's mpi_init_ has called C's MPI_Init, which is recorded then. */
static void after_init(uint32_t call, int64_t level, int ncolumns, const void *ret,
                       const void *frame)
{
    int up = 0;
    fortran.ret = fortran.frame = NULL;
    PMPI_Initialized(&up);
    if (!up || crn_rec.state != CRN_BEFORE)
        return;
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
    add_simple(CRN_CALL_MPI_Abort, crn_comm_of(PMPI_Comm_f2c(comm))->number, 1, ret, frame);
    crn_keep_aside();
}

static void before_type_free(MPI_Fint type)
{
    if (crn_rec_running())
        crn_type_drop(PMPI_Type_f2c(type));
}

FORTRAN(mpi_init, before_init(HERE), after_init(CRN_CALL_MPI_Init, 0, 0, HERE), (MPI_Fint * ierr),
        (ierr))
FORTRAN(mpi_init_thread, before_init(HERE),
        after_init(CRN_CALL_MPI_Init_thread, *required, 1, HERE),
        (MPI_Fint * required, MPI_Fint *provided, MPI_Fint *ierr), (required, provided, ierr))
FORTRAN(mpi_finalize, before_finalize(HERE), nothing(), (MPI_Fint * ierr), (ierr))
FORTRAN(mpi_abort, before_abort(*comm, HERE), nothing(),
        (MPI_Fint * comm, MPI_Fint *code, MPI_Fint *ierr), (comm, code, ierr))
FORTRAN(mpi_type_free, before_type_free(*type), nothing(), (MPI_Fint * type, MPI_Fint *ierr),
        (type, ierr))
