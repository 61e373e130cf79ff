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
    const crn_purpose purpose = s->twin ? CRN_FOR_TRUTH : CRN_FOR_INITIAL;
    crn_gathered first = {0};
    uint8_t *all = NULL;
    cairn_status rc = crn_ranks_collect(s, s->background[0], CRN_COMM_ALL, &first);
    CRN_TRY(rc);
    rc = crn_alloc(&all, s->nmembers);
    for (uint32_t m = 0; rc == CAIRN_OK && m < s->nmembers; m++) {
        all[m] = 1;
        if (crn_ranks_has_home(&s->ranks, m))
            rc = crn_perturb(s, purpose, 0, m, 1, first.data, s->whole[m]);
    }
    rc = crn_comm_agree(s->ranks.comm, rc);
    if (rc == CAIRN_OK && s->ranks.size > 1)
        rc = crn_ranks_scatter(s, all, s->whole, s->analysis);
    crn_gathered_done(&first);
    free(all);
    return rc;
}

/* --- a member that has failed --------------------------------------------------------------- */

/* The donor's whole background, perturbed, to the member's home, and from there to all ranks. */
static cairn_status give_whole(crn_server *s, uint32_t member, unsigned char *whole)
{
    uint8_t *one = NULL;
    CRN_TRY(crn_comm_agree(s->ranks.comm, crn_alloc(&one, s->nmembers)));
    one[member] = 1;
    s->whole[member] = whole;
    cairn_status rc = crn_ranks_scatter(s, one, s->whole, s->background);
    free(one);
    return rc;
}

static cairn_status replace(crn_server *s, uint32_t member, uint32_t donor)
{
    const bool alone = s->ranks.size == 1, home = crn_ranks_has_home(&s->ranks, member);
    crn_gathered from = {0};
    cairn_status rc;
    unsigned char *to = alone ? s->background[member] : s->whole[member];
    CRN_TRY(crn_ranks_collect(s, s->background[donor], (int)(member % s->ranks.size), &from));
    rc = home ? crn_perturb(s, CRN_FOR_DONOR, s->cycle, member, 0.1, from.data, to) : CAIRN_OK;
    if (rc == CAIRN_OK && home)
        rc = crn_states_put_background(s, member, to);
    crn_gathered_done(&from);
    rc = crn_comm_agree(s->ranks.comm, rc);
    return rc == CAIRN_OK && !alone ? give_whole(s, member, to) : rc;
}

/* Another member's background, with a perturbation of its own, in its place. */
static cairn_status donate(crn_server *s, uint32_t member)
{
    const crn_rng_key key = {s->study->seed, CRN_FOR_DONOR, s->cycle, member};
    uint64_t nth = crn_rng_at(&key, UINT64_MAX) % s->ndone;
    uint32_t donor = 0;
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state == CRN_MEMBER_DONE && nth-- == 0)
            donor = m;
    cairn_status rc =
        crn_study_append(s->study, "ledger", "donor %u %u %u", s->cycle, member, donor);
    CRN_TRY(crn_comm_agree(s->ranks.comm, rc));
    CRN_TRY(replace(s, member, donor));
    crn_study_event(s->study, "donor", "{s:i,s:i,s:i}", "cycle", s->cycle, "member", member,
                    "donor", donor);
    return CAIRN_OK;
}

static cairn_status drop(crn_server *s, uint32_t member)
{
    CRN_FAIL_IF(s->nactive - 1 < s->study->min_members, CAIRN_EPEER,
                "member %u has failed, and without it there are fewer than min_members (%u)",
                member, s->study->min_members);
    cairn_status rc = crn_study_append(s->study, "ledger", "dropped %u %u", s->cycle, member);
    CRN_TRY(crn_comm_agree(s->ranks.comm, rc));
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
    crn_vec_done(&u->stretch);
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
    CRN_TRY(crn_update_rows(u));
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state == CRN_MEMBER_DONE) {
            if (u->seen)
                u->seen[u->n] = s->async.row[m].entry;
            u->from[u->n] = s->background[m];
            u->to[u->n++] = s->analysis[m];
            memcpy(s->analysis[m], s->background[m], crn_slice_nbytes(&s->layout));
        }
    return crn_truth_get(u);
}

/* What rank 0 says of the observations, and what it asks for. */
static cairn_status judge_observations(crn_update *u)
{
    const bool head = u->s->ranks.rank == 0;
    cairn_status rc = head ? crn_diagnose(u) : CAIRN_OK;
    if (head && rc == CAIRN_OK)
        rc = crn_adapt(u);
    return crn_ranks_share(u->s, rc, &u->c.prior, sizeof u->c.prior);
}

static cairn_status write_results(crn_update *u)
{
    CRN_TRY(crn_update_collect(u));
    if (u->s->ranks.rank > 0)
        return CAIRN_OK;
    if (u->s->obs)
        CRN_TRY(crn_diagnose_write(u));
    return u->products ? crn_products_put(u) : CAIRN_OK;
}

