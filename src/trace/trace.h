/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace: the recorder, libcairn-trace.so, which is preloaded into other people's MPI programs. It
 * never ends, blocks or changes the program: what it cannot record, it leaves out and counts.
 *
 *     trace_wrap_*.c  (generated)  one wrapper per call: enter, note parameters, call, leave
 *     trace_event.c                from a wrapped call to a crn_record
 *     trace_param.c                its parameters
 *     trace_handle.c, trace_comm.c, trace_type.c, trace_request.c   numbers for MPI's handles
 *     trace_stack.c, trace_loaded.c  call sites, and where they lie
 *     trace_fd.c, trace_open.c, trace_move.c, trace_file.c, trace_stdio.c   the system's files
 *     trace_state.c                the process: configuration, threads, lanes
 *     trace_finish.c               merging over the ranks, the file, what is kept of a dying run
 *     trace_plain.c                the plain log, for tests and measurements
 *
 * DESIGN, threads. Each thread has a crn_thread with its own builder; its lock is only ever
 * contended while the trace is kept aside. What the threads share (tables, handles) is guarded by
 * the recorder's lock, requests by their own. No lock is held across a wrapped call.
 */
#ifndef CAIRN_TRACE_H
#define CAIRN_TRACE_H

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tracefmt/tracefmt.h"

/* As MPI_Pready_list has them: MPICH 4.0 forgot that it changes nothing. */
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40100000
#define CRN_PARTITION int
#else
#define CRN_PARTITION const int
#endif

#define CRN_EXPORT __attribute__((visibility("default")))

/* ---- the process (trace_state.c) ---- */

typedef struct crn_frame_cache crn_frame_cache;

typedef CRN_VEC(int64_t) crn_ints;

typedef struct crn_thread {
    atomic_flag
        lock; /* guards build: the owner adds, and who takes a mark; who keeps aside reads */
    crn_build build;
    unsigned lane;
    size_t held;     /* its part of the recorder's held; belongs to the owner */
    bool in_use;     /* by a living thread; guarded by the recorder's lock, */
    uint64_t nlives; /* as is the number of threads that have had it */
    /* the rest belongs to the owner alone */
    volatile bool busy; /* in the recorder itself: of what a signal's handler does now, calls are
                           only counted (lost) */
    int depth;          /* wrapped calls that we are in */
    uint32_t outer, outer_site; /* the outermost of them, and where it was called */
    const void *outer_frame;    /* of its wrapper; what it calls lies below */
    crn_frame_cache *stack;
    crn_ints list[CRN_COLUMNS];  /* room for the lists of the current event */
    CRN_VEC(uint32_t) request;   /* slots of the requests of the current event */
    CRN_VEC(MPI_Status) status;  /* where the program ignores them */
    CRN_VEC(MPI_Request) handle; /* the requests, indices and statuses of a Fortran call */
    CRN_VEC(int) index;
    CRN_VEC(MPI_Datatype) type[2]; /* of what is sent and what is received */
    CRN_VEC(MPI_Fint) fstatus;
    FILE *plain;
} crn_thread;

typedef struct crn_recorder {
    _Atomic int state; /* crn_state; written by MPI_Init and MPI_Finalize */
    int rank, size;
    pid_t pid;
    uint32_t precision;
    bool times, want_plain;
    bool refused;        /* that nothing is recorded was said */
    char *out;           /* the trace file */
    uint64_t budget;     /* bytes of memory, for everything below */
    _Atomic size_t held; /* bytes, as of when each thread looked last */
    uint64_t began, began_wall;
    uint64_t keep_every; /* nanoseconds between two keepings aside; 0: never */
    uint64_t keep_cost;  /* or this many times what the last one took */
    _Atomic uint64_t keep_next;
    _Atomic uint64_t lost; /* calls of signals' handlers that interrupted the recorder */
    MPI_Comm comm;         /* a copy of the world, for the merge */
    pthread_mutex_t lock;  /* guards what follows */
    crn_tables tables;
    size_t shared; /* its part of held: tables and handles */
    size_t handles_nbytes;
    CRN_VEC(crn_thread *) thread; /* by lane; never shrinks */
} crn_recorder;

