/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server of a particle filter, inside: what the files of the method share.
 *
 *     ensemble_particle.c           runners: tasks, messages, losses
 *     ensemble_particle_update.c    the end of a cycle: weights, resampling, the next cycle
 *     ensemble_particle_take_up.c   the journal: what is written down, and what a new server reads
 */
#ifndef CAIRN_ENSEMBLE_PARTICLE_SERVER_H
#define CAIRN_ENSEMBLE_PARTICLE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "ensemble/ensemble_helper.h"
#include "ensemble/ensemble_journal.h"
#include "ensemble/ensemble_particle.h"
#include "ensemble/ensemble_server.h"
#include "hash/hash.h"
#include "particle/particle.h"

/* A state that a runner says it has; each of its nodes does. */
typedef struct crn_offer {
    uint32_t cycle, member, nnodes;
    bool made;
    crn_digest digest;
} crn_offer;

/* A runner as the schedule knows it. */
typedef struct crn_peer {
    uint32_t number, sched; /* of its job; in the schedule */
    crn_runner_row *row;    /* NULL: expected since an earlier server knew it */
    uint64_t expected_ns;
    uint32_t nnodes, nhave; /* nodes, and those that have said what they have */
    CRN_VEC(uint32_t) root; /* the rank of each node that has */
    CRN_VEC(crn_offer) offer;
    char cache[CRN_WIRE_TEXT + 1]; /* "host:directory", of the first node */
    crn_particle loading;          /* foretold, and not there yet */
    bool loads;
    uint64_t idle_ns;           /* since when; 0: it is not */
    CRN_VEC(uint32_t) assigned; /* members that an earlier server gave it, in that order */
} crn_peer;

/* A member of the cycle, beside its crn_member_row. */
typedef struct crn_particle_row {
    crn_digest digest; /* of its state */
    bool has_digest;
    bool gave_up;         /* it has no state, and the weight 0 */
    uint32_t safe_runner; /* whose nodes have pushed it, */
    uint32_t nsafe;       /* so many of them */
    crn_digest pushed;    /* and what */
    /* what the journal has of an earlier server: */
    uint32_t assigned; /* it gave the member to this runner; 0: to none */
    uint64_t order;    /* as its so many-th task */
    double weight;     /* NAN: none */
    bool was_safe;
} crn_particle_row;

typedef struct crn_sweeper {
    cairn_shelf *shelf; /* the thread's while it works */
    pthread_t thread;
    bool works;
    _Atomic bool ended;
    uint32_t cycle;  /* of the parents: older states go, */
    uint32_t *count; /* and those of it without children; NULL: they stay */
    uint32_t n;
} crn_sweeper;

typedef struct crn_particles {
    crn_server *s;
    crn_sched *sched;
    crn_journal journal;
    crn_particle_row *row;
    uint32_t *count;  /* children of each parent in this cycle */
    uint32_t *parent; /* of each member */
    crn_digest *was;  /* of the parents' states, */
    bool *had;        /* where known */
    double *carried;  /* log-weights from before the cycle, by parent */
    double *weight;   /* of the parents, for regularisation */
    bool resampled;   /* at its beginning */
    double *shift;    /* rows added to the copies, by member; NULL: none */
    CRN_VEC(crn_peer *) peer;
    crn_sweeper sweeper;
    uint32_t first_runner; /* that made the first state */
    bool taken_up;
    /* of this cycle */
    uint64_t loaded_nbytes, waited_ns, idle_ns, npeer_loads;
    double busy_s;
} crn_particles;

crn_particles *crn_particles_of(const crn_server *s);
cairn_status crn_particles_create(crn_server *s); /* without shelf, journal and schedule */

/* update */
cairn_status crn_particles_update(crn_server *s);
cairn_status crn_particles_first(crn_server *s, const crn_digest *digest); /* cycle 1 begins */
cairn_status crn_particles_shift(crn_particles *p); /* regularisation; reads parents' states */
void crn_particles_name_parents(crn_particles *p);  /* from their counts */
void crn_sweeper_start(crn_particles *p);
void crn_sweeper_join(crn_particles *p);

/* journal */
cairn_status crn_particles_read_journal(crn_particles *p, FILE *f); /* NULL: the study's */
cairn_status crn_particles_note_begin(crn_particles *p, uint32_t cycle); /* replaces it */
cairn_status crn_particles_note_task(crn_particles *p, uint32_t member, uint32_t attempt,
                                     uint32_t runner);
cairn_status crn_particles_note_weight(crn_particles *p, uint32_t member, double logw,
                                       const crn_digest *digest);
cairn_status crn_particles_note_safe(crn_particles *p, uint32_t member, const crn_digest *digest);
cairn_status crn_particles_note_failed(crn_particles *p, uint32_t member);
cairn_status crn_particles_note_given_up(crn_particles *p, uint32_t member);

/* The schedule of the cycle that the journal has: its weights, and who is at work. */
cairn_status crn_particles_take_up(crn_particles *p);

/* runners */
cairn_status crn_particles_expect(crn_particles *p, uint32_t number, crn_peer **ret);
bool crn_digest_parse_text(const char *text, crn_digest *ret);

#endif
