/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The trees file: docs/format/trees.md has its bytes. Readers believe no length before they have
 * seen that the file is long enough, and no record whose digest is wrong.
 */
#include "store/store_trail.h"

#include <assert.h>
#include <fcntl.h>
#include <unistd.h>

static const char file_magic[8] = {'C', 'A', 'I', 'R', 'N', 'T', 'R', '\n'};
static const uint32_t record_magic = 0x45455254; /* "TREE" */

enum {
    FORMAT = 1,
    UNIT = 64, /* header, frames, heads and bodies start at multiples */
    FRAME_DIGEST_AT = 40,
    HEADER_DIGEST_AT = 48,
    HEAD_BYTES_MAX = 1 << 30,
    TREES_VAR_MIN = 55 + 33 /* bytes that a variable takes in a head at least: a declaration of
                               empty names, and what follows it without bounds */
};

struct crn_trees {
    char *name;
    crn_file *file;            /* NULL: in memory */
    const unsigned char *data; /* of a file in memory */
    uint64_t nbytes;
    uint64_t end; /* behind the last whole record */
    unsigned char run[16];
    uint32_t rank;
    CRN_VEC(crn_trees_mark *) mark;
    size_t ndamaged;
};

/* A record's place, as its frame tells. */
typedef struct frame {
    uint64_t head_bytes, body_bytes;
    crn_digest head;
} frame;

static uint64_t round_unit(uint64_t n)
{
    return CRN_ROUND_UP(n, (uint64_t)UNIT);
}

/* --- marks in memory ------------------------------------------------------------------------ */

cairn_status crn_trees_mark_create(size_t nvars, crn_trees_mark **ret)
{
    crn_trees_mark *m;
    CRN_TRY(crn_alloc(&m, 1));
    cairn_status rc = crn_alloc(&m->var, nvars);
    if (rc < 0) {
        free(m);
        return rc;
    }
    m->nvars = nvars;
    *ret = m;
    return CAIRN_OK;
}

void crn_trees_unload(crn_trees_var *v)
{
    crn_tree_done(&v->exact);
    for (size_t i = 0; i < v->nbounds; i++)
        crn_tree_done(&v->tolerant[i]);
    free(v->nan);
    v->nan = NULL;
    v->loaded = false;
}

void crn_trees_mark_free(crn_trees_mark *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->nvars; i++) {
        crn_trees_var *v = &m->var[i];
        free((char *)v->var.spec.name);
        free((char *)v->var.spec.type);
        free((char *)v->var.spec.attributes);
        crn_trees_unload(v);
    }
    free(m->var);
    free(m);
}

crn_trees_var *crn_trees_find(const crn_trees_mark *m, const char *name)
{
    for (size_t i = 0; i < m->nvars; i++)
        if (strcmp(m->var[i].var.spec.name, name) == 0)
            return &m->var[i];
    return NULL;
}

cairn_status crn_trees_declare(crn_trees_var *v, const crn_var_spec *spec)
{
    crn_buf b = {0};
    const crn_var like = {.spec = *spec};
    crn_var tmp = like;
    const uint64_t *from[3] = {spec->global, spec->offset, spec->count};
    for (size_t k = 0; k < 3; k++)
        for (uint32_t d = 0; d < spec->ndims; d++)
            tmp.dims[k * spec->ndims + d] = from[k][d];
    crn_format_put_declaration(&b, &tmp);
    cairn_status rc = crn_buf_status(&b);
    crn_cursor c = crn_cursor_of(b.at, b.n);
    if (rc == CAIRN_OK)
        rc = crn_format_get_declaration(&c, &v->var);
    crn_buf_done(&b);
    return rc;
}

bool crn_trees_has_nan(const crn_trees_var *v, uint64_t i)
{
    return v->nan && v->nan[i / 8] >> i % 8 & 1;
}

/* --- encoding ------------------------------------------------------------------------------- */

