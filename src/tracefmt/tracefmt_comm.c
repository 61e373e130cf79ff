/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the number of a communicator stands for, asked without walking: the events that made one
 * with this number say it, if they all say the same.
 */
#include "tracefmt/tracefmt.h"

enum { LOOKS = 4096 }; /* events of a place that are looked at */

/* Values of a column that a rank reads one by one; a constant has one. */
typedef struct column_read {
    const crn_group *group;
    int64_t base;
    uint64_t n;
    crn_seq_iter it;
} column_read;

static bool open_column(const crn_column *c, uint32_t rank, column_read *r)
{
    r->group = crn_column_group(c, rank, &r->base);
    if (!r->group)
        return false;
    r->n = CRN_MAX(crn_seq_count(&r->group->value), 1);
    crn_seq_iter_init(&r->it, &r->group->value);
    return true;
}

static int64_t next_value(column_read *r)
{
    int64_t v = 0;
    if (!crn_seq_next(&r->it, &v)) {
        crn_seq_iter_init(&r->it, &r->group->value);
        crn_seq_next(&r->it, &v);
    }
    return v;
}

static bool same_group(const crn_comm_group *a, const crn_comm_group *b)
{
    return a->base == b->base && crn_seq_equal(a->list, b->list);
}

/* What the events of one place say; false: that nothing can be said. */
static bool ask_place(const crn_column *made, uint32_t rank, int64_t number, crn_comm_group *ret)
{
    column_read numbers, lists;
    if (!open_column(&made[0], rank, &numbers) || !open_column(&made[1], rank, &lists))
        return true; /* the rank made none here */
    uint64_t n = CRN_MAX(numbers.n, lists.n);
    if (n > LOOKS || numbers.group->nhists > 0)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        int64_t made_number = numbers.base + next_value(&numbers), list = next_value(&lists);
        if (made_number != number)
            continue;
        if ((uint64_t)list >= lists.group->nlists)
            return false;
        crn_comm_group said = {&lists.group->list[list], lists.base};
        if (ret->list && !same_group(ret, &said))
            return false;
        *ret = said;
    }
    return true;
}

static bool ask_symbol(const crn_symbol *s, uint32_t rank, int64_t number, crn_comm_group *ret)
{
    for (size_t c = 1; c + 1 < s->ncolumns; c++) {
        if (crn_symbol_kind(s, c) == CRN_KIND_COMM_NEW &&
            crn_symbol_kind(s, c + 1) == CRN_KIND_GROUP &&
            !ask_place(&s->column[c], rank, number, ret))
            return false;
    }
    return true;
}

bool crn_trace_comm(const crn_trace *t, uint32_t rank, int64_t number, crn_comm_group *ret)
{
    crn_comm_group said = {0};
    for (size_t i = 0; i < t->nlanes; i++) {
        for (size_t k = 0; k < t->lane[i].nsymbols; k++) {
            if (!ask_symbol(&t->lane[i].symbol[k], rank, number, &said))
                return false;
        }
    }
    *ret = said;
    return said.list != NULL;
}

int64_t crn_comm_group_rank(const crn_comm_group *g, uint32_t rank)
{
    crn_seq_iter it;
    int64_t v, stride, at = 0;
    uint64_t n, left = crn_seq_count(g->list);
    crn_seq_iter_init(&it, g->list);
    for (; left > 0 && crn_seq_next_run(&it, left, &v, &stride, &n); left -= n, at += (int64_t)n) {
        int64_t apart = (int64_t)((uint64_t)rank - (uint64_t)g->base - (uint64_t)v);
        if (apart == 0)
            return at;
        if (stride != 0 && apart % stride == 0 && apart / stride > 0 &&
            (uint64_t)(apart / stride) < n)
            return at + apart / stride;
    }
    return -1;
}
