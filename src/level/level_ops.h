/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside of level: the vault, the table of levels, and what the levels share. Seen by src/level
 * only.
 *
 * Shared are the files of a node (crn_vault_part), knowledge of who can read which file
 * (crn_vault_holder), flows of pieces between ranks that cannot deadlock, blocks and
 * descriptions fetched from wherever they lie (crn_fetch_blocks, crn_fetch_marks), and the making
 * of a copy (crn_copy).
 */
#ifndef CAIRN_LEVEL_OPS_H
#define CAIRN_LEVEL_OPS_H

#include "hash/hash.h"
#include "io/io.h"
#include "level/level.h"

/* Bytes of a piece that travels or is read at once, unless one block is larger. */
enum { CRN_PIECE_BYTES = 1 << 20 };

/*
 * A role for the vault's own use, beside those of files: a part in the trail. Whoever holds it can
 * be read by every rank.
 */
enum { CRN_ROLE_TRAIL = CRN_ROLE_PARITY + 1 };

/* --- the vault ---------------------------------------------------------------------------- */

/* A part file of this node that is open. */
typedef struct crn_open_part {
    crn_part_id id;
    bool write;
    crn_part *part;
} crn_open_part;

/* What the encoded level's survey found in parity files. */
typedef struct crn_parity crn_parity;
void crn_parity_free(crn_parity *p); /* NULL is allowed */

/* One mark in one file on one node's storage. */
typedef struct crn_sighting {
    uint32_t role, series, rank, nranks; /* of the file */
    uint64_t version, wall_ns;           /* of the mark in it */
    uint32_t node;                       /* of the vault's nodes: whose ranks can read it */
    uint32_t dir;                        /* the virtual node's directory that it lies in */
} crn_sighting;

struct crn_vault {
    crn_comm *comm; /* the caller's; may be replaced between calls */
    crn_vault_options opt;
    char *local; /* a copy of opt.local, or NULL */
    int rank, nranks;
    crn_nodes nodes;
    uint32_t home; /* of virtual nodes: whose directory is this one's */
    int *rank_at;  /* ranks ordered by node, then by rank */
    int *first;    /* of each node, where its ranks start in rank_at; nnodes + 1 */
    CRN_VEC(crn_open_part) open;
    CRN_VEC(crn_sighting) seen; /* sorted by file and version, the newest of equals first */
    uint64_t ndamaged;          /* files or marks that the survey could not read, on all nodes */
    crn_parity *parity;         /* NULL before the first survey */
    unsigned distrusted;        /* bits of levels whose next copies inherit nothing */
    crn_file *settled;          /* what crn_vault_settle holds, or NULL */
};

/* Remove directory name below up and what is in it, depth levels of directories deep. */
cairn_status crn_tree_remove_local(int up, const char *name, int depth, uint64_t *nfiles);

/* The rank at place local of a node; places count modulo the ranks there. */
int crn_vault_rank_at(const crn_vault *v, int node, int local);

/* The id of a file of this run. */
crn_part_id crn_vault_id(const crn_vault *v, uint32_t role, uint32_t series, uint32_t rank,
                         uint32_t nranks);

crn_part_id crn_vault_own_id(const crn_vault *v);

/*
 * A part file on this node's storage, or in the trail (CRN_ROLE_TRAIL; own parts, too, when the
 * vault has no local storage), kept open by the vault until it is freed or, when opened to
 * read, until crn_vault_close_readers. To write makes the file and its directories, durably, where
 * there are none. CAIRN_ENOTFOUND when it is not there to read, CAIRN_EINVAL when the vault has no
 * local storage.
 */
cairn_status crn_vault_part(crn_vault *v, const crn_part_id *id, bool write, crn_part **ret);

/* Call visit with a part file of this node that this rank writes, unless there is none. */
cairn_status crn_vault_visit(crn_vault *v, const crn_part_id *id,
                             cairn_status (*visit)(crn_part *part, uint64_t arg), uint64_t arg);

/* What the run's directory on a node is called: by its identity. Returns buf. */
char *crn_vault_run_dir(const crn_vault *v, char buf[CRN_RUN_ID_TEXT]);

/* The directory of the run on this node's storage; dir counts for virtual nodes only. */
cairn_status crn_vault_dir(crn_vault *v, uint32_t dir, bool create, int *ret_fd);

/* What a file of such a directory is called after; false when its name is none of ours. */
bool crn_vault_parse_name(const char *name, uint32_t *ret_role, uint32_t *ret_rank);

/* Close what was opened to read: a reader does not see what others commit later. */
void crn_vault_close_readers(crn_vault *v);
void crn_vault_close_all(crn_vault *v);

/* Is it this process of its node that looks at the files of an old rank in a survey? */
bool crn_vault_looks_at(const crn_vault *v, uint32_t rank);

