/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Items in cells, and items that have a number of their own: what belongs together on two sides is
 * found by that, whichever ranks have it and in whatever order. In memory are keys of all cells or
 * items of the second side; values pass through as those of pieces do.
 */
#include "diff/diff.h"

#include <inttypes.h>

/* Items that lie one behind the other under one key: those of a cell, or one with its number. */
typedef struct keyed {
    uint64_t key, first, n;
    uint32_t share; /* of the second side */
} keyed;

typedef CRN_VEC(keyed) keys;

/* What the first share and n of the second side have in common. */
typedef struct matching {
    const crn_var_spec *spec;
    char id[CRN_VAR_NAME + 1]; /* what numbers items; empty: cells do */
    diff_share *first, *second;
    size_t n;
    keys own, other;
    diff_runs *run; /* for each second share */
    diff_row *row;
} matching;

bool crn_diff_item_id(const crn_var_spec *spec, char ret[CRN_VAR_NAME + 1])
{
    const char *value = crn_var_attribute(spec, "id");
    const size_t n = value ? CRN_MIN(strcspn(value, "\n"), (size_t)CRN_VAR_NAME) : 0;
    const bool items = crn_var_has_layout(spec, "ragged") || crn_var_has_layout(spec, "list");
    memcpy(ret, value ? value : "", n);
    ret[n] = 0;
    return items && n > 0;
}

bool crn_diff_is_keyed(const crn_var_spec *spec)
{
    char id[CRN_VAR_NAME + 1];
    return crn_var_has_layout(spec, "ragged") || crn_diff_item_id(spec, id);
}

/* --- cells ---------------------------------------------------------------------------------- */

void crn_diff_index_name(const char *name, char ret[CRN_VAR_NAME + 8])
{
    snprintf(ret, CRN_VAR_NAME + 8, "%s#cells", name);
}

/* An entry of an index. */
typedef struct cell {
    uint64_t number, nitems;
} cell;

static cairn_status place_cells(const diff_share *s, const cell *c, uint64_t n, uint64_t nitems,
                                uint32_t share, keys *ret)
{
    uint64_t first = 0;
    bool sound = true;
    CRN_TRY(crn_vec_reserve(ret, n));
    for (uint64_t i = 0; i < n; i++) {
        sound = sound && (i == 0 || c[i].number > c[i - 1].number) && c[i].nitems <= nitems - first;
        if (!sound)
            break;
        ret->at[ret->n++] = (keyed){c[i].number, first, c[i].nitems, share};
        first += c[i].nitems;
    }
    CRN_FAIL_IF(!sound || first != nitems, CAIRN_ECORRUPT,
                "the cells of rank %u in mark %" PRIu64 " of '%s' are not those of its items",
                s->rank, s->mark->version, s->side->name);
    return CAIRN_OK;
}

/* The cells of a share, of which nitems items are. */
static cairn_status add_cells(const matching *m, diff_share *s, uint64_t nitems, uint32_t share,
                              keys *ret)
{
    char name[CRN_VAR_NAME + 8];
    crn_var *v;
    unsigned char *data;
    crn_diff_index_name(m->spec->name, name);
    CRN_TRY(crn_diff_share_data(s, name, &v));
    CRN_FAIL_IF(v->spec.item != sizeof(cell), CAIRN_ECORRUPT, "'%s' of '%s' is no index of cells",
                name, s->side->name);
    CRN_TRY(crn_io_memory(CRN_MAX(v->nblocks, 1) * v->spec.block, &data));
    cairn_status rc = crn_mark_read(s->part, s->data, v, 0, v->nblocks, data, NULL);
    if (rc == CAIRN_OK)
        rc = place_cells(s, (const cell *)(const void *)data, v->spec.nbytes / sizeof(cell), nitems,
                         share, ret);
    free(data);
    return rc;
}

/* --- numbers of items ----------------------------------------------------------------------- */

/* Where the numbers of a share's items lie. */
typedef struct numbering {
    crn_var *var;
    uint32_t offset, item; /* in an element of that, and bytes of a number */
} numbering;

/* Marks the member by a bound. */
static crn_bound is_member(const void *arg, const char *path)
{
    return (crn_bound){.absolute = strcmp(arg, path) == 0};
}

/* The number of this name in a type: "" for one that is no structure. */
static bool find_number(const crn_var_spec *spec, const char *member, numbering *ret)
{
    crn_fields f = {0};
    bool found = false;
    for (size_t i = 0; crn_fields_read(spec->type, is_member, member, &f) == CAIRN_OK && i < f.n;
         i++) {
        const crn_field *at = &f.at[i];
        const bool whole = at->kind == CRN_VALUE_INT || at->kind == CRN_VALUE_UINT;
        if (at->bound.absolute == 0 || !whole || at->is_complex || at->count != 1)
            continue;
        ret->offset = at->offset;
        ret->item = at->item;
        found = true;
        break;
    }
    crn_vec_done(&f);
    return found;
}

