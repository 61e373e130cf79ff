/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing two runs of a program: do they agree within a bound and, if not, where do they first
 * part? Hash trees that were kept with the marks tell which blocks cannot differ; only the others
 * are read. 'cairn diff' and 'cairn gate' are made of these calls.
 *
 * Two numbers a and b differ when
 *
 *     |a - b| > max(absolute, relative * max(|a|, |b|))
 *
 * in double precision, integers exactly; an infinity is the same as itself only, +0 and -0 are the
 * same, and NaN is the same as NaN unless asked otherwise. Of complex numbers (structures of two
 * floating-point members called r and i, re and im, or real and imag) |x| is the modulus. Other
 * structures differ when a member does, and bytes when they do.
 *
 *     static int on_row(void *arg, const cairn_comparison_row *row)
 *     {
 *         if (row->verdict != CAIRN_SAME)
 *             printf("mark %" PRIu64 ", %s: %s\n", row->version, row->variable, row->text);
 *         return 0;
 *     }
 *     cairn_comparison_options how = {.struct_bytes = sizeof how, .bound = "1e-6", .row = on_row};
 *     cairn_comparison result = {.struct_bytes = sizeof result};
 *     int rc = cairn_compare(MPI_COMM_SELF, "trail/run-1", "trail/run-2", &how, &result);
 *
 * struct_bytes of the structures is explained in <cairn/version.h>.
 */
#ifndef CAIRN_COMPARE_H
#define CAIRN_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include <cairn/ckpt.h>
#include <cairn/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In ascending order of what a summary has to say. */
typedef enum cairn_verdict {
    CAIRN_SAME = 0,
    CAIRN_UNPROVEN = 1, /* trees do not prove it, and data to look at is gone: perhaps the same */
    CAIRN_INCONCLUSIVE = 2, /* could not tell: damaged, unreadable, or cannot be compared */
    CAIRN_ONLY_FIRST = 3,   /* the second run does not have it */
    CAIRN_ONLY_SECOND = 4,  /* the first run does not have it */
    CAIRN_DIFFERENT = 5
} cairn_verdict;

enum { CAIRN_VALUE_TEXT = 48, CAIRN_SLICES = 16 };

/* A variable of a mark, over all ranks; or a mark that is missing as a whole. */
typedef struct cairn_comparison_row {
    size_t struct_bytes;
    uint64_t version;
    const char *variable; /* NULL: the mark as a whole */
    const char *type;
    const char *bound; /* that was used, as text; "0" is exact */
    cairn_verdict verdict;
    const char *text;             /* a sentence, unless the same */
    uint32_t ndims;               /* of an index: of the global array, or 1 */
    uint64_t shape[8];            /* of the global array, or of the values of one rank */
    uint64_t nvalues, ndiffering; /* over all ranks; ndiffering of those that were read */
    double max, rms; /* of |a - b| over the finite values that differ; 0 for no numbers */
    bool placed; /* rank and index are known; without values that differ, of the first block that is
                    not proven equal */
    uint32_t rank;                /* of the first value that differs, in the first run, */
    uint64_t index[8];            /* where it is, */
    char first[CAIRN_VALUE_TEXT]; /* and both values */
    char second[CAIRN_VALUE_TEXT];
    uint64_t low[8], high[8]; /* the smallest box with all that differ, both ends included */
    uint32_t
        nslices; /* where they cluster: the first dimension longer than 1 is cut into so many */
    uint64_t slice[CAIRN_SLICES]; /* slices, alike but for the last, with so many that differ */
    uint64_t nblocks, nflagged;   /* of the first run; nflagged: that trees did not prove equal */
    uint64_t nfalse;              /* of the flagged ones that were read, those that do agree */
    uint64_t read_bytes;          /* of both runs */
    uint64_t nnonfinite; /* of those that differ, where one of the two is NaN or infinite: these are
                            not in max and rms */
} cairn_comparison_row;

/* What it means that a run does not have a mark that the other has. */
typedef enum cairn_marks {
    CAIRN_MARKS_AUTO = 0,   /* with cairn_gate CAIRN_MARKS_ALL, otherwise CAIRN_MARKS_COMMON */
    CAIRN_MARKS_COMMON = 1, /* nothing: it is told, and counted; but if no mark is common, the
                               verdict is CAIRN_INCONCLUSIVE */
    CAIRN_MARKS_ALL = 2     /* that they differ: CAIRN_ONLY_FIRST or CAIRN_ONLY_SECOND */
} cairn_marks;

typedef int cairn_comparison_row_fn(void *arg, const cairn_comparison_row *row);
typedef void cairn_comparison_progress_fn(void *arg, uint64_t done_bytes, uint64_t total_bytes);

