/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Encoding and decoding of a part file's records; the layout is in docs/format.md.
 */
#include "store/store_format.h"

static const char super_magic[8] = {'C', 'A', 'I', 'R', 'N', 'P', 'T', '\n'};
static const uint32_t mark_magic = 0x4b52414d;  /* "MARK" */
static const uint32_t lossy_magic = 0x4c4b524d; /* "MRKL": a description with origins */
static const uint32_t moved_magic = 0x534b524d; /* "MRKS": and with what blocks are stored as */

enum { SUPER_DIGEST_AT = SUPER_BYTES - 16, VAR_BYTES_MIN = 55 };

bool crn_format_extent_fits(uint64_t off, uint64_t nbytes, uint64_t end)
{
    return off >= DATA_START && off % GRAIN == 0 && off <= end && nbytes <= end - off;
}

uint64_t crn_format_block_room(const crn_block *b)
{
    const uint64_t unit = b->nbytes < PAGE || b->codec != 0 ? GRAIN : PAGE;
    return CRN_ROUND_UP(b->nbytes, unit);
}

uint64_t crn_format_blob_room(uint64_t nbytes)
{
    return CRN_ROUND_UP(nbytes, (uint64_t)GRAIN);
}

void crn_format_put_digest(crn_buf *b, const crn_digest *d)
{
    crn_put_bytes(b, d->b, sizeof d->b);
}

crn_digest crn_format_get_digest(crn_cursor *c)
{
    crn_digest d = {{0}};
    crn_get_bytes(c, d.b, sizeof d.b);
    return d;
}

void crn_format_put_ref(crn_buf *b, const part_ref *r)
{
    crn_put_u64(b, r->off);
    crn_put_u64(b, r->nbytes);
    crn_format_put_digest(b, &r->digest);
}

part_ref crn_format_get_ref(crn_cursor *c, uint64_t end)
{
    part_ref r;
    r.off = crn_get_u64(c);
    r.nbytes = crn_get_u64(c);
    r.digest = crn_format_get_digest(c);
    crn_cursor_expect(c, r.nbytes == 0 || crn_format_extent_fits(r.off, r.nbytes, end));
    return r;
}

/* --- superblock --------------------------------------------------------------------------- */

/* A superblock is written while disks are full and memory is short: it allocates nothing. */
void crn_format_put_super(const part_super *s, unsigned char slot[SLOT_BYTES])
{
    crn_buf b = {.at = slot, .cap = SUPER_BYTES};
    memset(slot, 0, SLOT_BYTES);
    crn_put_bytes(&b, super_magic, sizeof super_magic);
    crn_put_u32(&b, s->format);
    crn_put_u32(&b, 0);
    crn_put_u64(&b, s->seq);
    crn_put_bytes(&b, s->id.run, sizeof s->id.run);
    crn_put_u32(&b, s->id.series);
    crn_put_u32(&b, s->id.rank);
    crn_put_u32(&b, s->id.nranks);
    crn_put_u32(&b, s->id.role);
    crn_put_u64(&b, s->end);
    crn_format_put_ref(&b, &s->catalogue);
    crn_put_u32(&b, s->dropped);
    crn_digest d = crn_digest_of(slot, SUPER_DIGEST_AT);
    memcpy(slot + SUPER_DIGEST_AT, d.b, sizeof d.b);
    memcpy(slot + COPY_OFFSET, slot, SUPER_BYTES);
}

