/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Items in cells on a restart: every rank reads the indexes of the old ranks that it looks at, a
 * directory of cells brings those who have cells now together with those who had them.
 */
#include "ckpt/ckpt_redist.h"

#include <inttypes.h>

/* --- the indexes of old ranks ------------------------------------------------------------- */

/* The index of the i-th share that this rank tells of; NULL when that has none. */
static const crn_var *index_in(const crn_restart *t, size_t i, const char *name)
{
    char full[CRN_VAR_NAME + sizeof CRN_INDEX_END];
    snprintf(full, sizeof full, "%s%s", name, CRN_INDEX_END);
    return crn_mark_find(t->share.at[i], full);
}

static size_t count_entries(const crn_restart *t, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < t->ntold; i++) {
        const crn_var *v = index_in(t, i, name);
        n += v ? v->spec.nbytes / sizeof(crn_cell_count) : 0;
    }
    return n;
}

static cairn_status plan_indexes(const crn_restart *t, const char *name, crn_cell_count *to,
                                 crn_pulls *ret)
{
    for (size_t i = 0; i < t->ntold; i++) {
        const crn_var *v = index_in(t, i, name);
        if (!v || v->spec.nbytes == 0)
            continue;
        const uint64_t n = v->spec.nbytes / sizeof *to;
        CRN_TRY(crn_pulls_add_range(ret, t->rank.at[i], v->spec.name, sizeof *to, 0, n,
                                    (unsigned char *)to));
        ret->at[ret->n - 1].share = t->share.at[i];
        ret->at[ret->n - 1].var = v;
        to += n;
    }
    return CAIRN_OK;
}

/* Entries of a share become cells; they must be what a program may declare. */
static cairn_status place_cells(const crn_restart *t, const char *name, const crn_cell_count *entry,
                                uint64_t global, crn_cell *ret)
{
    for (size_t i = 0; i < t->ntold; i++) {
        const crn_var *v = index_in(t, i, name);
        const size_t n = v ? v->spec.nbytes / sizeof *entry : 0;
        uint64_t first = 0;
        for (size_t k = 0; k < n; k++, entry++) {
            CRN_FAIL_IF(entry->number >= global || (k > 0 && entry->number <= entry[-1].number),
                        CAIRN_ECORRUPT,
                        "mark %" PRIu64 ", rank %" PRIu32 ": the cells of '%s' are in no order",
                        t->mark->version, t->rank.at[i], name);
            *ret++ = (crn_cell){.number = entry->number,
                                .first = first,
                                .nitems = entry->nitems,
                                .rank = t->rank.at[i]};
            first += entry->nitems;
        }
    }
    return CAIRN_OK;
}

/* All cells that this rank tells of. Collective; the same status on all ranks. */
static cairn_status read_indexes(crn_restart *t, const char *name, uint64_t global, crn_cell **ret,
                                 size_t *ret_n)
{
    const size_t n = count_entries(t, name);
    crn_cell_count *entry = NULL;
    crn_cell *cell = NULL;
    crn_pulls pull = {0};
    crn_load_stats stats;
    cairn_status rc = crn_alloc(&entry, n);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&cell, n);
    if (rc == CAIRN_OK)
        rc = plan_indexes(t, name, entry, &pull);
    CRN_TRY_OUT(rc, crn_comm_agree(t->c->held.comm, rc));
    CRN_TRY_OUT(rc, crn_pulls_run(&pull, t->c->held.comm, t->c->held.vault, t->mark, &stats));
    rc = crn_comm_agree(t->c->held.comm, place_cells(t, name, entry, global, cell));
    *ret = cell;
    *ret_n = n;
out:
    crn_vec_done(&pull);
    free(entry);
    if (rc < 0)
        free(cell);
    return rc;
}

/* --- finding ------------------------------------------------------------------------------ */

static cairn_status check_numbers(const char *name, uint64_t global, const crn_cell *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        CRN_FAIL_IF(want[i].number >= global || (i > 0 && want[i].number <= want[i - 1].number),
                    CAIRN_EMISMATCH,
                    "variable '%s': cell %" PRIu64 " is asked for, of %" PRIu64
                    " that the mark has, in growing order",
                    name, want[i].number, global);
    return CAIRN_OK;
}

