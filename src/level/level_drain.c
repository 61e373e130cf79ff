/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is done after a job. Draining: a mark is copied into the trail by whoever is here, from
 * whatever level still has it; the processes take the old ranks' shares in turns. Removing: nothing
 * of the run is left on the nodes.
 */
#include "level/level_ops.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of state that a process holds in memory at once. */
enum { WINDOW_BYTES = 64 << 20 };

/* One old rank's share on its way. */
typedef struct haul {
    bool busy; /* this process has a share in this turn */
    uint32_t rank;
    crn_mark *share;
    crn_part *part;
    crn_copy copy;
    crn_gaps gaps; /* of the blocks that the trail lacks */
    unsigned char *window;
    crn_wants want; /* runs of blocks in the window */
} haul;

static void empty_window(haul *h)
{
    for (size_t w = 0; w < h->want.n; w++)
        crn_vec_done(&h->want.at[w].decoded);
    h->want.n = 0;
}

static void haul_done(haul *h)
{
    empty_window(h);
    crn_copy_done(&h->copy);
    crn_part_close(h->part);
    crn_mark_free(h->share);
    free(h->window);
    crn_vec_done(&h->want);
}

static cairn_status begin_copy(crn_vault *v, const crn_manifest_mark *mark, haul *h)
{
    if (!h->busy)
        return CAIRN_OK;
    CRN_TRY(crn_run_part(v->opt.run, mark->series, h->rank, mark->nranks, true, &v->opt.part,
                         &h->part));
    /* of marks behind this one none is in the trail, or it would not be drained: what is there was
     * being copied when its program died */
    CRN_TRY(crn_part_rewind(h->part, mark->version));
    CRN_TRY(crn_copy_begin(v, h->part, h->share, false, &h->copy));
    h->gaps = crn_gaps_of(h->share, h->copy.lacking);
    return crn_alloc_aligned(&h->window, CRN_MAX((size_t)WINDOW_BYTES, h->gaps.cap), 4096);
}

/* Let the next runs of blocks that fit the window be wanted; none when all are there. */
static cairn_status fill_window(haul *h)
{
    size_t used = 0;
    empty_window(h);
    while (h->busy && used + h->gaps.cap <= WINDOW_BYTES && crn_gaps_next(&h->gaps)) {
        CRN_TRY(crn_vec_push(&h->want, (crn_want){.rank = h->rank,
                                                  .share = h->share,
                                                  .var = &h->share->var[h->gaps.v],
                                                  .first = h->gaps.first,
                                                  .n = h->gaps.n,
                                                  .dst = h->window + used,
                                                  .moved = true}));
        used += h->gaps.nbytes;
    }
    return CAIRN_OK;
}

/* Blocks are put as they are stored; where they came decoded, as they are in memory. */
static cairn_status put_want(haul *h, const crn_want *w)
{
    const size_t v = (size_t)(w->var - h->share->var);
    size_t k = 0;
    for (uint64_t i = w->first; i < w->first + w->n; i++) {
        const unsigned char *data = w->dst + (i - w->first) * w->var->spec.block;
        const bool decoded = k < w->decoded.n && w->decoded.at[k] == i;
        k += decoded;
        CRN_TRY(decoded ? crn_draft_put_copy(h->copy.draft, v, i, data, &w->var->table[i])
                        : crn_draft_put_moved(h->copy.draft, v, i, data, w->var));
    }
    return CAIRN_OK;
}

static cairn_status put_window(haul *h)
{
    for (size_t w = 0; w < h->want.n; w++)
        CRN_TRY(put_want(h, &h->want.at[w]));
    return CAIRN_OK;
}

/* As many windows as the process with most needs: loading is done together. */
static cairn_status move_blocks(crn_vault *v, const crn_manifest_mark *mark, haul *h)
{
    for (;;) {
        CRN_TRY(crn_comm_agree(v->comm, fill_window(h)));
        uint64_t most = h->want.n;
        CRN_TRY(crn_comm_allreduce_u64(v->comm, CRN_REDUCE_MAX, &most, 1));
        if (most == 0)
            return CAIRN_OK;
        CRN_TRY(crn_vault_load(v, mark, h->want.at, h->want.n, NULL));
        CRN_TRY(crn_comm_agree(v->comm, put_window(h)));
    }
}

static cairn_status drain_turn(crn_vault *v, const crn_manifest_mark *mark, haul *h, uint64_t keep,
                               crn_raise_stats *stats)
{
    CRN_TRY(crn_vault_describe(v, mark, &h->rank, h->busy, &h->share));
    CRN_TRY(crn_comm_agree(v->comm, begin_copy(v, mark, h)));
    CRN_TRY(move_blocks(v, mark, h));
    return crn_copies_finish(v->comm, &h->copy, h->busy, CAIRN_OK, keep, stats);
}

