/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trees: what the leaves of a rank's variables digest to, mark by mark, in one file for each rank
 * and run that is only ever appended to (docs/format/trees.md). Two runs are compared by them, and
 * they stay when the data is gone. Part of store.h, which includes it.
 *
 * Which marks count. A record of version v replaces all before it of version v and above: the run
 * went back and came here again. A mark is whole when all its ranks have a record of the same
 * series, version and time; whoever reads all files finds out.
 *
 * A crn_trees is used by one thread at a time.
 */
#ifndef CAIRN_STORE_TREES_H
#define CAIRN_STORE_TREES_H

#include "store/store.h"

/* A variable: the exact tree, and one for each bound. */
typedef struct crn_trees_var {
    crn_var var; /* declaration and exact root; its blocks are leaves, and it has no table */
    size_t nbounds;
    crn_bound *bound; /* loosest first; as many as crn_trees_make_room was called for, as those */
    crn_digest *root; /* below: a run may have 100,000 marks, and all of this for each */
    crn_tree exact, *tolerant; /* empty until loaded */
    uint64_t nnan;             /* leaves with a NaN, as far as they were looked at */
    unsigned char *nan;        /* a bit for each leaf; NULL: none, or not loaded */
    bool loaded;
    uint64_t body_off; /* where the nodes lie in the file */
    crn_digest body_digest;
} crn_trees_var;

/* One rank's share of a mark. */
typedef struct crn_trees_mark {
    uint64_t version, wall_ns;
    uint32_t series, nranks;
    size_t nvars;
    crn_trees_var *var;
    crn_index name; /* of the variables, once crn_trees_index was called */
} crn_trees_mark;

cairn_status crn_trees_mark_create(size_t nvars, crn_trees_mark **ret);
void crn_trees_mark_free(crn_trees_mark *m);                              /* NULL is allowed */
crn_trees_var *crn_trees_find(const crn_trees_mark *m, const char *name); /* NULL: none */

/* All variables are declared: let them be found fast. */
cairn_status crn_trees_index(crn_trees_mark *m);

/* Make v's declaration a copy of spec, with its strings; its blocks are the leaves of the trees. */
cairn_status crn_trees_declare(crn_trees_var *v, const crn_var_spec *spec, const char *members);

/* The attribute that has the bounds of members, in trees only: a text of crn_named_bounds_format.
 */
#define CRN_TREES_BOUNDS "cairn_bounds"

/* Room for n bounds, of which there is none yet; once only. */
cairn_status crn_trees_make_room(crn_trees_var *v, size_t n);

void crn_trees_var_done(crn_trees_var *v); /* one that is in no mark */

/* Does leaf i have a NaN? */
bool crn_trees_has_nan(const crn_trees_var *v, uint64_t i);

typedef struct crn_trees crn_trees;

/*
 * Open the trees of a rank; to write creates them where there are none, and takes off what a crash
 * has left behind the last whole record. CAIRN_ENOTFOUND, CAIRN_ECORRUPT, CAIRN_EMISMATCH (of
 * another run or rank), CAIRN_EUNSUPPORTED (a newer format), CAIRN_EIO.
 */
cairn_status crn_run_trees(crn_run *run, uint32_t rank, bool write, crn_trees **ret);

/* The same from bytes in memory, which must outlive the result; name stands in messages. */
cairn_status crn_trees_of(const char *name, const void *data, size_t nbytes, crn_trees **ret);
void crn_trees_close(crn_trees *t); /* NULL is allowed */

/* Whose they are. */
uint32_t crn_trees_rank(const crn_trees *t);

/* Marks that count, by ascending versions; they stay the file's. */
size_t crn_trees_nmarks(const crn_trees *t);
crn_trees_mark *crn_trees_at(const crn_trees *t, size_t i);
crn_trees_mark *crn_trees_of_version(const crn_trees *t, uint64_t version); /* NULL: none */

/* Places where a damaged record was passed over; a cut end is none. */
size_t crn_trees_ndamaged(const crn_trees *t);

/* Read the nodes of a variable of a mark of the file; once is enough. CAIRN_ECORRUPT names it. */
cairn_status crn_trees_load(crn_trees *t, const crn_trees_mark *m, crn_trees_var *v);
void crn_trees_unload(crn_trees_var *v); /* they may be read again */

/*
 * Append a mark, whose variables must be loaded; durable when it returns CAIRN_OK. The nodes of a
 * variable that has not changed since last (a mark that was appended or read from this file before;
 * NULL: none) are not written again. After a failure the file is as it was, but for bytes behind
 * its end.
 */
cairn_status crn_trees_append(crn_trees *t, crn_trees_mark *m, const crn_trees_mark *last);

/* The bytes of a file with the same marks, for a copy elsewhere; no nodes can be loaded any more.
 */
cairn_status crn_trees_put(crn_trees *t, crn_buf *buf);

#endif
