/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store: state on disk. Row 2.
 *
 * A trail is a directory of runs; a run has a manifest (which marks count) and one part file per
 * rank. A part file is a small copy-on-write store of the blocks of several marks; the format is
 * specified in docs/format.md, and this is the only code that reads or writes it.
 *
 * Writing a mark: begin a draft, add every variable, put the blocks that changed, commit.
 *
 *     crn_draft_begin(part, version, &draft);
 *     crn_draft_add(draft, &spec, &v);                    for each variable
 *     crn_draft_put(draft, v, i, data, NULL);             for each block that is not inherited
 *     crn_draft_commit(draft, keep, NULL);                durable when it returns CAIRN_OK
 *
 * Until commit returns, and at whatever byte the machine stops, the previous marks stand.
 *
 * A part, a draft and a mark are used by one thread at a time.
 */
#ifndef CAIRN_STORE_H
#define CAIRN_STORE_H

#include "base/base.h"
#include "codec/codec.h"
#include "hash/hash.h"
#include "io/io.h"
#include "plan/plan.h"

enum {
    CRN_RANKS_MAX = 1 << 24, /* more than any machine has; who looks for all of them must end */
    CRN_VAR_NAME = 255,      /* bytes of a variable's name */
    CRN_VAR_TYPE = CRN_TYPE_TEXT,
    CRN_KEY_MAX = 63, /* bytes of a state's key */
    CRN_BLOCK_MIN = 1 << 10,
    CRN_BLOCK_MAX = 1 << 22
};

#define CRN_KEEP_ALL   UINT64_MAX
#define CRN_NO_VERSION UINT64_MAX /* no mark: a version that no mark can have */

/* Not more, since logs and other programs tell of versions by signed numbers. */
#define CRN_VERSION_MAX ((uint64_t)INT64_MAX)

/* --- a part file -------------------------------------------------------------------------- */

typedef enum crn_role {
    CRN_ROLE_OWN = 0,     /* a rank's own blocks */
    CRN_ROLE_PARTNER = 1, /* a copy kept for another rank */
    CRN_ROLE_PARITY = 2,
    CRN_ROLE_STATES = 4 /* states of a shelf: crn_state_begin */
} crn_role;

/* Whose part it is. A file that says otherwise than its place is refused. */
typedef struct crn_part_id {
    unsigned char run[16];
    uint32_t series; /* the part series of the run: a new one begins when the rank count changes */
    uint32_t rank, nranks;
    uint32_t role;
} crn_part_id;

typedef struct crn_part_options {
    crn_io_backend backend;
    unsigned depth;
    bool direct;
} crn_part_options;

typedef struct crn_part crn_part;

/*
 * Create a part file, or open one. Opening to write takes an exclusive lock (CAIRN_EBUSY when
 * another process holds it) and derives the free space. id may be NULL when opening: any owner.
 * CAIRN_ECORRUPT when no superblock or catalogue is whole, CAIRN_EUNSUPPORTED for a newer format,
 * CAIRN_EMISMATCH for another owner.
 */
cairn_status crn_part_create(int dirfd, const char *name, const crn_part_id *id,
                             const crn_part_options *opt, crn_part **ret);
cairn_status crn_part_open(int dirfd, const char *name, const crn_part_id *id, bool write,
                           const crn_part_options *opt, crn_part **ret);

/* Open to write, unless another process does: a part whose writer usually lives is not waited for.
 */
cairn_status crn_part_try(int dirfd, const char *name, const crn_part_id *id,
                          const crn_part_options *opt, crn_part **ret);
void crn_part_close(crn_part *part); /* NULL is allowed; a draft must be finished before */

/*
 * Decode the blocks of a part in a process apart where the codec's decoder believes its input: who
 * looks into a file for another purpose than to go on with the own run cannot know who made it.
 * Parts that another user owns are read so from the outset.
 */
void crn_part_distrust(crn_part *part);

typedef struct crn_part_info {
    crn_part_id id;
    uint64_t seq;        /* of the newest superblock */
    uint64_t file_bytes; /* length of the file */
    uint64_t used_bytes; /* referred to by retained marks; 0 when opened to read */
    size_t nmarks;       /* retained */
    bool fallback;       /* the newest superblock is damaged and the previous one was used */
} crn_part_info;

void crn_part_describe(const crn_part *part, crn_part_info *ret);

/* --- states (store_states.c) --------------------------------------------------------------- */

/*
 * A part of role CRN_ROLE_STATES has states instead of marks: a key and a version name each, and
 * they come and go in any order. What is said of marks below holds for them, too; equal blocks of
 * such a part are stored once.
 */
typedef struct crn_state_name {
    const char *key;
    uint64_t version;
} crn_state_name;

