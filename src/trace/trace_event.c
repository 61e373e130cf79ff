/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From a wrapped call to a record: entering and leaving, and what requests and wildcard receives
 * came to.
 */
#include "trace/trace.h"

#include <signal.h>

enum {
    LOOK_EVERY = 4096, /* events between looks at the memory, */
    LOOK_PART = 64     /* or less, if so small a part of it was taken since */
};

static void leave_by_jump(crn_thread *t) CRN_RARE;

/*
 * The outermost call was left by longjmp or an exception, as an error handler may: there was no
 * return to observe. Not so where a signal's handler runs on a stack of its own, which may lie
 * anywhere.
 */
static void leave_by_jump(crn_thread *t)
{
    stack_t signal_stack;
    if (sigaltstack(NULL, &signal_stack) != 0 || signal_stack.ss_flags & SS_ONSTACK)
        return;
    t->depth = 0;
    crn_requests_lock();
    for (size_t i = 0; i < t->request.n; i++) {
        if (t->request.at[i] != CRN_NO_REQUEST)
            crn_request_put_back(t->request.at[i]);
    }
    crn_requests_unlock();
}

/*
 * A signal's handler has interrupted the recorder, whose tables are not to be touched now: the call
 * is not recorded, and the trace must say that it is not complete. The recorder itself makes no
 * call that comes here while it is busy.
 */
static bool is_interrupted(const crn_thread *t)
{
    if (!crn_rec_locked && !(t && t->busy))
        return false;
    atomic_fetch_add_explicit(&crn_rec.lost, 1, memory_order_relaxed);
    return true;
}

bool crn_ev_enter(crn_ev *e, uint32_t call, const void *ret, const void *frame)
{
    if (!crn_rec_running() || is_interrupted(crn_rec_self))
        return false;
    crn_thread *t = crn_rec_thread();
    if (!t)
        return false;
    const crn_call *row = crn_call_row(call);
    if (t->depth > 0 && (uintptr_t)frame >= (uintptr_t)t->outer_frame)
        leave_by_jump(t);
    bool inner = t->depth > 0;
    /* what MPI does inside itself is not the program's, but for the file system below MPI-IO */
    if (inner && (row->layer != CRN_LAYER_POSIX ||
                  crn_call_row(t->outer)->layer != CRN_LAYER_MPIIO || t->depth > 1))
        return false;
    t->busy = true;
    e->t = t;
    e->r.call = call;
    e->r.ncolumns = row->ncolumns;
    e->r.name = 0;
    e->r.within = inner ? t->outer : CRN_CALL_NONE;
    e->r.site = inner ? t->outer_site : crn_ev_only_counts(e) ? 0 : crn_stack_site(t, ret, frame);
    e->r.comm_rank = e->r.comm_size = 0;
    e->key = (crn_request_key){.call = call};
    e->wild = e->nothing = false;
    e->ok = true;
    e->status = NULL;
    e->after = NULL;
    e->some = NULL;
    e->only = -1;
    e->nnumbers = 0;
    t->request.n = 0;
    if (!inner) {
        t->outer = call;
        t->outer_site = e->r.site;
        t->outer_frame = frame;
    }
    t->depth++;
    return true;
}

static size_t scratch_nbytes(const crn_thread *t)
{
    size_t n = t->request.cap * sizeof *t->request.at + t->status.cap * sizeof *t->status.at +
               t->handle.cap * sizeof *t->handle.at + t->index.cap * sizeof *t->index.at +
               t->fstatus.cap * sizeof *t->fstatus.at +
               (t->type[0].cap + t->type[1].cap) * sizeof(MPI_Datatype);
    for (int i = 0; i < CRN_COLUMNS; i++)
        n += t->list[i].cap * sizeof *t->list[i].at;
    return n;
}

/* Take note of what this thread holds. True: there is no room for more. */
static bool is_full(crn_thread *t)
{
    size_t now =
        sizeof *t + crn_build_nbytes(&t->build) + crn_stack_nbytes(t->stack) + scratch_nbytes(t);
    size_t all = now - t->held +
                 atomic_fetch_add_explicit(&crn_rec.held, now - t->held, memory_order_relaxed);
    t->held = now;
    t->build.fresh = 0;
    return all > crn_rec.budget / 2; /* half: an array may double before the next look */
}

static inline bool is_time_to_look(const crn_thread *t)
{
    return t->build.events % LOOK_EVERY == 0 || t->build.fresh > crn_rec.budget / LOOK_PART ||
           atomic_load_explicit(&crn_rec.held, memory_order_relaxed) > crn_rec.budget / 2;
}

