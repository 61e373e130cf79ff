/* SPDX-License-Identifier: BSD-3-Clause
 *
 * With region.check: is what regions declare to write all that they write, and do they overwrite
 * all that they say? Before a region runs, all variables are copied, and what it is to overwrite is
 * filled with a pattern. Behind it, what has changed must have been declared; what still has the
 * pattern was not written, and gets back what it was, so that the program goes on as it would.
 */
#include "region/region_session.h"

#include <inttypes.h>
#include <string.h>

enum { PATTERN = 0xa5, ITEM_MIN = 4 }; /* shorter elements have the pattern's value too often */

enum { UNDECLARED, NOT_WHOLLY, NKINDS };

static const char *const kinds[NKINDS] = {"undeclared write", "not wholly written"};

/* A variable in memory, and its copy, in which elements lie without gaps. */
typedef struct place {
    unsigned char *data;
    crn_box piece, memory;
    unsigned char *copy;
    size_t item;
} place;

void crn_check_done(region_check *k)
{
    for (size_t i = 0; i < k->copy.n; i++)
        crn_buf_done(&k->copy.at[i]);
    crn_vec_done(&k->copy);
    crn_vec_done(&k->found);
}

/* False: it is no longer what its handle says, and not looked at. */
static bool find_place(const regions *r, size_t var, place *ret)
{
    const crn_region_var *v = &r->var.at[var];
    crn_box now;
    uint64_t item;
    if (crn_ckpt_shape(r->c, r->name.at[var].name, &now, &item) < 0 ||
        crn_box_volume(&now) != crn_box_volume(&v->whole) || crn_box_volume(&now) == 0 ||
        item != v->item ||
        crn_ckpt_memory(r->c, r->name.at[var].name, &ret->data, &ret->piece, &ret->memory) < 0)
        return false;
    if (ret->piece.ndims == 0)
        ret->piece = ret->memory = v->whole;
    ret->item = item;
    ret->copy = var < r->check.copy.n ? r->check.copy.at[var].at : NULL;
    return true;
}

/* The stretches of a box of the variable: from in the copy, to in memory. */
static crn_stretches walk(const place *p, const crn_box *box)
{
    crn_box b = *box;
    for (uint32_t d = 0; d < b.ndims; d++) {
        b.lo[d] += p->piece.lo[d];
        b.hi[d] += p->piece.lo[d];
    }
    return crn_stretches_of(&b, &p->piece, &p->memory);
}

/* --- findings -------------------------------------------------------------------------------- */

static void report(regions *r, size_t var, unsigned kind, uint64_t index, uint64_t count)
{
    const region_finding f = {r->list.at[r->check.list].site, var, kind};
    for (size_t i = 0; i < r->check.found.n; i++) {
        const region_finding *o = &r->check.found.at[i];
        if (o->site == f.site && o->var == var && o->kind == kind)
            return;
    }
    if (crn_vec_push(&r->check.found, f) < 0)
        return;
    crn_log_write(crn_ckpt_log(r->c), CRN_LOG_WARN, CRN_LOG_EACH,
                  "region '%s', variable '%s': %s, %" PRIu64 " elements, first index %" PRIu64,
                  r->site.at[f.site].name, r->name.at[var].name, kinds[kind], count, index);
    crn_ckpt_event(r->c, &(crn_event){.kind = CRN_EVENT_FINDING,
                                      .finding = {.site = r->site.at[f.site].name,
                                                  .variable = r->name.at[var].name,
                                                  .kind = kinds[kind],
                                                  .index = index,
                                                  .count = count}});
}

/* --- before ---------------------------------------------------------------------------------- */

static cairn_status copy_variable(regions *r, size_t var)
{
    place p;
    crn_buf *b = &r->check.copy.at[var];
    b->n = 0;
    if (!find_place(r, var, &p))
        return CAIRN_OK;
    crn_put_zeros(b, crn_box_volume(&r->var.at[var].whole) * p.item);
    CRN_TRY(crn_buf_status(b));
    crn_stretches s = walk(&p, &r->var.at[var].whole);
    while (crn_stretches_next(&s))
        memcpy(b->at + s.from * p.item, p.data + s.to * p.item, s.n * p.item);
    return CAIRN_OK;
}