/* Can a state be called so: 1 to CRN_KEY_MAX letters, digits, '.', '_' and '-', first no '.', '-'?
 */
bool crn_key_is_valid(const char *key);

/* The i-th state of the part, and when it was begun; its key stays until the part is changed. */
crn_state_name crn_part_state(const crn_part *part, size_t i, uint64_t *ret_wall_ns);

/* Has the part a state of this name, and when was it begun? ret_wall_ns may be NULL. */
bool crn_part_find_state(crn_part *part, crn_state_name name, uint64_t *ret_wall_ns);

/* CAIRN_ENOTFOUND when the part has no such state. Free it as a mark. */
struct crn_mark;
cairn_status crn_part_load_state(crn_part *part, crn_state_name name, struct crn_mark **ret);

/* Drop n states with one commit; those that are not there count as dropped. */
cairn_status crn_part_drop(crn_part *part, const crn_state_name *name, size_t n);

/* Does most of the file lie in memory? Then a read is a copy, and threads read faster than one. */
bool crn_part_is_cached(const crn_part *part);

/* Was the file removed since the part was opened? What is written to it now, nobody finds again. */
bool crn_part_is_removed(const crn_part *part);

/* Versions of the retained marks, oldest first. */
uint64_t crn_part_version(const crn_part *part, size_t i);

/*
 * Drop marks: all but the newest keep, at least one (one superblock, one sync); all but the newest
 * and n listed ones; or every mark above version, which a run that resumes from version has
 * abandoned. Their space is free afterwards.
 */
cairn_status crn_part_trim(crn_part *part, uint64_t keep);
cairn_status crn_part_retain(crn_part *part, const uint64_t *version, size_t n);
cairn_status crn_part_rewind(crn_part *part, uint64_t version);

/*
 * Read a share of what the newest mark has from earlier ones, another share with each mark: 64 of
 * them are all. The next draft does not inherit what turns out to be damaged; *ret_nlost is how
 * many blocks and tables those are. No draft may be under way.
 */
cairn_status crn_part_scrub(crn_part *part, uint64_t *ret_nlost);

/* --- marks -------------------------------------------------------------------------------- */

/* A variable as the program declares it. */
typedef struct crn_var_spec {
    const char *name;
    const char *type; /* as text: "float64", or a compound's description */
    uint32_t item;    /* bytes of one element */
    uint32_t block;   /* bytes of a block: a power of two */
    uint64_t nbytes;  /* a multiple of item */
    uint32_t ndims;   /* of the global array that this is a piece of; 0: not a piece */
    const uint64_t *global, *offset, *count; /* ndims each */
    const char *attributes;                  /* "key=value" lines, or NULL */
} crn_var_spec;

/* Is spec what a program may declare? CAIRN_EINVAL names the variable and what is wrong. */
cairn_status crn_var_spec_check(const crn_var_spec *spec);

/* The value of a "key=value" line of a variable's attributes, which ends with the line; NULL: none.
 */
const char *crn_var_attribute(const crn_var_spec *spec, const char *key);

/* The key of the line that states what a codec may have lost of a variable. */
#define CRN_LOSS_KEY "cairn_loss"
/* Likewise of the codec, where a program has chosen it for this version. */
#define CRN_CODEC_KEY "cairn_codec"

/* Is this the word of its layout (docs/format.md, section 4.6)? */
bool crn_var_has_layout(const crn_var_spec *spec, const char *word);

/*
 * Which elements of a variable a mark has, where a program has left some out: boxes that do not
 * overlap, of an array of these extents. Without boxes it is none of nelements, and the variable of
 * the mark has no bytes; else it has all of its length, and zeros outside the boxes.
 */
typedef struct crn_kept_box {
    uint64_t lo[CRN_DIMS_MAX], hi[CRN_DIMS_MAX]; /* from lo up to, not including, hi */
} crn_kept_box;

typedef struct crn_kept {
    bool partial; /* else the mark has all, and nothing below is set */
    uint32_t ndims;
    uint64_t extent[CRN_DIMS_MAX], nelements;
    CRN_VEC(crn_kept_box) box;
} crn_kept;

/* As a line of attributes. The line is NULL where there is none: all is kept. The parsed one is
 * freed by crn_vec_done(&k->box). CAIRN_ECORRUPT, CAIRN_ENOMEM. */
const char *crn_kept_line(const char *attributes);
cairn_status crn_kept_parse(const char *attributes, crn_kept *ret);
void crn_kept_put(crn_buf *buf, const crn_kept *k);
uint64_t crn_kept_count(const crn_kept *k); /* elements in boxes */
bool crn_kept_is_none(const char *attributes);

