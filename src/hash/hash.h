/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hash: digests of blocks and the trees over them. Row 1.
 *
 * The exact digest of a block is XXH3-128 (seed 0) of its bytes in canonical (big-endian) byte
 * order: equal digests stand for equal blocks. It guards against accidents, not against an
 * adversary. The tolerant digest of floating-point values stands for blocks that are equal within
 * a bound. Digests and trees are the same on every machine, whatever instructions it has.
 */
#ifndef CAIRN_HASH_H
#define CAIRN_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

typedef struct crn_digest {
    unsigned char b[16];
} crn_digest;

/* Digest of nbytes at data, at any alignment. nbytes = 0 is allowed, and then data may be NULL. */
crn_digest crn_digest_of(const void *data, size_t nbytes);
bool crn_digest_equal(const crn_digest *a, const crn_digest *b);

/*
 * The digest of src, and a copy of it in dst, in one pass that reads memory once. A long copy is
 * written past the cache, since the reader of a staged block is a device or comes much later. The
 * two must not overlap. The copy is visible to other threads as after memcpy.
 */
crn_digest crn_digest_copy(void *dst, const void *src, size_t nbytes);

/* A copy that is written past the cache, for memory that is not read soon. Others see it, in the
 * order of other writes, once crn_copy_end was called. */
void crn_copy_past(void *dst, const void *src, size_t nbytes);
void crn_copy_end(void);

/* For tests: of every digest from now on, keep only the first n bytes, so that different data have
 * equal ones; CRN_DIGEST_BYTES: all. Process-wide. */
enum { CRN_DIGEST_BYTES = 16 };
void crn_digest_weaken(size_t n);

/* Hexadecimal digits in the order of the bytes; returns buf. */
enum { CRN_DIGEST_TEXT = 33 };
char *crn_digest_format(const crn_digest *d, char buf[CRN_DIGEST_TEXT]);

/* --- tolerant digests ----------------------------------------------------------------------- */

/*
 * When two numbers count as the same: a and b differ when
 *
 *     |a - b| > max(absolute, relative * max(|a|, |b|))
 *
 * computed in double precision, of integers exactly; |x| of a complex number is its modulus. An
 * infinity is the same as itself only, +0 and -0 are the same, and NaN is the same as any NaN; who
 * does not want that looks at which blocks have NaNs. Both members are at least 0 and finite.
 */
typedef struct crn_bound {
    double absolute, relative;
} crn_bound;

/* A bound for a variable, "field", or a member of structures, "x", "cell.i". */
typedef struct crn_named_bound {
    char *name;
    crn_bound bound;
} crn_named_bound;

typedef CRN_VEC(crn_named_bound) crn_named_bounds;

/*
 * The tolerant digest of a block for a bound: blocks with equal digests have no two values, at the
 * same place, that differ. The converse does not hold: values on two sides of a cell's edge have
 * other digests, however near they are. It is the XXH3-128 of the block's keys: each value is
 * replaced by its key, of the same width, little-endian, as hash_tolerant.c explains.
 */
typedef struct crn_tolerant crn_tolerant;

enum { CRN_BOUNDS_MAX = 8 };

/*
 * A digester for values of item bytes (4 or 8) and n bounds, at most CRN_BOUNDS_MAX. Used by one
 * thread at a time. The result does not depend on the machine, nor on the floating-point modes of
 * the calling thread, which are as before afterwards. CAIRN_ENOMEM.
 */
cairn_status crn_tolerant_create(size_t item, const crn_bound *bound, size_t n, crn_tolerant **ret);
void crn_tolerant_free(crn_tolerant *t); /* NULL is allowed */

/*
 * In one pass over nbytes (a multiple of item) at data: the exact digest (exact may be NULL), the
 * digests for all bounds, and in the result whether there is a NaN.
 */
bool crn_tolerant_digest(crn_tolerant *t, const void *data, size_t nbytes, crn_digest *exact,
                         crn_digest *tolerant);

/* The keys, for bound k, of nbytes of values at src, at any alignment, to dst; is there a NaN? */
bool crn_tolerant_keys(crn_tolerant *t, size_t k, const void *src, void *dst, size_t nbytes);

