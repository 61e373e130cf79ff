/* SPDX-License-Identifier: BSD-3-Clause
 *
 * With region.check: is what regions declare all that they do? Before a region runs, all variables
 * are copied, what it is to overwrite is poisoned, and what it does not mention is made unreadable.
 * Behind it, what has changed must have been declared; what still has the poison was not written,
 * and gets back what it was, so that the program goes on as it would; and what is made from poison
 * was read. What marks do not keep is poisoned, too: on the way back, and where the program says
 * itself that it is not needed.
 */
#include "region/region_session.h"

#include <inttypes.h>
#include <string.h>

enum { UNDECLARED_WRITE, NOT_WHOLLY, UNDECLARED_READ, DROPPED, NKINDS };

static const char *const kinds[NKINDS] = {"undeclared write", "not wholly written",
                                          "undeclared read", "used, and not kept"};

/* A variable in memory, and its copy, in which elements lie without gaps. */
typedef struct place {
    unsigned char *data;
    crn_box piece, memory;
    unsigned char *copy;
    size_t item;
} place;

void crn_check_done(region_check *k)
{
    crn_guard_done(&k->guard);
    for (size_t i = 0; i < k->copy.n; i++)
        crn_buf_done(&k->copy.at[i]);
    for (size_t i = 0; i < k->suspect.n; i++)
        crn_buf_done(&k->suspect.at[i].visits);
    crn_vec_done(&k->copy);
    crn_vec_done(&k->suspect);
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

static void warn(const regions *r, const region_finding *f)
{
    crn_log_write(crn_ckpt_log(r->c), CRN_LOG_WARN, CRN_LOG_EACH,
                  "region '%s', variable '%s': %s, %" PRIu64 " elements, first index %" PRIu64,
                  r->site.at[f->site].name, r->name.at[f->var].name, kinds[f->kind], f->count,
                  f->index);
}

/* Once for each site; what was dropped shows at the first site, and then everywhere. */
static void note(regions *r, size_t var, unsigned kind, uint64_t index, uint64_t count)
{
    const region_finding f = {r->list.at[r->check.list].site, var, kind, index, count};
    for (size_t i = 0; i < r->check.found.n; i++) {
        const region_finding *o = &r->check.found.at[i];
        if (o->var == var && o->kind == kind && (o->site == f.site || kind == DROPPED))
            return;
    }
    if (crn_vec_push(&r->check.found, f) == CAIRN_OK)
        warn(r, &f);
}

static void put_findings(const regions *r, crn_buf *b)
{
    for (size_t i = r->check.told; i < r->check.found.n; i++) {
        const region_finding *f = &r->check.found.at[i];
        crn_put_str(b, r->site.at[f->site].name);
        crn_put_str(b, r->name.at[f->var].name);
        crn_put_u8(b, (uint8_t)f->kind);
        crn_put_u64(b, f->index);
        crn_put_u64(b, f->count);
    }
}

static void write_events(const regions *r, const unsigned char *at, size_t n, uint64_t rank)
{
    char site[UINT16_MAX + 1], variable[UINT16_MAX + 1];
    crn_cursor cur = crn_cursor_of(at, n);
    while (cur.n > 0) {
        crn_get_str(&cur, site, UINT16_MAX);
        crn_get_str(&cur, variable, UINT16_MAX);
        const uint8_t kind = crn_get_u8(&cur);
        const uint64_t index = crn_get_u64(&cur), count = crn_get_u64(&cur);
        if (cur.failed || kind >= NKINDS)
            return;
        crn_ckpt_event(r->c, &(crn_event){.kind = CRN_EVENT_FINDING,
                                          .finding = {.site = site,
                                                      .variable = variable,
                                                      .kind = kinds[kind],
                                                      .index = index,
                                                      .count = count,
                                                      .rank = rank}});
    }
}

void crn_check_tell(regions *r)
{
    crn_comm *comm = crn_ckpt_comm(r->c);
    uint64_t any = r->check.found.n > r->check.told;
    crn_gathered all = {0};
    crn_buf own = {0};
    if (!r->check.on || crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, &any, 1) < 0 || !any)
        return;
    put_findings(r, &own);
    r->check.told = r->check.found.n;
    if (crn_comm_gatherv(comm, own.at, own.n, 0, &all) == CAIRN_OK && all.off)
        for (int k = 0; k < crn_comm_size(comm); k++)
            write_events(r, all.data + all.off[k], all.off[k + 1] - all.off[k], (uint64_t)k);
    crn_gathered_done(&all);
    crn_buf_done(&own);
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
    return a->writes && !l->scope;
}

