/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of 'cairn explain' share: cmd_explain.c has the command and its words,
 * cmd_explain_trace.c what two traces say of the same stretch of a program.
 */
#ifndef CAIRN_CMD_EXPLAIN_H
#define CAIRN_CMD_EXPLAIN_H

#include "cmd/cmd_trace.h"

/* The stretch that is looked at: from one mark to another. */
typedef struct cmd_stretch {
    bool from_start; /* from the beginning of the traces on: no mark agrees */
    uint64_t from, to;
} cmd_stretch;

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
    uint32_t rank, thread;
    uint64_t nreceived[2]; /* messages that wildcard receives got */
    const cmd_match *match;
    size_t nmatches;
    bool parted; /* after 'common' receives the next ones are at other places */
    uint64_t ncommon;
    uint64_t nth_file;   /* the first file that is read in place of another, from 1; 0: none */
    const char *file[2]; /* these; NULL: there are no more files */
    bool same_files;     /* all in all the same ones are read, so their order differs */
} cmd_deviation;

typedef void cmd_deviation_fn(void *arg, const cmd_deviation *d);

/* Compare the stretch in two traces. CMD_YES, or CMD_UNKNOWN after saying why. */
int cmd_explain_traces(char *const path[2], const cmd_stretch *stretch, cmd_deviation_fn *fn,
                       void *arg);

#endif
