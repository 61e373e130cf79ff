/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cause: what two runs did in another order before they part. Row 4: uses base, and comparing and
 * traces as a user's program does. What it offers is <cairn/explain.h>.
 *
 *     cause_runs.c    between which marks two runs part
 *     cause_lane.c    what a thread of a trace did there that depends on an order
 *     cause_traces.c  how that differs between two traces
 */
#ifndef CAIRN_CAUSE_H
#define CAIRN_CAUSE_H

#include <cairn/explain.h>

#include "base/base.h"

struct cairn_explanation {
    cairn_parting parting;
    char *text[4]; /* the strings of its row */
};

/* The stretch that is looked at: from one mark to another. */
typedef struct crn_mark_interval {
    bool from_start; /* from the beginning of the traces on: no mark agrees */
    uint64_t from, to;
} crn_mark_interval;

/* ---- a thread of a trace (cause_lane.c) ---- */

/* Texts as numbers, which are the same for both traces. */
typedef struct crn_names {
    crn_index number; /* by text */
    CRN_VEC(char *) text;
} crn_names;

/* A call site of a trace. */
typedef struct crn_place {
    uint32_t number; /* of its text, + 1; 0: not asked yet */
    bool own;        /* in libcairn: what it does is no part of the program */
} crn_place;

/* One of the traces. */
typedef struct crn_story {
    const char *path;
    cairn_trace *t;
    cairn_trace_info info;
    crn_names *names;
    CRN_VEC(crn_place) site;
    uint32_t start; /* where rank 0 began, as the number of a site; 0: not known */
} crn_story;

/* A message that a wildcard receive got, or a probe found. */
typedef struct crn_receipt {
    uint32_t site; /* number of its text */
    const char *call;
    int64_t source, tag;
} crn_receipt;

/* Some of a thread's receipts or files, counted from its first one. */
typedef struct crn_span {
    uint64_t first, end;
} crn_span;

/* What a thread did in the stretch that depends on an order. */
typedef struct crn_act {
    uint32_t thread; /* its number; threads may have had it one after the other: */
    uint64_t life;   /* the ordinal, from 0 */
    CRN_VEC(crn_receipt) receipt;
    CRN_VEC(uint32_t) file; /* that were read, by name; one for reads that follow each other */
    crn_span receipts, files;
    uint64_t began[2];     /* its first receipt, but for the source, and file; 0: none so far */
    uint64_t history;      /* digest of what it had received and read before its spans */
    bool marks;            /* it took the second mark itself: it stands there in all runs */
    struct crn_act *other; /* the thread of the other trace that it is compared with */
    bool paired;
} crn_act;

typedef CRN_VEC(crn_act) crn_acts;

/* What is known of the stretch in a trace by the threads of one number. */
typedef struct crn_passing_by {
    bool has_from, has_to; /* the marks are there */
    bool whole;            /* all of the stretch is, as far as it is known when it began */
    uint64_t first_mark;   /* that is there at all */
    uint64_t nnameless;    /* reads of files that another thread opened */
} crn_passing_by;

/* What the threads of this number did between the marks is added to *to. */
cairn_status crn_act_collect(crn_story *s, uint32_t rank, uint32_t thread,
                             const crn_mark_interval *stretch, crn_acts *to, crn_passing_by *ret);

/* What a thread did in these spans, wherever marks are. */
cairn_status crn_act_collect_spans(crn_story *s, uint32_t rank, const crn_act *which,
                                   crn_span receipts, crn_span files, crn_act *ret);

void crn_act_done(crn_act *l);

/* Leave the first n. */
void crn_acts_cut(crn_acts *l, size_t n);

#endif
