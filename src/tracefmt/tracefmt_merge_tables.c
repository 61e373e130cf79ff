/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Strings, sites and datatypes of two traces. Ranks of one program mostly have the same tables in
 * the same order, so an entry is looked for at its own number first.
 */
#include "tracefmt/tracefmt_merge_impl.h"

void crn_table_map_done(crn_table_map *m)
{
    free(m->string);
    free(m->site);
    free(m->type);
}

static cairn_status map_string(crn_trace *a, crn_trace *b, size_t i, uint32_t *ret)
{
    if (i < a->nstrings && strcmp(a->string[i], b->string[i]) == 0) {
        *ret = (uint32_t)i;
        return CAIRN_OK;
    }
    for (size_t k = 0; k < a->nstrings; k++) {
        if (strcmp(a->string[k], b->string[i]) == 0) {
            *ret = (uint32_t)k;
            return CAIRN_OK;
        }
    }
    CRN_TRY(crn_realloc(&a->string, a->nstrings + 1));
    a->string[a->nstrings] = b->string[i];
    b->string[i] = NULL;
    *ret = (uint32_t)a->nstrings++;
    return CAIRN_OK;
}

static bool same_site(const crn_site *x, const crn_site *y)
{
    return x->outer == y->outer && x->module == y->module && x->off == y->off;
}

static cairn_status map_site(crn_trace *a, crn_site site, size_t i, uint32_t *ret)
{
    if (i < a->nsites && same_site(&a->site[i], &site)) {
        *ret = (uint32_t)i;
        return CAIRN_OK;
    }
    for (size_t k = 0; k < a->nsites; k++) {
        if (same_site(&a->site[k], &site)) {
            *ret = (uint32_t)k;
            return CAIRN_OK;
        }
    }
    CRN_TRY(crn_realloc(&a->site, a->nsites + 1));
    a->site[a->nsites] = site;
    *ret = (uint32_t)a->nsites++;
    return CAIRN_OK;
}

/* The same build is the same module, wherever a node has it. */
static cairn_status add_module(crn_trace *a, const crn_module *module)
{
    for (size_t k = 0; k < a->nmodules; k++) {
        const crn_module *known = &a->module[k];
        if (known->name == module->name && known->nbuild == module->nbuild &&
            memcmp(known->build, module->build, module->nbuild) == 0)
            return CAIRN_OK;
    }
    CRN_TRY(crn_realloc(&a->module, a->nmodules + 1));
    a->module[a->nmodules++] = *module;
    return CAIRN_OK;
}

static cairn_status renumber_types(crn_seq *s, uint32_t n, const uint32_t *number)
{
    crn_seq_build b = {0};
    crn_seq_iter it;
    int64_t v;
    crn_seq_iter_init(&it, s);
    for (uint32_t i = 0; i < n && crn_seq_next(&it, &v); i++)
        crn_seq_add(&b, number[v]);
    crn_seq_done(s);
    cairn_status rc = crn_seq_encode(&b, NULL, false, s);
    crn_seq_build_done(&b);
    return rc;
}

/* The table functions of building do the search; the trace's array stands in for a table. */
static cairn_status map_type(crn_trace *a, crn_type *type, uint32_t *ret)
{
    crn_tables t = {.type = {.at = a->type, .n = a->ntypes, .cap = a->ntypes}};
    crn_type taken = *type;
    memset(type, 0, sizeof *type);
    cairn_status rc = crn_tables_type(&t, &taken, ret);
    a->type = t.type.at;
    a->ntypes = t.type.n;
    return rc;
}

static cairn_status map_types(crn_trace *a, crn_trace *b, crn_table_map *m)
{
    m->same_types = true;
    CRN_TRY(crn_alloc(&m->type, b->ntypes));
    for (size_t i = 0; i < b->ntypes; i++) {
        crn_type *type = &b->type[i];
        type->name = m->string[type->name];
        if (!m->same_types)
            CRN_TRY(renumber_types(&type->types, type->ntypes, m->type));
        CRN_TRY(map_type(a, type, &m->type[i]));
        m->same_types &= m->type[i] == i;
    }
    return CAIRN_OK;
}

cairn_status crn_merge_tables(crn_trace *a, crn_trace *b, crn_table_map *m)
{
    CRN_TRY(crn_alloc(&m->string, b->nstrings));
    CRN_TRY(crn_alloc(&m->site, b->nsites));
    for (size_t i = 0; i < b->nstrings; i++)
        CRN_TRY(map_string(a, b, i, &m->string[i]));
    for (size_t i = 1; i < b->nsites; i++) {
        crn_site site = b->site[i];
        site.outer = m->site[site.outer];
        site.module = m->string[site.module];
        CRN_TRY(map_site(a, site, i, &m->site[i]));
    }
    for (size_t i = 0; i < b->nmodules; i++) {
        b->module[i].name = m->string[b->module[i].name];
        b->module[i].path = m->string[b->module[i].path];
        CRN_TRY(add_module(a, &b->module[i]));
    }
    return map_types(a, b, m);
}
