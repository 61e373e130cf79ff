/* SPDX-License-Identifier: BSD-3-Clause
 *
 * diff: comparing two runs, mark by mark. Row 3. The calls are in <cairn/compare.h>; this is the
 * inside.
 *
 * Design. A side is a run, or a golden file of trees alone. For a mark that both sides have, the
 * work is cut into units, one for each rank of the first side: its piece of every variable is held
 * against what the second side has of the same. Where both sides have a variable cut in the same
 * way, trees tell which blocks may differ, and those are fetched and compared; otherwise the piece
 * is compared range by range with those of the second side that overlap it in the global array.
 * Units are shared out over processes, and within one over threads; where a unit has many blocks to
 * look at, threads that have nothing else to do take some of them. Each makes rows, one for each
 * variable, that are merged in the end. Merging asks for no order: the result is the same, to the
 * last bit and letter, whoever did what, on however many threads and processes.
 *
 * A worker, with its queue and its buffers, belongs to one thread. A share, which is what a side
 * has of one rank in one mark, belongs to the thread that has the unit; others only fetch blocks
 * through it, whose table has been loaded before. Trees are shared by all threads; they are opened
 * under a lock, and nodes are loaded by the unit whose rank they belong to alone.
 */
#ifndef CAIRN_DIFF_H
#define CAIRN_DIFF_H

#include <pthread.h>

#include "base/base.h"
#include "comm/comm.h"
#include "hash/hash.h"
#include "io/io.h"
#include "store/store.h"

#include <cairn/compare.h>

/* --- sides ---------------------------------------------------------------------------------- */

/* A mark of a side. */
typedef struct diff_mark {
    uint64_t version, wall_ns;
    uint32_t series, nranks;
    bool in_trees; /* all ranks have its trees */
    bool in_trail; /* its data is there, too */
    uint64_t nbytes;
} diff_mark;

/* Where the marks of a side come from that is no run: states of a shelf. Used by several threads.
 */
typedef struct crn_diff_source {
    const char *name;      /* for messages */
    const diff_mark *mark; /* n of them, ascending versions; the data of each is there */
    size_t n;
    /* The share of a rank of the i-th mark; whoever asks frees the mark and closes the part. */
    cairn_status (*open)(void *arg, size_t i, uint32_t rank, crn_part **ret_part, crn_mark **ret);
    bool (*has_dropped)(void *arg, size_t i); /* since they were listed */
    void *arg;
} crn_diff_source;

/* A golden file's sketches of one rank's variables: its bytes, and of each mark of its trees where
 * its variables begin in the table. */
typedef struct diff_sketches {
    const unsigned char *at;
    size_t nbytes;
    size_t *start;
} diff_sketches;

/*
 * Parts that are open and that nobody reads. One has the list of all of its marks, and what is to
 * be read of a run may be spread over all of these: each would cost as much as all.
 */
enum { DIFF_SPARES = 64, DIFF_SPARE_MARKS = 1 << 19 /* in all of them: 128 bytes each */ };

typedef struct diff_spare {
    uint32_t series, rank;
    crn_part *part;
} diff_spare;

typedef struct diff_spares {
    diff_spare at[DIFF_SPARES]; /* the one that was used last comes last */
    size_t n, nmarks;
} diff_spares;

typedef struct diff_side {
    char *name; /* for messages */
    crn_trail *trail;
    crn_run *run; /* NULL: a golden file, or another source */
    const crn_diff_source *source;
    CRN_VEC(diff_mark) mark; /* ascending versions */
    uint32_t nranks;         /* the most that a mark has */
    pthread_mutex_t mutex;   /* guards trees, tried and spare */
    crn_trees **trees;       /* of each rank; NULL: not opened, or there are none */
    bool *tried;
    void *golden;            /* the bytes of a golden file, which its trees point into */
    diff_sketches *sketches; /* of each rank; NULL: none */
    uint64_t sketch_bytes;
    diff_spares spare; /* parts that were read, and may be again */
} diff_side;

/* Open the run called "TRAIL/RUN" ("TRAIL" where there is only one). Collective over comm. */
cairn_status crn_diff_open_run(diff_side *s, const char *name, crn_comm *comm);

