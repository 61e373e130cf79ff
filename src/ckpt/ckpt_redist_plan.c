/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Planning a restart: does a variable fit the mark, and which stretches of whose does it need?
 * Nothing here communicates or touches the program's memory.
 */
#include "ckpt/ckpt_kept.h"
#include "ckpt/ckpt_redist.h"

#include <assert.h>
#include <inttypes.h>

/* Say what both are. */
static cairn_status refuse(const crn_restart *t, const ckpt_var *v, const crn_owner_record *r)
{
    const crn_var_spec here = crn_ckpt_spec(v), there = crn_record_spec(r);
    char a[CRN_SHAPE_TEXT], b[CRN_SHAPE_TEXT];
    crn_shape_format(&here, &there, a);
    crn_shape_format(&there, &here, b);
    return crn_fail(CAIRN_EMISMATCH,
                    "rank %" PRIu32 ": variable '%s' is %s, but in mark %" PRIu64
                    " it is %s on rank %" PRIu32 " of %" PRIu32,
                    t->me, v->name, a, t->mark->version, b, r->rank, t->nold);
}

cairn_status crn_restart_records(const crn_restart *t, const ckpt_var *v,
                                 const crn_owner_record *const **ret, size_t *ret_n)
{
    size_t n;
    const crn_owner_record *const *r = crn_census_find(&t->past, v->name, &n);
    CRN_FAIL_IF(!r, CAIRN_EMISMATCH,
                "rank %" PRIu32 ": variable '%s' is protected, but mark %" PRIu64
                " does not have it",
                t->me, v->name, t->mark->version);
    CRN_FAIL_IF(r[0]->layout != v->layout, CAIRN_EMISMATCH,
                "rank %" PRIu32 ": variable '%s' is protected in another way than in mark %" PRIu64,
                t->me, v->name, t->mark->version);
    if (strcmp(crn_record_type(r[0]), v->type) != 0)
        return refuse(t, v, r[0]);
    *ret = r;
    *ret_n = n;
    return CAIRN_OK;
}

/* Is what n ranks have the same? */
static cairn_status check_copies(const crn_restart *t, const ckpt_var *v,
                                 const crn_owner_record *const *r, size_t n)
{
    for (size_t i = 1; i < n; i++)
        CRN_FAIL_IF(r[i]->nbytes != r[0]->nbytes || !crn_digest_equal(&r[i]->root, &r[0]->root),
                    CAIRN_EMISMATCH,
                    "variable '%s' has no place in a global array, and ranks %" PRIu32
                    " and %" PRIu32 " of mark %" PRIu64 " have different ones: it cannot come back "
                    "on %" PRIu32 " ranks; protect it as a part, or in cells, or as a list",
                    v->name, r[0]->rank, r[i]->rank, t->mark->version, t->nranks);
    return CAIRN_OK;
}

static unsigned char *memory_of(const ckpt_var *v)
{
    return (unsigned char *)v->data;
}

/* Of what the record's rank has of the variable, only some elements are in the mark. */
static cairn_status plan_kept(crn_restart *t, const ckpt_var *v, const crn_owner_record *r,
                              const crn_box *piece, const crn_box *wanted)
{
    crn_kept kept = {0};
    CRN_TRY(crn_kept_parse(crn_record_kept(r), &kept));
    cairn_status rc = crn_kept_pull(&t->pull, r->rank, v, &kept, piece, wanted);
    crn_vec_done(&kept.box);
    return rc;
}

/* --- of its own --------------------------------------------------------------------------- */

static const crn_owner_record *find_rank(const crn_owner_record *const *r, size_t n, uint32_t rank)
{
    for (size_t i = 0; i < n; i++)
        if (r[i]->rank == rank)
            return r[i];
    return NULL;
}

/* On as many ranks each gets its own; on others, what all had alike. */
static cairn_status plan_own(crn_restart *t, const ckpt_var *v)
{
    const crn_owner_record *const *r, *own;
    size_t n;
    CRN_TRY(crn_restart_records(t, v, &r, &n));
    own = find_rank(r, n, t->rank.at[0]);
    if (t->nranks != t->nold) {
        CRN_FAIL_IF(n < t->nold, CAIRN_EMISMATCH,
                    "variable '%s' has no place in a global array, and only %zu of %" PRIu32
                    " ranks of mark %" PRIu64 " have it: it cannot come back on %" PRIu32 " ranks",
                    v->name, n, t->nold, t->mark->version, t->nranks);
        CRN_TRY(check_copies(t, v, r, n));
    }
    CRN_FAIL_IF(!own, CAIRN_EMISMATCH,
                "rank %" PRIu32 ": variable '%s' is protected, but this rank does not have it in "
                "mark %" PRIu64,
                t->me, v->name, t->mark->version);
    if (own->left_out)
        return CAIRN_OK;
    if (own->nbytes != v->nbytes)
        return refuse(t, v, own);
    if (*crn_record_kept(own))
        return plan_kept(t, v, own, NULL, NULL);
    return crn_pulls_add_range(&t->pull, own->rank, v->name, v->item, 0, v->nbytes / v->item,
                               memory_of(v));
}

/* --- pieces ------------------------------------------------------------------------------- */

/* What of the global array is to come: the piece, or all of it that the memory has room for. */
static bool find_wanted(const ckpt_var *v, crn_box *ret)
{
    const crn_var_spec spec = crn_ckpt_spec(v);
    const uint64_t zero[CRN_DIMS_MAX] = {0};
    const crn_var_spec all = {.ndims = v->ndims, .offset = zero, .count = spec.global};
    const crn_box whole = crn_far_piece(&all), piece = crn_far_piece(&spec);
    return v->nbytes > 0 && crn_box_cut(&whole, v->halo ? &v->memory : &piece, ret);
}