/*
 * The same for elements of any other type, integers, complex numbers and structures, in blocks of
 * up to block bytes; members (or NULL) have bounds of their own, whichever the others have;
 * hash_structured.c explains the digest. The relative part of a bound helps floating-point numbers
 * only. off is where the block begins in the variable: elements may lie across its ends. As
 * crn_fields_read; CAIRN_ENOMEM.
 */
typedef struct crn_structured crn_structured;
cairn_status crn_structured_create(const char *type, uint32_t item, uint32_t block,
                                   const crn_bound *bound, size_t n,
                                   const crn_named_bounds *members, crn_structured **ret);
void crn_structured_free(crn_structured *s); /* NULL is allowed */
bool crn_structured_digest(crn_structured *s, uint64_t off, const void *data, uint32_t nbytes,
                           crn_digest *ret);

/*
 * Either of them, and the exact digest: for leaves of up to leaf bytes of a variable of any type, n
 * bounds or none. members: a text as of crn_named_bounds_format, up to the end of its line; or
 * NULL. As crn_structured_create.
 */
typedef struct crn_digester crn_digester;
cairn_status crn_digester_create(const char *type, uint32_t item, uint32_t leaf,
                                 const crn_bound *bound, size_t n, const char *members,
                                 crn_digester **ret);
void crn_digester_free(crn_digester *d); /* NULL is allowed */

/* The digests of a leaf that begins at off in the variable, exact (or NULL) and for all bounds; is
 * there a NaN, as far as there are bounds? */
bool crn_digester_leaf(crn_digester *d, uint64_t off, const void *data, uint32_t nbytes,
                       crn_digest *exact, crn_digest *tolerant);

/*
 * Bounds as people write them: "1e-6", "rel 1e-4", "1e-6 rel 1e-4"; several with commas between
 * them, up to CRN_BOUNDS_MAX, in any order. They come out sorted, loosest first, each once. An
 * empty text is no bound. CAIRN_EINVAL says what is wrong.
 */
cairn_status crn_bounds_parse(const char *text, crn_bound *ret, size_t *ret_n);

/* The same, with others for some names among them, "1e-3, x=1e-6, cell.i=0", which are added to
 * *named. What was added stays there on failure. */
cairn_status crn_bounds_parse_named(const char *text, crn_bound *ret, size_t *ret_n,
                                    crn_named_bounds *named);
cairn_status crn_named_bounds_add(crn_named_bounds *named, const char *name, size_t n,
                                  crn_bound bound); /* name: n bytes */
void crn_named_bounds_done(crn_named_bounds *named);

/* The bound of a path, or else of what it is a member of, down to its first least bytes; NULL: it
 * has none. Of several the last counts. */
const crn_bound *crn_named_bounds_find(const crn_named_bounds *named, const char *path,
                                       size_t least);

/* A text that is the same for the same bounds, and can be parsed; NULL for none. Sorts them. */
cairn_status crn_named_bounds_format(crn_named_bounds *named, char **ret);

/* Are they all members of a type? CAIRN_EINVAL says which is not. */
cairn_status crn_members_check(const char *type, const crn_named_bounds *named);

/* The same words back, into buf of CRN_BOUND_TEXT bytes; returns buf. "0" for exact. */
enum { CRN_BOUND_TEXT = 64 };
char *crn_bound_format(const crn_bound *b, char *buf);

/* Are values that agree within a sure to agree within b? */
bool crn_bound_implies(const crn_bound *a, const crn_bound *b);

/* --- sketches --------------------------------------------------------------------------------- */

/*
 * A sketch records how to shift the cells of the tolerant digest so that a reference's values are
 * far from their edges. Another block, digested with the reference's sketch, has the digest of the
 * reference only if no two values differ, as for the tolerant digest; and has it for certain where
 * all values are near enough to the reference's (for this, see CRN_SKETCH_BITS and
 * CRN_SKETCH_BYTES). The width of cells, w, is 2^floor(log2 absolute), or, where that is more,
 * 2^(floor(log2 relative) + floor(log2 |x|)) for the reference's value x; the limits of tolerant
 * digests hold here, too.
 */
typedef enum crn_sketch_kind {
    CRN_SKETCH_NONE,
    CRN_SKETCH_BITS, /* one bit for each value: the same digest for sure below w / 4 */
    CRN_SKETCH_BYTES /* one byte for 64 values, and a bit each where that would not do: for sure
                        below a hundredth of max(absolute, relative * |x|) */
} crn_sketch_kind;

typedef struct crn_sketcher crn_sketcher;