cairn_status crn_format_get_super(const unsigned char copy[SUPER_BYTES], part_super *ret)
{
    crn_digest d = crn_digest_of(copy, SUPER_DIGEST_AT);
    crn_cursor c = crn_cursor_of(copy, SUPER_DIGEST_AT);
    part_super s;
    bool whole = memcmp(crn_get_view(&c, sizeof super_magic), super_magic, 8) == 0 &&
                 memcmp(d.b, copy + SUPER_DIGEST_AT, sizeof d.b) == 0;
    CRN_FAIL_IF(!whole, CAIRN_ECORRUPT, "damaged superblock");
    s.format = crn_get_u32(&c);
    CRN_FAIL_IF(s.format < 1 || s.format > CAIRN_FORMAT, CAIRN_EUNSUPPORTED,
                "format %u, but this version of cairn reads formats 1 to %d", s.format,
                CAIRN_FORMAT);
    crn_get_u32(&c);
    s.seq = crn_get_u64(&c);
    crn_get_bytes(&c, s.id.run, sizeof s.id.run);
    s.id.series = crn_get_u32(&c);
    s.id.rank = crn_get_u32(&c);
    s.id.nranks = crn_get_u32(&c);
    s.id.role = crn_get_u32(&c);
    s.end = crn_get_u64(&c);
    s.catalogue = crn_format_get_ref(&c, s.end);
    s.dropped = crn_get_u32(&c);
    CRN_TRY(crn_cursor_status(&c, "superblock"));
    *ret = s;
    return CAIRN_OK;
}

/* --- mark record -------------------------------------------------------------------------- */

static uint64_t count_blocks(uint64_t nbytes, uint32_t block)
{
    return nbytes / block + (nbytes % block != 0);
}

void crn_format_put_declaration(crn_buf *buf, const crn_var *v)
{
    crn_put_str(buf, v->spec.name);
    crn_put_str(buf, v->spec.type);
    crn_put_str(buf, v->spec.attributes ? v->spec.attributes : "");
    crn_put_u32(buf, v->spec.item);
    crn_put_u32(buf, v->spec.block);
    crn_put_u64(buf, v->spec.nbytes);
    crn_put_u8(buf, (uint8_t)v->spec.ndims);
    for (uint32_t i = 0; i < 3 * v->spec.ndims; i++)
        crn_put_u64(buf, v->dims[i]);
    crn_put_u64(buf, v->nchanged);
    crn_put_u64(buf, v->stored_bytes);
    crn_format_put_digest(buf, &v->root);
}

static void put_head(const crn_mark *m, uint32_t magic, crn_buf *buf)
{
    crn_put_u32(buf, magic);
    crn_put_u32(buf, (uint32_t)m->nvars);
    crn_put_u64(buf, m->version);
    crn_put_u64(buf, m->seq);
    crn_put_u64(buf, m->wall_ns);
}

static bool has_origins(const crn_mark *m)
{
    for (size_t i = 0; i < m->nvars; i++)
        for (uint64_t b = 0; b < m->var[i].nblocks; b++)
            if (!crn_digest_equal(&m->var[i].table[b].digest, &m->var[i].table[b].origin))
                return true;
    return false;
}

void crn_mark_put(const crn_mark *m, crn_buf *buf)
{
    const bool origins = has_origins(m);
    put_head(m, origins ? lossy_magic : mark_magic, buf);
    for (size_t i = 0; i < m->nvars; i++) {
        const crn_var *v = &m->var[i];
        crn_format_put_declaration(buf, v);
        for (uint64_t b = 0; b < v->nblocks; b++) {
            crn_format_put_digest(buf, &v->table[b].digest);
            if (origins)
                crn_format_put_digest(buf, &v->table[b].origin);
        }
    }
}

void crn_mark_put_moved(const crn_mark *m, crn_buf *buf)
{
    put_head(m, moved_magic, buf);
    for (size_t i = 0; i < m->nvars; i++) {
        const crn_var *v = &m->var[i];
        crn_format_put_declaration(buf, v);
        for (uint64_t b = 0; b < v->nblocks; b++) {
            const crn_block *block = &v->table[b];
            const bool moves = crn_block_moves(v, b);
            crn_format_put_digest(buf, &block->digest);
            crn_format_put_digest(buf, &block->origin);
            crn_put_u32(buf, moves ? block->codec : 0);
            crn_put_u32(buf, moves ? block->nbytes : crn_var_block_bytes(v, b));
            if (moves)
                crn_format_put_digest(buf, &block->stored);
        }
    }
}