/* A member of the items, or else another variable with as many elements. */
static cairn_status find_numbering(const matching *m, diff_share *s, numbering *ret)
{
    crn_var *items;
    CRN_TRY(crn_diff_share_data(s, m->spec->name, &items));
    ret->var = items;
    if (find_number(&items->spec, m->id, ret))
        return CAIRN_OK;
    ret->var = crn_mark_find(s->data, m->id);
    CRN_FAIL_IF(!ret->var || !find_number(&ret->var->spec, "", ret) ||
                    ret->var->spec.nbytes / ret->var->spec.item !=
                        items->spec.nbytes / items->spec.item,
                CAIRN_EMISMATCH,
                "'%s', which is to tell items apart, is no whole number of each item on rank %u of "
                "'%s'",
                m->id, s->rank, s->side->name);
    return CAIRN_OK;
}

/* The numbers of a share's items. */
static cairn_status add_numbers(const matching *m, diff_share *s, uint64_t nitems, uint32_t share,
                                keys *ret)
{
    numbering num = {0};
    unsigned char *data;
    CRN_TRY(find_numbering(m, s, &num));
    const uint32_t item = num.var->spec.item;
    const uint64_t step = CRN_MAX(DIFF_BATCH / item, 1); /* items that are read together */
    CRN_TRY(crn_mark_table(s->part, s->data, num.var));
    CRN_TRY(crn_vec_reserve(ret, nitems));
    CRN_TRY(crn_io_memory(step * item, &data));
    cairn_status rc = CAIRN_OK;
    for (uint64_t i = 0; rc == CAIRN_OK && i < nitems; i += step) {
        const uint64_t n = CRN_MIN(step, nitems - i);
        rc = crn_diff_read_leaves(s, num.var, (uint32_t)(step * item), i / step, 1, data, NULL);
        for (uint64_t k = 0; rc == CAIRN_OK && k < n; k++) {
            keyed key = {.first = i + k, .n = 1, .share = share};
            memcpy(&key.key, data + k * item + num.offset, num.item); /* little-endian, as files */
            ret->at[ret->n++] = key;
        }
    }
    free(data);
    return rc;
}

/* --- what belongs together ------------------------------------------------------------------ */

static cairn_status add_share(const matching *m, diff_share *s, uint32_t share, keys *ret)
{
    diff_var v;
    if (!crn_diff_share_find(s, m->spec->name, &v))
        return CAIRN_OK;
    const uint64_t nitems = v.var->spec.nbytes / v.var->spec.item;
    CRN_FAIL_IF(strcmp(v.var->spec.type, m->spec->type) != 0, CAIRN_EMISMATCH,
                "it is of type %s on rank %u of '%s'", v.var->spec.type, s->rank, s->side->name);
    return m->id[0] ? add_numbers(m, s, nitems, share, ret) : add_cells(m, s, nitems, share, ret);
}

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? 1 : -1;
    return (x->first > y->first) - (x->first < y->first);
}

static int by_place(const void *a, const void *b)
{
    const diff_range *x = a, *y = b;
    return (x->a > y->a) - (x->a < y->a);
}

/* Is every key there once? */
static bool are_unique(matching *m, const keys *k, const diff_side *side)
{
    for (size_t i = 1; i < k->n; i++) {
        if (k->at[i].key != k->at[i - 1].key)
            continue;
        crn_diff_row_judge(m->row, CAIRN_INCONCLUSIVE, "%s %" PRIu64 " is there twice in '%s'",
                           m->id[0] ? m->id : "cell", k->at[i].key, side->name);
        return false;
    }
    return true;
}

/* The second side does not have a key, or has another number of items under it. */
static void tell_lone(matching *m, const keyed *own, const keyed *other)
{
    const char *first = m->first->side->name, *second = m->second->side->name;
    if (m->id[0])
        crn_diff_row_judge(m->row, CAIRN_DIFFERENT,
                           "the item with %s %" PRIu64 ", of rank %u, is not in '%s'", m->id,
                           own->key, m->first->rank, second);
    else if (!other)
        crn_diff_row_judge(m->row, CAIRN_INCONCLUSIVE, "cell %" PRIu64 " is on no rank of '%s'",
                           own->key, second);
    else
        crn_diff_row_judge(m->row, CAIRN_DIFFERENT,
                           "cell %" PRIu64 " has %" PRIu64 " items in '%s' and %" PRIu64 " in '%s'",
                           own->key, own->n, first, other->n, second);
}

