/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside of level: the vault, the table of levels, and what the levels share. Seen by src/level
 * only.
 *
 * Shared are the files of a node (crn_vault_part), knowledge of who can read which file
 * (crn_vault_holder), flows of pieces between ranks that cannot deadlock (crn_flows_run), blocks
 * and descriptions fetched from wherever they lie (crn_fetch_blocks, crn_fetch_marks), and the
 * making of a copy (crn_copy).
 */
#ifndef CAIRN_LEVEL_OPS_H
#define CAIRN_LEVEL_OPS_H

#include "hash/hash.h"
#include "io/io.h"
#include "level/level.h"

/* Bytes of a piece that travels or is read at once, unless one block is larger. */
enum { CRN_PIECE_BYTES = 1 << 20 };

/* --- the vault ---------------------------------------------------------------------------- */

/* A part file of this node that is open. */
typedef struct crn_open_part {
    crn_part_id id;
    bool write;
    crn_part *part;
} crn_open_part;

/* One mark in one file on one node's storage. */
typedef struct crn_sighting {
    uint32_t role, series, rank, nranks; /* of the file */
    uint64_t version, wall_ns;           /* of the mark in it */
    uint32_t node;                       /* of the vault's nodes */
} crn_sighting;

struct crn_vault {
    crn_comm *comm; /* the caller's; may be replaced between calls */
    crn_vault_options opt;
    char *local; /* a copy of opt.local, or NULL */
    int rank, nranks;
    crn_nodes nodes;
    int *rank_at; /* ranks ordered by node, then by rank */
    int *first;   /* of each node, where its ranks start in rank_at; nnodes + 1 */
    CRN_VEC(crn_open_part) open;
    CRN_VEC(crn_sighting) seen; /* sorted by file and version, the newest of equals first */
    uint64_t ndamaged;          /* files or marks that the survey could not read, on all nodes */
};

/* The rank at place local of a node; places count modulo the ranks there. */
int crn_vault_rank_at(const crn_vault *v, int node, int local);

/* The id of a file of this run. */
crn_part_id crn_vault_id(const crn_vault *v, crn_role role, uint32_t series, uint32_t rank,
                         uint32_t nranks);

/*
 * A part file on this node's storage, kept open by the vault until it is freed or, when opened to
 * read, until crn_vault_close_readers. To write makes the file and its directories, durably, where
 * there are none. CAIRN_ENOTFOUND when it is not there to read, CAIRN_EINVAL when the vault has no
 * local storage.
 */
cairn_status crn_vault_part(crn_vault *v, const crn_part_id *id, bool write, crn_part **ret);

/* Close what was opened to read: a reader does not see what others commit later. */
void crn_vault_close_readers(crn_vault *v);

/*
 * After a survey: the rank that can read this mark of this file, itself when its own node has it,
 * or -1. All ranks on a node share the load. nth counts nodes that hold the same file, the one with
 * the latest mark first: where ranks moved between nodes, stale files stay behind.
 */
int crn_vault_holder(const crn_vault *v, const crn_part_id *id, uint64_t version, int nth);

/* This rank's own part and its mark version, with all tables. Free *ret_mark. */
cairn_status crn_vault_own_mark(crn_vault *v, uint64_t version, crn_part **ret_part,
                                crn_mark **ret_mark);

/* --- levels ------------------------------------------------------------------------------- */

/* A description that a rank still looks for. */
typedef struct crn_ask {
    uint32_t rank;  /* the old rank */
    crn_mark *mark; /* NULL until found */
} crn_ask;

/*
 * A level. "Collective" callbacks are called by all ranks together and must come to an end on all
 * of them whatever fails on one; unless said otherwise their results may differ between ranks, and
 * the caller agrees.
 */
typedef struct crn_level_ops {
    const char *name;

    /* Can marks be raised with these nodes? The same answer on all ranks; CAIRN_EINVAL says why
     * not. Not collective. */
    cairn_status (*check)(const crn_vault *v);

    /*
     * Make the copies of a mark that every rank has in its own part; each file retains keep marks
     * besides the new one. Collective. Add to *stats. A file that has the mark already, with the
     * same content, is left alone. After a failure anywhere, whatever this rank committed is still
     * there: the caller rewinds it, through each, on all ranks.
     */
    cairn_status (*raise)(crn_vault *v, uint64_t version, uint64_t keep, crn_raise_stats *stats);

    /*
     * For each file of the level that this rank writes for the vault's series and that exists, in
     * any order, call visit with the part opened to write; stop at the first failure. Trimming,
     * rewinding and undoing are visits. Not collective.
     */
    cairn_status (*each)(crn_vault *v, cairn_status (*visit)(crn_part *part, uint64_t arg),
                         uint64_t arg);

    /* After a survey: may the share of an old rank come from this level? The same on all ranks; not
     * collective. */
    bool (*holds)(const crn_vault *v, const crn_manifest_mark *mark, uint32_t rank);

    /*
     * Find descriptions: set ask[i].mark where it is NULL and this level has one that is whole;
     * what is absent or damaged stays NULL. A failure is one that makes looking elsewhere useless
     * (no memory, a lost peer). Collective.
     */
    cairn_status (*describe)(crn_vault *v, const crn_manifest_mark *mark, crn_ask *ask, size_t n);

    /*
     * Bring blocks: for each want, try those listed in want->missing (ascending, relative to the
     * variable) into want->dst, verify each against want->var->table, and leave in missing what
     * this level could not give; count in *stats what it gave, and under bad what it should have
     * had (holds) but could not give. Failures as for describe. Collective.
     */
    cairn_status (*load)(crn_vault *v, const crn_manifest_mark *mark, crn_want *want, size_t n,
                         crn_load_stats *stats);
} crn_level_ops;

