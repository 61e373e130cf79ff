/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A place for sessions: a scratch directory with a configuration file, shared by all ranks of a
 * test, and the way in which a program leaves whose run is to be resumed.
 */
#ifndef CAIRN_TESTS_HARNESS_SESSION_H
#define CAIRN_TESTS_HARNESS_SESSION_H

#include <signal.h>

#include "harness/mpi.h"

#include <cairn/cairn.h>

typedef struct place {
    crn_comm *comm;
    MPI_Comm mpi;
    int rank, nranks;
    char dir[64], config[96];
} place;

/* Each '@' stands for the scratch directory. */
static inline void write_settings(FILE *f, const char *settings, const char *dir)
{
    for (const char *s = settings; *s; s++) {
        if (*s == '@')
            fputs(dir, f);
        else
            fputc(*s, f);
    }
}

/* settings: further lines of the configuration, after the trail's. Collective. */
static inline void place_init(place *p, crn_comm *comm, const char *settings)
{
    memset(p, 0, sizeof *p);
    p->comm = comm;
    p->rank = crn_comm_rank(comm);
    p->nranks = crn_comm_size(comm);
    p->mpi = p->nranks > 1 ? MPI_COMM_WORLD : MPI_COMM_SELF;
    if (p->rank == 0)
        make_scratch(p->dir, sizeof p->dir, "session");
    assert_ok(crn_comm_bcast(comm, p->dir, sizeof p->dir, 0));
    snprintf(p->config, sizeof p->config, "%s/cairn.ini", p->dir);
    if (p->rank == 0) {
        FILE *f = fopen(p->config, "w");
        assert_non_null(f);
        write_settings(f, "[run]\ntrail = @/trail\n", p->dir);
        write_settings(f, settings, p->dir);
        fclose(f);
    }
    assert_ok(crn_comm_barrier(comm));
}

static inline void place_done(place *p)
{
    assert_ok(crn_comm_barrier(p->comm));
    if (p->rank == 0)
        remove_tree(p->dir);
}

/* Overwrite a value where it lies in a rank's part of a run in the trail. */
static inline void place_damage(const place *p, const char *run, int rank, double value)
{
    char path[200];
    unsigned char *data;
    snprintf(path, sizeof path, "%s/trail/%s/series-1/000/part-%06d", p->dir, run, rank);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const size_t n = (size_t)ftell(f);
    assert_ok(crn_alloc(&data, n));
    rewind(f);
    assert_int_equal(fread(data, 1, n, f), n);
    const unsigned char *at = memmem(data, n, &value, sizeof value);
    assert_non_null(at);
    assert_int_equal(fseek(f, (long)(at - data), SEEK_SET), 0);
    assert_int_equal(fwrite("damaged!", 1, sizeof value, f), sizeof value);
    fclose(f);
    free(data);
}

/* The call on c must fail with the code and a sentence that contains words. */
#define assert_refused(c, expr, code, words)                                                       \
    do {                                                                                           \
        int rc_ = (expr);                                                                          \
        if (rc_ != (code))                                                                         \
            fail_msg("%s: %s instead of %s (%s)", #expr, cairn_strerror(rc_),                      \
                     cairn_strerror(code), rc_ < 0 ? cairn_last_error(c) : "");                    \
        if (!strstr(cairn_last_error(c), (words)))                                                 \
            fail_msg("%s: '%s' does not say '%s'", #expr, cairn_last_error(c), (words));           \
    } while (0)

/* Leave a session as a program does that was told to stop: its run can be resumed. Regions may hold
 * it for three steps, in which a last mark could begin. */
static inline void leave_session(cairn *c)
{
    bool leaves = false;
    assert_int_equal(raise(SIGUSR1), 0);
    for (int step = 0; step < 4 && !leaves; step++)
        leaves = cairn_should_stop(c);
    assert_true(leaves);
    assert_ok(cairn_close(c));
}

#endif
