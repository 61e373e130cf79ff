/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The first members and the update of a cycle. All random numbers
 * are keyed by member and element, and all sums run by index: nothing depends on who computed what,
 * or when.
 */
#include "ensemble/ensemble_update.h"

#include <inttypes.h>
#include <math.h>

#include "hash/hash.h"

cairn_status crn_analysis_first(crn_server *s)
{
    crn_purpose purpose = s->twin ? CRN_FOR_TRUTH : CRN_FOR_INITIAL;
    for (uint32_t m = 0; m < s->nmembers; m++)
        CRN_TRY(crn_perturb(s, purpose, 0, m, 1, s->background[0], s->analysis[m]));
    return CAIRN_OK;
}

/* --- a member that has failed --------------------------------------------------------------- */

/* Another member's background, with a perturbation of its own, in its place. */
static cairn_status donate(crn_server *s, uint32_t member)
{
    const crn_rng_key key = {s->study->seed, CRN_FOR_DONOR, s->cycle, member};
    uint64_t nth = crn_rng_at(&key, UINT64_MAX) % s->ndone;
    uint32_t donor = 0;
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state == CRN_MEMBER_DONE && nth-- == 0)
            donor = m;
    CRN_TRY(crn_study_append(s->study, "ledger", "donor %u %u %u", s->cycle, member, donor));
    CRN_TRY(crn_perturb(s, CRN_FOR_DONOR, s->cycle, member, 0.1, s->background[donor],
                        s->background[member]));
    crn_study_event(s->study, "donor", "{s:i,s:i,s:i}", "cycle", s->cycle, "member", member,
                    "donor", donor);
    return crn_states_put_background(s, member);
}

static cairn_status drop(crn_server *s, uint32_t member)
{
    CRN_FAIL_IF(s->nactive - 1 < s->study->min_members, CAIRN_EPEER,
                "member %u has failed, and without it there are fewer than min_members (%u)",
                member, s->study->min_members);
    CRN_TRY(crn_study_append(s->study, "ledger", "dropped %u %u", s->cycle, member));
    s->member[member].state = CRN_MEMBER_DROPPED;
    s->nactive--;
    crn_study_event(s->study, "dropped", "{s:i,s:i}", "cycle", s->cycle, "member", member);
    return CAIRN_OK;
}

/* Donors are those that are done by themselves: so all are replaced before any counts. */
static cairn_status settle_failed(crn_server *s)
{
    for (uint32_t m = 0; m < s->nmembers; m++) {
        if (s->member[m].state != CRN_MEMBER_FAILED)
            continue;
        if (s->study->failing == CRN_FAILING_DROP || s->ndone == 0)
            CRN_TRY(drop(s, m));
        else
            CRN_TRY(donate(s, m));
    }
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state == CRN_MEMBER_FAILED) {
            s->member[m].state = CRN_MEMBER_DONE;
            s->ndone++;
        }
    return CAIRN_OK;
}

/* --- the update ----------------------------------------------------------------------------- */

void crn_update_done(crn_update *u)
{
    crn_diagnose_done(u);
    crn_obs_set_free(u->set);
    for (int k = 0; k < 4; k++)
        free(u->product[k]);
    free(u->from);
    free(u->to);
    free(u->seen);
    free(u->y);
    free(u->value);
    free(u->variance);
    free(u->place);
    free(u->radius);
    free(u->number);
    free(u->block);
    free(u->truth);
    free(u->score);
}

static cairn_status take_members(crn_server *s, crn_update *u)
{
    const uint64_t every = s->study->products_every;
    u->s = s;
    u->products = every > 0 && s->cycle % every == 0;
    CRN_TRY(crn_alloc(&u->from, s->nactive));
    CRN_TRY(crn_alloc(&u->to, s->nactive));
    CRN_TRY(crn_alloc(&u->score, s->layout.field.n));
    if (s->async.cycle == s->cycle && s->async.row)
        CRN_TRY(crn_alloc(&u->seen, s->nactive));
    for (int k = 0; u->products && k < 4; k++)
        CRN_TRY(crn_alloc(&u->product[k], s->layout.nrows));
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state == CRN_MEMBER_DONE) {
            if (u->seen)
                u->seen[u->n] = s->async.row[m].entry;
            u->from[u->n] = s->background[m];
            u->to[u->n++] = s->analysis[m];
            memcpy(s->analysis[m], s->background[m], s->layout.nbytes);
        }
    return crn_truth_get(u);
}

/* Without observations members run free, but for what the study wants to know of them. */
static cairn_status compute(crn_server *s, crn_update *u)
{
    CRN_TRY(take_members(s, u));
    if (s->obs) {
        CRN_TRY(crn_update_observe(u));
        CRN_TRY(crn_diagnose(u));
        CRN_TRY(crn_adapt(u));
    }
    CRN_TRY(crn_update_fields(u));
    if (s->obs)
        CRN_TRY(crn_diagnose_write(u));
    return u->products ? crn_products_put(u) : CAIRN_OK;
}

/* One number for all of the analysis, by which two studies are compared. */
static void name_analysis(const crn_server *s, char text[CRN_DIGEST_TEXT])
{
    crn_digest all = {0};
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state == CRN_MEMBER_DONE) {
            const crn_digest both[] = {all, crn_digest_of(s->analysis[m], s->layout.nbytes)};
            all = crn_digest_of(both, sizeof both);
        }
    crn_digest_format(&all, text);
}

/* What the log has of an update; the tables have more. */
static void log_update(crn_update *u, double seconds)
{
    const crn_server *s = u->s;
    const crn_innovations none = {0}, *all = u->row.n > 0 ? &u->row.at[0] : &none;
    char digest[CRN_DIGEST_TEXT];
    name_analysis(s, digest);
    crn_study_event(
        s->study, "analysis", "{s:i,s:i,s:I,s:I,s:o,s:o,s:o,s:o,s:f,s:s}", "cycle", s->cycle,
        "members", (int)u->n, "observations", (json_int_t)all->n, "rejected",
        (json_int_t)(u->set ? u->set->rejected.n : 0), "innovation", crn_study_real(all->rms),
        "spread", crn_study_real(all->spread), "chi2", crn_study_real(all->chi2), "inflation",
        crn_study_real(u->c.prior > 0 ? u->c.prior : 1), "seconds", seconds, "digest", digest);
}

cairn_status crn_analysis_update(crn_server *s)
{
    crn_update u = {0};
    const uint64_t begun = crn_now_ns();
    if (s->twin)
        return crn_twin_observe(s);
    CRN_TRY(settle_failed(s));
    crn_study_event(s->study, "update", "{s:i,s:i}", "cycle", s->cycle, "members", s->ndone);
    crn_keeper_join(s); /* it reads the analysis that is about to change */
    cairn_status rc = compute(s, &u);
    if (rc == CAIRN_OK)
        log_update(&u, (double)(crn_now_ns() - begun) / 1e9);
    if (rc == CAIRN_OK && s->obs)
        rc = crn_diagnose_judge(&u);
    crn_update_done(&u);
    return rc;
}
