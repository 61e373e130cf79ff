/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking into a trail: which runs it has, which marks count, what is in them, and whether all of
 * it still is what was written. Nothing here changes a trail, and a trail may be read while a
 * program writes to it. One process, no MPI; 'cairn ls', 'show' and 'verify' are made of these
 * calls.
 *
 *     cairn_trail *t;
 *     if (cairn_trail_open("trail", &t) < 0)
 *         die(cairn_error_text());
 *     for (size_t r = 0; r < cairn_trail_nruns(t); r++) {
 *         cairn_run_info run = {.struct_bytes = sizeof run};
 *         if (cairn_trail_run(t, r, &run) == CAIRN_OK)
 *             printf("%s: %zu marks\n", run.name, run.nmarks);
 *     }
 *     cairn_trail_close(t);
 *
 * struct_bytes of the structures is explained in <cairn/version.h>. Strings in them belong to the
 * trail and stay until the next call on it.
 */
#ifndef CAIRN_TRAIL_H
#define CAIRN_TRAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_trail cairn_trail;

/*
 * Open the trail at path and read the manifests of its runs. Not collective.
 * Returns CAIRN_OK; CAIRN_ENOTFOUND (no such directory, or not a trail), CAIRN_EIO, CAIRN_ENOMEM.
 * A run whose manifest cannot be read or rebuilt does not fail the call: see cairn_trail_run.
 */
CAIRN_API CAIRN_CHECK int cairn_trail_open(const char *path, cairn_trail **ret);

/* Close a trail; NULL is allowed. */
CAIRN_API void cairn_trail_close(cairn_trail *t);

/* The number of runs, which are sorted by name as people count. Never fails. */
CAIRN_API size_t cairn_trail_nruns(const cairn_trail *t);

/* The number of the run called name. CAIRN_ENOTFOUND. */
CAIRN_API CAIRN_CHECK int cairn_trail_find_run(const cairn_trail *t, const char *name, size_t *ret);

typedef struct cairn_run_info {
    size_t struct_bytes;
    const char *name;
    char id[33];         /* of the run, hexadecimal: every part file carries it */
    uint64_t created_ns; /* since 1970 */
    size_t nmarks;       /* that count, oldest first */
    bool rebuilt;        /* the manifest was lost or damaged, and was derived from the part files */
    bool finished;       /* the program came to its end: nothing is left to resume */
} cairn_run_info;

/*
 * Describe run number run. CAIRN_EINVAL (no such number), CAIRN_ECORRUPT or CAIRN_EUNSUPPORTED (its
 * manifest cannot be read and not be rebuilt, or is of a newer format; info->name is set all the
 * same).
 */
CAIRN_API CAIRN_CHECK int cairn_trail_run(cairn_trail *t, size_t run, cairn_run_info *info);

/* Called with one line of the log, without its end. Nonzero ends the reading. */
typedef int cairn_event_fn(void *arg, const char *line);

/*
 * Tell fn what happened to a run, oldest event first: lines of JSON, as docs/format/events.md says.
 * A line that a crash has cut is no JSON, and to be left out. CAIRN_OK (also when there is no log),
 * CAIRN_NOTHING (fn ended it), CAIRN_EINVAL, CAIRN_EIO, CAIRN_ENOMEM, and as cairn_trail_run.
 */
CAIRN_API CAIRN_CHECK int cairn_trail_events(cairn_trail *t, size_t run, cairn_event_fn *fn,
                                             void *arg);

/*
 * When the program that writes a run, or wrote it last, gave its last sign of life, in nanoseconds
 * since 1970 by the clock of the file system: a mark, a call of cairn_due, cairn_should_stop or any
 * other collective call, told at most once a second. For watching a program from outside: a time
 * that does not change any more is one that hangs. The trail need not be open, nor exist yet. Not
 * collective. CAIRN_ENOTFOUND: no trail, run or sign at all; CAIRN_EINVAL, CAIRN_EIO, CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_trail_pulse(const char *path, const char *run, uint64_t *ret_ns);

typedef struct cairn_mark_info {
    size_t struct_bytes;
    uint64_t version; /* the application's number */
    uint64_t wall_ns; /* when it was committed, since 1970 */
    uint64_t nbytes;  /* of state, over all ranks */
    uint32_t nranks;  /* that wrote it */
    uint32_t levels;  /* bit 0 local, 1 partner, 2 encoded, 3 global (in the trail itself) */
} cairn_mark_info;

/* Describe the mark-th mark of a run, oldest first. CAIRN_EINVAL. */
CAIRN_API CAIRN_CHECK int cairn_trail_mark(cairn_trail *t, size_t run, size_t mark,
                                           cairn_mark_info *info);

typedef struct cairn_part_info {
    size_t struct_bytes;
    uint64_t file_bytes; /* length of the rank's part file */
    size_t nmarks;       /* that the part retains */
    size_t nvars;        /* of the mark asked for */
    bool fallback;       /* the newest superblock was damaged and the one before it was used */
} cairn_part_info;