enum crn_state {
    CRN_BEFORE, /* MPI_Init has not returned */
    CRN_RUNNING,
    CRN_OVER /* MPI_Finalize was entered, or recording is off */
};

extern crn_recorder crn_rec;

/* After PMPI_Init: read the environment, start recording. */
void crn_rec_start(void);

/* The recorder does nothing in this program, and why: said by the first rank, also in a note beside
 * where the trace would be (CRN_MPI_REFUSED). */
void crn_rec_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What the threads share may have grown. Recorder's lock held. */
void crn_rec_grown(void);

extern _Thread_local crn_thread *crn_rec_self __attribute__((tls_model("initial-exec")));
crn_thread *crn_rec_new_self(void);

/* This thread, made on first use; NULL when recording is impossible. */
static inline crn_thread *crn_rec_thread(void)
{
    return crn_rec_self ? crn_rec_self : crn_rec_new_self();
}

static inline bool crn_rec_running(void)
{
    /* relaxed: what MPI_Init set up is ordered by how the program's threads were started */
    return atomic_load_explicit(&crn_rec.state, memory_order_relaxed) == CRN_RUNNING;
}

/* This thread holds the recorder's lock: a signal's handler that comes now must not ask for it. */
extern _Thread_local volatile bool crn_rec_locked __attribute__((tls_model("initial-exec")));

static inline void crn_rec_lock(void)
{
    crn_rec_locked = true;
    pthread_mutex_lock(&crn_rec.lock);
}

static inline void crn_rec_unlock(void)
{
    pthread_mutex_unlock(&crn_rec.lock);
    crn_rec_locked = false;
}

/*
 * A lock for moments, which almost never has to be waited for: taking and giving back are one
 * instruction each. Who waits lets others run.
 */
static inline void crn_short_lock(atomic_flag *lock)
{
    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire))
        sched_yield();
}

static inline void crn_short_unlock(atomic_flag *lock)
{
    atomic_flag_clear_explicit(lock, memory_order_release);
}

/* The function of this name that the recorder hides; found once and kept in *at. */
void *crn_next(_Atomic(void *) *at, const char *name);

/* ---- call sites (trace_stack.c) ---- */

/* The site of a wrapper's caller: its return address and frame. 0 if unknown. */
uint32_t crn_stack_site(crn_thread *t, const void *ret, const void *frame);
void crn_stack_free(crn_frame_cache *c);
size_t crn_stack_nbytes(const crn_frame_cache *c);

/* Know the module of this name, which lies at start, from now on (trace_loaded.c). */
void crn_module_note(const char *name, uintptr_t start);

/* ---- handles: numbers instead of pointers ---- */

/* Handles are addresses of large objects or small numbers: both differ in few bits. */
static inline size_t crn_handle_hash(uintptr_t handle)
{
    return (size_t)(crn_hash_mix(0, handle) >> 32);
}

/* A table from handles to numbers; the smallest free number is given next. Recorder's lock held. */
typedef struct crn_handles {
    struct crn_handle {
        uintptr_t handle;
        int64_t number; /* -1: free slot */
    } * slot;
    size_t nslots, n;
    CRN_VEC(bool) taken;
} crn_handles;

int64_t crn_handles_find(const crn_handles *h, uintptr_t handle); /* -1 */
int64_t crn_handles_add(crn_handles *h, uintptr_t handle);        /* -1: no memory */
void crn_handles_drop(crn_handles *h, uintptr_t handle);

typedef struct crn_comm_info {
    int64_t number;
    int64_t rank, size; /* peers are relative to rank, modulo size; between groups rank is 0 */
    int64_t own_size;   /* of the group that this process is in */
    bool between;       /* an intercommunicator: peers are the other group */
} crn_comm_info;

/* Stands until this thread asks for the next one. */
const crn_comm_info *crn_comm_of(MPI_Comm comm);
crn_comm_info crn_comm_new(MPI_Comm comm, crn_ints *world);
void crn_comm_drop(MPI_Comm comm);

