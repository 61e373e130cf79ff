/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A folded trace in memory: what the recorder builds, the merge unites, the file holds and the
 * tools walk.
 *
 * What a thread of a rank did is a sequence of events. An event comes from a *place*: a call at a
 * call site (a stack of return addresses). Places and *rules* (loops) are the *symbols* of a lane:
 *
 *     lane        the threads number k of all ranks that have one
 *     rule        a body of symbols, run a number of turns each time it is met; the lane's root is
 *                 a rule
 *     place       a call, its site, and the name of the file for calls that have one
 *     column      what varies: of a rule its turns, of a place how often it came in a row (its
 *                 repeat), and one column for each parameter of the call
 *
 * A column is read from left to right as the symbol is met: the first event of a place has the
 * first value of each of its columns. Structure is thus shared by all ranks and free of values,
 * and values are sequences (tracefmt_seq.h) that belong to a symbol, however deep in loops it is.
 * Turns and repeats may be 0: a rank that takes no part in a piece of the structure passes by.
 *
 *     for (i < 100) { Irecv(left); Isend(right); Waitall(2); }  Allreduce();
 *
 *     places  p0 = Irecv@a  p1 = Isend@b  p2 = Waitall@c  p3 = Allreduce@d
 *     rules   r4 = (p0 p1 p2) turns: 100      r5, the root = (r4 p3) turns: 1
 *     columns p0.peer: +(size-1), p1.peer: +1, p2.reqs: {0 1}, all constant on all ranks
 *
 * A column has groups of ranks; the ranks of a group have the same items and each its base.
 */
#ifndef CAIRN_TRACEFMT_TRACE_H
#define CAIRN_TRACEFMT_TRACE_H

#include <stdbool.h>

#include "tracefmt/tracefmt_call.h"
#include "tracefmt/tracefmt_grid.h"
#include "tracefmt/tracefmt_hist.h"
#include "tracefmt/tracefmt_seq.h"
#include "tracefmt/tracefmt_timing.h"

typedef struct crn_list {
    const int64_t *at;
    size_t n;
} crn_list;

/* How the values of a column of ranks are written. */
typedef enum crn_enc {
    CRN_ENC_PLAIN,
    CRN_ENC_REL, /* rank in the communicator, less one's own, modulo the size */
    CRN_ENC_XOR, /* rank in the communicator, exclusive-or one's own */
    CRN_ENC_GRID /* shift on the column's grid (tracefmt_grid.h) */
} crn_enc;

/*
 * Ranks that agree in a column up to a base of each. Of the three forms of a value:
 *   plain    nlists = nhists = 0: base of the rank + items of value
 *   lists    value gives the index of a list; its elements are base of the rank + list
 *   drawn    base + value gives the index of a histogram: the values are known by distribution only
 */
typedef struct crn_group {
    crn_seq ranks;  /* ascending */
    crn_seq base;   /* one for each rank of ranks */
    crn_seq value;  /* its own base is 0 */
    uint64_t reads; /* values of all these ranks together; 0: not kept. The merge of what may become
                     * histograms needs it, since a constant does not know its length */
    crn_seq *list;
    size_t nlists;
    crn_hist *hist;
    size_t nhists;
} crn_group;

/*
 * Columns of peers are recorded in both encodings, since only the whole shows which one folds:
 * neighbours are relative, partners of a butterfly exclusive-or. The last writer keeps one, or
 * finds a grid on which more ranks have the same neighbours than by either (crn_trace_choose).
 */
typedef struct crn_column {
    crn_enc enc;
    crn_grid grid; /* of CRN_ENC_GRID */
    crn_group *group;
    size_t ngroups;
    crn_group *other; /* the same as CRN_ENC_XOR, where enc is CRN_ENC_REL and nobody chose yet */
    size_t nothers;
} crn_column;

typedef struct crn_symbol {
    uint32_t call;   /* CRN_CALL_NONE for a rule */
    uint32_t within; /* place: the call that this one was made by, as MPI-IO makes POSIX calls */
    uint32_t site;   /* place: index into sites */
    uint32_t name;   /* place: index of a name's pattern, for calls that have names */
    uint32_t *body;  /* rule: symbols, all of smaller numbers than the rule */
    size_t nbody;
    uint32_t depth;     /* rule: rules within rules, itself included; as the reader found it */
    bool optional;      /* rule: made by the merge for what some ranks never do */
    crn_column *column; /* column 0: turns or repeat */
    size_t ncolumns;
} crn_symbol;

/* Time between the end of an event of one place and the start of the next event, of another. */
typedef struct crn_gap {
    uint32_t from, to; /* from: CRN_NO_SYMBOL for the start of the lane */
    crn_timing time;
} crn_gap;

#define CRN_NO_SYMBOL UINT32_MAX

typedef struct crn_lane {
    crn_seq ranks; /* that have such a thread */
    crn_symbol *symbol;
    size_t nsymbols;
    uint32_t root;
    crn_gap *gap; /* ascending by from, to; empty when times were not recorded */
    size_t ngaps;
    crn_timing *took; /* one for each symbol, empty for rules; NULL without times */
} crn_lane;

/* A frame of a call stack; site 0 is the unknown one, and the outermost frames have outer 0. */
typedef struct crn_site {
    uint32_t outer;
    uint32_t module; /* index into strings: file name of the program or library */
    uint64_t off;    /* of the return address in the module */
} crn_site;

/* A program or library that call sites lie in, so that it can be found and known again later. */
enum { CRN_BUILD_ID = 64 };