/* What a source has, which stays the caller's. Not collective. */
cairn_status crn_diff_open_source(diff_side *s, const crn_diff_source *source);

/* The mark of a version; NULL: none. */
const diff_mark *crn_diff_find_mark(const diff_side *s, uint64_t version);

/* Open a golden file. Collective over comm. */
cairn_status crn_diff_open_golden(diff_side *s, const char *name, crn_comm *comm);

/* Open one or the other, by what lies there. Collective over comm. */
cairn_status crn_diff_open(diff_side *s, const char *name, crn_comm *comm);

/* A golden file from bytes, which are s's from now on, without crn_diff_check_whole. Not
 * collective. */
cairn_status crn_diff_golden_of(diff_side *s, const char *name, void *data, size_t nbytes);
void crn_diff_close(diff_side *s); /* a zeroed one is allowed */

/* Add the marks of the first rank's trees; whether the other ranks have them, too, is found out
 * afterwards, each process looking at its share of them. Collective over comm. */
cairn_status crn_diff_list_trees(diff_side *s);
cairn_status crn_diff_check_whole(diff_side *s, crn_comm *comm);

/* Has the run's program dropped a mark from the trail since the side was opened? */
bool crn_diff_has_dropped(const diff_side *s, const diff_mark *m);

/* The trees of a rank; NULL: there are none, or none that can be read. */
crn_trees *crn_diff_trees(diff_side *s, uint32_t rank);

/* What a side has of one rank in one mark. */
typedef struct diff_share {
    diff_side *side;
    const diff_mark *mark;
    uint32_t rank;
    crn_trees *trees;          /* NULL: none */
    crn_trees_mark *described; /* of trees */
    crn_part *part;            /* NULL until the data is wanted */
    crn_mark *data;            /* of part */
    crn_err err;               /* why there is no data; code 0: it was not asked for, or is there */
} diff_share;

/* One of a share's variables. */
typedef struct diff_var {
    const crn_var *var;   /* declaration and root */
    crn_trees_var *trees; /* NULL: none */
} diff_var;

/* From trees, or else from the part. CAIRN_ENOTFOUND: there is neither. */
cairn_status crn_diff_share_open(diff_side *s, const diff_mark *m, uint32_t rank, diff_share *ret);
void crn_diff_share_close(diff_share *s); /* a zeroed one is allowed */
size_t crn_diff_share_nvars(const diff_share *s);
diff_var crn_diff_share_var(const diff_share *s, size_t i);
bool crn_diff_share_find(const diff_share *s, const char *name, diff_var *ret);

/* The variable in the part. CAIRN_ENOTFOUND: the data is gone, or was never in the trail. */
cairn_status crn_diff_share_data(diff_share *s, const char *name, crn_var **ret);

/* --- sketches ------------------------------------------------------------------------------- */

/* A variable's sketch in a golden file: see docs/format/golden.md. */
typedef struct diff_sketch {
    const unsigned char *base; /* places count from here */
    const unsigned char *facts, *entry[CRN_BOUNDS_MAX];
} diff_sketch;

/* One block's, for one bound. */
typedef struct diff_sketch_block {
    crn_digest digest;
    crn_sketch_kind kind;
    const unsigned char *data;
    size_t nbytes;
} diff_sketch_block;

/* Variables of marks that a codec may have changed: they have no sketch, which would describe other
 * values than the program's. */
typedef struct diff_lossy {
    uint64_t n, nloose; /* all, and those that may be off by more than their bound */
} diff_lossy;

/* Append the sketches of a rank of a run, whose trees are t, to buf. *ret_n gets how many variables
 * of each mark lack one that should have it; those of *lossy are added up. */
cairn_status crn_diff_sketches_put(diff_side *s, uint32_t rank, crn_trees *t, crn_sketch_kind kind,
                                   uint64_t *ret_n, diff_lossy *lossy, crn_buf *buf);

/* What a codec may have lost of a variable, as its attributes state it; infinite: anything. */
crn_loss crn_diff_loss_of(const crn_var_spec *spec);

/* Check them, of a golden file, once its trees are there. */
cairn_status crn_diff_sketches_open(diff_side *s, uint32_t rank, const void *data, size_t nbytes);