/* For values of item bytes (4 or 8) and one bound. Used by one thread at a time. CAIRN_ENOMEM. */
cairn_status crn_sketcher_create(size_t item, const crn_bound *bound, crn_sketcher **ret);
void crn_sketcher_free(crn_sketcher *s); /* NULL is allowed */

/*
 * Append the sketch of a block of nbytes (a multiple of item) to buf and return the kind, which is
 * CRN_SKETCH_BITS also where bytes are wanted and would be more; ret gets the block's own digest.
 */
crn_sketch_kind crn_sketch_make(crn_sketcher *s, crn_sketch_kind wanted, const void *data,
                                size_t nbytes, crn_buf *buf, crn_digest *ret);

/* The digest of a block with a sketch; false: that is not one of so many values. */
bool crn_sketch_digest(crn_sketcher *s, crn_sketch_kind kind, const unsigned char *sketch,
                       size_t sketch_bytes, const void *data, size_t nbytes, crn_digest *ret);

/* Is this a sketch of a block of nvalues? */
bool crn_sketch_fits(crn_sketch_kind kind, const unsigned char *sketch, size_t sketch_bytes,
                     size_t nvalues);

/* --- facts ------------------------------------------------------------------------------------ */

/* What is kept of a block to prove that another one differs. */
typedef struct crn_facts {
    crn_digest
        plain; /* of the values, with one NaN and one zero: the tolerant digest for bound 0 */
    uint32_t nnan, nabove, nbelow; /* values that are NaN, infinite, minus infinite */
    double min, max;               /* of the finite ones; 0 where there are none */
    double sum, size;              /* of them, and of their absolute values */
} crn_facts;

cairn_status crn_facts_of(size_t item, const void *data, size_t nbytes, crn_facts *ret);

/*
 * Do blocks of n values with these facts have values that differ, for sure? Then the reason, in
 * words; NULL: nothing is known. nan_differs: NaN is not even the same as NaN.
 */
const char *crn_facts_differ(const crn_facts *a, const crn_facts *b, uint64_t n,
                             const crn_bound *bound, bool nan_differs);

/* --- values --------------------------------------------------------------------------------- */

/* How values of a type are compared: bytes and what is no type as bytes, others as numbers. */
typedef enum crn_value_kind {
    CRN_VALUE_OTHER,
    CRN_VALUE_INT,
    CRN_VALUE_UINT,
    CRN_VALUE_F32,
    CRN_VALUE_F64
} crn_value_kind;

/* By the name of the type, such as "float64". */
crn_value_kind crn_value_kind_of(const char *type);

bool crn_value_is_float(const char *type);

/* An integer of item bytes at p as one without sign, in the same order: the smallest is 0. */
uint64_t crn_value_order(crn_value_kind kind, size_t item, const void *p);

/*
 * The numbers of one kind that lie behind each other in an element of a type: count of them, of
 * item bytes each. A structure of two floating-point numbers and nothing else, called r and i, re
 * and im, or real and imag, is a complex number: the distance of two is the modulus of their
 * difference, and their size the modulus.
 */
typedef struct crn_field {
    crn_value_kind kind; /* of a complex number its parts' */
    bool is_complex;
    uint32_t offset, item, count;
    crn_bound bound;
} crn_field;

typedef CRN_VEC(crn_field) crn_fields;

/* The bound for a member, given as "member" or "member.member"; "" for an element that is no
 * structure. */
typedef crn_bound crn_bound_fn(const void *arg, const char *path);

enum { CRN_FIELDS_MAX = 4096, CRN_FIELD_PATH = 1100 };

/*
 * The fields of a type, by ascending offset, into *ret, whose room is reused. bound_of NULL: all
 * bounds are 0. CAIRN_EINVAL: no type; CAIRN_EUNSUPPORTED: more than CRN_FIELDS_MAX.
 */
cairn_status crn_fields_read(const char *type, crn_bound_fn *bound_of, const void *arg,
                             crn_fields *ret);

/* How to compare; item is the bytes of a value. */
typedef struct crn_value_rule {
    crn_value_kind kind;
    size_t item;
    crn_bound bound;
    bool nan_differs;         /* NaN is not even the same as NaN */
    const crn_fields *fields; /* of a structure, which differs when one of them does; its distance
                                 is the largest of theirs. NULL: it is one number, or bytes */
} crn_value_rule;

