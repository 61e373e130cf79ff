/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sketches in golden files: made from a run's data, and found again. docs/format/golden.md has the
 * bytes.
 */
#include "diff/diff.h"

#include <inttypes.h>

enum { PLACE_BYTES = 8, FACTS_BYTES = 64, ENTRY_BYTES = 32 };

/* Variables that have one: floating-point values that do not lie across the ends of blocks. */
static bool is_sketched(const crn_trees_var *v)
{
    const crn_var_spec *s = &v->var.spec;
    const crn_value_kind kind = crn_value_kind_of(s->type);
    return ((kind == CRN_VALUE_F32 && s->item == 4) || (kind == CRN_VALUE_F64 && s->item == 8)) &&
           s->block % s->item == 0 && s->nbytes % s->item == 0;
}

static size_t values_of(const crn_trees_var *v, uint64_t block)
{
    return crn_var_block_bytes(&v->var, block) / v->var.spec.item;
}

/* --- making ---------------------------------------------------------------------------------- */

/* A rank's sketches in the making. */
typedef struct making {
    diff_share share;
    crn_sketch_kind kind;
    crn_buf *buf;
    size_t base; /* where the rank's begin in it */
    diff_lossy *lossy;
} making;

static void put_facts(crn_buf *b, const crn_facts *f)
{
    crn_put_bytes(b, f->plain.b, sizeof f->plain.b);
    crn_put_u32(b, f->nnan);
    crn_put_u32(b, f->nabove);
    crn_put_u32(b, f->nbelow);
    crn_put_u32(b, 0);
    crn_put_f64(b, f->min);
    crn_put_f64(b, f->max);
    crn_put_f64(b, f->sum);
    crn_put_f64(b, f->size);
}

/* Add what is known of one block: facts, an entry for each bound, and the sketches themselves. */
static cairn_status put_block(making *m, const crn_trees_var *v, const void *data, size_t nbytes,
                              crn_sketcher *const *sketcher, crn_buf *facts, crn_buf *entry)
{
    crn_facts f;
    CRN_TRY(crn_facts_of(v->var.spec.item, data, nbytes, &f));
    put_facts(facts, &f);
    for (size_t k = 0; k < v->nbounds; k++) {
        crn_digest d = {{0}};
        const size_t at = m->buf->n;
        const crn_sketch_kind kind =
            crn_sketch_make(sketcher[k], m->kind, data, nbytes, m->buf, &d);
        crn_put_bytes(&entry[k], d.b, sizeof d.b);
        crn_put_u64(&entry[k], at - m->base);
        crn_put_u32(&entry[k], (uint32_t)(m->buf->n - at));
        crn_put_u32(&entry[k], kind);
    }
    return crn_buf_status(m->buf);
}

static cairn_status put_blocks(making *m, const crn_trees_var *v, crn_var *data,
                               crn_sketcher *const *sketcher, crn_buf *facts, crn_buf *entry)
{
    unsigned char *block;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_io_memory(v->var.spec.block, &block));
    for (uint64_t i = 0; i < v->var.nblocks; i++) {
        CRN_TRY_OUT(rc,
                    crn_diff_read_leaves(&m->share, data, v->var.spec.block, i, 1, block, NULL));
        CRN_TRY_OUT(
            rc, put_block(m, v, block, crn_var_block_bytes(&v->var, i), sketcher, facts, entry));
    }
out:
    free(block);
    return rc;
}

