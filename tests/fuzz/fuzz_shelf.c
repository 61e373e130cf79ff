/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A page of a shelf's index from any bytes, as they are and with right digests: it is refused, or
 * its entries can be states, and each is found by its name.
 */
#include "state/state_index.h"

#include <assert.h>
#include <string.h>

enum { COPY = STATE_PAGE_BYTES / 2, SUM_AT = COPY - 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* Finding looks at no more of the others than it must: it may find what decoding refuses, but not
 * miss what that lists. */
static int check_entry(void *arg, const state_entry *e)
{
    state_entry found;
    assert(crn_key_is_valid(e->key) && e->nranks > 0);
    assert(crn_state_page_find(arg, (crn_state_name){e->key, e->version}, &found) == CAIRN_OK);
    assert(strcmp(found.key, e->key) == 0 && found.version == e->version);
    return 0;
}

static void check(unsigned char *page)
{
    state_entry found;
    cairn_status rc = crn_state_page_scan(page, check_entry, page);
    assert(rc == CAIRN_OK || rc == CAIRN_ECORRUPT);
    rc = crn_state_page_find(page, (crn_state_name){"m", 1}, &found);
    assert(rc == CAIRN_OK || rc == CAIRN_NOTHING || rc == CAIRN_ECORRUPT);
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
