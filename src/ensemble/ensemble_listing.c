/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings from a JSON file as seed 003's Listing 9.1 has it:
 *
 *     {"variables": ["state1"],
 *      "compression": {"method": "validation",
 *                      "validation": [{"mode": "zfp", "type": "accuracy", "parameter": [6, 8]}],
 *                      "dynamic": [{"name": "state1", "sigma": 1e-6, "mode": "fpzip",
 *                                   "parameter": [24, 32]}]}}
 *
 * An accuracy p means 10^-p. What is unknown is refused, with its line.
 */
#include "ensemble/ensemble_dynamic.h"

#include <math.h>

typedef struct listing {
    const char *method;  /* that is wanted */
    crn_ladders *ladder; /* NULL: of dynamic mode only what is wrong is looked for */
    const char *path;
    char *text;
    crn_codings *coding;
    crn_name_list *variable;
} listing;

/* The line in which "word" stands for the nth time, from 0 on; 1 where it does not. */
static unsigned line_of(const listing *l, const char *word, size_t nth)
{
    char quoted[160];
    const char *at = l->text;
    unsigned line = 1;
    snprintf(quoted, sizeof quoted, "\"%.150s\"", word);
    for (;; nth--, at++) {
        at = strstr(at, quoted);
        if (!at)
            return 1;
        if (nth == 0)
            break;
    }
    for (const char *c = l->text; c < at; c++)
        line += *c == '\n';
    return line;
}

static cairn_status refuse(const listing *l, unsigned line, const char *fmt, ...) CAIRN_PRINTF(3);
static cairn_status refuse(const listing *l, unsigned line, const char *fmt, ...)
{
    char why[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return crn_fail(CAIRN_EINVAL, "'%s', line %u: %s", l->path, line, why);
}

static cairn_status check_keys(const listing *l, json_t *object, const char *const *known,
                               const char *where)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            return refuse(l, line_of(l, key, 0), "'%s' is no key of %s", key, where);
    }
    return CAIRN_OK;
}

/* --- one entry ------------------------------------------------------------------------------ */

typedef enum kind { KIND_FPZIP, KIND_ZFP_PRECISION, KIND_ZFP_ACCURACY, KIND_F32, KIND_F16 } kind;

static cairn_status find_kind(const listing *l, json_t *entry, kind *ret)
{
    const char *mode = json_string_value(json_object_get(entry, "mode"));
    const char *type = json_string_value(json_object_get(entry, "type"));
    if (!mode)
        return refuse(l, line_of(l, "compression", 0), "an entry has no \"mode\"");
    if (strcmp(mode, "zfp") == 0 && type && strcmp(type, "precision") == 0)
        *ret = KIND_ZFP_PRECISION;
    else if (strcmp(mode, "zfp") == 0 && type && strcmp(type, "accuracy") == 0)
        *ret = KIND_ZFP_ACCURACY;
    else if (strcmp(mode, "zfp") == 0)
        return refuse(l, line_of(l, type ? type : "zfp", 0),
                      "the type of zfp is '%s'; it is \"precision\" or \"accuracy\"",
                      type ? type : "missing");
    else if (strcmp(mode, "fpzip") == 0)
        *ret = KIND_FPZIP;
    else if (strcmp(mode, "single") == 0)
        *ret = KIND_F32;
    else if (strcmp(mode, "half") == 0)
        *ret = KIND_F16;
    else
        return refuse(l, line_of(l, mode, 0),
                      "'%s' is no mode; there are fpzip, zfp, single and half", mode);
    return CAIRN_OK;
}

static cairn_status add_one(const listing *l, kind k, double p, unsigned line)
{
    crn_coding c = {0};
    if (k == KIND_FPZIP && (p != floor(p) || fmod(p, 2) != 0))
        return refuse(l, line, "fpzip has no precision of %g bits: it is an even number", p);
    if (k == KIND_FPZIP || k == KIND_ZFP_PRECISION)
        snprintf(c.name, sizeof c.name, "%s:precision=%g", k == KIND_FPZIP ? "fpzip" : "zfp", p);
    else if (k == KIND_ZFP_ACCURACY)
        snprintf(c.name, sizeof c.name, "zfp:accuracy=%.17g", pow(10, -p));
    else
        snprintf(c.name, sizeof c.name, "%s", k == KIND_F32 ? "f32" : "f16");
    if (crn_codec_parse(c.name, "", &c.setting) < 0) {
        crn_err_prefix("'%s', line %u: ", l->path, line);
        return CAIRN_EINVAL;
    }
    (void)crn_codec_print(&c.setting, c.name); /* 10^-8 as others write it */
    return l->coding ? crn_vec_push(l->coding, c) : CAIRN_OK;
}

static cairn_status read_entry(listing *l, json_t *entry, size_t nth)
{
    json_t *list = json_object_get(entry, "parameter"), *number;
    const unsigned line = line_of(l, "parameter", nth);
    size_t i;
    kind k = KIND_FPZIP;
    if (!json_is_object(entry))
        return refuse(l, line, "an entry is {\"mode\": ..., \"parameter\": [...]}");
    CRN_TRY(find_kind(l, entry, &k));
    if (k == KIND_F32 || k == KIND_F16)
        return add_one(l, k, 0, line);
    if (!json_is_array(list) || json_array_size(list) == 0)
        return refuse(l, line, "\"parameter\" is a list of numbers");
    json_array_foreach(list, i, number)
    {
        if (!json_is_number(number))
            return refuse(l, line, "\"parameter\" is a list of numbers");
        CRN_TRY(add_one(l, k, json_number_value(number), line));
    }
    return CAIRN_OK;
}

/* --- lists of them -------------------------------------------------------------------------- */

