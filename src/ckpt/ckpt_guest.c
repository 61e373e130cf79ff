/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What modules above the public line see of a session.
 */
#include "ckpt/ckpt_session.h"

crn_guest *crn_ckpt_guest(cairn *c)
{
    return &c->guest;
}

crn_comm *crn_ckpt_comm(const cairn *c)
{
    return c->held.comm;
}

const crn_log *crn_ckpt_log(const cairn *c)
{
    return &c->held.log;
}

void crn_ckpt_event(cairn *c, crn_event *e)
{
    (void)crn_holding_event(&c->held, e);
}

bool crn_ckpt_checks(const cairn *c)
{
    return crn_config_bool(c->held.cfg, CRN_OPT_REGION_CHECK);
}

cairn_status crn_ckpt_memory(cairn *c, const char *name, unsigned char **ret_data,
                             crn_box *ret_piece, crn_box *ret_memory)
{
    const ckpt_var *v = crn_ckpt_find(c, name);
    CRN_FAIL_IF(!v, CAIRN_ENOTFOUND, "no variable '%s' is protected", name);
    *ret_data = (unsigned char *)v->data;
    *ret_piece = *ret_memory = (crn_box){0};
    if (v->layout == CRN_LAYOUT_PIECE) {
        const crn_var_spec spec = crn_ckpt_spec(v);
        *ret_piece = crn_far_piece(&spec);
        *ret_memory = v->memory;
    }
    return CAIRN_OK;
}

const char *crn_ckpt_next_var(const cairn *c, size_t *i)
{
    while (*i < c->var.n) {
        const ckpt_var *v = &c->var.at[(*i)++];
        if (v->layout != CRN_LAYOUT_INDEX && v->layout != CRN_LAYOUT_HALO)
            return v->name;
    }
    return NULL;
}

cairn_status crn_ckpt_shape(cairn *c, const char *name, crn_box *ret, uint64_t *ret_item)
{
    const ckpt_var *v = crn_ckpt_find(c, name);
    CRN_FAIL_IF(!v, CAIRN_ENOTFOUND, "no variable '%s' is protected", name);
    const uint64_t n = v->nbytes / v->item;
    *ret_item = v->item;
    *ret = crn_box_of(1, NULL, &n);
    if (v->layout == CRN_LAYOUT_PIECE)
        *ret = crn_box_of(v->ndims, NULL, v->dims + 2 * (size_t)v->ndims);
    return CAIRN_OK;
}

bool crn_ckpt_wants_last(const cairn *c)
{
    return c->stopping && !c->marked_since_stop;
}
