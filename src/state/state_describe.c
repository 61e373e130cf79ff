/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fields of a state, as all its processes have put them.
 */
#include "state/state_shelf.h"

typedef struct description {
    CRN_VEC(cairn_field) field; /* whose names are this one's */
    crn_index by_name;
} description;

static cairn_type type_of(const char *name)
{
    for (cairn_type t = CAIRN_BYTES; cairn_type_name(t); t++)
        if (strcmp(cairn_type_name(t), name) == 0)
            return t;
    return 0;
}

static cairn_field *find(const description *d, const char *name)
{
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&d->by_name, crn_hash_text(name), &probe, &at);)
        if (strcmp(d->field.at[at].name, name) == 0)
            return &d->field.at[at];
    return NULL;
}

static cairn_field field_of(const crn_var_spec *v)
{
    const crn_var_layout layout = crn_layout_of(v);
    cairn_field f = {.type = type_of(v->type), .ndims = (int)v->ndims};
    f.count[0] = v->nbytes / v->item;
    for (uint32_t d = 0; d < v->ndims; d++)
        f.global[d] = f.count[d] = v->global[d];
    if (layout == CRN_LAYOUT_LIST) {
        f.kind = CAIRN_FIELD_LIST;
        f.global[0] = f.count[0];
    } else if (layout == CRN_LAYOUT_RAGGED) {
        f.kind = CAIRN_FIELD_CELLS;
        f.global[0] = crn_layout_ncells(v);
    }
    return f;
}

static cairn_status add(description *d, const crn_var_spec *v)
{
    char *name;
    CRN_TRY(crn_vec_reserve(&d->field, 1));
    CRN_TRY(crn_strdup(v->name, &name));
    cairn_field *f = &d->field.at[d->field.n++];
    *f = field_of(v);
    f->name = name;
    return crn_index_add(&d->by_name, crn_hash_text(name), d->field.n - 1);
}

/* Add what a share has; items are counted over all of them. */
static cairn_status add_share(description *d, const crn_mark *m)
{
    for (size_t i = 0; i < m->nvars; i++) {
        const crn_var_spec *v = &m->var[i].spec;
        cairn_field *f = find(d, v->name);
        if (crn_layout_of(v) == CRN_LAYOUT_INDEX)
            continue;
        if (!f) {
            CRN_TRY(add(d, v));
        } else if (f->kind != CAIRN_FIELD_ARRAY) {
            f->count[0] += v->nbytes / v->item;
            f->global[0] = f->kind == CAIRN_FIELD_LIST ? f->count[0] : f->global[0];
        }
    }
    return CAIRN_OK;
}

static void done(description *d)
{
    for (size_t i = 0; i < d->field.n; i++)
        free((char *)d->field.at[i].name);
    crn_vec_done(&d->field);
    crn_index_done(&d->by_name);
}

cairn_status crn_state_describe(cairn_shelf *s, const state_entry *e, cairn_field_fn *fn, void *arg)
{
    description d = {0};
    cairn_status rc = CAIRN_OK;
    for (uint32_t r = 0; r < e->nranks && rc == CAIRN_OK; r++) {
        crn_part *part;
        crn_mark *m = NULL;
        rc = crn_reader_load(s, e, r, &part, &m);
        if (rc == CAIRN_OK)
            rc = add_share(&d, m);
        crn_mark_free(m);
    }
    for (size_t i = 0; i < d.field.n && rc == CAIRN_OK; i++)
        rc = fn(arg, &d.field.at[i]) != 0 ? CAIRN_NOTHING : CAIRN_OK;
    done(&d);
    return rc;
}