static cairn_status plan_cuts(crn_restart *t, const ckpt_var *v, const crn_owner_record *const *r,
                              size_t n, const crn_box *wanted)
{
    uint64_t found = 0;
    bool all = true; /* is in the mark */
    char text[CRN_BOX_TEXT];
    for (size_t i = 0; i < n; i++) {
        const crn_box piece = crn_record_box(r[i]);
        crn_box common;
        all = all && !r[i]->left_out;
        if (!crn_box_cut(&piece, wanted, &common))
            continue;
        found += crn_box_volume(&common);
        if (*crn_record_kept(r[i]))
            CRN_TRY(plan_kept(t, v, r[i], &piece, wanted));
        else
            CRN_TRY(crn_pulls_add_box(&t->pull, r[i]->rank, v->name, 0, &common, &piece, &v->memory,
                                      memory_of(v)));
    }
    crn_box near = *wanted;
    for (uint32_t d = 0; d < near.ndims; d++) {
        near.lo[d] -= CRN_FAR;
        near.hi[d] -= CRN_FAR;
    }
    CRN_FAIL_IF(all && found != crn_box_volume(wanted), CAIRN_EMISMATCH,
                "variable '%s': the pieces in mark %" PRIu64 " do not tile %s", v->name,
                t->mark->version, crn_box_format(&near, text));
    return CAIRN_OK;
}

/* Has this rank the piece, and the memory around it, that it had in the mark? Neighbours may have
 * held other values there than it did: it goes on with its own. */
static bool stays_within(const crn_restart *t, const ckpt_var *v, const ckpt_var **ret_halo)
{
    *ret_halo = t->nranks == t->nold && v->halo ? crn_ckpt_halo_of(t->c, v->name) : NULL;
    if (!*ret_halo)
        return false;
    assert(t->rank.at[0] == t->me); /* on as many ranks each looks at its own share */
    return crn_ckpt_stays(v, t->share.at[0]) && crn_ckpt_stays(*ret_halo, t->share.at[0]);
}

static cairn_status plan_piece(crn_restart *t, const ckpt_var *v)
{
    const ckpt_var *halo;
    const crn_owner_record *const *r;
    size_t n;
    crn_box wanted;
    CRN_TRY(crn_restart_records(t, v, &r, &n));
    if (r[0]->ndims != v->ndims ||
        memcmp(crn_record_dims(r[0]), v->dims, v->ndims * sizeof *v->dims) != 0)
        return refuse(t, v, r[0]);
    if (!find_wanted(v, &wanted))
        return CAIRN_OK;
    if (stays_within(t, v, &halo)) {
        CRN_TRY(crn_ckpt_pull_own(v, t->share.at[0], t->me, &t->pull));
        return crn_ckpt_pull_own(halo, t->share.at[0], t->me, &t->pull);
    }
    if (!crn_records_are_copies(r, n))
        return plan_cuts(t, v, r, n, &wanted);
    CRN_TRY(check_copies(t, v, r, n));
    return plan_cuts(t, v, r + t->me % n, 1, &wanted);
}

/* --- lists -------------------------------------------------------------------------------- */

void crn_restart_split(const crn_restart *t, const crn_owner_record *const *r, size_t n,
                       uint64_t *ret_first, uint64_t *ret_count)
{
    uint64_t sum = 0, before = 0, own = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t items = r[i]->nbytes / r[i]->item;
        before += r[i]->rank < t->me ? items : 0;
        own = r[i]->rank == t->me ? items : own;
        sum += items;
    }
    if (t->nranks == t->nold) { /* nobody has to send anything then */
        *ret_first = before;
        *ret_count = own;
        return;
    }
    /* one more for the first ranks where it does not come out even: no product can overflow */
    const uint64_t each = sum / t->nranks, rest = sum % t->nranks;
    *ret_first = each * t->me + CRN_MIN(t->me, rest);
    *ret_count = each + (t->me < rest);
}

static cairn_status plan_list(crn_restart *t, const ckpt_var *v)
{
    const crn_owner_record *const *r;
    size_t n;
    uint64_t first, count, before = 0;
    unsigned char *to = memory_of(v);
    CRN_TRY(crn_restart_records(t, v, &r, &n));
    crn_restart_split(t, r, n, &first, &count);
    CRN_FAIL_IF(count != v->nbytes / v->item, CAIRN_EMISMATCH,
                "rank %" PRIu32 ": list '%s' has %" PRIu64 " items, but this rank's share in mark "
                "%" PRIu64 " is %" PRIu64 ": ask cairn_probe_count",
                t->me, v->name, v->nbytes / v->item, t->mark->version, count);
    for (size_t i = 0; i < n; i++) {
        const uint64_t items = r[i]->nbytes / v->item;
        const uint64_t from = CRN_MAX(before, first), end = CRN_MIN(before + items, first + count);
        if (from < end) {
            CRN_TRY(crn_pulls_add_range(&t->pull, r[i]->rank, v->name, v->item, from - before,
                                        end - from, to));
            to += (end - from) * v->item;
        }
        before += items;
    }
    return CAIRN_OK;
}

cairn_status crn_restart_plan(crn_restart *t, const ckpt_var *v)
{
    static cairn_status (*const plan[])(crn_restart *, const ckpt_var *) = {
        [CRN_LAYOUT_OWN] = plan_own, [CRN_LAYOUT_PIECE] = plan_piece, [CRN_LAYOUT_LIST] = plan_list,
        [CRN_LAYOUT_RAGGED] = NULL,  [CRN_LAYOUT_INDEX] = NULL,       [CRN_LAYOUT_HALO] = NULL,
    };
    return plan[v->layout] ? plan[v->layout](t, v) : CAIRN_OK;
}
