/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ours: synchronous marks through the public session; what is not said here is as by default.
 */
#include "bench.h"
#include "peer.h"

#include <cairn/cairn.h>

typedef struct session {
    cairn *c;
    cairn_level level;
} session;

static const char configuration[] = "[run]\n"
                                    "trail = %s/trail\n"
                                    "[mark]\n"
                                    "mode = synchronous\n"
                                    "%s"
                                    "[level]\n"
                                    "local = %s\n"
                                    "node_size = 1\n"
                                    "group = 4\n"
                                    "parity = 2\n"
                                    "partner = 0\n"
                                    "global = 0\n"
                                    "[keep]\n"
                                    "local = 1\n"
                                    "global = 1\n";

static const cairn_level levels[] = {[PEER_LOCAL] = CAIRN_LEVEL_LOCAL,
                                     [PEER_ENCODED] = CAIRN_LEVEL_ENCODED,
                                     [PEER_DIFFERENTIAL] = CAIRN_LEVEL_GLOBAL};

static bool good(const cairn *c, int rc)
{
    if (rc < 0)
        fprintf(stderr, "bench_peers: %s\n", cairn_last_error(c));
    return rc >= 0;
}

static bool configure(const peer_setup *setup, char path[PEER_PATH])
{
    const bool differential = setup->kind == PEER_DIFFERENTIAL;
    char block[64] = "";
    if (differential)
        snprintf(block, sizeof block, "[variable]\nblock = %zu\n", setup->block);
    return peer_configure(setup, path, configuration, setup->dir, block,
                          differential ? "trail" : setup->dir);
}

static void *open_session(const peer_setup *setup)
{
    char path[PEER_PATH];
    session *s;
    bench_need(crn_alloc(&s, 1));
    s->level = levels[setup->kind];
    if (configure(setup, path) && good(NULL, cairn_open(MPI_COMM_WORLD, path, &s->c)) &&
        good(s->c, cairn_protect(s->c, "state", setup->data, CAIRN_BYTES, setup->nbytes)))
        return s;
    free(s);
    return NULL;
}

static bool mark(void *handle, int version)
{
    session *s = handle;
    return good(s->c, cairn_mark(s->c, (uint64_t)version, s->level));
}

static bool close_session(void *handle)
{
    session *s = handle;
    bool closed = good(NULL, cairn_close(s->c));
    free(s);
    return closed;
}

const peer peer_cairn = {
    .name = "cairn",
    .kinds = 1 << PEER_LOCAL | 1 << PEER_ENCODED | 1 << PEER_DIFFERENTIAL,
    .in_memory = true,
    .note = "digests of all blocks, all synced",
    .open = open_session,
    .mark = mark,
    .close = close_session,
};
