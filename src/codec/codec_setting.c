/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings of codecs in words, and what they promise. All that a library would spoil without saying
 * so is refused here, when a configuration is read.
 */
#include "codec/codec_ops.h"

#include <math.h>

enum { WORD_MAX = 64, LEVEL_USUAL = 1, LEVEL_MAX = 19 };

/* --- families ------------------------------------------------------------------------------- */

static const struct family {
    const char *name;
    const crn_codec_ops *needs; /* NULL: nothing */
    crn_mode usual, by_loss;    /* without parameters: no loss is stated, or one is */
} families[CRN_NFAMILIES] = {
    [CRN_FAMILY_NONE] = {"none", NULL, CRN_MODE_EXACT, CRN_MODE_EXACT},
    [CRN_FAMILY_LZ4] = {"lz4", &crn_codec_lz4, CRN_MODE_EXACT, CRN_MODE_EXACT},
    [CRN_FAMILY_ZSTD] = {"zstd", &crn_codec_zstd, CRN_MODE_EXACT, CRN_MODE_EXACT},
    [CRN_FAMILY_ZFP] = {"zfp", &crn_codec_zfp, CRN_MODE_EXACT, CRN_MODE_BY_LOSS},
    [CRN_FAMILY_FPZIP] = {"fpzip", &crn_codec_fpzip, CRN_MODE_EXACT, CRN_MODE_BY_LOSS},
    [CRN_FAMILY_ROUND] = {"round", &crn_codec_zstd, CRN_MODE_BY_LOSS, CRN_MODE_BY_LOSS},
    [CRN_FAMILY_F32] = {"f32", NULL, CRN_MODE_NARROW, CRN_MODE_NARROW},
    [CRN_FAMILY_F16] = {"f16", NULL, CRN_MODE_NARROW, CRN_MODE_NARROW},
    [CRN_FAMILY_AUTO] = {"auto", NULL, CRN_MODE_EXACT, CRN_MODE_BY_LOSS},
    [CRN_FAMILY_FOREIGN] = {".so", NULL, CRN_MODE_EXACT, CRN_MODE_BY_LOSS},
};

static const struct parameter {
    crn_family family;
    const char *name;
    crn_mode mode;
    double least, most;
    bool whole, even;
} parameters[] = {
    {CRN_FAMILY_ZFP, "accuracy", CRN_MODE_ACCURACY, 0x1p-1000, 0x1p1000, false, false},
    {CRN_FAMILY_ZFP, "precision", CRN_MODE_PRECISION, 1, 64, true, false},
    {CRN_FAMILY_ZFP, "rate", CRN_MODE_RATE, 1, 64, false, false},
    {CRN_FAMILY_FPZIP, "precision", CRN_MODE_PRECISION, 4, 64, true, true},
    {CRN_FAMILY_ROUND, "bits", CRN_MODE_BITS, 1, 52, true, false},
};
enum { NPARAMETERS = sizeof parameters / sizeof *parameters };

/* --- words ---------------------------------------------------------------------------------- */

static cairn_status parse_level(const char *value, int *ret)
{
    uint64_t level;
    CRN_FAIL_IF(crn_parse_count(value, &level) < 0 || level < 1 || level > LEVEL_MAX, CAIRN_EINVAL,
                "zstd has levels from 1 to %d, not '%s'", LEVEL_MAX, value);
    *ret = (int)level;
    return CAIRN_OK;
}

static cairn_status set_parameter(const struct parameter *p, const char *value,
                                  crn_codec_setting *s)
{
    const char *family = families[p->family].name;
    double x;
    CRN_FAIL_IF(s->mode != families[p->family].usual && s->mode != CRN_MODE_BY_LOSS, CAIRN_EINVAL,
                "%s takes one of its parameters, and has '%s' besides", family, p->name);
    CRN_TRY(crn_parse_real(value, &x));
    CRN_FAIL_IF(x < p->least || x > p->most || (p->whole && x != floor(x)), CAIRN_EINVAL,
                "%s:%s must be a%s number from %g to %g, not '%s'", family, p->name,
                p->whole ? " whole" : "", p->least, p->most, value);
    CRN_FAIL_IF(p->even && fmod(x, 2) != 0, CAIRN_EINVAL,
                "%s:%s must be even, not '%s': %s makes nothing of odd ones", family, p->name,
                value, family);
    s->mode = p->mode;
    s->value = x;
    return CAIRN_OK;
}

