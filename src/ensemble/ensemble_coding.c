/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings of a validation, and states coded by them: each variable is encoded and decoded as one
 * array, as a reader would get it.
 */
#include "ensemble/ensemble_functions.h"
#include "ensemble/ensemble_side.h"

#include <math.h>
#include <unistd.h>

enum { CODED_AT_A_TIME = 64 << 20 }; /* bytes; larger fields are coded in such pieces */

/* --- the configuration ---------------------------------------------------------------------- */

static const char *text_of(const crn_study *s, crn_study_opt id)
{
    return crn_config_text(s->config, (crn_opt_id)id);
}

static cairn_status add_coding(crn_codings *list, const char *name)
{
    crn_coding c = {0};
    CRN_TRY(crn_codec_parse(name, "", &c.setting));
    snprintf(c.name, sizeof c.name, "%s", name);
    return crn_vec_push(list, c);
}

/* "zfp:precision=16|24" is two settings. */
static cairn_status add_codings(crn_codings *list, const char *word)
{
    const char *value = strchr(word, '=');
    const size_t stem = value ? (size_t)(value + 1 - word) : 0;
    const char *at = word + stem;
    for (;;) {
        char name[CRN_CODEC_TEXT];
        const size_t n = strcspn(at, "|");
        snprintf(name, sizeof name, "%.*s%.*s", (int)stem, word, (int)n, at);
        CRN_TRY(add_coding(list, name));
        if (!at[n])
            return CAIRN_OK;
        at += n + 1;
    }
}

cairn_status crn_codings_parse(const char *words, crn_codings *ret)
{
    char *text, *rest = NULL;
    CRN_TRY(crn_strdup(words, &text));
    cairn_status rc = CAIRN_OK;
    for (char *w = strtok_r(text, " \t", &rest); rc == CAIRN_OK && w;
         w = strtok_r(NULL, " \t", &rest))
        rc = add_codings(ret, w);
    free(text);
    return rc;
}

static cairn_status read_settings(const crn_study *s, crn_side *side)
{
    cairn_status rc = crn_codings_parse(text_of(s, CRN_STUDY_SETTINGS), &side->coding);
    if (rc < 0)
        crn_err_prefix("'%s': validate.settings: ", s->file);
    return rc;
}

static cairn_status read_number(const crn_study *s, crn_study_opt id, double *ret)
{
    const crn_opt *row = &crn_study_table[id];
    const char *text = text_of(s, id);
    CRN_FAIL_IF(crn_parse_real(text, ret) < 0 || !(*ret >= 0), CAIRN_EINVAL,
                "'%s': %s.%s is '%s', not a number from 0 on", s->file, row->section, row->key,
                text);
    return CAIRN_OK;
}

static cairn_status read_numbers(const crn_study *s, crn_side *side)
{
    crn_thresholds *t = &side->thresholds;
    *t = crn_thresholds_default();
    side->validators = (uint32_t)crn_config_count(s->config, (crn_opt_id)CRN_STUDY_VALIDATORS);
    side->lag = (uint32_t)crn_config_count(s->config, (crn_opt_id)CRN_STUDY_LAG);
    t->cycles = (uint32_t)crn_config_count(s->config, (crn_opt_id)CRN_STUDY_JUDGE);
    CRN_TRY(read_number(s, CRN_STUDY_PERTURB, &side->perturb));
    CRN_TRY(read_number(s, CRN_STUDY_NOISE, &side->noise));
    CRN_TRY(read_number(s, CRN_STUDY_DELTA, &t->delta));
    CRN_TRY(read_number(s, CRN_STUDY_RHO, &t->rho));
    CRN_TRY(read_number(s, CRN_STUDY_SHARE, &t->share));
    CRN_TRY(read_number(s, CRN_STUDY_SSIM, &t->ssim));
    CRN_TRY(read_number(s, CRN_STUDY_DISCOVERIES, &side->discoveries));
    return read_number(s, CRN_STUDY_SIGMAS, &t->sigmas);
}

/* From where the study's file is. */
static cairn_status read_listing(const crn_study *s, crn_side *side)
{
    const char *name = text_of(s, CRN_STUDY_LISTING);
    char *path;
    if (!name[0])
        return CAIRN_OK;
    CRN_TRY(crn_study_beside(s, name, &path));
    cairn_status rc = crn_listing_read(path, &side->coding, &side->variable);
    free(path);
    return rc;
}

/* Functions of the user's own are looked at before anything is started. */
static cairn_status check_functions(const crn_study *s)
{
    crn_functions f;
    CRN_TRY(crn_functions_open(s, &f));
    crn_functions_done(&f);
    return CAIRN_OK;
}

