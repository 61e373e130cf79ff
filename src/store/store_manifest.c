/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The manifest of a run as bytes; docs/format.md specifies it.
 */
#include "store/store_format.h"

static const char manifest_magic[8] = {'C', 'A', 'I', 'R', 'N', 'M', 'F', '\n'};

enum {
    FORMAT_WHOLE = 1,   /* what fits is written anew each time, */
    FORMAT_CHANGES = 2, /* and changes follow a list that is long */
    MANY_MARKS = 256,   /* from here on it is */
    MARK_BYTES = 40,
    DIGEST_BYTES = 16,
    HEAD_BYTES = 56,
    CHANGE_BYTES = 64 + DIGEST_BYTES,
    CHANGE_FINISHED = 1, /* flags of a change: the run is finished, */
    CHANGE_MORE = 2      /* and it counts together with the next one only */
};

bool crn_manifest_mark_equal(const crn_manifest_mark *a, const crn_manifest_mark *b)
{
    return a->version == b->version && a->wall_ns == b->wall_ns && a->nbytes == b->nbytes &&
           a->series == b->series && a->nranks == b->nranks && a->levels == b->levels;
}

static void put_mark(crn_buf *buf, const crn_manifest_mark *k)
{
    crn_put_u64(buf, k->version);
    crn_put_u64(buf, k->wall_ns);
    crn_put_u64(buf, k->nbytes);
    crn_put_u32(buf, k->series);
    crn_put_u32(buf, k->nranks);
    crn_put_u32(buf, k->levels);
    crn_put_u32(buf, 0);
}

void crn_manifest_put(const crn_manifest *m, crn_buf *buf)
{
    size_t start = buf->n;
    crn_put_bytes(buf, manifest_magic, sizeof manifest_magic);
    crn_put_u32(buf, m->mark.n < MANY_MARKS ? FORMAT_WHOLE : FORMAT_CHANGES);
    crn_put_u32(buf, (uint32_t)m->mark.n);
    crn_put_bytes(buf, m->run, sizeof m->run);
    crn_put_u64(buf, m->seq);
    crn_put_u64(buf, m->created_ns);
    crn_put_u32(buf, m->finished);
    crn_put_u32(buf, 0);
    for (size_t i = 0; i < m->mark.n; i++)
        put_mark(buf, &m->mark.at[i]);
    if (buf->failed)
        return;
    crn_digest d = crn_digest_of(buf->at + start, buf->n - start);
    crn_put_bytes(buf, d.b, sizeof d.b);
}

static void get_mark(crn_cursor *c, crn_manifest_mark *k)
{
    k->version = crn_get_u64(c);
    k->wall_ns = crn_get_u64(c);
    k->nbytes = crn_get_u64(c);
    k->series = crn_get_u32(c);
    k->nranks = crn_get_u32(c);
    k->levels = crn_get_u32(c);
    crn_get_u32(c);
    crn_cursor_expect(c, k->nranks > 0 && k->nranks <= CRN_RANKS_MAX);
}

/* Bytes of the list, its digest not counted; more than any file has where that cannot be. */
static size_t list_bytes(uint32_t n)
{
    return n <= MARKS_MAX ? HEAD_BYTES + (size_t)n * MARK_BYTES : SIZE_MAX - DIGEST_BYTES;
}

static bool has_digest(const unsigned char *data, size_t nbytes, size_t at)
{
    if (at < HEAD_BYTES || nbytes < DIGEST_BYTES || at > nbytes - DIGEST_BYTES)
        return false;
    const crn_digest d = crn_digest_of(data, at);
    return memcmp(d.b, data + at, DIGEST_BYTES) == 0;
}

/* Whatever the format: a flipped bit must not pass for a newer version. Format 1 ends with its
 * digest, that of the list stands behind it in 2, and a later one may do either. */
static bool is_whole(const void *data, size_t nbytes, uint32_t format, uint32_t n)
{
    if (format != FORMAT_CHANGES && has_digest(data, nbytes, nbytes - DIGEST_BYTES))
        return true;
    return format != FORMAT_WHOLE && has_digest(data, nbytes, list_bytes(n));
}

/* --- changes --------------------------------------------------------------------------------- */

/* Of a change with the list that it follows, which no other list's changes can have. */
static crn_digest change_digest(const crn_digest *list, const unsigned char *change)
{
    unsigned char both[CHANGE_BYTES];
    memcpy(both, list->b, DIGEST_BYTES);
    memcpy(both + DIGEST_BYTES, change, CHANGE_BYTES - DIGEST_BYTES);
    return crn_digest_of(both, sizeof both);
}

static void put_change(const crn_manifest *m, const crn_manifest_mark *mark, size_t nkept,
                       uint32_t flags, crn_buf *buf)
{
    const size_t start = buf->n;
    crn_put_u64(buf, m->seq);
    crn_put_u32(buf, (uint32_t)nkept);
    crn_put_u32(buf, flags);
    put_mark(buf, mark);
    crn_put_u64(buf, 0);
    if (buf->failed)
        return;
    const crn_digest d = change_digest(&m->list, buf->at + start);
    crn_put_bytes(buf, d.b, sizeof d.b);
}

bool crn_manifest_change(const crn_manifest *m, const crn_manifest_mark *mark, size_t n,
                         size_t nsame, bool finished, crn_buf *buf)
{
    const uint32_t flag = finished ? CHANGE_FINISHED : 0;
    crn_manifest next = *m;
    /* what follows the list is never longer than it, so that all writing stays in proportion */
    if (m->list_end == 0 || nsame >= n ||
        m->end + (n - nsame) * CHANGE_BYTES > (uint64_t)2 * m->list_end)
        return false;
    next.seq++;
    for (size_t i = nsame; i < n; i++)
        put_change(&next, &mark[i], i, flag | (i + 1 < n ? CHANGE_MORE : 0), buf);
    return true;
}

