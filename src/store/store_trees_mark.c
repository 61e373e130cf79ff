/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One rank's trees of a mark in memory, whether they were made here or come from a file.
 */
#include "store/store_format.h"

cairn_status crn_trees_mark_create(size_t nvars, crn_trees_mark **ret)
{
    crn_trees_mark *m;
    CRN_TRY(crn_alloc(&m, 1));
    cairn_status rc = crn_alloc(&m->var, nvars);
    if (rc < 0) {
        free(m);
        return rc;
    }
    m->nvars = nvars;
    *ret = m;
    return CAIRN_OK;
}

void crn_trees_unload(crn_trees_var *v)
{
    crn_tree_done(&v->exact);
    for (size_t i = 0; i < v->nbounds; i++)
        crn_tree_done(&v->tolerant[i]);
    free(v->nan);
    v->nan = NULL;
    v->loaded = false;
}

/* One piece for all three; trees have pointers, and come first. */
cairn_status crn_trees_make_room(crn_trees_var *v, size_t n)
{
    unsigned char *room;
    if (n == 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&room, n * (sizeof *v->tolerant + sizeof *v->bound + sizeof *v->root)));
    v->tolerant = (crn_tree *)(void *)room;
    v->bound = (crn_bound *)(void *)(room + n * sizeof *v->tolerant);
    v->root = (crn_digest *)(void *)(room + n * (sizeof *v->tolerant + sizeof *v->bound));
    return CAIRN_OK;
}

void crn_trees_var_done(crn_trees_var *v)
{
    free((char *)v->var.spec.name);
    free((char *)v->var.spec.type);
    free((char *)v->var.spec.attributes);
    crn_trees_unload(v);
    free(v->tolerant);
}

void crn_trees_mark_free(crn_trees_mark *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->nvars; i++)
        crn_trees_var_done(&m->var[i]);
    free(m->var);
    crn_index_done(&m->name);
    free(m);
}

/* So few are found as fast by looking at all, and there may be 10^5 marks of them. */
enum { FEW_VARS = 8 };

cairn_status crn_trees_index(crn_trees_mark *m)
{
    if (m->nvars <= FEW_VARS)
        return CAIRN_OK;
    while (m->name.n < m->nvars)
        CRN_TRY(crn_index_add(&m->name, crn_hash_text(m->var[m->name.n].var.spec.name), m->name.n));
    return CAIRN_OK;
}

/* The one way for marks that are still being made, and for those of few variables. */
static crn_trees_var *search(const crn_trees_mark *m, const char *name)
{
    for (size_t i = 0; i < m->nvars; i++)
        if (strcmp(m->var[i].var.spec.name, name) == 0)
            return &m->var[i];
    return NULL;
}

crn_trees_var *crn_trees_find(const crn_trees_mark *m, const char *name)
{
    uint32_t at;
    if (m->name.n < m->nvars)
        return search(m, name);
    for (size_t probe = 0; crn_index_next(&m->name, crn_hash_text(name), &probe, &at);)
        if (strcmp(m->var[at].var.spec.name, name) == 0)
            return &m->var[at];
    return NULL;
}

cairn_status crn_trees_declare(crn_trees_var *v, const crn_var_spec *spec, const char *members)
{
    crn_var_spec with = *spec;
    crn_buf lines = {0};
    if (!members)
        return crn_var_declare(&v->var, spec);
    crn_put_text(&lines, "%s%s=%.*s\n", spec->attributes ? spec->attributes : "", CRN_TREES_BOUNDS,
                 (int)strcspn(members, "\n"), members);
    crn_put_u8(&lines, 0);
    cairn_status rc = crn_buf_status(&lines);
    with.attributes = (const char *)lines.at;
    if (rc == CAIRN_OK)
        rc = crn_var_declare(&v->var, &with);
    crn_buf_done(&lines);
    return rc;
}

bool crn_trees_has_nan(const crn_trees_var *v, uint64_t i)
{
    return v->nan && v->nan[i / 8] >> i % 8 & 1;
}
