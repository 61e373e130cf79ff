/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whole numbers of as many bytes as they need: seven bits per byte, lowest first, the top bit set
 * on all but the last. Signed ones are folded so that small magnitudes stay small (0 -1 1 -2 2
 * ...).
 */
#ifndef CAIRN_TRACEFMT_VAR_H
#define CAIRN_TRACEFMT_VAR_H

#include "base/base.h"

static inline void crn_put_var(crn_buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        crn_put_u8(b, (uint8_t)(v | 0x80));
    crn_put_u8(b, (uint8_t)v);
}

static inline uint64_t crn_get_var(crn_cursor *c)
{
    uint64_t v = 0;
    if (c->n > 0 && !c->failed && *c->at < 0x80) { /* most are short */
        c->n--;
        return *c->at++;
    }
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = crn_get_u8(c);
        v |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return v;
    }
    crn_cursor_expect(c, false);
    return 0;
}

static inline void crn_put_svar(crn_buf *b, int64_t v)
{
    crn_put_var(b, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

static inline int64_t crn_get_svar(crn_cursor *c)
{
    uint64_t v = crn_get_var(c);
    return (int64_t)(v >> 1 ^ (~(v & 1) + 1));
}

/* A number that stands for something of which there are at most max. */
static inline uint64_t crn_get_var_max(crn_cursor *c, uint64_t max)
{
    uint64_t v = crn_get_var(c);
    crn_cursor_expect(c, v <= max);
    return c->failed ? 0 : v;
}

#endif
