/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small world for tests of levels: a trail, nodes that are directories, and a model on every
 * rank. What any rank had at any mark follows from the seed, so that any rank can check any
 * other's.
 */
#ifndef CAIRN_TESTS_LEVEL_WORLD_H
#define CAIRN_TESTS_LEVEL_WORLD_H

#include "harness/mpi.h"
#include "harness/model.h"
#include "io/io_fault.h"
#include "level/level.h"

enum { WORLD_SERIES = 1, WORLD_KEEP = 8 };

/* How large the variables of the models are; a test may choose others before it begins. */
static uint64_t world_bytes = 24000, world_block_sizes = 4;

typedef struct world {
    crn_comm *comm;
    int rank, nranks;
    char dir[64], local[96];
    int node_size, group, nparity;
    bool no_local;
    crn_trail *trail;
    crn_run *run;
    crn_vault *vault;
    model model;
    uint64_t version; /* of the last mark */
    uint32_t writers; /* ranks that wrote it */
} world;

static inline void world_model_init(model *m, int rank)
{
    model_init(m, test_seed() + 1000 * (uint64_t)rank, world_bytes);
    m->nblock_sizes = world_block_sizes;
}

/* The model of a rank after so many marks. */
static inline void world_model(model *m, uint32_t rank, uint64_t nmarks)
{
    world_model_init(m, (int)rank);
    for (uint64_t version = 1; version <= nmarks; version++) {
        model_step(m);
        model_remember(m, version);
    }
}

/* All ranks share the run: the first has opened it to write, the others attach. */
static inline void world_run(world *w, bool create)
{
    char name[] = "run-1";
    crn_manifest head = {0};
    assert_ok(crn_comm_barrier(w->comm));
    if (w->rank == 0) {
        assert_ok(crn_trail_open(w->dir, true, &w->trail));
        assert_ok(create ? crn_run_create(w->trail, name, &w->run)
                         : crn_run_open(w->trail, name, true, &w->run));
        memcpy(head.run, crn_run_manifest(w->run)->run, sizeof head.run);
    }
    assert_ok(crn_comm_bcast(w->comm, head.run, sizeof head.run, 0));
    if (w->rank > 0) {
        assert_ok(crn_trail_open(w->dir, false, &w->trail));
        assert_ok(crn_run_attach(w->trail, name, &head, &w->run));
    }
}

/* Copies store variables by other codecs than the own parts do. */
static inline crn_codec_setting world_codec(const void *arg, const char *variable)
{
    static const char *const codec[] = {"none", "lz4", "zstd", "zfp", "fpzip"};
    crn_codec_setting s;
    (void)arg;
    assert_ok(crn_codec_parse(codec[(size_t)variable[strlen(variable) - 1] % 5], "", &s));
    return s;
}

static inline void world_enter(world *w, crn_comm *comm, bool create)
{
    w->comm = comm;
    w->rank = crn_comm_rank(comm);
    w->nranks = crn_comm_size(comm);
    world_run(w, create);
    crn_vault_options opt = {.run = w->run,
                             .series = WORLD_SERIES,
                             .local = w->no_local ? NULL : w->local,
                             .node_size = w->node_size,
                             .group = w->group,
                             .nparity = w->nparity,
                             .part = model_options,
                             .codec = world_codec};
    assert_ok(crn_vault_create(comm, &opt, &w->vault));
}

static inline void world_leave(world *w)
{
    crn_vault_free(w->vault);
    crn_run_close(w->run);
    crn_trail_close(w->trail);
    w->vault = NULL;
    assert_ok(crn_comm_barrier(w->comm));
}

/* In memory where there is such a place: these tests sync thousands of times and pull no plug. */
static inline void world_scratch(char *dir, size_t cap)
{
    snprintf(dir, cap, "/dev/shm/cairn-level-XXXXXX");
    if (!mkdtemp(dir))
        make_scratch(dir, cap, "level");
}

/* Begin with what *w says of nodes, groups and storage; the rest of it is zero. */
static inline void world_begin_as(world *w, crn_comm *comm)
{
    if (crn_comm_rank(comm) == 0)
        world_scratch(w->dir, sizeof w->dir);
    assert_ok(crn_comm_bcast(comm, w->dir, sizeof w->dir, 0));
    snprintf(w->local, sizeof w->local, "%s/local", w->dir);
    world_enter(w, comm, true);
    world_model_init(&w->model, w->rank);
}

static inline void world_begin(world *w, crn_comm *comm, int node_size, bool no_local)
{
    *w = (world){.node_size = node_size, .group = 2, .nparity = 1, .no_local = no_local};
    world_begin_as(w, comm);
}

static inline void world_end(world *w)
{
    if (w->vault)
        world_leave(w);
    model_done(&w->model);
    assert_ok(crn_comm_barrier(w->comm));
    if (w->rank == 0)
        remove_tree(w->dir);
    assert_ok(crn_comm_barrier(w->comm));
}

/* Leave and come back, as a job that died and was started again. */
static inline void world_restart(world *w)
{
    crn_comm *comm = w->comm;
    world_leave(w);
    world_enter(w, comm, false);
}

/* Every rank steps and commits the next mark to its own part. */
static inline void world_mark(world *w)
{
    crn_part *own;
    assert_ok(crn_vault_own(w->vault, &own));
    model_step(&w->model);
    w->version++;
    w->writers = (uint32_t)w->nranks;
    assert_ok(model_mark(&w->model, own, w->version, WORLD_KEEP, NULL));
    assert_ok(crn_comm_barrier(w->comm));
}