/* The sketch of a variable; *ret gets its place. */
static cairn_status put_body(making *m, const crn_trees_var *v, crn_var *data, uint64_t *ret)
{
    crn_sketcher *sketcher[CRN_BOUNDS_MAX] = {NULL};
    crn_buf facts = {0}, entry[CRN_BOUNDS_MAX] = {{0}};
    cairn_status rc = CAIRN_OK;
    for (size_t k = 0; k < v->nbounds; k++)
        CRN_TRY_OUT(rc, crn_sketcher_create(v->var.spec.item, &v->bound[k], &sketcher[k]));
    CRN_TRY_OUT(rc, put_blocks(m, v, data, sketcher, &facts, entry));
    *ret = m->buf->n - m->base;
    crn_put_bytes(m->buf, facts.at, facts.n);
    m->buf->failed |= facts.failed;
    for (size_t k = 0; k < v->nbounds; k++) {
        crn_put_bytes(m->buf, entry[k].at, entry[k].n);
        m->buf->failed |= entry[k].failed;
    }
    rc = crn_buf_status(m->buf);
out:
    for (size_t k = 0; k < v->nbounds; k++) {
        crn_sketcher_free(sketcher[k]);
        crn_buf_done(&entry[k]);
    }
    crn_buf_done(&facts);
    return rc;
}

static bool same_cells(const crn_trees_var *a, const crn_trees_var *b)
{
    return crn_digest_equal(&a->var.root, &b->var.root) && a->nbounds == b->nbounds &&
           memcmp(a->bound, b->bound, a->nbounds * sizeof *a->bound) == 0 &&
           a->var.spec.block == b->var.spec.block && a->var.spec.nbytes == b->var.spec.nbytes &&
           strcmp(a->var.spec.type, b->var.spec.type) == 0;
}

/* The place of a variable's sketch in the mark before, if it has not changed since; 0: none. */
static uint64_t find_before(const crn_trees_mark *last, const uint64_t *place,
                            const crn_trees_var *v)
{
    const crn_trees_var *old = last ? crn_trees_find(last, v->var.spec.name) : NULL;
    return old && same_cells(old, v) ? place[old - last->var] : 0;
}

/* Has a codec changed the values? Count them, and whether by more than the bound that is closest.
 */
static bool note_loss(const making *m, const crn_trees_var *v, const crn_var *data)
{
    const crn_loss l = crn_diff_loss_of(&data->spec);
    if (l.absolute == 0 && l.relative == 0)
        return false;
    bool loose = v->nbounds == 0;
    for (size_t k = 0; k < v->nbounds; k++)
        loose |= l.absolute > v->bound[k].absolute || l.relative > v->bound[k].relative;
    m->lossy->n++;
    m->lossy->nloose += loose;
    return true;
}

/* The sketches of a mark, as far as its data is there; place: of its variables, and those of the
 * mark before at last_place. */
static cairn_status put_mark(making *m, const crn_trees_mark *t, const crn_trees_mark *last,
                             const uint64_t *last_place, uint64_t *place, uint64_t *ret_n)
{
    for (size_t i = 0; i < t->nvars; i++) {
        const crn_trees_var *v = &t->var[i];
        crn_var *data;
        bool same = false;
        place[i] = is_sketched(v) ? find_before(last, last_place, v) : 0;
        if (place[i] > 0 || !is_sketched(v))
            continue;
        cairn_status rc = crn_diff_share_data(&m->share, v->var.spec.name, &data);
        const bool lossy = rc == CAIRN_OK && note_loss(m, v, data);
        if (rc == CAIRN_OK && !lossy)
            rc = crn_diff_describes(&m->share, data, v, &same);
        if (rc == CAIRN_OK && same)
            rc = put_body(m, v, data, &place[i]);
        if (rc < 0 && rc != CAIRN_ENOTFOUND)
            return rc;
        *ret_n += place[i] == 0;
    }
    return CAIRN_OK;
}

static const diff_mark *find_mark(const diff_side *s, const crn_trees_mark *t)
{
    return crn_diff_find_mark(s, t->version);
}

static cairn_status put_marks(diff_side *s, uint32_t rank, crn_trees *t, making *m, uint64_t *place,
                              uint64_t *ret_n)
{
    uint64_t *last_place = NULL;
    for (size_t i = 0; i < crn_trees_nmarks(t); i++) {
        const crn_trees_mark *k = crn_trees_at(t, i), *last = i > 0 ? crn_trees_at(t, i - 1) : NULL;
        const diff_mark *mark = find_mark(s, k);
        if (mark) {
            m->share = (diff_share){.side = s, .mark = mark, .rank = rank};
            cairn_status rc = put_mark(m, k, last, last_place, place, &ret_n[mark - s->mark.at]);
            crn_diff_share_close(&m->share);
            CRN_TRY(rc);
        }
        last_place = place;
        place += k->nvars;
    }
    return CAIRN_OK;
}

