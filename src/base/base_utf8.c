/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Characters of a text, and which of them people may be shown (base_str.h). On its own, since the
 * decoder's process has this and little else of base.
 */
#include "base/base.h"

/* The code of a sequence of n bytes, or UINT32_MAX: cut, longer than need be, or no character. */
static uint32_t sequence_code(const unsigned char *s, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code = s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) /* also where the text ends */
            return UINT32_MAX;
        code = code << 6 | (s[i] & 0x3fu);
    }
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < least[n] || code > 0x10ffff || surrogate ? UINT32_MAX : code;
}

static bool is_fair(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } unfair[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},  {0x200e, 0x200f},
                  {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};
    for (size_t i = 0; i < sizeof unfair / sizeof *unfair; i++)
        if (c >= unfair[i].first && c <= unfair[i].last)
            return false;
    return true;
}

size_t crn_utf8_next(const char *s, uint32_t *ret_code, bool *ret_fair)
{
    const unsigned char *at = (const unsigned char *)s;
    const size_t n = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    uint32_t code = UINT32_MAX;
    if (n == 1)
        code = at[0];
    else if (n > 1 && at[0] < 0xf8)
        code = sequence_code(at, n);
    *ret_code = code;
    *ret_fair = code != UINT32_MAX && is_fair(code);
    return code == UINT32_MAX ? 1 : n;
}

void crn_text_clean(char *s)
{
    char *to = s;
    while (*s) {
        uint32_t code;
        bool fair;
        const size_t n = crn_utf8_next(s, &code, &fair);
        if (fair) {
            memmove(to, s, n);
            to += n;
        } else {
            *to++ = '?';
        }
        s += n;
    }
    *to = 0;
}