static inline crn_manifest_mark world_manifest(const world *w, uint64_t version, uint32_t levels)
{
    return (crn_manifest_mark){
        .version = version, .series = WORLD_SERIES, .nranks = w->writers, .levels = levels};
}

enum { AT_LOCAL = 1, AT_PARTNER = 2, AT_ENCODED = 4, AT_GLOBAL = CRN_IN_TRAIL };

/* --- loading and checking ------------------------------------------------------------------- */

static inline void world_check_share(const crn_manifest_mark *mark, uint32_t rank,
                                     const crn_mark *share, const crn_want *want)
{
    model m;
    size_t nvars = 0;
    world_model(&m, rank, mark->version);
    const model_state *s = &m.past[mark->version % MODEL_MARKS];
    for (int i = 0; i < MODEL_VARS; i++) {
        char name[16];
        model_name(i, name);
        crn_var *var = crn_mark_find(share, name);
        assert_int_equal(var != NULL, s->var[i].exists);
        if (!var)
            continue;
        assert_int_equal(var->spec.nbytes, s->var[i].nbytes);
        const crn_want *w = &want[var - share->var];
        if (memcmp(w->dst, s->var[i].data, var->spec.nbytes) != 0)
            fail_msg("mark %" PRIu64 ", rank %u: '%s' reads wrong", mark->version, rank, name);
        nvars++;
    }
    assert_int_equal(nvars, share->nvars);
    model_done(&m);
}

/* Wants for all blocks of shares, one for each variable. */
static inline crn_want *world_wants(crn_mark **share, const uint32_t *rank, size_t n, size_t *ret_n)
{
    size_t nwant = 0;
    for (size_t i = 0; i < n; i++)
        nwant += share[i]->nvars;
    crn_want *want = calloc(nwant + 1, sizeof *want);
    *ret_n = nwant;
    nwant = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t v = 0; v < share[i]->nvars; v++) {
            const crn_var *var = &share[i]->var[v];
            want[nwant++] = (crn_want){.rank = rank[i],
                                       .share = share[i],
                                       .var = var,
                                       .n = var->nblocks,
                                       .dst = malloc(var->spec.nbytes + 1)};
        }
    }
    return want;
}

/* Load the shares of some old ranks; when that succeeds they are what the model says. */
static inline cairn_status world_load(world *w, const crn_manifest_mark *mark, const uint32_t *rank,
                                      size_t n, crn_load_stats *stats)
{
    crn_mark **share = calloc(n + 1, sizeof *share);
    cairn_status rc = crn_vault_describe(w->vault, mark, rank, n, share);
    if (rc == CAIRN_OK) {
        size_t nwant, at = 0;
        crn_want *want = world_wants(share, rank, n, &nwant);
        rc = crn_vault_load(w->vault, mark, want, nwant, stats);
        for (size_t i = 0; i < n; i++) {
            if (rc == CAIRN_OK)
                world_check_share(mark, rank[i], share[i], want + at);
            at += share[i]->nvars;
            crn_mark_free(share[i]);
        }
        for (size_t i = 0; i < nwant; i++)
            free(want[i].dst);
        free(want);
    }
    free(share);
    return rc;
}

/* The sum over all ranks of what was loaded. */
static inline void world_sum(world *w, crn_load_stats *stats)
{
    _Static_assert(sizeof *stats == CRN_NLEVELS * 4 * sizeof(uint64_t), "only numbers");
    assert_ok(crn_comm_allreduce_u64(w->comm, CRN_REDUCE_SUM, (uint64_t *)(void *)stats,
                                     CRN_NLEVELS * 4));
}

/* Survey, and every rank loads its own share. stats are summed over all ranks. */
static inline cairn_status world_resume(world *w, uint64_t version, uint32_t levels,
                                        crn_load_stats *stats)
{
    crn_manifest_mark mark = world_manifest(w, version, levels);
    uint32_t own = (uint32_t)w->rank;
    memset(stats, 0, sizeof *stats);
    CRN_TRY(crn_vault_survey(w->vault, NULL, 0));
    CRN_TRY(crn_vault_can_load(w->vault, &mark));
    CRN_TRY(world_load(w, &mark, &own, own < mark.nranks, stats));
    world_sum(w, stats);
    return CAIRN_OK;
}

/* --- breaking things ------------------------------------------------------------------------ */

static inline void world_lose_node(world *w, int node)
{
    char path[160];
    snprintf(path, sizeof path, "%s/node-%d", w->local, node);
    if (w->rank == 0)
        remove_tree(path);
    assert_ok(crn_comm_barrier(w->comm));
}

/* The path of a part file: of a role on a node, or, with node negative, of the trail. */
static inline void world_path(const world *w, int node, const char *role, int rank, char path[256])
{
    char hex[33];
    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", crn_run_manifest(w->run)->run[i]);
    snprintf(path, 256, "%s/node-%d/%s/series-%d/%s-%d", w->local, node, hex, WORLD_SERIES, role,
             rank);
}

/* Flip a bit of the first byte of the first block of a mark. Returns whether it has any block. */
static inline bool damage_block(crn_part *part, const char *path, uint64_t version)
{
    crn_mark *mark;
    bool done = false;
    assert_ok(crn_part_load(part, version, &mark));
    for (size_t i = 0; i < mark->nvars && !done; i++) {
        unsigned char byte;
        if (mark->var[i].nblocks == 0)
            continue;
        assert_ok(crn_mark_table(part, mark, &mark->var[i]));
        int fd = open(path, O_RDWR);
        assert_true(fd >= 0);
        off_t at = (off_t)mark->var[i].table[0].off;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_int_equal(fsync(fd), 0);
        close(fd);
        done = true;
    }
    crn_mark_free(mark);
    return done;
}

#endif
