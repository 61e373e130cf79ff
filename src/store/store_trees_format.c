/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes of a trees file: header, frames, heads and bodies, put and got.
 */
#include "store/store_trees_format.h"

#include <assert.h>

static const char file_magic[8] = {'C', 'A', 'I', 'R', 'N', 'T', 'R', '\n'};
static const uint32_t record_magic = 0x45455254; /* "TREE" */

enum {
    FORMAT = 1,
    FRAME_DIGEST_AT = 40,
    HEADER_DIGEST_AT = 48,
    HEAD_BYTES_MAX = 1 << 30,
    TREES_VAR_MIN = 55 + 33 /* bytes that a variable takes in a head at least: a declaration of
                               empty names, and what follows it without bounds */
};

/* n rounded up to whole units. */
static uint64_t round_up(uint64_t n)
{
    return CRN_ROUND_UP(n, (uint64_t)TREES_UNIT);
}

bool crn_trees_fits(uint64_t off, uint64_t n, uint64_t nbytes)
{
    return off <= nbytes && n <= nbytes - off;
}

/* --- encoding ------------------------------------------------------------------------------- */

/* Bytes of the bits that tell which blocks have a NaN. */
static uint64_t nan_bytes(const crn_trees_var *v)
{
    const uint64_t n = v->var.nblocks;
    return v->nnan > 0 ? n / 8 + (n % 8 != 0) : 0;
}

uint64_t crn_trees_body_bytes(const crn_trees_var *v)
{
    return crn_tree_nnodes(v->var.nblocks) * (1 + v->nbounds) * sizeof(crn_digest) + nan_bytes(v);
}

static void put_tree(crn_buf *b, const crn_tree *t)
{
    crn_put_bytes(b, t->node, t->nnodes * sizeof *t->node);
}

static void put_body(crn_buf *b, const crn_trees_var *v)
{
    put_tree(b, &v->exact);
    for (size_t i = 0; i < v->nbounds; i++)
        put_tree(b, &v->tolerant[i]);
    crn_put_bytes(b, v->nan, nan_bytes(v));
}

void crn_trees_put_header(crn_buf *b, const unsigned char run[16], uint32_t rank)
{
    const size_t start = b->n;
    crn_put_bytes(b, file_magic, sizeof file_magic);
    crn_put_u32(b, FORMAT);
    crn_put_u32(b, rank);
    crn_put_bytes(b, run, 16);
    crn_put_zeros(b, HEADER_DIGEST_AT - (b->n - start));
    if (!b->failed) {
        const crn_digest d = crn_digest_of(b->at + start, HEADER_DIGEST_AT);
        crn_format_put_digest(b, &d);
    }
}

static void put_head(crn_buf *b, const crn_trees_mark *m)
{
    crn_put_u64(b, m->version);
    crn_put_u64(b, m->wall_ns);
    crn_put_u32(b, m->series);
    crn_put_u32(b, m->nranks);
    crn_put_u32(b, (uint32_t)m->nvars);
    crn_put_u32(b, 0);
    for (size_t i = 0; i < m->nvars; i++) {
        const crn_trees_var *v = &m->var[i];
        crn_format_put_declaration(b, &v->var);
        crn_put_u64(b, v->nnan);
        crn_put_u64(b, v->body_off);
        crn_format_put_digest(b, &v->body_digest);
        crn_put_u8(b, (uint8_t)v->nbounds);
        for (size_t k = 0; k < v->nbounds; k++) {
            crn_put_f64(b, v->bound[k].absolute);
            crn_put_f64(b, v->bound[k].relative);
            crn_format_put_digest(b, &v->root[k]);
        }
    }
}

static void put_frame(crn_buf *b, const crn_trees_frame *f)
{
    const size_t start = b->n;
    crn_put_u32(b, record_magic);
    crn_put_u32(b, 0);
    crn_put_u64(b, f->head_bytes);
    crn_put_u64(b, f->body_bytes);
    crn_format_put_digest(b, &f->head);
    if (!b->failed) {
        const crn_digest d = crn_digest_of(b->at + start, FRAME_DIGEST_AT);
        crn_format_put_digest(b, &d);
    }
    crn_put_zeros(b, TREES_UNIT - FRAME_DIGEST_AT - sizeof(crn_digest));
}

static bool same_bounds(const crn_trees_var *a, const crn_trees_var *b)
{
    for (size_t k = 0; k < a->nbounds && a->nbounds == b->nbounds; k++)
        if (a->bound[k].absolute != b->bound[k].absolute ||
            a->bound[k].relative != b->bound[k].relative)
            return false;
    return a->nbounds == b->nbounds;
}

