/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A page of a shelf's index from any bytes, as they are and with right digests: it is refused, or
 * its entries can be states.
 */
#include "state/state_index.h"

#include <assert.h>
#include <string.h>

enum { COPY = STATE_PAGE_BYTES / 2, SUM_AT = COPY - 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static int check_entry(void *arg, const state_entry *e)
{
    (void)arg;
    assert(crn_key_is_valid(e->key) && e->nranks > 0);
    return 0;
}

static void check(const unsigned char *page)
{
    const cairn_status rc = crn_state_page_scan(page, check_entry, NULL);
    assert(rc == CAIRN_OK || rc == CAIRN_ECORRUPT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    unsigned char page[STATE_PAGE_BYTES] = {0};
    memcpy(page, data, nbytes < sizeof page ? nbytes : sizeof page);
    check(page);
    for (size_t at = 0; at < sizeof page; at += COPY) {
        const crn_digest sum = crn_digest_of(page + at, SUM_AT);
        memcpy(page + at + SUM_AT, sum.b, sizeof sum.b);
    }
    check(page);
    return 0;
}
