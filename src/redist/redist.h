/* SPDX-License-Identifier: BSD-3-Clause
 *
 * redist: which stretches of the old ranks' variables belong to which rank now. Row 3. It plans;
 * nothing here reads a file or touches the program's memory, except that a round copies the parts
 * of blocks that its reader has brought.
 *
 *     census     the variables of all ranks, known to every rank
 *     tilings    do the pieces of an array cover it, each element once?
 *     cells      where the items of a cell lie
 *     pulls      stretches to bring, and rounds: the blocks to read for them
 */
#ifndef CAIRN_REDIST_H
#define CAIRN_REDIST_H

#include "base/base.h"
#include "comm/comm.h"
#include "hash/hash.h"
#include "store/store.h"

/* --- layouts ------------------------------------------------------------------------------ */

/* How the ranks' shares of a variable belong together (docs/format.md, section 4.6). */
typedef enum crn_var_layout {
    CRN_LAYOUT_OWN,    /* not at all: each rank has its own */
    CRN_LAYOUT_PIECE,  /* pieces of a global array */
    CRN_LAYOUT_RAGGED, /* items in cells */
    CRN_LAYOUT_INDEX,  /* of those, Cairn's own: which cells, and how many items in each */
    CRN_LAYOUT_LIST,   /* items in no order */
    CRN_LAYOUT_HALO    /* Cairn's own: what a rank has around its piece of an array */
} crn_var_layout;

/* The layout of a variable in a mark. */
crn_var_layout crn_layout_of(const crn_var_spec *spec);

/* The word of a layout in a variable's attributes; NULL: it has none. */
const char *crn_layout_word(crn_var_layout layout);

/* The lines of attributes that say so; of items in cells, also how many cells there are. */
enum { CRN_LAYOUT_LINES = 48 };
char *crn_layout_lines(crn_var_layout layout, uint64_t ncells, char buf[CRN_LAYOUT_LINES]);

/* The cells that such a line tells of; 0: none. */
uint64_t crn_layout_ncells(const crn_var_spec *spec);

/* An entry of an index, and its type. */
typedef struct crn_cell_count {
    uint64_t number, nitems;
} crn_cell_count;

#define CRN_CELL_TYPE "{16:cell@0:uint64,items@8:uint64}"

/* How the names of companions end: of an index, and of what lies around a piece. */
#define CRN_INDEX_END "#cells"
#define CRN_HALO_END  "#halo"

/* The name of a companion. CAIRN_EINVAL: it would be too long. */
cairn_status crn_companion_name(const char *name, const char *end, char buf[CRN_VAR_NAME + 1]);

/* May a program call a variable so? CAIRN_EINVAL: it has no name, or a companion's. */
cairn_status crn_companion_check(const char *name);

/* Are these cells of a rank's, of global ones, with growing numbers? *ret: their items. */
cairn_status crn_cells_check(const char *name, uint64_t global, size_t ncells, const uint64_t *cell,
                             const uint64_t *nitems, uint64_t *ret);

/* Far indices begin here, so that memory before index 0 of a global array has some, too. */
#define CRN_FAR (UINT64_C(1) << 62)

/* The piece of a global array that a variable is, in far indices. */
crn_box crn_far_piece(const crn_var_spec *spec);

/* --- tilings ------------------------------------------------------------------------------ */

/* A box that belongs to a rank. */
typedef struct crn_claim {
    uint32_t rank;
    crn_box box;
} crn_claim;

typedef CRN_VEC(crn_claim) crn_claims;

typedef enum crn_tiling_fault {
    CRN_TILING_WHOLE,   /* every element belongs to one claim */
    CRN_TILING_OVERLAP, /* where belongs to rank[0] and rank[1] */
    CRN_TILING_HOLE     /* where belongs to none; rank[0] and rank[1] are beside it, or -1 */
} crn_tiling_fault;

typedef struct crn_tiling {
    crn_tiling_fault fault;
    int64_t rank[2];
    crn_box where;
} crn_tiling;

/*
 * Do n claims, none empty, tile the box whole? They are put in another order. Of n claims whose
 * ranges in the dimension in which they are most numerous hardly meet, as in every regular
 * decomposition, n log n pairs are looked at. CAIRN_ENOMEM.
 */
cairn_status crn_claims_check(crn_claim *claim, size_t n, const crn_box *whole, crn_tiling *ret);

/* --- cells -------------------------------------------------------------------------------- */

/* A cell's items: nitems from number first on, of the rank's. */
typedef struct crn_cell {
    uint64_t number, first, nitems;
    uint32_t rank;
} crn_cell;

typedef CRN_VEC(crn_cell) crn_cells;

/*
 * Each of global cells must be in the list of one rank; then fill in the cells of want, whose
 * numbers are given, ascending. Collective (name, global); the same status on all ranks.
 * CAIRN_EINVAL names a cell that two ranks have, or none.
 */