/* Does v have the nodes of old, of the same name in the last mark? Equal data has equal digests. */
static bool is_unchanged(const crn_trees_var *v, const crn_trees_var *old)
{
    return old && old->body_off > 0 && old->var.nblocks == v->var.nblocks && old->nnan == v->nnan &&
           strcmp(old->var.spec.type, v->var.spec.type) == 0 &&
           crn_digest_equal(&old->var.root, &v->var.root) && same_bounds(old, v);
}

/* Say where each variable's nodes lie, for a record that starts at off; the nodes that are new
 * follow in *body. The length of the head does not depend on the places that stand in it. */
static void place_bodies(crn_trees_mark *m, const crn_trees_mark *last, uint64_t off, crn_buf *body)
{
    crn_buf probe = {0};
    put_head(&probe, m);
    const uint64_t start = off + TREES_UNIT + round_up(probe.n);
    body->failed |= probe.failed;
    crn_buf_done(&probe);
    for (size_t i = 0; i < m->nvars && !body->failed; i++) {
        crn_trees_var *v = &m->var[i];
        const crn_trees_var *old = last ? crn_trees_find(last, v->var.spec.name) : NULL;
        assert(v->loaded);
        if (is_unchanged(v, old)) {
            v->body_off = old->body_off;
            v->body_digest = old->body_digest;
            continue;
        }
        const size_t from = body->n;
        put_body(body, v);
        v->body_off = start + from;
        if (!body->failed) /* an empty one may have no address */
            v->body_digest = crn_digest_of(body->n > from ? body->at + from : NULL, body->n - from);
    }
}

void crn_trees_put_record(crn_trees_mark *m, const crn_trees_mark *last, uint64_t off, crn_buf *b)
{
    crn_buf body = {0}, head = {0};
    place_bodies(m, last, off, &body);
    put_head(&head, m);
    b->failed |= body.failed || head.failed;
    if (!b->failed) {
        put_frame(b, &(crn_trees_frame){head.n, body.n, crn_digest_of(head.at, head.n)});
        crn_put_bytes(b, head.at, head.n);
        crn_put_zeros(b, round_up(head.n) - head.n);
        crn_put_bytes(b, body.at, body.n);
        crn_put_zeros(b, round_up(body.n) - body.n);
    }
    crn_buf_done(&body);
    crn_buf_done(&head);
}

/* --- decoding ------------------------------------------------------------------------------- */

cairn_status crn_trees_get_header(const unsigned char raw[TREES_UNIT], const char *name,
                                  unsigned char run[16], uint32_t *ret_rank)
{
    unsigned char magic[sizeof file_magic];
    crn_cursor c = crn_cursor_of(raw, TREES_UNIT);
    crn_get_bytes(&c, magic, sizeof magic);
    const uint32_t format = crn_get_u32(&c);
    const uint32_t rank = crn_get_u32(&c);
    const crn_digest d = crn_digest_of(raw, HEADER_DIGEST_AT);
    CRN_FAIL_IF(memcmp(magic, file_magic, sizeof magic) != 0, CAIRN_ECORRUPT,
                "'%s' does not hold trees", name);
    CRN_FAIL_IF(memcmp(raw + HEADER_DIGEST_AT, d.b, sizeof d.b) != 0, CAIRN_ECORRUPT,
                "the beginning of '%s' is damaged", name);
    CRN_FAIL_IF(format != FORMAT, CAIRN_EUNSUPPORTED,
                "'%s' has trees of format %u; this version reads format %d", name, format, FORMAT);
    crn_get_bytes(&c, run, 16);
    *ret_rank = rank;
    return CAIRN_OK;
}

bool crn_trees_get_frame(const unsigned char raw[TREES_UNIT], crn_trees_frame *ret)
{
    crn_cursor c = crn_cursor_of(raw, TREES_UNIT);
    const uint32_t magic = crn_get_u32(&c);
    (void)crn_get_u32(&c);
    ret->head_bytes = crn_get_u64(&c);
    ret->body_bytes = crn_get_u64(&c);
    ret->head = crn_format_get_digest(&c);
    const crn_digest d = crn_digest_of(raw, FRAME_DIGEST_AT);
    return magic == record_magic && memcmp(raw + FRAME_DIGEST_AT, d.b, sizeof d.b) == 0 &&
           ret->head_bytes <= HEAD_BYTES_MAX && ret->body_bytes <= INT64_MAX;
}

