/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing pieces of a variable that are cut differently. The first piece is cut into stretches,
 * which any number of threads take. Of a stretch, and of every piece of the second side that has
 * values of it, a thread fetches the blocks that hold them, as many pieces at a time as there is
 * room for, and compares what they have in common, while the next are on their way.
 */
#include "diff/diff.h"

#include <inttypes.h>
#include <stdatomic.h>

/* A piece, and what the first one has in common with it: with itself all. */
typedef struct piece {
    diff_share *share;
    const crn_var *told; /* by its trees, if it has any: those of all ranks have the same leaves */
    crn_var *var;        /* in the part, with its table */
    diff_overlap overlap;
} piece;

/* The work. */
typedef struct ranges {
    const crn_var_spec *spec; /* of the first piece */
    CRN_VEC(piece) piece;     /* the first one, and those of the second side that overlap it */
    uint64_t nvalues, step;   /* of the first piece; that a stretch has */
    const uint64_t *leaf;     /* ascending: what is to be looked at; NULL: all */
    size_t nleaves;
    uint64_t leaf_values; /* that each has; 0: all is looked at */
    size_t room;          /* bytes of a slot, for each side */
    atomic_ullong next;   /* the first value, or of those the first leaf, that nobody has taken */
    diff_joint joint;
} ranges;

/* Blocks of a piece in a slot. */
typedef struct reading {
    crn_fetch *fetch; /* kept for the next use of the slot, as is the room of bad */
    crn_bad_blocks bad;
    const piece *of;
    unsigned char *data;
    size_t first, n; /* among the slot's blocks */
} reading;

typedef struct slot {
    uint64_t from, to; /* values of the first piece */
    bool last;         /* all pieces have had their turn with them */
    CRN_VEC(uint64_t) block;
    CRN_VEC(reading) reading;   /* the first piece's comes first */
    size_t nreadings, nfetches; /* in use; that were begun */
} slot;

/* What one thread does of it. */
typedef struct effort {
    ranges *r;
    diff_worker *w;
    diff_row row;
    slot slot[DIFF_BATCHES];
    /* of the stretch that was taken: */
    uint64_t from, to, end; /* what is seen to now, and all that is left */
    size_t next;            /* piece */
    /* while a range is compared: */
    uint64_t base;
    const unsigned char *a, *b;
} effort;

/* --- planning ------------------------------------------------------------------------------- */

static size_t count_blocks(const piece *p, uint64_t from, uint64_t to)
{
    return crn_diff_overlap_blocks(&p->overlap, &p->var->spec, from, to, NULL);
}

/* Let [from, to) be what is left of the stretch, or as much of it as any piece has room for. */
static void narrow(effort *e)
{
    e->to = e->end;
    for (size_t i = 0; i < e->r->piece.n; i++) {
        const piece *p = &e->r->piece.at[i];
        while (count_blocks(p, e->from, e->to) * p->var->spec.block > e->r->room)
            e->to = e->from + (e->to - e->from + 1) / 2;
    }
}

/* The next stretch of all values; false: there is none. */
static bool next_stretch(effort *e)
{
    ranges *r = e->r;
    /* relaxed: stretches are independent, and results are passed on under a mutex */
    const uint64_t from = atomic_fetch_add_explicit(&r->next, r->step, memory_order_relaxed);
    if (from >= r->nvalues)
        return false;
    e->from = from;
    e->end = CRN_MIN(from + r->step, r->nvalues);
    return true;
}

/* How many leaves from the i-th on lie one behind the other, and are no more than a stretch? */
static size_t leaves_in_a_row(const ranges *r, size_t i)
{
    const size_t limit = CRN_MIN(CRN_MAX(r->step / r->leaf_values, 1), r->nleaves - i);
    size_t n = 1;
    while (n < limit && r->leaf[i + n] == r->leaf[i] + n)
        n++;
    return n;
}

