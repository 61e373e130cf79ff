/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields of a state, as the store declares them. Items in cells are two variables, as in marks: the
 * items, and an index of Cairn's own, which says whose they are.
 */
#include "state/state_shelf.h"

#include <inttypes.h>

/* The size of a field's blocks. Where marks find it out from what changes, states have the usual
 * one: those of different writers are to be compared by their digests. */
static uint32_t block_of(const cairn_shelf *s, const char *name)
{
    enum { USUAL = 1 << 16 };
    const uint64_t n = crn_config_variable(s->cfg, CRN_OPT_VARIABLE_BLOCK, name).n;
    return n == UINT64_MAX ? USUAL : (uint32_t)n;
}

/* --- how many ----------------------------------------------------------------------------- */

static cairn_status count_box(const cairn_field *f, uint64_t *ret)
{
    uint64_t n = f->ndims == 0 ? f->count[0] : 1;
    for (int d = 0; d < f->ndims; d++) {
        CRN_FAIL_IF(f->offset[d] > f->global[d] || f->count[d] > f->global[d] - f->offset[d],
                    CAIRN_EINVAL,
                    "field '%s', dimension %d: %" PRIu64 " elements from %" PRIu64
                    " on are not within %" PRIu64,
                    f->name, d, f->count[d], f->offset[d], f->global[d]);
        CRN_FAIL_IF(__builtin_mul_overflow(n, f->count[d], &n), CAIRN_EINVAL,
                    "field '%s' is too large", f->name);
    }
    *ret = n;
    return CAIRN_OK;
}

static cairn_status count_elements(const cairn_field *f, uint64_t *ret)
{
    CRN_FAIL_IF(f->ndims < 0 || f->ndims > CRN_DIMS_MAX, CAIRN_EINVAL,
                "field '%s' has %d dimensions, not 0 to %d", f->name, f->ndims, CRN_DIMS_MAX);
    CRN_FAIL_IF(f->kind != CAIRN_FIELD_ARRAY && f->ndims != 0, CAIRN_EINVAL,
                "field '%s': items have no dimensions", f->name);
    if (f->kind == CAIRN_FIELD_ARRAY)
        return count_box(f, ret);
    if (f->kind == CAIRN_FIELD_LIST) {
        *ret = f->count[0];
        return CAIRN_OK;
    }
    CRN_FAIL_IF(f->kind != CAIRN_FIELD_CELLS, CAIRN_EINVAL, "field '%s': there is no kind %d",
                f->name, (int)f->kind);
    CRN_FAIL_IF(f->ncells > 0 && (!f->cell || !f->nitems), CAIRN_EINVAL, "field '%s' has no cells",
                f->name);
    return crn_cells_check(f->name, f->global[0], f->ncells, f->cell, f->nitems, ret);
}

/* --- variables ---------------------------------------------------------------------------- */

cairn_status crn_field_spec(const cairn_shelf *s, const cairn_field *f, crn_var_spec *ret)
{
    uint64_t n;
    CRN_TRY(crn_companion_check(f->name));
    const size_t item = cairn_type_bytes(f->type);
    CRN_FAIL_IF(item == 0, CAIRN_EINVAL, "field '%s': there is no type %u", f->name, f->type);
    CRN_TRY(count_elements(f, &n));
    CRN_FAIL_IF(n > INT64_MAX / item, CAIRN_EINVAL, "field '%s' is too large", f->name);
    CRN_FAIL_IF(n > 0 && !f->data, CAIRN_EINVAL, "field '%s' has no data", f->name);
    *ret = (crn_var_spec){.name = f->name,
                          .type = cairn_type_name(f->type),
                          .item = (uint32_t)item,
                          .block = block_of(s, f->name),
                          .nbytes = n * item,
                          .ndims = (uint32_t)f->ndims,
                          .global = f->global,
                          .offset = f->offset,
                          .count = f->count};
    return crn_var_spec_check(ret);
}

