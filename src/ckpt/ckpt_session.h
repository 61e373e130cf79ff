/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The inside of a session.
 *
 * Design. A mark passes three stages. Capture: the program's thread begins a draft on its own part,
 * digests every block and copies those that changed. Store: the draft is written and committed to
 * the own part; no communication. Share: the ranks agree that all have committed, the manifest says
 * so, and the mark is raised to the levels asked for.
 *
 * In the background, store runs on the engine's thread, and share too where MPI allows it;
 * otherwise share runs in the program's next collective call. There is one mark under way at a
 * time, so that the part, the vault and the list of marks pass from one thread to the other
 * together with the job, and are never shared: the engine's state word says whose they are.
 */
#ifndef CAIRN_CKPT_SESSION_H
#define CAIRN_CKPT_SESSION_H

#include <cairn/ckpt.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_history.h"
#include "ckpt/ckpt_holding.h"
#include "diff/diff.h"
#include "hash/hash.h"
#include "plan/plan.h"
#include "redist/redist.h"
#include "track/track.h"

/* Which mark: versions alone may come again after a mark has failed. */
typedef struct ckpt_mark_id {
    uint64_t version, wall_ns;
} ckpt_mark_id;

/* How the changes of a variable are found, and whether that was a good choice (ckpt_change.c). */
typedef struct ckpt_change {
    crn_watch *watch; /* NULL: the kernel does not track it */
    const void *data; /* that the watch is for, in blocks */
    uint64_t nbytes;
    uint32_t block;
    ckpt_mark_id base;     /* what the watch does not call written is as in this mark, */
    ckpt_mark_id captured; /* or as in this one, if that was committed */
    bool known;            /* the next two are */
    double share, part;    /* of what was looked at, that had changed; of all, that was looked at */
    double saved;          /* seconds per mark by tracking, and those that its faults took */
    double faults;
    double density;       /* pages written of a block that was, as tracking found; 0: not known */
    unsigned ntracked;    /* marks in a row that tracking was of use for */
    unsigned wait, pause; /* marks until tracking is tried, and how many after the next failure */
} ckpt_change;

/* Bytes: of less, no time is measured and told, and no write tracked by choice. */
#define CRN_TALLY_WORTH (UINT64_C(1) << 20)

/* What one mark did with a variable of this rank. */
typedef struct ckpt_tally {
    char *name;
    crn_put_way way;
    bool tracked;
    uint64_t nbytes, written, hashed, changed, stored; /* bytes */
    uint64_t capture_ns, store_ns;                     /* that the mark took for it, */
    uint64_t fault_ns;                                 /* and the program before the mark */
    double predicted; /* time beyond that of a full mark, by that; NAN: not known */
} ckpt_tally;

/* What small variables are called where they are one. */
#define CRN_SMALL_NAME "(small variables)"

/* What codecs made of a variable of this rank in one mark. */
typedef struct ckpt_coded {
    char name[CRN_VAR_NAME + 1];
    crn_codec_setting setting;
    crn_codec_counts counts; /* by whoever writes the draft */
    crn_choice *choice;      /* by which the setting is, and what was tried beside; NULL: by none */
    size_t ntrials, trial[CRN_CHOICES];
    crn_codec_counts tried[CRN_CHOICES];
} ckpt_coded;

/* What is known of the codecs of a variable; it stays as long as the session. */
typedef struct ckpt_choice {
    char *name;
    crn_choice is;
} ckpt_choice;

/* Seconds per byte, measured and smoothed; 0: not yet. */
typedef struct ckpt_rates {
    double hash, copy, store;
} ckpt_rates;

