/* SPDX-License-Identifier: BSD-3-Clause
 *
 * replay: reissuing the events of a trace. Row 4: uses base, tracefmt, traceview and comm, and
 * speaks MPI. It offers cairn_trace_replay (<cairn/traces.h>); what its files share is here. A
 * player walks the events of its rank and reissues them.
 *
 *     replay_play.c    the public call, the loop over events
 *     replay_pace.c    computing as waiting
 *     replay_times.c   for how long
 *     replay_p2p.c     messages, requests, completion
 *     replay_scout.c   whom a wildcard receive will meet
 *     replay_shadow.c  what the others send, and bring to collectives
 *     replay_flight.c  their messages
 *     replay_meet.c    which collectives of two ranks are one
 *     replay_side.c    other threads
 *     replay_coll.c    collectives
 *     replay_comm.c    communicators
 *     replay_copy.c    MPI_Comm_idup
 *     replay_rma.c     windows and one-sided calls
 *     replay_type.c    datatypes and the memory that they need
 *     replay_file.c    files of MPI, in a scratch directory
 *     replay_posix.c   files of the system, there too
 *     replay_watch.c   the watchdog
 *
 * DESIGN, deadlock. A lossless trace is reissued as it is: what completed once in this order
 * completes again. Two things could differ on another machine, and are made to agree: a wildcard
 * receive asks for the sender that it met when recorded; a blocking send that does not complete in
 * time, because the program relied on buffering, goes on as a non-blocking one.
 *
 * Where values are known by distribution only, recorded receives and waits mean nothing. Then every
 * rank also walks the others (their shadows, which draw the same numbers), and posts a receive for
 * each message that a shadow sends to it (seed 004, section 5.1.1). It also learns from them what
 * they bring to a collective, where MPI wants sizes to agree: asking them would make ranks wait for
 * one another where the program did not.
 *
 * What may block is then only what is exact at any precision, and in which the ranks cannot wait
 * for one another in a circle, or the program would have: blocking collectives, and calls that make
 * communicators and share files. Messages are completed at collectives in which all ranks block,
 * those that were sent before it, and at the end: no rank waits for a message that needs itself to
 * be sent. At recorded receives and waits a rank looks after what is under way for as long as the
 * recorded call took, and no longer: so messages move when they did, into memory that is in use,
 * and nothing depends on it. Non-blocking collectives are started in their order, but which of them
 * a recorded wait or test completed is known by distribution only: it waits for a while, and then
 * goes on. A collective to which a member never comes, or comes with another call, is left out by
 * all: its threads share a communicator, and collectives of the first one alone are replayed
 * (replay_side.c). Copies of communicators are made with their parent, so that MPI_Comm_idup
 * neither blocks nor is under way beside other collectives of the parent (replay_copy.c).
 */
#ifndef CAIRN_REPLAY_H
#define CAIRN_REPLAY_H

#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "traceview/traceview.h"

enum { CRN_PLAY_NAME = 160, CRN_PLAY_FILES_MAX = 1 << 20 };

/* MPI's codes become statuses, with MPI's own words. */
#define CRN_TRY_MPI(expr) CRN_TRY(crn_play_mpi((expr), #expr))
cairn_status crn_play_mpi(int rc, const char *what);

typedef struct crn_play_type {
    MPI_Datatype mpi;
    bool own;          /* to be freed */
    bool named;        /* predefined: fit for reductions */
    MPI_Aint lb, span; /* of the data of one element */
    MPI_Aint extent;
    uint64_t nbytes;
} crn_play_type;

/* A message as the trace has it. */
typedef struct crn_play_message {
    int count, peer, tag;
    int64_t type;
    MPI_Comm comm;
    bool sends;
} crn_play_message;

/* A request of the trace. */
typedef struct crn_play_slot {
    MPI_Request request;
    void *buf; /* of a receive; kept for the next one */
    size_t cap;
    int *list[4];  /* of a non-blocking collective */
    unsigned kind; /* of what must not go before it is done: CRN_KIND_COMM, CRN_KIND_FILE, or 0 */
    int64_t on;    /* its number */
    bool persistent;
    crn_play_message message; /* of a persistent one: what each start does */
} crn_play_slot;

typedef struct crn_play_copies crn_play_copies;

/* A communicator of the trace, at the same place in memory from MPI_Comm_idup on. */
typedef struct crn_play_comm_entry {
    MPI_Comm comm;
    MPI_Request making;      /* MPI_REQUEST_NULL: it is there */
    int64_t parent;          /* that it is a copy of, while MPI makes it; or CRN_COMM_NULL */
    crn_play_copies *copies; /* made ahead, to be taken by MPI_Comm_idup; or NULL */
    crn_play_copies *of;     /* it was taken from these; or NULL */
} crn_play_comm_entry;

