/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small trace for tests, made by tracefmt without a recorder: ranks in a ring exchange messages
 * in a loop, reduce, split their communicator, and write to files. Sizes and counts are known.
 */
#ifndef CAIRN_TESTS_SMALL_TRACE_H
#define CAIRN_TESTS_SMALL_TRACE_H

#include "harness/harness.h"
#include "tracefmt/tracefmt.h"

enum { SMALL_TURNS = 100, SMALL_COUNT = 50, SMALL_WRITES = 20, SMALL_REQUEST = 4096 };
enum { SMALL_THREADS = 3 };

typedef struct small_rank {
    uint32_t rank, nranks;
    crn_tables tables;
    crn_build build[SMALL_THREADS];
    uint64_t now;
    unsigned thread, nthreads; /* whose turn it is; that had one */
} small_rank;

/* What follows is done by this thread. */
static inline void small_turn(small_rank *x, unsigned thread)
{
    x->thread = thread;
    x->nthreads = CRN_MAX(x->nthreads, thread + 1);
}

/* An event after a microsecond of computing. */
static inline void small_add(small_rank *x, crn_record *r, uint32_t site, uint64_t took)
{
    if (site)
        assert_ok(crn_tables_site(&x->tables, (crn_site){.module = 1, .off = site}, &r->site));
    r->start = x->now + 1000;
    r->end = x->now = r->start + took;
    crn_build_add(&x->build[x->thread], r);
}

/* Values without lists, in the order of the call's columns. */
static inline void small_event_took(small_rank *x, uint32_t call, uint32_t site,
                                    const int64_t *value, uint64_t took)
{
    crn_record r = {.call = call, .comm_rank = x->rank, .comm_size = x->nranks};
    r.ncolumns = crn_call_row(call)->ncolumns;
    if (value)
        memcpy(r.value, value, (size_t)r.ncolumns * sizeof *value);
    small_add(x, &r, site, took);
}

static inline void small_event(small_rank *x, uint32_t call, uint32_t site, const int64_t *value)
{
    small_event_took(x, call, site, value, 500);
}

/* The same with the list of the call's column at. */
static inline void small_event_list(small_rank *x, uint32_t call, uint32_t site,
                                    const int64_t *value, int at, const int64_t *list, size_t n)
{
    crn_record r = {.call = call, .comm_rank = x->rank, .comm_size = x->nranks};
    r.ncolumns = crn_call_row(call)->ncolumns;
    memcpy(r.value, value, (size_t)r.ncolumns * sizeof *value);
    r.list[at] = (crn_list){list, n};
    small_add(x, &r, site, 500);
}

static inline void small_open(small_rank *x, const char *name, int64_t fd)
{
    crn_record r = {.call = CRN_CALL_open};
    int64_t number[CRN_NAME_NUMBERS];
    int n;
    assert_ok(crn_tables_pattern(&x->tables, name, number, &n, &r.name));
    r.value[0] = O_RDWR | O_CREAT;
    r.value[1] = 0600;
    r.value[2] = fd;
    memcpy(&r.value[3], number, (size_t)n * sizeof *number);
    r.ncolumns = 3 + n;
    small_add(x, &r, 0, 500);
}

/* Receive from the left, send to the right, wait, reduce: the classic ring. */
static inline void small_ring(small_rank *x, int64_t count)
{
    int64_t left = (x->rank + x->nranks - 1) % x->nranks, right = (x->rank + 1) % x->nranks;
    int64_t reqs[] = {0, 1};
    small_event(x, CRN_CALL_MPI_Irecv, 10, (int64_t[]){count, 0, left, 7, 0, 0});
    small_event(x, CRN_CALL_MPI_Isend, 11, (int64_t[]){count, 0, right, 7, 0, 1});
    small_event_list(x, CRN_CALL_MPI_Waitall, 12, (int64_t[]){0}, 0, reqs, 2);
}

/* Even and odd ranks part, and reduce among themselves. */
static inline void small_split(small_rank *x)
{
    int64_t world[64];
    size_t n = 0;
    for (uint32_t r = x->rank % 2; r < x->nranks; r += 2)
        world[n++] = r;
    small_event_list(x, CRN_CALL_MPI_Comm_split, 20, (int64_t[]){0, x->rank % 2, 0, 2, 0}, 4, world,
                     n);
    small_event(x, CRN_CALL_MPI_Bcast, 21, (int64_t[]){10, 0, 0, 2});
    small_event(x, CRN_CALL_MPI_Comm_free, 22, (int64_t[]){2});
}

static inline void small_write(small_rank *x)
{
    char name[64];
    snprintf(name, sizeof name, "out/field.%04u", x->rank);
    small_open(x, name, 3);
    for (int64_t i = 0; i < SMALL_WRITES; i++)
        small_event(x, CRN_CALL_pwrite, 31,
                    (int64_t[]){3, SMALL_REQUEST, i * SMALL_REQUEST, SMALL_REQUEST});
    small_event(x, CRN_CALL_close, 32, (int64_t[]){3});
}

static inline void small_program(small_rank *x)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int i = 0; i < SMALL_TURNS; i++) {
        small_ring(x, SMALL_COUNT);
        small_event(x, CRN_CALL_MPI_Allreduce, 13, (int64_t[]){0, 1, 0, CRN_OP_SUM, 0});
    }
    small_split(x);
    small_write(x);
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

/* The trace of one rank that does what program says. */
static inline crn_trace *small_record(uint32_t rank, uint32_t nranks, uint32_t precision,
                                      bool times, void (*program)(small_rank *x))
{
    small_rank x = {.rank = rank, .nranks = nranks, .nthreads = 1};
    crn_build *build[SMALL_THREADS];
    crn_trace *t;
    uint32_t number;
    assert_ok(crn_tables_init(&x.tables));
    assert_ok(crn_tables_string(&x.tables, "small", &number));
    assert_ok(crn_tables_string(&x.tables, "MPI_DOUBLE", &number));
    assert_ok(
        crn_tables_type(&x.tables, &(crn_type){.name = 2, .nbytes = 8, .extent = 8}, &number));
    for (int i = 0; i < SMALL_THREADS; i++) {
        build[i] = &x.build[i];
        assert_ok(crn_build_init(build[i], rank, precision, times));
    }
    program(&x);
    assert_ok(crn_build_trace(build, x.nthreads, &x.tables, rank, nranks, &t));
    t->program = 1;
    t->precision = precision;
    t->lasted = x.now;
    crn_tables_done(&x.tables);
    for (int i = 0; i < SMALL_THREADS; i++)
        crn_build_done(build[i]);
    return t;
}

/* All ranks merged. */
static inline crn_trace *small_merged(uint32_t nranks, uint32_t precision, bool times,
                                      void (*program)(small_rank *x))
{
    crn_trace *all = small_record(0, nranks, precision, times, program);
    for (uint32_t r = 1; r < nranks; r++)
        assert_ok(crn_trace_merge(all, small_record(r, nranks, precision, times, program)));
    assert_ok(crn_trace_finish(all));
    return all;
}

/* The same, into the file at path. */
static inline void small_trace(const char *path, uint32_t nranks, uint32_t precision, bool times,
                               void (*program)(small_rank *x))
{
    crn_trace *all = small_merged(nranks, precision, times, program);
    assert_ok(crn_trace_save(all, path));
    crn_trace_free(all);
}

#endif