/* The sketch of a variable of a share; false: there is none. */
bool crn_diff_sketch_find(const diff_share *share, const crn_trees_var *v, diff_sketch *ret);
diff_sketch_block crn_diff_sketch_block(const diff_sketch *s, size_t bound, uint64_t i);
crn_facts crn_diff_sketch_facts(const diff_sketch *s, uint64_t i);

/* Do all ranks have a sketch of all that should have one in a mark of a golden file? */
bool crn_diff_is_sketched(diff_side *s, const diff_mark *m);

/* --- exact sums ----------------------------------------------------------------------------- */

/* The sum of doubles times powers of two, none negative, whatever their order: 2098 bits for the
 * largest, and so many more as the powers take, and room for as many as there can be. */
enum { DIFF_SUM_LIMBS = 72 };

typedef struct diff_sum {
    uint64_t limb[DIFF_SUM_LIMBS]; /* the lowest first */
} diff_sum;

/* Add x * 2^scale; x is finite, and scale one of -CRN_SQUARES_SCALE, 0 and CRN_SQUARES_SCALE. */
void crn_diff_sum_add(diff_sum *s, double x, int scale);
void crn_diff_sum_merge(diff_sum *to, const diff_sum *s);
double crn_diff_sum_rms(const diff_sum *s, uint64_t n); /* the root of the nth part; 0 for none */

/* --- rows ----------------------------------------------------------------------------------- */

/* Where something is looked at: in the unit of a rank, in the order of its work. */
typedef struct diff_at {
    uint64_t unit, step;
} diff_at;

typedef struct diff_row {
    char *variable, *type;
    diff_at order; /* of the variable, in the first unit that has it: rows are told in this order */
    crn_bound bound;
    cairn_verdict verdict;
    char text[CRN_ERR_TEXT];  /* of the gravest; of equally grave ones of the first, */
    diff_at said;             /* which is this one */
    diff_at at;               /* what is judged now */
    bool global;              /* indices are those of the global array */
    const crn_fields *fields; /* while it is compared: of a structure; NULL: none */
    bool excluded;            /* nobody has looked at it: its name is left out */
    bool numbered;            /* a share was compared alone, and its items found by their numbers */
    bool alike;               /* no piece of an array, and compared as what all ranks hold alike */
    uint32_t ndims;
    uint64_t shape[CRN_DIMS_MAX];
    uint64_t nvalues, ndiffering, nnonfinite, nblocks, nflagged, nfalse, read_bytes;
    uint64_t nproven; /* flagged blocks that a sketch proves equal */
    uint32_t nslices;
    uint64_t slice[CAIRN_SLICES]; /* of ndiffering */
    double max;
    diff_sum squares;
    bool placed; /* rank and index are of the first value that differs, or, if none does, of the
                    first block that is not proven equal */
    uint32_t rank;
    uint64_t index[CRN_DIMS_MAX], low[CRN_DIMS_MAX], high[CRN_DIMS_MAX];
    char first[CAIRN_VALUE_TEXT], second[CAIRN_VALUE_TEXT];
} diff_row;

typedef CRN_VEC(diff_row) diff_rows;

cairn_status crn_diff_row_init(diff_row *r, const crn_var_spec *spec, diff_at order);
void crn_diff_row_done(diff_row *r);
void crn_diff_rows_done(diff_rows *rows);

/* Let the row say at least this. */
void crn_diff_row_judge(diff_row *r, cairn_verdict verdict, const char *fmt, ...) CAIRN_PRINTF(3);

/* Note that the piece's values [first, first + n) differ; a and b are the first of them. */
void crn_diff_row_note(diff_row *r, const crn_var_spec *piece, uint32_t rank, uint64_t first,
                       uint64_t n, const void *a, const void *b);

/* The same for one value, given in words. */
void crn_diff_row_note_text(diff_row *r, const crn_var_spec *piece, uint64_t i, const char *a,
                            const char *b);

/* Note that values of a piece from first on are not proven equal. */
void crn_diff_row_doubt(diff_row *r, const crn_var_spec *piece, uint32_t rank, uint64_t first);

/* Note what was found about the values of a piece as they were compared. */
void crn_diff_row_count(diff_row *r, const crn_value_delta *delta);

/* Add what another row of the same variable says. */
void crn_diff_row_add(diff_row *to, const diff_row *r);