void crn_specs_put(const crn_mark *m, crn_buf *buf)
{
    put_head(m, mark_magic, buf);
    for (size_t i = 0; i < m->nvars; i++)
        crn_format_put_declaration(buf, &m->var[i]);
}

/* Copy a string of the record to the heap. */
static cairn_status get_text(crn_cursor *c, size_t max, const char **ret)
{
    uint16_t n = crn_get_u16(c);
    crn_cursor_expect(c, n <= max);
    const char *view = crn_get_view(c, n);
    crn_cursor_expect(c, view && !memchr(view, 0, n));
    char *copy;
    CRN_TRY(crn_strndup(c->failed ? "" : view, c->failed ? 0 : n, &copy));
    *ret = copy;
    return CAIRN_OK;
}

cairn_status crn_format_get_declaration(crn_cursor *c, crn_var *v)
{
    CRN_TRY(get_text(c, CRN_VAR_NAME, &v->spec.name));
    CRN_TRY(get_text(c, CRN_VAR_TYPE, &v->spec.type));
    CRN_TRY(get_text(c, UINT16_MAX, &v->spec.attributes));
    v->spec.item = crn_get_u32(c);
    v->spec.block = crn_get_u32(c);
    v->spec.nbytes = crn_get_u64(c);
    v->spec.ndims = crn_get_u8(c);
    crn_cursor_expect(c, v->spec.ndims <= CRN_DIMS_MAX);
    CRN_TRY(crn_cursor_status(c, "mark record"));
    for (uint32_t i = 0; i < 3 * v->spec.ndims; i++)
        v->dims[i] = crn_get_u64(c);
    v->spec.global = v->dims;
    v->spec.offset = v->dims + v->spec.ndims;
    v->spec.count = v->dims + 2 * (size_t)v->spec.ndims;
    v->nchanged = crn_get_u64(c);
    v->stored_bytes = crn_get_u64(c);
    v->root = crn_format_get_digest(c);
    CRN_TRY(crn_cursor_status(c, "mark record"));
    cairn_status rc = crn_var_spec_check(&v->spec);
    CRN_FAIL_IF(rc == CAIRN_EINVAL, CAIRN_ECORRUPT, "mark record declares an impossible variable");
    v->nblocks = count_blocks(v->spec.nbytes, v->spec.block);
    crn_cursor_expect(c, v->nchanged <= v->nblocks);
    return crn_cursor_status(c, "mark record");
}

/* What follows a declaration: in a file the place of the table, on the wire the digests. */
typedef cairn_status get_rest_fn(crn_cursor *c, uint64_t end, crn_var *v);

static cairn_status get_table_place(crn_cursor *c, uint64_t end, crn_var *v)
{
    v->place = crn_format_get_ref(c, end);
    v->entry_bytes = ENTRY_BYTES;
    crn_cursor_expect(c, v->nblocks <= end / ENTRY_BYTES &&
                             v->place.nbytes == v->nblocks * ENTRY_BYTES);
    return crn_cursor_status(c, "mark record");
}

static cairn_status get_digests(crn_cursor *c, crn_var *v, bool origins)
{
    crn_cursor_expect(c, v->nblocks <= c->n / sizeof(crn_digest) / (origins ? 2 : 1));
    CRN_TRY(crn_cursor_status(c, "mark"));
    CRN_TRY(crn_alloc(&v->table, v->nblocks));
    for (uint64_t b = 0; b < v->nblocks; b++) {
        v->table[b].nbytes = crn_var_block_bytes(v, b);
        v->table[b].digest = v->table[b].origin = crn_format_get_digest(c);
        if (origins)
            v->table[b].origin = crn_format_get_digest(c);
    }
    return CAIRN_OK;
}

static cairn_status get_plain_digests(crn_cursor *c, uint64_t end, crn_var *v)
{
    (void)end;
    return get_digests(c, v, false);
}

static cairn_status get_both_digests(crn_cursor *c, uint64_t end, crn_var *v)
{
    (void)end;
    return get_digests(c, v, true);
}