typedef struct change {
    uint64_t seq;
    uint32_t nkept, flags;
    crn_manifest_mark mark;
} change;

/* Is this a change that follows the list? */
static bool get_change(const crn_manifest *m, const unsigned char *raw, change *ret)
{
    const crn_digest d = change_digest(&m->list, raw);
    crn_cursor c = crn_cursor_of(raw, CHANGE_BYTES);
    ret->seq = crn_get_u64(&c);
    ret->nkept = crn_get_u32(&c);
    ret->flags = crn_get_u32(&c);
    get_mark(&c, &ret->mark);
    return !c.failed && memcmp(d.b, raw + CHANGE_BYTES - DIGEST_BYTES, DIGEST_BYTES) == 0;
}

/* Those at the cursor that count together: how many, 0 where a crash has cut them. */
static size_t count_together(const crn_cursor *c, crn_cursor *check, const crn_manifest *m)
{
    change k = {.flags = CHANGE_MORE};
    size_t n = 0;
    for (size_t left = m->mark.n; k.flags & CHANGE_MORE; left = k.nkept + 1, n++) {
        if (c->n / CHANGE_BYTES == n)
            return 0;
        crn_cursor_expect(check, get_change(m, c->at + n * CHANGE_BYTES, &k) &&
                                     k.seq == m->seq + 1 && k.nkept <= left && k.nkept < MARKS_MAX);
        if (check->failed)
            return 0;
    }
    return n;
}

static bool is_zero(const unsigned char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] != 0)
            return false;
    return true;
}

/*
 * Apply the changes behind the list. The last ones may be cut, by a crash, or be zeros, by that of
 * a machine: they never counted. Anything else that is no change is damage.
 */
static cairn_status get_changes(crn_cursor *c, crn_manifest *m)
{
    while (c->n >= CHANGE_BYTES && !is_zero(c->at, c->n)) {
        crn_cursor check = *c;
        const size_t n = count_together(c, &check, m);
        CRN_TRY(crn_cursor_status(&check, "manifest"));
        if (n == 0)
            return CAIRN_OK;
        change k = {0};
        for (size_t i = 0; i < n; i++) {
            (void)get_change(m, crn_get_view(c, CHANGE_BYTES), &k);
            m->mark.n = k.nkept;
            CRN_TRY(crn_vec_push(&m->mark, k.mark));
        }
        m->seq = k.seq;
        m->finished = k.flags & CHANGE_FINISHED;
        m->end += n * CHANGE_BYTES;
    }
    return CAIRN_OK;
}

/* --- the whole ------------------------------------------------------------------------------- */

void crn_manifest_follow(crn_manifest *m, const void *list, size_t nbytes)
{
    crn_cursor c = crn_cursor_of(list, nbytes);
    (void)crn_get_view(&c, sizeof manifest_magic);
    m->list_end = m->end = crn_get_u32(&c) == FORMAT_CHANGES ? nbytes : 0;
    memcpy(m->list.b, (const unsigned char *)list + nbytes - DIGEST_BYTES, DIGEST_BYTES);
}

static cairn_status get_list(crn_cursor *c, uint32_t n, crn_manifest *m)
{
    crn_get_bytes(c, m->run, sizeof m->run);
    m->seq = crn_get_u64(c);
    m->created_ns = crn_get_u64(c);
    m->finished = crn_get_u32(c) & 1;
    crn_get_u32(c);
    CRN_TRY(crn_vec_reserve(&m->mark, n));
    for (; m->mark.n < n; m->mark.n++)
        get_mark(c, &m->mark.at[m->mark.n]);
    (void)crn_get_view(c, DIGEST_BYTES);
    return crn_cursor_status(c, "manifest");
}

cairn_status crn_manifest_parse(const void *data, size_t nbytes, crn_manifest *ret)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    crn_manifest m = {0};
    const void *magic = crn_get_view(&c, sizeof manifest_magic);
    CRN_FAIL_IF(c.failed || memcmp(magic, manifest_magic, sizeof manifest_magic) != 0,
                CAIRN_ECORRUPT, "not a manifest");
    const uint32_t format = crn_get_u32(&c), n = crn_get_u32(&c);
    crn_cursor_expect(&c, !c.failed && is_whole(data, nbytes, format, n));
    CRN_TRY(crn_cursor_status(&c, "manifest"));
    CRN_FAIL_IF(format != FORMAT_WHOLE && format != FORMAT_CHANGES, CAIRN_EUNSUPPORTED,
                "manifest of format %u, but this version of cairn reads formats %d and %d", format,
                FORMAT_WHOLE, FORMAT_CHANGES);
    crn_cursor_expect(&c, format == FORMAT_CHANGES || nbytes == list_bytes(n) + DIGEST_BYTES);
    crn_cursor_expect(&c, n <= MARKS_MAX);
    CRN_TRY(crn_cursor_status(&c, "manifest"));
    cairn_status rc = get_list(&c, n, &m);
    if (rc == CAIRN_OK && format == FORMAT_CHANGES) {
        crn_manifest_follow(&m, data, list_bytes(n) + DIGEST_BYTES);
        rc = get_changes(&c, &m);
    }
    if (rc < 0) {
        crn_manifest_done(&m);
        return rc;
    }
    *ret = m;
    return CAIRN_OK;
}

void crn_manifest_done(crn_manifest *m)
{
    crn_vec_done(&m->mark);
}