typedef struct ckpt_var {
    char *name;
    const void *data;
    crn_var_layout layout;
    char attributes[144]; /* lines for the mark that say so, and what a codec may lose */
    char *remarks;        /* lines that the program said, or NULL; */
    char *lines;          /* then all of them together; or a companion's own */
    const char *type;     /* as text; the session's */
    uint32_t item;        /* bytes of one element */
    uint64_t nbytes;
    uint32_t block;
    uint32_t ndims;
    uint64_t dims[3 * CRN_DIMS_MAX]; /* global, offset, count; of a halo: of the piece in it */
    crn_box memory; /* what data holds of the global array, in far indices: more than the piece, */
    bool padded;    /* if this says so; */
    bool halo;      /* and resume brings that, too: marks have it as a companion */
    struct crn_cell_count *cell;     /* an index's data, which is this session's; or NULL */
    uint64_t ncells;                 /* an index's and its items': of all ranks */
    crn_bound bound[CRN_BOUNDS_MAX]; /* for comparing runs */
    size_t nbounds;
    char *members;     /* bounds of members instead, as of crn_named_bounds_format; or NULL */
    bool own_bounds;   /* given by call, not by the configuration */
    uint64_t captured; /* in the mark that was begun as this one, c->nbegun for the open */
    struct ckpt_share *share; /* what the open mark is to have of it; NULL: all */
    ckpt_change change;
    bool small;    /* it stands among those of ckpt_small.c */
    bool seeks;    /* the size of its blocks is still to be found, */
    crn_look look; /* by this (ckpt_blocks.c) */
} ckpt_var;

/* A small variable, with the digest of what the newest mark has of it; 32 bytes, so that a pass
 * over 100,000 of them costs little more than to digest them. */
typedef struct ckpt_small {
    const void *data;
    uint32_t nbytes;
    uint32_t place; /* among the session's variables */
    crn_digest digest;
} ckpt_small;

typedef struct ckpt_small_changed {
    size_t number; /* of a small variable that has changed, */
    size_t off;    /* and where its copy is */
} ckpt_small_changed;

/* Variables that marks take together (ckpt_small.c). The program's thread's while it captures, and
 * the engine's with the job. */
typedef struct ckpt_smalls {
    CRN_VEC(ckpt_small) at;  /* in the order that they have in marks */
    CRN_VEC(uint32_t) large; /* places of all other variables */
    uint64_t nbytes;         /* of the small ones */
    bool listed;             /* both say what is declared; the program's thread's */
    ckpt_mark_id captured;   /* the mark that the digests are of, */
    size_t first;            /* and the first one's number in it */

    /* Of the mark under way: */
    bool pending;                        /* the draft does not have all of them yet, but */
    size_t taken;                        /* so many, */
    size_t from;                         /* which began here in the mark before */
    CRN_VEC(ckpt_small_changed) changed; /* of the others */
    unsigned char *copy;
    size_t used, room; /* bytes of that */
    size_t tally;      /* number of the one for all of them, + 1; 0: none yet */
} ckpt_smalls;

/* A structure that the program has defined. */
typedef struct ckpt_type {
    char *text;
    uint32_t nbytes;
} ckpt_type;

/* A mark under way. */
typedef struct ckpt_job {
    uint64_t version;
    uint64_t wall_ns; /* when it began, the same on all ranks: with the version, its identity */
    unsigned levels;  /* bits that were asked for, local always */
    bool any_level;   /* Cairn chose them: where one cannot be had, another will do */
    bool only_trees;  /* it is for comparing: there is no draft, and no part has it */
    crn_draft *draft;
    uint64_t nbytes; /* of this rank's state; once the mark counts, of all ranks */
    bool stored;     /* in the own part, where it was not given up again */
    bool diverted;   /* the draft is the trail's: the own part could not take the mark, */
    crn_err no_room; /* for this reason; */
    bool anew;       /* and it must not inherit */
    bool damaged;    /* blocks that some rank's part has were found bad when they were copied */
    cairn_status status;
    crn_err err;       /* set when status is negative */
    double interval_s; /* that was thought best when it was taken */
    uint64_t held_ns;  /* the program stood still */
    uint64_t begin_ns, store_ns, level_ns[CRN_NLEVELS];
    uint64_t storing_ns;               /* it took to write the own part */
    crn_draft_stats stats;             /* likewise */
    uint64_t written;                  /* bytes of all ranks, once the mark counts */
    uint64_t level_bytes[CRN_NLEVELS]; /* the same for the levels that it was raised to */
} ckpt_job;