/*
 * Codecs with CRN_OUTSIDE say that the variable's bytes lie in a file beside the parts that other
 * tools can read (crn_outside_name): that of all ranks, or with CRN_OUTSIDE_OWN that of the rank.
 * All of its entries have the same off: where the piece begins, one byte behind the other, or with
 * CRN_OUTSIDE_ROWS where the global array begins in which the piece has its place.
 */
#define CRN_OUTSIDE      0x80000000u
#define CRN_OUTSIDE_OWN  1u
#define CRN_OUTSIDE_ROWS 2u

/* Where a block lies. The three digests are one until a codec makes other bytes of it. */
typedef struct crn_block {
    uint64_t off;
    uint32_t nbytes;   /* stored: at most those of the block */
    uint32_t codec;    /* of codec.h; 0: as it is in memory */
    crn_digest digest; /* of what a reader gets */
    crn_digest stored; /* of the stored bytes, where the variable has those: see has_stored */
    crn_digest origin; /* of what the program had */
} crn_block;

/* A piece of a part file with the digest of its bytes. */
typedef struct crn_ref {
    uint64_t off, nbytes;
    crn_digest digest;
} crn_ref;

/* A variable of a mark on disk. Strings and tables belong to the mark. */
typedef struct crn_var {
    crn_var_spec spec;
    uint64_t dims[3 * CRN_DIMS_MAX]; /* what spec.global, offset and count point to */
    uint64_t nblocks;
    uint64_t nchanged;     /* blocks that the mark wrote itself */
    uint64_t stored_bytes; /* bytes that those took */
    crn_digest root;       /* of the tree over the digests of what the program had */
    crn_block *table;      /* nblocks; NULL until loaded */
    crn_ref place;         /* of the table in the file; of no bytes where it is in the record */
    uint32_t entry_bytes;  /* of an entry of the table */
    bool has_stored;       /* its blocks' digests of stored bytes are known: not in format 1 */
} crn_var;

typedef struct crn_mark {
    uint64_t version, seq, wall_ns;
    size_t nvars;
    crn_var *var;
    crn_index name; /* of the variables */
    crn_ref *page;  /* that the record has them in; none in format 1, and on the wire */
    bool *has_page; /* which of them were read; NULL: all */
    size_t npages;
} crn_mark;

/* Bytes of block i in memory: the block size but for the last. */
uint32_t crn_var_block_bytes(const crn_var *v, uint64_t i);

/* Read the record of the mark with this version. CAIRN_ENOTFOUND, CAIRN_ECORRUPT. */
cairn_status crn_part_load(crn_part *part, uint64_t version, crn_mark **ret);
void crn_mark_free(crn_mark *m);
crn_var *crn_mark_find(const crn_mark *m, const char *name); /* NULL when there is none */

/*
 * A mark for the wire: its variables and the digests of their blocks, but not where they lie. What
 * crn_mark_get makes has tables with digests only; tables must be loaded before crn_mark_put.
 */
void crn_mark_put(const crn_mark *m, crn_buf *buf);
cairn_status crn_mark_get(crn_cursor *cur, crn_mark **ret);

/*
 * Copies of encoded blocks move what is stored, and nothing is encoded twice. Does block i move as
 * it is stored, and how many bytes does it move? The wire's form says that, too; tables as above.
 */
bool crn_block_moves(const crn_var *v, uint64_t i);
uint32_t crn_block_moved_bytes(const crn_var *v, uint64_t i);
void crn_mark_put_moved(const crn_mark *m, crn_buf *buf);

/* The same without digests: what is declared. The mark that is made has no tables. */
void crn_specs_put(const crn_mark *m, crn_buf *buf);
cairn_status crn_specs_get(crn_cursor *cur, crn_mark **ret);

/* The root of the tree over what the program had in a variable's blocks; its table is loaded, or is
 * a draft's. */
cairn_status crn_var_root(const crn_var *v, crn_digest *ret);

/* Read and check a variable's block table; once is enough. */
cairn_status crn_mark_table(crn_part *part, const crn_mark *m, crn_var *v);

/*
 * Read blocks [first, first + n) of v into dst, verifying each. A block that cannot be read or
 * fails its digest is appended to *bad and reading goes on; with bad NULL it ends the call with a
 * sentence that names variable and block.
 */
typedef CRN_VEC(uint64_t) crn_bad_blocks;
cairn_status crn_mark_read(crn_part *part, const crn_mark *m, crn_var *v, uint64_t first,
                           uint64_t n, void *dst, crn_bad_blocks *bad);

/*
 * The same for any n blocks (ascending), in the background: several fetches may be in flight on one
 * queue, of one part or several. start returns at once; block, v and dst, with room for n whole
 * blocks, must stay until finish has returned, which waits and verifies; what could not be read or
 * is damaged is appended to *bad. A fetch that was started must be finished.
 */
