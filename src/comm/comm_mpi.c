/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Communicators over MPI. Every operation is started in its non-blocking form and completed in one
 * place (finish), so that a patient communicator can wait for any of them without holding a core;
 * but for small reductions, of which programs make one in each step.
 */
#include <mpi.h>

#include "comm/comm_ops.h"

#include <sched.h>
#include <time.h>

typedef struct mpi_comm {
    crn_comm base;
    MPI_Comm mpi;
} mpi_comm;

static const crn_comm_ops mpi_ops;

static MPI_Comm mpi_of(const crn_comm *c)
{
    return ((const mpi_comm *)c)->mpi;
}

/* Forward a failure of MPI with MPI's own words. */
#define CRN_TRY_MPI(expr)                                                                          \
    do {                                                                                           \
        int crn_mpi_ = (expr);                                                                     \
        if (crn_mpi_ != MPI_SUCCESS)                                                               \
            return fail_mpi(__LINE__, crn_mpi_);                                                   \
    } while (0)

static cairn_status code_of(int error)
{
    int class = MPI_ERR_UNKNOWN;
    MPI_Error_class(error, &class);
    switch (class) {
    case MPI_ERR_NO_MEM:
        return CAIRN_ENOMEM;
    case MPI_ERR_ARG:
    case MPI_ERR_BUFFER:
    case MPI_ERR_COMM:
    case MPI_ERR_COUNT:
    case MPI_ERR_OP:
    case MPI_ERR_RANK:
    case MPI_ERR_REQUEST:
    case MPI_ERR_ROOT:
    case MPI_ERR_TAG:
    case MPI_ERR_TRUNCATE:
    case MPI_ERR_TYPE:
        return CAIRN_EINTERNAL;
    default:
        return CAIRN_EPEER;
    }
}

static cairn_status fail_mpi(int line, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    if (MPI_Error_string(error, text, &n) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", error);
    return crn_err_raise(__FILE__, line, code_of(error), 0, "MPI failed: %s", text);
}

/*
 * Wait a little before the next look at a request. MPICH spins inside MPI_Wait, which stops
 * everything where ranks share cores; so the core is offered to others after the first looks, which
 * a short message needs. A patient communicator soon sleeps, for longer and longer.
 */
static void pause_before(const crn_comm *c, unsigned look)
{
    enum { LOOKS = 64, FIRST_NS = 12500, DOUBLINGS = 4 }; /* up to 0.2 ms */
    if (look < LOOKS && !c->patient)
        return;
    if (look < LOOKS || !c->patient)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = FIRST_NS << CRN_MIN(look - LOOKS, DOUBLINGS)},
                  NULL);
}

/*
 * MPI moves data only inside its calls, and a long message takes many of them. A look that took
 * long has moved some, and more will follow soon: patience starts anew, or the transfer would
 * advance by one fragment per sleep.
 */
static cairn_status finish(const crn_comm *c, MPI_Request *req, MPI_Status *status)
{
    /* a look that finds nothing takes under 1 us, copying 32 KiB over 3 */
    enum { MOVING_NS = 2000 };
    for (unsigned look = 0;; look++) {
        int done;
        uint64_t start = crn_now_ns();
        CRN_TRY_MPI(MPI_Test(req, &done, status));
        if (done)
            return CAIRN_OK;
        if (crn_now_ns() - start > MOVING_NS)
            look = 0;
        pause_before(c, look);
    }
}

/* Make c stand for mpi, on which failures are returned from now on. */
static void fill(mpi_comm *c, MPI_Comm mpi)
{
    int level = MPI_THREAD_SINGLE;
    *c = (mpi_comm){.mpi = mpi, .base = {.ops = &mpi_ops, .piece = CRN_COMM_PIECE}};
    MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi, &c->base.rank);
    MPI_Comm_size(mpi, &c->base.size);
    MPI_Query_thread(&level);
    c->base.threaded = level == MPI_THREAD_MULTIPLE;
}

/* Duplicate the program's communicator so that even a failure to do so does not end the program. */
static cairn_status dup_quietly(MPI_Comm mpi, MPI_Comm *ret)
{
    MPI_Errhandler theirs;
    CRN_TRY_MPI(MPI_Comm_get_errhandler(mpi, &theirs));
    MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN);
    int error = MPI_Comm_dup(mpi, ret);
    MPI_Comm_set_errhandler(mpi, theirs);
    MPI_Errhandler_free(&theirs);
    CRN_TRY_MPI(error);
    return CAIRN_OK;
}

/* Before the first call: with the other's library, even this one would crash. */
static cairn_status check_mpi(void)
{
#ifdef OPEN_MPI
    const crn_mpi_kind ours = CRN_MPI_OPEN;
#else
    const crn_mpi_kind ours = CRN_MPI_MPICH;
#endif
    const crn_mpi_kind theirs = crn_mpi_of_program();
    CRN_FAIL_IF(theirs != CRN_MPI_UNKNOWN && theirs != ours, CAIRN_EUNSUPPORTED,
                "this libcairn was built for %s, but the program uses %s: link it with the "
                "libcairn that was built with %s",
                crn_mpi_name(ours), crn_mpi_name(theirs), crn_mpi_name(theirs));
    return CAIRN_OK;
}

