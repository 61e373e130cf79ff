/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Quantities as people write them, names that are safe in a path, and the nearest word.
 */
#include "base/base.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <strings.h>

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit byte_units[] = {
    {"B", 1},      {"", 1},      {"KiB", 0x1p10}, {"K", 0x1p10}, {"KB", 1e3},  {"MiB", 0x1p20},
    {"M", 0x1p20}, {"MB", 1e6},  {"GiB", 0x1p30}, {"G", 0x1p30}, {"GB", 1e9},  {"TiB", 0x1p40},
    {"T", 0x1p40}, {"TB", 1e12}, {"PiB", 0x1p50}, {"P", 0x1p50}, {"PB", 1e15},
};

static const unit second_units[] = {
    {"s", 1},    {"", 1},   {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
    {"min", 60}, {"m", 60}, {"h", 3600},  {"d", 86400},
};

#define NUNITS(units) (sizeof(units) / sizeof *(units))

static size_t skip_digits(const char *s)
{
    return strspn(s, "0123456789");
}

/* Length of "12", "1.5" or ".5" at the start of s; 0 when there is no digit. */
static size_t decimal_span(const char *s)
{
    size_t whole = skip_digits(s);
    if (s[whole] != '.')
        return whole;
    size_t part = skip_digits(s + whole + 1);
    return whole + part > 0 ? whole + 1 + part : 0;
}

/*
 * The caller has checked that text starts with a decimal number. A locale of its own, because the
 * program's may have a decimal comma.
 */
static cairn_status to_double(const char *text, double *ret)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    CRN_FAIL_IF(!plain, CAIRN_ENOMEM, "cannot allocate a locale");
    *ret = strtod_l(text, NULL, plain);
    freelocale(plain);
    return CAIRN_OK;
}

/* The first n characters of text as a whole number; false when it does not fit. */
static bool to_u64(const char *text, size_t n, uint64_t *ret)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *ret = v;
    return true;
}

cairn_status crn_parse_count(const char *text, uint64_t *ret)
{
    size_t n = skip_digits(text);
    CRN_FAIL_IF(n == 0 || text[n], CAIRN_EINVAL, "'%s' is not a whole number", text);
    CRN_FAIL_IF(!to_u64(text, n, ret), CAIRN_EINVAL, "'%s' is too large", text);
    return CAIRN_OK;
}

cairn_status crn_parse_real(const char *text, double *ret)
{
    const char *s = text + (*text == '-' || *text == '+');
    size_t n = decimal_span(s);
    if (n > 0 && (s[n] == 'e' || s[n] == 'E')) {
        size_t sign = s[n + 1] == '-' || s[n + 1] == '+';
        size_t digits = skip_digits(s + n + 1 + sign);
        n = digits > 0 ? n + 1 + sign + digits : 0;
    }
    CRN_FAIL_IF(n == 0 || s[n], CAIRN_EINVAL, "'%s' is not a number", text);
    double v;
    CRN_TRY(to_double(text, &v));
    CRN_FAIL_IF(!isfinite(v), CAIRN_EINVAL, "'%s' is too large", text);
    *ret = v;
    return CAIRN_OK;
}

static const unit *find_unit(const unit *units, size_t n, const char *name,
                             int (*compare)(const char *, const char *))
{
    for (size_t i = 0; i < n; i++)
        if (compare(units[i].name, name) == 0)
            return &units[i];
    return NULL;
}

cairn_status crn_parse_nbytes(const char *text, uint64_t *ret)
{
    size_t n = decimal_span(text);
    CRN_FAIL_IF(n == 0, CAIRN_EINVAL, "'%s' is not a byte size such as 4096, 64KiB or 1.5G", text);
    const char *name = text + n + (text[n] == ' ');
    const unit *u = find_unit(byte_units, NUNITS(byte_units), name, strcasecmp);
    CRN_FAIL_IF(!u, CAIRN_EINVAL, "'%s': no unit '%s'; use B, KiB, MiB, GiB, TiB, KB, MB, GB, TB",
                text, name);
    uint64_t v;
    if (skip_digits(text) == n) { /* whole numbers stay exact, beyond what a double holds */
        CRN_FAIL_IF(!to_u64(text, n, &v) || __builtin_mul_overflow(v, (uint64_t)u->factor, &v),
                    CAIRN_EINVAL, "'%s' is too large", text);
    } else {
        double x;
        CRN_TRY(to_double(text, &x));
        CRN_FAIL_IF(!(x * u->factor < 0x1p64), CAIRN_EINVAL, "'%s' is too large", text);
        v = (uint64_t)(x * u->factor);
    }
    *ret = v;
    return CAIRN_OK;
}

