/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Catalogues: a list of marks, in pages. A commit writes the pages that it touches and the root
 * that lists them; the others stay. Format 1 had one piece for all.
 */
#include "store/store_part.h"

static const uint32_t catalogue_magic = 0x4c544143; /* "CATL" */
static const uint32_t list_magic = 0x324c5443;      /* "CTL2" */
static const uint32_t page_magic = 0x50544143;      /* "CATP" */

enum { ENTRY_1_BYTES = 56, LIST_HEAD = 8, LIST_PAGE_BYTES = 36, KEY_MIN = 2 };

/* --- bytes -------------------------------------------------------------------------------- */

/* Versions of marks grow; states have keys, and come and go in any order. */
static void get_entry(crn_cursor *c, uint64_t end, const char *key, part_catalogue *cat)
{
    part_entry *e = &cat->at[cat->n];
    *e = (part_entry){.version = crn_get_u64(c)};
    memcpy(e->key, key, strlen(key) + 1);
    e->seq = crn_get_u64(c);
    e->wall_ns = crn_get_u64(c);
    e->record = crn_format_get_ref(c, end);
    crn_cursor_expect(c, e->record.nbytes > 0);
    crn_cursor_expect(c, cat->n == 0 || key[0] || e->version > e[-1].version);
    cat->n++;
}

cairn_status crn_format_get_catalogue(const void *data, size_t nbytes, uint64_t end,
                                      part_catalogue *ret)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    part_catalogue cat = {0};
    crn_cursor_expect(&c, crn_get_u32(&c) == catalogue_magic);
    uint32_t n = crn_get_u32(&c);
    crn_cursor_expect(&c, n <= MARKS_MAX && c.n == (size_t)n * ENTRY_1_BYTES);
    CRN_TRY(crn_cursor_status(&c, "catalogue"));
    CRN_TRY(crn_vec_reserve(&cat, n));
    while (cat.n < n)
        get_entry(&c, end, "", &cat);
    cairn_status rc = crn_cursor_status(&c, "catalogue");
    if (rc < 0) {
        crn_vec_done(&cat);
        return rc;
    }
    *ret = cat;
    return CAIRN_OK;
}

void crn_format_put_list(const part_list *list, crn_buf *buf)
{
    crn_put_u32(buf, list_magic);
    crn_put_u32(buf, (uint32_t)list->n);
    for (size_t i = 0; i < list->n; i++) {
        crn_format_put_ref(buf, &list->at[i].ref);
        crn_put_u32(buf, list->at[i].n);
    }
}

cairn_status crn_format_get_list(const void *data, size_t nbytes, uint64_t end, part_list *ret)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    part_list list = {0};
    crn_cursor_expect(&c, crn_get_u32(&c) == list_magic);
    const uint32_t n = crn_get_u32(&c);
    crn_cursor_expect(&c, n <= MARKS_MAX && c.n == (size_t)n * LIST_PAGE_BYTES);
    CRN_TRY(crn_cursor_status(&c, "catalogue"));
    CRN_TRY(crn_vec_reserve(&list, n));
    uint64_t total = 0;
    for (; list.n < n; list.n++) {
        part_list_page *p = &list.at[list.n];
        *p = (part_list_page){.ref = crn_format_get_ref(&c, end)};
        p->n = crn_get_u32(&c);
        total += p->ref.nbytes;              /* pages are different pieces of the file: */
        crn_cursor_expect(&c, total <= end); /* one that stands for many would be a forger's */
        crn_cursor_expect(&c, p->n >= 1 && p->n <= LIST_MERGED &&
                                  p->ref.nbytes >= LIST_HEAD + p->n * (ENTRY_1_BYTES + KEY_MIN));
    }
    cairn_status rc = crn_cursor_status(&c, "catalogue");
    if (rc < 0) {
        crn_vec_done(&list);
        return rc;
    }
    *ret = list;
    return CAIRN_OK;
}

void crn_format_put_list_page(const part_entry *entry, size_t n, crn_buf *buf)
{
    crn_put_u32(buf, page_magic);
    crn_put_u32(buf, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        crn_put_str(buf, entry[i].key);
        crn_put_u64(buf, entry[i].version);
        crn_put_u64(buf, entry[i].seq);
        crn_put_u64(buf, entry[i].wall_ns);
        crn_format_put_ref(buf, &entry[i].record);
    }
}

cairn_status crn_format_get_list_page(const void *data, size_t nbytes, uint64_t end, uint32_t n,
                                      bool states, part_catalogue *cat)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    crn_cursor_expect(&c, crn_get_u32(&c) == page_magic && crn_get_u32(&c) == n);
    CRN_TRY(crn_cursor_status(&c, "catalogue"));
    CRN_TRY(crn_vec_reserve(cat, n));
    for (uint32_t i = 0; i < n; i++) {
        char key[CRN_KEY_MAX + 1] = "";
        crn_get_str(&c, key, CRN_KEY_MAX);
        crn_cursor_expect(&c, states ? crn_key_is_valid(key) : !key[0]);
        get_entry(&c, end, key, cat);
    }
    crn_cursor_expect(&c, c.n == 0);
    return crn_cursor_status(&c, "catalogue");
}