/* How many this process has in the topology that it sends to (out) or receives from. */
int crn_comm_neighbors(MPI_Comm comm, bool out);

int64_t crn_type_of(MPI_Datatype type);
void crn_type_drop(MPI_Datatype type);

/* Requests share a pool of numbers if they come from the same call with the same parameters. */
typedef struct crn_request_key {
    uint32_t call;
    int64_t peer, tag, comm; /* comm: or the file */
} crn_request_key;

typedef struct crn_request_link {
    uint32_t next, prev; /* slot + 1 */
} crn_request_link;

typedef struct crn_request {
    MPI_Request handle;
    const void *var; /* the program's variable: distinguishes equal handles */
    int64_t number;
    uint64_t born; /* number of requests created before it */
    uint32_t pool;
    bool persistent, wild;
    bool found;               /* by a call that is not over: no other finds it */
    crn_request_link link[2]; /* in the chains that lead to it */
} crn_request;

#define CRN_NO_REQUEST UINT32_MAX

typedef struct crn_requests {
    atomic_flag lock; /* guards the rest, and what trace_request.c knows of them */
    CRN_VEC(crn_request) slot;
} crn_requests;

/* The requests' lock held. */
int64_t crn_request_new(const MPI_Request *var, const crn_request_key *key, bool persistent,
                        bool wild);
uint32_t crn_request_find(const MPI_Request *var); /* slot, until it is put back or dropped */
void crn_request_put_back(uint32_t slot);
void crn_request_drop(uint32_t slot);

extern crn_requests crn_reqs;

static inline void crn_requests_lock(void)
{
    crn_short_lock(&crn_reqs.lock);
}

static inline void crn_requests_unlock(void)
{
    crn_short_unlock(&crn_reqs.lock);
}

static inline crn_request *crn_request_at(uint32_t slot)
{
    return &crn_reqs.slot.at[slot];
}

/* ---- events (trace_event.c) ---- */

typedef struct crn_ev {
    crn_thread *t;
    crn_record r;
    int64_t own_size; /* of the communicator, beside what r has of it */
    bool between;
    crn_request_key key;      /* of the request that the call makes */
    bool wild;                /* a receive here takes any source or any tag */
    bool ok;                  /* the call succeeded, and has set what it returns */
    bool nothing;             /* it failed, or is a test that found nothing */
    MPI_Status *status, one;  /* what the call filled in, if anyone asked; room for one */
    const MPI_Request *after; /* the requests of the call, when it is over */
    const int *some;          /* which of them are done, where a call says so */
    int nsome, only;
    int64_t number[CRN_NAME_NUMBERS];
    int nnumbers;
} crn_ev;

/* A wrapper is entered; false: do not record. */
bool crn_ev_enter(crn_ev *e, uint32_t call, const void *ret, const void *frame);
void crn_ev_leave(crn_ev *e);

/* A remark without parameters. */
void crn_ev_remark(crn_thread *t, uint32_t call);

/* From when the memory is full events are only counted, and nothing new is kept for them. */
static inline bool crn_ev_only_counts(const crn_ev *e)
{
    return e->t->build.failed;
}

/* Leave without recording. */
static inline void crn_ev_forget(crn_ev *e)
{
    e->t->depth--;
    e->t->busy = false;
}

static inline void crn_ev_start(crn_ev *e)
{
    e->t->busy = false;
    e->r.start = crn_now_ns();
}

static inline void crn_ev_stop(crn_ev *e)
{
    e->r.end = crn_now_ns();
    e->t->busy = true;
}

/* What the call returned. Where errors return, what it should have set is not to be read. */
static inline void crn_ev_result(crn_ev *e, int rc)
{
    e->ok = rc == MPI_SUCCESS || rc == MPI_ERR_IN_STATUS;
    e->nothing = !e->ok;
}

/* Not to be recorded, but entered: what it calls is its own affair. */
typedef struct crn_quiet {
    crn_thread *t;
} crn_quiet;
crn_quiet crn_quiet_enter(void);
void crn_quiet_leave(crn_quiet q);