/* The planner at work. Rank 0's, on the program's thread; the others have levels and sets_levels.
 */
/* What the planner of a leg has said in the log; rank 0. */
typedef struct ckpt_tuned {
    cairn_plan_schedule schedule, better; /* the last time, */
    double efficiency;
    uint64_t nretuned; /* after having thought so often, */
    uint64_t ntold;    /* and how often in all */
} ckpt_tuned;

typedef struct ckpt_tune {
    crn_plan_tuner tuner;
    ckpt_ladder ladder;
    bool sets_levels;   /* CAIRN_AUTO obeys it; else the configuration */
    bool after_failure; /* the leg before was killed */
    uint64_t nbefore;   /* marks of earlier legs, as the log tells; on all ranks */
    uint64_t leg_ns;    /* when this leg began to compute */
    ckpt_pace pace;
    ckpt_tuned told;
} ckpt_tune;

/* A question that the look for another one has answered as well (ckpt_stop.c). */
typedef struct ckpt_question {
    bool known; /* and nobody has asked yet */
    bool near;  /* rank 0: the last time it came directly after that look, */
    bool reuse; /* and all know of it */
} ckpt_question;

/* What a look at whether to mark and to leave has found; the same on all ranks, but for near. */
typedef struct ckpt_poll {
    ckpt_question whether_stop, whether_due;
    bool due;
    bool asks;        /* some rank's program asks whether to stop */
    uint64_t look_ns; /* when it was */
} ckpt_poll;

typedef enum engine_state {
    ENGINE_IDLE,   /* all is the program's thread's */
    ENGINE_BUSY,   /* the job, the part and the vault are the engine's */
    ENGINE_STORED, /* the program's again: share is still to be done */
    ENGINE_DONE    /* the program's again: the result is to be taken */
} engine_state;

typedef struct ckpt_engine {
    pthread_t thread;
    bool running;
    bool shares; /* the engine may communicate; written before the thread starts */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    engine_state state; /* guarded by mutex */
    bool looking;       /* guarded by mutex: part and vault are the engine's, also when not busy */
    bool quit;          /* guarded by mutex */
} ckpt_engine;

typedef struct ckpt_trees ckpt_trees;
typedef struct ckpt_reference ckpt_reference;

/*
 * A leg of the run, by these ranks: what begins anew with others. It goes with its job: the
 * engine's while that is BUSY, but for the fields of the program's thread.
 */
typedef struct ckpt_leg {
    ckpt_job job;
    ckpt_trees *trees;         /* NULL: none are kept */
    ckpt_reference *reference; /* but for what it has found; NULL: none is named */

    /* Set while the engine does not run; spoken on by the engine alone; NULL when it may not. */
    crn_comm *engine_comm;

    /* Set by the program's thread while no job is under way; read by both. */
    uint64_t resumed_from; /* the version, or CRN_NO_VERSION */

    /* The program's thread's. */
    bool open;          /* between begin and commit */
    bool resumed;       /* whether there was anything to resume or not */
    uint64_t lost_from; /* marks from here on turned out to be lost; or CRN_NO_VERSION */
    bool rewind;        /* until a mark of this leg counts: the next one makes way for itself */
    bool unchecked;     /* whether shares fit together was not checked since one was declared */
    crn_err behind;     /* of background work, until a call has said it; code 0: none */

    /* What goes with a job, on rank 0: what the log says marks changed, and of which version. */
    json_t *told_changes;
    uint64_t told_version;
} ckpt_leg;

static const ckpt_leg ckpt_leg_begun = {
    .resumed_from = CRN_NO_VERSION, .lost_from = CRN_NO_VERSION, .rewind = true, .unchecked = true};

