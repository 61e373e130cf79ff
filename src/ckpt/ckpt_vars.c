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

cairn_status crn_ckpt_check_usable(cairn *c, const char *call)
{
    CRN_FAIL_IF(!c, CAIRN_EINVAL, "%s: there is no session: did cairn_open fail?", call);
    if (!c->held.vault)
        return crn_ckpt_result(c, crn_fail(CAIRN_EINVAL, "%s: %s can only be closed", call,
                                           c->ended ? "MPI has ended, and the session"
                                                    : "the session was not reopened, and"));
    return CAIRN_OK;
}

ckpt_var *crn_ckpt_find(cairn *c, const char *name)
{
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&c->var_name, crn_hash_text(name), &probe, &at);)
        if (strcmp(c->var.at[at].name, name) == 0)
            return &c->var.at[at];
    return NULL;
}

bool crn_ckpt_is_companion(const ckpt_var *v)
{
    return v->layout == CRN_LAYOUT_INDEX || v->layout == CRN_LAYOUT_HALO;
}

ckpt_var *crn_ckpt_find_declared(cairn *c, const char *name)
{
    ckpt_var *v = crn_ckpt_find(c, name);
    return v && !crn_ckpt_is_companion(v) ? v : NULL;
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
                          .count = v->dims + 2 * (size_t)v->ndims,
                          .attributes = v->lines ? v->lines : v->attributes};
}

crn_codec_setting crn_ckpt_codec(const void *cfg, const char *name)
{
    crn_codec_setting s = {0};
    (void)crn_codec_configured(cfg, name, &s); /* it was checked when the variable was declared */
    return s;
}

/* Bounds in words for a variable, and for members of its structures. */
static cairn_status parse_bounds(const char *text, bool all, ckpt_var *v)
{
    crn_named_bounds named = {0};
    const bool is_structure = v->type[0] == '{';
    char *members = NULL;
    cairn_status rc = crn_bounds_parse_named(text, v->bound, &v->nbounds, &named);
    if (rc == CAIRN_OK && named.n > 0 && (is_structure || !all))
        rc = crn_members_check(v->type, &named);
    if (rc == CAIRN_OK && is_structure)
        rc = crn_named_bounds_format(&named, &members);
    if (rc == CAIRN_OK && members && v->nbounds == 0)
        v->bound[v->nbounds++] = (crn_bound){0}; /* that of all other members */
    crn_named_bounds_done(&named);
    v->members = members;
    return rc;
}

/* Bounds that were given by call stay when a variable is protected again. */
static cairn_status take_bounds(const cairn *c, const ckpt_var *old, ckpt_var *v)
{
    v->members = NULL;
    if (crn_ckpt_is_companion(v))
        return CAIRN_OK;
    if (old && old->own_bounds) {
        memcpy(v->bound, old->bound, sizeof v->bound);
        v->nbounds = old->nbounds;
        v->own_bounds = true;
        const bool keeps = old->members && strcmp(old->type, v->type) == 0;
        return keeps ? crn_strdup(old->members, &v->members) : CAIRN_OK;
    }
    const char *text = crn_config_for_variable(c->held.cfg, CRN_OPT_VARIABLE_BOUND, v->name);
    cairn_status rc = parse_bounds(text, true, v);
    if (rc < 0)
        crn_err_prefix("configuration, bound of variable '%s': ", v->name);
    return rc;
}

/* Before a mark needs it: is the variable's codec in this build, and can it be loaded? What it may
 * lose is a line of the variable's, for readers and for the marks to come. */
static cairn_status take_codec(const cairn *c, ckpt_var *v)
{
    crn_codec_setting s;
    char text[CRN_CODEC_TEXT];
    CRN_TRY(crn_codec_configured(c->held.cfg, v->name, &s));
    if (!crn_codec_is_lossy(&s) || !crn_value_is_float(v->type))
        return CAIRN_OK;
    const size_t n = strlen(v->attributes);
    snprintf(v->attributes + n, sizeof v->attributes - n, "%s%s=%s\n",
             n > 0 && v->attributes[n - 1] != '\n' ? "\n" : "", CRN_LOSS_KEY,
             s.bounded ? crn_loss_print(&s.loss, text) : "unbounded");
    return CAIRN_OK;
}

