/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Choosing how the peers of a whole trace are written. A column comes relative and exclusive-or;
 * the smaller one stays. If its ranks still differ, grids are tried: all ways to see the
 * communicator's size as a product. On the right one the neighbours of a torus are the same for all
 * ranks, whether the program made it with MPI_Cart_create or by its own arithmetic.
 */
#include "tracefmt/tracefmt_merge_impl.h"

enum {
    SAMPLE = 64, /* values of a rank that a grid is tried on */
    KINDS = 64,  /* kinds of ranks that are distinguished; with more of them no grid is near */
};

#define LOOKS                                                                                      \
    ((uint64_t)1 << 26) /* values and symbols of a trace that may be looked at to choose */

/* A rank's part in a column. */
typedef struct member {
    uint32_t rank;
    int64_t self; /* its rank in the communicator */
    const crn_group *group;
    int64_t base;
} member;

typedef struct chooser {
    const crn_trace *t;
    size_t nsymbols; /* of all lanes */
    const crn_column *column;
    CRN_VEC(member) member; /* of the column, ascending */
    int64_t size;           /* of the communicator */
    crn_grid best, last;    /* of this column; of the column before that had one */
    size_t kinds;           /* of ranks on the best grid */
    uint64_t left;          /* of LOOKS */
} chooser;

/* ---- who takes part ---- */

static bool spend(chooser *x, uint64_t n)
{
    bool enough = n <= x->left;
    x->left -= CRN_MIN(n, x->left);
    return enough;
}

/* A rank in the communicator of a place, if that is always the same one. */
static bool find_self(chooser *x, const crn_symbol *s, uint32_t rank, int64_t *ret_self,
                      int64_t *ret_size)
{
    size_t c = 1;
    int64_t number;
    crn_comm_group comm;
    while (c < s->ncolumns && crn_symbol_kind(s, c) != CRN_KIND_COMM)
        c++;
    const crn_group *g = c < s->ncolumns ? crn_column_group(&s->column[c], rank, &number) : NULL;
    if (!g || g->value.n > 0 || g->nhists > 0 || !spend(x, 1))
        return false;
    if (number == CRN_COMM_WORLD) {
        *ret_self = rank;
        *ret_size = x->t->nranks;
        return true;
    }
    if (!spend(x, x->nsymbols) || !crn_trace_comm(x->t, rank, number, &comm))
        return false;
    *ret_self = crn_comm_group_rank(&comm, rank);
    *ret_size = (int64_t)crn_seq_count(comm.list);
    return *ret_self >= 0;
}

