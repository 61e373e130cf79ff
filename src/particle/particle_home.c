/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parents at home. A runner keeps the parents of its own cache, smallest first, up to its target:
 * so the fewest go away. Of the k parents that do, at least in part, only the sum is given: how
 * much of each goes is chosen such that pieces equal what other runners lack.
 */
#include <string.h>

#include "particle/particle_home.h"

static int by_amount(const void *a, const void *b)
{
    const crn_pile *x = a, *y = b;
    if (x->amount != y->amount)
        return x->amount < y->amount ? -1 : 1;
    return (x->who > y->who) - (x->who < y->who);
}

static void sort_piles(crn_homes *h)
{
    for (size_t r = 0; r < h->c->nrunners; r++)
        qsort(h->pile + h->first[r], h->first[r + 1] - h->first[r], sizeof *h->pile, by_amount);
}

cairn_status crn_homes_init(crn_homes *h, const crn_cycle *c)
{
    *h = (crn_homes){.c = c};
    CRN_TRY(crn_alloc(&h->nhomes, c->nparents));
    CRN_TRY(crn_alloc(&h->first, c->nrunners + 1));
    CRN_TRY(crn_alloc(&h->pile, c->ncached));
    for (size_t i = 0; i < c->ncached; i++) {
        const crn_cached *x = &c->cached[i];
        CRN_FAIL_IF(x->parent >= c->nparents || x->runner >= c->nrunners, CAIRN_EINVAL,
                    "parent %u in the cache of runner %u: there are %zu and %zu", x->parent,
                    x->runner, c->nparents, c->nrunners);
        h->several |= ++h->nhomes[x->parent] > 1;
        h->first[x->runner + 1]++;
    }
    for (size_t r = 0; r < c->nrunners; r++)
        h->first[r + 1] += h->first[r];
    for (size_t i = c->ncached; i-- > 0;) {
        const crn_cached *x = &c->cached[i];
        h->pile[--h->first[x->runner + 1]] = (crn_pile){x->parent, c->count[x->parent]};
    }
    /* Each end has become its own start: one place to the left. */
    memmove(h->first, h->first + 1, c->nrunners * sizeof *h->first);
    h->first[c->nrunners] = c->ncached;
    sort_piles(h);
    return CAIRN_OK;
}

void crn_homes_done(crn_homes *h)
{
    free(h->nhomes);
    free(h->first);
    free(h->pile);
}

uint64_t crn_homes_tasks(const crn_homes *h, size_t runner)
{
    uint64_t sum = 0;
    for (size_t i = h->first[runner]; i < h->first[runner + 1]; i++)
        sum += h->pile[i].amount;
    return sum;
}

uint32_t crn_homes_above(const crn_homes *h, size_t runner, uint32_t target, bool sole)
{
    uint64_t kept = 0;
    uint32_t above = 0;
    for (size_t i = h->first[runner]; i < h->first[runner + 1]; i++) {
        if (sole && h->nhomes[h->pile[i].who] > 1)
            continue;
        kept += h->pile[i].amount;
        above += h->pile[i].amount > 0 && kept > target;
    }
    return above;
}

/* A pile of a parent that has several, and its runner. */
typedef struct spread {
    uint32_t parent, runner;
    crn_pile *pile;
} spread;

static int by_parent(const void *a, const void *b)
{
    const spread *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return (x->runner > y->runner) - (x->runner < y->runner);
}

/* The home with the most room takes what it can, then the next; the last takes what is left. */
static void divide_parent(spread *s, size_t n, uint32_t count, uint64_t *room)
{
    for (size_t k = 0; k < n; k++)
        s[k].pile->amount = 0;
    for (size_t turn = 1; count > 0; turn++) {
        size_t best = 0;
        for (size_t k = 1; k < n; k++)
            if (room[s[k].runner] > room[s[best].runner])
                best = k;
        uint64_t *free_room = &room[s[best].runner];
        uint32_t take = turn < n ? (uint32_t)CRN_MIN(count, *free_room) : count;
        s[best].pile->amount += take;
        *free_room -= CRN_MIN(take, *free_room);
        count -= take;
    }
}

