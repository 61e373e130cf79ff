/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets arrays of raw bytes, for test_shelf.py, which knows by numpy what they must be.
 *
 *     shelf_pieces put SHELF KEY VERSION RAW CUTS...        under MPI; a piece for each process
 *     shelf_pieces get SHELF KEY VERSION OUT N:FROM:COUNT...     without MPI
 *
 * CUTS, of each dimension, are where pieces begin and the last ends: "0,3,10" are two. Elements are
 * float64. Beside the array "x" a put has a list, of rank + 2 items 100 rank + k, and items in as
 * many cells as the first dimension has, dealt out in turn: cell c has 7 c mod 5, of 10 c + k.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/state_mpi.h>

enum { ITEMS = 4096 };

static int fail(const char *what)
{
    fprintf(stderr, "shelf_pieces: %s: %s\n", what, cairn_error_text());
    return 1;
}

static uint64_t volume(const cairn_field *f, const uint64_t *of)
{
    uint64_t n = 1;
    for (int d = 0; d < f->ndims; d++)
        n *= of[d];
    return n;
}

/* The rank's part of a dimension that is cut; *place counts through the pieces. */
static void cut(cairn_field *f, const char *cuts, int *place)
{
    uint64_t at[64];
    int n = 0;
    for (const char *p = cuts; p && n < 64; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        at[n++] = strtoull(p, NULL, 10);
    const int mine = *place % (n - 1), d = f->ndims++;
    *place /= n - 1;
    f->global[d] = at[n - 1];
    f->offset[d] = at[mine];
    f->count[d] = at[mine + 1] - at[mine];
}

/* Read a piece of a raw file of the whole array, row by row. */
static double *read_piece(const char *path, const cairn_field *f)
{
    FILE *file = fopen(path, "rb");
    double *data = malloc(sizeof(double) * (volume(f, f->count) + 1));
    const int last = f->ndims - 1;
    uint64_t n = 0;
    for (uint64_t row = 0; file && data && row < volume(f, f->count) / f->count[last]; row++) {
        uint64_t rest = row, at = f->offset[last], stride = f->global[last];
        for (int d = last - 1; d >= 0; d--) {
            at += (f->offset[d] + rest % f->count[d]) * stride;
            rest /= f->count[d];
            stride *= f->global[d];
        }
        if (fseek(file, (long)(at * sizeof(double)), SEEK_SET) != 0)
            return NULL;
        n += fread(data + n, sizeof(double), f->count[last], file);
    }
    if (!file)
        return NULL;
    fclose(file);
    return n == volume(f, f->count) ? data : NULL;
}

static int put(const char *path, const char *key, uint64_t version, cairn_field *x)
{
    static double list[ITEMS], items[ITEMS];
    static uint64_t cell[ITEMS], nitems[ITEMS];
    int rank, size;
    size_t ncells = 0, n = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int k = 0; k < rank + 2; k++)
        list[k] = 100 * rank + k;
    for (uint64_t c = (uint64_t)rank; c < x->global[0]; c += (uint64_t)size) {
        cell[ncells] = c;
        nitems[ncells++] = 7 * c % 5;
        for (uint64_t k = 0; k < 7 * c % 5; k++)
            items[n++] = (double)(10 * c + k);
    }
    const cairn_field field[] = {*x,
                                 {.name = "list",
                                  .data = list,
                                  .type = CAIRN_FLOAT64,
                                  .kind = CAIRN_FIELD_LIST,
                                  .count = {(uint64_t)rank + 2}},
                                 {.name = "items",
                                  .data = items,
                                  .type = CAIRN_FLOAT64,
                                  .kind = CAIRN_FIELD_CELLS,
                                  .global = {x->global[0]},
                                  .ncells = ncells,
                                  .cell = cell,
                                  .nitems = nitems}};
    cairn_shelf *s;
    if (cairn_shelf_open_group(MPI_COMM_WORLD, path, NULL, &s) < 0 ||
        cairn_state_put(s, key, version, NULL, field, 3) < 0)
        return fail("put");
    cairn_shelf_close(s);
    return 0;
}

static int get(const char *path, const char *key, uint64_t version, const char *out,
               const cairn_field *x)
{
    cairn_shelf *s;
    if (cairn_shelf_open(path, NULL, &s) < 0 || cairn_state_get(s, key, version, x, 1) < 0)
        return fail("get");
    cairn_shelf_close(s);
    FILE *f = fopen(out, "wb");
    const size_t n = volume(x, x->count);
    return f && fwrite(x->data, sizeof(double), n, f) == n && fclose(f) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    cairn_field x = {.name = "x", .type = CAIRN_FLOAT64};
    if (argc < 7)
        return 2;
    const uint64_t version = strtoull(argv[4], NULL, 10);
    if (strcmp(argv[1], "get") == 0) {
        for (int i = 6; i < argc; i++, x.ndims++)
            if (sscanf(argv[i], "%lu:%lu:%lu", &x.global[x.ndims], &x.offset[x.ndims],
                       &x.count[x.ndims]) != 3)
                return 2;
        x.data = malloc(sizeof(double) * (volume(&x, x.count) + 1));
        const int rc = x.data ? get(argv[2], argv[3], version, argv[5], &x) : 1;
        free(x.data);
        return rc;
    }
    MPI_Init(&argc, &argv);
    int place;
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    for (int i = 6; i < argc; i++)
        cut(&x, argv[i], &place);
    x.data = read_piece(argv[5], &x);
    const int rc = x.data ? put(argv[2], argv[3], version, &x) : 1;
    free(x.data);
    MPI_Finalize();
    return rc;
}
