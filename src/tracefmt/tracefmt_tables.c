/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tables of a trace while it is built. What is looked for has an index; only predefined types,
 * which the recorder looks for once, are searched from end to end.
 */
#include "tracefmt/tracefmt.h"

#include <limits.h>

cairn_status crn_tables_init(crn_tables *t)
{
    uint32_t empty;
    memset(t, 0, sizeof *t);
    CRN_TRY(crn_tables_string(t, "", &empty));
    return crn_vec_push(&t->site, (crn_site){0});
}

static void type_done(crn_type *type)
{
    crn_seq_done(&type->ints);
    crn_seq_done(&type->addrs);
    crn_seq_done(&type->types);
}

void crn_tables_done(crn_tables *t)
{
    for (size_t i = 0; i < t->string.n; i++)
        free(t->string.at[i]);
    for (size_t i = 0; i < t->type.n; i++)
        type_done(&t->type.at[i]);
    crn_vec_done(&t->string);
    crn_index_done(&t->string_index);
    crn_index_done(&t->pattern_index);
    crn_vec_done(&t->site);
    crn_index_done(&t->site_index);
    crn_vec_done(&t->module);
    crn_vec_done(&t->type);
    crn_vec_done(&t->contents);
    crn_index_done(&t->contents_index);
}

size_t crn_tables_nbytes(const crn_tables *t)
{
    return t->nbytes + t->string.cap * sizeof *t->string.at + t->site.cap * sizeof *t->site.at +
           t->module.cap * sizeof *t->module.at + t->type.cap * sizeof *t->type.at +
           t->contents.cap * sizeof *t->contents.at + crn_index_nbytes(&t->string_index) +
           crn_index_nbytes(&t->pattern_index) + crn_index_nbytes(&t->site_index) +
           crn_index_nbytes(&t->contents_index);
}

cairn_status crn_tables_string(crn_tables *t, const char *s, uint32_t *ret)
{
    char *copy;
    uint64_t hash = crn_hash_text(s);
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&t->string_index, hash, &probe, &at);) {
        if (strcmp(t->string.at[at], s) == 0) {
            *ret = at;
            return CAIRN_OK;
        }
    }
    CRN_TRY(crn_vec_reserve(&t->string, 1));
    CRN_TRY(crn_strdup(s, &copy));
    if (crn_index_add(&t->string_index, hash, t->string.n) < 0) {
        free(copy);
        return CAIRN_ENOMEM;
    }
    t->string.at[t->string.n++] = copy;
    t->nbytes += crn_mem_nbytes(strlen(s) + 1);
    *ret = (uint32_t)t->string.n - 1;
    return CAIRN_OK;
}

static uint64_t site_hash(const crn_site *s)
{
    return crn_hash_mix(crn_hash_mix(0, (uint64_t)s->outer << 32 | s->module), s->off);
}

cairn_status crn_tables_site(crn_tables *t, crn_site site, uint32_t *ret)
{
    uint64_t hash = site_hash(&site);
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&t->site_index, hash, &probe, &at);) {
        const crn_site *s = &t->site.at[at];
        if (s->outer == site.outer && s->module == site.module && s->off == site.off) {
            *ret = at;
            return CAIRN_OK;
        }
    }
    CRN_TRY(crn_vec_reserve(&t->site, 1));
    CRN_TRY(crn_index_add(&t->site_index, hash, t->site.n));
    t->site.at[t->site.n++] = site;
    *ret = (uint32_t)t->site.n - 1;
    return CAIRN_OK;
}

bool crn_tables_has_module(const crn_tables *t, uint32_t name)
{
    for (size_t i = 0; i < t->module.n; i++)
        if (t->module.at[i].name == name)
            return true;
    return false;
}

cairn_status crn_tables_module(crn_tables *t, crn_module module)
{
    return crn_vec_push(&t->module, module);
}

static bool same_type(const crn_type *a, const crn_type *b)
{
    return a->name == b->name && a->combiner == b->combiner && a->nbytes == b->nbytes &&
           a->lb == b->lb && a->extent == b->extent && a->nints == b->nints &&
           a->naddrs == b->naddrs && a->ntypes == b->ntypes && crn_seq_equal(&a->ints, &b->ints) &&
           crn_seq_equal(&a->addrs, &b->addrs) && crn_seq_equal(&a->types, &b->types);
}