static uint64_t body_bytes(const crn_trees_var *v)
{
    const uint64_t n = v->var.nblocks;
    const uint64_t nodes = crn_tree_nnodes(n) * (1 + v->nbounds) * sizeof(crn_digest);
    return nodes + (v->nnan > 0 ? n / 8 + (n % 8 != 0) : 0);
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
    if (v->nnan > 0)
        crn_put_bytes(b, v->nan, v->var.nblocks / 8 + (v->var.nblocks % 8 != 0));
}

static void put_header(crn_buf *b, const unsigned char run[16], uint32_t rank)
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

static void put_frame(crn_buf *b, const frame *f)
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
    crn_put_zeros(b, UNIT - FRAME_DIGEST_AT - sizeof(crn_digest));
}

static bool same_bounds(const crn_trees_var *a, const crn_trees_var *b)
{
    for (size_t k = 0; k < a->nbounds && a->nbounds == b->nbounds; k++)
        if (a->bound[k].absolute != b->bound[k].absolute ||
            a->bound[k].relative != b->bound[k].relative)
            return false;
    return a->nbounds == b->nbounds;
}

/* Does v have the nodes of the variable of the same name in last? Equal data has equal digests. */
static bool is_unchanged(const crn_trees_var *v, const crn_trees_mark *last)
{
    const crn_trees_var *old = last ? crn_trees_find(last, v->var.spec.name) : NULL;
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
    const uint64_t start = off + UNIT + round_unit(probe.n);
    body->failed |= probe.failed;
    crn_buf_done(&probe);
    for (size_t i = 0; i < m->nvars && !body->failed; i++) {
        crn_trees_var *v = &m->var[i];
        assert(v->loaded);
        if (is_unchanged(v, last)) {
            const crn_trees_var *old = crn_trees_find(last, v->var.spec.name);
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

/* The record of m as it will stand at off of its file. */
static void put_record(crn_trees_mark *m, const crn_trees_mark *last, uint64_t off, crn_buf *b)
{
    crn_buf body = {0}, head = {0};
    place_bodies(m, last, off, &body);
    put_head(&head, m);
    b->failed |= body.failed || head.failed;
    if (!b->failed) {
        put_frame(b, &(frame){head.n, body.n, crn_digest_of(head.at, head.n)});
        crn_put_bytes(b, head.at, head.n);
        crn_put_zeros(b, round_unit(head.n) - head.n);
        crn_put_bytes(b, body.at, body.n);
        crn_put_zeros(b, round_unit(body.n) - body.n);
    }
    crn_buf_done(&body);
    crn_buf_done(&head);
}

/* --- decoding ------------------------------------------------------------------------------- */

static cairn_status read_at(crn_trees *t, void *dst, uint64_t nbytes, uint64_t off)
{
    if (t->file)
        return crn_file_read(t->file, dst, nbytes, off);
    memcpy(dst, t->data + off, nbytes);
    return CAIRN_OK;
}

static bool fits(const crn_trees *t, uint64_t off, uint64_t nbytes)
{
    return off <= t->nbytes && nbytes <= t->nbytes - off;
}

static cairn_status get_header(crn_trees *t)
{
    unsigned char raw[UNIT], magic[sizeof file_magic];
    CRN_FAIL_IF(t->nbytes < UNIT, CAIRN_ECORRUPT, "'%s' has %llu bytes: too few for trees", t->name,
                (unsigned long long)t->nbytes);
    CRN_TRY(read_at(t, raw, sizeof raw, 0));
    crn_cursor c = crn_cursor_of(raw, sizeof raw);
    crn_get_bytes(&c, magic, sizeof magic);
    const uint32_t format = crn_get_u32(&c);
    t->rank = crn_get_u32(&c);
    crn_get_bytes(&c, t->run, sizeof t->run);
    const crn_digest d = crn_digest_of(raw, HEADER_DIGEST_AT);
    CRN_FAIL_IF(memcmp(magic, file_magic, sizeof magic) != 0, CAIRN_ECORRUPT,
                "'%s' does not hold trees", t->name);
    CRN_FAIL_IF(memcmp(raw + HEADER_DIGEST_AT, d.b, sizeof d.b) != 0, CAIRN_ECORRUPT,
                "the beginning of '%s' is damaged", t->name);
    CRN_FAIL_IF(format != FORMAT, CAIRN_EUNSUPPORTED,
                "'%s' has trees of format %u; this version reads format %d", t->name, format,
                FORMAT);
    return CAIRN_OK;
}

/* The frame at off; false when there is none, or the record would not fit the file. */
static bool get_frame(crn_trees *t, uint64_t off, frame *ret)
{
    unsigned char raw[UNIT];
    if (!fits(t, off, UNIT) || read_at(t, raw, sizeof raw, off) < 0)
        return false;
    crn_cursor c = crn_cursor_of(raw, sizeof raw);
    const uint32_t magic = crn_get_u32(&c);
    (void)crn_get_u32(&c);
    ret->head_bytes = crn_get_u64(&c);
    ret->body_bytes = crn_get_u64(&c);
    ret->head = crn_format_get_digest(&c);
    const crn_digest d = crn_digest_of(raw, FRAME_DIGEST_AT);
    return magic == record_magic && memcmp(raw + FRAME_DIGEST_AT, d.b, sizeof d.b) == 0 &&
           ret->head_bytes <= HEAD_BYTES_MAX && ret->body_bytes <= t->nbytes &&
           fits(t, off, UNIT + round_unit(ret->head_bytes) + round_unit(ret->body_bytes));
}

static cairn_status get_var(crn_cursor *c, const crn_trees *t, crn_trees_var *v)
{
    CRN_TRY(crn_format_get_declaration(c, &v->var));
    v->nnan = crn_get_u64(c);
    v->body_off = crn_get_u64(c);
    v->body_digest = crn_format_get_digest(c);
    const uint8_t nbounds = crn_get_u8(c);
    crn_cursor_expect(c, nbounds <= CRN_BOUNDS_MAX && v->nnan <= v->var.nblocks);
    CRN_TRY(crn_cursor_status(c, "trees of a mark"));
    for (; v->nbounds < nbounds; v->nbounds++) {
        crn_bound *b = &v->bound[v->nbounds];
        b->absolute = crn_get_f64(c);
        b->relative = crn_get_f64(c);
        crn_cursor_expect(c, b->absolute >= 0 && b->relative >= 0);
        v->root[v->nbounds] = crn_format_get_digest(c);
    }
    /* a tree has less than two nodes for a leaf */
    crn_cursor_expect(c, v->var.nblocks <= t->nbytes / sizeof(crn_digest));
    crn_cursor_expect(c, !c->failed && fits(t, v->body_off, body_bytes(v)));
    return crn_cursor_status(c, "trees of a mark");
}

static cairn_status get_mark(const crn_trees *t, const void *data, size_t nbytes,
                             crn_trees_mark **ret)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    crn_trees_mark head = {.version = crn_get_u64(&c), .wall_ns = crn_get_u64(&c)};
    head.series = crn_get_u32(&c);
    head.nranks = crn_get_u32(&c);
    const uint32_t nvars = crn_get_u32(&c);
    (void)crn_get_u32(&c);
    crn_cursor_expect(&c, nvars <= c.n / TREES_VAR_MIN && head.nranks > t->rank);
    CRN_TRY(crn_cursor_status(&c, "trees of a mark"));
    crn_trees_mark *m;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_trees_mark_create(nvars, &m));
    head.nvars = nvars;
    head.var = m->var;
    *m = head;
    for (size_t i = 0; i < nvars; i++)
        CRN_TRY_OUT(rc, get_var(&c, t, &m->var[i]));
    *ret = m;
    return CAIRN_OK;
out:
    crn_trees_mark_free(m);
    return rc;
}

/* The record that f stands before; CAIRN_ECORRUPT when it is damaged. */
static cairn_status get_record(crn_trees *t, uint64_t off, const frame *f, crn_trees_mark **ret)
{
    unsigned char *head;
    CRN_TRY(crn_alloc(&head, f->head_bytes));
    cairn_status rc = read_at(t, head, f->head_bytes, off + UNIT);
    if (rc == CAIRN_OK) {
        const crn_digest d = crn_digest_of(head, f->head_bytes);
        rc =
            crn_digest_equal(&d, &f->head) ? get_mark(t, head, f->head_bytes, ret) : CAIRN_ECORRUPT;
    }
    free(head);
    return rc;
}

/* Take a mark to the list: those that it replaces go. */
static cairn_status take_mark(crn_trees *t, crn_trees_mark *m)
{
    while (t->mark.n > 0 && t->mark.at[t->mark.n - 1]->version >= m->version)
        crn_trees_mark_free(t->mark.at[--t->mark.n]);
    cairn_status rc = crn_vec_push(&t->mark, m);
    if (rc < 0)
        crn_trees_mark_free(m);
    return rc;
}

/*
 * Find all records. One that is damaged is passed over, in steps of a unit until a frame is whole
 * again; what is broken behind the last whole record is what a crash leaves, not damage.
 */
static cairn_status scan(crn_trees *t)
{
    uint64_t off = UNIT;
    bool broken = false;
    t->end = UNIT;
    while (fits(t, off, UNIT)) {
        frame f;
        crn_trees_mark *m = NULL;
        cairn_status rc = get_frame(t, off, &f) ? get_record(t, off, &f, &m) : CAIRN_ECORRUPT;
        if (rc == CAIRN_ENOMEM || rc == CAIRN_EIO)
            return rc;
        if (rc < 0) {
            broken = true;
            off += UNIT;
            continue;
        }
        t->ndamaged += broken;
        broken = false;
        CRN_TRY(take_mark(t, m));
        off += UNIT + round_unit(f.head_bytes) + round_unit(f.body_bytes);
        t->end = off;
    }
    return CAIRN_OK;
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

static cairn_status get_body(crn_cursor *c, crn_trees_var *v)
{
    const size_t n = v->var.nblocks;
    CRN_TRY(get_tree(c, n, &v->var.root, &v->exact));
    for (size_t i = 0; i < v->nbounds; i++)
        CRN_TRY(get_tree(c, n, &v->root[i], &v->tolerant[i]));
    if (v->nnan == 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&v->nan, n / 8 + (n % 8 != 0)));
    crn_get_bytes(c, v->nan, n / 8 + (n % 8 != 0));
    return crn_cursor_status(c, "a hash tree");
}

cairn_status crn_trees_load(crn_trees *t, const crn_trees_mark *m, crn_trees_var *v)
{
    unsigned char *raw;
    if (v->loaded)
        return CAIRN_OK;
    const size_t nbytes = body_bytes(v);
    CRN_TRY(crn_alloc(&raw, nbytes));
    cairn_status rc = read_at(t, raw, nbytes, v->body_off);
    if (rc == CAIRN_OK) {
        const crn_digest d = crn_digest_of(raw, nbytes);
        crn_cursor c = crn_cursor_of(raw, nbytes);
        rc = crn_digest_equal(&d, &v->body_digest) ? get_body(&c, v) : CAIRN_ECORRUPT;
    }
    free(raw);
    v->loaded = rc == CAIRN_OK;
    if (rc < 0)
        crn_trees_unload(v);
    CRN_FAIL_IF(rc == CAIRN_ECORRUPT, CAIRN_ECORRUPT,
                "'%s': mark %llu, the trees of variable '%s' are damaged", t->name,
                (unsigned long long)m->version, v->var.spec.name);
    return rc;
}

/* --- files ---------------------------------------------------------------------------------- */

static cairn_status open_dir(crn_run *run, uint32_t rank, bool create, int *ret_fd)
{
    char name[PATH_TEXT];
    int up;
    CRN_TRY(crn_dir_open(run->fd, "trees", create, &up));
    cairn_status rc = create ? crn_dir_sync(run->fd) : CAIRN_OK;
    crn_fan_name(rank, name);
    if (rc == CAIRN_OK)
        rc = crn_dir_open(up, name, create, ret_fd);
    if (rc == CAIRN_OK && create && (rc = crn_dir_sync(up)) < 0)
        close(*ret_fd);
    close(up);
    return rc;
}

/* The beginning of a new file, or of one whose beginning a crash has cut. */
static cairn_status begin_file(crn_trees *t, crn_run *run, uint32_t rank, int dir)
{
    crn_buf b = {0};
    put_header(&b, run->manifest.run, rank);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        rc = crn_file_write(t->file, b.at, b.n, 0);
    crn_buf_done(&b);
    t->nbytes = UNIT;
    return rc < 0 ? rc : crn_dir_sync(dir);
}

static cairn_status open_file(crn_trees *t, crn_run *run, uint32_t rank, bool write, int dir)
{
    char name[PATH_TEXT];
    snprintf(name, sizeof name, "trees-%06u", rank);
    CRN_TRY(crn_strdup(name, &t->name));
    CRN_TRY(crn_file_open(dir, name, CRN_READ | (write ? CRN_WRITE | CRN_CREATE : 0), &t->file));
    CRN_TRY(crn_file_nbytes(t->file, &t->nbytes));
    if (write && t->nbytes < UNIT)
        CRN_TRY(begin_file(t, run, rank, dir));
    CRN_TRY(get_header(t));
    CRN_FAIL_IF(memcmp(t->run, run->manifest.run, sizeof t->run) != 0 || t->rank != rank,
                CAIRN_EMISMATCH, "'%s' belongs to rank %u of another run or place", name, t->rank);
    CRN_TRY(scan(t));
    return write && t->end < t->nbytes ? crn_file_truncate(t->file, t->end) : CAIRN_OK;
}

cairn_status crn_run_trees(crn_run *run, uint32_t rank, bool write, crn_trees **ret)
{
    crn_trees *t;
    int dir;
    CRN_TRY(open_dir(run, rank, write, &dir));
    cairn_status rc = crn_alloc(&t, 1);
    if (rc == CAIRN_OK && (rc = open_file(t, run, rank, write, dir)) < 0)
        crn_trees_close(t);
    close(dir);
    if (rc < 0)
        crn_err_prefix("run '%s', trees: ", run->name);
    else
        *ret = t;
    return rc;
}

cairn_status crn_trees_of(const char *name, const void *data, size_t nbytes, crn_trees **ret)
{
    crn_trees *t;
    cairn_status rc;
    CRN_TRY(crn_alloc(&t, 1));
    t->data = data;
    t->nbytes = nbytes;
    CRN_TRY_OUT(rc, crn_strdup(name, &t->name));
    CRN_TRY_OUT(rc, get_header(t));
    CRN_TRY_OUT(rc, scan(t));
    *ret = t;
    return CAIRN_OK;
out:
    crn_trees_close(t);
    return rc;
}

void crn_trees_close(crn_trees *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->mark.n; i++)
        crn_trees_mark_free(t->mark.at[i]);
    crn_vec_done(&t->mark);
    crn_file_close(t->file);
    free(t->name);
    free(t);
}