/*
 * Sums over values that differ; zeroed at first. max and squares are of |a - b|, where both are
 * finite numbers; a distance that no double can hold counts as the largest one. Squares of what is
 * very small or very large are none, so that there are three sums, in units of 2^-1200, 1 and
 * 2^1200.
 */
enum { CRN_SQUARES = 3, CRN_SQUARES_SCALE = 1200 };

typedef struct crn_value_delta {
    uint64_t n;          /* values, */
    uint64_t nnonfinite; /* and those of them where one of the two is NaN or infinite */
    double max, squares[CRN_SQUARES];
} crn_value_delta;

/* Called with stretches of values [first, first + n) that all differ, in ascending order. */
typedef void crn_value_fn(void *arg, uint64_t first, uint64_t n);

/*
 * Compare n values at a and b, at any alignment, by the formula of crn_bound; add to *delta what
 * differs and call fn (unless NULL) for it.
 */
void crn_values_compare(const crn_value_rule *rule, const void *a, const void *b, uint64_t n,
                        crn_value_delta *delta, crn_value_fn *fn, void *arg);

/* --- trees ---------------------------------------------------------------------------------- */

/*
 * The tree: a flat array of levels, leaves first, each level half of the one below, up to one root.
 * A node is the digest of its two children's 32 bytes; an odd last node is carried up as it is.
 *
 *     level 3             R                 node[10]
 *     level 2       P           4           node[8..9]   = { digest(A B), 4 }
 *     level 1     A   B         4           node[5..7]   = { digest(0 1), digest(2 3), 4 }
 *     level 0    0 1 2 3        4           node[0..4]   = digests of the blocks
 *
 * So node i of level l stands for the leaves from i << l up to, not including, (i + 1) << l or the
 * last leaf, and its value depends on these leaves alone, whatever lies beside them.
 */
typedef struct crn_tree {
    crn_digest *node; /* nnodes digests, leaves first */
    size_t nleaves, nnodes;
    int nlevels; /* 0 for the empty tree */
} crn_tree;

/* Build a tree over nleaves digests, which are copied. No leaf: the empty tree. CAIRN_ENOMEM. */
cairn_status crn_tree_build(const crn_digest *leaf, size_t nleaves, crn_tree *ret);
void crn_tree_done(crn_tree *t); /* a zeroed tree is allowed; leaves one */

/* The root; all zero for the empty tree. */
crn_digest crn_tree_root(const crn_tree *t);

/* Give leaves index[0..n) (ascending) new digests and renew only the nodes above them. */
void crn_tree_update(crn_tree *t, const size_t *index, const crn_digest *leaf, size_t n);

/* Nodes of a tree with nleaves leaves, all levels together, and how many levels those are. */
size_t crn_tree_nnodes(size_t nleaves);
int crn_tree_nlevels(size_t nleaves);

/* Where the nodes of a level (below nlevels) start in t->node, and how many they are. */
size_t crn_tree_level(const crn_tree *t, int level, size_t *ret_n);

/* What crn_tree_diff found. Free with crn_tree_delta_done. */
typedef struct crn_tree_delta {
    CRN_VEC(size_t) leaf; /* ascending indices, below common, whose digests differ */
    size_t common;        /* leaves that both trees have; the rest is in one tree only */
    size_t visited;       /* pairs of nodes compared: what the tree saved */
} crn_tree_delta;

/*
 * Find the differing leaves of two trees, going down from the highest level with at least
 * start_width nodes (0 or 1: from the root; more than there are leaves: the leaves alone). A start
 * in the middle saves the upper levels where differences are expected. Trees of different sizes
 * are compared over the leaves that both have. CAIRN_ENOMEM.
 */
cairn_status crn_tree_diff(const crn_tree *a, const crn_tree *b, size_t start_width,
                           crn_tree_delta *ret);
void crn_tree_delta_done(crn_tree_delta *d);

/*
 * Bytes of a tree for a file: u64 nleaves, then the nodes as they lie. get believes no length
 * before it has seen the bytes, and checks every node against its children; only the root is left
 * for the caller to compare with what it knows. CAIRN_ECORRUPT (cur has failed, too), CAIRN_ENOMEM.
 */
void crn_tree_put(const crn_tree *t, crn_buf *buf);
cairn_status crn_tree_get(crn_cursor *cur, crn_tree *ret);

#endif
