/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside of the encoded level: which units form a stripe, what a unit is made of, and the exchange
 * that turns them into parity. Seen by src/level/level_encoded*.c, their tests and their bench.
 *
 * Nodes are divided into groups. The ranks of a group form sets, numbered by place on the node,
 * with one seat on each node. Every rank gives its data to one set; where nodes have fewer ranks
 * than others, a rank takes seats in further sets, to which it gives none. The state of each rank
 * is a stream, cut into units; a stripe takes one unit from most seats and puts parity on the
 * others. Roles move on by one seat after each chunk of stripes. With 4 seats, 2 of them parity,
 * and a chunk of one stripe (P: parity, u: units of a seat's stream, D: their place in the code):
 *
 *              seat 0    seat 1    seat 2    seat 3
 *   stripe 0   P0        P1        D0 = u0   D1 = u0
 *   stripe 1   D1 = u0   P0        P1        D0 = u1
 *   stripe 2   D0 = u1   D1 = u0   P0        P1
 *   stripe 3   P1        D0 = u1   D1 = u1   P0
 *
 * Each node holds exactly one unit of each stripe: any 2 nodes may vanish. A unit that a stream
 * does not have any more is zeros and is neither sent nor stored.
 *
 * On disk (docs/format/parity.md): on each node a part file for the set, with the parity units of
 * its seat, a stamp for each of them (of what it was computed from), the layout of the set, and the
 * descriptions of the marks of the nparity seats before it. A seat's description thus lies on the
 * nparity nodes after its own.
 */
#ifndef CAIRN_LEVEL_ENCODED_H
#define CAIRN_LEVEL_ENCODED_H

#include "comm/comm.h"
#include "erasure/erasure.h"
#include "hash/hash.h"
#include "level/level_ops.h"
#include "store/store.h"

/* Bytes of a unit: small enough that a changed block costs little more than itself in parity, large
 * enough that units stream at the speed of memory. */
enum { CRN_UNIT = 1 << 16 };

/* --- stripes (pure arithmetic) ------------------------------------------------------------ */

typedef struct crn_stripes {
    uint32_t nseats, nparity;
    uint32_t chunk; /* stripes between two moves of the roles */
} crn_stripes;

/* The nodes [*ret_first, *ret_first + *ret_n) that form the group of a node: at least group of
 * them, fewer than twice as many. */
void crn_group_of(int nnodes, int group, int node, int *ret_first, int *ret_n);

/* Stripes of one head that are exchanged at once: fewer in large sets, to bound memory. */
uint32_t crn_stripes_depth(uint32_t nseats);

/* The chunk for streams of up to nunits: long runs for long streams, little waste for short ones;
 * at most the depth. */
uint32_t crn_stripes_chunk(uint32_t nseats, uint32_t nparity, uint64_t nunits);

/* The block that a seat has in a stripe, numbered as erasure.h does: data first, then parity. */
int crn_stripe_role(const crn_stripes *s, uint64_t stripe, uint32_t seat);
uint32_t crn_stripe_seat(const crn_stripes *s, uint64_t stripe, int role);
bool crn_stripe_is_data(const crn_stripes *s, uint64_t stripe, uint32_t seat);

/* The number of a seat's unit in a stripe among its data units, or among its parity units. */
uint64_t crn_stripe_unit(const crn_stripes *s, uint64_t stripe, uint32_t seat);

/* The stripe of a seat's data unit. */
uint64_t crn_stripe_of(const crn_stripes *s, uint32_t seat, uint64_t unit);

/* Stripes that hold data when seats have nunits[seat] units each; parity units of a seat in them.
 */
uint64_t crn_stripes_count(const crn_stripes *s, const uint64_t *nunits);
uint64_t crn_stripes_nparity(const crn_stripes *s, uint64_t nstripes, uint32_t seat);

/* --- streams ------------------------------------------------------------------------------ */

/*
 * The variables of a mark one behind the other, in order. One that would cross the end of a unit
 * starts at the next; so a unit is made of whole blocks, or lies within one block.
 */
typedef struct crn_stream {
    const crn_mark *mark; /* borrowed; with tables, if only of digests */
    uint64_t *start;      /* of each variable, in bytes */
    uint64_t nunits;
} crn_stream;

cairn_status crn_stream_init(crn_stream *s, const crn_mark *mark);
void crn_stream_done(crn_stream *s); /* a zeroed one is allowed */

/* A piece of a variable in a stretch of the stream. */
typedef struct crn_stretch {
    size_t v;             /* the variable, and bytes [off, off + nbytes) of it */
    uint64_t off, nbytes; /* not 0 */
    uint64_t at;          /* in the stream */
} crn_stretch;

/*
 * Walk over what lies in bytes [from, to) of the stream: start with *ret zeroed but for .v =
 * crn_stream_find(s, from); false at the end.
 */
size_t crn_stream_find(const crn_stream *s, uint64_t from);
bool crn_stream_next(const crn_stream *s, uint64_t from, uint64_t to, crn_stretch *ret);

/* What stands for the content of each unit: equal digests, equal units. ret has nunits. */
cairn_status crn_stream_ids(const crn_stream *s, crn_digest *ret);

/* Reads units of a stream from the part that has it. */
typedef struct crn_stream_reader {
    const crn_stream *stream;
    crn_part *part;
    unsigned char *block; /* the last block that is larger than a unit */
    const crn_var *var;   /* whose it is; NULL: none */
    uint64_t i;
} crn_stream_reader;

cairn_status crn_stream_read(crn_stream_reader *r, uint64_t first, uint64_t n, unsigned char *dst);
void crn_stream_reader_done(crn_stream_reader *r);

/* --- the exchange ------------------------------------------------------------------------- */

/* What one rank brings to the encoding of a set. All but seat and the callbacks is equal on all. */
typedef struct crn_parity_job {
    crn_stripes stripes;
    const int *rank;             /* in the communicator, of each seat */
    const uint64_t *nunits;      /* of each seat's stream */
    uint64_t nstripes;           /* that hold data */
    const unsigned char *needed; /* a bit for each stripe: is it to be encoded? */
    uint32_t seat;               /* this rank's */
    /* Read units [first, first + n) of this rank's stream; take a parity unit of this seat. */
    cairn_status (*read)(void *arg, uint64_t first, uint64_t n, unsigned char *dst);
    cairn_status (*put)(void *arg, uint64_t unit, const unsigned char *data);
    void *arg;
} crn_parity_job;

typedef struct crn_encoder crn_encoder;

/* Take all memory that the exchange needs, whatever the size of the streams. */
cairn_status crn_encoder_create(const crn_parity_job *e, crn_encoder **ret);
void crn_encoder_free(crn_encoder *enc);

/*
 * Encode the needed stripes. Collective over the ranks of the set. When a callback fails the
 * exchange goes on to its end, so that nobody waits for nothing, and the first failure is returned;
 * ranks whose own callbacks succeed return CAIRN_OK then, and have taken parity of rubbish: the
 * caller must agree before it keeps any. *moved grows by the bytes sent.
 */
cairn_status crn_encoder_run(crn_encoder *enc, crn_comm *comm, uint64_t *moved);

/* --- the layout of a set ------------------------------------------------------------------ */

enum { CRN_SEAT_IDLE = UINT32_MAX }; /* the rank of a seat that gives no data */

typedef struct crn_seat {
    uint32_t file;        /* which names its parity file */
    uint32_t rank;        /* whose data it gives */
    uint64_t nunits;      /* of that rank's stream */
    uint64_t share_bytes; /* of the description of its mark */
} crn_seat;

/* What a parity file says of its set, for one mark. */
typedef struct crn_layout {
    uint32_t own; /* the seat whose parity the file has */
    crn_stripes stripes;
    crn_digest seal; /* over the ids of all units: differs between marks that differ */
    crn_seat seat[CRN_ERASURE_MAX]; /* stripes.nseats of them */
} crn_layout;

void crn_layout_put(const crn_layout *l, crn_buf *buf);
cairn_status crn_layout_get(crn_cursor *cur, crn_layout *ret);

/* The variables of a parity file; those of shares are followed by the rank. */
#define CRN_VAR_LAYOUT "layout"
#define CRN_VAR_STAMPS "stamps"
#define CRN_VAR_PARITY "parity"
#define CRN_VAR_SHARE  "share "
enum { CRN_META_BLOCK = 1 << 12 }; /* bytes of a block of all but the parity */

/* --- in a vault --------------------------------------------------------------------------- */

/* This rank's seat in a set, with the vault's nodes as they are now. */
typedef struct crn_set {
    crn_layout layout; /* from the nodes: seats, files and ranks */
    int *rank;         /* that takes each seat */
} crn_set;

/* How many sets this rank has a seat in; one of them, the first is that to which it gives data. */
int crn_sets_count(const crn_vault *v);
cairn_status crn_set_init(crn_set *set, const crn_vault *v, int nth);
void crn_set_done(crn_set *set); /* a zeroed one is allowed */

crn_part_id crn_set_file(const crn_vault *v, const crn_set *set);

/* Read the layout of a mark in a parity file. */
cairn_status crn_layout_read(crn_part *part, crn_mark *mark, crn_layout *ret);

cairn_status crn_encoded_raise(crn_vault *v, uint64_t version, uint64_t keep,
                               crn_raise_stats *stats);

/* What the survey found; v->parity is one. */
cairn_status crn_encoded_survey(crn_vault *v);

/* The set that protects the share of an old rank in a mark, and its seat; false: none is known. */
bool crn_parity_find(const crn_vault *v, const crn_manifest_mark *mark, uint32_t rank,
                     crn_layout *ret_layout, uint32_t *ret_seat);

/* The files of a seat: its parity, and the own part of the rank that gave its data. */
crn_part_id crn_parity_id(const crn_vault *v, const crn_manifest_mark *mark, const crn_seat *seat);
crn_part_id crn_parity_own_id(const crn_vault *v, const crn_manifest_mark *mark,
                              const crn_seat *seat);

bool crn_encoded_holds(const crn_vault *v, const crn_manifest_mark *mark, uint32_t rank);
cairn_status crn_encoded_describe(crn_vault *v, const crn_manifest_mark *mark, crn_ask *ask,
                                  size_t n);
cairn_status crn_encoded_load(crn_vault *v, const crn_manifest_mark *mark, crn_want *want,
                              size_t n);

#endif
