/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The course of a restart on other ranks.
 */
#include "ckpt/ckpt_redist.h"

#include <inttypes.h>

/* The share of an old rank that is known here; NULL when it is not. */
static const crn_mark *share_of(const crn_restart *t, uint32_t rank)
{
    for (size_t i = 0; i < t->rank.n; i++)
        if (t->rank.at[i] == rank)
            return t->share.at[i];
    return NULL;
}

/* --- looking back ------------------------------------------------------------------------- */

/* Learn the shares of n further old ranks. Collective. */
static cairn_status describe(crn_restart *t, const uint32_t *rank, size_t n)
{
    cairn_status rc = crn_vec_reserve(&t->rank, n);
    if (rc == CAIRN_OK)
        rc = crn_vec_reserve(&t->share, n);
    CRN_TRY(crn_comm_agree(t->c->held.comm, rc));
    CRN_TRY(crn_vault_describe(t->c->held.vault, t->mark, rank, n, t->share.at + t->share.n));
    memcpy(t->rank.at + t->rank.n, rank, n * sizeof *rank);
    t->rank.n += n;
    t->share.n += n;
    return CAIRN_OK;
}

/* Old ranks are dealt out in order. Who gets none looks at one all the same, for what all have. */
static cairn_status describe_slice(crn_restart *t)
{
    const uint64_t first = (uint64_t)t->me * t->nold / t->nranks;
    const uint64_t end = ((uint64_t)t->me + 1) * t->nold / t->nranks;
    uint32_t *rank = NULL;
    t->ntold = end - first;
    const size_t n = CRN_MAX(t->ntold, 1);
    CRN_TRY(crn_comm_agree(t->c->held.comm, crn_alloc(&rank, n)));
    for (size_t i = 0; i < n; i++)
        rank[i] = (uint32_t)(t->ntold > 0 ? first + i : t->me % t->nold);
    cairn_status rc = describe(t, rank, n);
    free(rank);
    return rc;
}

static cairn_status look_back(crn_restart *t)
{
    CRN_TRY(describe_slice(t));
    for (size_t i = 0; i < t->ntold; i++) {
        const crn_mark *share = t->share.at[i];
        for (size_t k = 0; k < share->nvars; k++) /* what lies around a piece is the rank's own */
            if (crn_layout_of(&share->var[k].spec) != CRN_LAYOUT_HALO)
                crn_census_add(&t->past, t->rank.at[i], &share->var[k].spec,
                               crn_layout_ncells(&share->var[k].spec), &share->var[k].root);
    }
    return crn_census_take(&t->past, t->c->held.comm);
}

static void restart_init(crn_restart *t, cairn *c, const crn_manifest_mark *mark)
{
    *t = (crn_restart){.c = c,
                       .mark = mark,
                       .me = (uint32_t)crn_comm_rank(c->held.comm),
                       .nranks = (uint32_t)crn_comm_size(c->held.comm),
                       .nold = mark->nranks};
}

static void restart_done(crn_restart *t)
{
    for (size_t i = 0; i < t->share.n; i++)
        crn_mark_free(t->share.at[i]);
    crn_vec_done(&t->share);
    crn_vec_done(&t->rank);
    crn_vec_done(&t->pull);
    crn_census_done(&t->past);
}

/* --- does anybody want it ----------------------------------------------------------------- */

static cairn_status name_unwanted(const crn_restart *t, const uint64_t *wanted)
{
    for (size_t i = 0, k = 0; i < t->past.record.n; i = crn_census_next(&t->past, i), k++)
        CRN_FAIL_IF(!wanted[k], CAIRN_EMISMATCH,
                    "mark %" PRIu64 " has a variable '%s' that is not protected; set resume.subset "
                    "to resume without it",
                    t->mark->version, crn_record_name(t->past.record.at[i]));
    return CAIRN_OK;
}

/* Every variable of the mark must be some rank's now, unless the configuration says otherwise. */
static cairn_status check_wanted(crn_restart *t)
{
    uint64_t *wanted = NULL;
    size_t n = 0;
    if (crn_config_bool(t->c->held.cfg, CRN_OPT_RESUME_SUBSET))
        return CAIRN_OK;
    CRN_TRY(crn_comm_agree(t->c->held.comm, crn_alloc(&wanted, t->past.record.n)));
    for (size_t i = 0; i < t->past.record.n; i = crn_census_next(&t->past, i))
        wanted[n++] = crn_ckpt_find(t->c, crn_record_name(t->past.record.at[i])) != NULL;
    cairn_status rc = crn_comm_allreduce_u64(t->c->held.comm, CRN_REDUCE_MAX, wanted, n);
    if (rc == CAIRN_OK)
        rc = name_unwanted(t, wanted);
    free(wanted);
    return rc;
}

