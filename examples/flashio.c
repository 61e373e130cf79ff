/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A checkpoint writer in the manner of the FLASH code: blocks of a mesh, two dozen unknowns, each
 * an array of all ranks in one HDF5 file, written together; smaller plot files in between.
 *
 *     mpirun -n 4 flashio [checkpoints [blocks per rank]]
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { UNKNOWNS = 24, PLOTTED = 4, EDGE = 8 };

typedef struct mesh {
    hsize_t nblocks;      /* of this rank */
    hsize_t first, total; /* among those of all */
    double *value;        /* of one unknown */
    float *small;
} mesh;

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

static int write_file(const char *path, const mesh *m, int unknowns, hid_t type, const void *data)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    if (file < 0)
        return -1;
    int rc = 0;
    for (int i = 0; i < unknowns && rc == 0; i++) {
        char name[8];
        snprintf(name, sizeof name, "u%02d", i);
        rc = write_unknown(file, name, m, type, data);
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
    m->value = calloc(mine * EDGE * EDGE * EDGE, sizeof *m->value);
    m->small = calloc(mine * EDGE * EDGE * EDGE, sizeof *m->small);
    return m->value && m->small ? 0 : -1;
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
        int rc = write_file(name, &m, UNKNOWNS, H5T_NATIVE_DOUBLE, m.value);
        for (int k = 0; k < 2 && rc == 0; k++) {
            snprintf(name, sizeof name, "flash_plt_%04d.h5", 2 * i + k);
            rc = write_file(name, &m, PLOTTED, H5T_NATIVE_FLOAT, m.small);
        }
        if (rc < 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(m.value);
    free(m.small);
    MPI_Finalize();
    return 0;
}