cairn_status crn_vault_drain(crn_vault *v, const crn_manifest_mark *mark, uint64_t keep,
                             crn_raise_stats *ret_stats)
{
    crn_raise_stats stats = {0};
    /* who has a part of the trail open would not see what is written here */
    crn_vault_close_all(v);
    for (uint32_t first = 0; first < mark->nranks; first += (uint32_t)v->nranks) {
        const uint32_t rank = first + (uint32_t)v->rank;
        haul h = {.busy = rank < mark->nranks, .rank = rank};
        cairn_status rc = drain_turn(v, mark, &h, keep, &stats);
        haul_done(&h);
        CRN_TRY(rc);
    }
    if (ret_stats)
        *ret_stats = stats;
    return CAIRN_OK;
}

/* --- removing ------------------------------------------------------------------------------- */

static bool is_directory(int up, const char *name)
{
    struct stat st;
    return fstatat(up, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

cairn_status crn_tree_remove_local(int up, const char *name, int depth, uint64_t *nfiles)
{
    char **names = NULL;
    size_t n = 0;
    int fd;
    CRN_TRY(crn_dir_open(up, name, false, &fd));
    cairn_status rc = crn_dir_list(fd, &names, &n);
    for (size_t i = 0; i < n; i++) {
        if (rc == CAIRN_OK && depth > 1 && is_directory(fd, names[i])) {
            rc = crn_tree_remove_local(fd, names[i], depth - 1, nfiles);
        } else if (rc == CAIRN_OK) {
            rc = crn_unlink(fd, names[i]);
            *nfiles += depth == 1; /* what is beside the series is no part */
        }
        free(names[i]);
    }
    free(names);
    close(fd);
    return rc < 0 ? rc : crn_unlink(up, name);
}

/* The directory of the run in that of a node, which may never have had one. */
static cairn_status remove_run(const crn_vault *v, int node, uint64_t *nfiles)
{
    char run[CRN_RUN_ID_TEXT];
    cairn_status rc = crn_tree_remove_local(node, crn_vault_run_dir(v, run), 2, nfiles);
    return rc == CAIRN_ENOTFOUND ? CAIRN_OK : rc;
}

/* The same in that of a virtual node. */
static cairn_status remove_virtual(const crn_vault *v, int local, const char *name,
                                   uint64_t *nfiles)
{
    int node;
    if (crn_dir_open(local, name, false, &node) < 0)
        return CAIRN_OK;
    cairn_status rc = remove_run(v, node, nfiles);
    close(node);
    return rc;
}

static cairn_status remove_all_virtual(const crn_vault *v, int local, uint64_t *nfiles)
{
    char **names;
    size_t n;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_dir_list(local, &names, &n));
    for (size_t i = 0; i < n; i++) {
        if (rc == CAIRN_OK && strncmp(names[i], "node-", 5) == 0)
            rc = remove_virtual(v, local, names[i], nfiles);
        free(names[i]);
    }
    free(names);
    return rc;
}

cairn_status crn_vault_remove(crn_vault *v, uint64_t *nfiles)
{
    char name[32];
    cairn_status rc;
    int local;
    crn_vault_close_all(v);
    if (!v->local || crn_vault_rank_at(v, v->nodes.node, 0) != v->rank ||
        crn_dir_open(AT_FDCWD, v->local, false, &local) < 0)
        return CAIRN_OK;
    snprintf(name, sizeof name, "node-%" PRIu32, v->home);
    if (v->opt.node_size == 0)
        rc = remove_run(v, local, nfiles);
    else if (v->nranks > 1)
        rc = remove_virtual(v, local, name, nfiles);
    else
        rc = remove_all_virtual(v, local, nfiles);
    close(local);
    return rc;
}

cairn_status crn_vault_remove_series(crn_vault *v, uint32_t series)
{
    char name[32];
    uint64_t nfiles = 0;
    int run;
    if (!v->local || crn_vault_rank_at(v, v->nodes.node, 0) != v->rank)
        return CAIRN_OK;
    cairn_status rc = crn_vault_dir(v, v->home, false, &run);
    if (rc == CAIRN_OK) {
        snprintf(name, sizeof name, "series-%" PRIu32, series);
        rc = crn_tree_remove_local(run, name, 1, &nfiles);
        close(run);
    }
    return rc == CAIRN_ENOTFOUND ? CAIRN_OK : rc;
}
