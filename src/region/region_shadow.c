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

void crn_shadows_forget(regions *r)
{
    for (size_t i = 0; i < r->site.n; i++)
        r->site.at[i].shadowed = false;
    r->undecided.n = 0;
}

/* What the shadow of a site has undecided, beside that of the others: a look at all of them is one
 * at little memory. */
static void copy_undecided(regions *r, size_t site)
{
    const region_site *s = &r->site.at[site];
    const size_t words = crn_bits_words(r->var.n);
    uint64_t *to = r->undecided.at + site * words;
    for (size_t w = 0; w < words; w++)
        to[w] = s->shadowed ? s->shadow.open[w] : 0;
    if (s->shadowed)
        r->expires = CRN_MIN(r->expires, s->began + r->limit);
}

static cairn_status copy_all_undecided(regions *r)
{
    r->undecided.n = 0;
    CRN_TRY(crn_vec_reserve(&r->undecided, r->site.n * crn_bits_words(r->var.n)));
    r->undecided.n = r->site.n * crn_bits_words(r->var.n);
    r->expires = UINT64_MAX;
    for (size_t i = 0; i < r->site.n; i++)
        copy_undecided(r, i);
    return CAIRN_OK;
}

static bool is_met(const uint64_t *undecided, const uint64_t *touched, size_t words)
{
    uint64_t both = 0;
    for (size_t w = 0; w < words; w++)
        both |= undecided[w] & touched[w];
    return both != 0;
}

/* Bytes of the variables in a word of bits; false: they are not just the variables' own. */
static bool sum_bytes(const regions *r, size_t first, uint64_t bits, uint64_t *sum)
{
    for (; bits; bits &= bits - 1) {
        const crn_region_var *v = &r->var.at[first + (size_t)__builtin_ctzll(bits)];
        if (!v->all_modified)
            return false;
        *sum += v->nbytes;
    }
    return true;
}

/* The step of a shadow where no boxes come in, as it is in most programs: a few operations on bits.
 * False: nothing was done. */
static bool step_whole(regions *r, region_site *s, const region_list *l, uint64_t *undecided)
{
    const size_t words = crn_bits_words(r->var.n);
    uint64_t sum = 0, left = 0;
    if (!l->whole)
        return false;
    for (size_t w = 0; w < words; w++) {
        const uint64_t met = undecided[w] & l->touched[w];
        if (met & s->shadow.known[w] || !sum_bytes(r, 64 * w, met & l->reads[w], &sum))
            return false;
    }
    for (size_t w = 0; w < words; w++)
        left |= undecided[w] = s->shadow.open[w] &= ~l->touched[w];
    s->kept += sum;
    if (!left)
        end_shadow(s);
    return true;
}

static cairn_status step_all(regions *r, const region_list *l)
{
    const crn_accesses a = {l->access, l->nused, l->touched};
    const size_t words = crn_bits_words(r->var.n);
    const bool late = r->count >= r->expires;
    for (size_t i = 0; i < r->site.n; i++) {
        region_site *s = &r->site.at[i];
        uint64_t *undecided = r->undecided.at + i * words;
        if (!late && (!is_met(undecided, l->touched, words) || step_whole(r, s, l, undecided)))
            continue;
        if (s->shadowed)
            CRN_TRY(step_shadow(r, s, &a));
        copy_undecided(r, i);
    }
    return late ? copy_all_undecided(r) : CAIRN_OK;
}

cairn_status crn_shadow_step(regions *r, uint32_t list)
{
    const region_list *l = &r->list.at[list];
    region_site *here = &r->site.at[l->site];
    here->gap = CRN_MAX(here->gap, r->count - here->last);
    here->last = r->count;
    here->count++;
    const bool begins = !here->shadowed;
    if (begins)
        CRN_TRY(begin_shadow(r, here));
    if (r->undecided.n != r->site.n * crn_bits_words(r->var.n))
        CRN_TRY(copy_all_undecided(r));
    else if (begins)
        copy_undecided(r, l->site);
    if (begins && crn_decision_is_made(&here->shadow))
        end_shadow(here);
    return step_all(r, l);
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