/* "key=value" or "key" of a family. */
static cairn_status parse_option(const char *key, const char *value, crn_codec_setting *s)
{
    const char *family = families[s->family].name;
    const bool bytes = s->family == CRN_FAMILY_LZ4 || s->family == CRN_FAMILY_ZSTD;
    for (size_t i = 0; i < NPARAMETERS; i++)
        if (parameters[i].family == s->family && strcmp(parameters[i].name, key) == 0 && value)
            return set_parameter(&parameters[i], value, s);
    if (s->family == CRN_FAMILY_ZSTD && strcmp(key, "level") == 0 && value)
        return parse_level(value, &s->level);
    if (s->family == CRN_FAMILY_ZSTD && !value && key[strspn(key, "0123456789")] == 0)
        return parse_level(key, &s->level);
    if (bytes && !value && strcmp(key, "shuffle") == 0) {
        s->shuffle = true;
        return CAIRN_OK;
    }
    if (s->family == CRN_FAMILY_AUTO && !value && strcmp(key, "space") == 0) {
        s->space = true;
        return CAIRN_OK;
    }
    if (s->family >= CRN_FAMILY_ZFP && !value && strcmp(key, "zeros") == 0) {
        s->zeros = true;
        return CAIRN_OK;
    }
    if (s->family == CRN_FAMILY_ZFP && !value && strcmp(key, "reversible") == 0) {
        s->mode = CRN_MODE_EXACT;
        return CAIRN_OK;
    }
    return crn_fail(CAIRN_EINVAL, "codec %s has no parameter '%s%s%s'", family, key,
                    value ? "=" : "", value ? value : "");
}

static cairn_status parse_options(const char *text, crn_codec_setting *s)
{
    while (text) {
        char word[WORD_MAX];
        const char *comma = strchr(text, ',');
        const size_t n = comma ? (size_t)(comma - text) : strlen(text);
        CRN_FAIL_IF(n == 0 || n >= sizeof word, CAIRN_EINVAL, "'%s' is no parameter of codec %s",
                    text, families[s->family].name);
        memcpy(word, text, n);
        word[n] = 0;
        char *value = strchr(word, '=');
        if (value)
            *value++ = 0;
        CRN_TRY(parse_option(word, value, s));
        text = comma ? comma + 1 : NULL;
    }
    return CAIRN_OK;
}

static cairn_status parse_family(const char *text, size_t n, crn_family *ret)
{
    for (crn_family f = 0; f < CRN_NFAMILIES; f++)
        if (strlen(families[f].name) == n && strncmp(families[f].name, text, n) == 0) {
            *ret = f;
            return CAIRN_OK;
        }
    return crn_fail(CAIRN_EINVAL,
                    "there is no codec '%.*s': it is one of none, lz4, zstd, zfp, fpzip, round, "
                    "f32, f16, auto",
                    (int)n, text);
}

/* --- losses --------------------------------------------------------------------------------- */

static cairn_status parse_part(const char *word, const char *value, crn_loss *l)
{
    double x, *to = strcmp(word, "abs") == 0   ? &l->absolute
                    : strcmp(word, "rel") == 0 ? &l->relative
                                               : NULL;
    CRN_FAIL_IF(!to || *to != 0, CAIRN_EINVAL,
                "a loss is 'abs', 'rel' or both, with a number each, as 'abs 1e-6 rel 1e-4'");
    CRN_TRY(crn_parse_real(value, &x));
    CRN_FAIL_IF(x <= 0 || (to == &l->relative && x >= 1), CAIRN_EINVAL,
                "a loss '%s %s' is not above 0%s", word, value,
                to == &l->relative ? " and below 1" : "");
    *to = x;
    return CAIRN_OK;
}

