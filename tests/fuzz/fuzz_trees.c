/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trees from any bytes: refused, or read as far as they are whole; and what was read is the same
 * when it is written and read again.
 */
#include "store/store.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* Let go of marks that cannot be loaded as a whole. */
static bool load_all(crn_trees *t)
{
    bool whole = true;
    for (size_t i = 0; i < crn_trees_nmarks(t); i++) {
        crn_trees_mark *m = crn_trees_at(t, i);
        for (size_t k = 0; k < m->nvars; k++)
            whole &= crn_trees_load(t, m, &m->var[k]) == CAIRN_OK;
    }
    return whole;
}

static void read_again(const crn_trees *t, const crn_buf *buf)
{
    crn_trees *again;
    cairn_status rc = crn_trees_of("again", buf->at, buf->n, &again);
    assert(rc == CAIRN_OK && crn_trees_nmarks(again) == crn_trees_nmarks(t));
    assert(load_all(again) && crn_trees_ndamaged(again) == 0);
    crn_trees_close(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    crn_trees *t;
    crn_buf buf = {0};
    if (crn_trees_of("fuzz", data, nbytes, &t) < 0)
        return 0;
    if (load_all(t)) {
        cairn_status rc = crn_trees_put(t, &buf);
        assert(rc == CAIRN_OK);
        read_again(t, &buf);
    }
    crn_buf_done(&buf);
    crn_trees_close(t);
    return 0;
}
