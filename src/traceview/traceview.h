/* SPDX-License-Identifier: BSD-3-Clause
 *
 * traceview: reading traces, for people and for the replay. Row 3: uses base and tracefmt, and no
 * MPI. Most of what it offers is <cairn/traces.h>; here is what its files and the replay share.
 *
 *     traceview_open.c     opening, describing
 *     traceview_lines.c    call sites as text; traceview_dwarf.c finds functions and lines
 *     traceview_bind.c     what the numbers of handles stand for
 *     traceview_file.c     names of files
 *     traceview_limit.c    which events are looked at
 *     traceview_event.c    an event of the trace as the public sees it
 *     traceview_visit.c    events without and with order
 *     traceview_pattern.c  where accesses to files go
 *     traceview_sum.c      sums by anything; gaps
 *     traceview_contrast.c ranks that differ from most
 *     traceview_timeline.c the whole run as it is expected
 *     traceview_flow.c     which receive gets which message
 *     traceview_outline.c  the structure
 */
#ifndef CAIRN_TRACEVIEW_H
#define CAIRN_TRACEVIEW_H

#include <cairn/traces.h>

#include "base/base.h"
#include "tracefmt/tracefmt.h"

/* Sites by function, file and line (traceview_lines.c). */
typedef struct crn_lines crn_lines;
void crn_lines_close(crn_lines *l);

/* What is looked at (below). */
typedef struct crn_limit crn_limit;
void crn_limit_free(crn_limit *l);

struct cairn_trace {
    crn_trace *t;
    char *path;
    crn_buf incomplete; /* why it is, as text; empty when it is complete */
    char **stack;       /* of each site, once it was asked for */
    crn_lines *lines;   /* NULL: sites are addresses */
    crn_limit *limit;   /* NULL: everything is looked at */
    char **file;        /* of each string that is a pattern of names, the same */
};

/* ---- what handles stand for (traceview_bind.c) ---- */

/* A persistent request: the message that each start of it sends or receives. */
typedef struct crn_bound_request {
    bool known, sent;
    bool collective;     /* no message, but bytes */
    int64_t tag;         /* of the message, */
    int64_t comm_number; /* in this communicator */
    uint64_t comm;       /* the same for all its ranks, as below */
    int64_t peer;        /* rank of the world, or below 0 */
    uint64_t nbytes;
} crn_bound_request;

typedef struct crn_bound_comm {
    crn_comm_view view;  /* world is owned */
    uint64_t nneighbors; /* to which this rank sends in its topology; 0: not known */
    bool known;
    uint64_t identity; /* the same on all its ranks; 0: not known */
} crn_bound_comm;

/* Communicators by their ranks: a hash of these, and how many were made. */
typedef struct crn_made {
    uint64_t ranks, n;
} crn_made;

/* Files by pattern: index of the string + 1, or 0. */
typedef struct crn_bind {
    const crn_trace *t;
    uint32_t rank;
    CRN_VEC(crn_bound_comm) comm;
    CRN_VEC(uint32_t) file;
    CRN_VEC(uint32_t) fd;
    CRN_VEC(crn_bound_request) request;
    CRN_VEC(crn_made) made;
    bool conflict; /* a number came to stand for something else */
} crn_bind;

cairn_status crn_bind_init(crn_bind *b, const crn_trace *t, uint32_t rank);
void crn_bind_done(crn_bind *b);

/* Learn from an event: what it makes has a number from now on. */
cairn_status crn_bind_learn(crn_bind *b, const crn_traced_event *e);

/* What the communicator of an event is on all its ranks; 0 when not known. */
uint64_t crn_bind_identity(const crn_bind *b, const crn_traced_event *e);

/* The communicator of an event; size 0 when not known. */
crn_comm_view crn_bind_comm(const crn_bind *b, const crn_traced_event *e);

/* Ranks, or neighbours, to each of which the rank sends in a collective; 1 when not known. */
uint64_t crn_bind_targets(const crn_bind *b, const crn_traced_event *e);

/* The pattern of the file of an event, as index of a string; 0 when there is none. */
uint32_t crn_bind_file(const crn_bind *b, const crn_traced_event *e);

/* The column of a kind in an event, or -1; from is where to start looking. */
int crn_event_find(const crn_traced_event *e, unsigned kind, int from);

/* A pattern of names, by its string, with the numbers that never vary (traceview_file.c). Stays
 * until the trace is closed; NULL if there is no such string. */