static inline void add(crn_ev *e)
{
    crn_thread *t = e->t;
    crn_short_lock(&t->lock);
    crn_build_add(&t->build, &e->r);
    if (!t->build.failed && is_time_to_look(t))
        t->build.failed = is_full(t);
    crn_short_unlock(&t->lock);
    if (crn_rec.want_plain)
        crn_plain_write(t, &e->r);
}

void crn_ev_remark(crn_thread *t, uint32_t call)
{
    crn_ev e = {.t = t, .r = {.call = call}};
    e.r.start = e.r.end = crn_now_ns();
    t->busy = true;
    add(&e);
    t->busy = false;
}

static void add_match(crn_ev *e, const MPI_Status *status) CRN_RARE;

/* Who a wildcard receive got its message from. */
static void add_match(crn_ev *e, const MPI_Status *status)
{
    MPI_Count nbytes = 0;
    crn_ev match = {.t = e->t};
    if (status->MPI_SOURCE < 0)
        return; /* from nobody, or of a receive that was never started */
    PMPI_Get_elements_x(status, MPI_BYTE, &nbytes);
    match.r = (crn_record){.call = CRN_CALL_match, .site = e->r.site, .ncolumns = 3};
    match.r.value[0] = status->MPI_SOURCE;
    match.r.value[1] = status->MPI_TAG;
    match.r.value[2] = nbytes == MPI_UNDEFINED ? -1 : nbytes;
    match.r.start = match.r.end = e->r.end;
    add(&match);
}

/* The status of the i-th request of the call; NULL if it has none. */
static const MPI_Status *status_of(const crn_ev *e, size_t i)
{
    if (!e->status || e->nothing)
        return NULL;
    if (e->only >= 0)
        return i == (size_t)e->only ? e->status : NULL;
    if (!e->some)
        return &e->status[i];
    for (int k = 0; k < e->nsome; k++) {
        if ((size_t)e->some[k] == i)
            return &e->status[k];
    }
    return NULL;
}

/*
 * Only asked of requests: nothing else can be cancelled, and a probe of MPICH leaves in the status
 * whatever lay there before.
 */
static bool is_cancelled(const MPI_Status *status)
{
    int cancelled = 0;
    PMPI_Test_cancelled(status, &cancelled);
    return cancelled;
}

/* What the wildcard receives got that are done. */
static void add_matches(crn_ev *e)
{
    for (size_t i = 0; i < e->t->request.n; i++) {
        uint32_t slot = e->t->request.at[i];
        const MPI_Status *status = status_of(e, i);
        if (slot == CRN_NO_REQUEST || !status)
            continue;
        crn_requests_lock();
        crn_request r = *crn_request_at(slot);
        crn_requests_unlock();
        const bool done = r.persistent || e->after[i] == MPI_REQUEST_NULL;
        if (r.wild && done && !is_cancelled(status))
            add_match(e, status);
    }
}

/*
 * After the event: requests that became null are done, persistent ones and those that the call only
 * named stay. Completed wildcard receives record their source.
 */
static void settle_requests(crn_ev *e)
{
    const crn_thread *t = e->t;
    if (e->wild && e->after)
        add_matches(e);
    crn_requests_lock();
    for (size_t i = 0; i < t->request.n; i++) {
        uint32_t slot = t->request.at[i];
        if (slot == CRN_NO_REQUEST)
            continue;
        if (e->after && e->after[i] == MPI_REQUEST_NULL)
            crn_request_drop(slot);
        else
            crn_request_put_back(slot);
    }
    crn_requests_unlock();
}

/* A failed call has no effect to record or replay, except for requests that it ended. */
static bool is_kept(const crn_ev *e)
{
    return e->ok || crn_call_row(e->r.call)->layer == CRN_LAYER_WAIT;
}

void crn_ev_leave(crn_ev *e)
{
    for (int i = 0; i < e->nnumbers; i++)
        e->r.value[e->r.ncolumns++] = e->number[i];
    if (is_kept(e))
        add(e);
    if (e->t->request.n > 0)
        settle_requests(e);
    else if (e->wild && e->status && !e->nothing)
        add_match(e, e->status);
    crn_ev_forget(e);
    crn_keep_maybe(e->r.end);
}

crn_quiet crn_quiet_enter(void)
{
    crn_quiet q = {crn_rec_running() ? crn_rec_thread() : NULL};
    if (q.t && q.t->depth++ == 0) {
        q.t->outer = CRN_CALL_NONE;
        q.t->outer_frame = (const void *)UINTPTR_MAX; /* nobody jumps out of this one */
    }
    return q;
}

void crn_quiet_leave(crn_quiet q)
{
    if (q.t)
        q.t->depth--;
}