cairn_status crn_cells_find(crn_comm *comm, const char *name, uint64_t global, const crn_cell *have,
                            size_t nhave, crn_cell *want, size_t nwant);

/* --- census ------------------------------------------------------------------------------- */

/*
 * A census: the variables of all ranks, as they are declared now or as they lie in a mark, known to
 * every rank. It has what is needed to relate the ranks' shares, and no digests of blocks: some
 * hundred bytes for each variable of each rank. It is taken when a run is resumed on other ranks,
 * and when declarations have changed, not at every mark.
 */

/* One variable of one rank. Its dimensions (global, offset, count), name and type follow it, and
 * the line that says which of its elements a mark has, empty where it has all. */
typedef struct crn_owner_record {
    uint32_t room; /* bytes of the record: a multiple of 8 */
    uint32_t rank;
    uint32_t layout, item, ndims, name_bytes, type_bytes;
    uint32_t left_out; /* a mark has none of it */
    uint64_t nbytes, ncells;
    crn_digest root; /* of the data; zero when it was not asked for */
} crn_owner_record;

const uint64_t *crn_record_dims(const crn_owner_record *r);
const char *crn_record_name(const crn_owner_record *r);
const char *crn_record_type(const crn_owner_record *r);
const char *crn_record_kept(const crn_owner_record *r);
crn_var_spec crn_record_spec(const crn_owner_record *r);
crn_box crn_record_box(const crn_owner_record *r); /* the piece, in far indices */

typedef struct crn_census {
    crn_buf own; /* this rank's records */
    crn_gathered all;
    CRN_VEC(const crn_owner_record *) record; /* sorted by name, then by rank */
} crn_census;

/* Add a variable, before the census is taken. Failures are kept until then. */
void crn_census_add(crn_census *s, uint32_t rank, const crn_var_spec *spec, uint64_t ncells,
                    const crn_digest *root);

/* Let all ranks know all records. Collective; the same status on all ranks. */
cairn_status crn_census_take(crn_census *s, crn_comm *comm);
void crn_census_done(crn_census *s); /* a zeroed one is allowed */

/* The records of a name, *ret_n of them; NULL when there is none. */
const crn_owner_record *const *crn_census_find(const crn_census *s, const char *name,
                                               size_t *ret_n);

/* The records of the name behind those from first on; first is where they start. For walks. */
size_t crn_census_next(const crn_census *s, size_t first);

/* Do n pieces all fill their array: has every rank a copy of it? */
bool crn_records_are_copies(const crn_owner_record *const *r, size_t n);

/* --- pulls -------------------------------------------------------------------------------- */

/*
 * Blocks that belong to one place as a whole are read straight to it; of the others, the wanted
 * bytes are copied from memory of a fixed size, in as many rounds as it takes.
 */
typedef struct crn_pull {
    uint32_t rank;         /* the old one, */
    const char *name;      /* and its variable */
    const crn_mark *share; /* of that rank, which whoever runs the pulls finds, */
    const crn_var *var;    /* and the variable in it */
    crn_stretches at;      /* the stretch that is being pulled, in elements of the variable, */
    uint64_t done;         /* and how much of it has been, in bytes */
    unsigned char *to;     /* what the stretches' places are counted from */
} crn_pull;

typedef CRN_VEC(crn_pull) crn_pulls;

/* n elements of a variable, from number first on; goes on with the pull before where that ends. */
cairn_status crn_pulls_add_range(crn_pulls *p, uint32_t rank, const char *name, uint32_t item,
                                 uint64_t first, uint64_t n, unsigned char *to);

/* The box that a piece has in common with memory that fills another one; in far indices. The piece
 * begins with element number first of the variable. */
cairn_status crn_pulls_add_box(crn_pulls *p, uint32_t rank, const char *name, uint64_t first,
                               const crn_box *common, const crn_box *piece, const crn_box *memory,
                               unsigned char *to);

/* What one round reads, and the parts of blocks that are copied when it is read. Zeroed at first.
 */
typedef struct crn_round {
    crn_wants want;
    CRN_VEC(struct crn_round_part) part;
    unsigned char *memory; /* for blocks of which parts are wanted */
    size_t used;
    const crn_pull *last; /* the pull whose block lies last in the memory, */
    uint64_t block;       /* its number, */
    size_t block_at;      /* and where it lies */
} crn_round;

/* Fill a round from pull *at on; *at is where the next round goes on: at p->n there is none. Not
 * collective. CAIRN_ENOMEM. */
cairn_status crn_round_fill(crn_round *r, crn_pulls *p, size_t *at);
void crn_round_copy(const crn_round *r); /* once all blocks of r->want are read */
void crn_round_done(crn_round *r);

#endif
