/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sites and what they do: equal lists of accesses are one list. A site is found by the address of
 * its name first, and its last list is compared first: in a loop both are right.
 */
#include "region/region_session.h"

#include <stdio.h>
#include <string.h>

/* --- sites ----------------------------------------------------------------------------------- */

static uint32_t find_site(const regions *r, const char *name)
{
    for (size_t i = 0; i < r->site.n; i++)
        if (r->site.at[i].spelled == name && strcmp(r->site.at[i].name, name) == 0)
            return (uint32_t)i;
    for (size_t i = 0; i < r->site.n; i++)
        if (strcmp(r->site.at[i].name, name) == 0)
            return (uint32_t)i;
    return UINT32_MAX;
}

/* The site after the last one is usually the one that followed it before. */
static cairn_status get_site(regions *r, const char *name, uint32_t *ret)
{
    const uint32_t after = r->met < r->list.n ? r->list.at[r->met].site : 0;
    const uint32_t guess = after < r->site.n ? r->site.at[after].next : 0;
    if (guess < r->site.n && r->site.at[guess].spelled == name &&
        strcmp(r->site.at[guess].name, name) == 0) {
        *ret = guess;
        return CAIRN_OK;
    }
    uint32_t at = find_site(r, name);
    if (at == UINT32_MAX) {
        region_site s = {.last_list = UINT32_MAX};
        CRN_FAIL_IF(*name == 0 || strpbrk(name, "\n("), CAIRN_EINVAL,
                    "'%s' cannot be the name of a site", name);
        CRN_TRY(crn_strdup(name, &s.name));
        if (crn_vec_push(&r->site, s) < 0) {
            free(s.name);
            return CAIRN_ENOMEM;
        }
        at = (uint32_t)(r->site.n - 1);
    }
    r->site.at[at].spelled = name;
    if (after < r->site.n)
        r->site.at[after].next = at;
    *ret = at;
    return CAIRN_OK;
}

/* --- lists ----------------------------------------------------------------------------------- */

static uint32_t ndims_of(const regions *r, cairn_var var)
{
    return r->var.at[var - 1].whole.ndims;
}

static bool same_box(const regions *r, const cairn_access *a, const cairn_access *b)
{
    const size_t nbytes = ndims_of(r, a->var) * sizeof *a->lo;
    if (!a->lo || !b->lo)
        return a->lo == b->lo;
    return memcmp(a->lo, b->lo, nbytes) == 0 && memcmp(a->hi, b->hi, nbytes) == 0;
}

static bool is_list(const regions *r, const region_list *l, const cairn_access *a, size_t n)
{
    if (l->n != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (l->given[i].var != a[i].var || l->given[i].how != a[i].how ||
            !same_box(r, &l->given[i], &a[i]))
            return false;
    return true;
}

static cairn_status check_access(const regions *r, const char *site, const cairn_access *a)
{
    CRN_FAIL_IF(a->var == 0 || a->var > r->var.n, CAIRN_EINVAL,
                "region '%s': %u is no variable: did cairn_variable fail?", site, a->var);
    const char *name = r->name.at[a->var - 1].name;
    const crn_box *whole = &r->var.at[a->var - 1].whole;
    CRN_FAIL_IF((a->how & (CAIRN_READS | CAIRN_WRITES)) == 0 ||
                    (a->how & ~(unsigned)(CAIRN_READS | CAIRN_WRITES)) || !a->lo != !a->hi,
                CAIRN_EINVAL, "region '%s': nothing, or not enough, is said of '%s'", site, name);
    for (uint32_t d = 0; a->lo && d < whole->ndims; d++)
        CRN_FAIL_IF(a->lo[d] > a->hi[d] || a->hi[d] > whole->hi[d], CAIRN_EINVAL,
                    "region '%s': there is no such box of '%s', dimension %u", site, name, d);
    return CAIRN_OK;
}

static crn_access compile_access(const regions *r, const cairn_access *a)
{
    const crn_box *whole = &r->var.at[a->var - 1].whole;
    crn_access c = {.var = a->var - 1,
                    .reads = a->how & CAIRN_READS,
                    .writes = a->how & CAIRN_WRITES,
                    .all = true,
                    .box = *whole};
    for (uint32_t d = 0; a->lo && d < whole->ndims; d++) {
        c.box.lo[d] = a->lo[d];
        c.box.hi[d] = a->hi[d];
        c.all = c.all && a->lo[d] == 0 && a->hi[d] == whole->hi[d];
    }
    return c;
}

/* "advance(R density, W flux[])": boxes without their numbers, which differ between ranks. */
static cairn_status write_text(const regions *r, const char *site, const cairn_access *a, size_t n,
                               char **ret)
{
    static const char *const how[] = {"", "R", "W", "RW"};
    crn_buf b = {0};
    crn_put_text(&b, "%s(", site);
    for (size_t i = 0; i < n; i++)
        crn_put_text(&b, "%s%s %s%s", i ? ", " : "", how[a[i].how], r->name.at[a[i].var - 1].name,
                     a[i].lo ? "[]" : "");
    crn_put_text(&b, ")");
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        rc = crn_strdup(crn_buf_text(&b), ret);
    crn_buf_done(&b);
    return rc;
}

/* Keep what was given, with its boxes behind it. */
static cairn_status copy_given(const regions *r, const cairn_access *a, size_t n,
                               cairn_access **ret)
{
    cairn_access *copy;
    CRN_TRY(
        crn_mem_alloc((void **)&copy, n, sizeof *copy + 2 * CRN_DIMS_MAX * sizeof(uint64_t), 0));
    uint64_t *at = (uint64_t *)(void *)(copy + n);
    for (size_t i = 0; i < n; i++) {
        copy[i] = a[i];
        if (!a[i].lo)
            continue;
        const uint32_t ndims = ndims_of(r, a[i].var);
        memcpy(at, a[i].lo, ndims * sizeof *at);
        memcpy(at + CRN_DIMS_MAX, a[i].hi, ndims * sizeof *at);
        copy[i].lo = at;
        copy[i].hi = at + CRN_DIMS_MAX;
        at += 2 * (size_t)CRN_DIMS_MAX;
    }
    *ret = copy;
    return CAIRN_OK;
}

static void list_done(region_list *l)
{
    free(l->text);
    free(l->given);
    free(l->access);
}

static cairn_status write_scope(const char *site, char **ret)
{
    const size_t cap = strlen(site) + sizeof "scope  {";
    CRN_TRY(crn_mem_alloc((void **)ret, cap, 1, 0));
    snprintf(*ret, cap, "scope %s {", site);
    return CAIRN_OK;
}

static cairn_status make_list(regions *r, uint32_t site, const cairn_access *a, size_t n,
                              bool scope)
{
    region_list l = {.site = site, .n = n, .told = UINT32_MAX, .scope = scope, .whole = true};
    const char *name = r->site.at[site].name;
    for (size_t i = 0; i < n; i++)
        CRN_TRY(check_access(r, name, &a[i]));
    cairn_status rc = scope ? write_scope(name, &l.text) : write_text(r, name, a, n, &l.text);
    if (rc == CAIRN_OK)
        rc = copy_given(r, a, n, &l.given);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&l.access, n);
    for (size_t i = 0; i < n && rc == CAIRN_OK; i++) {
        const crn_access c = compile_access(r, &a[i]);
        if (crn_box_volume(&c.box) == 0)
            continue;
        l.access[l.nused++] = c;
        l.whole = l.whole && c.all;
        crn_bit_set(l.touched, c.var);
        if (c.reads)
            crn_bit_set(l.reads, c.var);
    }
    if (rc == CAIRN_OK)
        rc = crn_vec_push(&r->list, l);
    if (rc < 0)
        list_done(&l);
    return rc;
}