typedef struct crn_play_window {
    MPI_Win win;
    bool in_group; /* between MPI_Win_start and MPI_Win_complete, which are not reissued */
} crn_play_window;

/* Memory that stays where it is: a larger piece is added when one is needed. */
typedef struct crn_play_memory {
    CRN_VEC(char *) piece;
    size_t nbytes; /* of the newest */
    bool random;
} crn_play_memory;

/* How far a histogram of times was drawn from (replay_times.c). */
typedef struct crn_time_walk {
    uint64_t at, stride;
} crn_time_walk;

/* The times of a thread of a rank. */
typedef struct crn_times {
    const crn_lane *lane;
    uint32_t rank;
    crn_time_walk *walk; /* of each gap */
    double waiting;      /* of this rank, against that of all on average */
} crn_times;

/* A call as recorded, on average. */
typedef struct crn_passing {
    bool known; /* false: it is the machine's affair how long it takes */
    double least, waited;
} crn_passing;

/* Where the recorded run would be, in nanoseconds from its start (replay_pace.c). */
typedef struct crn_pace {
    double recorded; /* it was here then, as drawn and on average */
    double waited;   /* of that, in calls and for others: as far as it was not made up for */
    double owed;     /* computing that is still to be waited for */
    double drawn;    /* since the last sleep: the same on all ranks that do the same */
    double spent;    /* the time up to which all is accounted for */
} crn_pace;

typedef struct crn_scout crn_scout;
typedef struct crn_shadows crn_shadows;
typedef struct crn_sides crn_sides;
typedef struct crn_watchdog crn_watchdog;

/* Files, in a scratch directory that rank 0 makes (replay_file.c, replay_posix.c). */
typedef struct crn_play_files {
    char dir[PATH_MAX - CRN_PLAY_NAME];
    bool made;
    CRN_VEC(MPI_File) file; /* by number */
    CRN_VEC(int) below;     /* beside file: the same file, for the system */
    CRN_VEC(int) fd;
    CRN_VEC(bool) writable; /* beside fd: the program could write */
} crn_play_files;

typedef struct crn_player {
    const crn_trace *t;
    const cairn_replay_options *opt;
    cairn_replay_result *result;
    int rank, size;
    bool by_shadows; /* receives follow from sends */
    crn_walk *walk;
    crn_traced_event e; /* the current one */
    crn_play_type *type;
    CRN_VEC(crn_play_comm_entry *) comm; /* by number; NULL where there is none */
    MPI_Comm bridge;                     /* of all ranks, over which groups meet; only if any do */
    bool copies;                         /* the trace has calls of MPI_Comm_idup */
    CRN_VEC(uint64_t) ncopies;           /* by number of the parent: how many this rank makes */
    CRN_VEC(crn_play_window) window;     /* by number */
    CRN_VEC(crn_play_slot) slot;
    CRN_VEC(MPI_Message) message; /* of probes that are still to be received */
    CRN_VEC(crn_play_slot) late;  /* what goes on without a number */
    crn_play_memory payload, scratch;
    crn_scout *scout;
    crn_shadows *shadows;
    crn_sides *sides;
    crn_play_files *files;
    crn_watchdog *watch;
    crn_times times;
    double clock; /* where the first thread of the run was, in nanoseconds from its start */
    crn_pace pace;
    uint64_t awake_ns; /* of a wait: how much of its end is not slept through */
    uint64_t began;
} crn_player;

/* ---- reissuing calls (made from calls.table by tools/gen-calls.cmake) ---- */

enum { CRN_PLAY_SIDES = 3 };

/* Arguments of an MPI call, by what they are for: a call takes those that it has parameters for. */
typedef struct crn_play_args {
    MPI_Comm comm;
    MPI_File file;
    MPI_Win win;
    const void *send; /* or MPI_IN_PLACE */
    void *recv;
    int count[CRN_PLAY_SIDES]; /* of each pair of count and type */
    MPI_Datatype type[CRN_PLAY_SIDES];
    int *counts[2], *displs[2]; /* where a side has a list instead */
    MPI_Op op;
    int root;       /* or the target */
    MPI_Offset off; /* in a file or window */
    int word;       /* whence to seek, kind of lock */
    MPI_Request *request;
} crn_play_args;

typedef int crn_play_issue(crn_play_args *a);
typedef cairn_status crn_play_fn(crn_player *p); /* of the current event */