typedef struct cairn_comparison_options {
    size_t struct_bytes;
    const char *bound;    /* "1e-6", "rel 1e-4", "1e-6 rel 1e-4"; with commas also others for some,
                             as "1e-6, field=0.1, atoms.x=rel 1e-9", the last of a structure's
                             member; NULL: the loosest that both runs were taken with, or exact */
    const char *variable; /* this one only; NULL: all */
    bool all;             /* all marks; otherwise up to the first one that is not the same */
    bool nan_differs;
    bool direct;                  /* read everything, trees or not */
    unsigned nthreads;            /* 0: as many as there are processors */
    cairn_comparison_row_fn *row; /* by rank 0, mark by mark; nonzero ends it; NULL: nobody */
    cairn_comparison_progress_fn *progress; /* likewise, by any thread, one at a time */
    void *arg;
    /* for cairn_compare_files: */
    const char *raw;       /* the files are values of this type, as "float64", and nothing else */
    uint32_t raw_ndims;    /* in an array of so many dimensions; 0: one, */
    uint64_t raw_shape[8]; /* and this shape */
    /* for runs: */
    cairn_marks marks;
    /* for cairn_compare_files again: */
    bool follow; /* of HDF5: follow links, and data, into other files */
    /* for all: */
    const char *exclude; /* leave out what has such a name, or lies below it: patterns as of
                            fnmatch(3), separated by commas; NULL: nothing */
} cairn_comparison_options;

typedef struct cairn_comparison {
    size_t struct_bytes;
    cairn_verdict verdict; /* the gravest of all rows that count: see cairn_marks */
    uint64_t nmarks;       /* that were compared */
    uint64_t nleft;        /* that both runs have and that were not, after the first that differs */
    uint64_t nbytes;       /* of state that was compared, of the first run */
    uint64_t tree_bytes;   /* of state of marks that trees were there for */
    uint64_t read_bytes;   /* of state that was read, of both runs */
    cairn_comparison_row first; /* the first row that differs, if one does; strings live until the
                                   next call of the thread */
    uint64_t nskipped;     /* what was left out by its name; of runs in the mark with most of it */
    uint64_t nonly_first;  /* marks that the second run does not have, as far as was looked, */
    uint64_t nonly_second; /* and that the first one does not have */
    /* of a golden file: */
    uint64_t nsketched;    /* marks with a sketch, of those that were compared */
    uint64_t sketch_bytes; /* all of it */
    uint64_t nproven;      /* blocks that trees did not prove equal, and the sketch did */
} cairn_comparison;

/*
 * Compare two runs, given as TRAIL/RUN. Collective; the ranks share the work, any number of them;
 * MPI_COMM_SELF also without MPI_Init. The result is the same on all ranks.
 * CAIRN_OK: compared, and the verdict is in *ret. CAIRN_NOTHING: row ended it. CAIRN_ENOTFOUND (no
 * such trail or run, or variable in any mark), CAIRN_EINVAL (bound), CAIRN_EIO, CAIRN_ENOMEM,
 * CAIRN_EPEER; CAIRN_ECORRUPT and CAIRN_EUNSUPPORTED for a run of which nothing can be read.
 */
CAIRN_API CAIRN_CHECK int cairn_compare(MPI_Comm comm, const char *first, const char *second,
                                        const cairn_comparison_options *how, cairn_comparison *ret);

/*
 * The same for two files that other programs wrote: HDF5 files, all datasets and attributes of
 * groups and datasets, of numbers, structures, texts and whatever else; or, with how->raw, raw
 * values. Rows have the path of the dataset as variable ("values" for raw ones), of an attribute
 * that of its owner, a slash, '@' and its name, and version and rank 0. What could not be compared
 * is CAIRN_INCONCLUSIVE, unless how->exclude names it. In files that Cairn itself has exported,
 * attributes that say where they come from (cairn, run, version, time, date, nranks) are left out.
 * All is read, in parallel as far as HDF5 is not needed for that (contiguous datasets of the
 * machine's own types). CAIRN_ENOTFOUND also when there is nothing to compare; CAIRN_EIO for what
 * is no HDF5 file; CAIRN_EUNSUPPORTED without HDF5.
 */
CAIRN_API CAIRN_CHECK int cairn_compare_files(MPI_Comm comm, const char *first, const char *second,
                                              const cairn_comparison_options *how,
                                              cairn_comparison *ret);

/*
 * A golden file has the trees of a run and, where its data is still there, a sketch of every block
 * of floating-point values: it tells how to round another run's values so that noise does not
 * matter. docs/guide/compare.md says what each kind costs and promises.
 */
