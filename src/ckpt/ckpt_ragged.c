/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Items in cells, and items in no order: how they are declared. Items in cells are two variables of
 * a mark, the items themselves and an index of Cairn's own, which says whose they are.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>

static void set_layout(ckpt_var *v, crn_var_layout layout)
{
    v->layout = layout;
    const char *word = crn_layout_word(layout);
    if (word)
        snprintf(v->attributes, sizeof v->attributes, "layout=%s\n", word);
    if (layout == CRN_LAYOUT_RAGGED) {
        const size_t n = strlen(v->attributes);
        snprintf(v->attributes + n, sizeof v->attributes - n, "cells=%" PRIu64 "\n", v->ncells);
    }
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

cairn_status crn_ckpt_companion_name(const char *name, const char *end, char buf[CRN_VAR_NAME + 1])
{
    const int n = snprintf(buf, CRN_VAR_NAME + 1, "%s%s", name, end);
    CRN_FAIL_IF(n > CRN_VAR_NAME, CAIRN_EINVAL,
                "the name of a variable with %s has at most %zu bytes, not %zu", end + 1,
                CRN_VAR_NAME - strlen(end), strlen(name));
    return CAIRN_OK;
}

ckpt_var *crn_ckpt_index_of(cairn *c, const char *name)
{
    char full[CRN_VAR_NAME + 1];
    const bool fits = crn_ckpt_companion_name(name, CKPT_INDEX_END, full) == CAIRN_OK;
    return fits ? crn_ckpt_find(c, full) : NULL;
}

static cairn_status check_cells(const char *name, uint64_t global, size_t ncells,
                                const uint64_t *cell, const uint64_t *nitems, uint64_t *ret_items)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ncells; i++) {
        CRN_FAIL_IF(cell[i] >= global, CAIRN_EINVAL,
                    "variable '%s': there is no cell %" PRIu64 " of %" PRIu64, name, cell[i],
                    global);
        CRN_FAIL_IF(i > 0 && cell[i] <= cell[i - 1], CAIRN_EINVAL,
                    "variable '%s': cell %" PRIu64 " follows cell %" PRIu64 ": numbers must grow",
                    name, cell[i], cell[i - 1]);
        CRN_FAIL_IF(__builtin_add_overflow(sum, nitems[i], &sum), CAIRN_EINVAL,
                    "variable '%s' is larger than any memory", name);
    }
    *ret_items = sum;
    return CAIRN_OK;
}

static cairn_status make_index(const char *name, uint64_t global, size_t ncells,
                               const uint64_t *cell, const uint64_t *nitems, ckpt_var *ret)
{
    ckpt_var v = {.name = (char *)name,
                  .type = CKPT_CELL_TYPE,
                  .item = sizeof(ckpt_cell),
                  .nbytes = ncells * sizeof(ckpt_cell),
                  .ncells = global};
    CRN_TRY(crn_alloc(&v.cell, ncells));
    for (size_t i = 0; i < ncells; i++)
        v.cell[i] = (ckpt_cell){cell[i], nitems[i]};
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
    CRN_TRY(check_cells(name, global, ncells, cell, nitems, &count));
    CRN_TRY(crn_ckpt_companion_name(name, CKPT_INDEX_END, full));
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