/* --- reading ------------------------------------------------------------------------------ */

static cairn_status read_list(crn_part *part, const part_super *s, part_list *ret)
{
    unsigned char *data;
    CRN_TRY(crn_part_read_blob(part, &s->catalogue, "catalogue", &data));
    cairn_status rc = crn_format_get_list(data, s->catalogue.nbytes, s->end, ret);
    free(data);
    return rc;
}

static cairn_status read_page(crn_part *part, const part_super *s, const part_list *list,
                              size_t page, part_catalogue *cat)
{
    const part_list_page *p = &list->at[page];
    unsigned char *data;
    const size_t first = cat->n;
    CRN_FAIL_IF(first + p->n > MARKS_MAX, CAIRN_ECORRUPT, "more than %d marks", MARKS_MAX);
    CRN_TRY(crn_part_read_blob(part, &p->ref, "catalogue", &data));
    const bool states = s->id.role == CRN_ROLE_STATES;
    cairn_status rc = crn_format_get_list_page(data, p->ref.nbytes, s->end, p->n, states, cat);
    free(data);
    CRN_TRY(rc);
    for (size_t i = first; i < cat->n; i++)
        cat->at[i].page = page + 1;
    return CAIRN_OK;
}

static cairn_status read_pages(crn_part *part, const part_super *s, part_list *list,
                               part_catalogue *cat)
{
    CRN_TRY(read_list(part, s, list));
    for (size_t i = 0; i < list->n; i++)
        CRN_TRY(read_page(part, s, list, i, cat));
    return CAIRN_OK;
}

static cairn_status read_whole(crn_part *part, const part_super *s, part_catalogue *cat)
{
    unsigned char *data;
    CRN_TRY(crn_part_read_blob(part, &s->catalogue, "catalogue", &data));
    cairn_status rc = crn_format_get_catalogue(data, s->catalogue.nbytes, s->end, cat);
    free(data);
    return rc;
}

cairn_status crn_catalogue_load(crn_part *part, const part_super *s, part_list *ret_list,
                                part_catalogue *ret)
{
    part_catalogue cat = {0};
    part_list list = {0};
    cairn_status rc = CAIRN_OK;
    if (s->catalogue.nbytes > 0)
        rc = s->format == 1 ? read_whole(part, s, &cat) : read_pages(part, s, &list, &cat);
    if (rc == CAIRN_OK && s->dropped > cat.n)
        rc = crn_fail(CAIRN_ECORRUPT, "'%s': superblock drops %u marks of fewer", part->name,
                      s->dropped);
    if (rc < 0) {
        crn_vec_done(&cat);
        crn_vec_done(&list);
        return rc;
    }
    cat.n -= s->dropped;
    if (s->dropped > 0)
        memmove(cat.at, cat.at + s->dropped, cat.n * sizeof *cat.at);
    *ret_list = list;
    *ret = cat;
    return CAIRN_OK;
}

/* --- where it lies ------------------------------------------------------------------------ */

static int by_offset(const void *a, const void *b)
{
    const crn_extent *x = a, *y = b;
    return (x->off > y->off) - (x->off < y->off);
}

cairn_status crn_catalogue_extents(const part_ref *root, const part_list *list, crn_extents *ret)
{
    bool sorted = true;
    ret->n = 0;
    if (root->nbytes == 0)
        return CAIRN_OK;
    CRN_TRY(crn_vec_reserve(ret, list->n + 1));
    for (size_t i = 0; i <= list->n; i++) { /* what was written last, mostly, lies last */
        const part_ref *ref = i < list->n ? &list->at[i].ref : root;
        ret->at[ret->n++] = (crn_extent){ref->off, crn_format_blob_room(ref->nbytes)};
        sorted = sorted && (i == 0 || ret->at[i - 1].off <= ref->off);
    }
    if (!sorted)
        qsort(ret->at, ret->n, sizeof *ret->at, by_offset);
    return CAIRN_OK;
}

cairn_status crn_catalogue_find(crn_part *part, const part_super *s, crn_extents *ret)
{
    part_list list = {0};
    if (s->format > 1 && s->catalogue.nbytes > 0)
        CRN_TRY(crn_part_forgive(read_list(part, s, &list)));
    cairn_status rc = crn_catalogue_extents(&s->catalogue, &list, ret);
    crn_vec_done(&list);
    return rc;
}

bool crn_extents_have(const crn_extents *list, const crn_extent *e)
{
    return list->n > 0 && bsearch(e, list->at, list->n, sizeof *list->at, by_offset);
}

/* --- writing ------------------------------------------------------------------------------ */

