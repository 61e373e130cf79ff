/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What clover and tea share: fields on a staggered grid of which each rank has some rows, with a
 * rim of two elements all around, the exchange of rims, sums in a fixed order, and what Cairn is to
 * know of a field.
 *
 * A field is protected in one of two ways. By default all of its memory is, rim and all, and comes
 * back on as many ranks. With pieces, its inside is, as a piece of a global array, and comes back
 * on any number of ranks; then marks have no rims, and must begin where none is needed: the program
 * names the place.
 */
#ifndef SLAB_H
#define SLAB_H

#include <math.h>
#include <signal.h>
#include <string.h>

#include <cairn/cairn.h>

#include "example.h"

enum { RIM = 2, BOXES = 64 };

typedef struct slab {
    MPI_Comm comm;
    int rank, nranks;
    int cols, all_rows; /* cells of the whole grid */
    int first, rows;    /* cells of this rank */
    ptrdiff_t pitch;    /* elements from row to row in memory */
    bool pieces;        /* fields are pieces of global arrays */
    bool plain;         /* the program goes without Cairn, to be compared with */
    cairn *c;
    uint64_t regions, die;  /* regions met; where the last rank kills itself, 0: nowhere */
    double *row_sum;        /* of all rows, for fixed-order sums */
    uint64_t box[BOXES][4]; /* boxes of a list of accesses in the making, */
    unsigned nboxes;        /* in turns */
} slab;

/* Where a field's values are, in rows and columns: in the middle of cells, or on their edges. */
typedef enum staggering { CELL, NODE, XFACE, YFACE } staggering;

typedef struct field {
    const char *name;
    staggering where;
    double mirror_x, mirror_y; /* -1: the wall turns the sign, as of a velocity across it */
    double *memory, *at;       /* all of it; element (0, 0) of the inside */
    cairn_var var;
    uint64_t in[4], rim[4][4]; /* boxes as handles count: lo of both dimensions, hi of both */
} field;

/* More rows or columns than cells: nodes and faces lie on both ends. */
static inline int more_rows(const field *f)
{
    return f->where == NODE || f->where == YFACE;
}

static inline int more_cols(const field *f)
{
    return f->where == NODE || f->where == XFACE;
}

static inline void slab_init(slab *s, int rows, int cols)
{
    MPI_Comm_rank(s->comm, &s->rank);
    MPI_Comm_size(s->comm, &s->nranks);
    s->cols = cols;
    s->all_rows = rows;
    s->first = (int)((int64_t)rows * s->rank / s->nranks);
    s->rows = (int)((int64_t)rows * (s->rank + 1) / s->nranks) - s->first;
    s->pitch = cols + 1 + 2 * RIM;
    s->row_sum = calloc((size_t)rows, sizeof *s->row_sum);
    if (rows / s->nranks < RIM + 1 || !s->row_sum)
        die("each rank needs at least three rows, and memory");
}

static inline size_t slab_elements(const slab *s)
{
    return (size_t)(s->rows + 1 + 2 * RIM) * (size_t)s->pitch;
}

static inline void field_init(const slab *s, field *f)
{
    f->memory = calloc(slab_elements(s), sizeof *f->memory);
    if (!f->memory)
        die("no memory for a field");
    f->at = f->memory + RIM * s->pitch + RIM;
}

static inline double *row_of(const slab *s, const field *f, int row)
{
    return f->at + row * s->pitch;
}

/* --- rims --------------------------------------------------------------------------------- */

/* The element behind a wall is that before it: of n, counted from the wall that low names. */
static inline int mirrored(int n, int staggered, bool low, int depth)
{
    return low ? depth - 1 + staggered : n - depth;
}

static inline void mirror_columns(const slab *s, const field *f)
{
    const int n = s->cols, e = more_cols(f);
    for (int j = 0; j < s->rows + more_rows(f); j++) {
        double *row = row_of(s, f, j);
        for (int d = 1; d <= RIM; d++) {
            row[-d] = f->mirror_x * row[mirrored(n, e, true, d)];
            row[n - 1 + e + d] = f->mirror_x * row[mirrored(n, e, false, d)];
        }
    }
}

static inline void mirror_rows(const slab *s, const field *f, bool low)
{
    const int n = s->rows, e = more_rows(f), width = s->cols + more_cols(f) + 2 * RIM;
    for (int d = 1; d <= RIM; d++) {
        const double *from = row_of(s, f, mirrored(n, e, low, d)) - RIM;
        double *to = row_of(s, f, low ? -d : n - 1 + e + d) - RIM;
        for (int i = 0; i < width; i++)
            to[i] = f->mirror_y * from[i];
    }
}