cairn_status crn_loss_parse(const char *text, crn_loss *ret)
{
    crn_loss l = {0};
    while (text[strspn(text, " \t,")] != 0) {
        char word[WORD_MAX], value[WORD_MAX];
        int n = 0;
        CRN_FAIL_IF(sscanf(text, " %63[a-z] %63[^ \t,]%n", word, value, &n) != 2 || n == 0,
                    CAIRN_EINVAL, "'%s' is no loss, such as 'abs 1e-6' or 'rel 1e-4'", text);
        CRN_TRY(parse_part(word, value, &l));
        text += n;
        text += strspn(text, " \t,");
    }
    *ret = l;
    return CAIRN_OK;
}

/* With as few digits as make the same number again. */
static int print_part(char *to, const char *word, double x)
{
    int n = 0, digits = 1;
    do
        n = snprintf(to, CRN_CODEC_TEXT / 2, "%s %.*g", word, digits, x);
    while (digits++ < 17 && strtod(to + strlen(word), NULL) != x);
    return n;
}

char *crn_loss_print(const crn_loss *loss, char *buf)
{
    char *to = buf;
    *to = 0;
    if (loss->absolute > 0)
        to += print_part(to, "abs", loss->absolute);
    if (to != buf && loss->relative > 0)
        *to++ = ' ';
    if (loss->relative > 0)
        print_part(to, "rel", loss->relative);
    return buf;
}

/* What a mode promises by itself, for values of either kind: as is checked where nothing else was
 * stated. */
static crn_loss promise_of(const crn_codec_setting *s)
{
    crn_loss l = {0};
    if (s->mode == CRN_MODE_ACCURACY)
        l.absolute = s->value;
    else if (s->mode == CRN_MODE_BITS)
        l.relative = ldexp(1, -(int)s->value - 1);
    else if (s->mode == CRN_MODE_NARROW)
        l.relative = s->family == CRN_FAMILY_F32 ? 0x1p-24 : 0x1p-11;
    else if (s->family == CRN_FAMILY_FPZIP && s->mode == CRN_MODE_PRECISION && s->value > 12)
        l.relative = ldexp(1, -(int)s->value + 12); /* sign and exponent of a float64 are 12 bits */
    return l;
}

/* --- settings ------------------------------------------------------------------------------- */

bool crn_codec_is_lossy(const crn_codec_setting *s)
{
    return s->mode != CRN_MODE_EXACT;
}

crn_codec_setting crn_codec_without_loss(const crn_codec_setting *s)
{
    if (!crn_codec_is_lossy(s))
        return *s;
    return (crn_codec_setting){.family = CRN_FAMILY_AUTO, .level = s->level};
}

static cairn_status settle(crn_codec_setting *s)
{
    const bool stated = s->loss.absolute > 0 || s->loss.relative > 0;
    CRN_FAIL_IF(s->mode == CRN_MODE_BY_LOSS && !stated, CAIRN_EINVAL,
                "codec %s needs %s or the option 'loss'", families[s->family].name,
                s->family == CRN_FAMILY_ROUND ? "'bits='" : "a parameter");
    CRN_FAIL_IF(stated && s->mode == CRN_MODE_EXACT && s->family != CRN_FAMILY_NONE, CAIRN_EINVAL,
                "codec %s loses nothing, and 'loss' is set: take zfp, fpzip, round, f32, f16 or "
                "auto",
                families[s->family].name);
    if (!stated)
        s->loss = promise_of(s);
    s->bounded = s->loss.absolute > 0 || s->loss.relative > 0;
    return CAIRN_OK;
}

/* A name that ends with ".so", or ".so" and numbers. */
static bool is_file(const char *text, size_t n)
{
    while (n > 0 && strchr("0123456789.", text[n - 1]))
        n--;
    return n > 3 && strncmp(text + n - 3, ".so", 3) == 0;
}

static cairn_status parse_foreign(const char *text, const char *colon, crn_codec_setting *s,
                                  crn_codec_setting *ret)
{
    char *file;
    CRN_TRY(crn_strdup(text, &file));
    if (colon)
        file[colon - text] = 0;
    cairn_status rc = crn_foreign_find(file, colon ? colon + 1 : "", &s->foreign);
    free(file);
    CRN_TRY(rc);
    s->family = CRN_FAMILY_FOREIGN;
    s->bounded = s->loss.absolute > 0 || s->loss.relative > 0;
    s->mode = s->bounded ? CRN_MODE_BY_LOSS : CRN_MODE_EXACT;
    *ret = *s;
    return CAIRN_OK;
}

