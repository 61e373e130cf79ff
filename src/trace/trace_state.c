/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The process: what the environment asks for, its threads and their lanes.
 *
 *     CAIRN_TRACE_OUT        the trace file ("cairn.ctr")
 *     CAIRN_TRACE_PRECISION  100 (lossless) to 0 (all that has the same shape is one)
 *     CAIRN_TRACE_TIMES      0: no times
 *     CAIRN_TRACE_KEEP       seconds between keepings aside: 2, or more if they are slow; 0: never
 *     CAIRN_TRACE_MEMORY     bytes for each process (256 MiB)
 *     CAIRN_TRACE_PLAIN      a directory: also write a plain log of each thread there
 *     CAIRN_TRACE_OFF        1: load, but record nothing
 */
#include "trace/trace.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    KEEP_COST = 200, /* keeping aside takes at most one part in so many of the time */
    KEEP_FIRST = 64  /* and begins after this part of what lies between two: many runs die young */
};

crn_recorder crn_rec = {.lock = PTHREAD_MUTEX_INITIALIZER, .comm = MPI_COMM_NULL};

_Thread_local crn_thread *crn_rec_self;
_Thread_local volatile bool crn_rec_locked;
static pthread_key_t at_exit;

static double number_from(const char *name, double otherwise, double min, double max)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return otherwise;
    double v = strtod(text, &end);
    if (*end || !(v >= min && v <= max)) {
        fprintf(stderr, "cairn: %s=%s is not a number from %g to %g; %g is taken\n", name, text,
                min, max, otherwise);
        return otherwise;
    }
    return v;
}

static uint64_t memory_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t v;
    if (!text || !*text)
        return otherwise;
    if (crn_parse_nbytes(text, &v) < 0) {
        fprintf(stderr, "cairn: %s=%s: %s; the default is taken\n", name, text,
                crn_err_peek()->text);
        return otherwise;
    }
    return v;
}

/* A thread has ended: its lane is free for the next one. What is known of its stack goes with that:
 * of the next one's, which may begin elsewhere in the same memory, it would not be true. */
static void thread_ended(void *arg)
{
    crn_thread *t = arg;
    crn_stack_free(t->stack);
    t->stack = NULL;
    crn_rec_lock();
    t->in_use = false;
    crn_rec_unlock();
    crn_rec_self = NULL;
}

/* A child of fork is not a rank: it must not write the rank's files. */
static void in_child(void)
{
    atomic_store(&crn_rec.state, CRN_OVER);
}

/*
 * Is the program's MPI the one that this was compiled for? Another one's handles mean other things,
 * down to the communicator of all ranks. Kin of MPICH have names of their own.
 */
static bool is_our_mpi(void)
{
    char text[8192] = ""; /* what MPICH asks for; Open MPI is content with less */
    int n = 0;
    PMPI_Get_library_version(text, &n);
#ifdef OPEN_MPI
    const bool open_mpi = true;
#else
    const bool open_mpi = false;
#endif
    if ((strstr(text, "Open MPI") != NULL) == open_mpi)
        return true;
    crn_rec_refuse("this recorder is for %s, which the program does not use",
                   open_mpi ? "Open MPI" : "MPICH");
    return false;
}

/* By another program, whose trace has the same name. */
static bool was_spawned(void)
{
    MPI_Comm parent = MPI_COMM_NULL;
    PMPI_Comm_get_parent(&parent);
    return parent != MPI_COMM_NULL;
}

void crn_rec_start(void)
{
    crn_recorder *r = &crn_rec;
    const char *out = getenv("CAIRN_TRACE_OUT");
    if (atomic_load(&r->state) != CRN_BEFORE) /* Fortran's MPI_Init may have called C's */
        return;
    if (!is_our_mpi() || was_spawned()) {
        atomic_store(&r->state, CRN_OVER);
        return;
    }
    PMPI_Comm_rank(MPI_COMM_WORLD, &r->rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &r->size);
    r->pid = getpid();
    r->precision = (uint32_t)number_from("CAIRN_TRACE_PRECISION", 100, 0, 100);
    r->times = number_from("CAIRN_TRACE_TIMES", 1, 0, 1) != 0;
    r->keep_every = (uint64_t)(1e9 * number_from("CAIRN_TRACE_KEEP", 2, 0, 1e6));
    r->keep_cost = getenv("CAIRN_TRACE_KEEP") ? 0 : KEEP_COST;
    r->budget = memory_from("CAIRN_TRACE_MEMORY", (uint64_t)256 << 20);
    r->want_plain = getenv("CAIRN_TRACE_PLAIN") != NULL;
    r->began = crn_now_ns();
    r->began_wall = crn_wall_ns();
    r->keep_next = r->began + r->keep_every / KEEP_FIRST;
    if (number_from("CAIRN_TRACE_OFF", 0, 0, 1) != 0 ||
        crn_strdup(out && *out ? out : "cairn.ctr", &r->out) < 0 ||
        crn_tables_init(&r->tables) < 0 || pthread_key_create(&at_exit, thread_ended) != 0 ||
        pthread_atfork(NULL, NULL, in_child) != 0 ||
        PMPI_Comm_dup(MPI_COMM_WORLD, &r->comm) != MPI_SUCCESS) {
        atomic_store(&r->state, CRN_OVER);
        return;
    }
    atomic_store(&r->state, CRN_RUNNING);
}

void crn_rec_grown(void)
{
    size_t now = crn_tables_nbytes(&crn_rec.tables) + crn_rec.handles_nbytes;
    /* relaxed, here and elsewhere: a sum that orders nothing */
    atomic_fetch_add_explicit(&crn_rec.held, now - crn_rec.shared, memory_order_relaxed);
    crn_rec.shared = now;
}

static crn_thread *new_thread(void)
{
    crn_thread *t;
    if (crn_alloc(&t, 1) < 0)
        return NULL;
    if (crn_build_init(&t->build, (uint32_t)crn_rec.rank, crn_rec.precision, crn_rec.times) < 0 ||
        crn_vec_push(&crn_rec.thread, t) < 0) {
        crn_build_done(&t->build);
        free(t);
        return NULL;
    }
    atomic_flag_clear(&t->lock);
    t->lane = (unsigned)crn_rec.thread.n - 1;
    t->build.last_end = crn_rec.began; /* so that its first event says when it came */
    return t;
}

/* A lane that no living thread has, or a new one. */
static crn_thread *take_lane(void)
{
    for (size_t i = 0; i < crn_rec.thread.n; i++) {
        if (!crn_rec.thread.at[i]->in_use)
            return crn_rec.thread.at[i];
    }
    return new_thread();
}

crn_thread *crn_rec_new_self(void)
{
    crn_rec_lock();
    crn_thread *t = take_lane();
    const bool again = t && t->nlives++ > 0;
    if (t) {
        t->in_use = true;
        t->depth = 0;
        t->busy = false;
    }
    crn_rec_unlock();
    if (t)
        pthread_setspecific(at_exit, t);
    crn_rec_self = t;
    if (again)
        crn_ev_remark(t, CRN_CALL_thread);
    return t;
}

void *crn_next(_Atomic(void *) *at, const char *name)
{
    void *p = atomic_load_explicit(at, memory_order_relaxed); /* who comes second finds the same */
    if (!p) {
        p = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(at, p, memory_order_relaxed);
    }
    return p;
}