cairn_status crn_parse_seconds(const char *text, double *ret)
{
    size_t n = decimal_span(text);
    CRN_FAIL_IF(n == 0, CAIRN_EINVAL, "'%s' is not a duration such as 90s, 5min or 1.5h", text);
    const char *name = text + n + (text[n] == ' ');
    const unit *u = find_unit(second_units, NUNITS(second_units), name, strcmp);
    CRN_FAIL_IF(!u, CAIRN_EINVAL, "'%s': no unit '%s'; use ns, us, ms, s, min, h, d", text, name);
    double v;
    CRN_TRY(to_double(text, &v));
    CRN_FAIL_IF(!isfinite(v * u->factor), CAIRN_EINVAL, "'%s' is too large", text);
    *ret = v * u->factor;
    return CAIRN_OK;
}

/* Three digits: "1.00 GiB", "12.5 ms", "640 B". */
static char *format_scaled(double v, const char *name, char *buf, size_t cap)
{
    snprintf(buf, cap, "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, name);
    return buf;
}

char *crn_format_nbytes(uint64_t nbytes, char *buf, size_t cap)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t i = 0;
    double v = (double)nbytes;
    if (nbytes < 1024) {
        snprintf(buf, cap, "%u B", (unsigned)nbytes);
        return buf;
    }
    for (; v >= 1024 && i + 1 < NUNITS(names); i++)
        v /= 1024;
    return format_scaled(v, names[i], buf, cap);
}

char *crn_format_seconds(double seconds, char *buf, size_t cap)
{
    static const unit up[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
                              {"min", 60},  {"h", 3600},  {"d", 86400}};
    size_t i = NUNITS(up) - 1;
    while (i > 0 && seconds < up[i].factor)
        i--;
    return format_scaled(seconds / up[i].factor, seconds == 0 ? "s" : up[i].name, buf, cap);
}

bool crn_name_is_safe(const char *name)
{
    size_t n = strnlen(name, 129);
    if (n == 0 || n > 128 || name[0] == '.' || name[0] == '-')
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    return CRN_MIN(CRN_MIN(a, b), c);
}

/* Optimal string alignment: row i holds the distances of a's first i letters to b's prefixes. */
static size_t align(const char *a, unsigned na, const char *b, unsigned nb)
{
    unsigned row[CRN_WORD_MAX + 1][CRN_WORD_MAX + 1];
    for (unsigned j = 0; j <= nb; j++)
        row[0][j] = j;
    for (unsigned i = 1; i <= na; i++) {
        row[i][0] = i;
        for (unsigned j = 1; j <= nb; j++) {
            unsigned change = a[i - 1] != b[j - 1];
            unsigned best = min3(row[i - 1][j] + 1, row[i][j - 1] + 1, row[i - 1][j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = CRN_MIN(best, row[i - 2][j - 2] + 1);
            row[i][j] = best;
        }
    }
    return row[na][nb];
}

size_t crn_edit_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na > CRN_WORD_MAX || nb > CRN_WORD_MAX)
        return strcmp(a, b) == 0 ? 0 : CRN_MAX(na, nb);
    return align(a, (unsigned)na, b, (unsigned)nb);
}

crn_nearest crn_nearest_to(const char *word)
{
    /* Farther than about every third letter is another word, not a slip of the finger. */
    return (crn_nearest){.word = word, .distance = strlen(word) / 3 + 2};
}

void crn_nearest_offer(crn_nearest *near, const char *name)
{
    size_t distance = crn_edit_distance(near->word, name);
    if (distance >= near->distance || distance >= strlen(name) || strlen(name) > CRN_WORD_MAX)
        return;
    near->distance = distance;
    snprintf(near->hint, sizeof near->hint, "; did you mean '%s'?", name);
}