/* The last variable takes its place: to move all that follow would cost n of them n * n. */
void crn_ckpt_undeclare(cairn *c, ckpt_var *v)
{
    const ckpt_var *last = &c->var.at[--c->var.n];
    const size_t at = (size_t)(v - c->var.at);
    crn_index_remove(&c->var_name, crn_hash_text(v->name), at);
    if (v != last)
        crn_index_move(&c->var_name, crn_hash_text(last->name), c->var.n, at);
    free(v->name);
    free(v->remarks);
    free(v->lines);
    free(v->cell);
    free(v->members);
    crn_share_forget(v);
    crn_change_done(&v->change);
    crn_look_done(&v->look);
    *v = *last;
    c->leg.unchecked = true;
    c->small.listed = false;
}

/* Do both say the same of which share of the whole this rank has? */
static bool same_share(const ckpt_var *a, const ckpt_var *b)
{
    if (a->layout != b->layout || a->ndims != b->ndims || a->ncells != b->ncells ||
        strcmp(a->type, b->type) != 0)
        return false;
    if (a->layout != CRN_LAYOUT_INDEX)
        return memcmp(a->dims, b->dims, 3 * a->ndims * sizeof *a->dims) == 0;
    bool same = a->nbytes == b->nbytes;
    for (size_t i = 0; same && i < a->nbytes / sizeof *a->cell; i++)
        same = a->cell[i].number == b->cell[i].number;
    return same;
}

/* The companions of a variable that is to become v, as far as v has none of the kind. */
static void drop_companions(cairn *c, const ckpt_var *old, const ckpt_var *v)
{
    ckpt_var *own = NULL;
    if (old->layout == CRN_LAYOUT_RAGGED && v->layout != CRN_LAYOUT_RAGGED)
        own = crn_ckpt_index_of(c, v->name);
    else if (crn_ckpt_has_halo(old) && !crn_ckpt_has_halo(v))
        own = crn_ckpt_halo_of(c, v->name);
    if (own)
        crn_ckpt_undeclare(c, own);
}

/* A variable, and what goes with it. */
static void forget(cairn *c, const char *name)
{
    drop_companions(c, crn_ckpt_find(c, name), &(ckpt_var){.name = (char *)name});
    crn_ckpt_undeclare(c, crn_ckpt_find(c, name));
}

/* A variable of a new name; its members' bounds are freed when that fails. */
static cairn_status add_new(cairn *c, ckpt_var *v)
{
    const char *name = v->name;
    v->name = NULL;
    cairn_status rc = crn_vec_reserve(&c->var, 1);
    if (rc == CAIRN_OK)
        rc = crn_strdup(name, &v->name);
    if (rc == CAIRN_OK)
        rc = crn_index_add(&c->var_name, crn_hash_text(name), c->var.n);
    if (rc < 0) {
        free(v->name);
        free(v->members);
        return rc;
    }
    c->var.at[c->var.n++] = *v;
    c->leg.unchecked = true;
    return CAIRN_OK;
}