typedef struct crn_play_row {
    crn_play_fn *play;     /* NULL: it cannot be replayed */
    crn_play_issue *issue; /* for those that make ready arguments: the call itself */
} crn_play_row;

extern const crn_play_row crn_play_rows[]; /* by call */

cairn_status crn_play_reissue(crn_player *p); /* the current event */

/* Issue the call of the current event; its failure becomes a status. */
cairn_status crn_play_issue_call(const crn_player *p, crn_play_args *a);

/* The functions that calls.table names, for events of all kinds. */
crn_play_fn crn_play_remark, crn_play_nothing, crn_play_skip_event;             /* replay_play.c */
crn_play_fn crn_play_send, crn_play_receive, crn_play_sendrecv, crn_play_start; /* replay_p2p.c */
crn_play_fn crn_play_prepare, crn_play_begin, crn_play_probe, crn_play_receive_probed;
crn_play_fn crn_play_complete, crn_play_cancel, crn_play_forget, crn_play_look;
crn_play_fn crn_play_coll;                                                      /* replay_coll.c */
crn_play_fn crn_play_dup, crn_play_idup, crn_play_split, crn_play_create_group; /* replay_comm.c */
crn_play_fn crn_play_join_groups, crn_play_merge_groups, crn_play_cart, crn_play_graph;
crn_play_fn crn_play_free_comm;
crn_play_fn crn_play_make_window, crn_play_free_window, crn_play_synchronise; /* replay_rma.c */
crn_play_fn crn_play_open_group, crn_play_close_group;
crn_play_fn crn_play_put, crn_play_get, crn_play_accumulate;
crn_play_fn crn_play_open_file, crn_play_close_file, crn_play_delete_file; /* replay_file.c */
crn_play_fn crn_play_manage, crn_play_transfer;
crn_play_fn crn_play_open_fd, crn_play_close_fd, crn_play_close_stream; /* replay_posix.c */
crn_play_fn crn_play_flush_stream, crn_play_move_bytes, crn_play_seek_fd, crn_play_fsync;
crn_play_fn crn_play_fdatasync, crn_play_ftruncate, crn_play_mmap, crn_play_dup_fd;
crn_play_fn crn_play_unlink, crn_play_rename;

/* ---- columns of the current event (replay_play.c) ---- */

/* The value of the nth column of a kind, the last one if there are fewer; otherwise if none. */
int64_t crn_event_value(const crn_traced_event *e, unsigned kind, int nth, int64_t otherwise);
crn_list crn_event_list(const crn_traced_event *e, unsigned kind, int nth);
int64_t crn_play_value(const crn_player *p, unsigned kind, int nth, int64_t otherwise);
crn_list crn_play_list(const crn_player *p, unsigned kind, int nth);
void crn_play_skip(crn_player *p);

/* ---- times (replay_times.c) ---- */

cairn_status crn_times_init(crn_times *t, const crn_trace *trace, size_t lane, uint32_t rank);
void crn_times_done(crn_times *t);
const crn_gap *crn_times_gap(const crn_times *t,
                             const crn_traced_event *e); /* before it; or NULL */
double crn_times_draw(crn_times *t, const crn_gap *gap); /* the next one of the gap */
crn_passing crn_times_passing(const crn_times *t, uint32_t symbol);

/* ---- computing (replay_pace.c) ---- */

/* A time of computing; elapsed: since the replay began. */
void crn_pace_compute(crn_pace *c, double drawn, double elapsed);
void crn_pace_spend(crn_pace *c, double elapsed); /* what has passed since then was computing */
void crn_pace_call(crn_pace *c, double least, double waited,
                   double elapsed); /* a call that took both, on average, is over */

int crn_play_set_slack(int ns);             /* of this thread's sleeps; returns the old */
double crn_play_speed(const crn_player *p); /* of computing, against the recorded one */
void crn_play_sleep_until(const crn_player *p, uint64_t until);
cairn_status crn_play_find_cores(crn_player *p);       /* collective */
cairn_status crn_play_compute(crn_player *p);          /* before the current event */
void crn_play_passed(crn_player *p, uint64_t took_ns); /* after it, which took that long here */
uint64_t crn_play_expected_end(const crn_player *p);   /* of it in the run, on average */

/* ---- datatypes and memory (replay_type.c) ---- */

cairn_status crn_play_types_make(crn_player *p);
void crn_play_types_free(crn_player *p);
const crn_play_type *crn_play_type_of(const crn_player *p, int64_t type);

/* A buffer for count elements, where MPI wants its address: random bytes, or to be overwritten. */
cairn_status crn_play_buffer(crn_player *p, crn_play_memory *m, int64_t type, int64_t count,
                             void **ret);
