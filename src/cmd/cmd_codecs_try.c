/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which settings 'cairn codecs' tries.
 *
 * Quality is not monotone in a setting: more bits of a value may have a larger error, and bounds
 * that zfp rounds to powers of two stay the same over stretches. So a search tries every setting of
 * every codec, orders them by size, and takes the first that meets the wish.
 */
#include "cmd/cmd_codecs.h"

#include <math.h>

typedef struct setting {
    char codec[64];
    bool exact; /* loses nothing: no bound is stated for it */
} setting;

typedef CRN_VEC(setting) settings;

static bool is_float(const cairn_sample_info *info)
{
    return strncmp(info->type, "float", 5) == 0;
}

static int bits_of(const cairn_sample_info *info)
{
    return strcmp(info->type, "float64") == 0 ? 64 : 32;
}

static int mantissa_of(const cairn_sample_info *info)
{
    return bits_of(info) == 64 ? 52 : 23;
}

static cairn_status add(settings *list, bool exact, const char *fmt, ...) CAIRN_PRINTF(3);

static cairn_status add(settings *list, bool exact, const char *fmt, ...)
{
    setting s = {.exact = exact};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s.codec, sizeof s.codec, fmt, ap);
    va_end(ap);
    return crn_vec_push(list, s);
}

/* --- which ---------------------------------------------------------------------------------- */

static cairn_status add_exact(settings *list, const cairn_sample_info *info)
{
    static const char *const any[] = {"none", "lz4", "lz4:shuffle", "zstd", "zstd:shuffle"};
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        CRN_TRY(add(list, true, "%s", any[i]));
    if (!is_float(info))
        return CAIRN_OK;
    CRN_TRY(add(list, true, "zfp"));
    return add(list, true, "fpzip");
}

static cairn_status add_narrow(settings *list, const cairn_sample_info *info)
{
    if (bits_of(info) == 64)
        CRN_TRY(add(list, false, "f32"));
    return add(list, false, "f16");
}

/* The power of two above the range of the values. */
static int exponent_of(const cairn_sample_info *info)
{
    int e = 0;
    (void)frexp(fmax(info->max / 2 - info->min / 2, fabs(info->max) * 0x1p-52), &e);
    return e + 1;
}

static cairn_status add_usual(settings *list, const cairn_sample_info *info)
{
    static const int bits[] = {8, 12, 16, 24}, precision[] = {16, 24, 32, 40, 48};
    const double range = info->max / 2 - info->min / 2;
    CRN_TRY(add_exact(list, info));
    if (!is_float(info))
        return CAIRN_OK;
    CRN_TRY(add_narrow(list, info));
    if (info->bits > 0)
        CRN_TRY(add(list, false, "round:bits=%d", info->bits));
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (bits[i] != info->bits && bits[i] <= mantissa_of(info))
            CRN_TRY(add(list, false, "round:bits=%d", bits[i]));
    for (int k = 3; k <= (bits_of(info) == 64 ? 12 : 6) && range > 0 && isfinite(range); k += 3)
        CRN_TRY(add(list, false, "zfp:accuracy=%.1e", pow(10, rint(log10(2 * range)) - k)));
    for (size_t i = 0; i < sizeof precision / sizeof *precision; i++) {
        if (precision[i] >= bits_of(info))
            continue;
        CRN_TRY(add(list, false, "zfp:precision=%d", precision[i]));
        CRN_TRY(add(list, false, "fpzip:precision=%d", precision[i]));
    }
    CRN_TRY(add(list, false, "zfp:rate=%d", bits_of(info) / 4));
    return CAIRN_OK;
}

static cairn_status add_all(settings *list, const cairn_sample_info *info)
{
    const int bits = bits_of(info), top = exponent_of(info);
    CRN_TRY(add_exact(list, info));
    if (!is_float(info))
        return CAIRN_OK;
    CRN_TRY(add_narrow(list, info));
    for (int e = top; e > top - mantissa_of(info) - 4 && e > -1022; e--)
        CRN_TRY(add(list, false, "zfp:accuracy=%.17g", ldexp(1, e)));
    for (int p = 2; p <= bits; p++)
        CRN_TRY(add(list, false, "zfp:precision=%d", p));
    for (int p = 4; p < bits; p += 2)
        CRN_TRY(add(list, false, "fpzip:precision=%d", p));
    for (int b = 1; b <= mantissa_of(info); b++)
        CRN_TRY(add(list, false, "round:bits=%d", b));
    return CAIRN_OK;
}

/* --- trying --------------------------------------------------------------------------------- */

/* A codec that this build does not have is left out. */
static int try_settings(cairn_sample *s, const settings *list, const char *loss, unsigned what,
                        codecs_step_fn *step, void *arg, codecs_rows *ret)
{
    for (size_t i = 0; i < list->n; i++) {
        codecs_row row = {.trial.struct_bytes = sizeof row.trial, .safe = NAN, .restart = NAN};
        const char *bound = list->at[i].exact ? "" : loss;
        step(arg, i, list->n);
        const int rc = cairn_sample_try(s, list->at[i].codec, bound, what, &row.trial);
        if (rc == CAIRN_EUNSUPPORTED)
            continue;
        if (rc < 0)
            return rc;
        if (crn_vec_push(ret, row) < 0)
            return CAIRN_ENOMEM;
    }
    return CAIRN_OK;
}

int codecs_try_usual(cairn_sample *s, const cairn_sample_info *info, codecs_step_fn *step,
                     void *arg, codecs_rows *ret)
{
    settings list = {0};
    int rc = add_usual(&list, info);
    if (rc == CAIRN_OK)
        rc = try_settings(s, &list, "", CAIRN_TRIAL_ALL, step, arg, ret);
    crn_vec_done(&list);
    return rc;
}

