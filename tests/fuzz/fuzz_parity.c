/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a parity file says of its set and of the marks of its ranks, from any bytes: a layout or a
 * description is refused with a sentence, or putting it gives the same bytes, and every unit of it
 * has one place that can be found again.
 */
#include "level/level_encoded.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void assert_put(crn_buf *buf, const uint8_t *data, size_t nbytes)
{
    assert(crn_buf_status(buf) == CAIRN_OK);
    assert(buf->n == nbytes && memcmp(buf->at, data, nbytes) == 0);
    crn_buf_done(buf);
}

static void check_unit(const crn_stripes *s, uint32_t seat, uint64_t unit)
{
    const uint64_t stripe = crn_stripe_of(s, seat, unit);
    const int role = crn_stripe_role(s, stripe, seat);
    assert(crn_stripe_is_data(s, stripe, seat) && crn_stripe_unit(s, stripe, seat) == unit);
    assert(crn_stripe_seat(s, stripe, role) == seat);
}

static void check_layout(const uint8_t *data, size_t nbytes)
{
    static crn_layout l;
    crn_cursor cur = crn_cursor_of(data, nbytes);
    crn_buf buf = {0};
    uint64_t nunits[CRN_ERASURE_MAX];
    if (crn_layout_get(&cur, &l) < 0) {
        assert(crn_err_peek()->code == CAIRN_ECORRUPT && crn_err_peek()->text[0]);
        return;
    }
    crn_layout_put(&l, &buf);
    assert_put(&buf, data, nbytes - cur.n);
    for (uint32_t i = 0; i < l.stripes.nseats; i++) {
        nunits[i] = l.seat[i].nunits;
        check_unit(&l.stripes, i, 0);
        check_unit(&l.stripes, i, nunits[i]);
    }
    const uint64_t n = crn_stripes_count(&l.stripes, nunits);
    for (uint32_t i = 0; i < l.stripes.nseats; i++)
        assert(crn_stripes_nparity(&l.stripes, n, i) <= n);
}

static void check_stream(const crn_mark *m)
{
    enum { IDS_MAX = 1 << 16 }; /* what is described may be larger than memory */
    crn_stream stream = {0};
    crn_digest *id = NULL;
    cairn_status rc = crn_stream_init(&stream, m);
    if (rc == CAIRN_OK && stream.nunits <= IDS_MAX)
        rc = crn_alloc(&id, stream.nunits);
    if (rc == CAIRN_OK && id)
        rc = crn_stream_ids(&stream, id);
    assert(rc == CAIRN_OK || crn_err_peek()->text[0]);
    free(id);
    crn_stream_done(&stream);
}

static void check_description(const uint8_t *data, size_t nbytes)
{
    crn_cursor cur = crn_cursor_of(data, nbytes);
    crn_mark *m;
    crn_buf buf = {0};
    if (crn_mark_get(&cur, &m) < 0) {
        assert(crn_err_peek()->text[0]);
        return;
    }
    crn_mark_put(m, &buf);
    assert_put(&buf, data, nbytes - cur.n);
    check_stream(m);
    crn_mark_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    check_layout(data, nbytes);
    check_description(data, nbytes);
    return 0;
}
