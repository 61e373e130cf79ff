/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where to begin a mark: for every site, what one that begins there would keep, found by running
 * the decision without copying anything; and the choice among them.
 */
#include "region/region_session.h"

#include <inttypes.h>

/* The shadow whose decisions are being counted. */
typedef struct counting {
    const regions *r;
    region_site *site;
} counting;

static cairn_status count_bytes(void *arg, size_t var, const crn_boxes *boxes)
{
    counting *k = arg;
    k->site->kept += crn_boxes_volume(boxes) * k->r->var.at[var].item;
    return CAIRN_OK;
}

static cairn_status begin_shadow(regions *r, region_site *s)
{
    counting k = {r, s};
    if (s->shadow.nvars != r->var.n) {
        crn_decision_done(&s->shadow);
        CRN_TRY(crn_decision_init(&s->shadow, r->var.n));
    }
    s->shadowed = true;
    s->began = r->count;
    s->kept = 0;
    CRN_TRY(crn_decision_begin(&s->shadow, &r->var, count_bytes, &k));
    return crn_scopes_decide(r, &s->shadow, count_bytes, &k);
}

static void end_shadow(region_site *s)
{
    s->shadowed = false;
    s->nsamples++;
    s->sum += (double)s->kept;
    s->sum_square += (double)s->kept * (double)s->kept;
}

static cairn_status step_shadow(regions *r, region_site *s, const crn_accesses *a)
{
    counting k = {r, s};
    if (r->count - s->began >= r->limit) {
        CRN_TRY(crn_decision_end(&s->shadow, &r->var, count_bytes, &k));
        end_shadow(s);
        return CAIRN_OK;
    }
    CRN_TRY(crn_decision_step(&s->shadow, &r->var, a, count_bytes, &k));
    if (crn_decision_is_made(&s->shadow))
        end_shadow(s);
    return CAIRN_OK;
}

cairn_status crn_shadow_step(regions *r, uint32_t list)
{
    const region_list *l = &r->list.at[list];
    const crn_accesses a = {l->access, l->nused, l->touched};
    region_site *here = &r->site.at[l->site];
    here->gap = CRN_MAX(here->gap, r->count - here->last);
    here->last = r->count;
    here->count++;
    if (!here->shadowed)
        CRN_TRY(begin_shadow(r, here));
    for (size_t i = 0; i < r->site.n; i++)
        if (r->site.at[i].shadowed)
            CRN_TRY(step_shadow(r, &r->site.at[i], &a));
    return CAIRN_OK;
}

/* May marks begin here: is it met often enough, all through the program? */
static bool is_candidate(const regions *r, const region_site *s)
{
    const uint64_t gap = CRN_MAX(s->gap, r->count - s->last);
    return s->count >= 3 && s->nsamples > 0 && gap < r->count / 10;
}

/* Is enough known of all sites? Of one that was met once it is not known whether it comes back, and
 * one whose visits lie far apart is no candidate for long: both may be better places, and the cost
 * of waiting is that of shadows. */
static bool is_settled(const regions *r)
{
    enum { ONCE = 100000, FAR = 10000000 };
    for (size_t i = 0; i < r->site.n; i++) {
        const region_site *s = &r->site.at[i];
        if (!is_candidate(r, s) && r->count < (s->count == 1 ? ONCE : FAR))
            return false;
    }
    return true;
}

/* The means of all ranks count together, and what one rank cannot say, none can. */
cairn_status crn_regions_choose(regions *r, uint32_t *ret_site, bool *ret_settled)
{
    crn_comm *comm = crn_ckpt_comm(r->c);
    uint64_t n[2] = {r->site.n, ~(uint64_t)r->site.n};
    *ret_site = UINT32_MAX;
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, n, 2));
    CRN_FAIL_IF(n[0] != ~n[1], CAIRN_EMISMATCH,
                "the ranks have met different regions: from %" PRIu64 " to %" PRIu64 " sites",
                ~n[1], n[0]);
    r->mean.n = 0;
    CRN_TRY(crn_comm_agree(comm, crn_vec_reserve(&r->mean, r->site.n + 1)));
    double *mean = r->mean.at;
    for (size_t i = 0; i < r->site.n; i++) {
        const region_site *s = &r->site.at[i];
        mean[i] = is_candidate(r, s) ? s->sum / (double)s->nsamples : 1e300;
    }
    mean[r->site.n] = !is_settled(r);
    cairn_status rc = crn_comm_allreduce_f64(comm, CRN_REDUCE_SUM, mean, r->site.n + 1);
    double best = 1e300;
    *ret_settled = mean[r->site.n] == 0;
    for (size_t i = 0; rc == CAIRN_OK && i < r->site.n; i++)
        if (mean[i] < best) {
            best = mean[i];
            *ret_site = (uint32_t)i;
        }
    r->mean.n = rc == CAIRN_OK ? r->site.n : 0;
    return rc;
}