cairn_status crn_play_slot_buffer(crn_player *p, crn_play_slot *s, int64_t type, int64_t count,
                                  void **ret);
cairn_status crn_play_bytes(crn_play_memory *m, size_t nbytes, uint64_t seed, char **ret);
void crn_play_memory_done(crn_play_memory *m);

/* ---- messages and requests (replay_p2p.c) ---- */

cairn_status crn_play_slot_of(crn_player *p, int64_t number, crn_play_slot **ret);
cairn_status crn_play_slot_clear(crn_player *p, crn_play_slot *s); /* for another request */
void crn_play_slot_done(crn_play_slot *s);
cairn_status crn_play_wait_in_time(crn_player *p, MPI_Request *request);
cairn_status crn_play_finish(crn_player *p); /* all that is under way */

/* Requests of collectives on a communicator or of transfers of a file, before it goes. */
cairn_status crn_play_complete_on(crn_player *p, unsigned kind, int64_t number);

/* ---- wildcards (replay_scout.c) ---- */

cairn_status crn_scout_create(const crn_trace *t, uint32_t rank, uint64_t seed, crn_scout **ret);
void crn_scout_free(crn_scout *s);

/* Whom the next wildcard receive or probe of the player met; false if it never completed. */
bool crn_scout_next(crn_scout *s, int *ret_source, int *ret_tag);

/* The numbers of the requests that an event completed, into done; the caller owns the vector. */
typedef CRN_VEC(int64_t) crn_numbers;
cairn_status crn_completed_of(const crn_traced_event *e, crn_numbers *done);

/* ---- meetings (replay_meet.c) ---- */

/* What a rank knows of one of its communicators. */
typedef struct crn_tally_comm {
    uint64_t id;      /* the same on all members; 0: not known */
    uint64_t nmade;   /* communicators that were made from it */
    uint64_t nmet;    /* collectives on it */
    bool with_player; /* the rank that replays is a member, or in the other group */
} crn_tally_comm;

/* The communicators of a rank by number. */
typedef struct crn_tally {
    CRN_VEC(crn_tally_comm) comm;
} crn_tally;

typedef struct crn_meeting_key {
    uint64_t comm, nth;
} crn_meeting_key;

cairn_status crn_tally_init(crn_tally *t, int of, int player);
void crn_tally_done(crn_tally *t);
cairn_status crn_tally_learn(crn_tally *t, const crn_traced_event *e, int player);

/* Count a collective; false if its communicator is not known. */
bool crn_tally_meet(crn_tally *t, const crn_traced_event *e, crn_meeting_key *ret,
                    bool *ret_with_player);

/* What a rank sends in a collective: elements of a reduction, bytes else. */
typedef struct crn_coll_share {
    int count;   /* to each, */
    int *counts; /* or one by one */
    size_t ncounts;
} crn_coll_share;

/* Of an event on a communicator of n ranks. */
cairn_status crn_share_of(const crn_player *p, const crn_traced_event *e, size_t n,
                          crn_coll_share *ret);
void crn_share_done(crn_coll_share *s);

uint64_t crn_meeting_what(const crn_player *p,
                          const crn_traced_event *e); /* which call, in short */
int crn_coll_side(
    const crn_traced_event *e); /* of count and type: the one that says what is sent */

typedef struct crn_meeting {
    bool all_come;         /* and to the same call */
    bool in_step;          /* no member has blocked in more collectives of all ranks than another */
    crn_coll_share *share; /* by rank of the communicator; of the other group if there are two */
    size_t n;
} crn_meeting;

void crn_meeting_done(crn_meeting *m);

/* ---- messages of shadows (replay_flight.c) ---- */

enum { CRN_FLIGHT_SIZES = 26 };

/* Beside the request of a message. */
typedef struct crn_flight_load {
    uint64_t epoch; /* of its sender when it was sent */
    void *buf;      /* of a receive; NULL: it is sent */
    int size;       /* where it is spare */
} crn_flight_load;

typedef struct crn_flights {
    MPI_Comm comm; /* of all ranks; messages of the replay alone */
    CRN_VEC(MPI_Request) request;
    CRN_VEC(crn_flight_load) load;           /* beside request */
    size_t nreceives;                        /* of them */
    size_t many;                             /* requests at which to look which are done */
    CRN_VEC(void *) spare[CRN_FLIGHT_SIZES]; /* memory, by size */
    CRN_VEC(int) index;                      /* room for MPI to say which are done, */
    CRN_VEC(MPI_Status) status;              /* and how */
} crn_flights;

