/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ranks of a server. Each has its slice of every state (ensemble_layout.h) and sockets of its
 * own, over which runners send and get their parts. Rank 0 runs the loop and decides; the others
 * follow (crn_follower_run). Orders and reports between them are messages (CRN_WIRE_SHARE), in the
 * order in which they are sent; what needs all ranks at once is collective, over MPI: each
 * collective begins with an order, so that all ranks come to it at the same place.
 *
 * Member m is at home on rank m % size: that rank has the whole state of its analysis, too, puts it
 * on the shelf, and gets it from there. So shelves know nothing of ranks, and any number of them
 * can go on with a study.
 */
#ifndef CAIRN_ENSEMBLE_RANKS_H
#define CAIRN_ENSEMBLE_RANKS_H

#include "comm/comm.h"
#include "ensemble/ensemble_layout.h"
#include "ensemble/ensemble_zmq.h"

struct crn_server;
struct crn_runner_row;

/* The number of a share. */
typedef enum crn_rank_share {
    CRN_SHARE_BEAT = 1,
    /* from rank 0 */
    CRN_SHARE_BEGIN,  /* data: fields; then collective */
    CRN_SHARE_SEND,   /* a member's parts to a runner; more: 1 from the background */
    CRN_SHARE_FIRST,  /* what came of a runner is the first state; then collective */
    CRN_SHARE_TAKE,   /* what came of a runner is a member's state */
    CRN_SHARE_CLEAR,  /* it does not count */
    CRN_SHARE_FORGET, /* the runner is gone */
    CRN_SHARE_UPDATE, /* collective */
    CRN_SHARE_FAILED, /* record the state that a member's task began with */
    CRN_SHARE_EXPORT, /* it is this rank's turn to write HDF5 */
    CRN_SHARE_OVER,
    /* to rank 0 */
    CRN_SHARE_READY, /* all pieces of a runner are known */
    CRN_SHARE_WHOLE, /* all of a result is here; text: what is wrong with it */
    CRN_SHARE_KEPT   /* members at home here are on the shelf, or written; text: why not */
} crn_rank_share;

typedef struct crn_server_ranks {
    crn_comm *comm;
    uint32_t rank, size;
    uint32_t nothers;       /* ranks behind this one that have anything of a state */
    uint64_t *first;        /* of size + 1: where slices begin */
    uint32_t *sent, *heard; /* shares to and from each rank: none may be lost */
    uint64_t beat_ns;
    bool broken;     /* a rank is gone, or a share was lost: nothing collective works any more */
    char *addresses; /* of all ranks, a line each; rank 0's */
    uint32_t nkept;  /* other ranks that have ended the keeper's present step */
} crn_server_ranks;

/* The ranks know each other's addresses, and rank 0 has heard of all. Collective. */
cairn_status crn_ranks_meet(struct crn_server *s);
void crn_ranks_done(crn_server_ranks *r);

/* Slices of the layout; collective only in so far as all ranks do it. */
cairn_status crn_ranks_slice(struct crn_server *s);

bool crn_ranks_has_home(const crn_server_ranks *r, uint32_t member);

/* --- orders and reports --------------------------------------------------------------------- */

/* From rank 0: to one rank, or to all others. A rank that cannot be reached is gone, and with it
 * the server: CAIRN_EPEER. */
cairn_status crn_ranks_order(struct crn_server *s, uint32_t rank, const crn_wire *w,
                             const void *data, size_t nbytes);
cairn_status crn_ranks_order_all(struct crn_server *s, crn_rank_share what,
                                 const struct crn_runner_row *r, uint32_t member);
cairn_status crn_ranks_order_home(struct crn_server *s, uint32_t member); /* it has failed */
cairn_status crn_ranks_report(struct crn_server *s, crn_wire *w);

/* The last word to a rank, which may be gone already. */
void crn_ranks_over(struct crn_server *s, uint32_t rank);

/* Is the share the next one of its rank? CAIRN_EPEER: one was lost. */
cairn_status crn_ranks_heard(struct crn_server *s, uint32_t rank, const crn_wire *w);
cairn_status crn_ranks_beat(struct crn_server *s); /* now and then */

/* --- collectives ---------------------------------------------------------------------------- */

/* Whole states of wanted[member] to their homes, from slices, or back. Collective. */
cairn_status crn_ranks_gather(struct crn_server *s, const uint8_t *wanted,
                              unsigned char *const *slice, unsigned char *const *whole);
cairn_status crn_ranks_scatter(struct crn_server *s, const uint8_t *wanted,
                               unsigned char *const *whole, unsigned char *const *slice);

/* The whole of one state, on one rank or CRN_COMM_ALL. */
cairn_status crn_ranks_collect(struct crn_server *s, const unsigned char *slice, int root,
                               crn_gathered *ret);

/* Rank 0's bytes on all ranks, if no rank has failed before. */
cairn_status crn_ranks_share(struct crn_server *s, cairn_status local, void *data, size_t nbytes);

#endif
