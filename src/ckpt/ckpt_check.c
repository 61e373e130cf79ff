/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Do the shares of all ranks fit together? Asked before a mark, when a declaration has changed: a
 * mark with a hole or an overlap would only be found out by the restart that needs it.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>

static const char *const layout_words[] = {
    [CRN_LAYOUT_OWN] = "the rank's own", [CRN_LAYOUT_PIECE] = "a piece of a global array",
    [CRN_LAYOUT_RAGGED] = "in cells",    [CRN_LAYOUT_INDEX] = "an index of cells",
    [CRN_LAYOUT_LIST] = "a list",        [CRN_LAYOUT_HALO] = "what lies around a piece",
};

static cairn_status check_layouts(const char *name, uint32_t rank, uint32_t layout,
                                  const crn_owner_record *other)
{
    CRN_FAIL_IF(layout != other->layout, CAIRN_EINVAL,
                "variable '%s' is %s on rank %" PRIu32 ", but %s on rank %" PRIu32, name,
                layout_words[layout], rank, layout_words[other->layout], other->rank);
    return CAIRN_OK;
}

/* One variable: the same layout, type and global size on all ranks that have it? */
static cairn_status check_alike(const crn_owner_record *a, const crn_owner_record *b)
{
    const crn_var_spec x = crn_record_spec(a), y = crn_record_spec(b);
    char s[CRN_SHAPE_TEXT], t[CRN_SHAPE_TEXT];
    CRN_TRY(check_layouts(crn_record_name(a), a->rank, a->layout, b));
    CRN_FAIL_IF(a->ncells != b->ncells, CAIRN_EINVAL,
                "variable '%s' has %" PRIu64 " cells on rank %" PRIu32 " and %" PRIu64
                " on rank %" PRIu32,
                crn_record_name(a), a->ncells, a->rank, b->ncells, b->rank);
    if (strcmp(x.type, y.type) == 0 && a->ndims == b->ndims &&
        memcmp(x.global, y.global, a->ndims * sizeof *x.global) == 0)
        return CAIRN_OK;
    crn_shape_format(&x, &y, s);
    crn_shape_format(&y, &x, t);
    return crn_fail(CAIRN_EINVAL,
                    "variable '%s' is %s on rank %" PRIu32 ", but %s on rank %" PRIu32,
                    crn_record_name(a), s, a->rank, t, b->rank);
}

/* --- pieces ------------------------------------------------------------------------------- */

static cairn_status tell_fault(const char *name, const crn_tiling *t, const crn_box *whole)
{
    char where[CRN_BOX_TEXT], all[CRN_BOX_TEXT], beside[96] = "";
    crn_box_format(&t->where, where);
    CRN_FAIL_IF(t->fault == CRN_TILING_OVERLAP, CAIRN_EINVAL,
                "variable '%s': %s belongs to rank %" PRId64 " and to rank %" PRId64, name, where,
                t->rank[0], t->rank[1]);
    if (t->rank[0] >= 0 && t->rank[1] >= 0)
        snprintf(beside, sizeof beside, "; beside it are ranks %" PRId64 " and %" PRId64,
                 t->rank[0], t->rank[1]);
    else if (CRN_MAX(t->rank[0], t->rank[1]) >= 0)
        snprintf(beside, sizeof beside, "; beside it is rank %" PRId64,
                 CRN_MAX(t->rank[0], t->rank[1]));
    return crn_fail(CAIRN_EINVAL, "variable '%s': %s of %s belongs to no rank%s", name, where,
                    crn_box_format(whole, all), beside);
}

static cairn_status check_tiling(const crn_owner_record *const *r, size_t n)
{
    const uint32_t ndims = r[0]->ndims;
    const crn_box whole = crn_box_of(ndims, NULL, crn_record_dims(r[0]));
    crn_claims claim = {0};
    crn_tiling tiling;
    if (crn_records_are_copies(r, n))
        return CAIRN_OK;
    CRN_TRY(crn_vec_reserve(&claim, n));
    for (size_t i = 0; i < n; i++) {
        const uint64_t *dims = crn_record_dims(r[i]);
        if (r[i]->nbytes > 0)
            claim.at[claim.n++] =
                (crn_claim){r[i]->rank, crn_box_of(ndims, dims + ndims, dims + 2 * (size_t)ndims)};
    }
    cairn_status rc = crn_claims_check(claim.at, claim.n, &whole, &tiling);
    crn_vec_done(&claim);
    if (rc == CAIRN_OK && tiling.fault != CRN_TILING_WHOLE)
        rc = tell_fault(crn_record_name(r[0]), &tiling, &whole);
    return rc;
}