static cairn_status fill(crn_study *s, crn_side *side)
{
    CRN_TRY(add_coding(&side->coding, "none"));
    CRN_TRY(read_settings(s, side));
    CRN_TRY(read_listing(s, side));
    CRN_FAIL_IF(side->coding.n < 2, CAIRN_EINVAL,
                "'%s': validate.settings is empty: which losses are to be judged, such as "
                "'zfp:accuracy=1e-8 f32'?",
                s->file);
    CRN_TRY(read_numbers(s, side));
    CRN_FAIL_IF(side->noisy && side->noise == 0, CAIRN_EINVAL, "'%s': validate.noise is 0",
                s->file);
    CRN_FAIL_IF(s->failing != CRN_FAILING_STOP, CAIRN_EINVAL,
                "'%s': runner.failing must be 'stop' in a validation: without a member, or with "
                "another in its place, ensembles could not be compared",
                s->file);
    CRN_FAIL_IF(s->server_ranks > 1, CAIRN_EINVAL,
                "'%s': server.ranks must be 1 in a validation: its server has whole states",
                s->file);
    CRN_TRY(check_functions(s));
    if (side->noisy) /* the second one without loss */
        CRN_TRY(add_coding(&side->coding, "none"));
    CRN_FAIL_IF(side->coding.n * s->members > UINT32_MAX / 2, CAIRN_EINVAL,
                "'%s': %zu ensembles of %u members are too many", s->file, side->coding.n,
                s->members);
    return CAIRN_OK;
}

cairn_status crn_side_open(crn_study *s, bool noisy)
{
    crn_side *side;
    CRN_TRY(crn_alloc(&side, 1));
    side->noisy = noisy;
    cairn_status rc = fill(s, side);
    if (rc < 0) {
        crn_side_free(side);
        return rc;
    }
    s->side = side;
    s->keep = CRN_KEEP_BACKGROUND; /* which validators read, and an analysis follows from */
    return crn_study_enter(s, noisy ? "noise" : "plain");
}

void crn_side_free(crn_side *side)
{
    if (!side)
        return;
    while (side->variable.n > 0)
        free(side->variable.at[--side->variable.n]);
    crn_vec_done(&side->variable);
    crn_vec_done(&side->coding);
    free(side);
}

/* --- fields --------------------------------------------------------------------------------- */

static crn_elem elem_of(const crn_state_field *f)
{
    return f->type == CAIRN_FLOAT64   ? CRN_ELEM_F64
           : f->type == CAIRN_FLOAT32 ? CRN_ELEM_F32
                                      : CRN_ELEM_BYTES;
}

bool crn_side_takes(const crn_side *side, const crn_state_field *f)
{
    if (elem_of(f) == CRN_ELEM_BYTES)
        return false;
    for (size_t i = 0; i < side->variable.n; i++)
        if (strcmp(side->variable.at[i], f->name) == 0)
            return true;
    return side->variable.n == 0;
}

/* Values [at, at + nbytes) of a field: coded into dst and back. */
static cairn_status code_piece(const crn_codec_setting *setting, const crn_state_field *f,
                               unsigned char *data, size_t at, size_t nbytes, void *dst,
                               void *scratch, size_t *ret_n)
{
    const crn_elem elem = elem_of(f);
    crn_codec_values v = {elem, data + at, nbytes,
                          crn_codec_shape_of((uint32_t)f->ndims, f->global)};
    crn_codec_result r;
    v.shape.first = at / crn_elem_nbytes(elem);
    CRN_TRY(crn_codec_store(setting, &v, dst, scratch, &r));
    if (r.reads != v.at)
        memmove(data + at, r.reads, nbytes);
    *ret_n = r.codec == 0 ? nbytes : r.n;
    return CAIRN_OK;
}

cairn_status crn_field_code(const crn_codec_setting *setting, const crn_state_field *f, void *data,
                            double *ret_rate)
{
    const size_t nbytes = crn_field_nbytes(f), most = CRN_MIN(nbytes, (size_t)CODED_AT_A_TIME);
    unsigned char *dst, *scratch;
    size_t coded = 0, n = 0;
    CRN_TRY(crn_alloc(&dst, crn_codec_store_bound(most)));
    cairn_status rc =
        crn_alloc_aligned(&scratch, crn_codec_store_scratch(setting, most), CRN_CODEC_ALIGN);
    for (size_t at = 0; rc == CAIRN_OK && at < nbytes; at += most) {
        rc = code_piece(setting, f, data, at, CRN_MIN(most, nbytes - at), dst, scratch, &n);
        coded += n;
    }
    if (rc == CAIRN_OK)
        free(scratch);
    free(dst);
    *ret_rate = coded > 0 ? (double)nbytes / (double)coded : 1;
    return rc;
}

/* --- files ---------------------------------------------------------------------------------- */

char *crn_side_name(uint32_t cycle, const char *what, char buf[48])
{
    snprintf(buf, 48, "c%06u.%s", cycle, what);
    return buf;
}

bool crn_side_has(const crn_study *s, uint32_t cycle, const char *what)
{
    char name[48], *path;
    if (crn_study_path(s, crn_side_name(cycle, what, name), &path) < 0)
        return false;
    const bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}
