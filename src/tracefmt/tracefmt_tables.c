/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tables of a trace while it is built. Sites may be many, and have an index; the others are
 * searched from end to end: they are short, and only what the recorder has not cached comes here.
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
    crn_vec_done(&t->site);
    crn_index_done(&t->site_index);
    crn_vec_done(&t->type);
}

size_t crn_tables_nbytes(const crn_tables *t)
{
    return t->nbytes + t->string.cap * sizeof *t->string.at + t->site.cap * sizeof *t->site.at +
           crn_index_nbytes(&t->site_index) + t->type.cap * sizeof *t->type.at;
}

cairn_status crn_tables_string(crn_tables *t, const char *s, uint32_t *ret)
{
    char *copy;
    for (size_t i = t->string.n; i-- > 0;) {
        if (strcmp(t->string.at[i], s) == 0) {
            *ret = (uint32_t)i;
            return CAIRN_OK;
        }
    }
    CRN_TRY(crn_vec_reserve(&t->string, 1));
    CRN_TRY(crn_strdup(s, &copy));
    t->string.at[t->string.n++] = copy;
    t->nbytes += crn_mem_nbytes(strlen(s) + 1);
    *ret = (uint32_t)t->string.n - 1;
    return CAIRN_OK;
}

static uint64_t site_hash(const crn_site *s)
{
    uint64_t h = ((uint64_t)s->outer << 32 | s->module) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32 ^ s->off) * 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
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

/* Does a pattern stand for the name? Widths may be written in two ways: "%d" is 100, so is "%03d".
 */
static bool pattern_gives(const char *pattern, const int64_t *number, int n, const char *name)
{
    char buf[PATH_MAX];
    return strncmp(pattern, name, strcspn(pattern, "%")) == 0 &&
           crn_pattern_numbers(pattern) == n &&
           crn_pattern_join(pattern, number, n, buf, sizeof buf) && strcmp(buf, name) == 0;
}

cairn_status crn_tables_pattern(crn_tables *t, const char *name, int64_t number[CRN_NAME_NUMBERS],
                                int *ret_n, uint32_t *ret)
{
    char pattern[2 * PATH_MAX + 10];
    CRN_FAIL_IF(strlen(name) >= PATH_MAX, CAIRN_EINVAL, "a file name has %zu bytes", strlen(name));
    int n = crn_pattern_split(name, pattern, number);
    *ret_n = n;
    for (size_t i = t->string.n; n > 0 && i-- > 1;) {
        if (pattern_gives(t->string.at[i], number, n, name)) {
            *ret = (uint32_t)i;
            return CAIRN_OK;
        }
    }
    return crn_tables_string(t, pattern, ret);
}