static cairn_status check_group(const crn_owner_record *const *r, size_t n)
{
    for (size_t i = 1; i < n; i++)
        CRN_TRY(check_alike(r[0], r[i]));
    return r[0]->layout == CRN_LAYOUT_PIECE ? check_tiling(r, n) : CAIRN_OK;
}

/* Ranks take turns with the variables: the result is the same whoever looks. */
static cairn_status check_groups(const cairn *c, const crn_census *s)
{
    const size_t size = (size_t)crn_comm_size(c->held.comm),
                 rank = (size_t)crn_comm_rank(c->held.comm);
    size_t turn = 0;
    for (size_t i = 0, end; i < s->record.n; i = end) {
        end = crn_census_next(s, i);
        if (turn++ % size == rank)
            CRN_TRY(check_group(&s->record.at[i], end - i));
    }
    return CAIRN_OK;
}

/* Variables of the rank's own are in no census, but none may be a share on another rank: a restart
 * would look for its place. */
static cairn_status check_own(const cairn *c, const crn_census *s)
{
    for (size_t i = 0; i < c->var.n; i++) {
        const ckpt_var *v = &c->var.at[i];
        size_t n;
        const crn_owner_record *const *shares =
            v->layout == CRN_LAYOUT_OWN ? crn_census_find(s, v->name, &n) : NULL;
        if (shares)
            CRN_TRY(check_layouts(v->name, (uint32_t)crn_comm_rank(c->held.comm), v->layout,
                                  shares[0]));
    }
    return CAIRN_OK;
}

/* --- cells -------------------------------------------------------------------------------- */

/* Collective (name, global); the same status on all ranks. */
static cairn_status check_cells(cairn *c, const char *name, uint64_t global)
{
    const ckpt_var *index = crn_ckpt_index_of(c, name);
    const size_t n = index ? index->nbytes / sizeof(crn_cell_count) : 0;
    crn_cell *have = NULL;
    CRN_TRY(crn_comm_agree(c->held.comm, crn_alloc(&have, n)));
    for (size_t i = 0; i < n; i++)
        have[i] = (crn_cell){.number = index->cell[i].number,
                             .rank = (uint32_t)crn_comm_rank(c->held.comm)};
    cairn_status rc = crn_cells_find(c->held.comm, name, global, have, n, NULL, 0);
    free(have);
    return rc;
}

static cairn_status check_all(cairn *c, crn_census *s)
{
    for (size_t i = 0; i < c->var.n; i++) {
        const ckpt_var *v = &c->var.at[i];
        const crn_var_spec spec = crn_ckpt_spec(v);
        if (v->layout != CRN_LAYOUT_OWN && !crn_ckpt_is_companion(v))
            crn_census_add(s, (uint32_t)crn_comm_rank(c->held.comm), &spec, v->ncells, NULL);
    }
    CRN_TRY(crn_census_take(s, c->held.comm));
    CRN_TRY(crn_comm_agree(c->held.comm, check_own(c, s)));
    CRN_TRY(crn_comm_agree(c->held.comm, check_groups(c, s)));
    for (size_t i = 0; i < s->record.n; i = crn_census_next(s, i))
        if (s->record.at[i]->layout == CRN_LAYOUT_RAGGED)
            CRN_TRY(check_cells(c, crn_record_name(s->record.at[i]), s->record.at[i]->ncells));
    return CAIRN_OK;
}

cairn_status crn_ckpt_check_shares(cairn *c)
{
    crn_census s = {0};
    cairn_status rc = check_all(c, &s);
    crn_census_done(&s);
    c->leg.unchecked = rc < 0;
    return rc;
}