static cairn_status get_moved(crn_cursor *c, uint64_t end, crn_var *v)
{
    (void)end;
    crn_cursor_expect(c, v->nblocks <= c->n / (2 * sizeof(crn_digest) + 8));
    CRN_TRY(crn_cursor_status(c, "mark"));
    CRN_TRY(crn_alloc(&v->table, v->nblocks));
    v->has_stored = true;
    for (uint64_t b = 0; b < v->nblocks; b++) {
        crn_block *block = &v->table[b];
        const uint32_t all = crn_var_block_bytes(v, b);
        block->digest = crn_format_get_digest(c);
        block->origin = crn_format_get_digest(c);
        block->codec = crn_get_u32(c);
        block->nbytes = crn_get_u32(c);
        crn_cursor_expect(c, block->codec ? block->nbytes > 0 && block->nbytes <= all
                                          : block->nbytes == all);
        crn_cursor_expect(c, block->codec == 0 || crn_codec_of_id(block->codec));
        block->stored = block->codec ? crn_format_get_digest(c) : block->digest;
    }
    return crn_cursor_status(c, "mark");
}

static cairn_status get_nothing(crn_cursor *c, uint64_t end, crn_var *v)
{
    (void)end;
    (void)v;
    return crn_cursor_status(c, "mark");
}

/* What follows its first word. */
static cairn_status get_mark(crn_cursor *c, uint64_t end, get_rest_fn *get_rest, crn_mark **ret)
{
    uint32_t nvars = crn_get_u32(c);
    /* a variable takes at least VAR_BYTES_MIN, so the count cannot make us allocate more than that
     * is worth */
    crn_cursor_expect(c, nvars <= VARS_MAX && nvars <= c->n / VAR_BYTES_MIN);
    CRN_TRY(crn_cursor_status(c, "mark record"));

    crn_mark *m;
    cairn_status rc;
    CRN_TRY(crn_alloc(&m, 1));
    CRN_TRY_OUT(rc, crn_alloc(&m->var, nvars));
    m->version = crn_get_u64(c);
    m->seq = crn_get_u64(c);
    m->wall_ns = crn_get_u64(c);
    CRN_TRY_OUT(rc, crn_cursor_status(c, "mark record")); /* there may be no variable to fail */
    while (m->nvars < nvars) {
        crn_var *v = &m->var[m->nvars++]; /* counted first: what it holds by then is freed */
        CRN_TRY_OUT(rc, crn_format_get_declaration(c, v));
        CRN_TRY_OUT(rc, get_rest(c, end, v));
    }
    CRN_TRY_OUT(rc, crn_mark_index(m));
    *ret = m;
    return CAIRN_OK;
out:
    crn_mark_free(m);
    return rc;
}

cairn_status crn_format_get_mark(const void *data, size_t nbytes, uint64_t end, crn_mark **ret)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    crn_mark *m;
    crn_cursor_expect(&c, crn_get_u32(&c) == mark_magic);
    CRN_TRY(get_mark(&c, end, get_table_place, &m));
    if (c.n != 0) {
        crn_mark_free(m);
        return crn_fail(CAIRN_ECORRUPT, "mark record is followed by %zu strange bytes", c.n);
    }
    *ret = m;
    return CAIRN_OK;
}

cairn_status crn_mark_get(crn_cursor *cur, crn_mark **ret)
{
    const uint32_t magic = crn_get_u32(cur);
    get_rest_fn *get_rest = magic == moved_magic   ? get_moved
                            : magic == lossy_magic ? get_both_digests
                                                   : get_plain_digests;
    crn_cursor_expect(cur, magic == mark_magic || magic == lossy_magic || magic == moved_magic);
    return get_mark(cur, 0, get_rest, ret);
}

cairn_status crn_specs_get(crn_cursor *cur, crn_mark **ret)
{
    crn_cursor_expect(cur, crn_get_u32(cur) == mark_magic);
    return get_mark(cur, 0, get_nothing, ret);
}

/* --- block table -------------------------------------------------------------------------- */

