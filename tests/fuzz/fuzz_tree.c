/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hash tree from any bytes: it is refused, or it is the one tree over its leaves, and putting it
 * gives the same bytes.
 */
#include "hash/hash.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    crn_cursor cur = crn_cursor_of(data, nbytes);
    crn_tree t = {0}, again;
    cairn_status rc = crn_tree_get(&cur, &t);
    if (rc < 0) {
        assert(rc == CAIRN_ECORRUPT && cur.failed && !t.node);
        return 0;
    }
    rc = crn_tree_build(t.node, t.nleaves, &again);
    assert(rc == CAIRN_OK && again.nnodes == t.nnodes);
    assert(memcmp(again.node, t.node, t.nnodes * sizeof *t.node) == 0);

    crn_buf buf = {0};
    crn_tree_put(&t, &buf);
    assert(buf.n == nbytes - cur.n && memcmp(buf.at, data, buf.n) == 0);
    crn_buf_done(&buf);
    crn_tree_done(&again);
    crn_tree_done(&t);
    return 0;
}
