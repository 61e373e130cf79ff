/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mark whose own part has no room for it, or whose local disk fails, and which was to reach the
 * trail, or whose level was left to Cairn: it goes to the trail directly. This rank decides alone;
 * the others learn of it when the mark is shared, and then it counts at the global level only. The
 * next mark tries the own part again.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>

bool crn_divert_is_allowed(const cairn *c)
{
    const ckpt_job *j = &c->leg.job;
    return c->held.local && (j->any_level || j->levels & 1u << CRN_LEVEL_GLOBAL);
}

bool crn_divert_helps(const cairn *c, cairn_status rc)
{
    return (rc == CAIRN_ENOSPC || rc == CAIRN_EIO) && !c->leg.job.diverted &&
           crn_divert_is_allowed(c);
}

static cairn_status divert(cairn *c, size_t nvars, crn_draft **ret)
{
    ckpt_job *j = &c->leg.job;
    CRN_TRY(crn_vault_divert(c->held.vault, j->version, ret, &j->anew));
    crn_draft_set_time(*ret, j->wall_ns);
    return j->draft ? crn_draft_move(j->draft, nvars, *ret, j->anew) : CAIRN_OK;
}

cairn_status crn_divert(cairn *c, size_t nvars)
{
    ckpt_job *j = &c->leg.job;
    const crn_err why = *crn_err_peek();
    crn_draft *to = NULL;
    if (divert(c, nvars, &to) < 0) {
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_EACH,
                      "mark %" PRIu64 " cannot go to the trail directly, either: %s", j->version,
                      crn_err_peek()->text);
        crn_draft_drop(to);
        return crn_err_give(&why);
    }
    crn_draft_drop(j->draft);
    j->draft = to;
    j->diverted = true;
    j->no_room = why;
    return CAIRN_OK;
}

/* Memory is compared with what the trail has: what the kernel knows of changes is about the own
 * part, and stays as it is for the next mark there. */
cairn_status crn_divert_put(cairn *c, const ckpt_var *v)
{
    ckpt_job *j = &c->leg.job;
    const crn_var_spec spec = crn_ckpt_spec(v);
    crn_put how = {.way = j->anew ? CRN_PUT_FULL : CRN_PUT_COMPARE};
    size_t number;
    CRN_TRY(crn_draft_add(j->draft, &spec, &number));
    crn_coded_put(c, v->name, v->small, number);
    if (v->padded)
        return crn_ckpt_put_padded(j->draft, number, v, &how);
    return crn_draft_put_changed(j->draft, number, v->data, &how);
}