/* Variables of all marks together. */
static size_t count_vars(crn_trees *t)
{
    size_t n = 0;
    for (size_t i = 0; i < crn_trees_nmarks(t); i++)
        n += crn_trees_at(t, i)->nvars;
    return n;
}

cairn_status crn_diff_sketches_put(diff_side *s, uint32_t rank, crn_trees *t, crn_sketch_kind kind,
                                   uint64_t *ret_n, diff_lossy *lossy, crn_buf *buf)
{
    making m = {.kind = kind, .buf = buf, .base = buf->n, .lossy = lossy};
    const size_t n = count_vars(t);
    crn_buf table = {0};
    uint64_t *place;
    CRN_TRY(crn_alloc(&place, n));
    crn_put_zeros(buf, n * PLACE_BYTES);
    cairn_status rc = crn_buf_status(buf);
    if (rc == CAIRN_OK)
        rc = put_marks(s, rank, t, &m, place, ret_n);
    for (size_t i = 0; i < n; i++)
        crn_put_u64(&table, place[i]);
    if (rc == CAIRN_OK)
        rc = crn_buf_status(&table);
    if (rc == CAIRN_OK && n > 0)
        memcpy(buf->at + m.base, table.at, table.n);
    crn_buf_done(&table);
    free(place);
    return rc;
}

/* --- finding --------------------------------------------------------------------------------- */

static uint64_t place_at(const diff_sketches *s, size_t i)
{
    crn_cursor c = crn_cursor_of(s->at + i * PLACE_BYTES, PLACE_BYTES);
    return crn_get_u64(&c);
}

static diff_sketch sketch_at(const diff_sketches *s, uint64_t place, const crn_trees_var *v)
{
    diff_sketch k = {.base = s->at, .facts = s->at + place};
    for (size_t i = 0; i < v->nbounds; i++)
        k.entry[i] = k.facts + v->var.nblocks * (FACTS_BYTES + i * ENTRY_BYTES);
    return k;
}

diff_sketch_block crn_diff_sketch_block(const diff_sketch *s, size_t bound, uint64_t i)
{
    diff_sketch_block b;
    crn_cursor c = crn_cursor_of(s->entry[bound] + i * ENTRY_BYTES, ENTRY_BYTES);
    crn_get_bytes(&c, b.digest.b, sizeof b.digest.b);
    b.data = s->base + crn_get_u64(&c);
    b.nbytes = crn_get_u32(&c);
    b.kind = (crn_sketch_kind)crn_get_u32(&c);
    return b;
}

crn_facts crn_diff_sketch_facts(const diff_sketch *s, uint64_t i)
{
    crn_facts f;
    crn_cursor c = crn_cursor_of(s->facts + i * FACTS_BYTES, FACTS_BYTES);
    crn_get_bytes(&c, f.plain.b, sizeof f.plain.b);
    f.nnan = crn_get_u32(&c);
    f.nabove = crn_get_u32(&c);
    f.nbelow = crn_get_u32(&c);
    (void)crn_get_u32(&c);
    f.min = crn_get_f64(&c);
    f.max = crn_get_f64(&c);
    f.sum = crn_get_f64(&c);
    f.size = crn_get_f64(&c);
    return f;
}