cairn_status crn_homes_divide(crn_homes *h, const uint32_t *target)
{
    if (!h->several)
        return CAIRN_OK;
    spread *s;
    uint64_t *room = NULL;
    size_t n = 0;
    cairn_status rc;
    CRN_TRY(crn_alloc(&s, h->c->ncached));
    CRN_TRY_OUT(rc, crn_alloc(&room, h->c->nrunners));
    for (uint32_t r = 0; r < h->c->nrunners; r++) {
        room[r] = target[r];
        for (size_t i = h->first[r]; i < h->first[r + 1]; i++) {
            crn_pile *p = &h->pile[i];
            if (h->nhomes[p->who] > 1)
                s[n++] = (spread){p->who, r, p};
            else
                room[r] -= CRN_MIN(room[r], p->amount);
        }
    }
    qsort(s, n, sizeof *s, by_parent);
    for (size_t i = 0; i < n; i += h->nhomes[s[i].parent])
        divide_parent(s + i, h->nhomes[s[i].parent], h->c->count[s[i].parent], room);
    sort_piles(h);
out:
    free(s);
    free(room);
    return rc;
}

void crn_drafts_done(crn_drafts *d)
{
    crn_vec_done(&d->supply);
    crn_vec_done(&d->deficit);
    crn_vec_done(&d->batch);
}

/* Deficits by amount, largest first: which pieces would fill one exactly. Amounts times runners are
 * tasks, so there are few. */
typedef struct wanted {
    uint32_t amount, n;
} wanted;

typedef CRN_VEC(wanted) wanted_vec;

static int larger_first(const void *a, const void *b)
{
    const crn_pile *x = *(crn_pile *const *)a, *y = *(crn_pile *const *)b;
    return (x->amount < y->amount) - (x->amount > y->amount);
}

static cairn_status find_wanted(crn_drafts *d, wanted_vec *ret)
{
    crn_pile **sorted;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&sorted, d->deficit.n));
    for (size_t i = 0; i < d->deficit.n; i++)
        sorted[i] = &d->deficit.at[i];
    qsort(sorted, d->deficit.n, sizeof *sorted, larger_first);
    for (size_t i = 0; i < d->deficit.n && rc == CAIRN_OK; i++) {
        if (ret->n > 0 && ret->at[ret->n - 1].amount == sorted[i]->amount)
            ret->at[ret->n - 1].n++;
        else
            rc = crn_vec_push(ret, (wanted){sorted[i]->amount, 1});
    }
    free(sorted);
    return rc;
}

/* The largest wanted piece from lo to hi, or hi. */
static uint32_t choose_piece(wanted_vec *w, uint32_t lo, uint32_t hi)
{
    for (size_t i = 0; i < w->n && w->at[i].amount >= lo; i++)
        if (w->at[i].n > 0 && w->at[i].amount <= hi) {
            w->at[i].n--;
            return w->at[i].amount;
        }
    return hi;
}

static cairn_status give_away(const crn_homes *h, uint32_t runner, uint32_t target, wanted_vec *w,
                              crn_drafts *d)
{
    size_t end = h->first[runner + 1], n = crn_homes_above(h, runner, target, false);
    uint64_t surplus = crn_homes_tasks(h, runner) - target, others = 0;
    for (size_t i = end - n; i < end; i++)
        others += h->pile[i].amount;
    for (size_t i = h->first[runner]; i < end; i++) {
        crn_pile p = h->pile[i];
        uint32_t piece = 0;
        if (i >= end - n) {
            others -= p.amount;
            uint64_t after = end - i - 1; /* each of these gives away one task or more */
            uint32_t hi = (uint32_t)CRN_MIN(p.amount, surplus - after);
            uint32_t lo = (uint32_t)(surplus > others ? surplus - others : 1);
            piece = w ? choose_piece(w, lo, hi) : lo;
            surplus -= piece;
            CRN_TRY(crn_vec_push(&d->supply, (crn_pile){p.who, piece}));
        }
        if (p.amount > piece)
            CRN_TRY(crn_vec_push(
                &d->batch,
                (crn_cycle_batch){.runner = runner, .parent = p.who, .count = p.amount - piece}));
    }
    return CAIRN_OK;
}

cairn_status crn_homes_keep(const crn_homes *h, const uint32_t *target, bool fitted, crn_drafts *d)
{
    wanted_vec w = {0};
    cairn_status rc = CAIRN_OK;
    for (uint32_t r = 0; r < h->c->nrunners; r++) {
        uint64_t tasks = crn_homes_tasks(h, r);
        if (tasks < target[r])
            CRN_TRY(crn_vec_push(&d->deficit, (crn_pile){r, (uint32_t)(target[r] - tasks)}));
    }
    if (fitted)
        CRN_TRY_OUT(rc, find_wanted(d, &w));
    for (uint32_t r = 0; r < h->c->nrunners; r++)
        CRN_TRY_OUT(rc, give_away(h, r, CRN_MIN(target[r], (uint32_t)crn_homes_tasks(h, r)),
                                  fitted ? &w : NULL, d));
out:
    crn_vec_done(&w);
    return rc;
}
