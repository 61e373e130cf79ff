/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A checkpoint writer in the manner of the FLASH code: blocks of a mesh with guard cells around
 * them, two dozen unknowns side by side in each cell. For a file each unknown is picked out of the
 * cells, without the guards, and is an array of all ranks, written together; plot files, which are
 * smaller, come in between.
 *
 *     mpirun -n 4 flashio [checkpoints [blocks per rank]]
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { UNKNOWNS = 24, PLOTTED = 4, EDGE = 8, GUARD = 4, WIDE = EDGE + 2 * GUARD };

typedef double cell[UNKNOWNS];

typedef struct mesh {
    hsize_t nblocks;      /* of this rank */
    hsize_t first, total; /* among those of all */
    cell *cell;           /* nblocks of WIDE * WIDE * WIDE */
    double *value;        /* of one unknown, without guard cells: for a checkpoint */
    float *small;         /* for a plot file */
} mesh;

static void pick_from(const cell *block, int unknown, double value[EDGE * EDGE * EDGE])
{
    for (size_t z = GUARD; z < GUARD + EDGE; z++)
        for (size_t y = GUARD; y < GUARD + EDGE; y++)
            for (size_t x = GUARD; x < GUARD + EDGE; x++)
                *value++ = block[(z * WIDE + y) * WIDE + x][unknown];
}

/* The values of an unknown; for a plot file the small ones. */
static const void *pick(const mesh *m, int unknown, bool plot)
{
    size_t each = (size_t)EDGE * EDGE * EDGE;
    for (size_t b = 0; b < m->nblocks; b++)
        pick_from(m->cell + b * WIDE * WIDE * WIDE, unknown, m->value + b * each);
    for (size_t i = 0; plot && i < m->nblocks * each; i++)
        m->small[i] = (float)m->value[i];
    return plot ? (const void *)m->small : m->value;
}

/* One unknown: this rank's blocks of an array (blocks, EDGE, EDGE, EDGE) of all. */
static int write_unknown(hid_t file, const char *name, const mesh *m, hid_t type, const void *data)
{
    hsize_t all[4] = {m->total, EDGE, EDGE, EDGE}, mine[4] = {m->nblocks, EDGE, EDGE, EDGE};
    hsize_t start[4] = {m->first, 0, 0, 0};
    hid_t space = H5Screate_simple(4, all, NULL), memory = H5Screate_simple(4, mine, NULL);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t how = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(how, H5FD_MPIO_COLLECTIVE);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, mine, NULL);
    herr_t rc = H5Dwrite(set, type, memory, space, how, data);
    H5Pclose(how);
    H5Dclose(set);
    H5Sclose(memory);
    H5Sclose(space);
    return rc < 0 ? -1 : 0;
}

static int write_file(const char *path, const mesh *m, bool plot)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    if (file < 0)
        return -1;
    hid_t type = plot ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
    int rc = 0;
    for (int i = 0; i < (plot ? PLOTTED : UNKNOWNS) && rc == 0; i++) {
        char name[8];
        snprintf(name, sizeof name, "u%02d", i);
        rc = write_unknown(file, name, m, type, pick(m, i, plot));
    }
    return H5Fclose(file) < 0 ? -1 : rc;
}

static int mesh_setup(mesh *m, int each)
{
    unsigned long long mine = (unsigned long long)each, before = 0, all = 0;
    MPI_Exscan(&mine, &before, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    m->nblocks = mine;
    m->first = before;
    m->total = all;
    size_t ncells = (size_t)mine * WIDE * WIDE * WIDE;
    m->cell = malloc(ncells * sizeof *m->cell);
    m->value = malloc(mine * EDGE * EDGE * EDGE * sizeof *m->value);
    m->small = malloc(mine * EDGE * EDGE * EDGE * sizeof *m->small);
    if (!m->cell || !m->value || !m->small)
        return -1;
    for (size_t i = 0; i < ncells; i++)
        for (int k = 0; k < UNKNOWNS; k++)
            m->cell[i][k] = (double)(i % 1000) / (k + 1);
    return 0;
}

int main(int argc, char **argv)
{
    int checkpoints = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 3;
    int each = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 80;
    mesh m = {0};
    MPI_Init(&argc, &argv);
    if (mesh_setup(&m, each) < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < checkpoints; i++) {
        char name[64];
        snprintf(name, sizeof name, "flash_chk_%04d.h5", i);
        int rc = write_file(name, &m, false);
        for (int k = 0; k < 2 && rc == 0; k++) {
            snprintf(name, sizeof name, "flash_plt_%04d.h5", 2 * i + k);
            rc = write_file(name, &m, true);
        }
        if (rc < 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(m.cell);
    free(m.value);
    free(m.small);
    MPI_Finalize();
    return 0;
}
