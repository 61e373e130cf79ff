/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a group of processes holds of a run: its lock, its marks, and where these lie. A session
 * begins with one; commands that look after a run need nothing else.
 *
 * Only what is called collective communicates; the rest is about this process' view, which is the
 * same on all ranks.
 */
#ifndef CAIRN_CKPT_HOLDING_H
#define CAIRN_CKPT_HOLDING_H

#include <pthread.h>

#include "base/base.h"
#include "codec/codec.h"
#include "comm/comm.h"
#include "event/event.h"
#include "hash/hash.h"
#include "level/level.h"
#include "store/store.h"

typedef struct crn_holding {
    crn_config *cfg;
    crn_log log;
    crn_comm *comm;
    char *local; /* node-local directory; NULL: none */

    crn_trail *trail;
    crn_run *run;                 /* its log needs events_mutex; signs of life need no lock */
    pthread_mutex_t events_mutex; /* held to write the run's log */
    crn_marks mark;               /* those that count, as in the manifest; same on all ranks */
    size_t nsame;                 /* so many of the first are in the manifest as they are here, */
    size_t below[CRN_NLEVELS];    /* and so many have not the level: a mark may follow very many */
    bool retained;                /* the own parts have no marks that are at none of their levels */
    uint32_t series;              /* that this leg writes to */
    uint32_t oldest_series;       /* below it no files are left */
    crn_vault *vault;

    char *name; /* of the run, and */
    int home;   /* the vault's, once this was left for other ranks */
} crn_holding;

/* On rank 0: open and lock h->run, and h->trail if it is not open yet. */
typedef cairn_status crn_find_fn(crn_holding *h);

/* One that holds nothing yet; h->comm is the caller's to set, and h's from then on. */
void crn_holding_init(crn_holding *h);
void crn_holding_done(crn_holding *h); /* also what is half made; the error record stays */

/* Let h know its configuration, its run (which rank 0 finds, and locks, by find), the marks of that
 * and where they lie. Collective. */
cairn_status crn_holding_join(crn_holding *h, const char *config, crn_find_fn *find);

/* The first half of it: read the configuration, and find the node's storage. Collective. */
cairn_status crn_holding_configure(crn_holding *h, const char *config);

/* The second half: h->cfg is known. */
cairn_status crn_holding_enter(crn_holding *h, crn_find_fn *find);

/* Let go of all that belongs to the ranks of h->comm, which goes by drop. The trail stays: by its
 * name it might not be found again, as the program may have gone to another directory. */
void crn_holding_leave(crn_holding *h, void (*drop)(crn_comm *comm));

/* Which run: to continue or begin (the configuration's, or the one begun last that is not
 * finished); one that is there; the one that was left. */
crn_find_fn crn_find_or_begin, crn_find_existing, crn_find_again;

/* Set h->local, as the configuration says. Not collective. */
cairn_status crn_holding_find_local(crn_holding *h);

/* The series that this leg writes to: the newest mark's, if it was written by as many ranks, or a
 * new one. */
void crn_holding_choose_series(crn_holding *h);

/* When the manifest was lost, and what the trail knows is not all: find the marks that the nodes
 * have, and let the manifest say so. goes_on: the program does, with those that are found;
 * otherwise all must be. Collective. */
cairn_status crn_holding_recover(crn_holding *h, bool goes_on);

/* Take possession of this node's storage, and remove from it what other runs have left that nobody
 * needs, as keep.orphans says. Not collective; never fails. */
void crn_holding_clean_node(crn_holding *h);

/* Bring the i-th mark into the trail from wherever it is, after a survey. Collective. */
cairn_status crn_holding_drain_mark(crn_holding *h, size_t i, uint64_t *ret_nbytes);

/* Let the manifest, on rank 0, say what h->mark says. Collective over comm. */
cairn_status crn_holding_publish(crn_holding *h, crn_comm *comm, bool finished);

/* The i-th mark has become another, or is gone. */
void crn_holding_touch(crn_holding *h, size_t i);

/* Is any of the marks that count in this series? */
bool crn_holding_has_series(const crn_holding *h, uint32_t series);

/* The level bits of a mark that is in the own parts: these may lie in the trail. */
unsigned crn_holding_own_bits(const crn_holding *h);

/* Of the marks that have a level, let only the newest have it that the configuration keeps. */
void crn_holding_retain(crn_holding *h, crn_level level);

/* The first mark that it may change. */
size_t crn_holding_retains_from(const crn_holding *h, crn_level level);
uint64_t crn_holding_keep(const crn_holding *h, crn_level level); /* how many those are */

/* What is at no level any more is no mark; and: nothing is at a level below the trail any more. */
void crn_holding_drop_levelless(crn_holding *h);
void crn_holding_forget_nodes(crn_holding *h);

/* A line for the run's event log, of which this sets the time; rank 0 writes, all ranks release the
 * JSON members of e. False: it is not in the log, which fails nothing else. */
bool crn_holding_event(crn_holding *h, crn_event *e);

/* Make a file for other tools, for the vault. */
crn_frame_fn crn_ckpt_frame;

/* Let the time series of the run have the marks that it has now. Rank 0 does; never fails. */
void crn_holding_tell_viewers(crn_holding *h);

/* The codec that a configuration, cfg, wants for a variable's blocks; for the vault as well. */
crn_codec_fn crn_ckpt_codec;

#endif