bool crn_mpi_runs(void)
{
    int started = 0, ended = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    return started && !ended;
}

cairn_status crn_comm_create(MPI_Comm mpi, crn_comm **ret)
{
    CRN_TRY(check_mpi());
    if (mpi == MPI_COMM_SELF && !crn_mpi_runs())
        return crn_comm_create_self(ret);
    CRN_FAIL_IF(!crn_mpi_runs(), CAIRN_EINVAL,
                "MPI is not running; call MPI_Init before, and nothing after MPI_Finalize");
    CRN_FAIL_IF(mpi == MPI_COMM_NULL, CAIRN_EINVAL, "the communicator is MPI_COMM_NULL");
    int inter = 0;
    MPI_Comm_test_inter(mpi, &inter);
    CRN_FAIL_IF(inter, CAIRN_EINVAL, "an inter-communicator cannot be used; merge it first");
    MPI_Comm own = MPI_COMM_NULL;
    CRN_TRY(dup_quietly(mpi, &own));
    /* agreement needs a communicator before there is memory for one */
    mpi_comm on_stack, *c = NULL;
    fill(&on_stack, own);
    cairn_status rc = crn_comm_agree(&on_stack.base, crn_alloc(&c, 1));
    if (rc < 0) {
        MPI_Comm_free(&own);
        free(c);
        return rc;
    }
    *c = on_stack;
    *ret = &c->base;
    return CAIRN_OK;
}

/* Memory for a new communicator, on all ranks of c or on none. */
static cairn_status alloc_all(crn_comm *c, mpi_comm **ret)
{
    mpi_comm *child = NULL;
    cairn_status rc = crn_comm_agree(c, crn_alloc(&child, 1));
    if (rc < 0)
        free(child);
    else
        *ret = child;
    return rc;
}

static cairn_status start_and_finish_dup(crn_comm *c, MPI_Comm *ret)
{
    MPI_Request req;
    CRN_TRY_MPI(MPI_Comm_idup(mpi_of(c), ret, &req));
    return finish(c, &req, MPI_STATUS_IGNORE);
}

static cairn_status mpi_dup(crn_comm *c, crn_comm **ret)
{
    mpi_comm *child;
    MPI_Comm own = MPI_COMM_NULL;
    CRN_TRY(alloc_all(c, &child));
    cairn_status rc = start_and_finish_dup(c, &own);
    if (rc < 0) {
        free(child);
        return rc;
    }
    fill(child, own);
    *ret = &child->base;
    return CAIRN_OK;
}

static void mpi_destroy(crn_comm *c)
{
    MPI_Comm mpi = mpi_of(c);
    if (crn_mpi_runs())
        MPI_Comm_free(&mpi);
    free(c);
}

static cairn_status mpi_leader(crn_comm *c, int *ret)
{
    MPI_Comm node;
    CRN_TRY_MPI(
        MPI_Comm_split_type(mpi_of(c), MPI_COMM_TYPE_SHARED, c->rank, MPI_INFO_NULL, &node));
    MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
    int leader;
    int error = MPI_Allreduce(&c->rank, &leader, 1, MPI_INT, MPI_MIN, node);
    MPI_Comm_free(&node);
    CRN_TRY_MPI(error);
    *ret = leader;
    return CAIRN_OK;
}

static cairn_status mpi_barrier(crn_comm *c)
{
    MPI_Request req;
    CRN_TRY_MPI(MPI_Ibarrier(mpi_of(c), &req));
    return finish(c, &req, MPI_STATUS_IGNORE);
}

static cairn_status mpi_bcast(crn_comm *c, void *data, int nbytes, int root)
{
    MPI_Request req;
    CRN_TRY_MPI(MPI_Ibcast(data, nbytes, MPI_BYTE, root, mpi_of(c), &req));
    return finish(c, &req, MPI_STATUS_IGNORE);
}

static cairn_status mpi_gather(crn_comm *c, const void *send, int nbytes, int root, void *recv)
{
    MPI_Request req;
    MPI_Comm mpi = mpi_of(c);
    if (root == CRN_COMM_ALL)
        CRN_TRY_MPI(MPI_Iallgather(send, nbytes, MPI_BYTE, recv, nbytes, MPI_BYTE, mpi, &req));
    else
        CRN_TRY_MPI(MPI_Igather(send, nbytes, MPI_BYTE, recv, nbytes, MPI_BYTE, root, mpi, &req));
    return finish(c, &req, MPI_STATUS_IGNORE);
}

static cairn_status mpi_gatherv(crn_comm *c, const void *send, int nbytes, int root, void *recv,
                                const int *nrecv, const int *off)
{
    MPI_Request req;
    MPI_Comm mpi = mpi_of(c);
    if (root == CRN_COMM_ALL)
        CRN_TRY_MPI(MPI_Iallgatherv(send, nbytes, MPI_BYTE, recv, nrecv, off, MPI_BYTE, mpi, &req));
    else
        CRN_TRY_MPI(
            MPI_Igatherv(send, nbytes, MPI_BYTE, recv, nrecv, off, MPI_BYTE, root, mpi, &req));
    return finish(c, &req, MPI_STATUS_IGNORE);
}

