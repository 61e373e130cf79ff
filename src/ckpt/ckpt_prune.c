/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Deleting what is no longer needed of a run. The manifest goes first: a mark that it names
 * must not be gone; what it does not name is only in the way. Rank 0 cleans up the trail, one rank
 * of each node that node's storage.
 */
#include <mpi.h>

#include "ckpt/ckpt_holding.h"

#include <cairn/keep.h>
#include <inttypes.h>

enum { IN_TRAIL = 1 << CRN_LEVEL_GLOBAL };

/* --- marks ---------------------------------------------------------------------------------- */

/*
 * Take marks off the trail until keep are left, and off the nodes if asked to. A mark that a
 * program may still resume from its nodes stays; where the trail has the own parts themselves, or
 * the run is finished, nobody will.
 */
static void forget_marks(crn_holding *h, const cairn_prune_options *how, cairn_prune_result *ret)
{
    const bool gone = !h->local || crn_run_manifest(h->run)->finished;
    const size_t before = h->mark.n;
    uint64_t seen = 0;
    for (size_t i = h->mark.n; i-- > 0;) {
        crn_manifest_mark *m = &h->mark.at[i];
        if (m->levels & IN_TRAIL && seen++ >= how->keep)
            m->levels = gone ? 0 : m->levels & ~(unsigned)IN_TRAIL;
    }
    if (how->local)
        crn_holding_forget_nodes(h);
    else
        crn_holding_drop_levelless(h);
    ret->nmarks = before - h->mark.n;
}

/* How many there are of a series, and the version of the newest. */
static uint64_t marks_in_trail(const crn_holding *h, uint32_t series, uint64_t *ret_newest)
{
    uint64_t n = 0;
    for (size_t i = 0; i < h->mark.n; i++) {
        if (h->mark.at[i].series != series || !(h->mark.at[i].levels & IN_TRAIL))
            continue;
        *ret_newest = h->mark.at[i].version;
        n++;
    }
    return n;
}

/* --- files ---------------------------------------------------------------------------------- */

/* Let each part of a series retain only the marks that still count. */
static cairn_status trim_series(crn_holding *h, uint32_t series, uint32_t nranks, uint64_t *nfiles)
{
    uint64_t newest = 0;
    const uint64_t keep = marks_in_trail(h, series, &newest);
    const crn_part_options opt = {.depth = 1};
    for (uint32_t rank = 0; keep > 0 && rank < nranks; rank++) {
        crn_part *part;
        CRN_TRY(crn_run_part(h->run, series, rank, nranks, true, &opt, &part));
        /* first what does not count at all: it was being copied when its program died */
        cairn_status rc = crn_part_rewind(part, newest);
        if (rc == CAIRN_OK)
            rc = crn_part_trim(part, keep);
        if (rc == CAIRN_OK)
            rc = crn_run_sweep(h->run, part, nfiles);
        crn_part_close(part);
        CRN_TRY(rc);
    }
    return CAIRN_OK;
}

/* The marks as they were say which series there are. */
static cairn_status clean_series(crn_holding *h, const crn_manifest_mark *was, size_t nwas,
                                 uint64_t *nfiles)
{
    for (size_t i = 0; i < nwas; i++) {
        const uint32_t series = was[i].series;
        uint64_t newest;
        if (i > 0 && was[i - 1].series == series)
            continue;
        if (marks_in_trail(h, series, &newest) > 0) {
            CRN_TRY(trim_series(h, series, was[i].nranks, nfiles));
        } else if (!h->local || crn_run_manifest(h->run)->finished || series != h->series) {
            CRN_TRY(crn_run_remove_series(h->run, series, nfiles));
        }
    }
    return CAIRN_OK;
}

/* --- the call ------------------------------------------------------------------------------- */

static cairn_status check(const crn_holding *h, const cairn_prune_options *how)
{
    const bool finished = crn_run_manifest(h->run)->finished;
    CRN_FAIL_IF(how->keep == 0 && !finished, CAIRN_EINVAL,
                "run '%s' is not finished: keep at least one mark of it", crn_run_name(h->run));
    CRN_FAIL_IF(how->local && !finished, CAIRN_EINVAL,
                "run '%s' is not finished: a program may resume from its node-local files",
                crn_run_name(h->run));
    const crn_manifest_mark *last = h->mark.n > 0 ? &h->mark.at[h->mark.n - 1] : NULL;
    CRN_FAIL_IF(how->local && how->keep > 0 && last && !(last->levels & IN_TRAIL), CAIRN_EINVAL,
                "run '%s': mark %" PRIu64 ", its last one, is on the nodes only: bring it into the "
                "trail with 'cairn drain', or keep no mark at all",
                crn_run_name(h->run), last->version);
    return CAIRN_OK;
}

/* With was, a copy of the marks as they are. */
static cairn_status prune_run(crn_holding *h, const crn_manifest_mark *was, size_t nwas,
                              const cairn_prune_options *how, cairn_prune_result *ret)
{
    const bool finished = crn_run_manifest(h->run)->finished;
    forget_marks(h, how, ret);
    if (how->dry)
        return CAIRN_OK;
    CRN_TRY(crn_holding_publish(h, h->comm, finished));
    cairn_status rc = CAIRN_OK;
    if (crn_comm_rank(h->comm) == 0)
        rc = clean_series(h, was, nwas, &ret->nfiles);
    crn_holding_tell_viewers(h);
    if (rc == CAIRN_OK && how->local)
        rc = crn_vault_remove(h->vault, &ret->nfiles);
    CRN_TRY(crn_comm_agree(h->comm, rc));
    CRN_TRY(crn_comm_allreduce_u64(h->comm, CRN_REDUCE_SUM, &ret->nfiles, 1));
    crn_holding_event(h, &(crn_event){.kind = CRN_EVENT_PRUNED,
                                      .pruned = {.marks = ret->nmarks, .files = ret->nfiles}});
    return CAIRN_OK;
}

static cairn_status prune(crn_holding *h, const char *config, const cairn_prune_options *how,
                          cairn_prune_result *ret)
{
    crn_manifest_mark *was = NULL;
    CRN_TRY(crn_holding_join(h, config, crn_find_existing));
    CRN_TRY(check(h, how));
    const size_t nwas = h->mark.n;
    CRN_TRY(crn_comm_agree(h->comm, crn_alloc(&was, nwas)));
    for (size_t i = 0; i < nwas; i++)
        was[i] = h->mark.at[i];
    cairn_status rc = prune_run(h, was, nwas, how, ret);
    free(was);
    return rc;
}

int cairn_prune(MPI_Comm comm, const char *config, const cairn_prune_options *how,
                cairn_prune_result *ret)
{
    crn_holding h;
    cairn_prune_options ours;
    cairn_prune_result result = {0};
    CRN_TRY(crn_struct_in(how, &ours));
    if (ret)
        CRN_TRY(crn_struct_check(ret));
    crn_holding_init(&h);
    cairn_status rc = crn_comm_create(comm, &h.comm);
    if (rc == CAIRN_OK)
        rc = prune(&h, config, &ours, &result);
    crn_holding_done(&h);
    return rc < 0 || !ret ? rc : crn_struct_out(&result, ret);
}
