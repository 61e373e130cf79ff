/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FTI: levels 1 and 3 and, of level 4, differential checkpoints (there are no others), all inline.
 * Its state is global: one instance at a time.
 *
 * Differential checkpoints are compared twice: with MD5 in plain files, the faster of FTI's formats
 * for it, and with CRC-32 in FTI's own, since in plain files it crashes. Every plain file begins
 * with a full checkpoint and holds as many as configured, at most 10: here all that are taken, and
 * the full one is not timed, in FTI's favour. It takes no blocks of 64 KiB, the default of ours.
 */
#include <mpi.h>

#include <fti.h>

#include "bench.h"
#include "peer.h"

#include <fcntl.h>
#include <unistd.h>

static const char configuration[] = "[basic]\n"
                                    "head = 0\n"
                                    "node_size = 1\n"
                                    "group_size = 4\n"
                                    "ckpt_dir = %s/local\n"
                                    "glbl_dir = %s/global\n"
                                    "meta_dir = %s/meta\n"
                                    "ckpt_l1 = 0\n"
                                    "ckpt_l2 = 0\n"
                                    "ckpt_l3 = 0\n"
                                    "ckpt_l4 = 0\n"
                                    "ckpt_io = %d\n"
                                    "enable_dcp = %d\n"
                                    "dcp_mode = %d\n"
                                    "dcp_block_size = %zu\n"
                                    "dcp_stack_size = %d\n"
                                    "max_sync_intv = 0\n"
                                    "keep_last_ckpt = 0\n"
                                    "verbosity = 3\n"
                                    "[restart]\n"
                                    "failure = 0\n"
                                    "[advanced]\n"
                                    "block_size = 1024\n"
                                    "transfer_size = 16\n"
                                    "local_test = 1\n";

/* Files of one layer after the other, or files with blocks that are replaced in place. */
typedef enum format { PLAIN_FILES = 1, OWN_FORMAT = 3 } format;

typedef enum digest { MD5_DIGEST = 1, CRC32_DIGEST = 2 } digest;

typedef struct instance {
    int level;
    int out; /* the program's output */
} instance;

static const int levels[] = {
    [PEER_LOCAL] = FTI_L1, [PEER_ENCODED] = FTI_L3, [PEER_DIFFERENTIAL] = FTI_L4_DCP};

/* FTI tells of every checkpoint, and cannot be asked not to; errors are told elsewhere. */
static void be_quiet(instance *f)
{
    fflush(stdout);
    f->out = dup(STDOUT_FILENO);
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    close(null);
}

static void be_heard(const instance *f)
{
    fflush(stdout);
    dup2(f->out, STDOUT_FILENO);
    close(f->out);
}

static void *open_with(const peer_setup *setup, format files, digest d)
{
    char path[PEER_PATH];
    instance *f;
    if (!peer_configure(setup, path, configuration, setup->dir, setup->dir, setup->dir, files,
                        setup->kind == PEER_DIFFERENTIAL, d, setup->block, setup->nmarks))
        return NULL;
    bench_need(crn_alloc(&f, 1));
    f->level = levels[setup->kind];
    be_quiet(f);
    if (FTI_Init(path, MPI_COMM_WORLD) == FTI_SCES &&
        FTI_Protect(0, setup->data, (int64_t)setup->nbytes, FTI_UCHR) == FTI_SCES)
        return f;
    be_heard(f);
    free(f);
    return NULL;
}

static void *open_md5(const peer_setup *setup)
{
    return open_with(setup, PLAIN_FILES, MD5_DIGEST);
}

static void *open_crc32(const peer_setup *setup)
{
    return open_with(setup, OWN_FORMAT, CRC32_DIGEST);
}

static bool mark(void *handle, int version)
{
    const instance *f = handle;
    return FTI_Checkpoint(version, f->level) == FTI_DONE;
}

static bool finish(void *handle)
{
    bool finished = FTI_Finalize() == FTI_SCES;
    be_heard(handle);
    free(handle);
    return finished;
}

const peer peer_fti = {
    .name = "fti",
    .kinds = 1 << PEER_LOCAL | 1 << PEER_ENCODED | 1 << PEER_DIFFERENTIAL,
    .in_memory = true,
    .note = "FTI, plain files, MD5; data synced, parity not",
    .open = open_md5,
    .mark = mark,
    .close = finish,
};

const peer peer_fti_crc32 = {
    .name = "fti-crc32",
    .kinds = 1 << PEER_DIFFERENTIAL,
    .note = "FTI, its own format, CRC-32 (one changed block in 2^32 is missed); synced",
    .open = open_crc32,
    .mark = mark,
    .close = finish,
};