typedef struct crn_module {
    uint32_t name; /* index into strings, as in crn_site */
    uint32_t path; /* the same: where it lay */
    uint8_t nbuild;
    uint8_t build[CRN_BUILD_ID]; /* the linker's build id; none: nbuild is 0 */
} crn_module;

/* A datatype: a predefined one by name, or how it is made of others. */
typedef struct crn_type {
    uint32_t name;     /* index into strings; 0 for a derived one */
    uint32_t combiner; /* crn_combiner; derived only */
    uint64_t nbytes;   /* MPI_Type_size */
    int64_t lb, extent;
    crn_seq ints, addrs, types; /* as MPI_Type_get_contents gives them; types are smaller indices */
    uint32_t nints, naddrs, ntypes;
} crn_type;

typedef enum crn_combiner {
    CRN_COMBINER_NAMED,
    CRN_COMBINER_DUP,
    CRN_COMBINER_CONTIGUOUS,
    CRN_COMBINER_VECTOR,
    CRN_COMBINER_HVECTOR,
    CRN_COMBINER_INDEXED,
    CRN_COMBINER_HINDEXED,
    CRN_COMBINER_INDEXED_BLOCK,
    CRN_COMBINER_HINDEXED_BLOCK,
    CRN_COMBINER_STRUCT,
    CRN_COMBINER_SUBARRAY,
    CRN_COMBINER_DARRAY,
    CRN_COMBINER_RESIZED,
    CRN_COMBINER_OTHER, /* only its size and extent are known */
    CRN_COMBINERS
} crn_combiner;

typedef struct crn_trace {
    uint32_t nranks;
    uint32_t precision; /* per cent; 100 is lossless */
    uint64_t began;     /* wall clock, nanoseconds since 1970 */
    uint64_t lasted;    /* nanoseconds, of the longest rank */
    uint64_t dropped;   /* events that were not kept, over all ranks */
    crn_seq missing;    /* ranks of which nothing is known; no items: none */
    crn_seq cut;        /* ranks whose events end before MPI_Finalize; no items: none */
    char **string;      /* string 0 is "" */
    size_t nstrings;
    crn_site *site; /* an outer frame has a smaller number than the inner one */
    size_t nsites;
    crn_module *module; /* of the sites; of one name there may be several, from other ranks */
    size_t nmodules;
    crn_type *type;
    size_t ntypes;
    crn_lane *lane;
    size_t nlanes;
    uint32_t program; /* index into strings */
} crn_trace;

void crn_trace_free(crn_trace *t);
void crn_group_done(crn_group *g);
void crn_groups_free(crn_group *g, size_t n);
void crn_column_done(crn_column *c);
void crn_symbol_done(crn_symbol *s);

/* Did every rank's events reach the file, up to MPI_Finalize? */
bool crn_trace_complete(const crn_trace *t);

/* The kind of a column of a place. */
unsigned crn_symbol_kind(const crn_symbol *s, size_t column);

/* The group of a column that holds a rank, and the rank's base there; NULL if none does. */
const crn_group *crn_column_group(const crn_column *c, uint32_t rank, int64_t *ret_base);

/* Keep the smallest encoding of each column of peers. */
cairn_status crn_trace_choose(crn_trace *t);

/* Processes of a communicator: the world ranks base + list. */
typedef struct crn_comm_group {
    const crn_seq *list;
    int64_t base;
} crn_comm_group;

/* What the number of a communicator stands for on a rank; false if it is not the same all along. */
bool crn_trace_comm(const crn_trace *t, uint32_t rank, int64_t number, crn_comm_group *ret);

/* The place of a world rank among them; -1 if it is not there. */
int64_t crn_comm_group_rank(const crn_comm_group *g, uint32_t rank);

/*
 * Patterns of file names: "out-%d.%03d" with the numbers 7 and 12 is "out-7.012"; "%%" is "%".
 * crn_pattern_split makes one from a name: the pattern, which needs room for twice the name and
 * ten bytes more, and the last CRN_NAME_NUMBERS numbers at most. Returns how many.
 */
int crn_pattern_split(const char *name, char *pattern, int64_t number[CRN_NAME_NUMBERS]);
int crn_pattern_numbers(const char *pattern);

/*
 * Does the pattern stand for the name? Then the numbers of the name. Names that differ in numbers
 * alone have the same hash, for finding the patterns to try.
 */
bool crn_pattern_match(const char *pattern, const char *name, int64_t number[CRN_NAME_NUMBERS],
                       int *ret_n);
uint64_t crn_pattern_hash(const char *name);

/* Write the name into buf; false if the pattern is damaged or the name does not fit. */
bool crn_pattern_join(const char *pattern, const int64_t *number, int n, char *buf, size_t cap);

/*
 * Files. A trace file is written anew beside path and renamed over it, so a reader never sees a
 * part of one; a reader checks everything it reads, and gives CAIRN_ECORRUPT for what no writer
 * made, CAIRN_EUNSUPPORTED for a newer version. A payload is what lies in a file, uncompressed.
 */
enum { CRN_TRACE_QUICK = 1, CRN_TRACE_BEST = 19 }; /* levels of compression */
cairn_status crn_trace_encode(const crn_trace *t, int level, crn_buf *b);
cairn_status crn_trace_decode(const void *data, size_t nbytes, crn_trace **ret);
cairn_status crn_trace_parse(unsigned version, const void *payload, size_t nbytes, crn_trace **ret);
cairn_status crn_trace_save(const crn_trace *t, const char *path);
cairn_status crn_trace_load(const char *path, crn_trace **ret);

#endif