/* Let unsigned numbers have the order of signed ones, and back. */
static void turn_signs(uint64_t *v, int n)
{
    for (int i = 0; i < n; i++)
        v[i] ^= UINT64_C(1) << 63;
}

/* MPICH 4.0 takes all integers for signed when it looks for the largest or smallest: from 2^63 on
 * they would count as negative. */
/*
 * Open MPI offers the core to others while it waits where ranks share cores, and its non-blocking
 * reduction of a few numbers takes twice the time of the blocking one. MPICH would spin.
 */
static bool may_block(const crn_comm *c, int n)
{
    enum { FEW = 16 };
#ifdef OPEN_MPI
    const bool yields = true;
#else
    const bool yields = false;
#endif
    return yields && !c->patient && n <= FEW;
}

static cairn_status reduce_at_once(const crn_comm *c, void *v, int n, MPI_Datatype type, MPI_Op op)
{
    CRN_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, v, n, type, op, mpi_of(c)));
    return CAIRN_OK;
}

static cairn_status reduce_patiently(const crn_comm *c, void *v, int n, MPI_Datatype type,
                                     MPI_Op op)
{
    MPI_Request req;
    CRN_TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, v, n, type, op, mpi_of(c), &req));
    return finish(c, &req, MPI_STATUS_IGNORE);
}

static cairn_status mpi_allreduce(crn_comm *c, crn_number type, crn_reduction op, void *v, int n)
{
    const MPI_Datatype types[] = {
        [CRN_NUMBER_U64] = MPI_UINT64_T,
        [CRN_NUMBER_F64] = MPI_DOUBLE,
    };
    const bool ordered = type == CRN_NUMBER_U64 && (op == CRN_REDUCE_MIN || op == CRN_REDUCE_MAX);
    const MPI_Op ops[] = {
        [CRN_REDUCE_MIN] = MPI_MIN,
        [CRN_REDUCE_MAX] = MPI_MAX,
        [CRN_REDUCE_SUM] = MPI_SUM,
        [CRN_REDUCE_AND] = MPI_BAND,
    };
    const MPI_Datatype used = ordered ? MPI_INT64_T : types[type];
    if (ordered)
        turn_signs(v, n);
    const bool blocks = may_block(c, n);
    cairn_status (*reduce)(const crn_comm *, void *, int, MPI_Datatype, MPI_Op) =
        blocks ? reduce_at_once : reduce_patiently;
    cairn_status rc = reduce(c, v, n, used, ops[op]);
    if (ordered)
        turn_signs(v, n);
    return rc;
}

/* A request is a pointer in one MPI and a number in the other; comm.h must not know which. */
_Static_assert(sizeof(MPI_Request) <= sizeof(((crn_msg *)0)->link), "a request fits its place");

static MPI_Request request_of(const crn_msg *msg)
{
    MPI_Request req;
    memcpy(&req, &msg->link, sizeof req);
    return req;
}

static cairn_status mpi_start(crn_comm *c, crn_msg *msg)
{
    MPI_Request req;
    MPI_Comm mpi = mpi_of(c);
    int n = (int)msg->nbytes;
    if (msg->is_send)
        CRN_TRY_MPI(MPI_Isend(msg->data, n, MPI_BYTE, msg->peer, msg->tag, mpi, &req));
    else
        CRN_TRY_MPI(MPI_Irecv(msg->data, n, MPI_BYTE, msg->peer, msg->tag, mpi, &req));
    memcpy(&msg->link, &req, sizeof req);
    return CAIRN_OK;
}

static cairn_status mpi_wait(crn_comm *c, crn_msg *msg)
{
    MPI_Request req = request_of(msg);
    MPI_Status status;
    CRN_TRY(finish(c, &req, &status));
    msg->done = true;
    if (msg->is_send)
        return CAIRN_OK;
    int got = 0;
    CRN_TRY_MPI(MPI_Get_count(&status, MPI_BYTE, &got));
    CRN_FAIL_IF((size_t)got != msg->nbytes, CAIRN_EINTERNAL,
                "rank %d sent %d bytes with tag %d where %zu are expected", msg->peer, got,
                msg->tag, msg->nbytes);
    return CAIRN_OK;
}

static void mpi_cancel(crn_comm *c, crn_msg *msg)
{
    (void)c;
    MPI_Request req = request_of(msg);
    MPI_Cancel(&req);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
}

static const crn_comm_ops mpi_ops = {
    .dup = mpi_dup,
    .destroy = mpi_destroy,
    .leader = mpi_leader,
    .barrier = mpi_barrier,
    .bcast = mpi_bcast,
    .gather = mpi_gather,
    .gatherv = mpi_gatherv,
    .allreduce = mpi_allreduce,
    .start = mpi_start,
    .wait = mpi_wait,
    .cancel = mpi_cancel,
};