cairn_status crn_codec_parse(const char *text, const char *loss, crn_codec_setting *ret)
{
    crn_codec_setting s = {.level = LEVEL_USUAL};
    const char *colon = strchr(text, ':');
    CRN_TRY(crn_loss_parse(loss, &s.loss));
    if (is_file(text, colon ? (size_t)(colon - text) : strlen(text)))
        return parse_foreign(text, colon, &s, ret);
    CRN_TRY(parse_family(text, colon ? (size_t)(colon - text) : strlen(text), &s.family));
    const struct family *f = &families[s.family];
    s.mode = s.loss.absolute > 0 || s.loss.relative > 0 ? f->by_loss : f->usual;
    CRN_TRY(parse_options(colon ? colon + 1 : NULL, &s));
    CRN_TRY(settle(&s));
    if (f->needs)
        CRN_TRY(crn_codec_ready(f->needs));
    *ret = s;
    return CAIRN_OK;
}

static const char *parameter_name(const crn_codec_setting *s)
{
    for (size_t i = 0; i < NPARAMETERS; i++)
        if (parameters[i].family == s->family && parameters[i].mode == s->mode)
            return parameters[i].name;
    return NULL;
}

char *crn_codec_print(const crn_codec_setting *s, char *buf)
{
    const char *parameter = parameter_name(s);
    if (s->family == CRN_FAMILY_FOREIGN) {
        const char *options, *file = crn_foreign_text(s->foreign, &options);
        snprintf(buf, CRN_CODEC_TEXT, "%.48s%s%.40s", file, options[0] ? ":" : "", options);
        return buf;
    }
    size_t n = (size_t)snprintf(buf, CRN_CODEC_TEXT, "%s", families[s->family].name);
    if (parameter)
        n += (size_t)snprintf(buf + n, CRN_CODEC_TEXT - n, ":%s=%.15g", parameter, s->value);
    else if (s->family == CRN_FAMILY_ZSTD && s->level != LEVEL_USUAL)
        n += (size_t)snprintf(buf + n, CRN_CODEC_TEXT - n, ":level=%d", s->level);
    const char *more[] = {s->shuffle ? "shuffle" : NULL, s->zeros ? "zeros" : NULL,
                          s->space ? "space" : NULL};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (more[i])
            n += (size_t)snprintf(buf + n, CRN_CODEC_TEXT - n, "%c%s", strchr(buf, ':') ? ',' : ':',
                                  more[i]);
    return buf;
}

/* --- configurations ------------------------------------------------------------------------- */

cairn_status crn_codec_configured(const crn_config *cfg, const char *name, crn_codec_setting *ret)
{
    const char *codec = crn_config_for_variable(cfg, CRN_OPT_VARIABLE_CODEC, name);
    const char *loss = crn_config_for_variable(cfg, CRN_OPT_VARIABLE_LOSS, name);
    cairn_status rc = crn_codec_parse(codec, loss, ret);
    if (rc < 0)
        crn_err_prefix("configuration, codec of variable '%s': ", name);
    else
        ret->flat = !crn_config_variable(cfg, CRN_OPT_VARIABLE_SHAPE, name).yes;
    return rc;
}

cairn_status crn_codec_check_configured(const crn_config *cfg)
{
    crn_codec_setting s;
    const char *name;
    CRN_TRY(crn_foreign_load(crn_config_text(cfg, CRN_OPT_CODEC_PLUGINS)));
    cairn_status rc = crn_codec_parse(crn_config_text(cfg, CRN_OPT_VARIABLE_CODEC),
                                      crn_config_text(cfg, CRN_OPT_VARIABLE_LOSS), &s);
    if (rc < 0)
        crn_err_prefix("configuration, [variable] codec: ");
    for (size_t i = 0; rc == CAIRN_OK && (name = crn_config_name_at(cfg, "variable", i)); i++)
        rc = crn_codec_configured(cfg, name, &s);
    return rc;
}