cairn_status crn_ckpt_declare(cairn *c, const ckpt_var *v)
{
    ckpt_var *old = crn_ckpt_find(c, v->name), new = *v;
    c->small.listed = false;
    CRN_FAIL_IF(c->leg.open && old && (crn_ckpt_is_captured(c, old) || old->share), CAIRN_EINVAL,
                "variable '%s' is part of the mark that is open", v->name);
    crn_blocks_declare(c, old, &new);
    CRN_TRY(take_codec(c, &new));
    crn_var_spec spec = crn_ckpt_spec(&new);
    CRN_TRY(crn_var_spec_check(&spec));
    CRN_TRY(take_bounds(c, old, &new));
    if (!old)
        return add_new(c, &new);
    c->leg.unchecked = c->leg.unchecked || !same_share(old, v);
    drop_companions(c, old, v);
    old = crn_ckpt_find(c, v->name); /* another may have moved to its place */
    new.name = old->name;
    new.remarks = old->remarks;
    new.change = old->change;
    free(old->cell);
    free(old->members);
    if (crn_ckpt_is_companion(v))
        free(old->lines);
    else
        new.lines = old->lines;
    *old = new;
    return crn_ckpt_is_companion(v) ? CAIRN_OK : crn_ckpt_label(old);
}

/* --- arrays ------------------------------------------------------------------------------- */

cairn_status crn_ckpt_begin_var(const cairn *c, const char *name, const void *data, cairn_type type,
                                uint64_t count, ckpt_var *ret)
{
    CRN_TRY(crn_companion_check(name));
    ckpt_var v = {.name = (char *)name, .data = data};
    v.type = crn_ckpt_type(c, type, &v.item);
    CRN_FAIL_IF(!v.type, CAIRN_EINVAL, "variable '%s': there is no type %u", name, type);
    CRN_FAIL_IF(__builtin_mul_overflow(count, v.item, &v.nbytes), CAIRN_EINVAL,
                "variable '%s' is larger than any memory", name);
    CRN_FAIL_IF(!data && v.nbytes > 0, CAIRN_EINVAL, "variable '%s' has no address", name);
    *ret = v;
    return CAIRN_OK;
}

int cairn_protect(cairn *c, const char *name, void *data, cairn_type type, size_t count)
{
    CKPT_NEEDS(c);
    ckpt_var v;
    cairn_status rc = crn_ckpt_begin_var(c, name, data, type, count, &v);
    if (rc == CAIRN_OK)
        rc = crn_ckpt_declare(c, &v);
    return crn_ckpt_result(c, rc);
}

static cairn_status multiply(const char *name, uint32_t ndims, const uint64_t *count, uint64_t *ret)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < ndims; d++)
        CRN_FAIL_IF(__builtin_mul_overflow(n, count[d], &n), CAIRN_EINVAL,
                    "variable '%s' is larger than any memory", name);
    *ret = n;
    return CAIRN_OK;
}

static cairn_status place_in_memory(ckpt_var *v, const cairn_piece *p)
{
    const crn_var_spec spec = crn_ckpt_spec(v);
    uint64_t nbytes = v->item;
    v->memory = crn_far_piece(&spec);
    for (uint32_t d = 0; d < v->ndims; d++) {
        CRN_FAIL_IF(
            p->global[d] > CRN_FAR / 2 || p->before[d] > CRN_FAR / 2 || p->after[d] > CRN_FAR / 2,
            CAIRN_EINVAL, "variable '%s', dimension %u is larger than any memory", v->name, d);
        v->memory.lo[d] -= p->before[d];
        v->memory.hi[d] += p->after[d];
        v->padded = v->padded || p->before[d] > 0 || p->after[d] > 0;
        CRN_FAIL_IF(__builtin_mul_overflow(nbytes, v->memory.hi[d] - v->memory.lo[d], &nbytes),
                    CAIRN_EINVAL,
                    "variable '%s', with what is around it, is larger than any memory", v->name);
    }
    return CAIRN_OK;
}

