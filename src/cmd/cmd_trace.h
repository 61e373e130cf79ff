/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the parts of 'cairn trace' share: one file for each, cmd_trace_<part>.c.
 */
#ifndef CAIRN_CMD_TRACE_H
#define CAIRN_CMD_TRACE_H

#include <cairn/traces.h>

#include "cmd/cmd.h"

cmd_function cmd_trace_record, cmd_trace_show, cmd_trace_stat, cmd_trace_dump, cmd_trace_diff,
    cmd_trace_export, cmd_trace_replay;

/* How a trace is looked at: options that all analyses have. */
typedef struct cmd_trace_look {
    bool addresses;      /* sites as addresses, not as source lines */
    const char *modules; /* directories where programs and libraries are now */
    const char *where;   /* events that are looked at */
} cmd_trace_look;

#define CMD_TRACE_LOOK(look)                                                                       \
    CMD_TEXT('w', "where", "TERMS", &(look)->where,                                                \
             "only events that fit: 'rank=0-3 call=*send'"),                                       \
        CMD_FLAG(0, "addresses", &(look)->addresses, "sites as addresses, not as source lines"),   \
        CMD_TEXT(0, "modules", "DIRS", &(look)->modules,                                           \
                 "where the program and its libraries are now, separated by colons")

/* Open a trace to look at it so; else as cmd_trace_open. */
int cmd_trace_look_at(const char *path, const cmd_trace_look *look, cairn_trace **ret,
                      cairn_trace_info *info);

/* Say why sites are addresses, if any that were printed are; then close the trace. */
void cmd_trace_done(cairn_trace *t);

/*
 * Open a trace and describe it; one that is incomplete is said to be so on standard error. CMD_YES,
 * or CMD_UNKNOWN after saying why.
 */
int cmd_trace_open(const char *path, cairn_trace **ret, cairn_trace_info *info);

/* A list of rows, collected from cairn_trace_sum; their strings are the trace's. */
typedef struct cmd_trace_rows {
    CRN_VEC(cairn_trace_row) row;
    bool failed;
} cmd_trace_rows;

int cmd_trace_sum(cairn_trace *t, unsigned by, cmd_trace_rows *ret); /* CMD_YES or CMD_UNKNOWN */
void cmd_trace_rows_done(cmd_trace_rows *r);

/*
 * Join ranks, and peers, to ngroups groups of neighbours, by which the rows are then numbered:
 * what has the same layer and groups becomes one row. For rows by these properties only.
 */
void cmd_trace_join(cmd_trace_rows *rows, uint32_t nranks, uint32_t ngroups);

/*
 * What 'cairn trace stat --json' prints of the trace at path, with ranks joined to at most ngroups
 * groups, and how many these are as "groups". NULL after saying why.
 */
json_t *cmd_trace_stat_joined(const char *path, uint32_t ngroups);

/* Names of columns, up to a NULL. */
void cmd_trace_heads(cmd_columns *c, const char *const *names);

/*
 * Slow ranks and the sites where ranks differ, at most top of each, as text; or all as
 * "slow_ranks" and "slow_sites" of *all, unless that is NULL.
 */
int cmd_trace_slow(cairn_trace *t, const cairn_trace_info *info, size_t top, json_t *all);

/*
 * Rank 0 and the mean of the others by kinds of calls, as text or as "kinds" of *to. own: 0 or
 * CAIRN_TRACE_OWN. Nothing for one rank.
 */
int cmd_trace_kinds(cairn_trace *t, const cairn_trace_info *info, unsigned own, json_t *to);

/* Where a run's trace is looked for: TRAIL/RUN.ctr. CMD_YES, or CMD_UNKNOWN after saying why. */
int cmd_trace_beside(const char *trail, const char *run, char **ret);

/* The call stack of a site, for printing. */
const char *cmd_trace_site(cairn_trace *t, uint32_t site);

/* What is known of a trace as a whole. */
json_t *cmd_trace_json(const cairn_trace_info *info);

/* Four digits: more would be noise. */
json_t *cmd_trace_seconds(double seconds);

/* A whole number, checked; CMD_UNKNOWN after a sentence that names the option. */
int cmd_trace_number(const char *option, const char *text, uint64_t max, uint64_t *ret);

#endif