typedef struct crn_fetch crn_fetch;
cairn_status crn_fetch_create(crn_fetch **ret);
void crn_fetch_free(crn_fetch *f); /* NULL is allowed */
cairn_status crn_fetch_start(crn_fetch *f, crn_io *io, crn_part *part, const crn_mark *m,
                             crn_var *v, const uint64_t *block, size_t n, unsigned char *dst);
cairn_status crn_fetch_finish(crn_fetch *f, crn_io *io, crn_bad_blocks *bad);

/*
 * Consecutive blocks of a variable that are wanted in memory. Whoever wants them sets what; whoever
 * looks for them sets where, and leaves in missing the blocks that were not there or not whole.
 */
typedef struct crn_want {
    /* what, of a rank's share in a mark */
    uint32_t rank;
    const crn_mark *share; /* the description of that rank's share, */
    const crn_var *var;    /* and the variable in it; NULL: what follows describes it */
    uint64_t first, n;     /* blocks */
    unsigned char *dst;    /* for n blocks one after the other; the last may be short */

    /* where, in a file that some rank can read */
    int holder, turn; /* the rank, -1: none; when in the exchange it is its turn */
    crn_part_id id;
    uint64_t version;
    const char *name;       /* of the variable in the file, */
    uint32_t block;         /* bytes of its blocks, */
    uint64_t nbytes;        /* and of all of it: if the file says otherwise, all are missing */
    const crn_block *table; /* digests to verify against; NULL: the holder's own check is enough */

    crn_bad_blocks missing; /* ascending */

    /* Blocks are wanted as they are stored, as far as they move (crn_block_moves), each at the
     * place that all of it would have. Those that come decoded after all are in decoded, ascending,
     * which is whoever's that asked. */
    bool moved;
    crn_bad_blocks decoded;
} crn_want;

typedef CRN_VEC(crn_want) crn_wants;

/*
 * Let drafts hold back up to nbytes of blocks in memory until they are committed, so that putting
 * costs a copy and no more; 0, the start, lets them be written at once.
 */
void crn_part_set_staging(crn_part *part, uint64_t nbytes);

/* Give the free space of a part with states back to the file system. Was there some that the file
 * system did not have yet? */
bool crn_part_shrink(crn_part *part);

/* Of a part with states: let what a new state has in common with others be read again, and what of
 * it is damaged be put. Not from the start. */
void crn_part_set_recheck(crn_part *part, bool recheck);

/* Let codecs encode with so many threads; 1, the start: with the one that writes. */
void crn_part_set_threads(crn_part *part, unsigned n);

/* --- drafts ------------------------------------------------------------------------------- */

typedef struct crn_draft crn_draft;

/* Begin a mark. It inherits from the newest mark of the part. One draft at a time. */
cairn_status crn_draft_begin(crn_part *part, uint64_t version, crn_draft **ret);

/*
 * Begin a state, which the part must not have. It inherits from the newest version of the part with
 * the same key, or else of parent (a key, or NULL), or else from the state that was put last. To be
 * committed with CRN_KEEP_ALL.
 */
cairn_status crn_state_begin(crn_part *part, crn_state_name name, const char *parent,
                             crn_draft **ret);

/* Say when the mark was taken, which is now otherwise. Copies of a mark have its time, too. */
void crn_draft_set_time(crn_draft *d, uint64_t wall_ns);

/*
 * Add a variable; *ret is its number, from 0. Blocks of the variable with the same name in the
 * newest mark are inherited where block size and length agree. CAIRN_EINVAL for a bad or repeated
 * declaration.
 */
cairn_status crn_draft_add(crn_draft *d, const crn_var_spec *spec, size_t *ret);

/* Add the newest mark's variable of this number with all that it has there. CAIRN_ECORRUPT: storage
 * has lost some of that. */
cairn_status crn_draft_take(crn_draft *d, size_t number, size_t *ret);

/* Is there a newest mark, and was nothing of it found damaged? */
bool crn_draft_is_whole(const crn_draft *d);

/*
 * Let a codec store the blocks of v that are put from now on, where it makes them smaller.
 * Inherited blocks that have lost more than the setting allows are not inherited any more.
 */
void crn_draft_encode(crn_draft *d, size_t v, const crn_codec_setting *setting);

/* Count from now on what becomes of the blocks of v that a codec is to store. counts must stay
 * until the draft is committed or dropped. */
void crn_draft_count(crn_draft *d, size_t v, crn_codec_counts *counts);

/* Let some blocks of v, one of sixteen for each, be stored by other settings instead. */
typedef struct crn_beside {
    crn_codec_setting setting;
    crn_codec_counts *counts; /* as above */
} crn_beside;
void crn_draft_encode_beside(crn_draft *d, size_t v, const crn_beside *beside, size_t n);