/*
 * After a survey: the rank that can read this mark of this file, itself when its own node has it,
 * or -1. All ranks on a node share the load. nth counts nodes that hold the same file, the one with
 * the latest mark first: where ranks moved between nodes, stale files stay behind.
 */
int crn_vault_holder(const crn_vault *v, const crn_part_id *id, uint64_t version, int nth);

/* How often the most often held file of a role has this mark. The same on all ranks. */
int crn_vault_ncopies(const crn_vault *v, uint32_t role, const crn_manifest_mark *mark);

/* The virtual node's directory in which this process finds a file to read. */
uint32_t crn_vault_dir_of(const crn_vault *v, const crn_part_id *id);

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
 * of them whatever fails on one; unless stated otherwise their results may differ between ranks,
 * and the caller agrees.
 */
typedef struct crn_level_ops {
    uint32_t role;    /* of its files, */
    const char *file; /* and how their names begin on a node; NULL: they are not there */

    /* Can marks be raised with these nodes? The same answer on all ranks; CAIRN_EINVAL says why
     * not. Not collective. */
    cairn_status (*check)(const crn_vault *v);

    /*
     * Make the copies of a mark that every rank has in its own part; each file retains keep marks
     * besides the new one. Collective; the same status on all ranks, by crn_copies_finish, which
     * also takes back what was committed when some rank failed. Add to *stats. A file that has the
     * mark already, with the same content, is left alone.
     */
    cairn_status (*raise)(crn_vault *v, uint64_t version, uint64_t keep, crn_raise_stats *stats);

    /*
     * For each file of the level that this rank writes for the vault's series and that exists, in
     * any order, call visit with the part opened to write; stop at the first failure. Trimming and
     * rewinding are visits. Not collective.
     */
    cairn_status (*each)(crn_vault *v, cairn_status (*visit)(crn_part *part, uint64_t arg),
                         uint64_t arg);

    /* The files are known: learn what else holds, describe and load need of them. NULL: nothing.
     * The same status on all ranks. Collective. */
    cairn_status (*survey)(crn_vault *v);

    /* The next three may be NULL where the files are plain copies of parts with the role. */

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
     * Bring blocks: for each want, try those listed in want->missing (ascending numbers of the
     * variable's blocks) into their place of want->dst, verified against want->var->table, and
     * leave in missing what this level could not give; the caller counts. Failures as for describe.
     * Collective.
     */
    cairn_status (*load)(crn_vault *v, const crn_manifest_mark *mark, crn_want *want, size_t n);
} crn_level_ops;

/* The rows, in the order of cost. */
extern const crn_level_ops *const crn_level_table[CRN_NLEVELS];
#define CRN_LEVEL_OPS(id, word, ...) extern const crn_level_ops crn_level_##word;
CRN_LEVELS(CRN_LEVEL_OPS, CRN_LEVEL_OPS)
#undef CRN_LEVEL_OPS

/* A level's callback, or that of plain copies of parts. */
bool crn_level_holds(const crn_vault *v, crn_level level, const crn_manifest_mark *mark,
                     uint32_t rank);
cairn_status crn_level_describe(crn_vault *v, crn_level level, const crn_manifest_mark *mark,
                                crn_ask *ask, size_t n);
cairn_status crn_level_load(crn_vault *v, crn_level level, const crn_manifest_mark *mark,
                            crn_want *want, size_t n);

/* How the names of files with a role begin; NULL: no level has such files on a node. */
const char *crn_role_name(uint32_t role);

/* The global level's raise for forms other than parts. */
cairn_status crn_outside_raise(crn_vault *v, uint64_t version, uint64_t keep,
                               crn_raise_stats *stats);

/* --- between ranks ------------------------------------------------------------------------ */

/*
 * A sequence of pieces from one rank to another. Both ends know the lengths without asking: next
 * gives the same numbers on both. Two pieces of a flow are in memory at each end.
 */
typedef struct crn_flow {
    int peer;
    size_t cap; /* bytes of the largest piece */
    /* The length of the next piece, up to cap; 0: no more. Called once for each piece, for incoming
     * ones one piece ahead of move. */
    size_t (*next)(void *arg);
    /* Outgoing: fill the piece. Incoming: take it. Cannot fail: arg remembers what went wrong, and
     * the flow goes on, so that the other end never waits for nothing. */
    void (*move)(void *arg, unsigned char *piece, size_t nbytes);
    void *arg;
    /* the runner's own */
    unsigned char *piece[2];
    size_t nbytes[2]; /* of the pieces under way; 0: none */
    crn_msg msg[2];
    bool ended;
} crn_flow;

/* Memory for the pieces of n flows: apart from running them, so that ranks can agree between. */
cairn_status crn_flows_prepare(crn_flow *flow, size_t n);
void crn_flows_done(crn_flow *flow, size_t n);

/*
 * Let pieces flow out and in, each flow in order, until all have ended. At most one outgoing and
 * one incoming flow for each peer, none to itself. A rank without flows need not call. Every rank
 * moves the k-th piece of all its flows before the (k+1)-th of any, which is why no pattern of
 * flows deadlocks. Fails only when the transport does.
 */
cairn_status crn_flows_run(crn_comm *comm, crn_flow *out, size_t nout, crn_flow *in, size_t nin);

/* --- fetching what lies on any node ------------------------------------------------------- */

/* A description wanted from a holder. */
typedef struct crn_mark_fetch {
    int holder; /* from crn_vault_holder */
    crn_part_id id;
    uint64_t version;
    crn_mark *mark; /* out: with tables of digests; NULL when it is damaged or absent */
} crn_mark_fetch;

/* Collective; n may be 0. Free each mark. */
cairn_status crn_fetch_marks(crn_vault *v, crn_mark_fetch *fetch, size_t n);

/*
 * Bring blocks from part files of any node, in pieces, each rank serving and receiving at once.
 * Collective; n may be 0. missing gets what is damaged or absent; fails for memory or transport
 * only.
 */
cairn_status crn_fetch_blocks(crn_vault *v, crn_want *want, size_t n);

void crn_bad_blocks_sort(crn_bad_blocks *bad);

/*
 * What holds, describe and load of a level do whose files are plain copies of a rank's part.
 */
bool crn_role_holds(const crn_vault *v, uint32_t role, const crn_manifest_mark *mark,
                    uint32_t rank);
cairn_status crn_role_describe(crn_vault *v, uint32_t role, const crn_manifest_mark *mark,
                               crn_ask *ask, size_t n);
cairn_status crn_role_load(crn_vault *v, uint32_t role, const crn_manifest_mark *mark,
                           crn_want *want, size_t n);

/* --- copies ------------------------------------------------------------------------------- */

/*
 * A copy of a mark in the making: a draft on another part, and what it lacks. The blocks that the
 * part's newest mark has already are inherited.
 */
typedef struct crn_copy {
    crn_part *part;
    crn_draft *draft;       /* NULL: the part has the very mark already */
    uint64_t version;       /* of the mark */
    const crn_mark *mark;   /* what is copied; the caller's, with tables */
    unsigned char *lacking; /* a bit for each block, in the order of variables and blocks */
    size_t nlacking;        /* bytes of that */
    uint64_t nblocks;       /* that are lacking */
    bool tried;             /* crn_copies_finish tried to commit it */
} crn_copy;

/*
 * Begin a copy of mark in part. When the part's newest mark has the same version it stays if it is
 * the same, and is rewound if not. CAIRN_EINVAL when the part has newer marks.
 */
cairn_status crn_copy_begin(const crn_vault *vault, crn_part *part, const crn_mark *mark, bool anew,
                            crn_copy *ret);
void crn_copy_done(crn_copy *c); /* drops the draft, if any; a zeroed one is allowed */

/* Put a block, verified against the mark's digest: CAIRN_ECORRUPT. */
cairn_status crn_copy_put(crn_copy *c, size_t v, uint64_t i, const void *data);

/*
 * The end of every raise: agree on local, commit all drafts, agree again; each part retains keep
 * older marks, at least one. If any rank failed, drafts are dropped and what was committed here is
 * rewound, so that the earlier marks stand everywhere. Adds to stats what was stored. Of a copy
 * only part, draft and version are used. The same status on all ranks. Collective.
 */
cairn_status crn_copies_finish(crn_comm *comm, crn_copy *copy, size_t n, cairn_status local,
                               uint64_t keep, crn_raise_stats *stats);

/*
 * A walk over the blocks whose bits are set, by runs of consecutive blocks of one variable that fit
 * a piece. Whoever has the mark's description and the bits walks the same runs.
 */
typedef struct crn_gaps {
    const crn_mark *mark;
    const unsigned char *bits;
    size_t cap; /* bytes of a piece */
    size_t v;   /* the run found: variable, first block, blocks, bytes */
    uint64_t first, n;
    size_t nbytes;
    uint64_t base; /* bit of the variable's first block */
    bool moved;    /* bytes as blocks move (crn_block_moved_bytes), not as they are in memory */
} crn_gaps;

crn_gaps crn_gaps_of(const crn_mark *mark, const unsigned char *bits);
bool crn_gaps_next(crn_gaps *w); /* false: no more */

/* Bytes of the bits for all blocks of a mark. */
size_t crn_mark_bits(const crn_mark *mark);

static inline bool crn_bit(const unsigned char *bits, uint64_t i)
{
    return bits[i / 8] >> (i % 8) & 1;
}

static inline void crn_bit_set(unsigned char *bits, uint64_t i)
{
    bits[i / 8] |= (unsigned char)(1u << (i % 8));
}

#endif