/*
 * Describe one rank's part and its share of a mark. CAIRN_EINVAL, CAIRN_ENOTFOUND (no such part or
 * mark in it), CAIRN_ECORRUPT, CAIRN_EMISMATCH (the file belongs elsewhere), CAIRN_EUNSUPPORTED.
 */
CAIRN_API CAIRN_CHECK int cairn_trail_part(cairn_trail *t, size_t run, size_t mark, uint32_t rank,
                                           cairn_part_info *info);

typedef struct cairn_variable_info {
    size_t struct_bytes;
    const char *name;
    const char *type;       /* as text, such as "float64" */
    const char *attributes; /* "key=value" lines; empty when there are none */
    uint32_t item_bytes;    /* of one element */
    uint32_t block_bytes;
    uint64_t nbytes; /* of this rank's piece */
    uint64_t nblocks;
    uint64_t nchanged; /* blocks that the mark wrote, the others being shared with earlier ones */
    uint64_t stored_bytes; /* bytes that those took */
    uint32_t ndims;        /* of the global array; 0: it is not part of one */
    uint64_t global[8], offset[8], count[8];
    char root[33]; /* digest of the tree over all blocks, hexadecimal: equal data, equal root */
    uint64_t whole_bytes; /* of what the program had, */
    uint64_t kept_bytes;  /* and of that, which the mark has: the rest was left out of it */
    uint64_t table_bytes; /* of the table of its blocks in the part file */
} cairn_variable_info;

/* Describe variable number var of a rank's share of a mark. As cairn_trail_part. */
CAIRN_API CAIRN_CHECK int cairn_trail_variable(cairn_trail *t, size_t run, size_t mark,
                                               uint32_t rank, size_t var,
                                               cairn_variable_info *info);

#define CAIRN_BLOCK_SIZES 9

/* What marks of a variable write, by the size of its blocks. */
typedef struct cairn_block_choice {
    size_t struct_bytes;
    size_t nmarks;        /* that were compared, each with the one before */
    uint64_t nbytes;      /* of the rank's piece */
    uint32_t block_bytes; /* that the newest mark has, */
    uint32_t best_bytes; /* and that a session would go on with by the option variable.block=auto */
    uint64_t written[CAIRN_BLOCK_SIZES]; /* bytes of a mark in blocks of 1 KiB, 2 KiB, ... 256 KiB,
                                            with the table of blocks */
} cairn_block_choice;

/*
 * Look at a rank's piece of a variable in the newest marks of a run, up to three that lie in the
 * trail: what would they have written in blocks of other sizes? Up to 4 MiB of each mark are read.
 * CAIRN_NOTHING: there are no two marks in which it has the same size. As cairn_trail_part.
 */
CAIRN_API CAIRN_CHECK int cairn_trail_blocks(cairn_trail *t, size_t run, uint32_t rank,
                                             const char *name, cairn_block_choice *ret);

/*
 * Read a rank's piece of a variable, verified, into dst of exactly nbytes bytes.
 * As cairn_trail_part, and CAIRN_EMISMATCH when the piece has another size. After another failure
 * dst may have been written to.
 */
CAIRN_API CAIRN_CHECK int cairn_trail_read(cairn_trail *t, size_t run, size_t mark, uint32_t rank,
                                           const char *name, void *dst, size_t nbytes);

/* What cairn_trail_verify found or did; strings live during the call only. */
typedef struct cairn_finding {
    size_t struct_bytes;
    int status;       /* CAIRN_OK: progress only; CAIRN_EIO: could not be read; else damage */
    const char *text; /* a sentence */
    uint64_t version; /* of the mark; UINT64_MAX: a file of many marks */
    uint32_t rank;
    const char *variable;             /* NULL: the file or the mark as a whole */
    uint64_t block;                   /* of the variable; UINT64_MAX: all of it */
    uint64_t done_bytes, total_bytes; /* of state checked so far, and in all */
} cairn_finding;

/* Called for every damage, for what could not be read, and from time to time for progress. Nonzero
 * ends the verification. */
typedef int cairn_finding_fn(void *arg, const cairn_finding *finding);

/*
 * Read every block of a mark (mark = CAIRN_ALL_MARKS: of every mark that the trail itself holds)
 * and compare it with its digest; with all marks also their trees, and whether those of marks for
 * comparing only are there. A mark that is dropped meanwhile is passed over. CAIRN_OK: all is
 * well; CAIRN_ECORRUPT: damage was reported; CAIRN_EIO: none, but something could not be read;
 * CAIRN_EINVAL, CAIRN_ENOMEM: could not tell; CAIRN_NOTHING: fn ended it.
 */
#define CAIRN_ALL_MARKS SIZE_MAX
CAIRN_API CAIRN_CHECK int cairn_trail_verify(cairn_trail *t, size_t run, size_t mark,
                                             cairn_finding_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif
#endif