const char *crn_trace_file(cairn_trace *trace, uint32_t name);
void crn_trace_files_done(cairn_trace *trace);

/* ---- an event for the public (traceview_event.c) ---- */

enum { CRN_MESSAGES_FEW = 2 };

/* What an event means: its bytes and messages. Members that point are valid as long as this. */
typedef struct crn_meaning {
    uint64_t nbytes;
    int64_t nbytes_step;
    size_t nmessages;
    cairn_trace_message few[CRN_MESSAGES_FEW];
    CRN_VEC(cairn_trace_message) many; /* of MPI_Startall */
} crn_meaning;

/* step: of each column from one event to the next; NULL: none. comm: as crn_bind_comm. */
cairn_status crn_meaning_of(crn_meaning *m, const crn_bind *b, const crn_traced_event *e,
                            const crn_comm_view *comm, const int64_t *step);
void crn_meaning_done(crn_meaning *m);

/* The bytes of a collective, also of one that is only prepared. */
uint64_t crn_collective_nbytes(const crn_bind *b, const crn_traced_event *e,
                               const crn_comm_view *comm);

/* The messages that a call with peers names, whether it starts them or only prepares them. */
void crn_messages_of(crn_meaning *m, const crn_bind *b, const crn_traced_event *e,
                     const crn_comm_view *comm, const int64_t *step);

/* ---- events as runs (traceview_visit.c) ---- */

/* n equal events, as crn_traced_event and cairn_trace_event. */
typedef struct crn_view {
    const crn_traced_event *e;
    const cairn_trace_event *event;
    const int64_t *step; /* of each column */
    const crn_lane *lane;
    bool expected;        /* values are known by distribution only */
    uint32_t file;        /* the pattern of its file's name, a string; 0: none */
    const crn_bind *bind; /* before the event */
} crn_view;

typedef int crn_view_fn(void *arg, const crn_view *v);

cairn_status crn_visit_rank(const crn_trace *t, uint32_t rank, crn_view_fn *fn, void *arg);

/* The same in order, event by event, thread after thread. */
cairn_status crn_walk_rank(const crn_trace *t, uint32_t rank, crn_view_fn *fn, void *arg);

/* The same; files have their full names. */
cairn_status crn_walk_named(const crn_trace *t, uint32_t rank, crn_view_fn *fn, void *arg);

/* ---- which receive gets which message (traceview_flow.c) ---- */

typedef struct crn_flows crn_flows;
cairn_status crn_flows_open(const crn_trace *t, crn_flows **ret);
void crn_flows_begin(crn_flows *f); /* before the first event of a rank */
void crn_flows_close(crn_flows *f);

/* The flows of the next event of the rank; they stay until the one after it. */
cairn_status crn_flows_next(crn_flows *f, const crn_view *v, const cairn_trace_flow **ret,
                            size_t *ret_n);

/* ---- which events are looked at (traceview_limit.c); without a limit, all ---- */

bool crn_limit_rank(const cairn_trace *trace, uint32_t rank);
bool crn_limit_names_ranks(const cairn_trace *trace);
bool crn_limit_holds(cairn_trace *trace, const crn_view *v);

/* Find out which symbols have such events, before these are asked for. */
cairn_status crn_limit_symbols(cairn_trace *trace);
bool crn_limit_symbol(const cairn_trace *trace, size_t lane, uint32_t symbol);

/* ---- accesses to files (traceview_pattern.c) ---- */

typedef enum crn_step {
    CRN_STEP_NONE, /* no access, the first one, or one whose place is not known */
    CRN_STEP_CONSECUTIVE,
    CRN_STEP_STRIDED,
    CRN_STEP_OTHER
} crn_step;

typedef struct crn_position {
    int64_t pointer;             /* of the file, bytes; below 0: not known */
    int64_t unit;                /* bytes that an offset of a call counts */
    int64_t off, end, last_step; /* of the access before */
    uint64_t naccesses;
} crn_position;

typedef CRN_VEC(crn_position) crn_position_list;

/* Of a rank's files, by their numbers. */
typedef struct crn_positions {
    crn_position_list fd, file;
} crn_positions;

/* How an event of a walk goes on from the access before it to the same file. */
crn_step crn_positions_next(crn_positions *p, const crn_trace *t, const crn_view *v);
void crn_positions_done(crn_positions *p);

/* Ranks as people write them, "0-3,8", behind what b has; of many ranges the first ones and ",...".
 * Returns how many ranks there are. */
uint32_t crn_put_ranks(crn_buf *b, const crn_seq *ranks);

#endif
