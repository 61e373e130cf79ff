/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls that a trace can hold, and what an event of each carries: the C side of calls.table.
 */
#ifndef CAIRN_TRACEFMT_CALL_H
#define CAIRN_TRACEFMT_CALL_H

#include <stdint.h>

typedef enum crn_layer {
    CRN_LAYER_NOTE, /* the recorder's own remarks, such as who a wildcard receive got */
    CRN_LAYER_ENV,
    CRN_LAYER_P2P,
    CRN_LAYER_WAIT,
    CRN_LAYER_COLL,
    CRN_LAYER_COMM,
    CRN_LAYER_RMA,
    CRN_LAYER_MPIIO,
    CRN_LAYER_POSIX,
    CRN_LAYERS
} crn_layer;

/* What a column of an event means. */
typedef enum crn_kind {
    CRN_KIND_INT = 1,
    CRN_KIND_COUNT,    /* elements of a datatype */
    CRN_KIND_TYPE,     /* index into the trace's types */
    CRN_KIND_PEER,     /* a rank of the event's communicator, or CRN_PEER_ANY, CRN_PEER_NULL ... */
    CRN_KIND_TAG,      /* or CRN_TAG_ANY */
    CRN_KIND_COMM,     /* number of a communicator: CRN_COMM_... or one that the program made */
    CRN_KIND_COMM_NEW, /* the same, made by this event; CRN_COMM_NULL where it gave none */
    CRN_KIND_GROUP,    /* list: the world ranks of the new communicator, in its order */
    CRN_KIND_ROOT,     /* a rank as it is: of a root, a window's target, a message's source */
    CRN_KIND_OP,       /* CRN_OP_... or a number from CRN_OP_USER up */
    CRN_KIND_REQ,      /* number of a request, or CRN_REQ_NULL */
    CRN_KIND_REQS,     /* list of them */
    CRN_KIND_FLAG,     /* 0 or 1: what a test said */
    CRN_KIND_INDEX,    /* which of the requests, or -1 */
    CRN_KIND_LIST,     /* list of whole numbers */
    CRN_KIND_TOTAL,    /* the sum of the list of counts that follows */
    CRN_KIND_INPLACE,  /* 1 where the buffer is MPI_IN_PLACE */
    CRN_KIND_BYTES,    /* asked for */
    CRN_KIND_MOVED,    /* bytes that were moved, or, of a stream, how far it got; < 0: unknown */
    CRN_KIND_OFFSET,
    CRN_KIND_FILE, /* number of an MPI file */
    CRN_KIND_FILE_NEW,
    CRN_KIND_WIN,
    CRN_KIND_WIN_NEW,
    CRN_KIND_FD, /* number of a file of the system; not the descriptor */
    CRN_KIND_FD_NEW,
    CRN_KIND_NUMBER, /* a counting part of a file name; after the call's own columns */
    CRN_KIND_REPEAT, /* of a place: how often in a row; of a rule: turns. Always column 0 */
    CRN_KINDS
} crn_kind;

enum { CRN_PEER_ANY = -1, CRN_PEER_NULL = -2, CRN_PEER_ROOT = -3, CRN_PEER_NONE = -4 };
enum { CRN_TAG_ANY = -1 };
enum { CRN_REQ_NULL = -1 };
enum { CRN_COMM_NULL = -1, CRN_COMM_WORLD = 0, CRN_COMM_SELF = 1, CRN_COMM_USER = 2 };
enum {
    CRN_OP_NULL = -1,
    CRN_OP_MAX,
    CRN_OP_MIN,
    CRN_OP_SUM,
    CRN_OP_PROD,
    CRN_OP_LAND,
    CRN_OP_BAND,
    CRN_OP_LOR,
    CRN_OP_BOR,
    CRN_OP_LXOR,
    CRN_OP_BXOR,
    CRN_OP_MAXLOC,
    CRN_OP_MINLOC,
    CRN_OP_REPLACE,
    CRN_OP_NO_OP,
    CRN_OP_USER
};

/* Call 0 is no call. */
#define CRN_CALL_ROW(id, ...) CRN_CALL_##id,
typedef enum crn_call_id {
    CRN_CALL_NONE,
#include "tracefmt/tracefmt_calls.inc"
    CRN_CALLS
} crn_call_id;
#undef CRN_CALL_ROW

enum { CRN_CALL_COLUMNS = 12, CRN_NAME_NUMBERS = 6 };

/* Columns of an event at most: repeat, the call's, the numbers of a file name. */
enum { CRN_COLUMNS = 1 + CRN_CALL_COLUMNS + CRN_NAME_NUMBERS };

/* What a call does, as far as others ask: bits (calls.table says what they mean). */
enum {
    CRN_TRAIT_SENDS = 1 << 0, /* messages: to the peer that it names */
    CRN_TRAIT_RECEIVES = 1 << 1,
    CRN_TRAIT_BLOCKS = 1 << 2,
    CRN_TRAIT_SYNC = 1 << 3,
    CRN_TRAIT_PREPARES = 1 << 4,
    CRN_TRAIT_STARTS = 1 << 5,
    CRN_TRAIT_PROBES = 1 << 6,
    CRN_TRAIT_MATCHED = 1 << 7,
    CRN_TRAIT_COMPLETES = 1 << 8, /* requests */
    CRN_TRAIT_SCATTERS = 1 << 9,  /* collectives: */
    CRN_TRAIT_NEIGHBORS = 1 << 10,
    CRN_TRAIT_LISTS_0 = 1 << 11, /* the first side has a count for each rank, */
    CRN_TRAIT_LISTS_1 = 1 << 12, /* the second has; */
    CRN_TRAIT_SUMS = 1 << 13,    /* of both, the sum of all bytes is recorded alone */
    CRN_TRAIT_GROUPS = 1 << 14,  /* communicators */
    CRN_TRAIT_READS = 1 << 15,   /* files */
    CRN_TRAIT_WRITES = 1 << 16,
    CRN_TRAIT_SHARED = 1 << 17,
    CRN_TRAIT_COLLECTIVE = 1 << 18,
    CRN_TRAIT_EACH = 1 << 19,      /* collectives: the count is of what goes to each */
    CRN_TRAIT_UNMODELLED = 1 << 20 /* recorded, but no replay knows what it does */
};

typedef struct crn_call {
    const char *name;
    crn_layer layer;
    unsigned traits;
    int named;    /* has a file name */
    int ncolumns; /* without repeat and the numbers of the name */
    uint8_t kind[CRN_CALL_COLUMNS];
} crn_call;

const crn_call *crn_call_row(unsigned id); /* id < CRN_CALLS */

/* Has the call any of these traits? */
static inline bool crn_call_has(unsigned id, unsigned traits)
{
    return (crn_call_row(id)->traits & traits) != 0;
}

const char *crn_layer_name(crn_layer layer);
const char *crn_kind_name(crn_kind kind);

/* Is a value of this kind a list? */
static inline int crn_kind_is_list(unsigned kind)
{
    return kind == CRN_KIND_GROUP || kind == CRN_KIND_REQS || kind == CRN_KIND_LIST;
}

#endif
