/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arbiter: whose state counts, where several have it, and whether there is room for another.
 */
#include "state/state_shelf.h"

#include <inttypes.h>

cairn_status crn_state_judge(const state_entry *there, const state_entry *mine)
{
    char old[STATE_DIGEST_TEXT], new[STATE_DIGEST_TEXT];
    if (crn_digest_equal(&there->digest, &mine->digest))
        return CAIRN_NOTHING;
    return crn_fail(CAIRN_EMISMATCH,
                    "another one was put before, by writer %" PRIu32 ", and has digest %s, not %s",
                    there->series, crn_state_digest_text(&there->digest, old),
                    crn_state_digest_text(&mine->digest, new));
}

static bool is_put_of(const state_entry *a, const state_entry *b)
{
    return a->series == b->series && a->wall_ns == b->wall_ns;
}

/* Enter it where old, if it is not NULL, may stand. */
static cairn_status enter(cairn_shelf *s, const state_entry *e, const state_entry *old)
{
    const crn_state_name name = {e->key, e->version};
    state_entry mine = *e;
    mine.pins = old ? old->pins : 0;
    crn_stage_enter(CRN_STAGE_COMMIT);
    const cairn_status rc = crn_state_index_put(s->index, &mine);
    if (rc < 0) { /* it may stand there all the same */
        const crn_err why = *crn_err_peek();
        (void)(old ? crn_state_index_put(s->index, old) : crn_state_index_remove(s->index, name));
        return crn_err_give(&why);
    }
    return CAIRN_OK;
}

/* With the lock of its bucket. */
static cairn_status list(cairn_shelf *s, const state_entry *e, const state_entry *old)
{
    const crn_state_name name = {e->key, e->version};
    state_entry there;
    const cairn_status found = crn_state_index_find(s->index, name, &there);
    if (found == CAIRN_OK && is_put_of(&there, e))
        return CAIRN_OK; /* whoever mended the bucket has listed it */
    if (found == CAIRN_OK && old && is_put_of(&there, old))
        return enter(s, e, &there);
    if (found != CAIRN_NOTHING)
        return found == CAIRN_OK ? crn_state_judge(&there, e) : found;
    return enter(s, e, NULL);
}

void crn_state_unlist(cairn_shelf *s, const state_entry *e)
{
    const crn_state_name name = {e->key, e->version};
    state_entry there;
    if (crn_state_index_lock(s->index, name) < 0)
        return;
    if (crn_state_index_find(s->index, name, &there) == CAIRN_OK && is_put_of(&there, e))
        (void)crn_state_index_remove(s->index, name);
    crn_state_index_unlock(s->index, name);
}

static int count(void *arg, const state_entry *e)
{
    state_census *c = arg;
    c->nstates++;
    c->nbytes += e->nbytes;
    return 0;
}

cairn_status crn_state_count(cairn_shelf *s, state_census *ret)
{
    *ret = (state_census){0};
    return crn_state_index_scan(s->index, count, ret);
}

static bool is_limited(const cairn_shelf *s)
{
    return crn_config_count(s->cfg, CRN_OPT_STATE_MAX_STATES) != UINT64_MAX ||
           crn_config_nbytes(s->cfg, CRN_OPT_STATE_MAX_BYTES) != UINT64_MAX;
}

cairn_status crn_state_limits(cairn_shelf *s, const state_entry *e)
{
    const uint64_t states = crn_config_count(s->cfg, CRN_OPT_STATE_MAX_STATES);
    const uint64_t nbytes = crn_config_nbytes(s->cfg, CRN_OPT_STATE_MAX_BYTES);
    state_census c;
    if (!is_limited(s))
        return CAIRN_OK;
    CRN_TRY(crn_state_count(s, &c));
    CRN_FAIL_IF(c.nstates >= states, CAIRN_ENOSPC,
                "the shelf has %" PRIu64 " states, and state.max_states allows no more: drop one",
                c.nstates);
    CRN_FAIL_IF(e->nbytes > nbytes || c.nbytes > nbytes - e->nbytes, CAIRN_ENOSPC,
                "the shelf has %" PRIu64 " bytes, and state.max_bytes does not allow %" PRIu64
                " more: drop something",
                c.nbytes, e->nbytes);
    return CAIRN_OK;
}

static cairn_status claim(cairn_shelf *s, const state_entry *e, const state_entry *old)
{
    const crn_state_name name = {e->key, e->version};
    CRN_TRY(crn_state_index_lock(s->index, name));
    const cairn_status rc = list(s, e, old);
    crn_state_index_unlock(s->index, name);
    return rc;
}

/* Of several that come to a limit at once, each counts what those before it have listed. */
cairn_status crn_state_claim(cairn_shelf *s, const state_entry *e, const state_entry *old)
{
    if (!is_limited(s))
        return claim(s, e, old);
    CRN_TRY(crn_state_index_hold(s->index));
    cairn_status rc = crn_state_index_find(s->index, (crn_state_name){e->key, e->version}, NULL);
    if (rc == CAIRN_NOTHING)
        rc = crn_state_limits(s, e);
    if (rc >= 0)
        rc = claim(s, e, old);
    crn_state_index_release(s->index);
    return rc;
}