/* The same for copies, whose blocks have lost what their originals have. */
void crn_draft_encode_copy(crn_draft *d, size_t v, const crn_codec_setting *setting);

/* The kind of its values, as far as codecs care. */
crn_elem crn_elem_of(const crn_var_spec *spec);

/* The loss that a variable of a mark states, as crn_codec_parse has it; false: none. */
bool crn_var_loss(const crn_var_spec *spec, crn_loss *ret);

/* The digest of what the program had in the block i of variable v that is inherited, or NULL when
 * it must be put. */
const crn_digest *crn_draft_inherited(const crn_draft *d, size_t v, uint64_t i);

/*
 * Is the inherited block i what the program has now, data with the digest now? So it is when the
 * program had the same, and when a reader gets the same, as after a resume from blocks that have
 * lost something: then what the program has now is what it had, from this mark on.
 */
bool crn_draft_keeps(crn_draft *d, size_t v, uint64_t i, const void *data, const crn_digest *now);

/* For copies: does a reader of the inherited block i get the same as of another one? Then it stands
 * for what the program had there. */
bool crn_draft_adopts(crn_draft *d, size_t v, uint64_t i, const crn_block *other);

/*
 * Write block i. The bytes are copied before the call returns; digest NULL means that it is
 * computed on the way. A block is put at most once. The failure may be that of an earlier block's
 * write: such a draft cannot be committed any more.
 */
cairn_status crn_draft_put(crn_draft *d, size_t v, uint64_t i, const void *data,
                           const crn_digest *digest);

/* Write a copy of another part's block: what a reader gets of it, which is stored without loss. */
cairn_status crn_draft_put_copy(crn_draft *d, size_t v, uint64_t i, const void *data,
                                const crn_block *other);

/*
 * Read blocks [first, first + n) of v one behind the other as they move, verified, whose sizes are
 * crn_block_moved_bytes; and put one into a draft of another part, verified again. As
 * crn_mark_read and crn_draft_put_copy.
 */
cairn_status crn_mark_read_moved(crn_part *part, const crn_mark *m, crn_var *v, uint64_t first,
                                 uint64_t n, unsigned char *dst);
cairn_status crn_draft_put_moved(crn_draft *d, size_t v, uint64_t i, const void *data,
                                 const crn_var *as);

/* The mark that d inherits from: its version, and when it was taken; CRN_NO_VERSION: none. */
uint64_t crn_draft_base(const crn_draft *d, uint64_t *ret_wall_ns);

/* How the blocks of a variable that changed are found. Only FULL writes others, too. */
typedef enum crn_put_way {
    CRN_PUT_COMPARE, /* digest, and copy what differs: one pass over what did not change */
    CRN_PUT_COPY,    /* digest and copy, and take back what did not differ: one over what did */
    CRN_PUT_FULL     /* put every block */
} crn_put_way;

typedef struct crn_put {
    crn_put_way way;
    /* Is block i surely as the inherited one? Such a block is not looked at, but by FULL: memory
     * that did not change tells nothing of what storage made of it. NULL: none is. */
    bool (*is_clean)(const void *arg, uint64_t i);
    const void *arg;
    uint64_t hashed, changed, stored; /* [out] bytes looked at, found different, put, */
    uint64_t fresh;                   /* and of those found different, that inherited nothing; all
                                         of them in memory, whatever a codec makes of them */
} crn_put;

/* Put the blocks of v from contiguous memory that differ from the inherited ones. */
cairn_status crn_draft_put_changed(crn_draft *d, size_t v, const void *data, crn_put *how);

/* The same, by comparing all. */
cairn_status crn_draft_put_all(crn_draft *d, size_t v, const void *data);

/* Say that all blocks of v, whose digests are in table, lie outside: codec and off as in crn_block.
 * They are durable there already. */
void crn_draft_put_outside(crn_draft *d, size_t v, uint32_t codec, uint64_t off,
                           const crn_block *table);

typedef struct crn_draft_stats {
    uint64_t blocks, changed; /* of all variables */
    uint64_t data_bytes;      /* written for blocks */
    uint64_t meta_bytes;      /* written for tables, record, catalogue and superblock */
    uint64_t nwrites;
    uint64_t healed; /* blocks and tables of the mark before that were lost: those are put again */
} crn_draft_stats;

/*
 * Commit: the mark is durable and is the newest; of the older ones the newest keep - 1 are
 * retained. On failure the draft is dropped and the earlier marks stand. Frees d in both cases.
 */
cairn_status crn_draft_commit(crn_draft *d, uint64_t keep, crn_draft_stats *ret_stats);

