/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks that are stored by a codec, and the memory that it takes to make and to read them. A coder
 * is used by one thread at a time; its memory grows as it is needed.
 */
#ifndef CAIRN_STORE_CODER_H
#define CAIRN_STORE_CODER_H

#include "codec/codec.h"
#include "store/store.h"

typedef struct crn_coder {
    crn_buf work; /* scratch memory of codecs */
    crn_buf copy; /* what was encoded, or what is decoded from */
    bool apart;   /* what is decoded may be forged */
} crn_coder;

void crn_coder_done(crn_coder *c); /* a zeroed one is allowed */

/* Store values; what is made lies in c->copy, and what a reader gets in c->work, until the coder's
 * next use. As crn_codec_store. */
cairn_status crn_coder_store(crn_coder *c, const crn_codec_setting *s, const crn_codec_values *v,
                             crn_codec_result *ret);

/* Bring the stored bytes of block i of v, which has its table, to memory; they may lie there. Are
 * they what was written? CAIRN_ENOMEM. */
cairn_status crn_coder_bring(crn_coder *c, const crn_var *v, uint64_t i,
                             const unsigned char *stored, unsigned char *to, bool *ret_good);

#endif
