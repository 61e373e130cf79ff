/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bounds in words: "1e-6 rel 1e-4, 1e-9".
 */
#include "hash/hash.h"

/* Take a word off *text into buf of cap bytes; false when there is none, or it does not fit. */
static bool next_word(const char **text, char *buf, size_t cap)
{
    const char *p = *text + strspn(*text, " \t");
    const size_t n = strcspn(p, " \t");
    *text = p + n;
    if (n == 0 || n >= cap)
        return false;
    memcpy(buf, p, n);
    buf[n] = 0;
    return true;
}

static cairn_status parse_part(const char *word, double *ret)
{
    double x;
    CRN_TRY(crn_parse_real(word, &x));
    CRN_FAIL_IF(x < 0, CAIRN_EINVAL, "a bound is at least 0, not '%s'", word);
    *ret = x;
    return CAIRN_OK;
}

/* "[absolute] [rel relative]" */
static cairn_status parse_bound(const char *text, crn_bound *ret)
{
    crn_bound b = {0};
    char word[CRN_BOUND_TEXT];
    const char *p = text;
    bool more = next_word(&p, word, sizeof word);
    CRN_FAIL_IF(!more, CAIRN_EINVAL, "'%s' is no bound, such as '1e-6' or 'rel 1e-4'", text);
    if (strcmp(word, "rel") != 0) {
        CRN_TRY(parse_part(word, &b.absolute));
        more = next_word(&p, word, sizeof word);
    }
    if (more) {
        CRN_FAIL_IF(strcmp(word, "rel") != 0 || !next_word(&p, word, sizeof word), CAIRN_EINVAL,
                    "'%s' is no bound, such as '1e-6' or 'rel 1e-4'", text);
        CRN_TRY(parse_part(word, &b.relative));
    }
    CRN_FAIL_IF(p[strspn(p, " \t")] != 0, CAIRN_EINVAL, "a comma is missing in the bounds '%s'",
                text);
    *ret = b;
    return CAIRN_OK;
}

static int loosest_first(const void *a, const void *b)
{
    const crn_bound *x = a, *y = b;
    if (x->absolute != y->absolute)
        return x->absolute < y->absolute ? 1 : -1;
    return (x->relative < y->relative) - (x->relative > y->relative);
}

/* Sorted, each once; how many are left? */
static size_t sort_bounds(crn_bound *b, size_t n)
{
    size_t kept = 0;
    qsort(b, n, sizeof *b, loosest_first);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || loosest_first(&b[i], &b[kept - 1]) != 0)
            b[kept++] = b[i];
    return kept;
}

/* "NAME=BOUND" */
static cairn_status parse_named(const char *item, const char *equal, crn_named_bounds *named)
{
    crn_bound b;
    item += strspn(item, " \t");
    CRN_TRY(parse_bound(equal + 1, &b));
    return crn_named_bounds_add(named, item, (size_t)(equal - item), b);
}

static cairn_status parse_list(char *list, crn_bound *ret, size_t *ret_n, crn_named_bounds *named)
{
    size_t n = 0;
    for (char *part = list; part;) {
        char *comma = strchr(part, ',');
        if (comma)
            *comma = 0;
        const char *equal = named ? strrchr(part, '=') : NULL;
        CRN_FAIL_IF(n == CRN_BOUNDS_MAX && !equal, CAIRN_EINVAL, "more than %d bounds",
                    CRN_BOUNDS_MAX);
        if (equal)
            CRN_TRY(parse_named(part, equal, named));
        else
            CRN_TRY(parse_bound(part, &ret[n++]));
        part = comma ? comma + 1 : NULL;
    }
    *ret_n = sort_bounds(ret, n);
    return CAIRN_OK;
}

cairn_status crn_bounds_parse_named(const char *text, crn_bound *ret, size_t *ret_n,
                                    crn_named_bounds *named)
{
    crn_bound found[CRN_BOUNDS_MAX] = {0};
    char *list;
    size_t n = 0;
    if (text[strspn(text, " \t")] != 0) {
        CRN_TRY(crn_strdup(text, &list));
        cairn_status rc = parse_list(list, found, &n, named);
        free(list);
        CRN_TRY(rc);
    }
    memcpy(ret, found, n * sizeof *ret);
    *ret_n = n;
    return CAIRN_OK;
}

cairn_status crn_bounds_parse(const char *text, crn_bound *ret, size_t *ret_n)
{
    return crn_bounds_parse_named(text, ret, ret_n, NULL);
}

char *crn_bound_format(const crn_bound *b, char *buf)
{
    if (b->relative == 0)
        snprintf(buf, CRN_BOUND_TEXT, "%.15g", b->absolute);
    else if (b->absolute == 0)
        snprintf(buf, CRN_BOUND_TEXT, "rel %.15g", b->relative);
    else
        snprintf(buf, CRN_BOUND_TEXT, "%.15g rel %.15g", b->absolute, b->relative);
    return buf;
}

bool crn_bound_implies(const crn_bound *a, const crn_bound *b)
{
    return a->absolute <= b->absolute && a->relative <= b->relative;
}