/* The same, but on failure the draft stays, to be moved or dropped. */
cairn_status crn_draft_try(crn_draft *d, uint64_t keep, crn_draft_stats *ret_stats);

/*
 * Let another draft, to which nothing was added yet, have the first nvars variables of one whose
 * part cannot take it: all their blocks must have been put or inherited. anew: it inherits nothing
 * that its part has. Both stay the caller's.
 */
cairn_status crn_draft_move(crn_draft *from, size_t nvars, crn_draft *to, bool anew);

/*
 * Copy the blocks of a variable that the draft does not have from another part, as they are stored:
 * checked, and not decoded. v is the draft's variable, which was declared as var is. go_on is
 * called with the bytes of each step, and ends the copy with CAIRN_ECANCELED by saying false. After
 * a failure the draft must be dropped.
 */
cairn_status crn_draft_copy(crn_draft *d, size_t v, crn_part *from, const crn_mark *m, crn_var *var,
                            bool (*go_on)(void *arg, uint64_t nbytes), void *arg);

/* The mark that a draft is to become: variables, and the digests of the blocks that it has. */
const crn_mark *crn_draft_mark(const crn_draft *d);

/*
 * Let fn see the bytes of every block that is put, before they are written: of blocks that are held
 * back, in crn_draft_commit. To be called before anything is put.
 */
typedef void crn_block_fn(void *arg, size_t v, uint64_t i, const void *data, uint32_t nbytes);
void crn_draft_watch(crn_draft *d, crn_block_fn *fn, void *arg);

/* Give up a draft. NULL is allowed. */
void crn_draft_drop(crn_draft *d);

/* --- trails and runs ---------------------------------------------------------------------- */

typedef struct crn_trail crn_trail;
typedef struct crn_run crn_run;

/*
 * Open the trail at path; create makes the directory where there is none (its parent must exist).
 * CAIRN_ENOTFOUND when path is no trail.
 */
cairn_status crn_trail_open(const char *path, bool create, crn_trail **ret);

/* Let others read the trail, and runs that are opened or created from now on in what they write. */
cairn_status crn_trail_share(crn_trail *t, crn_share share);
void crn_trail_close(crn_trail *t);

/*
 * Wait for everyone else who looks for a run to continue or begins one; the lock ends when the file
 * is closed. *ret is NULL where a trail cannot have one (it is read-only, or full): its runs have
 * locks of their own. CAIRN_EBUSY when somebody has it for long.
 */
cairn_status crn_trail_lock(crn_trail *t, crn_file **ret);

/* Names of the runs, sorted as people count (run-2 before run-10); free each and the array. */
cairn_status crn_trail_runs(crn_trail *t, char ***ret_names, size_t *ret_n);

/* A mark that counts. */
typedef struct crn_manifest_mark {
    uint64_t version, wall_ns;
    uint64_t nbytes; /* of state, over all ranks */
    uint32_t series, nranks;
    uint32_t levels; /* where it was committed: a bit for each level, local first */
} crn_manifest_mark;

bool crn_manifest_mark_equal(const crn_manifest_mark *a, const crn_manifest_mark *b);

enum { CRN_IN_TRAIL = 8 }; /* the bit of the global level: the parts lie in the trail itself */

typedef struct crn_manifest {
    unsigned char run[16];
    uint64_t seq, created_ns;
    bool finished;                   /* the program came to its end: nothing is left to resume */
    CRN_VEC(crn_manifest_mark) mark; /* in the order of commits */
    /* where in the file the list that was written as a whole ends, and the changes that follow it;
     * 0: none can; and its digest */
    uint64_t list_end, end;
    crn_digest list;
} crn_manifest;

void crn_manifest_put(const crn_manifest *m, crn_buf *buf); /* as a whole */
cairn_status crn_manifest_parse(const void *data, size_t nbytes, crn_manifest *ret);

/* The file has been replaced by these bytes of crn_manifest_put: changes may follow them. */
void crn_manifest_follow(crn_manifest *m, const void *list, size_t nbytes);

/*
 * The bytes that, once they follow m->end in the file, let it have these n marks, of which the
 * first nsame are what they were. false: it must be replaced as a whole, since it is short, or has
 * become twice as long as when it was.
 */
bool crn_manifest_change(const crn_manifest *m, const crn_manifest_mark *mark, size_t n,
                         size_t nsame, bool finished, crn_buf *buf);
void crn_manifest_done(crn_manifest *m);

/* For qsort: marks as they were taken. No clock is asked: within a series versions grow, and a
 * program that goes back to an older mark begins a new one. */
int crn_manifest_order(const void *a, const void *b);

/*
 * Create a run (name NULL: the next free "run-N"), or open one. To write takes the run's lock:
 * CAIRN_EBUSY names the process that holds it.
 */
