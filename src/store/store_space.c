/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/store_space.h"

static int by_offset(const void *a, const void *b)
{
    const crn_extent *x = a, *y = b;
    return (x->off > y->off) - (x->off < y->off);
}

static void sort(crn_extents *list)
{
    bool sorted = true;
    for (size_t i = 1; sorted && i < list->n; i++)
        sorted = list->at[i - 1].off <= list->at[i].off;
    if (!sorted)
        qsort(list->at, list->n, sizeof *list->at, by_offset);
}

/* Holes have changed: forget the search, and let a hole at the very end extend what can be
 * appended. */
static void settle(crn_space *s)
{
    s->cursor = 0;
    s->largest = 0;
    if (s->hole.n > 0) {
        crn_extent *last = &s->hole.at[s->hole.n - 1];
        if (last->off + last->nbytes == s->end) {
            s->end = last->off;
            s->hole.n--;
        }
    }
    for (size_t i = 0; i < s->hole.n; i++)
        s->largest = CRN_MAX(s->largest, s->hole.at[i].nbytes);
}

cairn_status crn_space_derive(crn_space *s, uint64_t start, crn_extents *used)
{
    crn_extents hole = {0};
    uint64_t at = start, nbytes = 0;
    sort(used);
    for (size_t i = 0; i < used->n; i++) {
        const crn_extent *u = &used->at[i];
        uint64_t u_end = u->off + u->nbytes;
        if (u->off > at) {
            cairn_status rc = crn_vec_push(&hole, (crn_extent){at, u->off - at});
            if (rc < 0) {
                crn_vec_done(&hole);
                return rc;
            }
        }
        if (u_end > at) {
            nbytes += u_end - CRN_MAX(u->off, at);
            at = u_end;
        }
    }
    crn_space_done(s);
    s->hole.at = hole.at;
    s->hole.n = hole.n;
    s->hole.cap = hole.cap;
    s->end = at;
    s->used = nbytes;
    settle(s);
    return CAIRN_OK;
}

void crn_space_leave(crn_space *s, uint64_t off, uint64_t nbytes)
{
    if (nbytes > 0)
        (void)crn_vec_push(&s->left, (crn_extent){off, nbytes});
}

/* Cut up to want bytes off the front of hole i, if at least min fit after alignment. */
static bool cut(crn_space *s, size_t i, uint64_t want, uint64_t min, uint64_t align,
                crn_extent *ret)
{
    crn_extent *h = &s->hole.at[i];
    uint64_t off = CRN_ROUND_UP(h->off, align);
    uint64_t skip = off - h->off;
    if (h->nbytes < skip + min || h->nbytes == 0)
        return false;
    uint64_t nbytes = CRN_MIN(want, (h->nbytes - skip) & ~(align - 1));
    if (nbytes < min)
        return false;
    *ret = (crn_extent){off, nbytes};
    crn_space_leave(s, h->off, skip);
    h->off = off + nbytes;
    h->nbytes -= skip + nbytes;
    s->used += skip + nbytes;
    return true;
}

static bool find(crn_space *s, uint64_t want, uint64_t min, uint64_t align, crn_extent *ret)
{
    if (min > s->largest)
        return false;
    for (size_t k = 0; k < s->hole.n; k++) {
        size_t i = s->cursor + k < s->hole.n ? s->cursor + k : s->cursor + k - s->hole.n;
        if (cut(s, i, want, min, align, ret)) {
            s->cursor = i;
            return true;
        }
    }
    s->largest = min - 1;
    return false;
}

static crn_extent append(crn_space *s, uint64_t want, uint64_t align)
{
    crn_extent e = {CRN_ROUND_UP(s->end, align), want};
    crn_space_leave(s, s->end, e.off - s->end);
    s->used += e.off + want - s->end;
    s->end = e.off + want;
    return e;
}

crn_extent crn_space_take(crn_space *s, uint64_t want, uint64_t min, uint64_t align)
{
    crn_extent e;
    if (find(s, want, want, align, &e))
        return e;
    if (s->end + want <= s->used + want + s->used / 16)
        return append(s, want, align);
    if (find(s, want, min, align, &e))
        return e;
    return append(s, want, align);
}

cairn_status crn_space_give(crn_space *s, crn_extents *list)
{
    crn_extents merged = {0};
    size_t i = 0, j = 0;
    for (; s->left.n > 0; s->left.n--)
        CRN_TRY(crn_vec_push(list, s->left.at[s->left.n - 1]));
    sort(list);
    CRN_TRY(crn_vec_reserve(&merged, s->hole.n + list->n));
    while (i < s->hole.n || j < list->n) {
        bool hole_first = j == list->n || (i < s->hole.n && s->hole.at[i].off < list->at[j].off);
        crn_extent e = hole_first ? s->hole.at[i++] : list->at[j++];
        if (!hole_first)
            s->used -= e.nbytes;
        if (e.nbytes == 0)
            continue;
        crn_extent *last = merged.n ? &merged.at[merged.n - 1] : NULL;
        if (last && last->off + last->nbytes == e.off)
            last->nbytes += e.nbytes;
        else
            merged.at[merged.n++] = e;
    }
    free(s->hole.at);
    s->hole.at = merged.at;
    s->hole.n = merged.n;
    s->hole.cap = merged.cap;
    settle(s);
    return CAIRN_OK;
}

void crn_space_done(crn_space *s)
{
    crn_vec_done(&s->hole);
    crn_vec_done(&s->left);
    memset(s, 0, sizeof *s);
}
