/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of 'cairn explain' share:
 *
 *     cmd_explain.c        the command and its words
 *     cmd_explain_runs.c   between which marks two runs part
 *     cmd_explain_lane.c   what a thread of a trace did there that depends on an order
 *     cmd_explain_trace.c  how that differs between two traces
 */
#ifndef CAIRN_CMD_EXPLAIN_H
#define CAIRN_CMD_EXPLAIN_H

#include "cmd/cmd_compare.h"
#include "cmd/cmd_trace.h"

/* The stretch that is looked at: from one mark to another. */
typedef struct cmd_stretch {
    bool from_start; /* from the beginning of the traces on: no mark agrees */
    uint64_t from, to;
    uint64_t taken_ns[2]; /* when the second mark was, in both runs; 0: not known */
} cmd_stretch;

/* ---- the runs (cmd_explain_runs.c) ---- */

/* Where two runs part. */
typedef struct cmd_parting {
    bool differ; /* there is a mark that both have and that differs */
    cairn_comparison_row
        first;             /* the first row that does; else the first that is in doubt, if any */
    char *text[4];         /* its strings */
    cmd_stretch stretch;   /* from the last mark before it that surely agrees */
    cairn_verdict verdict; /* the gravest, of marks that both have */
    uint64_t nmarks;       /* that both have, up to there */
    uint64_t nalone;       /* that only one of them has, up to there */
} cmd_parting;

/* Compare the runs up to the first difference. CMD_YES, or CMD_UNKNOWN after saying why. */
int cmd_parting_find(const cairn_comparison_options *how, char *const run[2], cmd_parting *ret);
void cmd_parting_done(cmd_parting *p);

/* ---- a thread of a trace (cmd_explain_lane.c) ---- */

/* Texts as numbers, which are the same for both traces. */
typedef struct cmd_names {
    json_t *number; /* by text */
    CRN_VEC(const char *) text;
} cmd_names;

/* A call site of a trace. */
typedef struct cmd_site {
    uint32_t number; /* of its text, + 1; 0: not asked yet */
    bool own;        /* in libcairn: what it does is no part of the program */
} cmd_site;

/* One of the traces. */
typedef struct cmd_side {
    const char *path;
    cairn_trace *t;
    cairn_trace_info info;
    cmd_names *names;
    CRN_VEC(cmd_site) site;
    uint32_t start; /* where rank 0 began, as the number of a site; 0: not known */
} cmd_side;

/* A message that a wildcard receive got, or a probe found. */
typedef struct cmd_receipt {
    uint32_t site; /* number of its text */
    const char *call;
    int64_t source, tag;
} cmd_receipt;

/* Some of a thread's receipts or files, counted from its first one. */
typedef struct cmd_span {
    uint64_t first, end;
} cmd_span;

/* What a thread did in the stretch that depends on an order. */
typedef struct cmd_lane {
    uint32_t thread; /* its number; threads may have had it one after the other: */
    uint64_t life;   /* the how-manyth, from 0 */
    CRN_VEC(cmd_receipt) receipt;
    CRN_VEC(uint32_t) file; /* that were read, by name; one for reads that follow each other */
    cmd_span receipts, files;
    uint64_t began[2];      /* its first receipt, but for the source, and file; 0: none so far */
    uint64_t history;       /* digest of what it had received and read before its spans */
    bool marks;             /* it took the second mark itself: it stands there in all runs */
    struct cmd_lane *other; /* the thread of the other trace that it is compared with */
    bool paired;
} cmd_lane;

typedef CRN_VEC(cmd_lane) cmd_lanes;

/* What is known of the stretch in a trace by the threads of one number. */
typedef struct cmd_passing {
    bool has_from, has_to; /* the marks are there */
    bool whole;            /* all of the stretch is, as far as it is known when it began */
    uint64_t first_mark;   /* that is there at all */
    uint64_t nnameless;    /* reads of files that another thread opened */
} cmd_passing;

/* What the threads of this number did between the marks is added to *to. CMD_YES, or CMD_UNKNOWN
 * after saying why. */
int cmd_lane_collect(cmd_side *s, uint32_t rank, uint32_t thread, const cmd_stretch *stretch,
                     cmd_lanes *to, cmd_passing *ret);

/* What a thread did in these spans, wherever marks are. */
int cmd_lane_collect_spans(cmd_side *s, uint32_t rank, const cmd_lane *which, cmd_span receipts,
                           cmd_span files, cmd_lane *ret);

void cmd_lane_done(cmd_lane *l);

/* Leave the first n. */
void cmd_lanes_cut(cmd_lanes *l, size_t n);

/* ---- two traces (cmd_explain_trace.c) ---- */

/* A wildcard receive that matched another sender, or another tag. */
typedef struct cmd_match {
    uint64_t nth;      /* of those of its thread in the stretch, from 1 */
    const char *call;  /* that completed it */
    const char *site;  /* where */
    int64_t source[2]; /* in the first and in the second trace */
    int64_t tag[2];
} cmd_match;

/* What a thread of a rank did otherwise in the second trace. */
typedef struct cmd_deviation {
    uint32_t rank;
    int64_t thread[2];     /* -1: the trace has none for the other's */
    uint64_t nreceived[2]; /* messages that wildcard receives got */
    const cmd_match *match;
    size_t nmatches;
    bool parted; /* after 'common' receives the next ones are at other places */
    uint64_t ncommon;
    bool cut;            /* another thread took the second mark, after other numbers of receives */
    uint64_t ncut[2];    /* these, from the thread's start on */
    uint64_t nth_file;   /* the first file that is read in place of another, from 1; 0: none */
    const char *file[2]; /* these; NULL: there are no more files */
    bool same_files;     /* all in all the same ones are read, so their order differs */
} cmd_deviation;

typedef void cmd_deviation_fn(void *arg, const cmd_deviation *d);

/* What holds for all of it. */
typedef struct cmd_remarks {
    bool rebuilt;       /* the programs were not built alike: places cannot be compared */
    uint64_t nnameless; /* reads of files whose names are not known */
} cmd_remarks;

/* Compare the stretch in two traces. CMD_YES, or CMD_UNKNOWN after saying why. */
int cmd_explain_traces(char *const path[2], const cmd_stretch *stretch, cmd_deviation_fn *fn,
                       void *arg, cmd_remarks *ret);

#endif
