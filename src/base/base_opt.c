/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The option table and the meaning of its rows: types, ranges, names in the environment. Where
 * values come from is base_config.c.
 */
#include "base/base.h"

#include <ctype.h>
#include <math.h>

#define CRN_OPT_ROW(id, section, key, type, def, range, help)                                      \
    [CRN_OPT_##id] = {section, key, CRN_OPT_##type, def, range, help},
const crn_opt crn_opt_table[CRN_OPT_COUNT_OF] = {
#include "base/base_opt_table.h"
};
#undef CRN_OPT_ROW

const crn_opt *crn_opt_row(crn_opt_id id)
{
    return &crn_opt_table[id];
}

char *crn_opt_env(const crn_opt *row, char *buf)
{
    snprintf(buf, CRN_OPT_ENV, "CAIRN_%s_%s", row->section, row->key);
    for (char *p = buf; *p; p++)
        *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
    return buf;
}

/* A numeric range taken apart; an absent part is an empty string. */
typedef struct limits {
    char low[CRN_NUMBER_TEXT], high[CRN_NUMBER_TEXT], unlimited[CRN_NUMBER_TEXT];
    bool power_of_two;
} limits;

static void copy_part(char *dst, const char *from, const char *to)
{
    snprintf(dst, CRN_NUMBER_TEXT, "%.*s", (int)(to - from), from);
}

static limits take_apart(const char *range)
{
    static const char suffix[] = ", a power of two";
    limits l = {0};
    const char *end = strchrnul(range, '|');
    const char *comma = strchrnul(range, ',');
    const char *dots = strstr(range, "..");
    if (*end)
        copy_part(l.unlimited, end + 1, strchrnul(end, 0));
    l.power_of_two = strncmp(comma, suffix, sizeof suffix - 1) == 0;
    if (dots) {
        copy_part(l.low, range, dots);
        copy_part(l.high, dots + 2, CRN_MIN(comma, end));
    }
    return l;
}

static bool is_unlimited(const limits *l, const char *text)
{
    return l->unlimited[0] && strcmp(text, l->unlimited) == 0;
}

/* Limits are in the row's own units, so the parser of the value reads them, too. */
static cairn_status parse_whole(const crn_opt *row, const char *text,
                                cairn_status (*parse)(const char *, uint64_t *), uint64_t *ret)
{
    limits l = take_apart(row->range);
    uint64_t v = UINT64_MAX, low = 0, high = UINT64_MAX;
    if (!is_unlimited(&l, text)) {
        CRN_TRY(parse(text, &v));
        if (l.low[0])
            CRN_TRY(parse(l.low, &low));
        if (l.high[0])
            CRN_TRY(parse(l.high, &high));
        CRN_FAIL_IF(v < low || v > high || (l.power_of_two && (v & (v - 1))), CAIRN_EINVAL,
                    "'%s' is out of range (%s)", text, row->range);
    }
    *ret = v;
    return CAIRN_OK;
}

static cairn_status parse_bool(const crn_opt *row, const char *text, crn_opt_value *ret)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    (void)row;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i]) == 0) {
            ret->yes = i % 2;
            return CAIRN_OK;
        }
    }
    return crn_fail(CAIRN_EINVAL, "'%s' is neither yes nor no", text);
}

static cairn_status parse_count(const crn_opt *row, const char *text, crn_opt_value *ret)
{
    return parse_whole(row, text, crn_parse_count, &ret->n);
}

static cairn_status parse_nbytes(const crn_opt *row, const char *text, crn_opt_value *ret)
{
    return parse_whole(row, text, crn_parse_nbytes, &ret->n);
}

static cairn_status parse_seconds(const crn_opt *row, const char *text, crn_opt_value *ret)
{
    limits l = take_apart(row->range);
    double v = INFINITY, low = -INFINITY, high = INFINITY;
    if (!is_unlimited(&l, text)) {
        CRN_TRY(crn_parse_seconds(text, &v));
        if (l.low[0])
            CRN_TRY(crn_parse_seconds(l.low, &low));
        if (l.high[0])
            CRN_TRY(crn_parse_seconds(l.high, &high));
        CRN_FAIL_IF(v < low || v > high, CAIRN_EINVAL, "'%s' is out of range (%s)", text,
                    row->range);
    }
    ret->x = v;
    return CAIRN_OK;
}

static cairn_status parse_word(const crn_opt *row, const char *text, crn_opt_value *ret)
{
    crn_nearest near = crn_nearest_to(text);
    const char *p = row->range;
    for (int i = 0;; i++) {
        char word[CRN_WORD_MAX + 1];
        size_t n = strcspn(p, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        if (strcmp(text, word) == 0) {
            ret->word = i;
            return CAIRN_OK;
        }
        crn_nearest_offer(&near, word);
        if (!p[n])
            break;
        p += n + 1;
    }
    return crn_fail(CAIRN_EINVAL, "'%s' is not one of %s%s", text, row->range, near.hint);
}

static cairn_status parse_text(const crn_opt *row, const char *text, crn_opt_value *ret)
{
    (void)row, (void)text, (void)ret;
    return CAIRN_OK;
}

static const struct {
    const char *name;
    cairn_status (*parse)(const crn_opt *row, const char *text, crn_opt_value *ret);
} types[] = {
    [CRN_OPT_BOOL] = {"yes or no", parse_bool},     [CRN_OPT_COUNT] = {"number", parse_count},
    [CRN_OPT_NBYTES] = {"byte size", parse_nbytes}, [CRN_OPT_SECONDS] = {"duration", parse_seconds},
    [CRN_OPT_WORD] = {"word", parse_word},          [CRN_OPT_TEXT] = {"text", parse_text},
};

const char *crn_opt_type_name(crn_opt_type type)
{
    return types[type].name;
}

cairn_status crn_opt_parse(const crn_opt *row, const char *text, crn_opt_value *ret)
{
    crn_opt_value value = {0};
    CRN_TRY(types[row->type].parse(row, text, &value));
    *ret = value;
    return CAIRN_OK;
}
