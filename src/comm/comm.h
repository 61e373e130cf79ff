/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm: the few operations over a group of processes that the core needs, on MPI or on one process
 * without MPI. Row 1. No other module of the core calls MPI.
 *
 * A crn_comm is a private communicator: its messages never meet the program's or those of another
 * crn_comm. It is used by one thread at a time; where crn_comm_is_threaded is true, different
 * threads may use different crn_comms at once, which is how the engine thread gets one of its own
 * (crn_comm_dup). Where it is false, all calls must come from the program's own MPI calls' thread.
 *
 * Data is bytes, of any length: what exceeds an int, or what an MPI handles badly, is cut into
 * pieces inside. All processes are assumed to run on machines of one byte order.
 *
 * "Collective" calls must be made by all ranks of the communicator, in the same order, with equal
 * values for the parameters named in brackets. When a collective fails because of this process
 * alone (no memory), all ranks still return the same status. When MPI itself fails, they may not.
 *
 * Codes: CAIRN_ENOMEM; CAIRN_EPEER when MPI reports a failed peer or a broken connection;
 * CAIRN_EINTERNAL when MPI refuses our arguments or when lengths do not match. Arguments are
 * otherwise asserted: they are the core's own. One thing is out of our hands: an operation that
 * fails after it was started is, in MPICH 4.0, judged by the error handler of MPI_COMM_WORLD, which
 * ends the program unless the program chose otherwise.
 */
#ifndef CAIRN_COMM_H
#define CAIRN_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

typedef struct crn_comm crn_comm;

/* --- making communicators ------------------------------------------------------------------- */

#ifdef MPI_VERSION
/*
 * A private copy of mpi; only seen by those that include <mpi.h> first. Collective. Errors of MPI
 * on the copy are returned, whatever the program chose for its own communicators. Where MPI is not
 * running, MPI_COMM_SELF is the process alone. CAIRN_EINVAL when MPI is not running otherwise, or
 * mpi is MPI_COMM_NULL or an inter-communicator.
 */
cairn_status crn_comm_create(MPI_Comm mpi, crn_comm **ret);
#endif

/* This process alone, rank 0 of 1. Needs no MPI, also when MPI was never initialised. */
cairn_status crn_comm_create_self(crn_comm **ret);

/* A communicator of its own for another part or thread of Cairn. Collective. */
cairn_status crn_comm_dup(crn_comm *c, crn_comm **ret);

/* Collective, unless MPI was finalised before: then only memory is freed. NULL is allowed. */
void crn_comm_free(crn_comm *c);

/* Forget c, some of whose ranks are gone, without the others: what MPI keeps of it is lost. NULL is
 * allowed. Not collective. */
void crn_comm_abandon(crn_comm *c);

int crn_comm_rank(const crn_comm *c);
int crn_comm_size(const crn_comm *c);

/* May other threads call MPI at the same time (MPI_THREAD_MULTIPLE)? */
bool crn_comm_is_threaded(const crn_comm *c);

/*
 * A patient communicator sleeps between looks while it waits, so that a background thread leaves
 * its core to the program; a wait may take some 0.2 ms longer. Not collective.
 */
void crn_comm_set_patient(crn_comm *c, bool patient);

/* For tests: cut data at nbytes (1 to CRN_COMM_PIECE) instead. Equal on all ranks. */
enum { CRN_COMM_PIECE = 1 << 30 };
void crn_comm_set_piece(crn_comm *c, size_t nbytes);

/* --- the end of MPI ------------------------------------------------------------------------- */

typedef struct crn_finale crn_finale;

/*
 * Have fn called at the start of MPI_Finalize, while MPI still works; of several, the one that was
 * made last comes first. *ret is NULL where MPI does not run. CAIRN_ENOMEM, CAIRN_EINTERNAL.
 */
cairn_status crn_finale_create(void (*fn)(void *arg), void *arg, crn_finale **ret);
void crn_finale_free(crn_finale *f); /* fn is not called any more; NULL is allowed */

/* --- collectives ---------------------------------------------------------------------------- */

cairn_status crn_comm_barrier(crn_comm *c);

/* Collective (nbytes, root). */
cairn_status crn_comm_bcast(crn_comm *c, void *data, size_t nbytes, int root);

/* As the root of a gather: every rank gets the result. */
enum { CRN_COMM_ALL = -1 };

/*
 * nbytes of every rank, one after the other in rank order, into recv (size times nbytes; unused on
 * ranks that are not root). send and recv must not overlap. Collective (nbytes, root).
 */
cairn_status crn_comm_gather(crn_comm *c, const void *send, size_t nbytes, int root, void *recv);

/* What crn_comm_gatherv made: rank i's bytes are data[off[i]] to data[off[i + 1]]. */
typedef struct crn_gathered {
    unsigned char *data;
    size_t *off; /* size + 1 of them; NULL on ranks that are not root */
} crn_gathered;

/* The same with another length on each rank. Collective (root). */
cairn_status crn_comm_gatherv(crn_comm *c, const void *send, size_t nbytes, int root,
                              crn_gathered *ret);
void crn_gathered_done(crn_gathered *g); /* a zeroed one is allowed */

