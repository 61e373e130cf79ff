/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The manifest of a run as bytes; docs/format.md specifies it.
 */
#include "store/store_format.h"

static const char manifest_magic[8] = {'C', 'A', 'I', 'R', 'N', 'M', 'F', '\n'};

enum { MANIFEST_FORMAT = 1, MANIFEST_MARK_BYTES = 40, DIGEST_BYTES = 16, HEAD_BYTES = 56 };

void crn_manifest_put(const crn_manifest *m, crn_buf *buf)
{
    size_t start = buf->n;
    crn_put_bytes(buf, manifest_magic, sizeof manifest_magic);
    crn_put_u32(buf, MANIFEST_FORMAT);
    crn_put_u32(buf, (uint32_t)m->mark.n);
    crn_put_bytes(buf, m->run, sizeof m->run);
    crn_put_u64(buf, m->seq);
    crn_put_u64(buf, m->created_ns);
    crn_put_u32(buf, m->finished);
    crn_put_u32(buf, 0);
    for (size_t i = 0; i < m->mark.n; i++) {
        const crn_manifest_mark *k = &m->mark.at[i];
        crn_put_u64(buf, k->version);
        crn_put_u64(buf, k->wall_ns);
        crn_put_u64(buf, k->nbytes);
        crn_put_u32(buf, k->series);
        crn_put_u32(buf, k->nranks);
        crn_put_u32(buf, k->levels);
        crn_put_u32(buf, 0);
    }
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

/* The digest comes first, whatever the format: a flipped bit must not pass for a newer version. */
static bool is_whole(const void *data, size_t nbytes)
{
    if (nbytes < HEAD_BYTES + DIGEST_BYTES)
        return false;
    crn_digest d = crn_digest_of(data, nbytes - DIGEST_BYTES);
    return memcmp(d.b, (const char *)data + nbytes - DIGEST_BYTES, DIGEST_BYTES) == 0;
}

cairn_status crn_manifest_parse(const void *data, size_t nbytes, crn_manifest *ret)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    crn_manifest m = {0};
    const void *magic = crn_get_view(&c, sizeof manifest_magic);
    CRN_FAIL_IF(c.failed || memcmp(magic, manifest_magic, sizeof manifest_magic) != 0,
                CAIRN_ECORRUPT, "not a manifest");
    crn_cursor_expect(&c, is_whole(data, nbytes));
    uint32_t format = crn_get_u32(&c), n = crn_get_u32(&c);
    CRN_TRY(crn_cursor_status(&c, "manifest"));
    CRN_FAIL_IF(format != MANIFEST_FORMAT, CAIRN_EUNSUPPORTED,
                "manifest of format %u, but this version of cairn reads format %d", format,
                MANIFEST_FORMAT);
    crn_cursor_expect(&c, n <= MARKS_MAX && nbytes == HEAD_BYTES + (size_t)n * MANIFEST_MARK_BYTES +
                                                          DIGEST_BYTES);
    CRN_TRY(crn_cursor_status(&c, "manifest"));
    crn_get_bytes(&c, m.run, sizeof m.run);
    m.seq = crn_get_u64(&c);
    m.created_ns = crn_get_u64(&c);
    m.finished = crn_get_u32(&c) & 1;
    crn_get_u32(&c);
    CRN_TRY(crn_vec_reserve(&m.mark, n));
    for (; m.mark.n < n; m.mark.n++)
        get_mark(&c, &m.mark.at[m.mark.n]);
    cairn_status rc = crn_cursor_status(&c, "manifest");
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
