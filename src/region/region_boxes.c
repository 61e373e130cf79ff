/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Boxes that do not overlap: adding and removing.
 */
#include "region/region_boxes.h"

#include <string.h>

/* Append what a has and common, which lies in it, has not: at most two slabs for each dimension. */
static cairn_status push_rest(crn_boxes *s, crn_box a, const crn_box *common)
{
    CRN_TRY(crn_vec_reserve(s, 2 * (size_t)a.ndims));
    for (uint32_t d = 0; d < a.ndims; d++) {
        crn_box slab = a;
        if (a.lo[d] < common->lo[d]) {
            slab.hi[d] = common->lo[d];
            s->at[s->n++] = slab;
        }
        if (common->hi[d] < a.hi[d]) {
            slab = a;
            slab.lo[d] = common->hi[d];
            s->at[s->n++] = slab;
        }
        a.lo[d] = common->lo[d];
        a.hi[d] = common->hi[d];
    }
    return CAIRN_OK;
}

cairn_status crn_boxes_remove(crn_boxes *s, const crn_box *b, crn_boxes *cut)
{
    crn_boxes rest = {0};
    crn_box common;
    const size_t before = cut ? cut->n : 0;
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < s->n && rc == CAIRN_OK; i++) {
        if (!crn_box_cut(&s->at[i], b, &common)) {
            rc = crn_vec_push(&rest, s->at[i]);
            continue;
        }
        rc = push_rest(&rest, s->at[i], &common);
        if (cut && rc == CAIRN_OK)
            rc = crn_vec_push(cut, common);
    }
    if (rc < 0) {
        crn_vec_done(&rest);
        if (cut)
            cut->n = before;
        return rc;
    }
    crn_vec_done(s);
    *s = rest;
    return CAIRN_OK;
}

/* Do two boxes make one: alike in all dimensions but d, in which one goes on where the other ends?
 */
static bool joins(crn_box *a, const crn_box *b)
{
    uint32_t differing = 0, d = 0;
    for (uint32_t i = 0; i < a->ndims; i++)
        if (a->lo[i] != b->lo[i] || a->hi[i] != b->hi[i]) {
            differing++;
            d = i;
        }
    if (differing != 1 || (a->hi[d] != b->lo[d] && b->hi[d] != a->lo[d]))
        return false;
    a->lo[d] = CRN_MIN(a->lo[d], b->lo[d]);
    a->hi[d] = CRN_MAX(a->hi[d], b->hi[d]);
    return true;
}

/* Let box i have what can be joined with it. Returns whether there was anything. */
static bool join_one(crn_boxes *s, size_t i)
{
    for (size_t k = 0; k < s->n; k++)
        if (k != i && joins(&s->at[i], &s->at[k])) {
            s->at[k] = s->at[--s->n];
            return true;
        }
    return false;
}

/* A variable that is written in pieces is soon one box again. */
static void join_all(crn_boxes *s)
{
    for (size_t i = 0; i < s->n;)
        i = join_one(s, i) ? 0 : i + 1;
}

cairn_status crn_boxes_add(crn_boxes *s, const crn_box *b)
{
    crn_boxes new = {0};
    CRN_TRY(crn_vec_push(&new, *b));
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < s->n && rc == CAIRN_OK; i++)
        rc = crn_boxes_remove(&new, &s->at[i], NULL);
    if (rc == CAIRN_OK)
        rc = crn_vec_reserve(s, new.n);
    if (rc == CAIRN_OK && new.n > 0) {
        memcpy(s->at + s->n, new.at, new.n * sizeof *new.at);
        s->n += new.n;
        join_all(s);
    }
    crn_vec_done(&new);
    return rc;
}

cairn_status crn_boxes_copy(crn_boxes *to, const crn_boxes *from)
{
    to->n = 0;
    CRN_TRY(crn_vec_reserve(to, from->n));
    if (from->n > 0)
        memcpy(to->at, from->at, from->n * sizeof *from->at);
    to->n = from->n;
    return CAIRN_OK;
}

uint64_t crn_boxes_volume(const crn_boxes *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += crn_box_volume(&s->at[i]);
    return sum;
}