static bool is_encoded(const crn_block *b)
{
    return b->codec != 0 && !(b->codec & CRN_OUTSIDE);
}

uint32_t crn_format_entry(bool encoded)
{
    return encoded ? LONG_ENTRY_BYTES : ENTRY_BYTES;
}

uint32_t crn_format_entry_bytes(const crn_var *v)
{
    for (uint64_t i = 0; i < v->nblocks; i++)
        if (is_encoded(&v->table[i]) || !crn_digest_equal(&v->table[i].digest, &v->table[i].origin))
            return crn_format_entry(true);
    return crn_format_entry(false);
}

void crn_format_put_table(const crn_var *v, crn_buf *buf)
{
    for (uint64_t i = 0; i < v->nblocks; i++) {
        const crn_block *e = &v->table[i];
        crn_put_u64(buf, e->off);
        crn_put_u32(buf, e->nbytes);
        crn_put_u32(buf, e->codec);
        crn_format_put_digest(buf, &e->digest);
        if (v->entry_bytes == LONG_ENTRY_BYTES) {
            crn_format_put_digest(buf, &e->stored);
            crn_format_put_digest(buf, &e->origin);
        }
    }
}

static bool block_fits(const crn_block *b, uint64_t end)
{
    const uint64_t unit = b->nbytes < GRAIN ? CRUMB_UNIT : GRAIN;
    return b->off >= DATA_START && b->off % unit == 0 && b->off <= end && b->nbytes <= end - b->off;
}

/* Is entry i one that a writer makes? Those of a variable lie all inside or all at one place. */
static bool is_entry(const crn_var *v, const crn_block *table, uint64_t i, uint64_t end)
{
    const crn_block *e = &table[i];
    const uint32_t nbytes = crn_var_block_bytes(v, i);
    if (table->codec & CRN_OUTSIDE)
        return e->codec == table->codec && e->nbytes == nbytes &&
               e->codec - CRN_OUTSIDE <= (CRN_OUTSIDE_OWN | CRN_OUTSIDE_ROWS) &&
               e->off <= INT64_MAX && e->off == table->off;
    if (e->codec != 0 && v->has_stored && v->entry_bytes == ENTRY_BYTES)
        return false; /* its stored bytes would have no digest */
    const bool fits = e->codec == 0 ? e->nbytes == nbytes : e->nbytes > 0 && e->nbytes <= nbytes;
    return fits && crn_codec_of_id(e->codec) && block_fits(e, end);
}

static void get_entry(crn_cursor *c, uint32_t entry_bytes, crn_block *e)
{
    e->off = crn_get_u64(c);
    e->nbytes = crn_get_u32(c);
    e->codec = crn_get_u32(c);
    e->stored = e->origin = e->digest = crn_format_get_digest(c);
    if (entry_bytes == LONG_ENTRY_BYTES) {
        e->stored = crn_format_get_digest(c);
        e->origin = crn_format_get_digest(c);
        crn_cursor_expect(c, e->codec != 0 || crn_digest_equal(&e->stored, &e->digest));
    }
}

cairn_status crn_format_get_table(crn_cursor *c, uint64_t end, crn_var *v)
{
    crn_block *table;
    crn_cursor_expect(c, v->nblocks <= c->n / v->entry_bytes);
    CRN_TRY(crn_cursor_status(c, "block table"));
    CRN_TRY(crn_alloc(&table, v->nblocks));
    for (uint64_t i = 0; i < v->nblocks; i++) {
        get_entry(c, v->entry_bytes, &table[i]);
        crn_cursor_expect(c, is_entry(v, table, i, end));
    }
    cairn_status rc = crn_cursor_status(c, "block table");
    if (rc < 0) {
        free(table);
        return rc;
    }
    v->table = table;
    return CAIRN_OK;
}

/* --- declarations ------------------------------------------------------------------------- */