uint32_t crn_trees_rank(const crn_trees *t)
{
    return t->rank;
}

size_t crn_trees_nmarks(const crn_trees *t)
{
    return t->mark.n;
}

crn_trees_mark *crn_trees_at(const crn_trees *t, size_t i)
{
    return t->mark.at[i];
}

size_t crn_trees_ndamaged(const crn_trees *t)
{
    return t->ndamaged;
}

cairn_status crn_trees_append(crn_trees *t, crn_trees_mark *m, const crn_trees_mark *last)
{
    crn_buf b = {0};
    put_record(m, last, t->end, &b);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        rc = crn_file_write(t->file, b.at, b.n, t->end);
    if (rc == CAIRN_OK)
        rc = crn_file_sync(t->file);
    if (rc == CAIRN_OK)
        t->end += b.n;
    crn_buf_done(&b);
    return rc;
}

cairn_status crn_trees_put(crn_trees *t, crn_buf *buf)
{
    const size_t start = buf->n;
    put_header(buf, t->run, t->rank);
    for (size_t i = 0; i < t->mark.n; i++) {
        crn_trees_mark *m = t->mark.at[i];
        for (size_t k = 0; k < m->nvars; k++)
            CRN_TRY(crn_trees_load(t, m, &m->var[k]));
        /* places change: from here on m can no longer be loaded from t, and need not be */
        put_record(m, i > 0 ? t->mark.at[i - 1] : NULL, buf->n - start, buf);
    }
    return crn_buf_status(buf);
}
