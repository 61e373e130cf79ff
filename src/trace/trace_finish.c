/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of a run: ranks merge their traces up a binary tree, rank 0 writes the file. And what is
 * kept of a run that does not come to its end: from time to time each rank writes its own trace as
 * of now beside the file, from which 'cairn trace' makes an incomplete trace of all.
 */
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

enum { TAG = 1, PIECE = 1 << 30 }; /* bytes of a message: its count is an int */

static void complain(const char *what)
{
    char text[1024];
    crn_err_format(crn_err_peek(), false, text, sizeof text);
    fprintf(stderr, "cairn: rank %d: %s: %s\n", crn_rec.rank, what, text);
}

static char *own_path(char *buf, size_t cap)
{
    snprintf(buf, cap, "%s.%d", crn_rec.out, crn_rec.rank);
    return buf;
}

static cairn_status program_name(crn_trace *t)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    const char *slash;
    path[CRN_MAX(n, 0)] = 0;
    slash = strrchr(path, '/');
    for (size_t i = 0; i < t->nstrings; i++) {
        if (strcmp(t->string[i], slash ? slash + 1 : path) == 0)
            t->program = (uint32_t)i;
    }
    return CAIRN_OK;
}

/* This rank's trace as of now. cut: it does not reach MPI_Finalize. */
static cairn_status own_trace(bool cut, crn_trace **ret)
{
    CRN_VEC(crn_build *) build = {0};
    cairn_status rc = CAIRN_OK;
    crn_trace *t = NULL;
    int64_t self = crn_rec.rank;
    crn_rec_lock();
    for (size_t i = 0; i < crn_rec.thread.n && rc == CAIRN_OK; i++) {
        crn_short_lock(&crn_rec.thread.at[i]->lock);
        rc = crn_vec_push(&build, &crn_rec.thread.at[i]->build);
    }
    if (rc == CAIRN_OK)
        rc = crn_build_trace(build.at, build.n, &crn_rec.tables, (uint32_t)crn_rec.rank,
                             (uint32_t)crn_rec.size, &t);
    for (size_t i = 0; i < build.n; i++)
        crn_short_unlock(&crn_rec.thread.at[i]->lock);
    crn_rec_unlock();
    crn_vec_done(&build);
    CRN_TRY(rc);
    t->dropped += atomic_load_explicit(&crn_rec.lost, memory_order_relaxed);
    t->began = crn_rec.began_wall;
    t->lasted = crn_now_ns() - crn_rec.began;
    rc = program_name(t);
    if (rc == CAIRN_OK && cut)
        rc = crn_seq_of(&self, 1, &t->cut);
    if (rc < 0) {
        crn_trace_free(t);
        return rc;
    }
    *ret = t;
    return CAIRN_OK;
}

/* ---- the tree ---- */

/*
 * Send a trace to another rank; one that cannot be had goes as nothing. The other one says whether
 * it has room: nobody waits for who has none.
 */
static void send_trace(crn_trace *t, int to)
{
    crn_buf b = {0};
    int room = 0;
    if (t && crn_trace_encode(t, CRN_TRACE_QUICK, &b) < 0) {
        complain("the trace of this and further ranks is lost");
        b.n = 0;
    }
    uint64_t n = b.n;
    PMPI_Send(&n, 1, MPI_UINT64_T, to, TAG, crn_rec.comm);
    if (n > 0)
        PMPI_Recv(&room, 1, MPI_INT, to, TAG, crn_rec.comm, MPI_STATUS_IGNORE);
    for (uint64_t at = 0; room && at < n; at += PIECE)
        PMPI_Send(b.at + at, (int)CRN_MIN(n - at, PIECE), MPI_BYTE, to, TAG, crn_rec.comm);
    crn_buf_done(&b);
}

static crn_trace *receive_trace(int from)
{
    crn_trace *t = NULL;
    unsigned char *data = NULL;
    uint64_t n = 0;
    PMPI_Recv(&n, 1, MPI_UINT64_T, from, TAG, crn_rec.comm, MPI_STATUS_IGNORE);
    if (n == 0)
        return NULL;
    int room = crn_alloc(&data, n) == 0;
    PMPI_Send(&room, 1, MPI_INT, from, TAG, crn_rec.comm);
    if (!room) {
        complain("a trace does not fit into memory");
        return NULL;
    }
    for (uint64_t at = 0; at < n; at += PIECE)
        PMPI_Recv(data + at, (int)CRN_MIN(n - at, PIECE), MPI_BYTE, from, TAG, crn_rec.comm,
                  MPI_STATUS_IGNORE);
    if (crn_trace_decode(data, n, &t) < 0)
        complain("a trace did not arrive");
    free(data);
    return t;
}

