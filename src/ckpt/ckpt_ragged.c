/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Items in cells, and items in no order: how they are declared. Items in cells are two variables of
 * a mark, the items themselves and an index of Cairn's own, which says whose they are.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>

static void set_layout(ckpt_var *v, crn_var_layout layout)
{
    _Static_assert(sizeof v->attributes >= CRN_LAYOUT_LINES, "they are the first lines");
    v->layout = layout;
    crn_layout_lines(layout, v->ncells, v->attributes);
}

/* --- in no order -------------------------------------------------------------------------- */

int cairn_protect_list(cairn *c, const char *name, void *data, cairn_type type, size_t count)
{
    CKPT_NEEDS(c);
    ckpt_var v;
    cairn_status rc = crn_ckpt_begin_var(c, name, data, type, count, &v);
    if (rc == CAIRN_OK) {
        set_layout(&v, CRN_LAYOUT_LIST);
        rc = crn_ckpt_declare(c, &v);
    }
    return crn_ckpt_result(c, rc);
}

/* --- in cells ----------------------------------------------------------------------------- */

ckpt_var *crn_ckpt_index_of(cairn *c, const char *name)
{
    char full[CRN_VAR_NAME + 1];
    const bool fits = crn_companion_name(name, CRN_INDEX_END, full) == CAIRN_OK;
    return fits ? crn_ckpt_find(c, full) : NULL;
}

static cairn_status make_index(const char *name, uint64_t global, size_t ncells,
                               const uint64_t *cell, const uint64_t *nitems, ckpt_var *ret)
{
    ckpt_var v = {.name = (char *)name,
                  .type = CRN_CELL_TYPE,
                  .item = sizeof(crn_cell_count),
                  .nbytes = ncells * sizeof(crn_cell_count),
                  .ncells = global};
    CRN_TRY(crn_alloc(&v.cell, ncells));
    for (size_t i = 0; i < ncells; i++)
        v.cell[i] = (crn_cell_count){cell[i], nitems[i]};
    v.data = v.cell;
    set_layout(&v, CRN_LAYOUT_INDEX);
    *ret = v;
    return CAIRN_OK;
}

static cairn_status protect_ragged(cairn *c, const char *name, void *data, cairn_type type,
                                   uint64_t global, size_t ncells, const uint64_t *cell,
                                   const uint64_t *nitems)
{
    ckpt_var items, index;
    uint64_t count = 0;
    char full[CRN_VAR_NAME + 1];
    CRN_FAIL_IF(!name, CAIRN_EINVAL, "a variable needs a name");
    CRN_FAIL_IF(ncells > 0 && (!cell || !nitems), CAIRN_EINVAL, "variable '%s' has no cells", name);
    CRN_TRY(crn_cells_check(name, global, ncells, cell, nitems, &count));
    CRN_TRY(crn_companion_name(name, CRN_INDEX_END, full));
    CRN_TRY(crn_ckpt_begin_var(c, name, data, type, count, &items));
    items.ncells = global;
    set_layout(&items, CRN_LAYOUT_RAGGED);
    CRN_TRY(make_index(full, global, ncells, cell, nitems, &index));
    cairn_status rc = crn_ckpt_declare(c, &items);
    if (rc == CAIRN_OK && (rc = crn_ckpt_declare(c, &index)) < 0)
        crn_ckpt_undeclare(c, crn_ckpt_find(c, name)); /* items without an index are none */
    if (rc < 0)
        free(index.cell);
    return rc;
}

int cairn_protect_ragged(cairn *c, const char *name, void *data, cairn_type type, uint64_t global,
                         size_t ncells, const uint64_t *cell, const uint64_t *nitems)
{
    CKPT_NEEDS(c);
    return crn_ckpt_result(c, protect_ragged(c, name, data, type, global, ncells, cell, nitems));
}