cairn_status crn_tables_type(crn_tables *t, crn_type *type, uint32_t *ret)
{
    for (size_t i = 0; i < t->type.n; i++) {
        if (same_type(&t->type.at[i], type)) {
            type_done(type);
            *ret = (uint32_t)i;
            return CAIRN_OK;
        }
    }
    if (crn_vec_push(&t->type, *type) < 0) {
        type_done(type);
        return CAIRN_ENOMEM;
    }
    t->nbytes += crn_mem_nbytes(type->ints.n) + crn_mem_nbytes(type->addrs.n) +
                 crn_mem_nbytes(type->types.n);
    *ret = (uint32_t)t->type.n - 1;
    return CAIRN_OK;
}

/* An entry of contents: what comes before the values. */
enum { OF_TYPE, OF_COMBINER, OF_INTS, OF_ADDRS, OF_TYPES, OF_VALUES };

static uint64_t contents_hash(const crn_contents *c)
{
    return crn_values_hash(c->value, crn_contents_count(c)) + c->combiner;
}

static bool same_contents(const int64_t *entry, const crn_contents *c)
{
    return entry[OF_COMBINER] == c->combiner && entry[OF_INTS] == c->nints &&
           entry[OF_ADDRS] == c->naddrs && entry[OF_TYPES] == c->ntypes &&
           memcmp(entry + OF_VALUES, c->value, crn_contents_count(c) * sizeof *c->value) == 0;
}

bool crn_tables_find_type(const crn_tables *t, const crn_contents *c, uint32_t *ret)
{
    uint64_t hash = contents_hash(c);
    uint32_t place;
    for (size_t probe = 0; crn_index_next(&t->contents_index, hash, &probe, &place);) {
        const int64_t *entry = t->contents.at + place;
        if (same_contents(entry, c)) {
            *ret = (uint32_t)entry[OF_TYPE];
            return true;
        }
    }
    return false;
}

static cairn_status add_contents(crn_tables *t, const crn_contents *c, uint32_t type)
{
    size_t n = crn_contents_count(c);
    const int64_t head[OF_VALUES] = {type, c->combiner, c->nints, c->naddrs, c->ntypes};
    CRN_TRY(crn_vec_reserve(&t->contents, OF_VALUES + n));
    CRN_TRY(crn_index_add(&t->contents_index, contents_hash(c), t->contents.n));
    memcpy(t->contents.at + t->contents.n, head, sizeof head);
    memcpy(t->contents.at + t->contents.n + OF_VALUES, c->value, n * sizeof *c->value);
    t->contents.n += OF_VALUES + n;
    return CAIRN_OK;
}

cairn_status crn_tables_describe_type(crn_tables *t, const crn_contents *c, crn_type *type,
                                      uint32_t *ret)
{
    cairn_status rc;
    type->combiner = c->combiner;
    type->nints = c->nints;
    type->naddrs = c->naddrs;
    type->ntypes = c->ntypes;
    CRN_TRY_OUT(rc, crn_seq_of(c->value, c->nints, &type->ints));
    CRN_TRY_OUT(rc, crn_seq_of(c->value + c->nints, c->naddrs, &type->addrs));
    CRN_TRY_OUT(rc, crn_seq_of(c->value + c->nints + c->naddrs, c->ntypes, &type->types));
    CRN_TRY(crn_tables_type(t, type, ret));
    return add_contents(t, c, *ret);
out:
    type_done(type);
    return rc;
}

cairn_status crn_tables_pattern(crn_tables *t, const char *name, int64_t number[CRN_NAME_NUMBERS],
                                int *ret_n, uint32_t *ret)
{
    char pattern[2 * PATH_MAX + 10];
    uint64_t hash = crn_pattern_hash(name);
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&t->pattern_index, hash, &probe, &at);) {
        if (crn_pattern_match(t->string.at[at], name, number, ret_n)) {
            *ret = at;
            return CAIRN_OK;
        }
    }
    CRN_FAIL_IF(strlen(name) >= PATH_MAX, CAIRN_EINVAL, "a file name has %zu bytes", strlen(name));
    *ret_n = crn_pattern_split(name, pattern, number);
    CRN_TRY(crn_tables_string(t, pattern, ret));
    return crn_index_add(&t->pattern_index, hash, *ret);
}
