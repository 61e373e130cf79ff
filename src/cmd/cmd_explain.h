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
    bool differ;                /* there is a mark that both have and that differs: */
    cairn_comparison_row first; /* this is the first such row; its strings are in text */
    char *text[4];
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
    uint32_t thread;
    CRN_VEC(cmd_receipt) receipt;
    CRN_VEC(uint32_t) file; /* that were read, by name; one for reads that follow each other */
    cmd_span receipts, files;
    uint64_t history;       /* digest of what it had received and read before its spans */
    uint64_t nnameless;     /* reads of files that another thread opened */
    uint64_t first_mark;    /* that the trace has */
    bool has_from, has_to;  /* the marks are in the trace */
    bool whole;             /* all of the stretch is there, as far as the thread lived in it */
    bool marks;             /* it took the second mark itself: it stands there in all runs */
    struct cmd_lane *other; /* the thread of the other trace that it is compared with */
    bool paired;
} cmd_lane;

/* What a thread did between the marks. CMD_YES, or CMD_UNKNOWN after saying why. */
int cmd_lane_collect(cmd_side *s, uint32_t rank, uint32_t thread, const cmd_stretch *stretch,
                     cmd_lane *ret);

/* The same for the receipts and files of these spans, wherever marks are. */
int cmd_lane_collect_spans(cmd_side *s, uint32_t rank, uint32_t thread, cmd_span receipts,
                           cmd_span files, cmd_lane *ret);

void cmd_lane_done(cmd_lane *l);

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