/* AND is bitwise and for integers only. A sum of doubles may depend on the number of ranks. */
typedef enum crn_reduction {
    CRN_REDUCE_MIN,
    CRN_REDUCE_MAX,
    CRN_REDUCE_SUM,
    CRN_REDUCE_AND
} crn_reduction;

/* Combine v[0..n) over all ranks, in place, the same on all. Collective (op, n). */
cairn_status crn_comm_allreduce_u64(crn_comm *c, crn_reduction op, uint64_t *v, size_t n);
cairn_status crn_comm_allreduce_f64(crn_comm *c, crn_reduction op, double *v, size_t n);

/*
 * Make one status of all ranks' local ones. If some rank failed, all ranks return the code of the
 * lowest one that did, and all have its story in their record: text, errno, and its rank in the
 * communicator that this one was split or duplicated from, first of all. If none failed, the
 * result is the smallest status: CAIRN_NOTHING only when all ranks have it. Collective.
 */
cairn_status crn_comm_agree(crn_comm *c, cairn_status local);

/* --- messages ------------------------------------------------------------------------------- */

enum { CRN_COMM_TAG_MAX = 32767 }; /* what every MPI has */

/*
 * Send or receive exactly nbytes. Messages between two ranks with equal tag keep their order.
 * Nothing is sent for 0 bytes.
 */
cairn_status crn_comm_send(crn_comm *c, const void *data, size_t nbytes, int to, int tag);
cairn_status crn_comm_recv(crn_comm *c, void *data, size_t nbytes, int from, int tag);

/* A message under way. The caller owns it and its data until crn_comm_wait has returned. */
typedef struct crn_msg {
    unsigned char *data;
    size_t nbytes; /* at most CRN_COMM_PIECE */
    int peer, tag;
    bool is_send;
    bool done; /* from here on comm's own */
    union {
        void *pointer; /* an MPI's request is one of these two */
        int number;
        struct crn_msg *next;
    } link;
} crn_msg;

/*
 * Start a message; several may be under way, and each that was started must be waited for (or, a
 * receive, cancelled), also after another one failed.
 */
cairn_status crn_comm_isend(crn_comm *c, const void *data, size_t nbytes, int to, int tag,
                            crn_msg *ret);
cairn_status crn_comm_irecv(crn_comm *c, void *data, size_t nbytes, int from, int tag,
                            crn_msg *ret);
cairn_status crn_comm_wait(crn_comm *c, crn_msg *msg);

/* Give up a receive for which nothing will be sent. Its data is the caller's again. */
void crn_comm_cancel(crn_comm *c, crn_msg *msg);

/* End n messages that were started: wait for them, or, where rc says that something has failed
 * already, for those that send, and give up the others. The first failure counts. */
cairn_status crn_comm_end(crn_comm *c, crn_msg *msg, size_t n, cairn_status rc);

/* --- parcels -------------------------------------------------------------------------------- */

/* Bytes for or from another rank. */
typedef struct crn_parcel {
    int peer;
    unsigned char *data;
    size_t n;
} crn_parcel;

typedef struct crn_parcels {
    CRN_VEC(crn_parcel) in; /* by ascending peer */
    unsigned char *data;    /* of all of them */
} crn_parcels;

/*
 * Agree on local, and if no rank failed, deliver out (at most one parcel for each peer, of up to
 * CRN_COMM_PIECE bytes) and hand over what others sent here. Empty parcels arrive,
 * too. The same status on all ranks. Collective.
 */
cairn_status crn_parcels_swap(crn_comm *comm, cairn_status local, const crn_parcel *out,
                              size_t nout, crn_parcels *ret);
void crn_parcels_done(crn_parcels *p); /* a zeroed one is allowed */

/* Parcels that are being written, one for each peer. Zeroed at first. */
typedef struct crn_outbox {
    CRN_VEC(crn_parcel) parcel;
    CRN_VEC(crn_buf) buf;
} crn_outbox;

/* The buffer for a peer; valid until the next call. */
cairn_status crn_outbox_for(crn_outbox *o, int peer, crn_buf **ret);

/* crn_parcels_swap of all that was written, which stays. Collective. */
cairn_status crn_outbox_swap(crn_outbox *o, crn_comm *comm, cairn_status local, crn_parcels *ret);
void crn_outbox_done(crn_outbox *o);

/* --- nodes ---------------------------------------------------------------------------------- */

/* Which ranks share a machine and fail together. Nodes are numbered by their lowest rank. */
typedef struct crn_nodes {
    int nnodes, node;  /* how many; this rank's */
    int nlocal, local; /* ranks on this rank's node; this rank's place among them */
    int *of_rank;      /* the node of each rank */
    int *nranks;       /* the number of ranks on each node */
} crn_nodes;

/*
 * Find the nodes: ranks that share memory, or, if node_size is not 0, virtual nodes of node_size
 * consecutive ranks each (the last may have fewer). Collective (node_size).
 */
cairn_status crn_comm_nodes(crn_comm *c, int node_size, crn_nodes *ret);
/* The same with nodes that ranks know: those with equal numbers are on one. Collective. */
cairn_status crn_comm_nodes_by(crn_comm *c, int number, crn_nodes *ret);
void crn_nodes_done(crn_nodes *nodes); /* a zeroed one is allowed */

#endif
