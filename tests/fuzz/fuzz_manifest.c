/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A manifest from any bytes, as they are and with a right digest: it is refused, or putting it
 * gives the same bytes but for what is reserved.
 */
#include "harness/heal.h"
#include "store/store.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void check(const uint8_t *data, size_t nbytes)
{
    crn_manifest m;
    cairn_status rc = crn_manifest_parse(data, nbytes, &m);
    assert(rc == CAIRN_OK || rc == CAIRN_ECORRUPT || rc == CAIRN_EUNSUPPORTED);
    if (rc < 0)
        return;
    crn_buf buf = {0};
    crn_manifest_put(&m, &buf);
    assert(!buf.failed && memcmp(buf.at, data, 8) == 0 && m.end <= nbytes);
    assert(m.list_end > 0 || (buf.n == nbytes && memcmp(buf.at + 12, data + 12, 36) == 0));
    crn_manifest again;
    rc = crn_manifest_parse(buf.at, buf.n, &again);
    assert(rc == CAIRN_OK && again.mark.n == m.mark.n);
    for (size_t i = 0; i < m.mark.n; i++)
        assert(crn_manifest_mark_equal(&again.mark.at[i], &m.mark.at[i]));
    crn_manifest_done(&again);
    crn_buf_done(&buf);
    crn_manifest_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    unsigned char *copy;
    check(data, nbytes);
    if (crn_alloc(&copy, nbytes) < 0)
        return 0;
    memcpy(copy, data, nbytes);
    heal_manifest(copy, nbytes);
    check(copy, nbytes);
    free(copy);
    return 0;
}