static cairn_status read_validation(listing *l, json_t *list)
{
    static const char *const known[] = {"mode", "type", "parameter", NULL};
    json_t *entry;
    size_t i;
    if (list && !json_is_array(list))
        return refuse(l, line_of(l, "validation", 0), "\"validation\" is a list");
    json_array_foreach(list, i, entry)
    {
        CRN_TRY(check_keys(l, entry, known, "an entry of \"validation\""));
        CRN_TRY(read_entry(l, entry, i));
    }
    return CAIRN_OK;
}

static bool is_variable(const listing *l, const char *name)
{
    for (size_t i = 0; i < l->variable->n; i++)
        if (strcmp(l->variable->at[i], name) == 0)
            return true;
    return false;
}

static cairn_status add_ladder(listing *l, const char *name, double sigma, crn_codings *coding)
{
    crn_ladder mine = {.sigma = sigma, .coding = *coding};
    snprintf(mine.field, sizeof mine.field, "%s", name);
    if (!l->ladder) {
        crn_vec_done(coding);
        return CAIRN_OK;
    }
    cairn_status rc = crn_vec_push(l->ladder, mine);
    if (rc < 0)
        crn_vec_done(coding);
    return rc;
}

static cairn_status read_dynamic(listing *l, json_t *list, size_t nth)
{
    static const char *const known[] = {"name", "sigma", "mode", "type", "parameter", NULL};
    json_t *entry;
    size_t i;
    if (list && !json_is_array(list))
        return refuse(l, line_of(l, "dynamic", 0), "\"dynamic\" is a list");
    json_array_foreach(list, i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        CRN_TRY(check_keys(l, entry, known, "an entry of \"dynamic\""));
        if (!name || !is_variable(l, name))
            return refuse(l, line_of(l, name ? name : "dynamic", 0),
                          "'%s' is not one of \"variables\"", name ? name : "");
        if (!json_is_number(json_object_get(entry, "sigma")))
            return refuse(l, line_of(l, "name", i), "an entry of \"dynamic\" needs \"sigma\"");
        crn_codings coding = {0};
        listing mine = *l;
        mine.coding = &coding;
        cairn_status rc = read_entry(&mine, entry, nth + i);
        if (rc < 0) {
            crn_vec_done(&coding);
            return rc;
        }
        CRN_TRY(add_ladder(l, name, json_number_value(json_object_get(entry, "sigma")), &coding));
    }
    return CAIRN_OK;
}

static cairn_status read_variables(listing *l, json_t *list)
{
    json_t *name;
    size_t i;
    if (!json_is_array(list))
        return refuse(l, line_of(l, "variables", 0), "\"variables\" is a list of names");
    json_array_foreach(list, i, name)
    {
        char *copy;
        if (!json_is_string(name))
            return refuse(l, line_of(l, "variables", 0), "\"variables\" is a list of names");
        CRN_TRY(crn_strdup(json_string_value(name), &copy));
        CRN_TRY(crn_vec_push(l->variable, copy));
    }
    return CAIRN_OK;
}

static cairn_status read_root(listing *l, json_t *root)
{
    static const char *const top[] = {"variables", "compression", NULL};
    static const char *const inner[] = {"method", "validation", "dynamic", NULL};
    json_t *compression = json_object_get(root, "compression");
    const char *method = json_string_value(json_object_get(compression, "method"));
    if (!json_is_object(root) || !json_is_object(compression))
        return refuse(l, 1, "it is {\"variables\": [...], \"compression\": {...}}");
    CRN_TRY(check_keys(l, root, top, "the file"));
    CRN_TRY(check_keys(l, compression, inner, "\"compression\""));
    if (!method || (strcmp(method, "validation") != 0 && strcmp(method, "dynamic") != 0))
        return refuse(l, line_of(l, "method", 0),
                      "\"method\" is '%s', not \"validation\" or \"dynamic\"",
                      method ? method : "");
    CRN_TRY(read_variables(l, json_object_get(root, "variables")));
    json_t *validation = json_object_get(compression, "validation");
    CRN_TRY(read_validation(l, validation));
    if (strcmp(method, l->method) != 0)
        return refuse(l, line_of(l, "method", 0),
                      "\"method\" is '%s', and the study uses it for %s", method, l->method);
    return read_dynamic(l, json_object_get(compression, "dynamic"), json_array_size(validation));
}

static cairn_status read_file(listing *given)
{
    listing l = *given;
    const char *path = l.path;
    json_error_t error;
    const char *slash = strrchr(path, '/');
    char *dir;
    CRN_TRY(crn_strndup(path, slash ? (size_t)(slash - path) : 0, &dir));
    cairn_status rc = crn_study_read(slash ? dir : ".", slash ? slash + 1 : path, &l.text);
    free(dir);
    CRN_TRY(rc);
    json_t *root = json_loads(l.text, JSON_REJECT_DUPLICATES, &error);
    rc =
        root ? read_root(&l, root) : refuse(&l, (unsigned)CRN_MAX(error.line, 1), "%s", error.text);
    json_decref(root);
    free(l.text);
    return rc;
}

cairn_status crn_listing_read(const char *path, crn_codings *ret, crn_name_list *ret_variables)
{
    listing l = {.method = "validation", .path = path, .coding = ret, .variable = ret_variables};
    return read_file(&l);
}

cairn_status crn_listing_dynamic(const char *path, crn_ladders *ret)
{
    crn_codings ignored = {0};
    crn_name_list names = {0};
    listing l = {
        .method = "dynamic", .ladder = ret, .path = path, .coding = &ignored, .variable = &names};
    cairn_status rc = read_file(&l);
    while (names.n > 0)
        free(names.at[--names.n]);
    crn_vec_done(&names);
    crn_vec_done(&ignored);
    return rc;
}