/* The row of a level, or NULL when this build has none. Rows are in the order of cost. */
const crn_level_ops *crn_level_ops_of(crn_level level);

extern const crn_level_ops crn_level_local, crn_level_partner, crn_level_encoded, crn_level_global;

/* --- flows of pieces ---------------------------------------------------------------------- */

/*
 * A sequence of pieces from one rank to another. Both ends know the lengths without asking: next
 * gives the same numbers on both. The two pieces of a flow that are in memory at each end are all
 * the memory it takes.
 */
typedef struct crn_flow {
    int peer;
    size_t cap; /* bytes of the largest piece */
    /* The length of the next piece, up to cap; 0: no more. Called once for each piece, for incoming
     * ones up to two pieces ahead of move. */
    size_t (*next)(void *arg);
    /* Outgoing: fill the piece. Incoming: take it. Must not fail: arg remembers what went wrong,
     * and the flow goes on, so that the other end never waits for nothing. */
    void (*move)(void *arg, unsigned char *piece, size_t nbytes);
    void *arg;
} crn_flow;

/*
 * Let pieces flow out and in, each flow in order, until all have ended. At most one outgoing and
 * one incoming flow for each peer, and not to itself. Collective over all that take part; a rank
 * without flows need not call. Every rank moves the k-th piece of all its flows before the
 * (k+1)-th of any, which is why no pattern of flows deadlocks. Fails only for memory (agreed
 * before anything moves, which makes the call collective over the vault's communicator) or when
 * the transport fails.
 */
cairn_status crn_flows_run(crn_comm *comm, crn_flow *out, size_t nout, crn_flow *in, size_t nin);

/* --- fetching what lies on any node ------------------------------------------------------- */

/* A description wanted from a holder. */
typedef struct crn_mark_fetch {
    int holder; /* as crn_vault_holder said */
    crn_part_id id;
    uint64_t version;
    crn_mark *mark; /* out: with tables of digests; NULL when it is damaged or absent */
} crn_mark_fetch;

/* Collective; n may be 0. Free each mark. */
cairn_status crn_fetch_marks(crn_vault *v, crn_mark_fetch *fetch, size_t n);

/* Consecutive blocks of a variable wanted from a holder. */
typedef struct crn_block_fetch {
    int holder;
    crn_part_id id;
    uint64_t version;
    const char *var;        /* its name in that file */
    uint32_t block;         /* bytes of its blocks, and how many there are: if the file says */
    uint64_t nblocks;       /* otherwise, all are bad */
    uint64_t nbytes;        /* of the variable */
    uint64_t first, n;      /* blocks wanted */
    unsigned char *dst;     /* for n blocks one after the other */
    const crn_block *table; /* the variable's digests to verify against, or NULL: the holder's
                               own check is enough */
    crn_bad_blocks bad;     /* out, ascending: what did not come whole */
} crn_block_fetch;

/*
 * Bring blocks from part files of any node, in pieces, each rank serving and receiving at once.
 * Collective; n may be 0. Damage and absence are told in bad; fails for memory or transport only.
 */
cairn_status crn_fetch_blocks(crn_vault *v, crn_block_fetch *fetch, size_t n);

/* --- copies ------------------------------------------------------------------------------- */

/*
 * A copy of a mark in the making: a draft on another part, and what it lacks. The blocks that the
 * copy's newest mark has already are inherited.
 */
typedef struct crn_copy {
    crn_part *part;
    crn_draft *draft;     /* NULL: the part has the very mark already */
    const crn_mark *mark; /* what is copied; the caller's, with tables */
    uint64_t nlacking;    /* blocks, and their bytes */
    uint64_t nlacking_bytes;
} crn_copy;

/*
 * Begin a copy of mark in part. When the part's newest mark has the same version it stays if it is
 * the same, and is rewound if not. CAIRN_EINVAL when the part has newer marks.
 */
cairn_status crn_copy_begin(crn_part *part, const crn_mark *mark, crn_copy *ret);
void crn_copy_drop(crn_copy *c); /* a zeroed or finished one is allowed */

/* Must block i of variable v be put? */
bool crn_copy_lacks(const crn_copy *c, size_t v, uint64_t i);

/* Put a block, verified against the mark's digest: CAIRN_ECORRUPT. */
cairn_status crn_copy_put(crn_copy *c, size_t v, uint64_t i, const void *data);

/* Make it durable; of the older marks keep are retained. Adds to *stats what was stored. */
cairn_status crn_copy_commit(crn_copy *c, uint64_t keep, crn_raise_stats *stats);

/*
 * A walk over the blocks that a copy lacks, in the order of variables and blocks, by runs of
 * consecutive blocks of one variable that fit a piece. lacks answers for the walker, so that
 * another rank can walk with a bitmap.
 */
typedef struct crn_walk {
    const crn_mark *mark;
    bool (*lacks)(const void *arg, size_t v, uint64_t i);
    const void *arg;
    size_t cap; /* bytes of a piece: crn_piece_cap(mark) */
    size_t v;   /* the run found: variable, first block, blocks, bytes */
    uint64_t first, n;
    size_t nbytes;
} crn_walk;

crn_walk crn_walk_of(const crn_mark *mark, bool (*lacks)(const void *arg, size_t v, uint64_t i),
                     const void *arg);
bool crn_walk_next(crn_walk *w); /* false: no more */

/* The larger of CRN_PIECE_BYTES and the largest block of the mark. */
size_t crn_piece_cap(const crn_mark *mark);

#endif