/* --- the wish ------------------------------------------------------------------------------- */

bool codecs_parse_wish(const char *text, codecs_wish *ret)
{
    codecs_wish w = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, ""};
    const struct {
        const char *name;
        double *to;
    } part[] = {{"max", &w.max}, {"rel", &w.rel},   {"rms", &w.rms}, {"psnr", &w.psnr},
                {"rho", &w.rho}, {"ssim", &w.ssim}, {"ks", &w.ks}};
    for (const char *at = text; *at;) {
        char name[16], value[32];
        size_t i = 0;
        int n = 0;
        if (sscanf(at, "%15[a-z]=%31[^,]%n", name, value, &n) != 2 || n == 0)
            return crn_fail(CAIRN_EINVAL, "'%s' is no wish, such as 'rho=0.99999,max=1e-3'", at),
                   false;
        while (i < sizeof part / sizeof *part && strcmp(part[i].name, name) != 0)
            i++;
        if (i == sizeof part / sizeof *part)
            return crn_fail(CAIRN_EINVAL,
                            "'%s' cannot be wished for: there are max, rel, rms, psnr, rho, ssim "
                            "and ks",
                            name),
                   false;
        if (crn_parse_real(value, part[i].to) < 0)
            return false;
        at += n;
        at += *at == ',';
    }
    const bool abs = !isnan(w.max), rel = !isnan(w.rel);
    size_t n = 0;
    if ((abs && w.max <= 0) || (rel && (w.rel <= 0 || w.rel >= 1)))
        return crn_fail(CAIRN_EINVAL, "max and rel must be above 0, and rel below 1"), false;
    if (abs)
        n = (size_t)snprintf(w.loss, sizeof w.loss, "abs %.17g%s", w.max, rel ? " " : "");
    if (rel)
        snprintf(w.loss + n, sizeof w.loss - n, "rel %.17g", w.rel);
    *ret = w;
    return true;
}

/* What a session keeps by itself, max and rel, was stated with the trial. */
static bool meets_cheap(const cairn_trial *t, const codecs_wish *w)
{
    return !(t->rms > w->rms) && !(t->psnr < w->psnr) && !(1 - t->decorrelation < w->rho);
}

static bool meets_all(const cairn_trial *t, const codecs_wish *w)
{
    return meets_cheap(t, w) && !(t->ssim < w->ssim) && !(t->ks_p < w->ks);
}

/* The smallest first; of equal ones the faster. */
static int by_rate(const void *a, const void *b)
{
    const cairn_trial *x = &((const codecs_row *)a)->trial, *y = &((const codecs_row *)b)->trial;
    if (x->stored != y->stored)
        return x->stored < y->stored ? -1 : 1;
    return x->encode > y->encode ? -1 : x->encode < y->encode;
}

static int choose(cairn_sample *s, codecs_rows *rows, const codecs_wish *w, codecs_step_fn *step,
                  void *arg, codecs_row *ret)
{
    qsort(rows->at, rows->n, sizeof *rows->at, by_rate);
    for (size_t i = 0; i < rows->n; i++) {
        codecs_row *row = &rows->at[i];
        if (!meets_cheap(&row->trial, w))
            continue;
        step(arg, i, rows->n);
        char codec[sizeof row->trial.codec];
        memcpy(codec, row->trial.codec, sizeof codec);
        const int rc = cairn_sample_try(s, codec, row->trial.lossy ? w->loss : "", CAIRN_TRIAL_ALL,
                                        &row->trial);
        if (rc < 0)
            return rc;
        if (!meets_all(&row->trial, w))
            continue;
        *ret = *row;
        return CAIRN_OK;
    }
    return CAIRN_EINTERNAL; /* without a codec every wish is met */
}

int codecs_search(cairn_sample *s, const cairn_sample_info *info, const codecs_wish *wish,
                  codecs_step_fn *step, void *arg, codecs_row *ret)
{
    settings list = {0};
    codecs_rows rows = {0};
    int rc = add_all(&list, info);
    if (rc == CAIRN_OK)
        rc = try_settings(s, &list, wish->loss, 0, step, arg, &rows);
    if (rc == CAIRN_OK)
        rc = choose(s, &rows, wish, step, arg, ret);
    crn_vec_done(&list);
    crn_vec_done(&rows);
    return rc;
}

/* --- the front ------------------------------------------------------------------------------ */

static bool is_better(const cairn_trial *a, const cairn_trial *b)
{
    return a->stored <= b->stored && a->rms <= b->rms && (a->stored < b->stored || a->rms < b->rms);
}

void codecs_set_times(codecs_row *row, const codecs_row *none, const codecs_storage *storage)
{
    const cairn_trial *t = &row->trial, *n = &none->trial;
    if (storage->write <= 0 || storage->read <= 0 || t->encode <= 0 || t->decode <= 0 ||
        n->encode <= 0 || n->decode <= 0)
        return;
    /* blocks are encoded while earlier ones are written, and decoded when they were read */
    const double safe = fmax((double)t->nbytes / t->encode, (double)t->stored / storage->write);
    const double plain = fmax((double)n->nbytes / n->encode, (double)n->stored / storage->write);
    row->safe = safe / plain;
    row->restart = ((double)t->stored / storage->read + (double)t->nbytes / t->decode) /
                   ((double)n->stored / storage->read + (double)n->nbytes / n->decode);
}

void codecs_rank(codecs_rows *rows, const codecs_storage *storage)
{
    for (size_t i = 0; i < rows->n; i++) {
        codecs_row *row = &rows->at[i];
        row->front = true;
        for (size_t k = 0; k < rows->n && row->front; k++)
            row->front = !is_better(&rows->at[k].trial, &row->trial);
        codecs_set_times(row, &rows->at[0], storage);
    }
}
