/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The observations of a cycle as rows over the elements of fields; picking, applying, likelihood.
 */
#include "observe/observe_read.h"

#include <assert.h>
#include <math.h>

const char *crn_obs_flag_name(crn_obs_flag flag)
{
    static const char *const name[] = {"used", "not_finite", "outside", "far"};
    return name[flag];
}

/* --- making --------------------------------------------------------------------------------- */

static size_t first_of(const crn_obs *o, uint64_t cycle)
{
    size_t low = 0, high = o->record.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (o->record.at[mid].cycle < cycle)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static crn_obs_item item_of(const crn_obs *o, const crn_obs_record *r, uint64_t number)
{
    const double from = (double)(r->cycle - 1) * (double)o->setup.steps;
    double step = floor((r->time - o->setup.start) / o->setup.step + 0.5) - from;
    crn_obs_item item = {.number = number,
                         .type = r->type,
                         .step = (uint64_t)fmin(fmax(step, 1), (double)o->setup.steps),
                         .time = r->time,
                         .value = r->value,
                         .variance = r->variance,
                         .index = r->index,
                         .placed = r->ncoords > 0,
                         .group = r->group,
                         .rank = r->rank};
    memcpy(item.place, r->place, sizeof item.place);
    return item;
}

static cairn_status leave_out(crn_obs_set *s, const crn_obs_item *item, crn_obs_flag flag,
                              double innovation, double bound)
{
    return crn_vec_push(&s->rejected, (crn_obs_rejected){*item, flag, innovation, bound});
}

static int by_entry(const void *a, const void *b)
{
    const crn_obs_item *x = *(crn_obs_item *const *)a, *y = *(crn_obs_item *const *)b;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

/* Where an item is to stand: behind the first one of its group. */
typedef struct seat {
    uint64_t lead, number;
    crn_obs_item item;
} seat;

static bool is_one_group(const crn_obs_item *a, const crn_obs_item *b)
{
    return a->group != CRN_OBS_NONE && a->group == b->group && a->type == b->type;
}

static int by_type_and_group(const void *a, const void *b)
{
    const seat *x = a, *y = b;
    if (x->item.type != y->item.type)
        return x->item.type < y->item.type ? -1 : 1;
    if (x->item.group != y->item.group)
        return x->item.group < y->item.group ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_lead(const void *a, const void *b)
{
    const seat *x = a, *y = b;
    if (x->lead != y->lead)
        return x->lead < y->lead ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static cairn_status gather_groups(crn_obs_set *s)
{
    seat *l;
    CRN_TRY(crn_alloc(&l, s->n));
    for (size_t i = 0; i < s->n; i++)
        l[i] = (seat){s->item[i].number, s->item[i].number, s->item[i]};
    qsort(l, s->n, sizeof *l, by_type_and_group);
    for (size_t i = 1; i < s->n; i++)
        if (is_one_group(&l[i].item, &l[i - 1].item))
            l[i].lead = l[i - 1].lead;
    qsort(l, s->n, sizeof *l, by_lead);
    for (size_t i = 0; i < s->n; i++)
        s->item[i] = l[i].item;
    free(l);
    return CAIRN_OK;
}

static cairn_status fill(crn_obs_set *s, size_t first, size_t n, crn_obs_entries *list)
{
    bool grouped = false;
    CRN_TRY(crn_alloc(&s->item, n));
    for (size_t i = 0; i < n; i++) {
        const crn_obs_record *r = &s->obs->record.at[first + i];
        crn_obs_item item = item_of(s->obs, r, i);
        crn_obs_flag flag =
            isfinite(item.value) && isfinite(item.variance) ? CRN_OBS_USED : CRN_OBS_NOT_FINITE;
        item.entry = list->n;
        if (flag == CRN_OBS_USED)
            CRN_TRY(crn_obs_operate(s->obs, s->cycle, &item, list, &flag));
        if (flag == CRN_OBS_OUTSIDE)
            list->n = item.entry; /* what a plug-in added before it noticed */
        item.nentries = list->n - item.entry;
        grouped = grouped || item.group != CRN_OBS_NONE;
        if (flag == CRN_OBS_USED)
            s->item[s->n++] = item;
        else
            CRN_TRY(leave_out(s, &item, flag, 0, 0));
    }
    return grouped && s->n > 0 ? gather_groups(s) : CAIRN_OK;
}

cairn_status crn_obs_cycle(const crn_obs *o, uint64_t cycle, crn_obs_set **ret)
{
    crn_obs_set *s;
    crn_obs_entries list = {0};
    cairn_status rc;
    CRN_TRY(crn_alloc(&s, 1));
    s->obs = o;
    s->cycle = cycle;
    size_t first = first_of(o, cycle), end = first_of(o, cycle + 1);
    CRN_TRY_OUT(rc, fill(s, first, end - first, &list));
    s->entry = list.at;
    s->nentries = list.n;
    list.at = NULL;
    CRN_TRY_OUT(rc, crn_obs_blocks_make(s));
    *ret = s;
    return CAIRN_OK;
out:
    crn_err_prefix("'%s', cycle %llu: ", o->setup.path, (unsigned long long)cycle);
    crn_vec_done(&list);
    crn_obs_set_free(s);
    return rc;
}

void crn_obs_set_free(crn_obs_set *s)
{
    if (!s)
        return;
    crn_obs_blocks_free(s);
    free(s->item);
    free(s->entry);
    crn_vec_done(&s->rejected);
    free(s);
}

/* The entries of those that are left, moved together in the order in which they lie. */
static cairn_status compact_entries(crn_obs_set *s)
{
    crn_obs_item **item;
    size_t nentries = 0;
    CRN_TRY(crn_alloc(&item, s->n));
    for (size_t i = 0; i < s->n; i++)
        item[i] = &s->item[i];
    if (s->n > 0)
        qsort(item, s->n, sizeof *item, by_entry);
    for (size_t i = 0; i < s->n; i++) {
        memmove(s->entry + nentries, s->entry + item[i]->entry,
                item[i]->nentries * sizeof *s->entry);
        item[i]->entry = nentries;
        nentries += item[i]->nentries;
    }
    s->nentries = nentries;
    free(item);
    return CAIRN_OK;
}

cairn_status crn_obs_reject(crn_obs_set *s, const crn_obs_flag *flag, const double *innovation,
                            const double *bound)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (flag[i] != CRN_OBS_USED)
            CRN_TRY(leave_out(s, &s->item[i], flag[i], innovation[i], bound[i]));
    CRN_TRY(crn_obs_blocks_shrink(s, flag));
    for (size_t i = 0; i < s->n; i++)
        if (flag[i] == CRN_OBS_USED)
            s->item[kept++] = s->item[i];
    s->n = kept;
    return compact_entries(s);
}

uint64_t crn_obs_next_step(const crn_obs_set *set, uint64_t after)
{
    uint64_t next = 0;
    for (size_t i = 0; i < set->n; i++)
        if (set->item[i].step > after && (next == 0 || set->item[i].step < next))
            next = set->item[i].step;
    return next;
}

/* --- picking -------------------------------------------------------------------------------- */

/* Where an element of the global array lies in a piece. */
static bool locate(const cairn_field *p, uint64_t index, uint64_t *ret)
{
    uint64_t at = 0, stride = 1;
    for (int d = p->ndims - 1; d >= 0; d--) {
        uint64_t i = index % p->global[d] - p->offset[d]; /* wraps below the offset */
        index /= p->global[d];
        if (i >= p->count[d])
            return false;
        at += i * stride;
        stride *= p->count[d];
    }
    *ret = at;
    return true;
}

static void pick_item(const crn_obs_set *set, const crn_obs_item *item, uint32_t field,
                      const cairn_field *p, double *entry)
{
    for (size_t k = item->entry; k < item->entry + item->nentries; k++) {
        uint64_t at;
        if (set->entry[k].field != field || !locate(p, set->entry[k].index, &at))
            continue;
        entry[k] = p->type == CAIRN_FLOAT64 ? ((const double *)p->data)[at]
                                            : (double)((const float *)p->data)[at];
    }
}

cairn_status crn_obs_pick(const crn_obs_set *set, uint64_t step, uint32_t field,
                          const cairn_field *piece, double *entry)
{
    assert(piece->type == CAIRN_FLOAT64 || piece->type == CAIRN_FLOAT32);
    for (size_t i = 0; i < set->n; i++) {
        const crn_obs_item *item = &set->item[i];
        if (step != 0 && item->step != step)
            continue;
        const cairn_operator *p = set->obs->plugin.at[item->type];
        if (!p || !p->local) {
            pick_item(set, item, field, piece, entry);
            continue;
        }
        const cairn_observed seen = crn_obs_observed(set->obs, set->cycle, item);
        int rc = p->local(&seen, piece, entry + item->entry);
        CRN_FAIL_IF(rc < 0, CAIRN_EINVAL, "the plug-in of observations '%s' fails with %d",
                    seen.type, rc);
    }
    return CAIRN_OK;
}

void crn_obs_apply(const crn_obs_set *set, const double *entry, double *y)
{
    for (size_t i = 0; i < set->n; i++) {
        const crn_obs_item *item = &set->item[i];
        const cairn_operator *p = set->obs->plugin.at[item->type];
        const double *x = entry + item->entry;
        double sum = 0;
        if (p && p->value) {
            const cairn_observed seen = crn_obs_observed(set->obs, set->cycle, item);
            y[i] = p->value(&seen, x, item->nentries);
            continue;
        }
        for (size_t k = 0; k < item->nentries; k++)
            sum += set->entry[item->entry + k].weight * x[k];
        y[i] = sum;
    }
}

/* --- likelihood ----------------------------------------------------------------------------- */

/* d^T (L L^T)^-1 d of a block. */
static double block_norm(const crn_obs_set *set, const crn_obs_block *b, const double *y, double *z)
{
    double sum = 0;
    for (size_t i = 0; i < b->n; i++) {
        z[i] = set->item[b->first + i].value - y[b->first + i];
        for (size_t k = 0; k < i; k++)
            z[i] -= b->root[i + k * b->n] * z[k];
        z[i] /= b->root[i + i * b->n];
        sum += z[i] * z[i];
    }
    return sum;
}

double crn_obs_loglik(const crn_obs_set *set, const double *y)
{
    double sum = 0, z[CRN_OBS_BLOCK];
    size_t block = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (block < set->nblocks && set->block[block].first == i) {
            const crn_obs_block *b = &set->block[block++];
            sum += block_norm(set, b, y, z);
            i += b->n - 1;
            continue;
        }
        double d = set->item[i].value - y[i];
        sum += d * d / set->item[i].variance;
    }
    return isfinite(sum) ? -0.5 * sum : -INFINITY;
}
