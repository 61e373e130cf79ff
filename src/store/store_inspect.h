/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files behind <cairn/trail.h> share: store_inspect.c describes, store_verify.c checks
 * marks, store_verify_parts.c whether their files are there, store_verify_trees.c their trees.
 */
#ifndef CAIRN_STORE_INSPECT_H
#define CAIRN_STORE_INSPECT_H

#include "store/store_trail.h"

#include <cairn/trail.h>

typedef struct seen_run {
    char *name;
    crn_run *run; /* NULL: it could not be read, and err says why */
    crn_err err;
} seen_run;

struct cairn_trail {
    crn_trail *trail;
    CRN_VEC(seen_run) run;
    /* the part and the mark that were looked at last, since questions come in rows */
    crn_part *part;
    crn_mark *mark;
    size_t part_run;
    uint32_t part_series, part_rank;
};

/* What the manifest says of a run's mark. CAIRN_EINVAL: there is no such one. */
cairn_status crn_inspect_mark(cairn_trail *t, size_t run, size_t mark,
                              const crn_manifest_mark **ret);

/* Open a rank's part of the series of a mark, load the part's share of a mark, or both; unless that
 * is what was asked for last. */
cairn_status crn_inspect_open(cairn_trail *t, size_t run, const crn_manifest_mark *k,
                              uint32_t rank);
cairn_status crn_inspect_load(cairn_trail *t, uint64_t version);
cairn_status crn_inspect_part(cairn_trail *t, size_t run, size_t mark, uint32_t rank);

/* Checking a run; damage is told as it is found. */
typedef struct crn_verification {
    cairn_trail *t;
    size_t run;
    const crn_manifest_mark *mark;
    CRN_VEC(const crn_manifest_mark *) lost; /* marks that one failure, why, concerns */
    crn_err why;
    cairn_finding_fn *fn;
    void *arg;
    cairn_finding now; /* where we are */
    unsigned char *chunk;
    crn_err unread; /* why something could not be read; the first such failure */
    bool damaged, stopped;
    bool gone; /* the mark was dropped while we read it */
} crn_verification;

/* Tell of progress (CAIRN_OK), or of damage. */
void crn_verify_tell(crn_verification *v, int status, const char *text, uint64_t block);

/* Tell of what is wrong with a file or a variable, for this thread's record says so, and go on with
 * the next; only a failure that the next would meet, too, is passed on. */
cairn_status crn_verify_note(crn_verification *v, cairn_status rc);

/* Has the manifest been replaced since we read it? Then marks may have been dropped. */
bool crn_verify_is_stale(const crn_verification *v);

/*
 * Check what a rank's part, which is open, has of a mark: the visitor of crn_verify_parts.
 */
cairn_status crn_verify_share(crn_verification *v, const crn_manifest_mark *k);

/*
 * Check all marks of a run from first up to last that the trail holds: one part after the other,
 * so that each is opened once. What is not there is told in as few findings as there are gaps
 * between what is there, however much a manifest claims.
 */
cairn_status crn_verify_parts(crn_verification *v, size_t first, size_t last);

/* Check the trees of all ranks. */
cairn_status crn_verify_trees(crn_verification *v);

#endif