static cairn_status protect_piece(cairn *c, const char *name, void *data, cairn_type type,
                                  const cairn_piece *p)
{
    ckpt_var v;
    uint64_t n = 0, global = 0;
    const char *shown = name ? name : "";
    CRN_FAIL_IF(p->ndims < 1 || p->ndims > CRN_DIMS_MAX, CAIRN_EINVAL,
                "variable '%s': 1 to %d dimensions, not %d", shown, CRN_DIMS_MAX, p->ndims);
    const uint32_t ndims = (uint32_t)p->ndims;
    CRN_TRY(multiply(shown, ndims, p->count, &n));
    CRN_TRY(multiply(shown, ndims, p->global, &global));
    CRN_TRY(crn_ckpt_begin_var(c, name, data, type, n, &v));
    v.layout = CRN_LAYOUT_PIECE;
    v.ndims = ndims;
    v.halo = p->halo;
    memcpy(v.dims, p->global, ndims * sizeof *v.dims);
    memcpy(v.dims + ndims, p->offset, ndims * sizeof *v.dims);
    memcpy(v.dims + 2 * ndims, p->count, ndims * sizeof *v.dims);
    CRN_TRY(place_in_memory(&v, p));
    CRN_TRY(crn_ckpt_declare(c, &v));
    cairn_status rc = crn_ckpt_has_halo(&v) ? crn_ckpt_declare_halo(c, &v) : CAIRN_OK;
    if (rc < 0)
        forget(c, name); /* a mark would not have all of it */
    return rc;
}

int cairn_protect_piece(cairn *c, const char *name, void *data, cairn_type type,
                        const cairn_piece *piece)
{
    CKPT_NEEDS_ALSO(c, piece);
    cairn_piece ours;
    cairn_status rc = crn_struct_in(piece, &ours);
    if (rc == CAIRN_OK)
        rc = protect_piece(c, name, data, type, &ours);
    return crn_ckpt_result(c, rc);
}

int cairn_protect_part(cairn *c, const char *name, void *data, cairn_type type, int ndims,
                       const uint64_t *global, const uint64_t *offset, const uint64_t *count)
{
    cairn_piece p = {.struct_bytes = sizeof p, .ndims = ndims};
    CKPT_NEEDS_ALSO(c, global);
    CKPT_NEEDS_ALSO(c, offset);
    CKPT_NEEDS_ALSO(c, count);
    for (int d = 0; d < CRN_MIN(ndims, CRN_DIMS_MAX); d++) {
        p.global[d] = global[d];
        p.offset[d] = offset[d];
        p.count[d] = count[d];
    }
    return cairn_protect_piece(c, name, data, type, &p);
}

static cairn_status set_bounds(cairn *c, const char *name, const char *bounds)
{
    ckpt_var *v = crn_ckpt_find_declared(c, name);
    CRN_FAIL_IF(!v, CAIRN_ENOTFOUND, "no variable '%s' is protected", name);
    CRN_FAIL_IF(c->leg.open && crn_ckpt_is_captured(c, v), CAIRN_EINVAL,
                "variable '%s' is part of the mark that is open", name);
    ckpt_var new = *v;
    CRN_TRY(parse_bounds(bounds, false, &new));
    free(v->members);
    memcpy(v->bound, new.bound, sizeof v->bound);
    v->nbounds = new.nbounds;
    v->members = new.members;
    c->small.listed = false;
    v->own_bounds = true;
    return CAIRN_OK;
}

int cairn_set_bounds(cairn *c, const char *name, const char *bounds)
{
    CKPT_NEEDS_ALSO(c, name);
    CKPT_NEEDS_ALSO(c, bounds);
    return crn_ckpt_result(c, set_bounds(c, name, bounds));
}

int cairn_release(cairn *c, const char *name)
{
    CKPT_NEEDS_ALSO(c, name);
    ckpt_var *v = crn_ckpt_find_declared(c, name);
    if (!v)
        return crn_ckpt_result(c, crn_fail(CAIRN_ENOTFOUND, "no variable '%s' is protected", name));
    if (c->leg.open && (crn_ckpt_is_captured(c, v) || v->share))
        return crn_ckpt_result(
            c, crn_fail(CAIRN_EINVAL, "variable '%s' is part of the mark that is open", name));
    forget(c, name);
    return CAIRN_OK;
}
