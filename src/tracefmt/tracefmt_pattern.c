/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Patterns of file names: what is the same in many names, with places for the numbers that count.
 */
#include "tracefmt/tracefmt.h"

enum { DIGITS_MAX = 18 }; /* of a number that is certain to be an int64_t */

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A piece of a name: a number, if the answer is true, or a byte of text or digits beyond all
 * bounds.
 */
static bool number_at(const char *p, size_t *ret_n)
{
    size_t n = 0;
    while (is_digit(p[n]))
        n++;
    *ret_n = CRN_MAX(n, 1);
    return n > 0 && n <= DIGITS_MAX;
}

static int64_t number_of(const char *p, size_t n)
{
    int64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = 10 * v + (p[i] - '0');
    return v;
}

static int count_numbers(const char *name)
{
    int count = 0;
    size_t n;
    for (const char *p = name; *p; p += n)
        count += number_at(p, &n);
    return count;
}

int crn_pattern_split(const char *name, char *pattern, int64_t number[CRN_NAME_NUMBERS])
{
    int count = 0;
    /* what counts stands at the end: the directories before it are mostly the same */
    int skip = CRN_MAX(count_numbers(name) - CRN_NAME_NUMBERS, 0);
    char *out = pattern;
    size_t n;
    for (const char *p = name; *p; p += n) {
        if (number_at(p, &n) && skip-- <= 0) {
            number[count++] = number_of(p, n);
            out += n > 1 && *p == '0' ? snprintf(out, 6, "%%0%zud", n) : snprintf(out, 6, "%%d");
            continue;
        }
        if (*p == '%')
            *out++ = '%';
        memcpy(out, p, n);
        out += n;
    }
    *out = 0;
    return count;
}

/* The number's place at p, just after a '%': its width and length; false if damaged. */
static bool place_at(const char *p, size_t *ret_width, size_t *ret_n)
{
    size_t n = 0;
    while (is_digit(p[n]))
        n++;
    if (n > 3 || p[n] != 'd')
        return false;
    *ret_width = (size_t)number_of(p, n);
    *ret_n = n + 1;
    return true;
}

/* Would a place of this width write the number as it stands there, with its n digits? */
static bool is_written_so(const char *number, size_t n, size_t width)
{
    return *number == '0' && n > 1 ? n == width : n >= width;
}

bool crn_pattern_match(const char *pattern, const char *name, int64_t number[CRN_NAME_NUMBERS],
                       int *ret_n)
{
    int count = 0;
    for (const char *p = pattern; *p;) {
        size_t width, skip = 1, n = 1;
        if (*p != '%' || p[1] == '%') {
            if (*p != *name)
                return false;
            skip = *p == '%' ? 2 : 1;
        } else {
            if (count == CRN_NAME_NUMBERS || !place_at(++p, &width, &skip) ||
                !number_at(name, &n) || !is_written_so(name, n, width))
                return false;
            number[count++] = number_of(name, n);
        }
        p += skip;
        name += n;
    }
    *ret_n = count;
    return *name == 0;
}

uint64_t crn_pattern_hash(const char *name)
{
    uint64_t h = 0;
    size_t n;
    for (const char *p = name; *p; p += n) {
        number_at(p, &n);
        h = crn_hash_mix(h, (uint64_t)(is_digit(*p) ? '0' : *p));
    }
    return h;
}

int crn_pattern_numbers(const char *pattern)
{
    int count = 0;
    for (const char *p = pattern; (p = strchr(p, '%')); p++) {
        if (p[1] == '%')
            p++;
        else
            count++;
    }
    return count;
}

bool crn_pattern_join(const char *pattern, const int64_t *number, int n, char *buf, size_t cap)
{
    size_t len = 0;
    for (const char *p = pattern; *p;) {
        int wrote = 1;
        size_t width, skip = 1;
        if (*p != '%' || p[1] == '%') {
            skip = *p == '%' ? 2 : 1;
            if (len + 1 < cap)
                buf[len] = *p;
        } else {
            if (n-- <= 0 || !place_at(++p, &width, &skip))
                return false;
            wrote = snprintf(buf + len, cap - len, "%0*lld", (int)width, (long long)*number++);
        }
        p += skip;
        len += (size_t)wrote;
        if (len >= cap)
            return false;
    }
    if (cap == 0)
        return false;
    buf[len] = 0;
    return true;
}
