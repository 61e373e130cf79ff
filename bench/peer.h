/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A checkpoint library as bench_peers sees it, ours or another's: one file peer_<name>.c each, with
 * nothing but the library's public calls. Those of others are built where CMake finds the library
 * (bench/CMakeLists.txt).
 */
#ifndef CAIRN_PEER_H
#define CAIRN_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"

/* What is compared. Each is finished, as far as the library ever does that, when mark returns. */
typedef enum peer_kind {
    PEER_LOCAL,       /* on the node's own storage */
    PEER_ENCODED,     /* any two of four nodes may vanish */
    PEER_DIFFERENTIAL /* on global storage, only blocks that changed */
} peer_kind;

/* Every rank is a virtual node. */
typedef struct peer_setup {
    peer_kind kind;
    const char *dir; /* there, empty, the same for all ranks */
    int rank;
    void *data;
    size_t nbytes;
    size_t block; /* of differential marks */
    int nmarks;   /* that will be taken at most */
} peer_setup;

/* All calls are collective. NULL or false is a failure, which the library has told of. */
typedef struct peer {
    const char *name;
    unsigned kinds;   /* bits 1 << peer_kind */
    bool in_memory;   /* compare it on /dev/shm as well */
    const char *note; /* what it does and does not, for readers of the figures */
    void *(*open)(const peer_setup *setup);
    bool (*mark)(void *handle, int version); /* versions grow over all of the program */
    bool (*close)(void *handle);
} peer;

extern const peer peer_cairn, peer_fti, peer_fti_crc32, peer_veloc, peer_veloc_synced;

enum { PEER_PATH = 512 };

/* Collective: rank 0 writes a configuration below setup->dir, whose path goes to *path. */
bool peer_configure(const peer_setup *setup, char path[PEER_PATH], const char *fmt, ...)
    CAIRN_PRINTF(3);

#endif
