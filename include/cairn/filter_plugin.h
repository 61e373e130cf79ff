/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A filter of your own, in a shared object, for those that Cairn does not have. Build one that
 * exports a table called cairn_filter, and name its file in a study:
 *
 *     [filter]
 *     name = ./libmine.so
 *     local = yes
 *
 * share/doc/Cairn/filter/ has a template (the ETKF in 40 lines). It links nothing of Cairn.
 * "cairn ensemble filters ./libmine.so" runs it through the tests that Cairn's own filters pass.
 *
 * A filter sees the ensemble in the space of the observations alone, and answers with weights: how
 * each member of the analysis is combined of the background's anomalies. All else is done for it:
 * quality control, correlated errors (they arrive here independent), local analyses with tapered
 * errors, inflation, relaxation, rotation, any layout of the state.
 */
#ifndef CAIRN_FILTER_PLUGIN_H
#define CAIRN_FILTER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_FILTER_VERSION 1 /* of the table */

/*
 * An ensemble as its observations see it; matrices are column by column. With S and d below, N
 * members and sample covariances by N - 1, the Kalman filter's mean has the weights
 * (S^T S + (N - 1) I)^-1 S^T d. All memory is the caller's and is not to be changed.
 */
typedef struct cairn_filter_case {
    size_t struct_bytes;
    size_t nmembers, nobs;    /* N, from 2 on; p, which may be 0 */
    const double *anomaly;    /* S: p by N, what member j shows of observation i less the mean over
                                 the members, over the standard deviation of the error */
    const double *innovation; /* d: p, value less the members' mean, over the same */
    const double *gram;       /* S^T S: N by N */
    const double *right;      /* S^T d: N */
    const uint64_t *number;   /* p: of the observations in the whole study, for normal() */

    /*
     * The linear algebra that Cairn's filters use, one thread, the same bits wherever it runs.
     * eigen: eigenvalues, ascending, and eigenvectors in place of the symmetric n by n matrix a,
     * with a fixed sign. product: c = a b, of n by k and k by m, or a b^T with b m by k. 0, or a
     * negative CAIRN_E... to be returned.
     */
    int (*eigen)(size_t n, double *a, double *values);
    int (*product)(size_t n, size_t m, size_t k, const double *a, const double *b, int transposed,
                   double *c);

    /* A normal number of variance 1 for an observation (by its number) and a member: the only
     * source of random numbers, so that a study can be repeated. */
    double (*normal)(const struct cairn_filter_case *c, uint64_t number, size_t member);
    uint64_t study, cycle; /* by which normal() is keyed */
} cairn_filter_case;

typedef struct cairn_filter_table {
    uint32_t version;    /* CAIRN_FILTER_VERSION */
    const char *name;    /* 1 to 31 letters, digits, '.', '_' and '-' */
    const char *summary; /* a phrase */

    /* Are these options, the text behind "file.so:", or ""? 0: yes. NULL: there are none. */
    int (*check)(const char *options);

    /*
     * The weights, N by N, all of w: member k of the analysis is the background's mean plus the sum
     * over j of anomaly j times w[j + k * N]. The mean of the columns moves the mean. The same case
     * must give the same bits. 0, or a negative CAIRN_E....
     */
    int (*weights)(const cairn_filter_case *c, const char *options, double *w);
} cairn_filter_table;

/* The table must be seen from outside, whatever is built around it: */
#define CAIRN_FILTER_EXPORT __attribute__((visibility("default")))
extern CAIRN_FILTER_EXPORT const cairn_filter_table cairn_filter;

#ifdef __cplusplus
}
#endif
#endif