static void poison(const regions *r, size_t var, const crn_box *box)
{
    place p;
    if (!find_place(r, var, &p))
        return;
    crn_stretches s = walk(&p, box);
    while (crn_stretches_next(&s))
        for (uint64_t k = 0; k < s.n; k++)
            crn_poison_put(p.data + (s.to + k) * p.item, p.item, (crn_poison){var, s.from + k},
                           r->check.salt);
}

void crn_check_drop(const regions *r, size_t var)
{
    const crn_region_var *v = &r->var.at[var];
    for (size_t i = 0; i < v->modified.n; i++)
        poison(r, var, &v->modified.at[i]);
}

/* May undeclared work of an open scope touch the variable? */
static bool is_left_open(const regions *r, size_t var)
{
    for (size_t i = 0; i < r->scope.n; i++)
        if (!crn_bit(r->site.at[r->scope.at[i].site].mentioned, var))
            return true;
    return false;
}

/* Whole pages of what the region does not mention are not to be read. */
static cairn_status guard_others(regions *r, const region_list *l)
{
    crn_guard_clear(&r->check.guard);
    for (size_t i = 0; i < r->var.n; i++) {
        place p;
        if (crn_bit(l->touched, i) || is_left_open(r, i) || !find_place(r, i, &p))
            continue;
        crn_stretches s = walk(&p, &r->var.at[i].whole);
        while (crn_stretches_next(&s))
            CRN_TRY(crn_guard_add(&r->check.guard, i, p.data + s.to * p.item, s.n * p.item));
    }
    crn_guard_on(&r->check.guard);
    return CAIRN_OK;
}

cairn_status crn_check_before(regions *r, uint32_t list)
{
    const region_list *l = &r->list.at[list];
    while (r->check.copy.n < r->var.n)
        CRN_TRY(crn_vec_push(&r->check.copy, (crn_buf){0}));
    for (size_t i = 0; i < r->var.n; i++)
        CRN_TRY(copy_variable(r, i));
    r->check.salt = r->count;
    for (size_t i = 0; i < l->nused; i++)
        if (overwrites(l, &l->access[i]))
            poison(r, l->access[i].var, &l->access[i].box);
    r->check.list = list;
    r->check.runs = true;
    return guard_others(r, l);
}

/* --- behind ---------------------------------------------------------------------------------- */

/* How often elements of this access were found with their poison, for short ones. */
static unsigned char *visits_of(regions *r, size_t var, uint64_t n)
{
    region_suspect new = {.list = r->check.list, .var = var};
    for (size_t i = 0; i < r->check.suspect.n; i++)
        if (r->check.suspect.at[i].list == new.list && r->check.suspect.at[i].var == var)
            return r->check.suspect.at[i].visits.at;
    crn_put_zeros(&new.visits, n);
    if (crn_buf_status(&new.visits) < 0 || crn_vec_push(&r->check.suspect, new) < 0) {
        crn_buf_done(&new.visits);
        return NULL;
    }
    return new.visits.at;
}

