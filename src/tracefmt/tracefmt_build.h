/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Building a rank's trace: tables for the process, and for each thread a crn_build that takes
 * events one by one, folds their order and fills their columns. Not for threads to share: each
 * crn_build belongs to its thread, the tables to whoever holds their lock.
 */
#ifndef CAIRN_TRACEFMT_BUILD_H
#define CAIRN_TRACEFMT_BUILD_H

#include "tracefmt/tracefmt_fold.h"
#include "tracefmt/tracefmt_trace.h"

/* Strings, call sites and datatypes, each kept once. Numbers as in crn_trace. */
typedef struct crn_tables {
    CRN_VEC(char *) string;
    crn_index string_index;
    crn_index pattern_index; /* of the strings that are patterns of names */
    CRN_VEC(crn_site) site;
    crn_index site_index;
    CRN_VEC(crn_module) module; /* few */
    CRN_VEC(crn_type) type;
    CRN_VEC(int64_t) contents; /* of types that have such: as they were given, for comparing */
    crn_index contents_index;
    size_t nbytes; /* of what strings and types point to */
} crn_tables;

cairn_status crn_tables_init(crn_tables *t);
void crn_tables_done(crn_tables *t);
cairn_status crn_tables_string(crn_tables *t, const char *s, uint32_t *ret);
cairn_status crn_tables_site(crn_tables *t, crn_site site, uint32_t *ret);
bool crn_tables_has_module(const crn_tables *t, uint32_t name);
cairn_status crn_tables_module(crn_tables *t, crn_module module);

/* How much memory they hold. */
size_t crn_tables_nbytes(const crn_tables *t);

/* Takes the sequences of *type over, also when the type is known already or on failure. */
cairn_status crn_tables_type(crn_tables *t, crn_type *type, uint32_t *ret);

/* What a derived type is made of: integers, addresses and types, one after the other. */
typedef struct crn_contents {
    uint32_t combiner, nints, naddrs, ntypes;
    const int64_t *value;
} crn_contents;

static inline size_t crn_contents_count(const crn_contents *c)
{
    return (size_t)c->nints + c->naddrs + c->ntypes;
}

/*
 * Programs make the same types again and again: find one by its contents, which is cheap, or
 * describe it by them. *type has its size and extent; it is as for crn_tables_type.
 */
bool crn_tables_find_type(const crn_tables *t, const crn_contents *c, uint32_t *ret);
cairn_status crn_tables_describe_type(crn_tables *t, const crn_contents *c, crn_type *type,
                                      uint32_t *ret);

/* The pattern of a file name: one that is known and gives this name, or a new one. */
cairn_status crn_tables_pattern(crn_tables *t, const char *name, int64_t number[CRN_NAME_NUMBERS],
                                int *ret_n, uint32_t *ret);

/* An event as the recorder sees it. */
typedef struct crn_record {
    uint32_t call, within, site, name;
    int ncolumns;                 /* of value, without repeat */
    int64_t value[CRN_COLUMNS];   /* peers: ranks of the communicator */
    crn_list list[CRN_COLUMNS];   /* of kinds that are lists */
    int64_t comm_rank, comm_size; /* of the communicator, for peers */
    uint64_t start, end;          /* of the call, nanoseconds */
} crn_record;

typedef struct crn_column_build {
    uint8_t kind;
    bool plain;          /* values as they come: no peers, no lists, not drawn */
    crn_seq_build value; /* values, or numbers of lists or histograms */
    crn_seq_build other; /* peers: as CRN_ENC_XOR */
    CRN_VEC(crn_seq) list;
    crn_index list_index;
    size_t list_nbytes; /* of all lists */
    CRN_VEC(crn_hist) hist;
} crn_column_build;

/* A short list that came lately, as it is: those of a column must be decoded to be compared. */
enum { CRN_RECENT_LISTS = 64, CRN_RECENT_VALUES = 14 };

typedef struct crn_recent_list {
    const crn_column_build *column;
    uint32_t index, n;
    int64_t value[CRN_RECENT_VALUES];
} crn_recent_list;

typedef struct crn_place_build {
    uint32_t call, within, site, name;
    uint32_t symbol;
    size_t ncolumns; /* without repeat */
    crn_column_build *column;
    uint32_t gap;  /* the first gap from here: index + 1, or 0 */
    uint32_t then; /* the place of the event that came next the last time: a guess */
    crn_hist took;
} crn_place_build;

typedef struct crn_build {
    uint32_t rank;
    uint32_t precision;
    bool times;
    crn_fold fold;
    CRN_VEC(crn_place_build) place;
    uint32_t *slot; /* hash table: place index + 1, or 0 */
    size_t nslots;
    CRN_VEC(crn_gap) gap;       /* from and to are place indices; from may be CRN_NO_SYMBOL */
    CRN_VEC(uint32_t) gap_next; /* of the same place before: index + 1, or 0 */
    crn_recent_list *recent;    /* by hash of column and list */
    uint32_t last;              /* place of the event before */
    uint64_t last_end;
    uint64_t events;
    size_t fresh; /* bytes of new places, gaps and lists, which a few events may make many of; set
                   * back by whoever takes note of them */
    bool failed;  /* no memory: later events are counted as dropped */
} crn_build;

cairn_status crn_build_init(crn_build *b, uint32_t rank, uint32_t precision, bool times);
void crn_build_done(crn_build *b);
void crn_build_add(crn_build *b, const crn_record *r);

/* How much memory it holds. */
size_t crn_build_nbytes(const crn_build *b);

/*
 * The trace of one rank as of now, the builders staying as they are: lane k is build[k]. Sequences
 * are copied, so *ret stands by itself. CAIRN_ENOMEM.
 */
cairn_status crn_build_trace(crn_build *const *build, size_t nbuilds, const crn_tables *tables,
                             uint32_t rank, uint32_t nranks, crn_trace **ret);

/*
 * Does a column of this kind give way to a histogram at this precision? Peers do at 0 per cent
 * only: else no rank is to speak to one that it never spoke to.
 */
bool crn_kind_is_drawn(unsigned kind, uint32_t precision);

/*
 * The histogram of hist[0..n) that the values from low to high belong to at this precision, so
 * that none of its values is further than the margin from the middle of them all; n if none.
 */
size_t crn_hist_pick(const crn_hist *hist, size_t n, int64_t low, int64_t high, uint32_t precision);

#endif
