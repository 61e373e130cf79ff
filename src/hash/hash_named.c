/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bounds by name: of variables, and of members of structures.
 */
#include "hash/hash.h"

cairn_status crn_named_bounds_add(crn_named_bounds *named, const char *name, size_t n,
                                  crn_bound bound)
{
    crn_named_bound b = {.bound = bound};
    while (n > 0 && (name[n - 1] == ' ' || name[n - 1] == '\t'))
        n--;
    CRN_FAIL_IF(n == 0, CAIRN_EINVAL, "a bound has no name before '='");
    CRN_TRY(crn_alloc(&b.name, n + 1));
    memcpy(b.name, name, n);
    b.name[n] = 0;
    cairn_status rc = crn_vec_push(named, b);
    if (rc < 0)
        free(b.name);
    return rc;
}

void crn_named_bounds_done(crn_named_bounds *named)
{
    for (size_t i = 0; i < named->n; i++)
        free(named->at[i].name);
    crn_vec_done(named);
}

static const crn_bound *find_exactly(const crn_named_bounds *named, const char *name, size_t n)
{
    for (size_t i = named->n; i-- > 0;)
        if (strncmp(named->at[i].name, name, n) == 0 && named->at[i].name[n] == 0)
            return &named->at[i].bound;
    return NULL;
}

const crn_bound *crn_named_bounds_find(const crn_named_bounds *named, const char *path,
                                       size_t least)
{
    size_t n = strlen(path);
    for (;;) {
        const crn_bound *b = find_exactly(named, path, n);
        if (b || n <= least)
            return b;
        do {
            n--;
        } while (n > least && path[n] != '.');
        if (n == 0)
            return NULL;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const crn_named_bound *)a)->name, ((const crn_named_bound *)b)->name);
}

cairn_status crn_named_bounds_format(crn_named_bounds *named, char **ret)
{
    crn_buf b = {0};
    if (named->n == 0) {
        *ret = NULL;
        return CAIRN_OK;
    }
    qsort(named->at, named->n, sizeof *named->at, by_name);
    for (size_t i = 0; i < named->n; i++) {
        const crn_named_bound *one = &named->at[i];
        if (i > 0 && by_name(one - 1, one) == 0) {
            crn_buf_done(&b);
            return crn_fail(CAIRN_EINVAL, "there are two bounds for '%s'", one->name);
        }
        crn_put_text(&b, "%s%s=%.17g rel %.17g", i > 0 ? "," : "", one->name, one->bound.absolute,
                     one->bound.relative);
    }
    crn_put_u8(&b, 0);
    cairn_status rc = crn_buf_status(&b);
    if (rc < 0)
        crn_buf_done(&b);
    else
        *ret = (char *)b.at;
    return rc;
}

/* Which of the names are members? */
typedef struct search {
    const crn_named_bounds *named;
    bool *found;
} search;

static crn_bound note_member(const void *arg, const char *path)
{
    const search *s = arg;
    for (size_t i = 0; i < s->named->n; i++) {
        const char *name = s->named->at[i].name;
        const size_t n = strlen(name);
        s->found[i] |= strncmp(path, name, n) == 0 && (path[n] == 0 || path[n] == '.');
    }
    return (crn_bound){0};
}

cairn_status crn_members_check(const char *type, const crn_named_bounds *named)
{
    search s = {.named = named};
    crn_fields f = {0};
    CRN_TRY(crn_alloc(&s.found, named->n));
    cairn_status rc = crn_fields_read(type, note_member, &s, &f);
    for (size_t i = 0; rc == CAIRN_OK && i < named->n; i++)
        if (!s.found[i])
            rc = crn_fail(CAIRN_EINVAL, "the type %s has no member '%s' with numbers", type,
                          named->at[i].name);
    crn_vec_done(&f);
    free(s.found);
    return rc;
}