/* Add a row to others; it is taken, also when that fails. One variable has several rows where ranks
 * do not agree on its type or on whether it is a piece of an array. */
cairn_status crn_diff_rows_merge(diff_rows *rows, diff_row *r);
void crn_diff_rows_sort(diff_rows *rows); /* once they are all there */

void crn_diff_rows_put(const diff_rows *rows, crn_buf *buf);
cairn_status crn_diff_rows_get(crn_cursor *c, diff_rows *rows); /* merges */

/* --- threads -------------------------------------------------------------------------------- */

typedef struct diff_worker diff_worker;
typedef struct diff_crew diff_crew;

/* Take pieces of a task until there are none left; by several threads at once. */
typedef void diff_task_fn(void *arg, diff_worker *w);

/* Threads that help, one for each of n workers; fewer where the system gives no more. */
cairn_status crn_diff_crew_create(diff_worker **worker, unsigned n, diff_crew **ret);
void crn_diff_crew_free(diff_crew *c); /* NULL is allowed */

/* Do a task, together with whoever has nothing else to do; a leaf opens no other. c may be NULL. */
void crn_diff_crew_do(diff_crew *c, diff_worker *w, bool leaf, diff_task_fn *fn, void *arg);

/* --- comparing ------------------------------------------------------------------------------ */

/* cairn_compare for two sources that all processes of comm have alike; comm is taken. */
cairn_status crn_diff_sources(crn_comm *comm, const crn_diff_source *first,
                              const crn_diff_source *second, const cairn_comparison_options *how,
                              cairn_comparison *ret);

enum {
    DIFF_MEMORY = 8 << 20, /* bytes of one side that a thread has in memory or on their way */
    DIFF_BATCH = 1 << 20,  /* that are fetched together; one block at least */
    DIFF_BATCHES = DIFF_MEMORY / DIFF_BATCH,
    DIFF_START_WIDTH = 64 /* trees are compared from the level with so many nodes on */
};

/* --- what codecs may have lost (diff_loss.c) ---------------------------------------------------
 */

typedef struct diff_losses {
    crn_loss side[2];
} diff_losses;

/* What the two sides of a variable may have lost; false: nothing. */
bool crn_diff_losses_of(const crn_var_spec *a, const crn_var_spec *b, diff_losses *ret);

/* As crn_values_compare, for floating-point values of which codecs may have lost something: *delta
 * and fn get what surely differs. False: nothing does, and it is not proven that nothing did. */
bool crn_diff_compare_lossy(const crn_value_rule *rule, const diff_losses *losses, const void *a,
                            const void *b, uint64_t n, crn_value_delta *delta, crn_value_fn *fn,
                            void *arg);

/* The sentence for it. */
#define CRN_DIFF_UNPROVEN "not proven, by what a codec may have lost: see 'loss' of the variable"

/* What is asked. */
typedef struct diff_question {
    bool has_bound;  /* else: the loosest that both sides have trees for, or exact */
    bool own_bounds; /* or rather the loosest that the first side has */
    crn_bound bound;
    crn_named_bounds named; /* for some instead */
    const char *variable;   /* NULL: all */
    const char *exclude;    /* patterns of names that are left out; NULL: none */
    bool nan_differs, direct;
} diff_question;

/* Read "BOUND, NAME=BOUND, ..." into *ask. CAIRN_EINVAL says what is wrong. */
cairn_status crn_diff_bounds_parse(const char *text, diff_question *ask);
void crn_diff_bounds_done(diff_question *ask);

/* Is a bound asked for, for a variable or one of its members; and which, for a member ("": the
 * variable)? */
bool crn_diff_asks_bound(const diff_question *ask, const char *variable);
crn_bound crn_diff_bound_of(const diff_question *ask, const char *variable, const char *path);

/* The numbers of a variable's type, with the bounds that are asked for. None for what is compared
 * as bytes. */
void crn_diff_fields(const diff_question *ask, const crn_var_spec *spec, crn_fields *ret);

/* The same with the bounds that trees are for: one for all, but for members that have their own. */
void crn_diff_tree_fields(const crn_var_spec *spec, const crn_bound *bound, const char *members,
                          crn_fields *ret);