/* The next leaves that lie one behind the other; false: there are none. */
static bool next_leaves(effort *e)
{
    ranges *r = e->r;
    unsigned long long i = atomic_load_explicit(&r->next, memory_order_relaxed);
    size_t n;
    do {
        if (i >= r->nleaves)
            return false;
        n = leaves_in_a_row(r, i);
    } while (!atomic_compare_exchange_weak_explicit(&r->next, &i, i + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    e->from = r->leaf[i] * r->leaf_values;
    e->end = CRN_MIN(e->from + n * r->leaf_values, r->nvalues);
    return true;
}

/* Have something to see to; false: there is nothing left. */
static bool take(effort *e)
{
    if (e->from == e->end && !(e->r->leaf ? next_leaves(e) : next_stretch(e)))
        return false;
    if (e->next == 0)
        narrow(e);
    return true;
}

/* Add n blocks of a piece to a slot, at data. */
static cairn_status add_reading(slot *s, const piece *p, size_t n, unsigned char *data)
{
    if (s->nreadings == s->reading.n) {
        reading blank = {0};
        CRN_TRY(crn_fetch_create(&blank.fetch));
        if (crn_vec_push(&s->reading, blank) < 0) {
            crn_fetch_free(blank.fetch);
            return CAIRN_ENOMEM;
        }
    }
    CRN_TRY(crn_vec_reserve(&s->block, n));
    reading *rd = &s->reading.at[s->nreadings++];
    rd->of = p;
    rd->data = data;
    rd->first = s->block.n;
    rd->n = crn_diff_overlap_blocks(&p->overlap, &p->var->spec, s->from, s->to,
                                    s->block.at + rd->first);
    s->block.n += rd->n;
    return CAIRN_OK;
}

/* Which blocks of which pieces: from the next piece on, as many as there is room for. */
static cairn_status plan(effort *e, slot *s, size_t number)
{
    const ranges *r = e->r;
    size_t used = 0, i = CRN_MAX(e->next, 1u);
    *s = (slot){.from = e->from, .to = e->to, .block = s->block, .reading = s->reading};
    s->block.n = 0;
    unsigned char *data[2] = {e->w->data[0] + number * r->room, e->w->data[1] + number * r->room};
    CRN_TRY(add_reading(s, r->piece.at, count_blocks(r->piece.at, s->from, s->to), data[0]));
    for (; i < r->piece.n; i++) {
        const piece *p = &r->piece.at[i];
        const size_t n = count_blocks(p, s->from, s->to), nbytes = n * p->var->spec.block;
        if (used + nbytes > r->room)
            break;
        if (n > 0)
            CRN_TRY(add_reading(s, p, n, data[1] + used));
        used += nbytes;
    }
    if (used == 0) /* of these values the second side has none */
        s->nreadings = 0;
    s->last = i == r->piece.n;
    e->next = s->last ? 0 : i;
    if (s->last)
        e->from = e->to;
    return CAIRN_OK;
}

/* --- reading -------------------------------------------------------------------------------- */

static cairn_status start(void *arg, size_t number)
{
    effort *e = arg;
    slot *s = &e->slot[number];
    s->nfetches = 0;
    if (!take(e))
        return CAIRN_NOTHING;
    CRN_TRY(plan(e, s, number));
    while (s->nfetches < s->nreadings) {
        reading *rd = &s->reading.at[s->nfetches++]; /* also when it fails: see finish */
        const piece *p = rd->of;
        rd->bad.n = 0;
        CRN_TRY(crn_fetch_start(rd->fetch, e->w->io, p->share->part, p->share->data, p->var,
                                s->block.at + rd->first, rd->n, rd->data));
    }
    return CAIRN_OK;
}

static cairn_status finish(void *arg, size_t number)
{
    effort *e = arg;
    slot *s = &e->slot[number];
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < s->nfetches; i++) {
        reading *rd = &s->reading.at[i];
        cairn_status end = crn_fetch_finish(rd->fetch, e->w->io, &rd->bad);
        if (rc == CAIRN_OK)
            rc = end;
    }
    return rc;
}

/* --- comparing ------------------------------------------------------------------------------ */

static void on_stretch(void *arg, uint64_t first, uint64_t n)
{
    effort *e = arg;
    const size_t off = first * e->r->spec->item;
    crn_diff_row_note(&e->row, e->r->spec, e->r->piece.at->share->rank, e->base + first, n,
                      e->a + off, e->b + off);
}

/* Where a value of a piece lies: those of blocks that follow each other do so in memory, too. */
static const unsigned char *find_value(const slot *s, const reading *rd, uint64_t value)
{
    const crn_var_spec *spec = &rd->of->var->spec;
    const uint64_t off = value * spec->item, wanted = off / spec->block;
    const uint64_t *block = s->block.at + rd->first;
    size_t low = 0, high = rd->n;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (block[middle] <= wanted)
            low = middle;
        else
            high = middle;
    }
    return rd->data + low * spec->block + off % spec->block;
}

