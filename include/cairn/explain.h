/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Why two runs part: what happened in another order between the last mark that agrees and the first
 * that does not. 'cairn explain' is made of these calls.
 *
 *     static void on_thread(void *arg, const cairn_deviation *d)
 *     {
 *         for (size_t i = 0; i < d->nmatches; i++)
 *             printf("rank %u, receive %llu: from rank %lld and from rank %lld\n", d->rank,
 *                    (unsigned long long)d->match[i].nth, (long long)d->match[i].source[0],
 *                    (long long)d->match[i].source[1]);
 *     }
 *     ...
 *     cairn_parting p = {.struct_bytes = sizeof p};
 *     cairn_explanation *x;
 *     if (cairn_explain("trail/run-1", "trail/run-2", NULL, &x) < 0)
 *         die(cairn_error_text());
 *     if (cairn_explain_parting(x, &p) == CAIRN_OK && p.differ)
 *         rc = cairn_explain_traces(x, "1.ctr", "2.ctr", on_thread, NULL, NULL);
 *     cairn_explain_close(x);
 *
 * struct_bytes of the structures is explained in <cairn/version.h>. Calls return CAIRN_ENOMEM
 * besides what is said.
 */
#ifndef CAIRN_EXPLAIN_H
#define CAIRN_EXPLAIN_H

#include <cairn/compare.h>
#include <cairn/error.h>
#include <cairn/traces.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_explanation cairn_explanation;

/*
 * Compare two runs, named as for cairn_compare, up to the first mark that both have and that
 * differs. Not collective.
 *   how  [in]  as for cairn_compare, but for all, row and arg; NULL: the defaults
 *   ret  [out] to be closed with cairn_explain_close
 * Returns what cairn_compare does.
 */
CAIRN_API CAIRN_CHECK int cairn_explain(const char *first, const char *second,
                                        const cairn_comparison_options *how,
                                        cairn_explanation **ret);
CAIRN_API void cairn_explain_close(cairn_explanation *x); /* NULL is allowed */

/* Where two runs part. */
typedef struct cairn_parting {
    size_t struct_bytes;
    bool differ;                /* there is a mark that both have and that differs */
    cairn_comparison_row first; /* the first row that does; else the first that is in doubt, if any
                                   (struct_bytes is 0: none). Strings live until the close */
    bool from_start;            /* no mark before it agrees for sure; else */
    uint64_t from;              /*   the last one that does, */
    uint64_t to;                /* and the one that differs */
    cairn_verdict verdict;      /* the gravest, of marks that both have */
    uint64_t nmarks;            /* that both have, up to there */
    uint64_t nalone;            /* that only one of them has, up to there */
} cairn_parting;

/* Not collective. CAIRN_EINVAL (struct_bytes). */
CAIRN_API CAIRN_CHECK int cairn_explain_parting(const cairn_explanation *x, cairn_parting *ret);

/* A wildcard receive that matched another sender, or another tag. */
typedef struct cairn_match {
    uint64_t nth;      /* of those of its thread between the marks, from 1 */
    const char *call;  /* that completed it */
    const char *site;  /* where */
    int64_t source[2]; /* in the first and in the second trace */
    int64_t tag[2];
} cairn_match;

/* What a thread of a rank did otherwise in the second trace. */
typedef struct cairn_deviation {
    uint32_t rank;
    int64_t thread[2];     /* -1: the trace has none for the other's */
    uint64_t nreceived[2]; /* messages that wildcard receives got */
    const cairn_match *match;
    size_t nmatches;
    bool parted; /* after ncommon receives the next ones are at other places */
    uint64_t ncommon;
    bool cut;            /* another thread took the second mark, after other numbers of receives */
    uint64_t ncut[2];    /* these, from the thread's start on */
    uint64_t nth_file;   /* the first file that is read in place of another, from 1; 0: none */
    const char *file[2]; /* these; NULL: there are no more files */
    bool same_files;     /* all in all the same ones are read, so their order differs */
} cairn_deviation;

/* The deviation and what it points to live during the call. */
typedef void cairn_deviation_fn(void *arg, const cairn_deviation *d);

/* What holds for all of it. */
typedef struct cairn_explain_remarks {
    size_t struct_bytes;
    bool rebuilt;       /* the programs were not built alike: places cannot be compared */
    uint64_t nnameless; /* reads of files whose names are not known */
} cairn_explain_remarks;

/*
 * Compare what two traces tell of the time between the marks, rank by rank. The runs must differ.
 *   fn       [in]  called for each thread that did something in another order
 *   remarks  [out] NULL: nobody asks
 * CAIRN_EINVAL (the runs do not differ), CAIRN_EUNSUPPORTED (a trace that is not lossless),
 * CAIRN_EMISMATCH (traces of different numbers of ranks, or without the marks), and what
 * cairn_trace_open and cairn_trace_walk return.
 */
CAIRN_API CAIRN_CHECK int cairn_explain_traces(const cairn_explanation *x, const char *first,
                                               const char *second, cairn_deviation_fn *fn,
                                               void *arg, cairn_explain_remarks *remarks);

#ifdef __cplusplus
}
#endif

#endif
