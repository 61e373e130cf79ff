/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bounds that a person asks for: one for all variables, and others for some of them or for members
 * of their structures, as "1e-6, field=1e-3, atoms.x=rel 1e-9".
 */
#include "diff/diff.h"

cairn_status crn_diff_bounds_parse(const char *text, diff_question *ask)
{
    crn_bound bound[CRN_BOUNDS_MAX];
    size_t n;
    CRN_TRY(crn_bounds_parse_named(text, bound, &n, &ask->named));
    CRN_FAIL_IF(n > 1, CAIRN_EINVAL, "'%s' has more than one bound for all variables", text);
    ask->has_bound = n == 1;
    ask->bound = n == 1 ? bound[0] : (crn_bound){0};
    return CAIRN_OK;
}

void crn_diff_bounds_done(diff_question *ask)
{
    crn_named_bounds_done(&ask->named);
}

bool crn_diff_asks_bound(const diff_question *ask, const char *variable)
{
    const size_t n = strlen(variable);
    for (size_t i = 0; i < ask->named.n; i++) {
        const char *name = ask->named.at[i].name;
        if (strncmp(name, variable, n) == 0 && (name[n] == 0 || name[n] == '.'))
            return true;
    }
    return ask->has_bound;
}

/* Of a member, or else of what it is a member of, or else of all variables, or else none. */
crn_bound crn_diff_bound_of(const diff_question *ask, const char *variable, const char *path)
{
    char full[CRN_VAR_NAME + CRN_FIELD_PATH + 2];
    snprintf(full, sizeof full, "%s%s%s", variable, *path ? "." : "", path);
    const crn_bound *b = crn_named_bounds_find(&ask->named, full, strlen(variable));
    if (b)
        return *b;
    return ask->has_bound ? ask->bound : (crn_bound){0};
}

typedef struct lookup {
    const diff_question *ask;
    const char *variable;
} lookup;

static crn_bound look_up(const void *arg, const char *path)
{
    const lookup *l = arg;
    return crn_diff_bound_of(l->ask, l->variable, path);
}

void crn_diff_fields(const diff_question *ask, const crn_var_spec *spec, crn_fields *ret)
{
    const lookup l = {ask, spec->name};
    /* Cairn's own numbers of cells are no values of the program */
    if (crn_var_has_layout(spec, "index") || crn_fields_read(spec->type, look_up, &l, ret) < 0)
        ret->n = 0; /* it is compared as bytes */
}

/* --- bounds that trees are for --------------------------------------------------------------- */

const char *crn_diff_members(const crn_trees_var *v)
{
    return v ? crn_var_attribute(&v->var.spec, CRN_TREES_BOUNDS) : NULL;
}

bool crn_diff_same_members(const crn_trees_var *a, const crn_trees_var *b)
{
    const char *line[2] = {crn_diff_members(a), crn_diff_members(b)};
    const size_t n = line[0] ? strcspn(line[0], "\n") : 0;
    if (!line[0] || !line[1])
        return line[0] == line[1];
    return strcspn(line[1], "\n") == n && memcmp(line[0], line[1], n) == 0;
}

typedef struct tree_bounds {
    crn_named_bounds named;
    crn_bound others;
} tree_bounds;

static crn_bound look_up_tree(const void *arg, const char *path)
{
    const tree_bounds *t = arg;
    const crn_bound *b = crn_named_bounds_find(&t->named, path, 0);
    return b ? *b : t->others;
}

void crn_diff_tree_fields(const crn_var_spec *spec, const crn_bound *bound, const char *members,
                          crn_fields *ret)
{
    tree_bounds t = {.others = *bound};
    crn_bound none[CRN_BOUNDS_MAX];
    size_t n;
    char *text = members ? strndup(members, strcspn(members, "\n")) : NULL;
    const bool read =
        !members || (text && crn_bounds_parse_named(text, none, &n, &t.named) == CAIRN_OK);
    if (!read || crn_var_has_layout(spec, "index") ||
        crn_fields_read(spec->type, look_up_tree, &t, ret) < 0)
        ret->n = 0;
    crn_named_bounds_done(&t.named);
    free(text);
}

bool crn_diff_is_plain(const crn_fields *f)
{
    return f->n == 1 && !f->at[0].is_complex && f->at[0].count == 1 && f->at[0].offset == 0;
}