/* Values from this one on that lie in one block; 1: it lies across the end of one. */
static uint64_t until_end(const reading *rd, uint64_t value)
{
    const crn_var_spec *s = &rd->of->var->spec;
    return CRN_MAX((s->block - value * s->item % s->block) / s->item, 1);
}

static bool is_bad(effort *e, const reading *rd, uint64_t value, uint64_t n)
{
    const crn_var_spec *s = &rd->of->var->spec;
    const uint64_t first = value * s->item / s->block,
                   last = ((value + n) * s->item - 1) / s->block;
    for (size_t i = 0; i < rd->bad.n; i++) {
        if (rd->bad.at[i] < first || rd->bad.at[i] > last)
            continue;
        crn_diff_row_judge(&e->row, CAIRN_INCONCLUSIVE,
                           "block %" PRIu64 " of rank %u is damaged or cannot be read in '%s'",
                           rd->bad.at[i], rd->of->share->rank, rd->of->share->side->name);
        return true;
    }
    return false;
}

/* Values from this one on that are compared together: in one leaf, where there are any; and in one
 * block of both pieces, where some are bad. */
static uint64_t count_together(const effort *e, const slot *s, const reading *rd, diff_range r)
{
    const reading *own = s->reading.at;
    const uint64_t leaf = e->r->leaf_values;
    uint64_t n = leaf ? CRN_MIN(r.n, leaf - r.a % leaf) : r.n;
    if (own->bad.n > 0 || rd->bad.n > 0)
        n = CRN_MIN(n, CRN_MIN(until_end(own, r.a), until_end(rd, r.b)));
    return n;
}

/* Compare a range; of one with bad blocks what lies outside of them. */
static void compare_range(effort *e, const slot *s, const reading *rd, diff_range r,
                          crn_value_delta *delta)
{
    const crn_value_rule rule = crn_diff_rule(e->w, &e->row, e->r->spec);
    const reading *own = s->reading.at;
    const bool sound = own->bad.n == 0 && rd->bad.n == 0;
    diff_losses losses;
    const bool lossy = crn_diff_losses_of(&own->of->var->spec, &rd->of->var->spec, &losses);
    for (uint64_t n; r.n > 0; r.a += n, r.b += n, r.n -= n) {
        const uint64_t before = delta->n;
        n = count_together(e, s, rd, r);
        e->row.at.step = r.a;
        if (!sound && (is_bad(e, own, r.a, n) || is_bad(e, rd, r.b, n)))
            continue;
        e->base = r.a;
        e->a = find_value(s, own, r.a);
        e->b = find_value(s, rd, r.b);
        if (!lossy)
            crn_values_compare(&rule, e->a, e->b, n, delta, on_stretch, e);
        else if (!crn_diff_compare_lossy(&rule, &losses, e->a, e->b, n, delta, on_stretch, e))
            crn_diff_row_judge(&e->row, CAIRN_INCONCLUSIVE, CRN_DIFF_UNPROVEN);
        e->row.nfalse += e->r->leaf_values && delta->n == before;
    }
}

static uint64_t bytes_read(const slot *s, const reading *rd)
{
    uint64_t n = 0;
    for (size_t i = 0; i < rd->n; i++)
        n += crn_var_block_bytes(rd->of->var, s->block.at[rd->first + i]);
    return n;
}

/* Of the variable's bytes, how many are seen to with a slot? With the leaves that are looked at all
 * others are. */