/* The bounds of members that trees are for, up to the end of the line; NULL: none has its own. */
const char *crn_diff_members(const crn_trees_var *v);
bool crn_diff_same_members(const crn_trees_var *a, const crn_trees_var *b);

/* Are they the one number that the type is? */
bool crn_diff_is_plain(const crn_fields *f);

/* Does a name, or what it lies below, fit one of the patterns, which commas separate? */
bool crn_diff_is_excluded(const char *name, const char *patterns);

/* Called by any thread when so many bytes of the first side have been seen to. */
typedef void diff_seen_fn(void *arg, uint64_t nbytes);

/* What a thread works with. */
struct diff_worker {
    const diff_question *ask;
    diff_crew *crew;    /* NULL: there are no other threads */
    diff_seen_fn *seen; /* NULL: nobody wants to know */
    void *seen_arg;
    crn_io *io;
    unsigned char *data[2]; /* of each side: DIFF_MEMORY, cut into batches */
    struct {
        crn_fetch *fetch[2];
        int nfetches; /* that were begun */
        crn_bad_blocks bad[2];
        size_t first, n; /* of the blocks */
    } batch[DIFF_BATCHES];
};

cairn_status crn_diff_worker_create(const diff_question *ask, diff_worker **ret);
void crn_diff_worker_free(diff_worker *w);          /* NULL is allowed */
void crn_diff_see(diff_worker *w, uint64_t nbytes); /* call w->seen, if there is one */

/* How a thread looks at its share of some work: see diff_flow.c. */
typedef struct diff_flow {
    /* Take some of the work into a slot, and let it be read. CAIRN_NOTHING: none is left. */
    cairn_status (*start)(void *arg, size_t slot);
    cairn_status (*finish)(void *arg, size_t slot); /* wait; also for one whose start failed */
    void (*compare)(void *arg, size_t slot);
} diff_flow;

/* Until nothing is left, with as many slots on their way as there are. */
cairn_status crn_diff_flow_run(const diff_flow *f, void *arg, size_t nslots);

/* What threads find out together about one variable. */
typedef struct diff_joint {
    diff_row blank; /* what a thread begins with */
    pthread_mutex_t mutex;
    diff_row *row; /* guarded by mutex */
    crn_err err;   /* likewise: the first failure */
} diff_joint;

void crn_diff_joint_init(diff_joint *j, diff_row *row);

/* Add what a thread has found, and how it ended; was that well? */
bool crn_diff_joint_add(diff_joint *j, const diff_row *row, cairn_status rc);
cairn_status crn_diff_joint_end(diff_joint *j); /* the first failure, if there was one */

/* Compare the unit of a rank, and merge what it finds into rows, under the lock if there is one. */
cairn_status crn_diff_unit(diff_worker *w, diff_side side[2], const diff_mark *mark[2],
                           uint32_t rank, diff_rows *rows, pthread_mutex_t *lock);

/* The same for a share of the first side that the caller has opened, and which stays as it is: of a
 * mark, say, that is being taken. Nobody else's share of that side is looked at: whether its ranks
 * hold alike what rows with alike were made for, and whether the second side has more items than
 * all of them where rows are numbered, is left to the caller. */
cairn_status crn_diff_share(diff_worker *w, const diff_share *first, diff_side side[2],
                            const diff_mark *mark[2], diff_rows *rows);

/* Does a variable, whose table is loaded, lie outside of the parts? Then it is read through the
 * share's own queue, by one thread. */
bool crn_diff_is_outside(const crn_var *v);

/* Fetch and compare leaves of two variables at the same place: spec's blocks are leaves, which need
 * not be blocks of either part. */
cairn_status crn_diff_verify(diff_worker *w, diff_share *share[2], const crn_var_spec *spec,
                             const uint64_t *block, size_t n, diff_row *row);

/* The same for leaves that are not the blocks of both parts. */
cairn_status crn_diff_leaves(diff_worker *w, diff_share *share[2], const crn_var_spec *spec,
                             const uint64_t *leaf, size_t n, diff_row *row);

/* Values of two pieces that belong together: n from a on in one, from b on in the other. */
typedef struct diff_range {
    uint64_t a, b, n;
} diff_range;

typedef CRN_VEC(diff_range) diff_runs;

