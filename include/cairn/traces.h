/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Traces: what a run did to the network and the storage, recorded by libcairn-trace ('cairn trace
 * record'), kept folded: loops of events shared by ranks. Everything here works on the folded form:
 * a loop of a million sends is looked at once, with a repeat count. 'cairn trace' is made of these
 * calls.
 *
 *     static int on_event(void *arg, const cairn_trace_event *e)
 *     {
 *         if (strcmp(e->layer, "coll") == 0)
 *             *(uint64_t *)arg += e->repeat;
 *         return 0;
 *     }
 *     ...
 *     cairn_trace *t;
 *     uint64_t ncollectives = 0;
 *     if (cairn_trace_open("run.ctr", &t) < 0)
 *         die(cairn_error_text());
 *     if (cairn_trace_visit(t, 0, on_event, &ncollectives) < 0) ...
 *     cairn_trace_close(t);
 *
 * Which call to choose: cairn_trace_sum for counts, bytes and times by anything; cairn_trace_visit
 * for an analysis of your own that needs no order, cairn_trace_walk for one that does;
 * cairn_trace_contrasts for ranks that are slower than others;
 * cairn_trace_outline for the structure; cairn_trace_replay to do it all again without the program.
 *
 * A callback that returns something other than 0 ends the call, which then returns CAIRN_NOTHING.
 * struct_bytes of the structures is explained in <cairn/version.h>. Names of calls, layers and
 * kinds live for ever, strings of rows and gaps as long as the trace, everything else during the
 * callback. Calls return CAIRN_ENOMEM besides what is said.
 */
#ifndef CAIRN_TRACES_H
#define CAIRN_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_trace cairn_trace;

/*
 * Read the trace at path; where there is none, what the ranks of a run that was killed have left
 * beside it, as an incomplete trace. Not collective. CAIRN_ENOTFOUND, CAIRN_EIO, CAIRN_ECORRUPT
 * (damaged), CAIRN_EUNSUPPORTED (of a newer format).
 */
CAIRN_API CAIRN_CHECK int cairn_trace_open(const char *path, cairn_trace **ret);
CAIRN_API void cairn_trace_close(cairn_trace *t); /* NULL is allowed */

typedef struct cairn_trace_info {
    size_t struct_bytes;
    const char *program;       /* stays until the trace is closed */
    const char *incomplete;    /* what is not in the trace, as a phrase; NULL when all is */
    uint32_t nranks, nthreads; /* nthreads: of the rank that has most */
    uint32_t precision;        /* per cent; 100: nothing was lost but times */
    bool times;                /* were they recorded? */
    uint64_t began_ns;         /* since 1970 */
    uint64_t lasted_ns;        /* of the longest rank */
    uint64_t nevents;  /* over all ranks; expected ones where loops are known by distribution */
    uint64_t ndropped; /* events that were not kept */
    size_t nplaces, nloops; /* that the trace is made of */
    bool limited;           /* are only some ranks looked at? */
    uint64_t nall_threads;  /* over all ranks that are looked at (cairn_trace_limit) */
} cairn_trace_info;

/* Describe the trace. Not collective. CAIRN_EINVAL (struct_bytes). */
CAIRN_API CAIRN_CHECK int cairn_trace_describe(cairn_trace *t, cairn_trace_info *info);

/*
 * The call stack of a site as "module+0x1f3c < module+0x20aa", innermost first; "?" for an unknown
 * one, NULL without memory. Stays until the trace is closed. Not collective.
 */
CAIRN_API const char *cairn_trace_stack(cairn_trace *t, uint32_t site);

/*
 * The same in a buffer of the caller: callers that do not fit are left out, and "..." stands for
 * them. Returns buf. Not collective.
 */
CAIRN_API char *cairn_trace_site(const cairn_trace *t, uint32_t site, char *buf, size_t cap);

/*
 * Name call sites by functions, files and lines from now on, in all that follows: "exchange
 * (halo.c:132) < main (heat2d.c:77)". Debugging information is read from the very programs and
 * libraries that ran, known by their build ids: in the directories of search (separated by colons;
 * NULL: none), where they lay, and in separate debug files. Where there is none, sites stay
 * addresses. Not collective. CAIRN_EUNSUPPORTED: there is no libdw.
 */
CAIRN_API CAIRN_CHECK int cairn_trace_lines(cairn_trace *t, const char *search);

/* Why sites that were asked for stayed addresses, a line for each module; NULL: none did. Stays
 * until the next site is asked for. Not collective. */
CAIRN_API const char *cairn_trace_unnamed(cairn_trace *t);

/*
 * Look at these events only, in all that follows but replays: terms separated by blanks, all of
 * which must hold, such as "rank=0-3,7 call=MPI_*send site=exchange comm!=0 file=*.h5 layer=p2p
 * thread=0". Patterns are those of file names in the shell; of a site a part of its stack is
 * enough. NULL: all events again. Sites are limited by as much as is known of them
 * (cairn_trace_lines). Not collective. CAIRN_EINVAL.
 */
CAIRN_API CAIRN_CHECK int cairn_trace_limit(cairn_trace *t, const char *where);

/* One message of an event. */
typedef struct cairn_trace_message {
    bool sent;       /* by the rank; else it is to be received */
    int64_t peer;    /* rank of the world; -1: any, -2: MPI_PROC_NULL, below: not known */
    uint64_t nbytes; /* of a receive: room */
    int64_t nbytes_step;
    int64_t tag;   /* -1: any */
    uint64_t comm; /* the same for all ranks of its communicator; 0: not known */
} cairn_trace_message;

/* One parameter. */
typedef struct cairn_trace_value {
    const char *kind; /* "count", "tag", ...: docs/format/trace.md lists them */
    int64_t value, step;
    const int64_t *list; /* for kinds that are lists; else NULL */
    size_t nlist;
    bool drawn; /* known by distribution only: the mean, or in a walk a number drawn from it */
} cairn_trace_value;

/*
 * Equal events of one rank: 'repeat' of them, which differ at most in numbers that grow by a step
 * from one to the next.
 */
typedef struct cairn_trace_event {
    size_t struct_bytes;
    uint32_t rank, thread;
    uint32_t place;     /* number of the call at its call site, within the thread */
    uint32_t site;      /* for cairn_trace_site */
    const char *call;   /* "MPI_Send", "pwrite", ... */
    const char *layer;  /* note env p2p wait coll comm rma mpiio posix */
    const char *within; /* the call that made this one; NULL: the program itself */
    const char *file;   /* its name in a walk, else with % for numbers; NULL if none or not known */
    uint64_t repeat;
    uint64_t nbytes; /* that the first one moved or sent; of a collective: that its send buffer has
                        for all, or, in a broadcast and a scatter, that it gets */
    int64_t nbytes_step;
    size_t nmessages;
    const cairn_trace_message *message;
    size_t nvalues;
    const cairn_trace_value *value;
    double seconds; /* mean of one call of the place, over the ranks like this; 0 without times */
    double seconds_min, seconds_max; /* of all ranks; of the ranks like this */
    double gap; /* walk only: seconds between the event before and this one, expected */
} cairn_trace_event;

typedef int cairn_trace_event_fn(void *arg, const cairn_trace_event *e);

/*
 * All events of a rank, in no order, with repeat counts. Not collective. CAIRN_EINVAL (no such
 * rank). Goes through single events only where handles would be mistaken for each other otherwise.
 */
CAIRN_API CAIRN_CHECK int cairn_trace_visit(cairn_trace *t, uint32_t rank, cairn_trace_event_fn *fn,
                                            void *arg);

/*
 * All events of one thread of a rank, in order, one by one. What is known by distribution only is
 * drawn: the same every time. Not collective. CAIRN_EINVAL; CAIRN_NOTHING if the rank has no such
 * thread.
 */
CAIRN_API CAIRN_CHECK int cairn_trace_walk(cairn_trace *t, uint32_t rank, uint32_t thread,
                                           cairn_trace_event_fn *fn, void *arg);

/* A message that leaves the rank in an event, or has arrived when the event ends. */
typedef struct cairn_trace_flow {
    bool leaves;
    uint64_t id; /* the same at both ends, and of no other message */
} cairn_trace_flow;

/* An event in the expected course of the whole run. */
typedef struct cairn_trace_moment {
    size_t struct_bytes;
    const cairn_trace_event *event; /* as in a walk */
    double start, seconds; /* since the start of the run; of means, which are no single event's */
    const cairn_trace_flow *flow;
    size_t nflows; /* 0 in traces that are lossy or incomplete or have several threads */
} cairn_trace_moment;

typedef int cairn_trace_moment_fn(void *arg, const cairn_trace_moment *m);

/*
 * All events of all ranks and threads, rank by rank, each in order, at the times that are expected
 * from means, on one clock: collectives of all ranks end at the same time on all of them. Not
 * collective. What is drawn is as in cairn_trace_walk.
 */
CAIRN_API CAIRN_CHECK int cairn_trace_timeline(cairn_trace *t, cairn_trace_moment_fn *fn,
                                               void *arg);

/* A piece of the structure: a loop or a place. */
typedef struct cairn_trace_piece {
    size_t struct_bytes;
    uint32_t thread;
    uint32_t depth;   /* in loops; 0 for the outermost pieces */
    uint32_t number;  /* of the loop or place, within the thread */
    bool shown;       /* a loop that was already shown with this number: its body is left out */
    const char *call; /* NULL: a loop */
    const char *layer, *within, *file; /* of a place */
    uint32_t site;
    const char *ranks; /* that take part: "0-3,8"; of many ranges the first 16, and ",..." */
    uint32_t nranks;
    uint64_t met;       /* times that it is come to, over all ranks */
    uint64_t total;     /* turns of a loop or events of a place, over all ranks */
    const char *values; /* parameters of a place: "count=100 peer=+1 tag=7" */
    double seconds;     /* mean time of a call; 0 without */
} cairn_trace_piece;

typedef int cairn_trace_piece_fn(void *arg, const cairn_trace_piece *p);

/* The structure, outside in, in order. Not collective. */
CAIRN_API CAIRN_CHECK int cairn_trace_outline(cairn_trace *t, cairn_trace_piece_fn *fn, void *arg);

/* What rows of a sum stand for: any of these together. */
enum {
    CAIRN_TRACE_BY_LAYER = 1,
    CAIRN_TRACE_BY_CALL = 2, /* and the call within which it was made */
    CAIRN_TRACE_BY_SITE = 4,
    CAIRN_TRACE_BY_RANK = 8,
    CAIRN_TRACE_BY_PEER = 16, /* sent messages only: events are messages, nbytes theirs */
    CAIRN_TRACE_BY_FILE = 32, /* events on files only */
    CAIRN_TRACE_BY_SIZE = 64, /* power of two below nbytes of one event */
    CAIRN_TRACE_OWN = 128     /* with the calls that libcairn.so makes for itself */
};

typedef struct cairn_trace_row {
    size_t struct_bytes;
    /* what it was asked by; other members are NULL or 0 */
    const char *layer, *call, *within, *file;
    uint32_t site, rank;
    int64_t peer;
    uint64_t size;
    /* sums */
    uint64_t nevents, nbytes;
    uint64_t nsteps;       /* steps between neighbouring accesses of files, where they are known: */
    uint64_t nconsecutive; /*   those that go on where the one before ended */
    uint64_t nstrided;     /*   those by a constant other distance */
    bool expected;         /* some values are known by distribution only */
    double seconds;        /* in calls; by rank: of the ranks like it, by peer: shared out */
    double waited;      /* of these, above the shortest call of the place: an estimate of waiting */
    double seconds_max; /* of one call */
    uint32_t shortest_rank, longest_rank; /* whose calls were shortest and longest: on average where
                                             ranks differ, else of one call */
    bool unmodelled; /* by call: recorded, but no replay knows it, so that it refuses the trace */
} cairn_trace_row;

typedef int cairn_trace_row_fn(void *arg, const cairn_trace_row *row);

/*
 * Sums over all ranks and threads, by any of the above (0: one row for all), in the order of their
 * keys. Calls of the Cairn library are left out unless CAIRN_TRACE_OWN is given. Not collective.
 */
CAIRN_API CAIRN_CHECK int cairn_trace_sum(cairn_trace *t, unsigned by, cairn_trace_row_fn *fn,
                                          void *arg);

/* What the program did between two calls: it computed. Over all ranks. */
typedef struct cairn_trace_gap {
    size_t struct_bytes;
    uint32_t thread;
    const char *from, *to; /* calls; from NULL: the start */
    uint32_t from_site, to_site;
    uint64_t n;
    double seconds, seconds_min, seconds_max, deviation; /* of one: mean, extremes, standard */
    uint32_t shortest_rank, longest_rank;
} cairn_trace_gap;

typedef int cairn_trace_gap_fn(void *arg, const cairn_trace_gap *g);

/* All of them, in the order of the places. Not collective. Nothing without times. */
CAIRN_API CAIRN_CHECK int cairn_trace_gaps(cairn_trace *t, cairn_trace_gap_fn *fn, void *arg);

/*
 * Ranks that differ from most in what they compute between two calls, or in a call on files, by
 * more than the noise of their own repetitions: by a tenth at least, and by a thousandth of the run
 * over all repetitions.
 */
typedef struct cairn_trace_contrast {
    size_t struct_bytes;
    uint32_t thread;
    const char *from, *to; /* computing between these calls, from NULL: the start; or the call to,
                              on files, if from is "" */
    uint32_t from_site, to_site;
    uint32_t nranks;      /* that differ, */
    const uint32_t *rank; /* ascending, */
    const char *ranks;    /* and as text: "2", "4-7" */
    uint64_t n;           /* repetitions of one of these ranks, on average */
    double seconds;       /* mean of one repetition, of these ranks, */
    double others;        /* and of most ranks */
    double ratio;         /* of the two, without the shortest and the longest tenths */
    double more;          /* seconds of one rank in the whole run; below 0: these are faster */
    double
        confidence; /* that this is no noise, all tests of the trace considered, 0 to 1; 0 where
                       there are fewer than five repetitions, so that nothing is known of noise */
} cairn_trace_contrast;

typedef int cairn_trace_contrast_fn(void *arg, const cairn_trace_contrast *c);

/* All of them, by thread and place. Not collective. Nothing without times, or of balanced runs. */
CAIRN_API CAIRN_CHECK int cairn_trace_contrasts(cairn_trace *t, cairn_trace_contrast_fn *fn,
                                                void *arg);

typedef struct cairn_replay_options {
    size_t struct_bytes;
    double speed;        /* 0: 1; recorded computing times are divided by it */
    bool no_delay;       /* do not compute at all */
    bool no_io;          /* leave files alone */
    const char *scratch; /* files go to a new directory here, removed at the end; NULL: "." */
    bool keep;           /* do not remove it */
    uint64_t seed;       /* of payloads and of what is drawn */
    double patience;     /* 0: 60; seconds without progress after which stuck is called */
    void (*stuck)(void *arg, const char *state); /* by another thread, once; state: many lines */
    void *arg;
} cairn_replay_options;

typedef struct cairn_replay_result {
    size_t struct_bytes;
    int rank, size;    /* of this process; set also when the call fails */
    double seconds;    /* from the first event to the last, of the slowest rank */
    double recorded;   /* the same in the trace */
    uint64_t nevents;  /* reissued, over all ranks */
    uint64_t nskipped; /* that cannot be reissued: collectives of other threads, calls on
                          communicators and windows that no recorded call has made, ... */
    uint64_t nlate;    /* blocking sends and waits that took too long, and were gone on from */
    uint64_t sent_bytes, read_bytes, written_bytes;
    uint64_t nskipped_threads; /* of nskipped: by threads that did not initialise MPI */
} cairn_replay_result;

/*
 * Do what the trace says, with random payloads of the recorded sizes, on MPI_COMM_WORLD; MPI is
 * initialised, and at the end finalised, unless the program has done so. Collective. All ranks
 * return the same. CAIRN_EMISMATCH: other number of ranks; CAIRN_EUNSUPPORTED: the trace is
 * incomplete, so that its replay would not end; CAIRN_EIO: scratch; CAIRN_EINVAL; CAIRN_EINTERNAL:
 * MPI failed.
 */
CAIRN_API CAIRN_CHECK int cairn_trace_replay(cairn_trace *t, const cairn_replay_options *options,
                                             cairn_replay_result *result);

#ifdef __cplusplus
}
#endif
#endif