static uint64_t bytes_seen(const ranges *r, const slot *s)
{
    const uint64_t nbytes = (s->to - s->from) * r->spec->item;
    const uint64_t all = r->leaf ? r->nleaves * r->leaf_values * r->spec->item : nbytes;
    return r->leaf ? (uint64_t)((double)r->spec->nbytes * (double)nbytes / (double)all) : nbytes;
}

static void compare(void *arg, size_t number)
{
    effort *e = arg;
    const slot *s = &e->slot[number];
    crn_value_delta delta = {0};
    for (size_t i = 0; i < s->nreadings; i++) {
        const reading *rd = &s->reading.at[i];
        diff_walk w = crn_diff_walk_of(&rd->of->overlap, s->from, s->to);
        diff_range r;
        e->row.read_bytes += bytes_read(s, rd);
        while (i > 0 && crn_diff_walk_next(&w, &r))
            compare_range(e, s, rd, r, &delta);
    }
    crn_diff_row_count(&e->row, &delta);
    if (s->last)
        crn_diff_see(e->w, bytes_seen(e->r, s));
}

/* --- threads -------------------------------------------------------------------------------- */

static void work(void *arg, diff_worker *w)
{
    static const diff_flow flow = {start, finish, compare};
    ranges *r = arg;
    effort e = {.r = r, .w = w, .row = r->joint.blank};
    cairn_status rc = crn_diff_flow_run(&flow, &e, DIFF_MEMORY / r->room);
    if (!crn_diff_joint_add(&r->joint, &e.row, rc))
        atomic_store_explicit(&r->next, r->leaf ? r->nleaves : r->nvalues,
                              memory_order_relaxed); /* let others end, too */
    for (size_t i = 0; i < DIFF_BATCHES; i++) {
        for (size_t k = 0; k < e.slot[i].reading.n; k++) {
            crn_fetch_free(e.slot[i].reading.at[k].fetch);
            crn_vec_done(&e.slot[i].reading.at[k].bad);
        }
        crn_vec_done(&e.slot[i].reading);
        crn_vec_done(&e.slot[i].block);
    }
}

/* --- pieces --------------------------------------------------------------------------------- */

static cairn_status add_piece(ranges *r, diff_share *share, const diff_overlap *overlap)
{
    piece p = {.share = share, .overlap = *overlap};
    diff_var v;
    (void)crn_diff_share_find(share, r->spec->name, &v);
    p.told = v.var;
    CRN_TRY(crn_diff_share_data(share, r->spec->name, &p.var));
    CRN_TRY(crn_mark_table(share->part, share->data, p.var));
    return crn_vec_push(&r->piece, p);
}

/* Has another piece the same values at the same place? Ranks may have copies of an array. */
static bool is_copy(const ranges *r, const crn_var *v)
{
    for (size_t i = 1; i < r->piece.n; i++)
        if (crn_diff_same_place(&r->piece.at[i].told->spec, &v->spec) &&
            r->piece.at[i].told->spec.block == v->spec.block &&
            crn_digest_equal(&r->piece.at[i].told->root, &v->root))
            return true;
    return false;
}

static cairn_status add_second(ranges *r, diff_share *share)
{
    diff_overlap overlap;
    diff_var v;
    if (!crn_diff_share_find(share, r->spec->name, &v))
        return CAIRN_OK;
    const crn_var_spec *s = &v.var->spec;
    if (strcmp(s->type, r->spec->type) != 0 || s->item != r->spec->item ||
        s->ndims != r->spec->ndims || !crn_diff_overlap_of(r->spec, s, &overlap) ||
        is_copy(r, v.var))
        return CAIRN_OK;
    return add_piece(r, share, &overlap);
}

static cairn_status find_pieces(ranges *r, diff_share *first, diff_share *second, size_t n)
{
    diff_overlap all;
    crn_diff_overlap_of(r->spec, r->spec, &all);
    CRN_TRY(add_piece(r, first, &all));
    for (size_t i = 0; i < n; i++)
        CRN_TRY(add_second(r, &second[i]));
    return CAIRN_OK;
}

/* A slot has room for a stretch of the first piece, for as much that is not cut where that is, and
 * for any one value. */