/* Is there a whole sketch of a variable at a place? */
static bool is_whole(const diff_sketches *s, uint64_t place, const crn_trees_var *v)
{
    const uint64_t each = FACTS_BYTES + v->nbounds * ENTRY_BYTES;
    if (!is_sketched(v) || place > s->nbytes || v->var.nblocks > (s->nbytes - place) / each)
        return false;
    const diff_sketch k = sketch_at(s, place, v);
    for (size_t b = 0; b < v->nbounds; b++) {
        for (uint64_t i = 0; i < v->var.nblocks; i++) {
            crn_cursor c = crn_cursor_of(k.entry[b] + i * ENTRY_BYTES + 16, ENTRY_BYTES - 16);
            const uint64_t off = crn_get_u64(&c), n = crn_get_u32(&c);
            const uint32_t kind = crn_get_u32(&c);
            if (off > s->nbytes || n > s->nbytes - off || kind > CRN_SKETCH_BYTES ||
                !crn_sketch_fits((crn_sketch_kind)kind, s->at + off, n, values_of(v, i)))
                return false;
        }
    }
    return true;
}

static bool is_mark_whole(const diff_sketches *s, size_t start, const crn_trees_mark *m)
{
    for (size_t i = 0; i < m->nvars; i++) {
        const uint64_t place = place_at(s, start + i);
        if (place > 0 && !is_whole(s, place, &m->var[i]))
            return false;
    }
    return true;
}

cairn_status crn_diff_sketches_open(diff_side *s, uint32_t rank, const void *data, size_t nbytes)
{
    diff_sketches *k = &s->sketches[rank];
    crn_trees *t = s->trees[rank];
    const size_t n = crn_trees_nmarks(t);
    size_t start = 0;
    CRN_FAIL_IF(count_vars(t) > nbytes / PLACE_BYTES, CAIRN_ECORRUPT,
                "the sketches of rank %u in golden file '%s' are cut short", rank, s->name);
    *k = (diff_sketches){.at = data, .nbytes = nbytes};
    CRN_TRY(crn_alloc(&k->start, n));
    for (size_t i = 0; i < n; i++) {
        const crn_trees_mark *m = crn_trees_at(t, i);
        k->start[i] = start;
        CRN_FAIL_IF(!is_mark_whole(k, start, m), CAIRN_ECORRUPT,
                    "a sketch of rank %u, mark %" PRIu64 " in golden file '%s' is damaged", rank,
                    m->version, s->name);
        start += m->nvars;
    }
    s->sketch_bytes += nbytes;
    return CAIRN_OK;
}

/* The number of a mark in trees, whose versions ascend; false: it is not there. */
static bool number_of(crn_trees *t, uint64_t version, size_t *ret)
{
    size_t low = 0, high = crn_trees_nmarks(t);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (crn_trees_at(t, middle)->version < version)
            low = middle + 1;
        else
            high = middle;
    }
    *ret = low;
    return low < crn_trees_nmarks(t) && crn_trees_at(t, low)->version == version;
}

/* v may be of another share than this one: of a rank that has a piece which lies elsewhere. */
bool crn_diff_sketch_find(const diff_share *share, const crn_trees_var *v, diff_sketch *ret)
{
    const diff_side *s = share->side;
    size_t i;
    if (!s->sketches || !v || crn_trees_find(share->described, v->var.spec.name) != v ||
        !number_of(share->trees, share->mark->version, &i))
        return false;
    const diff_sketches *k = &s->sketches[share->rank];
    const uint64_t place = place_at(k, k->start[i] + (size_t)(v - share->described->var));
    if (place > 0)
        *ret = sketch_at(k, place, v);
    return place > 0;
}

bool crn_diff_is_sketched(diff_side *s, const diff_mark *m)
{
    size_t i;
    for (uint32_t r = 0; s->sketches && r < m->nranks && r < s->nranks; r++) {
        if (!number_of(s->trees[r], m->version, &i))
            return false;
        const crn_trees_mark *t = crn_trees_at(s->trees[r], i);
        for (size_t v = 0; v < t->nvars; v++)
            if (is_sketched(&t->var[v]) &&
                place_at(&s->sketches[r], s->sketches[r].start[i] + v) == 0)
                return false;
    }
    return s->sketches != NULL;
}