cairn_status crn_run_create(crn_trail *t, const char *name, crn_run **ret);
cairn_status crn_run_open(crn_trail *t, const char *name, bool write, crn_run **ret);
void crn_run_close(crn_run *run);

/*
 * A run that is seen when it is whole. crn_run_prepare creates it, as above, where nobody looks;
 * crn_run_present gives it its name (NULL: the next free one), which lasts. crn_run_withdraw ends
 * either: what nobody has seen yet is removed, like what a process left that was killed before; it
 * closes the run, and NULL is allowed.
 */
cairn_status crn_run_prepare(crn_trail *t, const char *name, crn_run **ret);
cairn_status crn_run_present(crn_trail *t, crn_run *run, const char *name);
void crn_run_withdraw(crn_trail *t, crn_run *run);

/* Remove what those left who were killed meanwhile. With the trail's lock only. Never fails. */
void crn_trail_sweep(crn_trail *t);

const char *crn_run_name(const crn_run *run);
const crn_manifest *crn_run_manifest(const crn_run *run);

/*
 * The manifest was missing or damaged and was rebuilt from the part files in the trail; of what is
 * elsewhere it knows nothing. Its identity may come from the run's log.
 */
bool crn_run_was_rebuilt(const crn_run *run);

/* Is the manifest still that which was read when the run was opened? */
bool crn_run_is_current(const crn_run *run);

/*
 * Has the program that writes a run dropped a mark from the trail since we read the manifest? Then
 * its space is in other use, and what looks like damage is none. As long as the manifest lists a
 * mark as being in the trail, all parts retain it.
 */
bool crn_trail_dropped(crn_trail *t, const char *run, const crn_manifest_mark *mark);

/* The identity of a run as text, hexadecimal. Returns buf. */
enum { CRN_RUN_ID_TEXT = 2 * 16 + 1 };
char *crn_run_id_format(const unsigned char run[16], char buf[CRN_RUN_ID_TEXT]);

/* How many ranks have a file in the trail: a part of the series, or trees. */
cairn_status crn_run_count_ranks(const crn_run *run, uint32_t series, size_t *ret);

/* Open the part of a rank; to write creates it where there is none. */
cairn_status crn_run_part(crn_run *run, uint32_t series, uint32_t rank, uint32_t nranks, bool write,
                          const crn_part_options *opt, crn_part **ret);

/* Make a mark count: it is added to the manifest, atomically, and the oldest beyond keep leave it.
 */
cairn_status crn_run_commit(crn_run *run, const crn_manifest_mark *mark, uint64_t keep);

/* Replace the marks of the manifest, and whether the run is finished, atomically. The first nsame
 * are what they were (0 is always right): what others cost does not depend on how many these are.
 */
cairn_status crn_run_replace_marks(crn_run *run, const crn_manifest_mark *mark, size_t n,
                                   size_t nsame, bool finished);

/* Append a line to the run's event log. Opened to write only. */
cairn_status crn_run_log(crn_run *run, const char *line);

/* Call fn with each whole line of that log, oldest first; nonzero ends it with CAIRN_NOTHING. Lines
 * that are too long to be events, beyond 16 MiB, are left out. */
cairn_status crn_run_events(crn_run *run, int (*fn)(void *arg, const char *line), void *arg);

/* Give a sign of life, for crn_run_pulse to see. Opened to write only. Never fails: a file system
 * that does not keep times shows none. */
void crn_run_beat(crn_run *run);

/* When the one who had the run before gave its last sign of life, since 1970; 0: nobody had it, or
 * the run is opened to read. */
uint64_t crn_run_seen(const crn_run *run);

/* The last sign of life of whoever writes a run, or wrote it last, whether or not it can be opened.
 * CAIRN_ENOTFOUND when there is none. */
cairn_status crn_run_pulse(crn_trail *t, const char *name, uint64_t *ret_ns);

/* Open a run that another rank has opened to write, knowing its manifest; the file is not read. */
cairn_status crn_run_attach(crn_trail *t, const char *name, const crn_manifest *m, crn_run **ret);

/* Remove the files of a series, which no mark refers to any more, and add to *nfiles. */
cairn_status crn_run_remove_series(crn_run *run, uint32_t series, uint64_t *nfiles);

/* --- files for other tools ---------------------------------------------------------------- */

/*
 * The directory of a series, in which the files outside of parts lie: "mark-<version>.h5" of all
 * ranks, "mark-<version>/rank-<rank>.h5" of one. Close *ret_fd.
 */
cairn_status crn_run_series_dir(crn_run *run, uint32_t series, bool create, int *ret_fd);

