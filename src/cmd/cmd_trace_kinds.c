/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of 'cairn trace stat' that sets rank 0 against the mean of the others, by kinds of calls
 * (seed 004, Tables 6.1 and 6.2): where one rank collects for all, or a program that seems to
 * overlap does not.
 */
#include "cmd/cmd_trace.h"

#include <ctype.h>

typedef struct kind_sums {
    double events, nbytes, seconds;
} kind_sums;

typedef struct kind_row {
    const char *layer, *name;
    kind_sums first, others; /* of rank 0; of all others together */
} kind_row;

typedef CRN_VEC(kind_row) kind_rows;

/* MPI_Isend, MPI_Ibcast, MPI_File_iread, MPI_Start. */
static bool is_nonblocking(const char *call)
{
    static const char mpi[] = "MPI_", file[] = "MPI_File_i", start[] = "MPI_Start";
    if (strncmp(call, file, sizeof file - 1) == 0 || strncmp(call, start, sizeof start - 1) == 0)
        return true;
    return strncmp(call, mpi, sizeof mpi - 1) == 0 && call[4] == 'I' &&
           islower((unsigned char)call[5]) && strncmp(call + 4, "Init", 4) != 0 &&
           strncmp(call + 4, "Intercomm", 9) != 0;
}

static const char *kind_name(const cairn_trace_row *r)
{
    static const struct {
        const char *layer, *blocking, *nonblocking;
    } names[] = {{"p2p", "messages, blocking", "messages, non-blocking"},
                 {"wait", "waits and tests", "waits and tests"},
                 {"coll", "collectives, blocking", "collectives, non-blocking"},
                 {"rma", "one-sided", "one-sided"},
                 {"mpiio", "MPI-IO, blocking", "MPI-IO, non-blocking"},
                 {"posix", "files of the system", "files of the system"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(r->layer, names[i].layer) == 0)
            return is_nonblocking(r->call) ? names[i].nonblocking : names[i].blocking;
    return NULL;
}

static int add_row(kind_rows *all, const cairn_trace_row *r)
{
    const char *name = kind_name(r);
    kind_row *k = NULL;
    if (!name || r->within)
        return CMD_YES;
    for (size_t i = 0; i < all->n && !k; i++)
        k = strcmp(all->at[i].name, name) == 0 ? &all->at[i] : NULL;
    if (!k) {
        if (crn_vec_push(all, (kind_row){.layer = r->layer, .name = name}) < 0)
            return cmd_fail("no memory for kinds of calls");
        k = &all->at[all->n - 1];
    }
    kind_sums *to = r->rank == 0 ? &k->first : &k->others;
    to->events += (double)r->nevents;
    to->nbytes += (double)r->nbytes;
    to->seconds += r->seconds;
    return CMD_YES;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const kind_row *)a)->name, ((const kind_row *)b)->name);
}

static void cells_of(cmd_columns *c, const kind_sums *s, double n)
{
    char text[CRN_NUMBER_TEXT];
    cmd_cell(c, "%.10g", s->events / n);
    cmd_cell(c, "%s",
             s->nbytes > 0 ? crn_format_nbytes((uint64_t)(s->nbytes / n), text, sizeof text) : "-");
    cmd_cell(c, "%s", s->seconds > 0 ? crn_format_seconds(s->seconds / n, text, sizeof text) : "-");
}

static int print_kinds(const kind_rows *all, double nothers)
{
    cmd_columns c = {.align = "lrrrrrr"};
    const char *const names[] = {"kind",   "events", "bytes", "time",
                                 "events", "bytes",  "time",  NULL};
    if (all->n == 0)
        return CMD_YES;
    printf("\nrank 0, and the mean of the other ranks\n");
    cmd_trace_heads(&c, names);
    for (size_t i = 0; i < all->n; i++) {
        cmd_cell(&c, "%s", all->at[i].name);
        cells_of(&c, &all->at[i].first, 1);
        cells_of(&c, &all->at[i].others, nothers);
    }
    return cmd_columns_print(&c, 2, CMD_YES);
}

static json_t *json_sums(const kind_sums *s, double n)
{
    return json_pack("{s:f, s:f, s:o}", "events", s->events / n, "nbytes", s->nbytes / n, "seconds",
                     cmd_trace_seconds(s->seconds / n));
}

static json_t *json_kinds(const kind_rows *all, double nothers)
{
    json_t *list = json_array();
    for (size_t i = 0; i < all->n; i++)
        cmd_json_append(&list, json_pack("{s:s, s:s, s:o, s:o}", "kind", all->at[i].name, "layer",
                                         all->at[i].layer, "first", json_sums(&all->at[i].first, 1),
                                         "others", json_sums(&all->at[i].others, nothers)));
    return list;
}

int cmd_trace_kinds(cairn_trace *t, const cairn_trace_info *info, unsigned own, json_t *to)
{
    cmd_trace_rows rows;
    kind_rows all = {0};
    int code = CMD_YES;
    const double nothers = CRN_MAX((double)info->nranks - 1, 1);
    if (info->nranks < 2 || info->limited) /* to some ranks: the others are not all there */
        return CMD_YES;
    if (cmd_trace_sum(t, CAIRN_TRACE_BY_RANK | CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_CALL | own,
                      &rows) != CMD_YES)
        return CMD_UNKNOWN;
    for (size_t i = 0; i < rows.row.n && code == CMD_YES; i++)
        code = add_row(&all, &rows.row.at[i]);
    if (all.n > 0)
        qsort(all.at, all.n, sizeof *all.at, by_name);
    if (code == CMD_YES && to)
        json_object_set_new(to, "kinds", json_kinds(&all, nothers));
    else if (code == CMD_YES)
        code = print_kinds(&all, nothers);
    cmd_trace_rows_done(&rows);
    crn_vec_done(&all);
    return code;
}