/*
 * What pieces a and b of an array have in common, or all of two variables of the same size that are
 * none: runs of n values that lie contiguous in both, in the order in which they do so in either.
 * Or runs that are listed, in a's order, whatever their order in b.
 */
typedef struct diff_overlap {
    const diff_range *run; /* listed, nruns of them; NULL: the runs are the stretches */
    uint64_t nruns;
    crn_stretches stretches; /* from a to b, in values */
} diff_overlap;

/* Where values of a piece come from, and blocks of it that are in memory. */
typedef struct diff_source {
    diff_share *share;
    const crn_var *told; /* by its trees, if it has any */
    crn_var *var;        /* in the part, with its table */
    diff_overlap overlap;
    unsigned char *window;
    uint64_t first, n; /* blocks in the window, */
    size_t room;       /* of so many */
} diff_source;

/* A piece of an array that is put together from those of a run; see diff_gather.c. */
typedef struct diff_gather {
    const crn_var_spec *spec; /* of the piece */
    CRN_VEC(diff_source) source;
    uint64_t read_bytes;
} diff_gather;

/* Add what a share has of the piece, if it has any. CAIRN_ENOTFOUND: its data is gone. */
cairn_status crn_diff_gather_add(diff_gather *g, diff_share *share);
void crn_diff_gather_done(diff_gather *g);

/* How many of the piece's values [from, to) are there? More than that: some are there twice. */
uint64_t crn_diff_gather_covers(const diff_gather *g, uint64_t from, uint64_t to);

/* Read bytes [from, to) of the piece, as far as they are there. */
cairn_status crn_diff_gather_read(diff_gather *g, uint64_t from, uint64_t to, unsigned char *dst);

/*
 * Of blocks that trees do not prove equal to a golden file's, which is share[golden], take those
 * out of *d that its sketch proves equal, and those that are proven to differ, which the row then
 * says. *ret_used: there is a sketch for the row's bound. gather: where the values come from; NULL:
 * from the other share. CAIRN_ENOTFOUND: the data is gone.
 */
cairn_status crn_diff_prove(diff_worker *w, diff_share *share[2], int golden, const diff_var v[2],
                            diff_gather *gather, crn_tree_delta *d, diff_row *row, bool *ret_used);

/* Are trees those of a variable in a part? Where its blocks are no leaves, all of it is read. */
cairn_status crn_diff_describes(diff_share *s, crn_var *v, const crn_trees_var *trees, bool *ret);

/* What makes the digests of a variable's leaves. */
cairn_status crn_diff_digester_of(const crn_trees_var *v, crn_digester **ret);

/* Read n leaves of leaf bytes from the first on, which need not be the blocks of v, verified; dst
 * has room for whole ones. Those that are bad are appended to *bad; NULL: they end it. */
cairn_status crn_diff_read_leaves(diff_share *s, crn_var *v, uint32_t leaf, uint64_t first,
                                  size_t n, unsigned char *dst, crn_bad_blocks *bad);

/* Do two variables have the same place in the same array, or the same size where it is none? */
bool crn_diff_same_place(const crn_var_spec *a, const crn_var_spec *b);

/* Do all ranks of a mark hold the variable with the bits that var, of one of them, has? Otherwise
 * ret gets a sentence. */
bool crn_diff_is_alike(diff_side *s, const diff_mark *m, const crn_var *var,
                       char ret[CRN_ERR_TEXT]);

/* Are they cut into the same leaves or blocks? */
bool crn_diff_same_cut(const crn_var *a, const crn_var *b);

/*
 * Let two variables at the same place, of shares of the same rank, be cut in the same way, if that
 * can be had: by the tables of parts, or, where one side has trees only, which dictate the cut, by
 * reading the other's data. What is made for that is made's, which is zeroed at first and freed by
 * crn_diff_cut_done. CAIRN_OK also when nothing helps.
 */
typedef struct diff_cut {
    crn_trees_var trees;
    bool is_made;
} diff_cut;
cairn_status crn_diff_cut(diff_share share[2], diff_var v[2], diff_cut *made);
void crn_diff_cut_done(diff_cut *made);

/* A sentence for variables whose shapes differ. */
void crn_diff_why_shapes(const diff_side side[2], uint32_t rank, const diff_var v[2],
                         char ret[CRN_ERR_TEXT]);