static void check_overwritten(regions *r, const crn_access *a)
{
    place p;
    uint64_t first = 0, count = 0;
    unsigned char *visits = NULL;
    if (!find_place(r, a->var, &p) || r->check.copy.at[a->var].n == 0)
        return;
    const unsigned certain = crn_poison_certain(p.item);
    if (certain > 1 && !(visits = visits_of(r, a->var, crn_box_volume(&r->var.at[a->var].whole))))
        return;
    crn_stretches s = walk(&p, &a->box);
    while (crn_stretches_next(&s))
        for (uint64_t k = 0; k < s.n; k++) {
            const crn_poison own = {a->var, s.from + k};
            unsigned char *at = p.data + (s.to + k) * p.item;
            const bool left = crn_poison_is_left(at, p.item, own, r->check.salt);
            if (visits)
                visits[own.index] = left ? visits[own.index] + 1 : 0;
            if (left)
                memcpy(at, p.copy + own.index * p.item, p.item);
            if (left && (!visits || visits[own.index] == certain))
                first = count++ == 0 ? own.index : first;
        }
    if (count > 0)
        note(r, a->var, NOT_WHOLLY, first, count);
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
    return is_left_open(r, var);
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
        note(r, var, UNDECLARED_WRITE, first, count);
}

/* Poison was found: the region has read it itself, which it was to overwrite, or an earlier one
 * has brought what no mark keeps. */
static void note_poison(regions *r, const region_list *l, crn_poison found)
{
    if (found.var >= r->var.n || found.index >= crn_box_volume(&r->var.at[found.var].whole))
        return;
    for (size_t i = 0; i < l->nused; i++)
        if (l->access[i].var == found.var && overwrites(l, &l->access[i]) &&
            is_in(&l->access[i].box, &r->var.at[found.var].whole, found.index)) {
            note(r, found.var, UNDECLARED_READ, found.index, 1);
            return;
        }
    note(r, found.var, DROPPED, found.index, 1);
}

/* An element that has its own poison was left as it was. */
static void check_made(regions *r, const region_list *l, const crn_access *a)
{
    place p;
    crn_poison found;
    if (!a->writes || !find_place(r, a->var, &p) || r->check.copy.at[a->var].n == 0)
        return;
    crn_stretches s = walk(&p, &a->box);
    while (crn_stretches_next(&s))
        for (uint64_t k = 0; k < s.n; k++) {
            const unsigned char *at = p.data + (s.to + k) * p.item;
            const unsigned char *was = p.copy + (s.from + k) * p.item;
            if (crn_poison_find(at, p.item, s.from + k, &found) && memcmp(at, was, p.item) != 0)
                note_poison(r, l, found);
        }
}

void crn_check_value(regions *r, const void *value, size_t nbytes)
{
    crn_poison found;
    if (r->check.list >= r->list.n || nbytes % sizeof(double) != 0)
        return;
    for (size_t i = 0; i < nbytes; i += sizeof(double))
        if (crn_poison_find((const unsigned char *)value + i, sizeof(double), 0, &found))
            note_poison(r, &r->list.at[r->check.list], found);
}

/* Ranges of one variable may be many: the first read in the order of memory counts. */
static void check_unread(regions *r)
{
    const crn_guard *g = &r->check.guard;
    for (size_t i = 0; i < g->range.n; i++) {
        const crn_guarded *range = &g->range.at[i];
        const uintptr_t read = range->read;
        place p;
        if (read == 0 || !find_place(r, range->var, &p))
            continue;
        const uint64_t at = (read - (uintptr_t)p.data) / p.item;
        crn_stretches s = walk(&p, &r->var.at[range->var].whole);
        while (crn_stretches_next(&s))
            if (at >= s.to && at - s.to < s.n)
                note(r, range->var, UNDECLARED_READ, s.from + (at - s.to), 1);
    }
}

void crn_check_after(regions *r)
{
    if (!r->check.runs)
        return;
    const region_list *l = &r->list.at[r->check.list];
    r->check.runs = false;
    crn_guard_off(&r->check.guard);
    check_unread(r);
    for (size_t i = 0; i < l->nused; i++)
        if (overwrites(l, &l->access[i]))
            check_overwritten(r, &l->access[i]);
    for (size_t i = 0; i < r->check.copy.n; i++)
        check_unchanged(r, l, i);
    for (size_t i = 0; i < l->nused; i++)
        check_made(r, l, &l->access[i]);
}