/* --- planning and pulling ----------------------------------------------------------------- */

static cairn_status plan_all(crn_restart *t)
{
    for (size_t i = 0; i < t->c->var.n; i++)
        CRN_TRY(crn_restart_plan(t, &t->c->var.at[i]));
    return CAIRN_OK;
}

/* The old ranks that something is pulled from and that are not known yet. */
static cairn_status find_strangers(const crn_restart *t, uint32_t **ret, size_t *ret_n)
{
    size_t n = 0;
    uint32_t *rank;
    CRN_TRY(crn_alloc(&rank, t->pull.n));
    for (size_t i = 0; i < t->pull.n; i++) {
        size_t k = 0;
        while (k < n && rank[k] != t->pull.at[i].rank)
            k++;
        if (k == n && !share_of(t, t->pull.at[i].rank))
            rank[n++] = t->pull.at[i].rank;
    }
    *ret = rank;
    *ret_n = n;
    return CAIRN_OK;
}

static cairn_status meet_strangers(crn_restart *t)
{
    uint32_t *rank = NULL;
    size_t n = 0;
    CRN_TRY(crn_comm_agree(t->c->held.comm, find_strangers(t, &rank, &n)));
    cairn_status rc = describe(t, rank, n);
    free(rank);
    return rc;
}

static cairn_status pull_all(crn_restart *t, crn_load_stats *ret_stats)
{
    for (size_t i = 0; i < t->pull.n; i++) {
        crn_pull *p = &t->pull.at[i];
        p->share = share_of(t, p->rank);
        p->var = crn_mark_find(p->share, p->name);
    }
    return crn_pulls_run(&t->pull, t->c->held.comm, t->c->held.vault, t->mark, ret_stats);
}

static cairn_status load(crn_restart *t, crn_load_stats *ret_stats)
{
    CRN_TRY(look_back(t));
    CRN_TRY(check_wanted(t));
    CRN_TRY(crn_comm_agree(t->c->held.comm, plan_all(t)));
    CRN_TRY(crn_comm_agree(t->c->held.comm, crn_restart_plan_cells(t)));
    CRN_TRY(meet_strangers(t));
    return pull_all(t, ret_stats);
}

cairn_status crn_redist_load(cairn *c, const crn_manifest_mark *mark, crn_load_stats *ret_stats)
{
    crn_restart t;
    restart_init(&t, c, mark);
    cairn_status rc = load(&t, ret_stats);
    restart_done(&t);
    return rc;
}

static cairn_status read_one(crn_restart *t, const ckpt_var *v, crn_load_stats *ret_stats)
{
    CRN_TRY(look_back(t));
    CRN_TRY(crn_comm_agree(t->c->held.comm, crn_restart_plan(t, v)));
    CRN_TRY(meet_strangers(t));
    return pull_all(t, ret_stats);
}

cairn_status crn_redist_read(cairn *c, const crn_manifest_mark *mark, const ckpt_var *v,
                             crn_load_stats *ret_stats)
{
    crn_restart t;
    restart_init(&t, c, mark);
    cairn_status rc = read_one(&t, v, ret_stats);
    restart_done(&t);
    return rc;
}

/* --- questions ---------------------------------------------------------------------------- */

cairn_status crn_redist_count(cairn *c, const crn_manifest_mark *mark, const char *name,
                              size_t *ret)
{
    crn_restart t;
    size_t n;
    restart_init(&t, c, mark);
    cairn_status rc = look_back(&t);
    if (rc == CAIRN_OK) {
        const crn_owner_record *const *r = crn_census_find(&t.past, name, &n);
        uint64_t first, count = 0;
        if (r && r[0]->layout == CRN_LAYOUT_LIST)
            crn_restart_split(&t, r, n, &first, &count);
        else if (r)
            count = r[0]->nbytes / r[0]->item;
        *ret = (size_t)count;
    }
    restart_done(&t);
    return rc;
}

static cairn_status count_cells(crn_restart *t, const char *name, crn_cell *want, size_t n)
{
    CRN_TRY(look_back(t));
    return crn_restart_find_cells(t, name, want, n);
}

cairn_status crn_redist_count_cells(cairn *c, const crn_manifest_mark *mark, const char *name,
                                    size_t ncells, const uint64_t *cell, uint64_t *ret)
{
    crn_restart t;
    crn_cell *want = NULL;
    CRN_TRY(crn_comm_agree(c->held.comm, crn_alloc(&want, ncells)));
    for (size_t i = 0; i < ncells; i++)
        want[i].number = cell[i];
    restart_init(&t, c, mark);
    cairn_status rc = count_cells(&t, name, want, ncells);
    for (size_t i = 0; rc == CAIRN_OK && i < ncells; i++)
        ret[i] = want[i].nitems;
    restart_done(&t);
    free(want);
    return rc;
}