static crn_trace *merge_or_keep(crn_trace *mine, crn_trace *other)
{
    if (!mine || !other)
        return mine ? mine : other;
    if (crn_trace_merge(mine, other) < 0) {
        complain("traces cannot be merged");
        crn_trace_free(mine);
        return NULL;
    }
    return mine;
}

/* Binary tree over contiguous ranks, so that each merge sees ranks in ascending order. */
static crn_trace *merge_up(crn_trace *mine)
{
    for (int step = 1; step < crn_rec.size; step *= 2) {
        if (crn_rec.rank % (2 * step) != 0) {
            send_trace(mine, crn_rec.rank - step);
            crn_trace_free(mine);
            return NULL;
        }
        if (crn_rec.rank + step < crn_rec.size)
            mine = merge_or_keep(mine, receive_trace(crn_rec.rank + step));
    }
    return mine;
}

static cairn_status write_whole(crn_trace *t)
{
    CRN_TRY(crn_trace_finish(t));
    return crn_trace_save(t, crn_rec.out);
}

static void free_threads(void)
{
    for (size_t i = 0; i < crn_rec.thread.n; i++) {
        if (crn_rec.thread.at[i]->plain)
            fclose(crn_rec.thread.at[i]->plain);
        crn_rec.thread.at[i]->plain = NULL;
    }
}

void crn_finish(void)
{
    crn_trace *t = NULL;
    char path[PATH_MAX];
    int written = 1;
    crn_quiet q = crn_quiet_enter();
    atomic_store(&crn_rec.state, CRN_OVER);
    if (own_trace(false, &t) < 0)
        complain("the trace of this rank is lost");
    t = merge_up(t);
    if (crn_rec.rank == 0 && (!t || write_whole(t) < 0)) {
        complain("the trace cannot be written");
        written = 0;
    }
    crn_trace_free(t);
    PMPI_Bcast(&written, 1, MPI_INT, 0, crn_rec.comm);
    if (written)
        unlink(own_path(path, sizeof path));
    PMPI_Comm_free(&crn_rec.comm);
    free_threads();
    crn_quiet_leave(q);
}

/* ---- keeping aside ---- */

static cairn_status write_aside(const crn_buf *b)
{
    char path[PATH_MAX], temp[PATH_MAX + 8];
    own_path(path, sizeof path);
    snprintf(temp, sizeof temp, "%s.new", path);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    bool written = f && fwrite(b->at, 1, b->n, f) == b->n;
    if (f && fclose(f) != 0)
        written = false;
    if (written && rename(temp, path) == 0)
        return CAIRN_OK;
    cairn_status rc = crn_fail_sys(errno, "cannot write '%s'", path);
    unlink(temp); /* it takes room that may be what is missing */
    return rc;
}

void crn_keep_aside(void)
{
    static atomic_bool reported; /* once, however often it fails */
    crn_trace *t = NULL;
    crn_buf b = {0};
    crn_quiet q = crn_quiet_enter();
    cairn_status rc = own_trace(true, &t);
    if (rc == CAIRN_OK)
        rc = crn_trace_encode(t, CRN_TRACE_QUICK, &b);
    if (rc == CAIRN_OK)
        rc = write_aside(&b);
    if (rc < 0 && !atomic_exchange(&reported, true))
        complain("the trace so far cannot be kept");
    crn_buf_done(&b);
    crn_trace_free(t);
    crn_quiet_leave(q);
}

/*
 * After an event: keep aside if it is time, one thread at a time. Until the usual time has passed,
 * a run is half as old as when it does so the next time.
 */
void crn_keep_maybe(uint64_t now)
{
    uint64_t due = atomic_load_explicit(&crn_rec.keep_next, memory_order_relaxed);
    if (crn_rec.keep_every == 0 || now < due)
        return;
    /* whoever moves the date does it; nothing else is published by it */
    if (!atomic_compare_exchange_strong_explicit(&crn_rec.keep_next, &due, UINT64_MAX,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    crn_keep_aside();
    uint64_t took = crn_now_ns() - now, usual = CRN_MIN(crn_rec.keep_every, now - crn_rec.began);
    atomic_store_explicit(&crn_rec.keep_next, now + CRN_MAX(usual, crn_rec.keep_cost * took),
                          memory_order_relaxed);
}