static cairn_status make_room(ranges *r)
{
    const uint64_t item = r->spec->item;
    uint64_t block = CRN_MAX((uint64_t)DIFF_BATCH, r->leaf_values * item), value = 0;
    for (size_t i = 0; i < r->piece.n; i++) {
        const uint64_t b = r->piece.at[i].var->spec.block;
        block = CRN_MAX(block, b);
        value = CRN_MAX(value, CRN_ROUND_UP(item - 1, b) + b);
    }
    CRN_FAIL_IF(value > DIFF_MEMORY, CAIRN_EUNSUPPORTED,
                "variable '%s': values of %u bytes cannot be compared across blocks", r->spec->name,
                r->spec->item);
    r->room = CRN_MAX(2 * block, value);
    r->step = CRN_MAX(CRN_MAX(DIFF_BATCH, r->spec->block) / item, 1);
    return CAIRN_OK;
}

static bool is_for_one(const ranges *r)
{
    bool outside = false;
    for (size_t i = 0; i < r->piece.n; i++)
        outside |= crn_diff_is_outside(r->piece.at[i].var);
    const uint64_t nvalues = r->leaf ? r->nleaves * r->leaf_values : r->nvalues;
    return outside || nvalues <= r->step * DIFF_BATCHES;
}

static cairn_status compare_pieces(ranges *r, diff_worker *w, diff_row *row)
{
    uint64_t ncommon = 0;
    CRN_TRY(make_room(r));
    crn_diff_joint_init(&r->joint, row);
    crn_diff_crew_do(is_for_one(r) ? NULL : w->crew, w, true, work, r);
    CRN_TRY(crn_diff_joint_end(&r->joint));
    for (size_t i = 1; i < r->piece.n; i++)
        ncommon += crn_diff_overlap_size(&r->piece.at[i].overlap);
    if (ncommon < r->nvalues)
        crn_diff_row_judge(row, CAIRN_INCONCLUSIVE,
                           "of rank %u's values, the second run has only %" PRIu64 " of %" PRIu64
                           " as %s of this array",
                           r->piece.at->share->rank, ncommon, r->nvalues, r->spec->type);
    return CAIRN_OK;
}

cairn_status crn_diff_ranges(diff_worker *w, diff_share *first, diff_share *second, size_t n,
                             const crn_var_spec *spec, diff_row *row)
{
    ranges r = {.spec = spec, .nvalues = spec->nbytes / spec->item};
    if (spec->nbytes == 0)
        return CAIRN_OK;
    row->nflagged = row->nblocks;
    cairn_status rc = find_pieces(&r, first, second, n);
    if (rc == CAIRN_OK)
        rc = compare_pieces(&r, w, row);
    crn_vec_done(&r.piece);
    return rc;
}

cairn_status crn_diff_runs(diff_worker *w, diff_share *first, diff_share *second, size_t n,
                           const diff_runs *run, const crn_var_spec *spec, diff_row *row)
{
    ranges r = {.spec = spec, .nvalues = spec->nbytes / spec->item};
    diff_overlap all;
    if (spec->nbytes == 0)
        return CAIRN_OK;
    row->nflagged = row->nblocks;
    crn_diff_overlap_of(spec, spec, &all);
    cairn_status rc = add_piece(&r, first, &all);
    for (size_t i = 0; rc == CAIRN_OK && i < n; i++)
        if (run[i].n > 0)
            rc = add_piece(&r, &second[i], &(diff_overlap){.run = run[i].at, .nruns = run[i].n});
    if (rc == CAIRN_OK)
        rc = compare_pieces(&r, w, row);
    crn_vec_done(&r.piece);
    return rc;
}

cairn_status crn_diff_leaves(diff_worker *w, diff_share *share[2], const crn_var_spec *spec,
                             const uint64_t *leaf, size_t n, diff_row *row)
{
    ranges r = {.spec = spec,
                .nvalues = spec->nbytes / spec->item,
                .leaf = leaf,
                .nleaves = n,
                .leaf_values = spec->block / spec->item};
    cairn_status rc = find_pieces(&r, share[0], share[1], 1);
    if (rc == CAIRN_OK)
        rc = compare_pieces(&r, w, row);
    crn_vec_done(&r.piece);
    return rc;
}