static cairn_status find_list(regions *r, uint32_t site, const cairn_access *a, size_t n,
                              bool scope, uint32_t *ret)
{
    uint32_t at = r->site.at[site].last_list;
    CRN_FAIL_IF(at != UINT32_MAX && r->list.at[at].scope != scope, CAIRN_EINVAL,
                "'%s' is the name of a region and of a scope", r->site.at[site].name);
    if (at == UINT32_MAX || !is_list(r, &r->list.at[at], a, n)) {
        for (at = 0; at < r->list.n; at++)
            if (r->list.at[at].site == site && is_list(r, &r->list.at[at], a, n))
                break;
        if (at == r->list.n)
            CRN_TRY(make_list(r, site, a, n, scope));
        r->site.at[site].last_list = at;
    }
    r->met = at;
    *ret = at;
    return CAIRN_OK;
}

cairn_status crn_regions_list(regions *r, const char *name, const cairn_access *a, size_t n,
                              uint32_t *ret)
{
    uint32_t site = 0;
    CRN_TRY(get_site(r, name, &site));
    return find_list(r, site, a, n, false, ret);
}

/* What the scope says of variables, and of those that neither it nor its regions have named, that
 * anything may happen to them. */
cairn_status crn_regions_scope_list(regions *r, const char *name, const cairn_access *a, size_t n,
                                    uint32_t *ret)
{
    uint32_t site = 0;
    CRN_VEC(cairn_access) all = {0};
    CRN_TRY(get_site(r, name, &site));
    if (!r->site.at[site].mentioned)
        CRN_TRY(crn_alloc(&r->site.at[site].mentioned, REGION_WORDS));
    uint64_t named[REGION_WORDS];
    memcpy(named, r->site.at[site].mentioned, sizeof named);
    cairn_status rc = crn_vec_reserve(&all, n + r->var.n);
    for (size_t i = 0; rc == CAIRN_OK && i < n; i++) {
        all.at[all.n++] = a[i];
        if (a[i].var > 0 && a[i].var <= r->var.n)
            crn_bit_set(named, a[i].var - 1);
    }
    for (uint32_t i = 0; rc == CAIRN_OK && i < r->var.n; i++)
        if (!crn_bit(named, i))
            all.at[all.n++] = CAIRN_RW(i + 1);
    if (rc == CAIRN_OK)
        rc = find_list(r, site, all.at, all.n, true, ret);
    crn_vec_done(&all);
    return rc;
}

void crn_regions_forget_lists(regions *r)
{
    for (size_t i = 0; i < r->list.n; i++)
        list_done(&r->list.at[i]);
    crn_vec_done(&r->list);
    for (size_t i = 0; i < r->site.n; i++) {
        free(r->site.at[i].name);
        free(r->site.at[i].mentioned);
        crn_decision_done(&r->site.at[i].shadow);
    }
    crn_vec_done(&r->site);
}