cairn_status crn_restart_find_cells(crn_restart *t, const char *name, crn_cell *want, size_t n)
{
    size_t nrecords, nhave;
    crn_cell *have;
    const crn_owner_record *const *r = crn_census_find(&t->past, name, &nrecords);
    CRN_FAIL_IF(!r || r[0]->layout != CRN_LAYOUT_RAGGED, CAIRN_ENOTFOUND,
                "mark %" PRIu64 " has no items in cells called '%s'", t->mark->version, name);
    const uint64_t global = r[0]->ncells;
    CRN_TRY(crn_comm_agree(t->c->held.comm, check_numbers(name, global, want, n)));
    CRN_TRY(read_indexes(t, name, global, &have, &nhave));
    cairn_status rc = crn_cells_find(t->c->held.comm, name, global, have, nhave, want, n);
    free(have);
    return rc;
}

/* --- planning ----------------------------------------------------------------------------- */

static cairn_status plan_items(crn_restart *t, const ckpt_var *v, const crn_cell_count *declared,
                               const crn_cell *found, size_t n)
{
    const crn_owner_record *const *r;
    size_t nrecords;
    unsigned char *to = (unsigned char *)v->data;
    CRN_TRY(crn_restart_records(t, v, &r, &nrecords));
    for (size_t i = 0; i < n; i++) {
        CRN_FAIL_IF(found[i].nitems != declared[i].nitems, CAIRN_EMISMATCH,
                    "rank %" PRIu32 ": variable '%s' has %" PRIu64 " items in cell %" PRIu64
                    ", but in mark %" PRIu64 " there are %" PRIu64 ": ask cairn_probe_cells",
                    t->me, v->name, declared[i].nitems, declared[i].number, t->mark->version,
                    found[i].nitems);
        CRN_TRY(crn_pulls_add_range(&t->pull, found[i].rank, v->name, v->item, found[i].first,
                                    found[i].nitems, to));
        to += found[i].nitems * v->item;
    }
    return CAIRN_OK;
}

/* One variable of the mark, which this rank may or may not protect. */
static cairn_status plan_ragged(crn_restart *t, const char *name)
{
    const ckpt_var *v = crn_ckpt_find(t->c, name), *index = NULL;
    crn_cell *want = NULL;
    if (v && v->layout == CRN_LAYOUT_RAGGED)
        index = crn_ckpt_index_of(t->c, name);
    const size_t n = index ? index->nbytes / sizeof(crn_cell_count) : 0;
    CRN_TRY(crn_comm_agree(t->c->held.comm, crn_alloc(&want, n)));
    for (size_t i = 0; i < n; i++)
        want[i].number = index->cell[i].number;
    cairn_status rc = crn_restart_find_cells(t, name, want, n);
    if (rc == CAIRN_OK)
        rc = crn_comm_agree(t->c->held.comm,
                            index ? plan_items(t, v, index->cell, want, n) : CAIRN_OK);
    free(want);
    return rc;
}

/* What is protected in cells must be in cells in the mark: then the walk over that meets it. */
static cairn_status check_ragged(const crn_restart *t)
{
    const crn_owner_record *const *r;
    size_t n;
    for (size_t i = 0; i < t->c->var.n; i++)
        if (t->c->var.at[i].layout == CRN_LAYOUT_RAGGED)
            CRN_TRY(crn_restart_records(t, &t->c->var.at[i], &r, &n));
    return CAIRN_OK;
}

cairn_status crn_restart_plan_cells(crn_restart *t)
{
    CRN_TRY(crn_comm_agree(t->c->held.comm, check_ragged(t)));
    for (size_t i = 0; i < t->past.record.n; i = crn_census_next(&t->past, i))
        if (t->past.record.at[i]->layout == CRN_LAYOUT_RAGGED)
            CRN_TRY(plan_ragged(t, crn_record_name(t->past.record.at[i])));
    return CAIRN_OK;
}