/* The fields stand by who may touch them; the engine never looks at those of the program's thread.
 */
struct cairn {
    /* Configuration, log and communicator are set while the engine does not run, and the last is
     * spoken on by the program's thread alone; the series is set while no job is under way. Run,
     * vault and marks go with the job; the vault's parts are the engine's, too, while it is
     * looking. */
    crn_holding held;
    ckpt_leg leg;

    /* Set by the program's thread while no job is under way; read by both. */
    unsigned usable;       /* levels that these nodes can give */
    uint64_t last_mark_ns; /* when the last mark was captured, or the session began */

    /* Both, at any time. */
    ckpt_engine engine; /* its fields say how */

    /* What goes with a job, too. */
    bool no_room;              /* marks go to the trail directly, and that was said */
    CRN_VEC(ckpt_tally) tally; /* of the mark under way */
    CRN_VEC(ckpt_coded *) coded;
    ckpt_coded *small_coded;       /* of small variables; NULL: none yet */
    CRN_VEC(ckpt_choice *) choice; /* of variables whose codec is measured, */
    crn_index choice_name;         /* by name */
    ckpt_rates rates;
    ckpt_smalls small;

    /* The program's thread's: what a module above keeps with the session, */
    crn_guest guest;

    /* what was declared, */
    CRN_VEC(ckpt_type) type; /* the first is number CKPT_TYPE_FIRST */
    CRN_VEC(ckpt_var) var;
    crn_index var_name;   /* of those */
    crn_tracker *tracker; /* made when first wanted */
    bool untracked;       /* the kernel cannot */

    /* where it stands, */
    char *identity;     /* what the program has said of its experiment, or NULL */
    bool identified;    /* the run is known to be its own */
    crn_finale *finale; /* settles at MPI_Finalize what nobody has closed; NULL: MPI does not run */
    bool ended;         /* and did */
    uint64_t open_ns;   /* since when a mark is open */
    uint64_t nmarks;    /* taken in this session, */
    uint64_t nbegun;    /* and begun */
    bool damaged;       /* the own part has bad blocks: the next mark must not inherit them */
    crn_err err;        /* of the last call that failed */

    /* and when to mark and to stop, which rank 0 decides. */
    ckpt_tune tune;
    double cost_s, trail_s; /* measured: a mark; a mark in the trail */
    uint64_t end_ns;        /* of the job's time; UINT64_MAX: unknown, 0: not asked */
    bool stopping, marked_since_stop;
    bool asks; /* the program has called cairn_should_stop */
    ckpt_poll poll;
    uint64_t signals;         /* that are handled for this session: bit n - 1 for number n */
    unsigned signals_at_open; /* how many had come before */
    uint64_t beat_ns;         /* the last sign of life; rank 0 */
};

/* --- opening ------------------------------------------------------------------------------ */

/* Let a session that has joined take marks: levels, signals, the engine. Collective. */
cairn_status crn_ckpt_start(cairn *c);

/* Leave the old ranks for those of comm, which is c's from now on. Collective over comm. */
cairn_status crn_ckpt_reopen(cairn *c, crn_comm *comm);

/* Is the run this program's, as far as both have said? Before it is resumed or marked. Collective.
 * CAIRN_EMISMATCH. */
cairn_status crn_ckpt_check_identity(cairn *c);

/* Let go of all that belongs to the ranks of c->held.comm: its communicators by drop. */
void crn_ckpt_leave(cairn *c, void (*drop)(crn_comm *comm));

/* Settle at MPI_Finalize if the program has not closed c by then. Collective. */
cairn_status crn_ckpt_await_finalize(cairn *c);

void crn_ckpt_free(cairn *c); /* also what is half made; NULL is allowed */

/* The text of a type, or NULL when there is none, and the bytes of an element. */
enum { CKPT_TYPE_FIRST = 1 << 16 };
const char *crn_ckpt_type(const cairn *c, cairn_type type, uint32_t *ret_nbytes);

