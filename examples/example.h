/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the examples share and what has nothing to do with Cairn: command lines, pauses, and the end
 * of a program that cannot go on.
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <mpi.h>

/* For what fails on one rank: all must end. */
static inline void die(const char *text)
{
    int runs;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
    MPI_Initialized(&runs);
    if (runs)
        MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* For what fails on all ranks alike: one of them says so, and all leave. */
static inline void give_up(int rank, const char *text)
{
    if (rank == 0)
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
    MPI_Finalize();
    exit(1);
}

static inline void pause_us(uint64_t us)
{
    const struct timespec pause = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    if (us > 0)
        nanosleep(&pause, NULL);
}

/* An option, --name, and where its value goes: as a uint64_t, a double, a string, or true. */
typedef struct example_option {
    const char *name;
    enum { NUMBER, REAL, TEXT, FLAG } kind;
    void *to;
} example_option;

static inline bool example_take(const example_option *o, const char *text)
{
    char *end = ""; /* nothing is left over */
    if (o->kind == NUMBER)
        *(uint64_t *)o->to = strtoull(text, &end, 10);
    else if (o->kind == REAL)
        *(double *)o->to = strtod(text, &end);
    else if (o->kind == TEXT)
        *(const char **)o->to = text;
    else
        *(bool *)o->to = true;
    return *end == 0 && end != text;
}

/* The options end with one that has no name; there are fewer than 20. */
static inline void example_parse(int argc, char **argv, const example_option *option)
{
    struct option names[20] = {{0}};
    bool fits = true;
    for (int i = 0; option[i].name; i++)
        names[i] = (struct option){option[i].name, option[i].kind != FLAG, NULL, 0};
    for (int k, i; fits && (k = getopt_long(argc, argv, "", names, &i)) != -1;)
        fits = k == 0 && example_take(&option[i], optarg);
    if (fits && optind == argc)
        return;
    static const char *const value[] = {" N", " X", " TEXT", ""};
    fprintf(stderr, "usage: %s", program_invocation_short_name);
    for (const example_option *o = option; o->name; o++)
        fprintf(stderr, " [--%s%s]", o->name, value[o->kind]);
    fputc('\n', stderr);
    exit(1);
}

#endif