/* A sentence that says why a golden file's trees cannot be held against the run's: empty when they
 * can. asked: the bound, if one was given; tolerant: both have trees for it, or for one that will
 * do. */
void crn_diff_why_golden(const diff_side side[2], const diff_mark *const mark[2],
                         const diff_var v[2], const crn_bound *asked, bool tolerant,
                         char ret[CRN_ERR_TEXT]);

/* Over the ranges among a's values from up to, not including, to. */
typedef struct diff_walk {
    const diff_overlap *o;
    uint64_t from, to, run;
} diff_walk;

bool crn_diff_overlap_of(const crn_var_spec *a, const crn_var_spec *b, diff_overlap *ret);
diff_walk crn_diff_walk_of(const diff_overlap *o, uint64_t from, uint64_t to);
bool crn_diff_walk_next(diff_walk *w, diff_range *ret);

uint64_t crn_diff_overlap_size(const diff_overlap *o); /* values */

/* How many blocks of b hold what such a walk meets; ret, unless NULL, gets which, ascending. Where
 * runs are listed it may be fewer than without ret, for which there is room in ret. */
size_t crn_diff_overlap_blocks(const diff_overlap *o, const crn_var_spec *b, uint64_t from,
                               uint64_t to, uint64_t *ret);

/* Compare the piece of share[0] with the pieces of n shares of the second side, whatever their cut:
 * of a global array where they overlap, otherwise with one as a whole. */
cairn_status crn_diff_ranges(diff_worker *w, diff_share *first, diff_share *second, size_t n,
                             const crn_var_spec *spec, diff_row *row);

/* The same for values that belong together by lists, one for each of the n shares. */
cairn_status crn_diff_runs(diff_worker *w, diff_share *first, diff_share *second, size_t n,
                           const diff_runs *run, const crn_var_spec *spec, diff_row *row);

/*
 * Items that belong together wherever they lie: those of the same cell, in their order, or those
 * that have the same number. What has a line "id=NAME" (cairn_describe) has its numbers in the
 * member, or in the variable, of that name.
 */
bool crn_diff_is_keyed(const crn_var_spec *spec);
bool crn_diff_item_id(const crn_var_spec *spec, char ret[CRN_VAR_NAME + 1]); /* false: cells do */
void crn_diff_index_name(const char *name, char ret[CRN_VAR_NAME + 8]);      /* of its cells */

/* Compare the items of the first share with those of n shares, which are all of the second side. */
cairn_status crn_diff_items(diff_worker *w, diff_share *first, diff_share *second, size_t n,
                            const crn_var_spec *spec, diff_row *row);

/* A sum that stands for the numbers of items, whoever has which: all that a share has are added;
 * and for those of all ranks. Equal sums, of as many, stand for the same numbers. */
cairn_status crn_diff_sum_numbers(diff_share *s, const crn_var_spec *spec, uint64_t *sum);
cairn_status crn_diff_sum_all_numbers(diff_side *s, const diff_mark *m, const crn_var_spec *spec,
                                      uint64_t *ret);

/* How many items do all ranks have? */
cairn_status crn_diff_count_items(diff_side *s, const diff_mark *m, const char *name,
                                  uint64_t *ret);

/* --- files of other programs ----------------------------------------------------------------
 *
 * HDF5 files, and raw ones with nothing but values, have no trees: all is read. Arrays of the same
 * name are cut into slabs, which are the units here. What lies in a file as it is in memory is read
 * past HDF5; only the rest (compressed, in chunks, of another byte order, texts, attributes) passes
 * through it, by one thread at a time.
 */

/* What a name in a file stands for. */
typedef enum diff_array_kind {
    DIFF_VALUES,  /* an array, also of one value: a dataset, an attribute */
    DIFF_GROUP,   /* of HDF5; */
    DIFF_TYPE,    /* a type with a name; */
    DIFF_AGAIN,   /* a group within itself; */
    DIFF_LOST,    /* a link that leads nowhere; */
    DIFF_OUTWARD, /* a link into another file, which is not followed */
} diff_array_kind;

struct crn_hdf5_form;

