/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The mark record of format 2: a root that lists pages, and pages of PAGE_VARS variables each. A
 * page in which nothing changed since the mark before is that mark's, and is not written again; so
 * it names the mark that wrote it, whose counts of what was written its variables have.
 */
#include "store/store_format.h"

static const uint32_t root_magic = 0x324b524d; /* "MRK2" */
static const uint32_t page_magic = 0x45474150; /* "PAGE" */

enum {
    PAGE_HEAD = 16,
    VAR_MIN = 56, /* bytes of a variable: empty texts, no dimensions, no blocks */
    TABLE_LONG = 1,
    TABLE_INLINE = 2 /* bits of the byte before a table, or its place */
};

size_t crn_page_vars(const crn_mark *m, size_t page, size_t *ret_n)
{
    const size_t first = page * PAGE_VARS;
    *ret_n = CRN_MIN((size_t)PAGE_VARS, m->nvars - first);
    return first;
}

/* --- root --------------------------------------------------------------------------------- */

bool crn_format_is_root(const void *data, size_t nbytes)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    return crn_get_u32(&c) == root_magic;
}

void crn_format_put_root(const crn_mark *m, crn_buf *buf)
{
    crn_put_u32(buf, root_magic);
    crn_put_u32(buf, (uint32_t)m->nvars);
    crn_put_u64(buf, m->version);
    crn_put_u64(buf, m->seq);
    crn_put_u64(buf, m->wall_ns);
    for (size_t i = 0; i < m->npages; i++)
        crn_format_put_ref(buf, &m->page[i]);
}

/* The pages of a root. They take at least VAR_MIN for each variable, and are different pieces of
 * the file: so no count makes us allocate more than the file is worth. */
static void get_pages(crn_cursor *c, uint64_t end, crn_mark *m)
{
    uint64_t total = 0;
    for (size_t i = 0; i < m->npages; i++) {
        size_t n;
        (void)crn_page_vars(m, i, &n);
        m->page[i] = crn_format_get_ref(c, end);
        total += m->page[i].nbytes;
        crn_cursor_expect(c, m->page[i].nbytes >= PAGE_HEAD + VAR_MIN * n && total <= end);
    }
}

cairn_status crn_format_get_root(const void *data, size_t nbytes, uint64_t end, crn_mark **ret)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    crn_mark head = {0}, *m;
    cairn_status rc;
    crn_cursor_expect(&c, crn_get_u32(&c) == root_magic);
    head.nvars = crn_get_u32(&c);
    head.version = crn_get_u64(&c);
    head.seq = crn_get_u64(&c);
    head.wall_ns = crn_get_u64(&c);
    head.npages = head.nvars / PAGE_VARS + (head.nvars % PAGE_VARS != 0);
    crn_cursor_expect(&c, head.nvars <= VARS_MAX && c.n == head.npages * 32);
    CRN_TRY(crn_cursor_status(&c, "mark record"));
    CRN_TRY(crn_alloc(&m, 1));
    *m = head;
    CRN_TRY_OUT(rc, crn_alloc(&m->page, m->npages));
    CRN_TRY_OUT(rc, crn_alloc(&m->has_page, m->npages));
    get_pages(&c, end, m);
    CRN_TRY_OUT(rc, crn_cursor_status(&c, "mark record"));
    CRN_TRY_OUT(rc, crn_alloc(&m->var, m->nvars));
    *ret = m;
    return CAIRN_OK;
out:
    crn_mark_free(m);
    return rc;
}

/* --- pages -------------------------------------------------------------------------------- */

bool crn_format_is_inline(const crn_var *v)
{
    return v->nblocks <= INLINE_BYTES / v->entry_bytes;
}

void crn_format_put_page(const crn_mark *m, size_t page, crn_buf *buf)
{
    size_t n;
    const crn_var *v = m->var + crn_page_vars(m, page, &n);
    crn_put_u32(buf, page_magic);
    crn_put_u32(buf, (uint32_t)n);
    crn_put_u64(buf, m->seq);
    for (size_t i = 0; i < n; i++) {
        const bool in_page = crn_format_is_inline(&v[i]);
        crn_format_put_declaration(buf, &v[i]);
        crn_put_u8(buf, (uint8_t)((v[i].entry_bytes == LONG_ENTRY_BYTES ? TABLE_LONG : 0) |
                                  (in_page ? TABLE_INLINE : 0)));
        if (in_page)
            crn_format_put_table(&v[i], buf);
        else
            crn_format_put_ref(buf, &v[i].place);
    }
}

static cairn_status get_var(crn_cursor *c, uint64_t end, crn_var *v)
{
    CRN_TRY(crn_format_get_declaration(c, v));
    const uint8_t kind = crn_get_u8(c);
    crn_cursor_expect(c, kind <= (TABLE_LONG | TABLE_INLINE));
    v->has_stored = true;
    v->entry_bytes = kind & TABLE_LONG ? LONG_ENTRY_BYTES : ENTRY_BYTES;
    crn_cursor_expect(c, crn_format_is_inline(v) == ((kind & TABLE_INLINE) != 0));
    if (!c->failed && kind & TABLE_INLINE)
        return crn_format_get_table(c, end, v);
    v->place = crn_format_get_ref(c, end);
    crn_cursor_expect(c, v->nblocks <= end / v->entry_bytes &&
                             v->place.nbytes == v->nblocks * v->entry_bytes);
    return crn_cursor_status(c, "mark record");
}

cairn_status crn_format_get_page(const void *data, size_t nbytes, uint64_t end, crn_mark *m,
                                 size_t page)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    size_t n;
    crn_var *v = m->var + crn_page_vars(m, page, &n);
    crn_cursor_expect(&c, crn_get_u32(&c) == page_magic && crn_get_u32(&c) == n);
    const uint64_t seq = crn_get_u64(&c);
    crn_cursor_expect(&c, seq <= m->seq);
    CRN_TRY(crn_cursor_status(&c, "mark record"));
    for (size_t i = 0; i < n; i++) {
        CRN_TRY(get_var(&c, end, &v[i]));
        if (seq != m->seq)
            v[i].nchanged = v[i].stored_bytes = 0; /* an earlier mark has written them */
    }
    crn_cursor_expect(&c, c.n == 0);
    return crn_cursor_status(&c, "mark record");
}