enum { CRN_OUTSIDE_NAME = 64 };
#define CRN_ALL_RANKS UINT32_MAX
char *crn_outside_dir(uint64_t version, char buf[CRN_OUTSIDE_NAME]); /* both return buf */
char *crn_outside_name(uint64_t version, uint32_t rank, char buf[CRN_OUTSIDE_NAME]);

/*
 * Remove what lies outside for marks that part, which is of this series, does not retain: the
 * rank's own file, and as rank 0 that of all ranks. Adds to *nfiles, if that is not NULL.
 */
cairn_status crn_run_sweep(crn_run *run, const crn_part *part, uint64_t *nfiles);

/* The directory of the run; stays the run's. */
int crn_run_fd(const crn_run *run);

/* Where byte pos of a piece lies in its global array, and how many follow it without a gap. */
uint64_t crn_var_place(const crn_var_spec *s, uint64_t pos, uint64_t *ret_run);

/* A rank's piece of an array. */
typedef struct crn_piece {
    uint32_t rank;
    uint64_t nitems, start; /* elements, and those of ranks before in an array by rank */
    uint64_t offset[CRN_DIMS_MAX], count[CRN_DIMS_MAX]; /* of a global array */
} crn_piece;

/* A variable of all ranks together. */
typedef struct crn_array {
    crn_var_spec spec; /* of the rank that came first; strings are the array's own */
    bool by_rank;      /* not pieces of a global array: one rank's elements behind the other's */
    uint32_t ndims;
    uint64_t dims[CRN_DIMS_MAX]; /* by rank: ranks x elements if all have as many, or elements */
    CRN_VEC(crn_piece) piece;    /* by ascending rank */
    uint64_t off;                /* in the file, once that is made */
} crn_array;

/* What a file for other tools has: the arrays of a mark. */
typedef struct crn_frame {
    const char *run; /* the caller's */
    uint64_t version, wall_ns;
    uint32_t nranks;
    CRN_VEC(crn_array) array;
    crn_index name; /* of the arrays */
} crn_frame;

/*
 * Add a rank's variable; ranks come in ascending order. CAIRN_EMISMATCH when another rank has the
 * name with another type, or for another global array.
 */
cairn_status crn_frame_add(crn_frame *f, uint32_t rank, const crn_var_spec *spec);
void crn_frame_seal(crn_frame *f); /* all are there: the shapes of arrays are known */
void crn_frame_done(crn_frame *f);
crn_array *crn_frame_find(const crn_frame *f, const char *name); /* NULL when there is none */

/* Codec and place of a rank's variable in the file that the frame describes, as in crn_block. */
uint32_t crn_array_place(const crn_array *a, uint32_t rank, uint64_t *ret_off);

/*
 * Writing variables to such a file: pieces of memory on their way, several at once. Like a crn_io
 * it is used by one thread at a time.
 */
typedef struct crn_scatter crn_scatter;
cairn_status crn_scatter_create(crn_file *file, const crn_part_options *opt, crn_scatter **ret);
void crn_scatter_free(crn_scatter *s); /* waits for what is on its way; NULL is allowed */

/* Copy a variable of a mark from its part, each block verified. */
cairn_status crn_scatter_variable(crn_scatter *s, crn_part *part, const crn_mark *m, crn_var *v,
                                  uint32_t codec, uint64_t off);

/* Wait for all of it and sync the file. */
cairn_status crn_scatter_finish(crn_scatter *s);

#include "store/store_trees.h"

/* --- the size of blocks -------------------------------------------------------------------- */

enum { CRN_LOOK_STRETCH = CRN_PLAN_STRETCH };

/* Marks of a variable that are looked at, one after the other; begins as zeros. */
typedef struct crn_look {
    uint64_t nbytes;      /* of the variable; the rest is store_look.c's, but for nmarks */
    unsigned nmarks;      /* looked at */
    size_t ngrains;       /* of the mark at hand, so far */
    crn_digest *grain;    /* of the mark before, and then of this one */
    crn_plan_blocks seen; /* of their differences */
} crn_look;

/* Begin to look at the next mark; at the first, where the variable has another size. CAIRN_ENOMEM.
 */
cairn_status crn_look_begin(crn_look *l, uint64_t nbytes);
/* Is stretch i, of CRN_LOOK_STRETCH bytes, to be looked at? Those that are come in order. */
bool crn_look_wants(const crn_look *l, uint64_t i);
void crn_look_at(crn_look *l, const void *data, size_t nbytes);
/* What a mark would write in blocks of a size, in bytes; and the size to go on with, from now. */
double crn_look_cost(const crn_look *l, bool encoded, uint32_t block);
uint32_t crn_look_choose(const crn_look *l, bool encoded, uint32_t now);
void crn_look_done(crn_look *l); /* a zeroed one is allowed */

#endif
