/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Walking a folded trace, without expanding it: memory is that of the folded form.
 *
 * In order, for one thread of one rank: crn_walk_next gives event after event.
 *
 *     crn_walk *w;
 *     CRN_TRY(crn_walk_open(trace, lane, rank, seed, &w));
 *     while (crn_walk_next(w, &e))
 *         use(&e);
 *     crn_walk_close(w);
 *
 * Without order, for one place of one rank: crn_runs_next gives the events of a place in runs of
 * many, each column an arithmetic progression. Sums over a trace need no more than this.
 */
#ifndef CAIRN_TRACEFMT_WALK_H
#define CAIRN_TRACEFMT_WALK_H

#include "tracefmt/tracefmt_trace.h"

/* A communicator as a rank sees it. */
typedef struct crn_comm_view {
    int64_t rank, size;   /* size 0: not known */
    const int64_t *world; /* world rank of each of its ranks; NULL: rank i is world rank i */
} crn_comm_view;

typedef struct crn_traced_event {
    uint32_t symbol; /* the place, in the lane */
    const crn_symbol *place;
    const crn_call *call;
    uint64_t index; /* the how manieth event of this place on this rank; from 0 */
    uint32_t from;  /* place of the event before, or CRN_NO_SYMBOL: for crn_lane_gap */
    int ncolumns;   /* values below, without repeat */
    uint8_t kind[CRN_COLUMNS];
    int64_t value[CRN_COLUMNS];        /* peers are ranks of the communicator */
    crn_list list[CRN_COLUMNS];        /* for kinds that are lists; valid until the next event */
    const crn_hist *hist[CRN_COLUMNS]; /* where a value was drawn; else NULL */
    crn_comm_view comm; /* of the event, by its first column of kind comm; size 0 without */
} crn_traced_event;

typedef struct crn_walk crn_walk;

/*
 * Walk what thread 'lane' of a rank did. Values that are known by distribution only are drawn from
 * a generator that counts by symbol, column and occurrence: for the same seed every rank draws the
 * same, and can know what another drew. CAIRN_ENOTFOUND when the rank has no such thread.
 */
cairn_status crn_walk_open(const crn_trace *t, size_t lane, uint32_t rank, uint64_t seed,
                           crn_walk **ret);
void crn_walk_close(crn_walk *w);
bool crn_walk_next(crn_walk *w, crn_traced_event *e);

/* The rules that the last event lies in, outermost (the root) first, with turns: for showing. */
typedef struct crn_walk_level {
    uint32_t rule;
    uint64_t turn, turns; /* turn from 0 */
} crn_walk_level;
size_t crn_walk_levels(const crn_walk *w, const crn_walk_level **ret);

/*
 * How often each symbol of a lane is met by a rank: for a place the events, for a rule the turns of
 * all times together. count has room for nsymbols. Takes time for the folded form only; where
 * turns are drawn, the mean stands for them.
 */
cairn_status crn_lane_counts(const crn_trace *t, size_t lane, uint32_t rank, uint64_t *count);

/* Runs of events of one place: n events; column k is value[k], value[k] + stride[k], ... */
typedef struct crn_runs {
    const crn_symbol *place;
    uint64_t left;
    int64_t base[CRN_COLUMNS];
    const crn_group *group[CRN_COLUMNS];
    crn_seq_iter it[CRN_COLUMNS];
} crn_runs;

typedef struct crn_site_run {
    uint64_t n;
    int ncolumns; /* without repeat; peers are as the column's enc says */
    int64_t value[CRN_COLUMNS], stride[CRN_COLUMNS]; /* of lists and drawn values: the index */
} crn_site_run;

/* Start on n events (from crn_lane_counts); false if the rank has no part in the place. */
bool crn_runs_init(crn_runs *r, const crn_symbol *place, uint32_t rank, uint64_t n);
bool crn_runs_next(crn_runs *r, crn_site_run *ret);

/* A peer as a rank of the communicator; special values (below 0) stay. */
int64_t crn_peer_rank(const crn_column *c, int64_t value, const crn_comm_view *comm);

/* The time before an event, or NULL. */
const crn_gap *crn_lane_gap(const crn_lane *lane, uint32_t from, uint32_t to);

#endif
