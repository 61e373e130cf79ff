/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the benchmarks share: a clock in seconds, the median, and the line that each measurement
 * prints; bench_mpi.h has what those on several ranks share. A figure is a ratio of two things that
 * were measured in turns in the same run, so that a noisy machine hits both:
 *
 *     for (size_t i = 0; i < BENCH_TURNS; i++) {
 *         ours[i] = time_ours(...);
 *         peer[i] = time_peer(...);
 *     }
 *     bench_print(&(bench_result){.name = "store.read", .unit = "GB/s", .bar = BENCH_AT_LEAST,
 *                                 .limit = 0.85, .ours = bench_median(ours, BENCH_TURNS), ...});
 */
#ifndef CAIRN_BENCH_H
#define CAIRN_BENCH_H

#include <ftw.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

/* How often a pair of measurements is repeated: an odd number, so that the median is one of them.
 */
enum { BENCH_TURNS = 7 };

typedef enum bench_bar {
    BENCH_NO_BAR,   /* a figure to know; always ok */
    BENCH_AT_LEAST, /* ok when ours / peer >= limit */
    BENCH_AT_MOST   /* ok when ours / peer <= limit */
} bench_bar;

/* One measurement; texts without quotes and backslashes. */
typedef struct bench_result {
    const char *name; /* begins with the area: "store.", "mark.", ... */
    double ours, peer;
    const char *unit; /* of ours and peer */
    bench_bar bar;
    double limit;
    const char *note; /* what the peer is, and what else a reader has to know */
} bench_result;

static inline double bench_seconds(void)
{
    return (double)crn_now_ns() * 1e-9;
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of n > 0 values, which get sorted. */
static inline double bench_median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, bench_compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* A number, or null for what JSON cannot say. */
static inline void bench_number(const char *key, double v)
{
    if (isfinite(v))
        printf("\"%s\": %.6g, ", key, v);
    else
        printf("\"%s\": null, ", key);
}

/* Print the measurement as one line of JSON. */
static inline void bench_print(const bench_result *r)
{
    double ratio = r->ours / r->peer;
    bool ok = r->bar == BENCH_NO_BAR || (r->bar == BENCH_AT_LEAST && ratio >= r->limit) ||
              (r->bar == BENCH_AT_MOST && ratio <= r->limit);
    printf("{\"name\": \"%s\", ", r->name);
    bench_number("ours", r->ours);
    bench_number("peer", r->peer);
    bench_number("ratio", ratio);
    printf("\"unit\": \"%s\", ", r->unit);
    bench_number("bar", r->bar == BENCH_NO_BAR ? (double)NAN : r->limit);
    printf("\"ok\": %s, \"note\": \"%s\"}\n", ok ? "true" : "false", r->note);
    fflush(stdout);
}

static inline int bench_remove_one(const char *path, const struct stat *st, int kind,
                                   struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

/* Remove a file, or a directory with all that is in it, if it is there. */
static inline void bench_remove(const char *path)
{
    (void)nftw(path, bench_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Leave when a call that prepares a measurement fails. */
static inline void bench_need(cairn_status rc)
{
    if (rc < 0) {
        fprintf(stderr, "bench: %s\n", crn_err_peek()->text);
        exit(2);
    }
}

#endif
