/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a kind of communicator must do: comm_mpi.c and comm_self.c. The rest of comm/ is written
 * once, over this table. Callbacks get arguments that are checked, and lengths that fit an int:
 * all ranks' bytes of one call together are at most c->piece. None may be NULL.
 *
 * To add a kind: 1. comm_<kind>.c with a table and a crn_comm_create_<kind>; 2. its declaration in
 * comm.h; 3. let tests/mpi/test_comm.c run with it.
 */
#ifndef CAIRN_COMM_OPS_H
#define CAIRN_COMM_OPS_H

#include "comm/comm.h"

typedef enum crn_number { CRN_NUMBER_U64, CRN_NUMBER_F64 } crn_number;

typedef struct crn_comm_ops {
    /* A new communicator, with its base filled but for what crn_comm_dup inherits. */
    cairn_status (*dup)(crn_comm *c, crn_comm **ret);

    /* Free c itself, too. */
    void (*destroy)(crn_comm *c);

    /* The lowest rank that shares memory with this one. Collective. */
    cairn_status (*leader)(crn_comm *c, int *ret);

    cairn_status (*barrier)(crn_comm *c);
    cairn_status (*bcast)(crn_comm *c, void *data, int nbytes, int root);

    /* root may be CRN_COMM_ALL; nrecv and off (of size items) count at root only. */
    cairn_status (*gather)(crn_comm *c, const void *send, int nbytes, int root, void *recv);
    cairn_status (*gatherv)(crn_comm *c, const void *send, int nbytes, int root, void *recv,
                            const int *nrecv, const int *off);
    cairn_status (*allreduce)(crn_comm *c, crn_number type, crn_reduction op, void *v, int n);

    /* Start the message that msg describes; wait for it; give up a receive. */
    cairn_status (*start)(crn_comm *c, crn_msg *msg);
    cairn_status (*wait)(crn_comm *c, crn_msg *msg);
    void (*cancel)(crn_comm *c, crn_msg *msg);
} crn_comm_ops;

bool crn_mpi_runs(void); /* it was initialised, and not finalised yet */

/* The head of every kind's own struct. */
struct crn_comm {
    const crn_comm_ops *ops;
    int rank, size;
    bool threaded; /* given by MPI at start */
    bool patient;
    size_t piece;
};

#endif
