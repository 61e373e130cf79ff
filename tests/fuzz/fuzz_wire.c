/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as the header of a message, and as the fields of a runner: refused, or such that they
 * are the same when they are written again.
 */
#include "ensemble/ensemble_layout.h"
#include "ensemble/ensemble_wire.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void check_header(const uint8_t *data, size_t nbytes)
{
    crn_wire w;
    crn_buf b = {0};
    if (!crn_wire_get(data, nbytes, &w))
        return;
    assert(crn_wire_name(w.kind));
    crn_wire_put(&b, &w);
    assert(b.n == nbytes && memcmp(b.at, data, nbytes) == 0);
    crn_buf_done(&b);
}

static void check_fields(const uint8_t *data, size_t nbytes)
{
    crn_state_fields f;
    crn_state_layout l;
    crn_buf b = {0};
    if (crn_fields_get(data, nbytes, &f) < 0)
        return;
    crn_fields_put(&b, &f);
    assert(b.n == nbytes && memcmp(b.at, data, nbytes) == 0);
    if (crn_layout_init(&l, &f) == CAIRN_OK) {
        assert(crn_layout_check(&l, &f) == CAIRN_OK);
        crn_layout_done(&l);
    }
    crn_buf_done(&b);
    crn_vec_done(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    check_header(data, nbytes);
    check_fields(data, nbytes);
    return 0;
}