void crn_flights_done(crn_flights *f); /* the communicator is the caller's */
cairn_status crn_flights_send(crn_flights *f, const void *buf, uint64_t nbytes, int to, int tag,
                              uint64_t epoch);
cairn_status crn_flights_receive(crn_flights *f, uint64_t nbytes, int from, int tag,
                                 uint64_t epoch);
cairn_status crn_flights_wait(crn_flights *f, uint64_t until_ns);   /* for receives */
cairn_status crn_flights_complete(crn_flights *f, uint64_t before); /* an epoch, and both ways */

/* ---- shadows (replay_shadow.c) ---- */

cairn_status crn_shadows_create(crn_player *p, crn_shadows **ret);
void crn_shadows_free(crn_shadows *s);
cairn_status crn_shadows_send(crn_player *p, const cairn_trace_message *m, size_t lane);
cairn_status crn_shadows_wait(crn_player *p);   /* for what is posted, as long as recorded */
cairn_status crn_shadows_follow(crn_player *p); /* post receives, as far as the player is */
cairn_status crn_shadows_follow_thread(crn_player *p, size_t lane); /* the same of another one */
cairn_status crn_shadows_look(crn_player *p);                       /* whether something is done */
cairn_status crn_shadows_learn(crn_player *p); /* of communicators that the player makes */

/* The collective that the player is at, to be called for each; *ret is to be freed. */
cairn_status crn_shadows_meet(crn_player *p, crn_meeting *ret);

/* Complete what was sent before the collective that the player is at, if all ranks block in it. */
cairn_status crn_shadows_settle(crn_player *p);
cairn_status crn_shadows_finish(crn_player *p); /* complete all */

/* ---- other threads (replay_side.c) ---- */

cairn_status crn_sides_create(crn_player *p, crn_sides **ret);
void crn_sides_free(crn_sides *s);
cairn_status crn_sides_play(crn_player *p, uint64_t *ret_next); /* what is due; and when the next */
cairn_status crn_sides_finish(crn_player *p);                   /* all that is left */

/* ---- the rest ---- */

#define CRN_COLL_LISTS (CRN_TRAIT_LISTS_0 | CRN_TRAIT_LISTS_1)
MPI_Op crn_play_op_of(int64_t op);         /* MPI_OP_NULL: one of the program's own */
void crn_play_windows_free(crn_player *p); /* collective */
cairn_status crn_play_comms_make(crn_player *p);
void crn_play_comms_free(crn_player *p);
cairn_status crn_play_copied(crn_player *p); /* before a collective on the current event's */
MPI_Comm crn_play_comm_of(const crn_player *p, int64_t number); /* MPI_COMM_NULL: none */
bool crn_play_is_between(MPI_Comm comm);                        /* two groups */

/* ---- copies by MPI_Comm_idup (replay_copy.c) ---- */

cairn_status crn_play_copies_count(crn_player *p);

/* Those of a new communicator, NULL if none. Collective over it; the caller is a user of *ret. */
cairn_status crn_play_copies_make(const crn_player *p, int64_t number, MPI_Comm comm,
                                  crn_play_copies **ret);
MPI_Comm crn_play_copies_take(crn_play_copies *c); /* the next; it is a user, too */
void crn_play_copies_leave(crn_play_copies *c);    /* the last user frees them; NULL: nothing */

cairn_status crn_play_peers(MPI_Comm comm,
                            int *ret); /* how many it has, in the other group if so */

cairn_status crn_play_files_create(crn_player *p, crn_play_files **ret); /* collective */
void crn_play_files_free(crn_player *p, crn_play_files *f);              /* collective */

/* Where the file of the current event lies in the replay; false if it has no name. */
bool crn_play_path_of(const crn_player *p, char path[PATH_MAX]);
bool crn_play_has_file(const crn_player *p,
                       const crn_traced_event *e); /* the file it uses is open */

/* Let a file be at least so long: what the program read, and the replay has not written. */
cairn_status crn_play_lengthen(const crn_player *p, int fd, int64_t end);

/*
 * DESIGN, threads. The watchdog is a thread that never calls MPI. It reads the event count, which
 * the player writes before each event, and, once that has stood still for too long, what the
 * player left about it under the lock.
 */
cairn_status crn_watch_start(crn_player *p, crn_watchdog **ret);
void crn_watch_note(crn_watchdog *w, const crn_player *p, uint64_t expected_ns);
void crn_watch_expect(crn_watchdog *w, uint64_t until); /* all is well, and nothing until then */
void crn_watch_stop(crn_watchdog *w);

#endif