static cairn_status add_run(matching *m, const keyed *own, const keyed *other)
{
    if (own->n == 0)
        return CAIRN_OK;
    return crn_vec_push(&m->run[other->share], ((diff_range){own->first, other->first, own->n}));
}

/* Both ascend. */
static cairn_status join(matching *m)
{
    for (size_t i = 0, k = 0; i < m->own.n; i++) {
        const keyed *own = &m->own.at[i];
        while (k < m->other.n && m->other.at[k].key < own->key)
            k++;
        const keyed *other =
            k < m->other.n && m->other.at[k].key == own->key ? &m->other.at[k] : NULL;
        if (other && other->n == own->n)
            CRN_TRY(add_run(m, own, other));
        else
            tell_lone(m, own, other);
    }
    return CAIRN_OK;
}

/* In the order of the first share, and as few as can be. */
static void order_runs(diff_runs *r)
{
    size_t n = 0;
    if (r->n > 0)
        qsort(r->at, r->n, sizeof *r->at, by_place);
    for (size_t i = 0; i < r->n; i++) {
        diff_range *last = n > 0 ? &r->at[n - 1] : NULL;
        if (last && last->a + last->n == r->at[i].a && last->b + last->n == r->at[i].b)
            last->n += r->at[i].n;
        else
            r->at[n++] = r->at[i];
    }
    r->n = n;
}

static cairn_status match(matching *m)
{
    CRN_TRY(add_share(m, m->first, 0, &m->own));
    for (size_t i = 0; i < m->n; i++)
        CRN_TRY(add_share(m, &m->second[i], (uint32_t)i, &m->other));
    if (m->own.n > 0)
        qsort(m->own.at, m->own.n, sizeof *m->own.at, by_key);
    if (m->other.n > 0)
        qsort(m->other.at, m->other.n, sizeof *m->other.at, by_key);
    if (!are_unique(m, &m->own, m->first->side) || !are_unique(m, &m->other, m->second->side))
        return CAIRN_NOTHING;
    CRN_TRY(join(m));
    for (size_t i = 0; i < m->n; i++)
        order_runs(&m->run[i]);
    return CAIRN_OK;
}

cairn_status crn_diff_items(diff_worker *w, diff_share *first, diff_share *second, size_t n,
                            const crn_var_spec *spec, diff_row *row)
{
    matching m = {.spec = spec, .first = first, .second = second, .n = n, .row = row};
    (void)crn_diff_item_id(spec, m.id);
    CRN_TRY(crn_alloc(&m.run, n));
    cairn_status rc = match(&m);
    crn_vec_done(&m.own);
    crn_vec_done(&m.other);
    if (rc == CAIRN_OK)
        rc = crn_diff_runs(w, first, second, n, m.run, spec, row);
    for (size_t i = 0; i < n; i++)
        crn_vec_done(&m.run[i]);
    free(m.run);
    return rc == CAIRN_NOTHING ? CAIRN_OK : rc;
}

/* So that sums of numbers tell them apart (the finalizer of splitmix64). */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

cairn_status crn_diff_sum_numbers(diff_share *s, const crn_var_spec *spec, uint64_t *sum)
{
    matching m = {.spec = spec};
    keys k = {0};
    (void)crn_diff_item_id(spec, m.id);
    cairn_status rc = add_share(&m, s, 0, &k);
    for (size_t i = 0; rc == CAIRN_OK && i < k.n; i++)
        *sum += mix(k.at[i].key);
    crn_vec_done(&k);
    return rc;
}

cairn_status crn_diff_sum_all_numbers(diff_side *s, const diff_mark *m, const crn_var_spec *spec,
                                      uint64_t *ret)
{
    uint64_t sum = 0;
    for (uint32_t r = 0; r < m->nranks; r++) {
        diff_share share;
        CRN_TRY(crn_diff_share_open(s, m, r, &share));
        cairn_status rc = crn_diff_sum_numbers(&share, spec, &sum);
        crn_diff_share_close(&share);
        CRN_TRY(rc);
    }
    *ret = sum;
    return CAIRN_OK;
}

cairn_status crn_diff_count_items(diff_side *s, const diff_mark *m, const char *name, uint64_t *ret)
{
    uint64_t n = 0;
    for (uint32_t r = 0; r < m->nranks; r++) {
        diff_share share;
        diff_var v;
        CRN_TRY(crn_diff_share_open(s, m, r, &share));
        if (crn_diff_share_find(&share, name, &v))
            n += v.var->spec.nbytes / v.var->spec.item;
        crn_diff_share_close(&share);
    }
    *ret = n;
    return CAIRN_OK;
}
