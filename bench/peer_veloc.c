/* SPDX-License-Identifier: BSD-3-Clause
 *
 * VeloC: synchronous checkpoints that stay on local storage, without and with a sync, which VeloC
 * never calls. There is one client in a process, and none after it has been finalised, so that it
 * is left to the end of the program; its configuration comes from the environment, which it asks
 * anew for the directory at every checkpoint.
 */
#include <mpi.h>

#include <veloc.h>

#include "bench.h"
#include "peer.h"

#include <fcntl.h>
#include <unistd.h>

typedef struct client {
    const char *dir;
    int rank;
} client;

static void *begin(const peer_setup *setup)
{
    client *v;
    setenv("VELOC_MODE", "sync", 1);
    setenv("VELOC_SCRATCH", setup->dir, 1);
    setenv("VELOC_SCRATCH_VERSIONS", "1", 1);
    setenv("VELOC_EC_INTERVAL", "-1", 1);
    setenv("VELOC_LOG_PREFIX", setup->dir, 1);
    if (VELOC_Init(MPI_COMM_WORLD, "") != VELOC_SUCCESS ||
        VELOC_Mem_protect(0, setup->data, setup->nbytes, 1) != VELOC_SUCCESS)
        return NULL;
    bench_need(crn_alloc(&v, 1));
    *v = (client){setup->dir, setup->rank};
    return v;
}

static bool mark(void *handle, int version)
{
    (void)handle;
    return VELOC_Checkpoint("state", version) == VELOC_SUCCESS;
}

static bool mark_synced(void *handle, int version)
{
    const client *v = handle;
    char path[PEER_PATH];
    snprintf(path, sizeof path, "%s/state-%d-%d.dat", v->dir, v->rank, version);
    if (!mark(handle, version))
        return false;
    int fd = open(path, O_RDONLY);
    bool synced = fd >= 0 && fdatasync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return synced;
}

static bool end(void *handle)
{
    free(handle);
    return VELOC_Mem_clear() == VELOC_SUCCESS;
}

const peer peer_veloc = {
    .name = "veloc",
    .kinds = 1 << PEER_LOCAL,
    .in_memory = true,
    .note = "VeloC by default: no checksum, and nothing synced",
    .open = begin,
    .mark = mark,
    .close = end,
};

const peer peer_veloc_synced = {
    .name = "veloc.synced",
    .kinds = 1 << PEER_LOCAL,
    .note = "VeloC, no checksum, then fdatasync of its files, to promise what ours does",
    .open = begin,
    .mark = mark_synced,
    .close = end,
};