/* Fill the rim: from the neighbours, and at walls from the inside. The upper row of nodes that both
 * neighbours compute is sent as well where marks have it on one of them only. */
static inline void fill_rim(const slab *s, field *f)
{
    const int e = more_rows(f), skip = s->pieces ? 0 : e, n = RIM + e - skip;
    const int below = s->rank > 0 ? s->rank - 1 : MPI_PROC_NULL;
    const int above = s->rank + 1 < s->nranks ? s->rank + 1 : MPI_PROC_NULL;
    const int width = (int)s->pitch;
    mirror_columns(s, f);
    MPI_Sendrecv(row_of(s, f, skip) - RIM, n * width, MPI_DOUBLE, below, 0,
                 row_of(s, f, s->rows + skip) - RIM, n * width, MPI_DOUBLE, above, 0, s->comm,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(row_of(s, f, s->rows - RIM) - RIM, RIM * width, MPI_DOUBLE, above, 1,
                 row_of(s, f, -RIM) - RIM, RIM * width, MPI_DOUBLE, below, 1, s->comm,
                 MPI_STATUS_IGNORE);
    if (below == MPI_PROC_NULL)
        mirror_rows(s, f, true);
    if (above == MPI_PROC_NULL)
        mirror_rows(s, f, false);
}

/* --- sums, output ---------------------------------------------------------------------------- */

/* The sum of all ranks' rows, each in row_sum at its place, from the first row to the last: the
 * same bits on any number of ranks. */
static inline double sum_rows(const slab *s)
{
    double sum = 0;
    int *count = calloc(2 * (size_t)s->nranks, sizeof *count);
    if (!count)
        die("no memory for a sum");
    for (int r = 0; r < s->nranks; r++) {
        count[s->nranks + r] = (int)((int64_t)s->all_rows * r / s->nranks);
        count[r] = (int)((int64_t)s->all_rows * (r + 1) / s->nranks) - count[s->nranks + r];
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DOUBLE, s->row_sum, count, count + s->nranks, MPI_DOUBLE,
                   s->comm);
    for (int j = 0; j < s->all_rows; j++)
        sum += s->row_sum[j];
    free(count);
    return sum;
}

static inline bool write_rows(const slab *s, const field *f, FILE *out)
{
    const size_t n = (size_t)s->cols;
    for (int j = 0; j < s->rows; j++)
        if (fwrite(row_of(s, f, j), sizeof *f->at, n, out) != n)
            return false;
    return fclose(out) == 0;
}

/* The inside of a field of cells into one file: the ranks append theirs in turn. */
static inline void write_field(const slab *s, const field *f, const char *path)
{
    for (int r = 0; r < s->nranks; r++) {
        FILE *out = r == s->rank ? fopen(path, r == 0 ? "wb" : "ab") : NULL;
        if (r == s->rank && (!out || !write_rows(s, f, out)))
            die("cannot write the field");
        MPI_Barrier(s->comm);
    }
}

/* --- CAIRN: what it is to know ---------------------------------------------------------------- */

static inline void set_box(uint64_t box[4], int row, int col, int end_row, int end_col)
{
    box[0] = (uint64_t)row;
    box[1] = (uint64_t)col;
    box[2] = (uint64_t)end_row;
    box[3] = (uint64_t)end_col;
}

static inline int protect_piece(const slab *s, field *f)
{
    const uint64_t e[2] = {(uint64_t)more_rows(f), (uint64_t)more_cols(f)};
    const bool last = s->rank + 1 == s->nranks;
    cairn_piece p = {.struct_bytes = sizeof p, .ndims = 2};
    p.global[0] = (uint64_t)s->all_rows + e[0];
    p.global[1] = p.count[1] = (uint64_t)s->cols + e[1];
    p.offset[0] = (uint64_t)s->first;
    p.count[0] = (uint64_t)s->rows + (last ? e[0] : 0);
    for (int d = 0; d < 2; d++)
        p.before[d] = RIM;
    p.after[0] = (uint64_t)s->rows + 1 + RIM - p.count[0];
    p.after[1] = (uint64_t)s->pitch - RIM - p.count[1];
    set_box(f->in, 0, 0, (int)p.count[0], (int)p.count[1]);
    return cairn_protect_piece(s->c, f->name, f->memory, CAIRN_FLOAT64, &p);
}

static inline int protect_memory(const slab *s, field *f)
{
    const int rows = s->rows + more_rows(f), cols = s->cols + more_cols(f);
    set_box(f->in, RIM, RIM, RIM + rows, RIM + cols);
    set_box(f->rim[0], 0, 0, RIM, cols + 2 * RIM);
    set_box(f->rim[1], RIM + rows, 0, rows + 2 * RIM, cols + 2 * RIM);
    set_box(f->rim[2], RIM, 0, RIM + rows, RIM);
    set_box(f->rim[3], RIM, RIM + cols, RIM + rows, cols + 2 * RIM);
    return cairn_protect(s->c, f->name, f->memory, CAIRN_FLOAT64, slab_elements(s));
}

static inline void field_protect(const slab *s, field *f)
{
    const uint64_t extent[2] = {(uint64_t)s->rows + 1 + 2 * RIM, (uint64_t)s->pitch};
    if (s->plain)
        return;
    if ((s->pieces ? protect_piece(s, f) : protect_memory(s, f)) < 0)
        die(cairn_last_error(s->c));
    f->var =
        s->pieces ? cairn_variable(s->c, f->name) : cairn_variable_shaped(s->c, f->name, 2, extent);
    if (!f->var)
        die(cairn_last_error(s->c));
}

/* Accesses: to the inside, to the rim, to parts of both, to all. */
static inline cairn_access inside(const field *f, unsigned how)
{
    return cairn_access_of(f->var, how, f->in, f->in + 2);
}

static inline cairn_access rim(const field *f, int side)
{
    return cairn_access_of(f->var, CAIRN_WRITES, f->rim[side], f->rim[side] + 2);
}

/* Rows and columns of the inside's count, up to, not including, the ends. */
static inline cairn_access part(slab *s, const field *f, unsigned how, const int r[4])
{
    uint64_t *box = s->box[s->nboxes++ % BOXES];
    for (int d = 0; d < 4; d++)
        if (s->pieces)
            box[d] = r[d] < 0                            ? 0
                     : (uint64_t)r[d] < f->in[2 + d % 2] ? (uint64_t)r[d]
                                                         : f->in[2 + d % 2];
        else
            box[d] = (uint64_t)(r[d] + RIM);
    return cairn_access_of(f->var, how, box, box + 2);
}

static inline cairn_access around(slab *s, const field *f, unsigned how)
{
    const int r[4] = {-RIM, -RIM, s->rows + more_rows(f) + RIM, s->cols + more_cols(f) + RIM};
    return part(s, f, how, r);
}

#define IN(f)       inside(&(f), CAIRN_READS)
#define OUT(f)      inside(&(f), CAIRN_WRITES)
#define BOTH(f)     inside(&(f), CAIRN_READS | CAIRN_WRITES)
#define FILLED(f)   rim(&(f), 0), rim(&(f), 1), rim(&(f), 2), rim(&(f), 3) /* its rim is written */
#define ROUND(s, f) around((s), &(f), CAIRN_READS)                         /* read with its rim */

/* Is the body of a region to be done? Here a program may also be killed, for tests. */
static inline bool go(slab *s, int answer)
{
    if (answer < 0)
        die(cairn_last_error(s->c));
    if (++s->regions == s->die && s->rank + 1 == s->nranks)
        raise(SIGKILL);
    return answer > 0;
}

static inline void check(const slab *s, int status)
{
    if (status < 0)
        die(cairn_last_error(s->c));
}

/* Values that leave the computation. */
static inline void pass_value(const slab *s, void *value, size_t nbytes)
{
    if (!s->plain)
        check(s, cairn_value(s->c, value, nbytes));
}

static inline void reduce(const slab *s, double *value, cairn_reduction how)
{
    if (s->plain)
        MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_DOUBLE, how == CAIRN_MIN ? MPI_MIN : MPI_SUM,
                      s->comm);
    else
        check(s, cairn_reduce(s->c, value, 1, how));
}

/* Begin with Cairn, unless the program goes without; fields are protected in between. */
static inline void slab_open(slab *s, const char *config)
{
    if (!s->plain && cairn_open(s->comm, config, &s->c) < 0)
        give_up(s->rank, cairn_last_error(NULL));
}

static inline void slab_begin(const slab *s, const char *place, const cairn_var *keep, size_t nkeep)
{
    const cairn_region_options how = {
        .struct_bytes = sizeof how, .place = place, .keep = keep, .nkeep = nkeep};
    if (!s->plain && cairn_regions(s->c, &how) < 0)
        give_up(s->rank, cairn_last_error(s->c));
}

/* Between two steps: a mark when one is wanted, or due. True: the program is to leave. */
static inline bool slab_between(const slab *s, bool wanted)
{
    if (s->plain)
        return false;
    if (wanted)
        check(s, cairn_trigger(s->c));
    (void)cairn_due(s->c);
    return cairn_should_stop(s->c);
}

#endif