/* By which codec its blocks are stored; what that may lose is a line of the variable's. */
static cairn_status take_codec(const cairn_shelf *s, state_var *v)
{
    const char *name = v->spec.name;
    char text[CRN_CODEC_TEXT];
    const char *chosen = crn_shelf_codec_of(s, name);
    CRN_TRY(chosen ? crn_codec_parse(chosen, "", &v->codec)
                   : crn_codec_configured(s->cfg, name, &v->codec));
    if (!crn_codec_is_lossy(&v->codec) || !crn_value_is_float(v->spec.type))
        return CAIRN_OK;
    const size_t n = strlen(v->lines);
    const int more =
        snprintf(v->lines + n, sizeof v->lines - n, "%s=%s\n", CRN_LOSS_KEY,
                 v->codec.bounded ? crn_loss_print(&v->codec.loss, text) : "unbounded");
    if (chosen)
        snprintf(v->lines + n + more, sizeof v->lines - n - (size_t)more, "%s=%s\n", CRN_CODEC_KEY,
                 chosen);
    return CAIRN_OK;
}

static crn_var_layout layout_of(const cairn_field *f)
{
    switch (f->kind) {
    case CAIRN_FIELD_LIST:
        return CRN_LAYOUT_LIST;
    case CAIRN_FIELD_CELLS:
        return CRN_LAYOUT_RAGGED;
    default:
        return f->ndims > 0 ? CRN_LAYOUT_PIECE : CRN_LAYOUT_OWN;
    }
}

static cairn_status add_field(const cairn_shelf *s, const cairn_field *f, state_vars *to)
{
    state_var *v = &to->at[to->n];
    *v = (state_var){.data = f->data};
    CRN_TRY(crn_field_spec(s, f, &v->spec));
    crn_layout_lines(layout_of(f), f->global[0], v->lines);
    CRN_TRY(take_codec(s, v));
    if (v->lines[0])
        v->spec.attributes = v->lines;
    to->n++;
    return CAIRN_OK;
}

/* Which cells the items of a field are in. */
static cairn_status add_index(const cairn_shelf *s, const cairn_field *f, state_vars *to)
{
    state_var *v = &to->at[to->n];
    *v = (state_var){0};
    CRN_TRY(crn_companion_name(f->name, CRN_INDEX_END, v->name));
    CRN_TRY(crn_alloc(&v->index, f->ncells));
    to->n++;
    for (size_t i = 0; i < f->ncells; i++)
        v->index[i] = (crn_cell_count){f->cell[i], f->nitems[i]};
    crn_layout_lines(CRN_LAYOUT_INDEX, f->global[0], v->lines);
    v->data = v->index;
    v->spec = (crn_var_spec){.name = v->name,
                             .type = CRN_CELL_TYPE,
                             .item = sizeof *v->index,
                             .block = block_of(s, f->name),
                             .nbytes = f->ncells * sizeof *v->index,
                             .attributes = v->lines};
    return crn_var_spec_check(&v->spec);
}

cairn_status crn_fields_declare(const cairn_shelf *s, const cairn_field *f, size_t n,
                                state_vars *ret)
{
    CRN_TRY(crn_vec_reserve(ret, 2 * n)); /* so that nobody moves: lines are pointed to */
    for (size_t i = 0; i < n; i++) {
        CRN_TRY(add_field(s, &f[i], ret));
        if (f[i].kind == CAIRN_FIELD_CELLS)
            CRN_TRY(add_index(s, &f[i], ret));
    }
    return CAIRN_OK;
}

void crn_state_vars_done(state_vars *v)
{
    for (size_t i = 0; i < v->n; i++)
        free(v->at[i].index);
    crn_vec_done(v);
}

cairn_status crn_fields_share_cells(crn_comm *comm, const cairn_field *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        crn_cell *have;
        uint64_t first = 0;
        if (f[i].kind != CAIRN_FIELD_CELLS)
            continue;
        CRN_TRY(crn_comm_agree(comm, crn_alloc(&have, f[i].ncells)));
        for (size_t k = 0; k < f[i].ncells; k++) {
            have[k] = (crn_cell){.number = f[i].cell[k],
                                 .first = first,
                                 .nitems = f[i].nitems[k],
                                 .rank = (uint32_t)crn_comm_rank(comm)};
            first += f[i].nitems[k];
        }
        const cairn_status rc =
            crn_cells_find(comm, f[i].name, f[i].global[0], have, f[i].ncells, NULL, 0);
        free(have);
        CRN_TRY(rc);
    }
    return CAIRN_OK;
}