/* Analyses to their homes. */
static cairn_status bring_home(crn_server *s)
{
    uint8_t *done;
    if (s->ranks.size == 1)
        return CAIRN_OK;
    CRN_TRY(crn_comm_agree(s->ranks.comm, crn_alloc(&done, s->nmembers)));
    for (uint32_t m = 0; m < s->nmembers; m++)
        done[m] = s->member[m].state == CRN_MEMBER_DONE;
    cairn_status rc = crn_ranks_gather(s, done, s->analysis, s->whole);
    free(done);
    return rc;
}

/* Without observations members run free, but for what the study wants to know of them. Each step
 * has one status on all ranks. */
static cairn_status compute(crn_server *s, crn_update *u)
{
    crn_comm *comm = s->ranks.comm;
    CRN_TRY(crn_comm_agree(comm, take_members(s, u)));
    if (s->obs) {
        CRN_TRY(crn_update_observe(u));
        CRN_TRY(judge_observations(u));
    }
    CRN_TRY(crn_update_fields(u));
    CRN_TRY(crn_comm_agree(comm, write_results(u)));
    return bring_home(s);
}

/* One number for all of the analysis, by which two studies are compared: from those of members,
 * which each rank has of its own. */
static cairn_status name_analysis(const crn_server *s, char text[CRN_DIGEST_TEXT])
{
    const size_t n = s->nmembers;
    crn_digest all = {0}, *own = NULL, *every = NULL;
    cairn_status rc = crn_alloc(&own, n);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&every, n * s->ranks.size);
    for (uint32_t m = 0; rc == CAIRN_OK && m < n; m++)
        if (s->member[m].state == CRN_MEMBER_DONE && crn_ranks_has_home(&s->ranks, m))
            own[m] = crn_digest_of(s->whole[m], s->layout.nbytes);
    rc = crn_comm_agree(s->ranks.comm, rc);
    if (rc == CAIRN_OK)
        rc = crn_comm_gather(s->ranks.comm, own, n * sizeof *own, 0, every);
    for (uint32_t m = 0; rc == CAIRN_OK && s->ranks.rank == 0 && m < n; m++)
        if (s->member[m].state == CRN_MEMBER_DONE) {
            const crn_digest both[] = {all, every[m % s->ranks.size * n + m]};
            all = crn_digest_of(both, sizeof both);
        }
    free(own);
    free(every);
    crn_digest_format(&all, text);
    return rc;
}

/* What the log has of an update; the tables have more. */
static cairn_status log_update(crn_update *u, uint64_t begun_ns)
{
    const crn_server *s = u->s;
    const crn_innovations none = {0}, *all = u->row.n > 0 ? &u->row.at[0] : &none;
    char digest[CRN_DIGEST_TEXT];
    CRN_TRY(name_analysis(s, digest));
    const double seconds = (double)(crn_now_ns() - begun_ns) / 1e9;
    crn_study_event(
        s->study, "analysis", "{s:i,s:i,s:I,s:I,s:o,s:o,s:o,s:o,s:f,s:s}", "cycle", s->cycle,
        "members", (int)u->n, "observations", (json_int_t)all->n, "rejected",
        (json_int_t)(u->set ? u->set->rejected.n : 0), "innovation", crn_study_real(all->rms),
        "spread", crn_study_real(all->spread), "chi2", crn_study_real(all->chi2), "inflation",
        crn_study_real(u->c.prior > 0 ? u->c.prior : 1), "seconds", seconds, "digest", digest);
    return CAIRN_OK;
}

/* What all ranks must know of the members before an update: the rest of a row is rank 0's. */
static cairn_status share_members(crn_server *s)
{
    uint8_t *state;
    CRN_TRY(crn_comm_agree(s->ranks.comm, crn_alloc(&state, s->nmembers)));
    for (uint32_t m = 0; m < s->nmembers; m++)
        state[m] = (uint8_t)s->member[m].state;
    cairn_status rc = crn_ranks_share(s, CAIRN_OK, state, s->nmembers);
    s->ndone = 0;
    for (uint32_t m = 0; rc == CAIRN_OK && m < s->nmembers; m++) {
        s->member[m].state = (crn_member_state)state[m];
        s->ndone += state[m] == CRN_MEMBER_DONE;
    }
    free(state);
    return rc;
}

cairn_status crn_analysis_update(crn_server *s)
{
    crn_update u = {0};
    const uint64_t begun = crn_now_ns();
    if (s->twin)
        return crn_twin_observe(s);
    crn_keeper_join(s); /* it reads the analysis that is about to change */
    CRN_TRY(share_members(s));
    CRN_TRY(settle_failed(s));
    crn_study_event(s->study, "update", "{s:i,s:i}", "cycle", s->cycle, "members", s->ndone);
    cairn_status rc = compute(s, &u);
    if (rc == CAIRN_OK)
        rc = log_update(&u, begun);
    if (rc == CAIRN_OK && s->obs)
        rc = crn_comm_agree(s->ranks.comm, s->ranks.rank == 0 ? crn_diagnose_judge(&u) : CAIRN_OK);
    crn_update_done(&u);
    return rc;
}