typedef enum cairn_sketch {
    CAIRN_SKETCH_BYTES = 0, /* one byte for 64 values: for noise below a hundredth of the bound */
    CAIRN_SKETCH_BITS = 1,  /* one bit for each value: for noise below an eighth of it or more */
    CAIRN_SKETCH_NONE = 2   /* trees alone */
} cairn_sketch;

typedef struct cairn_bless_options {
    size_t struct_bytes;
    cairn_sketch sketch;
} cairn_bless_options;

/* What a golden file has become. */
typedef struct cairn_bless_result {
    size_t struct_bytes;
    uint64_t nmarks, nsketched; /* marks; of these, with a sketch */
    uint64_t nbytes;            /* of state that they stand for */
    uint64_t file_bytes, sketch_bytes;
    uint64_t nlossy; /* pieces of variables in marks that a codec may have changed: these have no
                        sketch, and are proven equal by their trees alone; */
    uint64_t nloose; /* of these, with a loss above a bound that runs are to be compared with */
} cairn_bless_result;

/*
 * Make a golden file of a run, small enough to be kept beside a program's sources. Replaces a file
 * of that name. Marks whose data is gone have no sketch. Not collective. CAIRN_ENOTFOUND (no such
 * run, or a mark without trees), CAIRN_ECORRUPT, CAIRN_EIO, CAIRN_ENOSPC, CAIRN_ENOMEM,
 * CAIRN_EINVAL (too large for a golden file). how  NULL: the defaults ret  [out] NULL is allowed
 */
CAIRN_API CAIRN_CHECK int cairn_bless_as(const char *run, const char *golden,
                                         const cairn_bless_options *how, cairn_bless_result *ret);

/* The same with the defaults. */
CAIRN_API CAIRN_CHECK int cairn_bless(const char *run, const char *golden);

/*
 * Compare a run with a golden file, which comes first. Its trees prove what is equal, and its
 * sketch does where these do not, for which the run's blocks are read. What neither proves is
 * CAIRN_UNPROVEN, unless it is proven to differ: integers and bytes of other digests; and
 * floating-point values by their number of NaNs and infinities, extremes and sums. Collective, and
 * otherwise as cairn_compare.
 */
CAIRN_API CAIRN_CHECK int cairn_gate(MPI_Comm comm, const char *golden, const char *run,
                                     const cairn_comparison_options *how, cairn_comparison *ret);

/* --- while a run goes on ---------------------------------------------------------------------
 *
 * A run may name another, or a golden file, as its reference (compare.reference in its
 * configuration). Each mark is then compared with the reference's of the same version as it is
 * taken, in the background: by trees, and by values where these do not prove it, within the loosest
 * bound that this run has for a variable. What both runs do not have, and what cannot be told, the
 * event log says; only values, types or sizes that differ are a divergence. After the first one
 * nothing is compared any more.
 */

/*
 * Take a mark for comparing only: hash trees of all protected variables, and nothing that the
 * program could come back to. Much smaller than a mark (about a thousandth of the state), it can be
 * taken much more often. 'cairn diff' and 'cairn gate' see it as a mark whose data is gone: they
 * find the first one that differs, the block and the bound, but no values. Collective; versions
 * grow as those of cairn_mark, and the next mark may have the same version. The state is copied
 * before the call returns, as far as mark.staging allows, and digested in the background. CAIRN_OK:
 * taken, so far. CAIRN_NOTHING: there is a mark of that version already; compare.trees is off; or
 * the mark before is not finished and the configuration says so. Negative: as cairn_mark.
 */
CAIRN_API int cairn_mark_trees(cairn *c, uint64_t version);

/* Where this run and its reference part. */
typedef struct cairn_divergence {
    size_t struct_bytes;
    uint64_t version;   /* of the mark, */
    uint32_t rank;      /* this run's, that has the value, */
    char variable[256]; /* whose it is, */
    uint32_t ndims;     /* and its index, which has so many numbers; 0: no value differs, but */
    uint64_t index[8];  /* type or size; */
    char here[CAIRN_VALUE_TEXT];  /* the value, */
    char there[CAIRN_VALUE_TEXT]; /* and the reference's */
    char text[1024];              /* all of that in a sentence */
} cairn_divergence;

/*
 * Has a mark of this run been found to differ from its reference? Collective: the same answer
 * everywhere. It becomes true some time after the mark was taken; once cairn_settle has returned,
 * all marks before have been compared. With compare.stop, cairn_should_stop becomes true, too.
 *   ret  [out] where, if so; NULL is allowed
 */
CAIRN_API bool cairn_diverged(cairn *c, cairn_divergence *ret);

#ifdef __cplusplus
}
#endif
#endif