/* Does the region overwrite this box, without reading any of the variable? */
static bool overwrites(const region_list *l, const crn_access *a)
{
    for (size_t i = 0; i < l->nused; i++)
        if (l->access[i].var == a->var && l->access[i].reads)
            return false;
    return a->writes;
}

static void fill(const regions *r, const crn_access *a)
{
    place p;
    if (!find_place(r, a->var, &p) || p.item < ITEM_MIN)
        return;
    crn_stretches s = walk(&p, &a->box);
    while (crn_stretches_next(&s))
        memset(p.data + s.to * p.item, PATTERN, s.n * p.item);
}

cairn_status crn_check_before(regions *r, uint32_t list)
{
    const region_list *l = &r->list.at[list];
    while (r->check.copy.n < r->var.n)
        CRN_TRY(crn_vec_push(&r->check.copy, (crn_buf){0}));
    for (size_t i = 0; i < r->var.n; i++)
        CRN_TRY(copy_variable(r, i));
    for (size_t i = 0; i < l->nused && !l->scope; i++)
        if (overwrites(l, &l->access[i]))
            fill(r, &l->access[i]);
    r->check.list = list;
    r->check.runs = true;
    return CAIRN_OK;
}

/* --- behind ---------------------------------------------------------------------------------- */

static bool is_pattern(const unsigned char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] != PATTERN)
            return false;
    return true;
}

static void check_overwritten(regions *r, const crn_access *a)
{
    place p;
    uint64_t first = 0, count = 0;
    if (!find_place(r, a->var, &p) || p.item < ITEM_MIN || r->check.copy.at[a->var].n == 0)
        return;
    crn_stretches s = walk(&p, &a->box);
    while (crn_stretches_next(&s))
        for (uint64_t k = 0; k < s.n; k++) {
            unsigned char *at = p.data + (s.to + k) * p.item;
            if (!is_pattern(at, p.item))
                continue;
            memcpy(at, p.copy + (s.from + k) * p.item, p.item);
            first = count++ == 0 ? s.from + k : first;
        }
    if (count > 0)
        report(r, a->var, NOT_WHOLLY, first, count);
}

static bool is_in(const crn_box *box, const crn_box *whole, uint64_t index)
{
    for (uint32_t d = whole->ndims; d-- > 0;) {
        const uint64_t at = index % whole->hi[d];
        if (at < box->lo[d] || at >= box->hi[d])
            return false;
        index /= whole->hi[d];
    }
    return true;
}

/* May this element have been written, as the list or an open scope says? */
static bool may_change(const regions *r, const region_list *l, size_t var, uint64_t index)
{
    for (size_t i = 0; i < l->nused; i++)
        if (l->access[i].var == var && l->access[i].writes &&
            (l->access[i].all || is_in(&l->access[i].box, &r->var.at[var].whole, index)))
            return true;
    for (size_t i = 0; i < r->scope.n; i++)
        if (!crn_bit(r->site.at[r->scope.at[i].site].mentioned, var))
            return true;
    return false;
}

static void check_unchanged(regions *r, const region_list *l, size_t var)
{
    place p;
    uint64_t first = 0, count = 0;
    if (!find_place(r, var, &p) || r->check.copy.at[var].n == 0)
        return;
    crn_stretches s = walk(&p, &r->var.at[var].whole);
    while (crn_stretches_next(&s)) {
        const unsigned char *now = p.data + s.to * p.item, *was = p.copy + s.from * p.item;
        if (memcmp(now, was, s.n * p.item) == 0)
            continue;
        for (uint64_t k = 0; k < s.n; k++)
            if (memcmp(now + k * p.item, was + k * p.item, p.item) != 0 &&
                !may_change(r, l, var, s.from + k))
                first = count++ == 0 ? s.from + k : first;
    }
    if (count > 0)
        report(r, var, UNDECLARED, first, count);
}

void crn_check_after(regions *r)
{
    if (!r->check.runs)
        return;
    const region_list *l = &r->list.at[r->check.list];
    r->check.runs = false;
    for (size_t i = 0; i < l->nused && !l->scope; i++)
        if (overwrites(l, &l->access[i]))
            check_overwritten(r, &l->access[i]);
    for (size_t i = 0; i < r->check.copy.n; i++)
        check_unchanged(r, l, i);
}
