/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Getting items: stretches of a list, and the items of cells, whoever had them.
 */
#include "state/state_fill.h"
#include "state/state_read.h"

#include <inttypes.h>

/* --- lists -------------------------------------------------------------------------------- */

cairn_status crn_get_list(getting *g, crn_part *part, const crn_mark *m, crn_var *v, size_t i)
{
    const cairn_field *f = &g->field[i];
    const uint64_t item = v->spec.item, first = g->before[i], n = v->spec.nbytes / item;
    const uint64_t lo = CRN_MAX(first, f->offset[0]);
    const uint64_t hi = CRN_MIN(first + n, f->offset[0] + f->count[0]);
    state_fill fill;
    g->before[i] += n;
    if (lo >= hi)
        return CAIRN_OK;
    g->got[i] += (hi - lo) * item;
    cairn_status rc = crn_fill_begin(&fill, g->shelf, part, m, v);
    if (rc == CAIRN_OK)
        rc = crn_fill_add(&fill, (lo - first) * item,
                          (unsigned char *)f->data + (lo - f->offset[0]) * item, (hi - lo) * item);
    return crn_fill_end(&fill, rc);
}

/* --- cells -------------------------------------------------------------------------------- */

/* The index of a share's field with cells: *ret_n entries. Free it. */
static cairn_status read_index(crn_part *part, const crn_mark *m, const crn_var *items,
                               crn_cell_count **ret, size_t *ret_n)
{
    char name[CRN_VAR_NAME + 1];
    uint64_t sum = 0;
    CRN_TRY(crn_companion_name(items->spec.name, CRN_INDEX_END, name));
    crn_var *v = crn_mark_find(m, name);
    CRN_FAIL_IF(!v || strcmp(v->spec.type, CRN_CELL_TYPE) != 0, CAIRN_ECORRUPT,
                "field '%s' has items in cells, and no index of them", items->spec.name);
    *ret_n = v->spec.nbytes / sizeof **ret;
    CRN_TRY(crn_alloc(ret, *ret_n));
    cairn_status rc = crn_mark_read(part, m, v, 0, v->nblocks, *ret, NULL);
    bool good = rc == CAIRN_OK;
    for (size_t i = 0; good && i < *ret_n; i++)
        good = (i == 0 || (*ret)[i].number > (*ret)[i - 1].number) &&
               !__builtin_add_overflow(sum, (*ret)[i].nitems, &sum);
    if (rc == CAIRN_OK && (!good || sum != items->spec.nbytes / items->spec.item))
        rc = crn_fail(CAIRN_ECORRUPT, "the index of field '%s' is not that of its items",
                      items->spec.name);
    if (rc < 0)
        free(*ret);
    return rc;
}

static cairn_status check_count(const cairn_field *f, size_t k, const crn_cell_count *e)
{
    CRN_FAIL_IF(e->nitems != f->nitems[k], CAIRN_EMISMATCH,
                "field '%s', cell %" PRIu64 ": there are %" PRIu64 " items, not %" PRIu64, f->name,
                f->cell[k], e->nitems, f->nitems[k]);
    return CAIRN_OK;
}

/* Both lists of cells grow: they are gone through side by side. */
static cairn_status fill_cells(getting *g, state_fill *fill, const crn_cell_count *e, size_t n,
                               size_t i)
{
    const cairn_field *f = &g->field[i];
    const uint64_t item = g->spec[i].item;
    unsigned char *to = f->data;
    uint64_t from = 0;
    for (size_t k = 0, at = 0; k < f->ncells; to += f->nitems[k++] * item) {
        for (; at < n && e[at].number < f->cell[k]; at++)
            from += e[at].nitems * item;
        if (at == n || e[at].number != f->cell[k])
            continue;
        CRN_TRY(check_count(f, k, &e[at]));
        g->before[i]++;
        g->got[i] += e[at].nitems * item;
        CRN_TRY(crn_fill_add(fill, from, to, e[at].nitems * item));
    }
    return CAIRN_OK;
}

cairn_status crn_get_cells(getting *g, crn_part *part, const crn_mark *m, crn_var *v, size_t i)
{
    crn_cell_count *e;
    state_fill fill;
    size_t n;
    CRN_FAIL_IF(crn_layout_ncells(&v->spec) != g->field[i].global[0], CAIRN_EMISMATCH,
                "field '%s' has %" PRIu64 " cells, not %" PRIu64, v->spec.name,
                crn_layout_ncells(&v->spec), g->field[i].global[0]);
    CRN_TRY(read_index(part, m, v, &e, &n));
    cairn_status rc = crn_fill_begin(&fill, g->shelf, part, m, v);
    if (rc == CAIRN_OK)
        rc = fill_cells(g, &fill, e, n, i);
    free(e);
    return crn_fill_end(&fill, rc);
}

cairn_status crn_count_cells(getting *g, crn_part *part, const crn_mark *m, crn_var *v)
{
    crn_cell_count *e;
    size_t n;
    CRN_TRY(read_index(part, m, v, &e, &n));
    for (size_t k = 0, at = 0; k < g->ncells; k++) {
        while (at < n && e[at].number < g->cell[k])
            at++;
        if (at < n && e[at].number == g->cell[k]) {
            g->nitems[k] = e[at].nitems;
            g->ncounted++;
        }
    }
    free(e);
    return CAIRN_OK;
}
