/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Codecs for the variables of drafts, in a configuration's words.
 */
#ifndef CAIRN_TESTS_ENCODE_H
#define CAIRN_TESTS_ENCODE_H

#include "harness/harness.h"
#include "store/store.h"

static inline void test_encode(crn_draft *d, size_t v, const char *codec, const char *loss)
{
    crn_codec_setting s;
    assert_ok(crn_codec_parse(codec, loss, &s));
    crn_draft_encode(d, v, &s);
}

#endif
