/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bounds that a person asks for: one for all variables, and others for some of them or for members
 * of their structures, as "1e-6, field=1e-3, atoms.x=rel 1e-9".
 */
#include "diff/diff.h"

static cairn_status add_named(diff_question *ask, const char *name, size_t n, crn_bound bound)
{
    diff_bound b = {.bound = bound};
    while (n > 0 && name[n - 1] == ' ')
        n--;
    CRN_FAIL_IF(n == 0, CAIRN_EINVAL, "a bound has no name before '='");
    CRN_TRY(crn_alloc(&b.name, n + 1));
    memcpy(b.name, name, n);
    b.name[n] = 0;
    cairn_status rc = crn_vec_push(&ask->named, b);
    if (rc < 0)
        free(b.name);
    return rc;
}

/* "BOUND" or "NAME=BOUND" */
static cairn_status parse_item(diff_question *ask, const char *item)
{
    const char *equal = strrchr(item, '=');
    crn_bound bound[CRN_BOUNDS_MAX];
    size_t n;
    item += strspn(item, " \t");
    CRN_TRY(crn_bounds_parse(equal ? equal + 1 : item, bound, &n));
    CRN_FAIL_IF(n == 0, CAIRN_EINVAL, "'%s' is no bound, such as '1e-6' or 'field=1e-6'", item);
    if (equal)
        return add_named(ask, item, (size_t)(equal - item), bound[0]);
    CRN_FAIL_IF(ask->has_bound, CAIRN_EINVAL, "'%s' is more than one bound for all variables",
                item);
    ask->has_bound = true;
    ask->bound = bound[0];
    return CAIRN_OK;
}

cairn_status crn_diff_bounds_parse(const char *text, diff_question *ask)
{
    char *list, *rest, *item;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_strdup(text, &list));
    for (rest = list; rc == CAIRN_OK && (item = strsep(&rest, ",")) != NULL;)
        if (item != list || rest || item[strspn(item, " \t")] != 0) /* an empty text is no bound */
            rc = parse_item(ask, item);
    free(list);
    return rc;
}

void crn_diff_bounds_done(diff_question *ask)
{
    for (size_t i = 0; i < ask->named.n; i++)
        free(ask->named.at[i].name);
    crn_vec_done(&ask->named);
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

/* The bound that is asked for by this very name. */
static const crn_bound *find_named(const diff_question *ask, const char *name)
{
    for (size_t i = ask->named.n; i-- > 0;)
        if (strcmp(ask->named.at[i].name, name) == 0)
            return &ask->named.at[i].bound;
    return NULL;
}

/* Of a member, or else of what it is a member of, or else of all variables, or else none. */
crn_bound crn_diff_bound_of(const diff_question *ask, const char *variable, const char *path)
{
    char full[CRN_VAR_NAME + CRN_FIELD_PATH + 2];
    const size_t least = CRN_MIN(strlen(variable), sizeof full - 1);
    snprintf(full, sizeof full, "%s%s%s", variable, *path ? "." : "", path);
    for (;;) {
        const crn_bound *b = find_named(ask, full);
        char *dot = strrchr(full, '.');
        if (b)
            return *b;
        if (strlen(full) <= least || !dot)
            return ask->has_bound ? ask->bound : (crn_bound){0};
        *(dot < full + least ? full + least : dot) = 0;
    }
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

static crn_bound same_for_all(const void *arg, const char *path)
{
    (void)path;
    return *(const crn_bound *)arg;
}

void crn_diff_fields(const diff_question *ask, const crn_var_spec *spec, const crn_bound *all,
                     crn_fields *ret)
{
    const lookup l = {ask, spec->name};
    crn_bound_fn *bound_of = all ? same_for_all : look_up;
    const void *arg = all ? (const void *)all : &l;
    /* Cairn's own numbers of cells are no values of the program */
    if (crn_var_has_layout(spec, "index") || crn_fields_read(spec->type, bound_of, arg, ret) < 0)
        ret->n = 0; /* it is compared as bytes */
}

bool crn_diff_is_plain(const crn_fields *f)
{
    return f->n == 1 && !f->at[0].is_complex && f->at[0].count == 1 && f->at[0].offset == 0;
}
