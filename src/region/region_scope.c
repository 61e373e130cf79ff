/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scopes: work that is declared in part. The beginning of a scope is a region that may do anything
 * with the variables that no region of the scope has named so far. When the scope is over, what the
 * log has of its inside goes, and a line "scope NAME" stands for all of it; a mark whose place lies
 * in the scope has "scope NAME {" and what followed instead.
 */
#include "region/region_session.h"

#include <stdio.h>
#include <string.h>

static const region_scope *innermost(const regions *r)
{
    return r->scope.n > 0 ? &r->scope.at[r->scope.n - 1] : NULL;
}

void crn_scopes_mention(regions *r, uint32_t list)
{
    const region_list *l = &r->list.at[list];
    for (size_t i = 0; i < r->scope.n; i++) {
        uint64_t *bits = r->site.at[r->scope.at[i].site].mentioned;
        for (size_t w = 0; w < REGION_WORDS; w++)
            bits[w] |= l->touched[w];
    }
}

cairn_status crn_scopes_decide(const regions *r, crn_decision *d, crn_keep_fn *keep, void *arg)
{
    for (size_t i = 0; i < r->scope.n; i++) {
        const region_site *s = &r->site.at[r->scope.at[i].site];
        const region_list *l = &r->list.at[s->last_list];
        for (size_t k = 0; k < l->n; k++) /* what the scope's beginning spoke of */
            if (!crn_bit(s->mentioned, l->given[k].var - 1))
                CRN_TRY(crn_decision_end_var(d, &r->var, l->given[k].var - 1, keep, arg));
    }
    return CAIRN_OK;
}

/* The line that stands for a scope that is over, of the one that begins it. */
static cairn_status tell_whole(regions *r, uint32_t site, uint32_t *ret)
{
    crn_buf b = {0};
    crn_put_text(&b, "scope %s", r->site.at[site].name);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        rc = crn_regions_tell_text(r, crn_buf_text(&b), ret);
    crn_buf_done(&b);
    return rc;
}

bool crn_scope_is_skipped(regions *r, uint32_t list)
{
    uint32_t whole;
    return r->at < r->log.n && tell_whole(r, r->list.at[list].site, &whole) == CAIRN_OK &&
           crn_regions_peek(r) == (uint64_t)whole + 1;
}

static int enter_scope(regions *r, const char *site, const cairn_access *access, size_t n)
{
    uint32_t list;
    CRN_TRY(crn_regions_scope_list(r, site, access, n, &list));
    const bool back = r->phase == REGION_REPLAY;
    const region_scope s = {
        .site = r->list.at[list].site, .log_at = back ? r->at : r->log.n, .full = r->full};
    const int rc = crn_regions_pass(r, list);
    if (rc > 0)
        CRN_TRY(crn_vec_push(&r->scope, s));
    return rc;
}

int cairn_scope_enter(cairn *c, const char *site, const cairn_access *access, size_t n)
{
    return crn_regions_call(c, site, access, n, enter_scope);
}

/* In the log the scope becomes one line, unless it began before the log does. */
static cairn_status end_scope(regions *r)
{
    const region_scope *s = innermost(r);
    uint32_t whole = 0;
    if (r->broken.code < 0 || r->phase == REGION_FORWARD)
        return CAIRN_OK;
    CRN_FAIL_IF(!s, CAIRN_EINVAL, "cairn_scope_end: no scope is open");
    CRN_FAIL_IF(r->phase == REGION_REPLAY, CAIRN_EMISMATCH,
                "on the way back to a mark: scope '%s' ends, and its place lies in it",
                r->site.at[s->site].name);
    CRN_TRY(tell_whole(r, s->site, &whole));
    crn_check_after(r);
    if (r->phase == REGION_RUN) {
        r->full = s->full;
        if (!r->full) {
            r->log.n = s->log_at;
            CRN_TRY(crn_regions_log_number(r, (uint64_t)whole + 1));
        }
    }
    r->scope.n--;
    return CAIRN_OK;
}

int cairn_scope_end(cairn *c)
{
    regions *r = c ? crn_ckpt_guest(c)->self : NULL;
    if (!r || r->phase == REGION_OFF)
        return crn_fail(CAIRN_EINVAL, "cairn_scope_end: there is no session with regions");
    return crn_ckpt_result(c, crn_regions_break(r, end_scope(r)));
}