/* Entries of the new catalogue that an old page has, from i on. Pages come in order, so that one of
 * which the first and the last entry are there, as far apart as they were, is whole. */
static size_t run_of(const part_list *old, const part_entry *entry, size_t n, size_t i)
{
    const size_t whole = entry[i].page > 0 ? old->at[entry[i].page - 1].n : 1;
    size_t run = 1;
    if (whole <= n - i && entry[i].page > 0 && entry[i + whole - 1].page == entry[i].page)
        return whole;
    while (i + run < n && entry[i].page > 0 && entry[i + run].page == entry[i].page)
        run++;
    return run;
}

/* Is what follows i, or comes before it, an entry that has to be written? */
static bool is_beside_new(const part_list *old, const part_entry *entry, size_t n, size_t i,
                          size_t run)
{
    const part_entry *next = i + run < n ? &entry[i + run] : NULL;
    const part_entry *before = i > 0 ? &entry[i - 1] : NULL;
    return (next &&
            (next->page == 0 || run_of(old, entry, n, i + run) < old->at[next->page - 1].n)) ||
           (before && before->page == 0);
}

/* Does the run from i on stay as it is? A page that lost entries is written again; so is one that
 * is at most half full, with what is written beside it, or pages would only get emptier. */
static bool stays(const part_list *old, const part_entry *entry, size_t n, size_t i, size_t run)
{
    if (entry[i].page == 0 || run < old->at[entry[i].page - 1].n)
        return false;
    return run > LIST_ENTRIES / 2 || !is_beside_new(old, entry, n, i, run);
}

/* Put entries into one new page; its place is that in the blob, until that has its own. */
static cairn_status put_page(const part_entry *entry, size_t n, crn_buf *blob, part_list *list)
{
    part_list_page p = {.ref = {.off = blob->n}, .n = (uint32_t)n, .fresh = true};
    crn_format_put_list_page(entry, n, blob);
    CRN_TRY(crn_buf_status(blob));
    p.ref.nbytes = blob->n - p.ref.off;
    p.ref.digest = crn_digest_of(blob->at + p.ref.off, p.ref.nbytes);
    crn_put_zeros(blob, crn_format_blob_room(blob->n) - blob->n);
    return crn_vec_push(list, p);
}

static cairn_status put_new(const part_entry *entry, size_t n, crn_buf *blob, part_list *list)
{
    for (size_t i = 0, part; i < n; i += part) {
        part = CRN_MIN(n - i, (size_t)LIST_ENTRIES);
        CRN_TRY(put_page(entry + i, part, blob, list));
    }
    return CAIRN_OK;
}

static unsigned size_class(size_t n)
{
    unsigned c = 0;
    while (n >>= 1)
        c++;
    return c;
}

/*
 * The entries at the end of what stays, before end, that become one page; 0: none do. Marks come at
 * the end, and where all are kept, pages of one size would be as many as marks: each commit, which
 * lists the pages, would cost more than the one before. So two pages of about the same size are
 * made one, and that and the page before, as digits carry when one counts: an entry is written
 * again at most as often as a page can double. States come and go anywhere, and stay in small
 * pages.
 */
static size_t carried(const part_list *old, const part_entry *entry, size_t end)
{
    size_t total = 0, npages = 0, n;
    for (size_t at = end; at > 0; at -= n, total += n, npages++) {
        const part_entry *last = &entry[at - 1];
        n = last->page > 0 ? old->at[last->page - 1].n : 0;
        const bool whole = n > 0 && n <= at && entry[at - n].page == last->page;
        if (!whole || last->key[0] || n <= LIST_ENTRIES / 2 || total + n > LIST_MERGED ||
            (npages > 0 && size_class(n) > size_class(total)))
            break;
    }
    return npages > 1 ? total : 0;
}

/* The first entry that lies in no page yet: all from there on are new. */
static size_t new_from(const part_entry *entry, size_t n)
{
    while (n > 0 && entry[n - 1].page == 0)
        n--;
    return n;
}

cairn_status crn_catalogue_plan(const part_list *old, const part_entry *entry, size_t n,
                                part_list *ret, crn_buf *blob)
{
    const size_t fresh = new_from(entry, n);
    const size_t carry = fresh < n ? carried(old, entry, fresh) : 0;
    size_t first = 0; /* of the entries that wait to be put */
    for (size_t i = 0, run; i < n; i += run) {
        if (carry > 0 && i == fresh - carry) {
            CRN_TRY(put_new(entry + first, i - first, blob, ret));
            CRN_TRY(put_page(entry + i, carry, blob, ret));
            run = carry;
            first = i + run;
            continue;
        }
        run = run_of(old, entry, n, i);
        if (!stays(old, entry, n, i, run))
            continue;
        CRN_TRY(put_new(entry + first, i - first, blob, ret));
        CRN_TRY(crn_vec_push(ret, old->at[entry[i].page - 1]));
        first = i + run;
    }
    return put_new(entry + first, n - first, blob, ret);
}