static int by_rank(const void *a, const void *b)
{
    const member *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The ranks of the column; false if they cannot be put on one grid. */
static cairn_status find_members(chooser *x, const crn_symbol *s, bool *ret)
{
    x->member.n = 0;
    *ret = true;
    for (size_t i = 0; i < x->column->ngroups && *ret; i++) {
        const crn_group *g = &x->column->group[i];
        uint64_t n = crn_seq_count(&g->ranks);
        for (uint64_t k = 0; k < n && *ret; k++) {
            member m = {.rank = (uint32_t)crn_seq_at(&g->ranks, k), .group = g};
            int64_t size = 0;
            m.base = crn_seq_at(&g->base, k);
            *ret = g->nhists == 0 && find_self(x, s, m.rank, &m.self, &size) &&
                   (x->member.n == 0 || size == x->size);
            x->size = size;
            CRN_TRY(crn_vec_push(&x->member, m));
        }
    }
    if (x->member.n > 1)
        qsort(x->member.at, x->member.n, sizeof *x->member.at, by_rank);
    return CAIRN_OK;
}

/* A value of the column as a shift on a grid; special ones stay. False: no rank of the grid. */
static bool shift_of(const chooser *x, const crn_grid *g, const member *m, int64_t v, int64_t *ret)
{
    crn_comm_view view = {.rank = m->self, .size = x->size};
    int64_t peer = crn_peer_rank(x->column, (int64_t)((uint64_t)m->base + (uint64_t)v), &view);
    *ret = peer < 0 ? peer : crn_grid_shift(g, m->self, peer);
    return peer < x->size;
}

/* ---- finding a grid ---- */

/* What a rank does on a grid, as far as it is looked at; false if it cannot be there. */
static bool hash_member(chooser *x, const crn_grid *g, const member *m, uint64_t *ret)
{
    crn_seq_iter it;
    int64_t v, shift;
    uint64_t h = 0, n = CRN_MIN(CRN_MAX(crn_seq_count(&m->group->value), 1), SAMPLE);
    if (!spend(x, n))
        return false;
    crn_seq_iter_init(&it, &m->group->value);
    for (uint64_t i = 0; i < n && crn_seq_next(&it, &v); i++) {
        if (!shift_of(x, g, m, v, &shift))
            return false;
        h = crn_hash_mix(h, (uint64_t)shift);
    }
    *ret = h;
    return true;
}

/* Kinds of ranks on a grid; limit if there are more, or if it does not fit. */
static size_t count_kinds(chooser *x, const crn_grid *g, size_t limit)
{
    uint64_t kind[KINDS], h;
    size_t n = 0;
    for (size_t i = 0; i < x->member.n && n < limit; i++) {
        size_t k = 0;
        if (!hash_member(x, g, &x->member.at[i], &h))
            return limit;
        while (k < n && kind[k] != h)
            k++;
        if (k == n)
            kind[n++] = h;
    }
    return n;
}

static void try_grid(chooser *x, const crn_grid *g)
{
    size_t kinds = x->kinds > 1 ? count_kinds(x, g, x->kinds) : x->kinds;
    if (kinds < x->kinds) {
        x->kinds = kinds;
        x->best = *g;
    }
}

/* All grids that begin as g does and have ndims dimensions; size is still to be shared out. */
static void try_grids(chooser *x, crn_grid g, int64_t size, uint32_t ndims)
{
    if (g.ndims + 1 == ndims) {
        g.dim[g.ndims++] = (uint32_t)size;
        try_grid(x, &g);
        return;
    }
    g.ndims++;
    for (int64_t n = 2; n * 2 <= size && x->kinds > 1 && x->left > 0; n++) {
        g.dim[g.ndims - 1] = (uint32_t)n;
        if (size % n == 0)
            try_grids(x, g, size / n, ndims);
    }
}

/* Few dimensions first: with more of them as good a grid says less. */
static void find_grid(chooser *x)
{
    crn_grid line = {.ndims = 1, .dim = {(uint32_t)x->size}};
    x->best.ndims = 0;
    x->kinds = count_kinds(x, &line, KINDS);
    if (crn_grid_size(&x->last) == x->size)
        try_grid(x, &x->last);
    for (uint32_t ndims = 2; ndims <= CRN_GRID_DIMS; ndims++)
        try_grids(x, (crn_grid){0}, x->size, ndims);
}

/* ---- writing a column anew ---- */

/* All values of a rank as shifts, as a group of its own; *fits: they are ranks of the grid. */
static cairn_status shifted(const chooser *x, const member *m, crn_group *ret, bool *fits)
{
    crn_seq_build b = {0};
    crn_seq_iter it;
    crn_seq s;
    int64_t v, shift, rank = m->rank;
    uint64_t n = CRN_MAX(crn_seq_count(&m->group->value), 1);
    crn_seq_iter_init(&it, &m->group->value);
    for (uint64_t i = 0; i < n && crn_seq_next(&it, &v); i++) {
        *fits &= shift_of(x, &x->best, m, v, &shift);
        crn_seq_add(&b, shift);
    }
    cairn_status rc = crn_seq_encode(&b, NULL, true, &s);
    crn_seq_build_done(&b);
    CRN_TRY(rc);
    *ret = (crn_group){.value = {.at = s.at, .n = s.n}};
    ret->base.base = s.base;
    return crn_seq_of(&rank, 1, &ret->ranks);
}

static size_t groups_nbytes(const crn_group *g, size_t n)
{
    size_t nbytes = 0;
    for (size_t i = 0; i < n; i++)
        nbytes += 8 + g[i].ranks.n + g[i].base.n + g[i].value.n + g[i].nhists * sizeof(crn_hist);
    return nbytes;
}

/* Write c on the best grid, if that is smaller. */
static cairn_status put_on_grid(chooser *x, crn_column *c)
{
    crn_column new = {.enc = CRN_ENC_GRID, .grid = x->best};
    cairn_status rc = CAIRN_OK;
    bool fits = true;
    for (size_t i = 0; i < x->member.n && fits; i++) {
        crn_group one = {0};
        rc = shifted(x, &x->member.at[i], &one, &fits);
        if (rc == CAIRN_OK)
            rc = crn_merge_groups(&new.group, &new.ngroups, &one, 1);
        crn_group_done(&one);
        if (rc < 0)
            goto out;
    }
    if (fits && groups_nbytes(new.group, new.ngroups) < groups_nbytes(c->group, c->ngroups)) {
        crn_column old = *c;
        *c = new;
        new = old;
        x->last = x->best;
    }
out:
    crn_column_done(&new);
    return rc;
}

/* ---- columns ---- */

static void choose_smaller(crn_column *c)
{
    if (!c->other)
        return;
    if (groups_nbytes(c->other, c->nothers) < groups_nbytes(c->group, c->ngroups)) {
        crn_groups_free(c->group, c->ngroups);
        c->group = c->other;
        c->ngroups = c->nothers;
        c->enc = CRN_ENC_XOR;
    } else {
        crn_groups_free(c->other, c->nothers);
    }
    c->other = NULL;
    c->nothers = 0;
}

static uint64_t values_of(const chooser *x)
{
    uint64_t n = 0;
    for (size_t i = 0; i < x->member.n; i++)
        n += CRN_MAX(crn_seq_count(&x->member.at[i].group->value), 1);
    return n;
}

static cairn_status choose(chooser *x, const crn_symbol *s, crn_column *c)
{
    bool one_grid;
    choose_smaller(c);
    if (c->enc == CRN_ENC_PLAIN || (c->ngroups == 1 && c->group->base.n == 0))
        return CAIRN_OK; /* all ranks are alike */
    x->column = c;
    CRN_TRY(find_members(x, s, &one_grid));
    if (!one_grid)
        return CAIRN_OK;
    find_grid(x);
    if (x->best.ndims == 0 || !spend(x, values_of(x)))
        return CAIRN_OK;
    return put_on_grid(x, c);
}

cairn_status crn_trace_choose(crn_trace *t)
{
    chooser x = {.t = t, .left = LOOKS};
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < t->nlanes; i++)
        x.nsymbols += t->lane[i].nsymbols;
    for (size_t i = 0; i < t->nlanes; i++) {
        for (size_t k = 0; k < t->lane[i].nsymbols; k++) {
            crn_symbol *s = &t->lane[i].symbol[k];
            for (size_t c = 1; c < s->ncolumns; c++)
                CRN_TRY_OUT(rc, choose(&x, s, &s->column[c]));
        }
    }
out:
    crn_vec_done(&x.member);
    return rc;
}