uint64_t crn_trees_record_bytes(const crn_trees_frame *f)
{
    return TREES_UNIT + round_up(f->head_bytes) + round_up(f->body_bytes);
}

static cairn_status get_var(crn_cursor *c, uint64_t file_bytes, crn_trees_var *v)
{
    CRN_TRY(crn_format_get_declaration(c, &v->var));
    v->nnan = crn_get_u64(c);
    v->body_off = crn_get_u64(c);
    v->body_digest = crn_format_get_digest(c);
    const uint8_t nbounds = crn_get_u8(c);
    crn_cursor_expect(c, nbounds <= CRN_BOUNDS_MAX && v->nnan <= v->var.nblocks);
    CRN_TRY(crn_cursor_status(c, "trees of a mark"));
    CRN_TRY(crn_trees_make_room(v, nbounds));
    for (; v->nbounds < nbounds; v->nbounds++) {
        crn_bound *b = &v->bound[v->nbounds];
        b->absolute = crn_get_f64(c);
        b->relative = crn_get_f64(c);
        crn_cursor_expect(c, b->absolute >= 0 && b->relative >= 0);
        v->root[v->nbounds] = crn_format_get_digest(c);
    }
    /* a tree has less than two nodes for a leaf */
    crn_cursor_expect(c, v->var.nblocks <= file_bytes / sizeof(crn_digest));
    crn_cursor_expect(c, !c->failed &&
                             crn_trees_fits(v->body_off, crn_trees_body_bytes(v), file_bytes));
    return crn_cursor_status(c, "trees of a mark");
}

cairn_status crn_trees_get_head(const void *data, size_t nbytes, uint32_t rank, uint64_t file_bytes,
                                crn_trees_mark **ret)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    crn_trees_mark head = {.version = crn_get_u64(&c), .wall_ns = crn_get_u64(&c)};
    head.series = crn_get_u32(&c);
    head.nranks = crn_get_u32(&c);
    const uint32_t nvars = crn_get_u32(&c);
    (void)crn_get_u32(&c);
    crn_cursor_expect(&c, nvars <= c.n / TREES_VAR_MIN && head.nranks > rank &&
                              head.nranks <= CRN_RANKS_MAX);
    CRN_TRY(crn_cursor_status(&c, "trees of a mark"));
    crn_trees_mark *m;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_trees_mark_create(nvars, &m));
    head.nvars = nvars;
    head.var = m->var;
    *m = head;
    uint64_t total = 0;
    for (size_t i = 0; i < nvars; i++) {
        CRN_TRY_OUT(rc, get_var(&c, file_bytes, &m->var[i]));
        total += crn_trees_body_bytes(&m->var[i]);
        crn_cursor_expect(&c, total <= file_bytes); /* no two have the same nodes */
    }
    CRN_TRY_OUT(rc, crn_cursor_status(&c, "trees of a mark"));
    CRN_TRY_OUT(rc, crn_trees_index(m));
    *ret = m;
    return CAIRN_OK;
out:
    crn_trees_mark_free(m);
    return rc;
}

static cairn_status get_tree(crn_cursor *c, size_t nleaves, const crn_digest *root, crn_tree *ret)
{
    const size_t nnodes = crn_tree_nnodes(nleaves);
    const void *node = crn_get_view(c, nnodes * sizeof(crn_digest));
    crn_tree t = {.nleaves = nleaves, .nnodes = nnodes, .nlevels = crn_tree_nlevels(nleaves)};
    CRN_TRY(crn_cursor_status(c, "a hash tree"));
    CRN_TRY(crn_alloc(&t.node, nnodes));
    if (nnodes > 0)
        memcpy(t.node, node, nnodes * sizeof *t.node);
    const crn_digest found = crn_tree_root(&t);
    crn_cursor_expect(c, crn_digest_equal(&found, root));
    *ret = t; /* also when the root is wrong: it is freed with the rest */
    return crn_cursor_status(c, "a hash tree");
}

cairn_status crn_trees_get_body(const void *data, size_t nbytes, crn_trees_var *v)
{
    const size_t n = v->var.nblocks;
    crn_cursor c = crn_cursor_of(data, nbytes);
    CRN_TRY(get_tree(&c, n, &v->var.root, &v->exact));
    for (size_t i = 0; i < v->nbounds; i++)
        CRN_TRY(get_tree(&c, n, &v->root[i], &v->tolerant[i]));
    if (v->nnan == 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&v->nan, nan_bytes(v)));
    crn_get_bytes(&c, v->nan, nan_bytes(v));
    return crn_cursor_status(&c, "a hash tree");
}