/* An array of a file, or what else a name of HDF5 leads to. An attribute is called "dataset/@name",
 * and "@name" if it is the file's. */
typedef struct diff_array {
    char *name, *type;
    diff_array_kind kind;
    char *why; /* VALUES: they cannot be compared; NULL: they can. Of others: where they lead */
    size_t item;
    bool scalar;    /* in HDF5 without dimensions */
    uint32_t ndims; /* at least 1 */
    uint64_t shape[CRN_DIMS_MAX], nvalues;
    uint64_t chunk[CRN_DIMS_MAX]; /* what is best read together */
    bool plain;                   /* the values lie in the file as they are, */
    uint64_t off;                 /* from here on; otherwise they are HDF5's: */
    int64_t dataset, attribute;   /* one of them, the other is 0, */
    int64_t memory;               /* and the type that it is read as */
    struct crn_hdf5_form *form;   /* what values consist of that are no numbers; NULL: they are */
    uint64_t stored_bytes;        /* that the chunks have which are there; not chunked: all */
    unsigned char *fill; /* nothing was ever written: all values are this; NULL: some was */
} diff_array;

typedef struct diff_file {
    char *name;
    crn_file *file;            /* for what is plain */
    int64_t hdf5;              /* HDF5's; 0: not opened by it */
    CRN_VEC(diff_array) array; /* by name */
} diff_file;

/* A contiguous stretch of an array's values that is also a box: all of the dimensions behind dim.
 */
typedef struct diff_slab {
    uint64_t first, n; /* values */
    uint32_t dim;
    uint64_t offset[CRN_DIMS_MAX], count[CRN_DIMS_MAX];
} diff_slab;

/* Open a file as HDF5, or with a type as values of that. Symbolic links are followed: a person has
 * named it. */
cairn_status crn_diff_file_open(diff_file *f, const char *name,
                                const cairn_comparison_options *how);
void crn_diff_file_close(diff_file *f); /* a zeroed one is allowed */

/* For what is plain: past the page cache, unless that has it. */
cairn_status crn_diff_open_plain(diff_file *f, const char *path, uint64_t *ret_nbytes);
cairn_status crn_diff_open_hdf5(diff_file *f, const char *path, bool follow);
void crn_diff_close_hdf5(diff_file *f);
void crn_diff_array_done(diff_array *a); /* what is not HDF5's */

/* Of values that are no numbers (form): can those of the two be compared? Have they pointers? */
bool crn_diff_forms_like(const diff_array *a, const diff_array *b);
bool crn_diff_form_is_variable(const diff_array *a);

/* Are two types with names the same? */
bool crn_diff_same_types(const diff_array *a, const diff_array *b);

/* Read a slab of an array that is not plain; the second while HDF5 is locked. */
cairn_status crn_diff_file_read(const diff_file *f, const diff_array *a, const diff_slab *slab,
                                void *dst);
cairn_status crn_diff_read_held(const diff_file *f, const diff_array *a, const diff_slab *slab,
                                void *dst);

/* Read and compare a slab of values that are no numbers (form), which are alike. */
cairn_status crn_diff_forms(diff_worker *w, const diff_file file[2], const diff_array *const a[2],
                            const diff_slab *slab, const crn_var_spec *spec, diff_row *row);

/* Two files, array by array. */
typedef struct diff_files diff_files;
cairn_status crn_diff_files_open(const char *first, const char *second,
                                 const cairn_comparison_options *how, diff_files **ret);
void crn_diff_files_free(diff_files *f); /* NULL is allowed */
uint64_t crn_diff_files_nunits(const diff_files *f);
uint64_t crn_diff_files_nbytes(const diff_files *f);   /* that both have, of one of them */
uint64_t crn_diff_files_nskipped(const diff_files *f); /* left out by name */

/* A row for each array, in the order of names, with what is known without looking at values. */
cairn_status crn_diff_files_rows(const diff_files *f, diff_rows *rows);

/* As crn_diff_unit. */
cairn_status crn_diff_files_unit(diff_worker *w, const diff_files *f, uint64_t unit,
                                 diff_rows *rows, pthread_mutex_t *lock);

/* How the values of a row are compared. */
crn_value_rule crn_diff_rule(const diff_worker *w, const diff_row *row, const crn_var_spec *spec);

#endif
