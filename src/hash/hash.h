/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hash: digests of blocks and the trees over them. Row 1.
 *
 * The exact digest of a block is XXH3-128 (seed 0) of its bytes in canonical (big-endian) byte
 * order: equal digests stand for equal blocks. It guards against accidents, not against an
 * adversary.
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

crn_digest crn_digest_of(const void *data, size_t nbytes);
bool crn_digest_equal(const crn_digest *a, const crn_digest *b);

/* Digest of src, and a copy of it in dst, in one pass that reads memory once. dst is written past
 * the cache where that is faster; the two must not overlap. */
crn_digest crn_digest_copy(void *dst, const void *src, size_t nbytes);

enum { CRN_DIGEST_TEXT = 33 };
char *crn_digest_format(const crn_digest *d,
                        char buf[CRN_DIGEST_TEXT]); /* hexadecimal; returns buf */

/*
 * The tree: a flat array of levels, leaves first, each level half of the one below (an odd last
 * node is carried up as it is), up to one root.
 *
 *     level 2         R                node = digest of its two children's 32 bytes
 *     level 1     A       B
 *     level 0   0   1   2   3 ...      leaf = digest of a block
 */
typedef struct crn_tree {
    crn_digest *node; /* nnodes digests, leaves first */
    size_t nleaves, nnodes;
    int nlevels; /* 0 for the empty tree */
} crn_tree;

/* Build a tree over nleaves digests, which are copied. No leaf: the empty tree. */
cairn_status crn_tree_build(const crn_digest *leaf, size_t nleaves, crn_tree *ret);
void crn_tree_done(crn_tree *t); /* a zeroed tree is allowed */

/* The root; all zero for the empty tree. */
crn_digest crn_tree_root(const crn_tree *t);

/* Give leaves index[0..n) (ascending) new digests and renew only the nodes above them. */
void crn_tree_update(crn_tree *t, const size_t *index, const crn_digest *leaf, size_t n);

/* Nodes of a tree with nleaves leaves, all levels together; and where level l starts. */
size_t crn_tree_nnodes(size_t nleaves);
size_t crn_tree_level(const crn_tree *t, int level, size_t *ret_n);

/* What crn_tree_diff found. Free with crn_tree_diff_done. */
typedef struct crn_tree_delta {
    CRN_VEC(size_t) leaf; /* ascending indices, below common, whose digests differ */
    size_t common;        /* leaves that both trees have; the rest is in one tree only */
    size_t visited;       /* nodes compared: what the tree saved */
} crn_tree_delta;

/*
 * Find the differing leaves of two trees, going down from the level that has at least start_width
 * nodes (0: from the root). Trees of different sizes are compared over their common range.
 */
cairn_status crn_tree_diff(const crn_tree *a, const crn_tree *b, size_t start_width,
                           crn_tree_delta *ret);
void crn_tree_delta_done(crn_tree_delta *d);

/* Bytes of a tree for a file: u64 nleaves, then the nodes as they lie; parse checks every node. */
void crn_tree_put(const crn_tree *t, crn_buf *buf);
cairn_status crn_tree_get(crn_cursor *cur, crn_tree *ret);

#endif