/* Is c a session that the named call can work with? CAIRN_EINVAL says why not. */
cairn_status crn_ckpt_check_usable(cairn *c, const char *call);

/* The first line of every public call that needs a session, and whatever else it cannot do without.
 */
#define CKPT_NEEDS(c) CRN_TRY(crn_ckpt_check_usable((c), __func__))
#define CKPT_NEEDS_ALSO(c, arg)                                                                    \
    do {                                                                                           \
        CKPT_NEEDS(c);                                                                             \
        if (!(arg))                                                                                \
            return crn_ckpt_result((c),                                                            \
                                   crn_fail(CAIRN_EINVAL, "%s: '%s' is NULL", __func__, #arg));    \
    } while (0)

/* The declaration of a variable for a draft. */
crn_var_spec crn_ckpt_spec(const ckpt_var *v);
ckpt_var *crn_ckpt_find(cairn *c, const char *name);

/* Is it in the open mark? */
static inline bool crn_ckpt_is_captured(const cairn *c, const ckpt_var *v)
{
    return v->captured == c->nbegun;
}

/* "float64[12]", or "float64[4 x 6 of 8 x 6 at 4 x 0]" for a piece of an array; of a long type what
 * differs from the other one's. */
enum { CRN_SHAPE_TEXT = 192 };
void crn_shape_format(const crn_var_spec *s, const crn_var_spec *other, char buf[CRN_SHAPE_TEXT]);

/* A variable of count elements, to be declared: what every layout needs is checked. name stays the
 * caller's. */
cairn_status crn_ckpt_begin_var(const cairn *c, const char *name, const void *data, cairn_type type,
                                uint64_t count, ckpt_var *ret);

/* Put v in the place of the variable with its name, or behind the others. v->name is copied; what
 * else v has is the session's when this succeeds. */
cairn_status crn_ckpt_declare(cairn *c, const ckpt_var *v);
void crn_ckpt_undeclare(cairn *c, ckpt_var *v);

/* A variable that the program has declared: no companion. NULL when there is none. */
ckpt_var *crn_ckpt_find_declared(cairn *c, const char *name);

/* Is it Cairn's own, and goes with another variable? */
bool crn_ckpt_is_companion(const ckpt_var *v);

/* The index of a ragged variable, and what lies around a piece; NULL when there is none. */
ckpt_var *crn_ckpt_index_of(cairn *c, const char *name);
ckpt_var *crn_ckpt_halo_of(cairn *c, const char *name);

/* Do marks have what lies around a piece? Then declare that, too. */
bool crn_ckpt_has_halo(const ckpt_var *v);
cairn_status crn_ckpt_declare_halo(cairn *c, const ckpt_var *piece);

/* The boxes of memory, in far indices, that a padded variable consists of, one behind the other:
 * the piece, or the strips around it (docs/format.md, section 4.6). Returns how many they are. */
enum { CKPT_BOXES_MAX = 2 * CRN_DIMS_MAX };
uint32_t crn_ckpt_boxes(const ckpt_var *v, crn_box ret[CKPT_BOXES_MAX]);

/* Called with a variable's i-th stretch; not CAIRN_OK ends it. */
typedef cairn_status ckpt_stretch_fn(void *arg, uint64_t i, const unsigned char *data,
                                     size_t nbytes);

/* Go through a variable in stretches of cap bytes, the last of which may have fewer. */
cairn_status crn_ckpt_each_stretch(const ckpt_var *v, size_t cap, ckpt_stretch_fn *fn, void *arg);

/* Put the blocks of a variable that does not lie in memory in one piece. */
/* --- the size of blocks (ckpt_blocks.c) --- */

/* A variable is declared: the size that is configured, or where that is to be found, the one of
 * old, which was declared before, or NULL. */
void crn_blocks_declare(const cairn *c, const ckpt_var *old, ckpt_var *v);
/* Before a variable is captured: look at it, and perhaps give it another size. */
void crn_blocks_look(const cairn *c, ckpt_var *v);
/* The mark that the session came back to has this size. */
void crn_blocks_inherit(ckpt_var *v, uint32_t block);

cairn_status crn_ckpt_put_padded(crn_draft *d, size_t number, const ckpt_var *v, crn_put *how);

/* Copy all of such a variable to memory for v->nbytes. */
void crn_ckpt_copy_padded(const ckpt_var *v, unsigned char *to);

/* Do the shares of all ranks fit together: pieces, and cells? Collective. CAIRN_EINVAL says where
 * they do not. */
cairn_status crn_ckpt_check_shares(cairn *c);

/* Bring a variable's lines up to date. */
cairn_status crn_ckpt_label(ckpt_var *v);

/* --- less than all of a variable ---------------------------------------------------------- */

void crn_share_forget(ckpt_var *v); /* the open mark is to have all of v */

/* Make *ret v as the open mark is to have it; it is v's until that is forgotten. */
cairn_status crn_share_view(const ckpt_var *v, ckpt_var *ret);

/* --- changes ------------------------------------------------------------------------------ */

/* Put what changed of v into the open mark, and note what that took. */
cairn_status crn_change_put(cairn *c, ckpt_var *v, size_t number);
void crn_change_done(ckpt_change *change); /* a zeroed one is allowed */

/* Are changes of the named variable found by digests, as far as it is configured? */
bool crn_change_is_found(const cairn *c, const char *name);

/* --- many small variables (ckpt_small.c) --- */

/* List those that stand together, and the others, unless they are listed. CAIRN_ENOMEM: no list
 * counts. */
cairn_status crn_small_sort(cairn *c);
void crn_small_done(ckpt_smalls *s);
void crn_small_begin(cairn *c);    /* a mark is begun */
void crn_small_distrust(cairn *c); /* one of them is captured alone: the order is another one */

/* Does the open mark's draft inherit from the one that the digests are of? Then find what changed
 * of all of them, else capture them one by one, and note that they begin at this number. */
bool crn_small_is_known(const cairn *c);
cairn_status crn_small_capture(cairn *c);
void crn_small_note(cairn *c, size_t first);
void crn_small_tally(cairn *c, const ckpt_tally *t); /* they have one together */

/* Let the draft have all of them, or the first n. No communication. */
cairn_status crn_small_store(cairn *c);
cairn_status crn_small_take(cairn *c, size_t n);

/* Forget the tallies of the mark before. */
void crn_tally_reset(cairn *c);

/* The mark was stored, in so many nanoseconds: learn from that. */
void crn_tally_stored(cairn *c, uint64_t took_ns);

/* Tell what the mark did, variable by variable and rank by rank. Collective. */
void crn_tally_tell(cairn *c, crn_comm *comm);

/* Let the open draft store variable number as the configuration has it for name, and count what
 * becomes of it; small ones are counted together. */
void crn_coded_put(cairn *c, const char *name, bool small, size_t number);

/* Forget the counts of the mark before; tell those of this one. Collective. */
void crn_coded_reset(cairn *c);
void crn_coded_tell(cairn *c, crn_comm *comm);

/* Do all ranks have the same variables with codecs? Has any rank one? Collective. */
cairn_status crn_coded_agree(cairn *c, crn_comm *comm, bool *ret_same, bool *ret_any);

/* The choice of codecs of a variable of the open draft, NULL where there is no memory for one. Once
 * a mark is as safe as it gets: learn from it, on all ranks the same. */
crn_elem crn_ckpt_elem(const char *type); /* the kind of a type's values */
crn_choice *crn_choice_of(cairn *c, const char *name, size_t number, const crn_codec_setting *s);
void crn_choices_learn(cairn *c, crn_comm *comm);
void crn_choices_done(cairn *c);

/* --- engine ------------------------------------------------------------------------------- */

void crn_engine_init(ckpt_engine *e);
cairn_status crn_engine_start(cairn *c);

/* Give up what is under way as soon as the engine lets go of it, without the other ranks, and stop;
 * the engine may be started again. */
void crn_engine_abandon(cairn *c);
void crn_engine_stop(cairn *c); /* when idle */

/* Hand the job over; in synchronous mode it is done when the call returns. */
void crn_engine_submit(cairn *c);

/* Is no job under way, or has it got as far as it can without this thread? */
bool crn_engine_is_ready(cairn *c);

/* Is there a job that this thread has to share? The same on all ranks. */
bool crn_engine_waits(cairn *c);

/* Do what is left of a job that only waits for this thread to communicate. Collective. */
void crn_engine_progress(cairn *c);

/* Wait for the job, do what is left of it, and note how it ended. Collective. The first may leave
 * part and vault to the engine. */
void crn_engine_settle(cairn *c);
void crn_engine_finish(cairn *c);

/* The latter, and say what went wrong with it, which is said once. Collective. */
cairn_status crn_ckpt_catch_up(cairn *c);

/* --- stages ------------------------------------------------------------------------------- */

void crn_ckpt_store(cairn *c);                 /* no communication */
void crn_ckpt_share(cairn *c, crn_comm *comm); /* collective */

/* May the mark go to the trail directly, after the own part has failed with rc? */
bool crn_divert_is_allowed(const cairn *c); /* the same on all ranks */
bool crn_divert_helps(const cairn *c, cairn_status rc);

/* Let the job's draft be one of the trail's part, which has the first nvars variables of the one
 * that it was. On failure that stays, with the reason why the own part could not take it. */
cairn_status crn_divert(cairn *c, size_t nvars);

/* Capture a variable after that. */
cairn_status crn_divert_put(cairn *c, const ckpt_var *v);

/* When there is time: look at a share of what the mark's part has from earlier ones, so that the
 * next one, when memory is at hand, puts what storage has lost. No communication, never fails. */
void crn_ckpt_scrub(cairn *c);

/* Bring the mark that the program is leaving with into the trail: its newest one, or the one that
 * it has just come back to. Collective. */
cairn_status crn_ckpt_raise_last(cairn *c);

/* Which bits a level asked for means; CAIRN_EINVAL when these nodes cannot give it. */
cairn_status crn_ckpt_levels(cairn *c, cairn_level level, unsigned *ret);

/* --- trees -------------------------------------------------------------------------------- */

cairn_status crn_ckpt_trees_create(const crn_config *cfg, ckpt_trees **ret); /* NULL: off */
void crn_ckpt_trees_free(ckpt_trees *t);                                     /* NULL is allowed */

void crn_ckpt_trees_begin(cairn *c);                  /* a draft was begun */
void crn_ckpt_trees_add(cairn *c, const ckpt_var *v); /* v was added to it, nothing put yet */
/* What changed of v was put: it is the draft's variable of this number. */
void crn_ckpt_trees_put(cairn *c, const ckpt_var *v, size_t number);
crn_trees_mark *crn_ckpt_trees_prepare(cairn *c); /* it will be committed next; or NULL */
/* It was committed, or not. Takes made. */
void crn_ckpt_trees_finish(cairn *c, crn_trees_mark *made, bool stored);

/* For a mark that is all trees: take what is protected; make the trees and write them. */
cairn_status crn_ckpt_trees_capture(cairn *c);
cairn_status crn_ckpt_trees_store(cairn *c);

/* The trees of the mark under way; NULL: it has none. */
crn_trees_mark *crn_ckpt_trees_made(cairn *c);

/* The version of the newest mark of this session that has trees, or CRN_NO_VERSION. */
uint64_t crn_ckpt_trees_version(const cairn *c);

/* --- the reference run -------------------------------------------------------------------- */

/* Open the reference that the configuration names, if it does. Collective. */
cairn_status crn_reference_open(cairn *c);
void crn_reference_free(ckpt_reference *r); /* NULL is allowed */

/* The leaf size that the reference's trees of a variable have, in the mark under way; 0: none. */
uint32_t crn_reference_leaf(cairn *c, const char *name);

/* Compare this rank's share of the mark, which is in its part. No communication. */
void crn_reference_look(cairn *c);

/* Put together what the ranks have found, and tell of it. Collective over comm. */
void crn_reference_agree(cairn *c, crn_comm *comm);

/* Rows that rank 0 made of what all ranks should hold alike (diff.h): where one does not, the row
 * says that it could not tell. mine: this rank's variables; NULL: not known. Collective. */
cairn_status crn_reference_alike(crn_comm *comm, const crn_trees_mark *mine, diff_rows *rows);

/* Has the reference items that no rank of this run has, in variables with rows that are numbered?
 * These say so afterwards. open gives this rank's share. Collective. */
typedef cairn_status ckpt_share_fn(cairn *c, diff_share *ret);
cairn_status crn_reference_items(cairn *c, crn_comm *comm, diff_side *side, const diff_mark *mark,
                                 ckpt_share_fn *open, diff_rows *rows);

/* Does this rank know of a divergence that the program is to stop for? */
bool crn_reference_stops(const cairn *c);

/* --- planning ----------------------------------------------------------------------------- */

/* Once levels are known, before this leg tells of itself. Collective. */
cairn_status crn_tune_init(cairn *c);

/* The job has ended; a restart took so long and brought blocks from these levels. */
void crn_tune_mark(cairn *c);
void crn_tune_restart(cairn *c, const uint64_t blocks[CRN_NLEVELS], double took);

/* The leg is about to close: let the log say what the planner thought last. */
void crn_tune_conclude(cairn *c);

/* Seconds from mark to mark, 0 for the first; what rank 0 says counts. */
double crn_tune_interval(const cairn *c);

/* The level bits of the next mark that leaves them to us. Collective. */
cairn_status crn_tune_levels(cairn *c, unsigned *ret);

/* Every how many marks the configuration wants a level, and whether that is the user's word. */
uint64_t crn_tune_every(const cairn *c, crn_level level);
bool crn_tune_is_configured(const cairn *c, crn_level level);

/* --- what is told and asked ---------------------------------------------------------------- */

/* What the session has chosen, where CAIRN_LOG asks for it. */
void crn_ckpt_tell(const cairn *c);

/* When the job of Slurm ends, in seconds since 1970: from the environment, or, if the caller may,
 * by asking Slurm, which takes a few seconds at most. 0: there is no job, or nobody says. */
uint64_t crn_slurm_end_s(bool may_ask);

/* --- tracing ------------------------------------------------------------------------------ */

/* A mark is taken, or was resumed from: a trace of the program, if one is made, is to say so. */
void crn_ckpt_tell_recorder(uint64_t version);

/* --- stopping ----------------------------------------------------------------------------- */

cairn_status crn_stop_init(cairn *c);

/* Show whoever watches the run that the program gets somewhere; from its calls, by its thread. */
void crn_ckpt_beat(cairn *c);

void crn_stop_ask(cairn *c);   /* collective: has any rank been told to stop by a signal? */
void crn_stop_begin(cairn *c); /* all ranks know that it is time to leave */

/* Before the next mark, or the question whether it is due: a program that a signal has told to
 * stop, that has marked since, and never asks, leaves by the signal when that mark is safe.
 * Collective. */
void crn_stop_leave(cairn *c);

/* Handle the signals that the configuration names; until then they are the program's. */
cairn_status crn_signals_init(cairn *c);
void crn_signals_done(cairn *c);
bool crn_signals_came(const cairn *c); /* since the session was opened, to this process */

/* The program, by its calls, is alive; asks whether to stop, and got an answer; ever did. */
void crn_signals_called(uint64_t now);
void crn_signals_asked(bool stop);
bool crn_signals_are_asked_for(void);

void crn_signals_busy(bool busy); /* a mark is under way, and is no more */

/* Let signals that would have ended the program end it. */
void crn_signals_obey(const cairn *c);

#endif
