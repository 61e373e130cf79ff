/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Columns of two sets of ranks: groups with the same items become one, each rank keeping its base.
 */
#include "tracefmt/tracefmt_merge_impl.h"

cairn_status crn_group_constant(const crn_seq *ranks, int64_t v, crn_group *ret)
{
    *ret = (crn_group){.base = {.base = v}};
    return crn_seq_copy(ranks, &ret->ranks);
}

static bool same_lists(const crn_group *a, const crn_group *b)
{
    if (a->nlists != b->nlists)
        return false;
    for (size_t i = 0; i < a->nlists; i++) {
        if (!crn_seq_equal(&a->list[i], &b->list[i]))
            return false;
    }
    return true;
}

/* May the ranks of b join a? Drawn values have their own rules (tracefmt_draw.c). */
static bool fits(const crn_group *a, const crn_group *b)
{
    return a->nhists == 0 && b->nhists == 0 && crn_seq_same_items(&a->value, &b->value) &&
           same_lists(a, b);
}

static cairn_status join(crn_group *a, const crn_group *b)
{
    uint64_t na = crn_seq_count(&a->ranks), nb = crn_seq_count(&b->ranks);
    crn_seq ranks, base;
    CRN_TRY(crn_seq_concat(&a->ranks, na, &b->ranks, nb, false, &ranks));
    crn_seq_done(&a->ranks);
    a->ranks = ranks;
    CRN_TRY(crn_seq_concat(&a->base, na, &b->base, nb, true, &base));
    crn_seq_done(&a->base);
    a->base = base;
    a->reads += b->reads;
    return CAIRN_OK;
}

cairn_status crn_merge_groups(crn_group **a, size_t *na, crn_group *b, size_t nb)
{
    for (size_t i = 0; i < nb; i++) {
        size_t k = 0;
        while (k < *na && !fits(&(*a)[k], &b[i]))
            k++;
        if (k < *na) {
            CRN_TRY(join(&(*a)[k], &b[i]));
            crn_group_done(&b[i]);
            continue;
        }
        CRN_TRY(crn_realloc(a, *na + 1));
        (*a)[(*na)++] = b[i];
        memset(&b[i], 0, sizeof b[i]);
    }
    return CAIRN_OK;
}

cairn_status crn_merge_column(crn_column *a, crn_column *b)
{
    CRN_TRY(crn_merge_groups(&a->group, &a->ngroups, b->group, b->ngroups));
    if (a->other && b->other)
        return crn_merge_groups(&a->other, &a->nothers, b->other, b->nothers);
    crn_groups_free(a->other, a->nothers); /* one side is drawn, and that is relative */
    a->other = NULL;
    a->nothers = 0;
    return CAIRN_OK;
}

/* One rank's values of a group under new numbers, as a group of its own. */
static cairn_status renumbered(const crn_group *g, uint64_t index, const uint32_t *number, size_t n,
                               crn_group *ret)
{
    crn_seq_build b = {0};
    crn_seq_iter it;
    crn_seq s;
    int64_t v, stride, base = crn_seq_at(&g->base, index), rank = crn_seq_at(&g->ranks, index);
    uint64_t got, left = CRN_MAX(crn_seq_count(&g->value), 1);
    crn_seq_iter_init(&it, &g->value);
    while (left > 0 && crn_seq_next_run(&it, left, &v, &stride, &got)) {
        for (uint64_t i = 0; i < (stride == 0 ? 1 : got); i++) {
            uint64_t old = (uint64_t)(base + v + (int64_t)i * stride);
            crn_seq_add_run(&b, old < n ? number[old] : (int64_t)old, 0, stride == 0 ? got : 1);
        }
        left -= got;
    }
    cairn_status rc = crn_seq_encode(&b, NULL, true, &s);
    crn_seq_build_done(&b);
    CRN_TRY(rc);
    *ret = (crn_group){.base = {.base = s.base}, .value = {.at = s.at, .n = s.n}};
    return crn_seq_of(&rank, 1, &ret->ranks);
}

cairn_status crn_column_renumber(crn_column *c, const uint32_t *number, size_t n)
{
    crn_group *group = NULL;
    size_t ngroups = 0;
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < c->ngroups; i++) {
        uint64_t nranks = crn_seq_count(&c->group[i].ranks);
        for (uint64_t k = 0; k < nranks; k++) {
            crn_group one;
            CRN_TRY_OUT(rc, renumbered(&c->group[i], k, number, n, &one));
            rc = crn_merge_groups(&group, &ngroups, &one, 1);
            crn_group_done(&one);
            if (rc < 0)
                goto out;
        }
    }
    crn_groups_free(c->group, c->ngroups);
    c->group = group;
    c->ngroups = ngroups;
    return CAIRN_OK;
out:
    crn_groups_free(group, ngroups);
    return rc;
}