static cairn_status check_shape(const crn_var_spec *s)
{
    uint64_t items = 1;
    for (uint32_t i = 0; i < s->ndims; i++) {
        CRN_FAIL_IF(s->offset[i] > s->global[i] || s->count[i] > s->global[i] - s->offset[i],
                    CAIRN_EINVAL,
                    "variable '%s', dimension %u: a piece of %" PRIu64 " at %" PRIu64
                    " does not fit a global size of %" PRIu64,
                    s->name, i, s->count[i], s->offset[i], s->global[i]);
        CRN_FAIL_IF(__builtin_mul_overflow(items, s->count[i], &items), CAIRN_EINVAL,
                    "variable '%s' is larger than any memory", s->name);
    }
    CRN_FAIL_IF(s->ndims > 0 && items != s->nbytes / s->item, CAIRN_EINVAL,
                "variable '%s': a piece of %" PRIu64 " elements given with %" PRIu64 " bytes",
                s->name, items, s->nbytes);
    return CAIRN_OK;
}

/* A compound must be one, or readers could not tell its members; scalars of later versions may
 * pass. */
static cairn_status check_type(const crn_var_spec *s)
{
    crn_type_tree *t;
    CRN_FAIL_IF(strlen(s->type) > CRN_VAR_TYPE, CAIRN_EINVAL,
                "variable '%s': its type takes more than %d bytes to describe", s->name,
                CRN_VAR_TYPE);
    if (s->type[0] != '{')
        return CAIRN_OK;
    cairn_status rc = crn_type_parse(s->type, &t);
    if (rc < 0) {
        crn_err_prefix("variable '%s': ", s->name);
        return rc;
    }
    const uint32_t nbytes = t->nbytes;
    crn_type_free(t);
    CRN_FAIL_IF(nbytes != s->item, CAIRN_EINVAL,
                "variable '%s': elements of %u bytes of a type that has %u", s->name, s->item,
                nbytes);
    return CAIRN_OK;
}

const char *crn_var_attribute(const crn_var_spec *spec, const char *key)
{
    const size_t n = strlen(key);
    for (const char *line = spec->attributes; line && *line;) {
        if (strncmp(line, key, n) == 0 && line[n] == '=')
            return line + n + 1;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return NULL;
}

bool crn_var_has_layout(const crn_var_spec *spec, const char *word)
{
    const char *value = spec->ndims == 0 ? crn_var_attribute(spec, "layout") : NULL;
    const size_t n = strlen(word);
    return value && strncmp(value, word, n) == 0 && (value[n] == '\n' || value[n] == 0);
}

cairn_status crn_var_spec_check(const crn_var_spec *s)
{
    size_t n = strlen(s->name);
    CRN_FAIL_IF(n == 0 || n > CRN_VAR_NAME, CAIRN_EINVAL,
                "a variable's name has 1 to %d bytes, not %zu", CRN_VAR_NAME, n);
    CRN_TRY(check_type(s));
    CRN_FAIL_IF(s->attributes && strlen(s->attributes) > UINT16_MAX, CAIRN_EINVAL,
                "variable '%s': its attributes take more than %d bytes", s->name, UINT16_MAX);
    CRN_FAIL_IF(s->block < CRN_BLOCK_MIN || s->block > CRN_BLOCK_MAX || (s->block & (s->block - 1)),
                CAIRN_EINVAL,
                "variable '%s': a block size of %u is not a power of two from %d to %d", s->name,
                s->block, CRN_BLOCK_MIN, CRN_BLOCK_MAX);
    CRN_FAIL_IF(s->item == 0 || s->nbytes % s->item != 0, CAIRN_EINVAL,
                "variable '%s': %" PRIu64 " bytes are not a whole number of elements of %u",
                s->name, s->nbytes, s->item);
    CRN_FAIL_IF(s->nbytes > PTRDIFF_MAX, CAIRN_EINVAL, "variable '%s' is larger than any memory",
                s->name);
    CRN_FAIL_IF(s->ndims > CRN_DIMS_MAX, CAIRN_EINVAL, "variable '%s': at most %d dimensions",
                s->name, CRN_DIMS_MAX);
    return check_shape(s);
}
