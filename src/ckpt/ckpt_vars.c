/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Protected variables: what the program has declared.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>

int crn_ckpt_result(cairn *c, cairn_status rc)
{
    if (rc < 0)
        crn_err_take(&c->err);
    return rc;
}

ckpt_var *crn_ckpt_find(cairn *c, const char *name)
{
    for (size_t i = 0; i < c->var.n; i++)
        if (strcmp(c->var.at[i].name, name) == 0)
            return &c->var.at[i];
    return NULL;
}

crn_var_spec crn_ckpt_spec(const ckpt_var *v)
{
    return (crn_var_spec){.name = v->name,
                          .type = v->type,
                          .item = v->item,
                          .block = v->block,
                          .nbytes = v->nbytes,
                          .ndims = v->ndims,
                          .global = v->dims,
                          .offset = v->dims + v->ndims,
                          .count = v->dims + 2 * (size_t)v->ndims};
}

/* Put v in the place of the variable with its name, or behind the others. Takes the name. */
static cairn_status declare(cairn *c, const char *name, ckpt_var v)
{
    ckpt_var *old = crn_ckpt_find(c, name);
    CRN_FAIL_IF(c->open && old && old->captured, CAIRN_EINVAL,
                "variable '%s' is part of the mark that is open", name);
    v.block = (uint32_t)crn_config_variable(c->cfg, CRN_OPT_VARIABLE_BLOCK, name).n;
    v.name = old ? old->name : (char *)name;
    crn_var_spec spec = crn_ckpt_spec(&v);
    CRN_TRY(crn_var_spec_check(&spec));
    if (old) {
        *old = v;
        return CAIRN_OK;
    }
    CRN_TRY(crn_vec_reserve(&c->var, 1));
    CRN_TRY(crn_strdup(name, &v.name));
    c->var.at[c->var.n++] = v;
    return CAIRN_OK;
}

static cairn_status protect(cairn *c, const char *name, void *data, cairn_type type, int ndims,
                            const uint64_t *global, const uint64_t *offset, const uint64_t *count)
{
    ckpt_var v = {.data = data, .ndims = (uint32_t)ndims};
    uint64_t items = 1;
    CRN_FAIL_IF(!name, CAIRN_EINVAL, "a variable needs a name");
    v.type = crn_ckpt_type(c, type, &v.item);
    CRN_FAIL_IF(!v.type, CAIRN_EINVAL, "variable '%s': there is no type %u", name, type);
    CRN_FAIL_IF(ndims < 1 || ndims > CRN_DIMS_MAX, CAIRN_EINVAL,
                "variable '%s': 1 to %d dimensions, not %d", name, CRN_DIMS_MAX, ndims);
    for (int d = 0; d < ndims; d++) {
        v.dims[d] = global[d];
        v.dims[ndims + d] = offset[d];
        v.dims[2 * ndims + d] = count[d];
        CRN_FAIL_IF(__builtin_mul_overflow(items, count[d], &items), CAIRN_EINVAL,
                    "variable '%s' is larger than any memory", name);
    }
    CRN_FAIL_IF(__builtin_mul_overflow(items, v.item, &v.nbytes), CAIRN_EINVAL,
                "variable '%s' is larger than any memory", name);
    CRN_FAIL_IF(!data && v.nbytes > 0, CAIRN_EINVAL, "variable '%s' has no address", name);
    return declare(c, name, v);
}

int cairn_protect_part(cairn *c, const char *name, void *data, cairn_type type, int ndims,
                       const uint64_t *global, const uint64_t *offset, const uint64_t *count)
{
    return crn_ckpt_result(c, protect(c, name, data, type, ndims, global, offset, count));
}

int cairn_protect(cairn *c, const char *name, void *data, cairn_type type, size_t count)
{
    /* Not a piece of anything: a variable of the rank's own, of which the shape is not kept. */
    const uint64_t n = count, zero = 0;
    cairn_status rc = protect(c, name, data, type, 1, &n, &zero, &n);
    if (rc == CAIRN_OK)
        crn_ckpt_find(c, name)->ndims = 0;
    return crn_ckpt_result(c, rc);
}

int cairn_release(cairn *c, const char *name)
{
    ckpt_var *v = crn_ckpt_find(c, name);
    if (!v)
        return crn_ckpt_result(c, crn_fail(CAIRN_ENOTFOUND, "no variable '%s' is protected", name));
    if (c->open && v->captured)
        return crn_ckpt_result(
            c, crn_fail(CAIRN_EINVAL, "variable '%s' is part of the mark that is open", name));
    free(v->name);
    size_t after = c->var.n - (size_t)(v - c->var.at) - 1;
    memmove(v, v + 1, after * sizeof *v);
    c->var.n--;
    return CAIRN_OK;
}