/* ---- parameters, by the words of calls.table; c is the column (trace_param.c) ---- */

/* An array of whole numbers of either size; NULL for none. */
typedef struct crn_whole {
    const int *small;
    const MPI_Count *large;
} crn_whole;

static inline crn_whole crn_small(const int *v)
{
    return (crn_whole){v, NULL};
}

static inline crn_whole crn_large(const MPI_Count *v)
{
    return (crn_whole){NULL, v};
}

static inline bool crn_whole_given(crn_whole v)
{
    return v.small || v.large;
}

static inline int64_t crn_whole_at(crn_whole v, int64_t i)
{
    return v.small ? v.small[i] : v.large[i];
}

static inline void crn_ev_int(crn_ev *e, int c, int64_t v)
{
    e->r.value[c] = v;
}

void crn_ev_type(crn_ev *e, int c, MPI_Datatype type);
void crn_ev_peer(crn_ev *e, int c, int peer);
void crn_ev_rank(crn_ev *e, int c, int rank);
void crn_ev_tag(crn_ev *e, int c, int tag);
void crn_ev_comm(crn_ev *e, int c, MPI_Comm comm);
void crn_ev_op(crn_ev *e, int c, MPI_Op op);
void crn_ev_whence(crn_ev *e, int c, int whence);
void crn_ev_split_type(crn_ev *e, int c, int type);
void crn_ev_list(crn_ev *e, int c, crn_whole v, int n);
void crn_ev_counts(crn_ev *e, int c, crn_whole counts, int64_t n);
void crn_ev_send_counts(crn_ev *e, int c, crn_whole counts, const void *buf);
void crn_ev_root_counts(crn_ev *e, int c, crn_whole counts, int root);
void crn_ev_type_counts(crn_ev *e, int c, crn_whole counts, const MPI_Datatype *types);
void crn_ev_send_type_counts(crn_ev *e, int c, crn_whole counts, const MPI_Datatype *types,
                             const void *buf);
void crn_ev_neighbor_counts(crn_ev *e, int c, crn_whole counts, MPI_Comm comm, bool out);
void crn_ev_neighbor_type_counts(crn_ev *e, int c, crn_whole counts, const MPI_Datatype *types,
                                 MPI_Comm comm, bool out);
void crn_ev_cart_dims(crn_ev *e, int c, crn_whole dims, MPI_Comm comm);
void crn_ev_new_comm(crn_ev *e, int c, MPI_Comm comm);
void crn_ev_old_comm(crn_ev *e, int c, MPI_Comm comm);
void crn_ev_old_file(crn_ev *e, int c, MPI_File file);
void crn_ev_file(crn_ev *e, int c, MPI_File file);
void crn_ev_old_win(crn_ev *e, int c, MPI_Win win);
void crn_ev_win(crn_ev *e, int c, MPI_Win win);
void crn_ev_name(crn_ev *e, const char *name, size_t n);
void crn_ev_new_request(crn_ev *e, int c, const MPI_Request *request);
void crn_ev_request(crn_ev *e, int c, const MPI_Request *request);
void crn_ev_requests(crn_ev *e, int c, int n, const MPI_Request *request);
void crn_ev_completed(crn_ev *e, const MPI_Request *request);
void crn_ev_flag(crn_ev *e, int c, int flag);
void crn_ev_index(crn_ev *e, int c, int index);
void crn_ev_indices(crn_ev *e, int c, int n, const int *index);
MPI_Status *crn_ev_status(crn_ev *e, MPI_Status *status);
MPI_Status *crn_ev_statuses(crn_ev *e, int n, MPI_Status *statuses);

/* ---- the end (trace_finish.c) ---- */

void crn_finish(void);     /* merge and write; collective, before PMPI_Finalize */
void crn_keep_aside(void); /* what was recorded so far, into this rank's own file */
void crn_keep_maybe(uint64_t now);

/* ---- the plain log (trace_plain.c) ---- */

void crn_plain_write(crn_thread *t, const crn_record *r);

#endif
