/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a setting makes of a sample: encoded and checked as a session does it, decoded, compared.
 */
#include "trial/trial.h"

#include <math.h>

enum { BLOCK = 64 << 10 }; /* where the setting does not want more: the usual size */

typedef struct trying {
    cairn_sample *s;
    crn_codec_setting setting;
    crn_codec_counts counts;
    uint64_t encode_ns, decode_ns;
    /* over stretches: sums for the confidence of the rate */
    double n, stored, squares, products, nbytes, nbytes2;
} trying;

static cairn_status make_room(crn_buf *b, size_t n)
{
    if (n <= b->cap)
        return CAIRN_OK;
    crn_buf_done(b);
    CRN_TRY(crn_alloc_aligned(&b->at, CRN_ROUND_UP(n, (size_t)CRN_CODEC_ALIGN), CRN_CODEC_ALIGN));
    b->cap = n;
    return CAIRN_OK;
}

/* --- one block ------------------------------------------------------------------------------ */

static cairn_status decode(const trying *t, const crn_codec_result *r, const crn_codec_values *v,
                           unsigned char *to)
{
    if (r->codec == 0) {
        memcpy(to, v->at, v->nbytes);
        return CAIRN_OK;
    }
    return crn_codec_decode(crn_codec_of_id(r->codec), v->elem, t->s->encoded.at, r->n, to,
                            v->nbytes, t->s->scratch.at);
}

static cairn_status try_block(trying *t, const crn_codec_values *v, unsigned char *reads)
{
    cairn_sample *s = t->s;
    crn_codec_result r = {.reads = v->at, .exact = true};
    CRN_TRY(make_room(&s->scratch, crn_codec_store_scratch(&t->setting, v->nbytes) + (1 << 20)));
    CRN_TRY(make_room(&s->encoded, crn_codec_store_bound(v->nbytes)));
    const uint64_t start = crn_now_ns();
    if (t->setting.family != CRN_FAMILY_NONE)
        CRN_TRY(crn_codec_store(&t->setting, v, s->encoded.at, s->scratch.at, &r));
    else
        memcpy(s->encoded.at, v->at, v->nbytes); /* as the engine copies it */
    const uint64_t stored = crn_now_ns();
    crn_codec_count(&t->counts, &r, v->nbytes);
    CRN_TRY(decode(t, &r, v, reads));
    t->encode_ns += stored - start;
    t->decode_ns += crn_now_ns() - stored;
    return CAIRN_OK;
}

/* --- all of them ---------------------------------------------------------------------------- */

static cairn_status try_stretch(trying *t, const trial_stretch *one)
{
    cairn_sample *s = t->s;
    const uint32_t wants = crn_codec_block(&t->setting, s->elem, &one->shape);
    const size_t block = CRN_MAX((size_t)BLOCK, (size_t)wants);
    const uint64_t before = t->counts.stored;
    for (size_t off = 0; off < one->nbytes; off += block) {
        crn_codec_values v = {s->elem, s->data + one->off + off, CRN_MIN(block, one->nbytes - off),
                              one->shape};
        v.shape.first += off / crn_elem_nbytes(s->elem);
        if (one->shape.ndims < 2)
            v.shape = (crn_codec_shape){0};
        CRN_TRY(try_block(t, &v, s->reads + one->off + off));
    }
    const double n = (double)one->nbytes, stored = (double)(t->counts.stored - before);
    t->n++;
    t->nbytes += n;
    t->nbytes2 += n * n;
    t->stored += stored;
    t->squares += stored * stored;
    t->products += stored * n;
    return CAIRN_OK;
}

/* A short trial is made several times, since the clock and the caches disturb it; the best counts.
 */
static cairn_status try_all(trying *t)
{
    enum { SHORT_NS = 20000000, ROUNDS = 3 };
    trying best = {.encode_ns = UINT64_MAX, .decode_ns = UINT64_MAX};
    const trying fresh = *t;
    for (int round = 0; round < ROUNDS; round++) {
        *t = fresh;
        for (size_t i = 0; i < t->s->stretch.n; i++)
            CRN_TRY(try_stretch(t, &t->s->stretch.at[i]));
        best.encode_ns = CRN_MIN(best.encode_ns, t->encode_ns);
        best.decode_ns = CRN_MIN(best.decode_ns, t->decode_ns);
        if (t->encode_ns + t->decode_ns > SHORT_NS)
            break;
    }
    t->encode_ns = best.encode_ns;
    t->decode_ns = best.decode_ns;
    return CAIRN_OK;
}

/* The ratio of two sums over a sample without replacement: its standard error by the residuals of
 * the stretches, times 2 and more where they are few (Student's quantiles, roughly). */
static void set_rate(const trying *t, cairn_trial *r)
{
    const double all = (double)t->s->info.nstretches, n = t->n;
    const double share = t->nbytes > 0 ? t->stored / t->nbytes : 1;
    r->rate = r->rate_low = r->rate_high = share > 0 ? 1 / share : 1;
    if (n >= all)
        return;
    if (n < 2) { /* one stretch tells nothing of the others */
        r->rate_low = 0;
        r->rate_high = INFINITY;
        return;
    }
    const double rest = t->squares - 2 * share * t->products + share * share * t->nbytes2;
    const double mean = t->nbytes / n;
    const double error = sqrt(fmax(rest, 0) / (n - 1) / n * (1 - n / all)) / mean;
    const double off = (1.96 + 2.4 / (n - 1) + 8.4 / ((n - 1) * (n - 1))) * error;
    r->rate_low = 1 / (share + off);
    r->rate_high = share > off ? 1 / (share - off) : INFINITY;
}

/* --- comparing ------------------------------------------------------------------------------ */

/* Whole rows of one plane of a stretch, from its value at on: rows and columns, and where the next
 * ones begin. */
typedef struct panel {
    size_t at, nrows, ncolumns, next;
} panel;

static panel panel_at(const trial_stretch *t, size_t n, size_t at)
{
    const uint32_t d = t->shape.ndims;
    const uint64_t row = t->shape.extent[d - 1], plane = row * t->shape.extent[d - 2];
    const uint64_t in_row = (t->shape.first + at) % row;
    if (in_row != 0)
        at += (size_t)CRN_MIN(row - in_row, (uint64_t)(n - at));
    const uint64_t in_plane = (t->shape.first + at) % plane;
    const uint64_t most = CRN_MIN(plane - in_plane, (uint64_t)(n - at));
    const size_t nrows = (size_t)(most / row);
    panel p = {at, nrows, (size_t)row, at + nrows * (size_t)row};
    if (nrows == 0)
        p.next = n;
    return p;
}

/* The least similar of the planes; small ones count only where there are no others. */
static cairn_status compare_planes(const cairn_sample *s, double *ret)
{
    enum { LEAST = 11 };
    const size_t width = crn_elem_nbytes(s->elem);
    double large = NAN, small = NAN;
    for (size_t i = 0; i < s->stretch.n; i++) {
        const trial_stretch *t = &s->stretch.at[i];
        const size_t n = t->nbytes / width, base = t->off / width;
        for (size_t at = 0; t->shape.ndims > 1 && at < n;) {
            const panel p = panel_at(t, n, at);
            double one;
            at = p.next;
            if (p.nrows == 0)
                break;
            CRN_TRY(crn_ssim(s->x + base + p.at, s->y + base + p.at, p.nrows, p.ncolumns, &one));
            double *to = CRN_MIN(p.nrows, p.ncolumns) >= LEAST ? &large : &small;
            *to = fmin(*to, one);
        }
    }
    *ret = isnan(large) ? small : large;
    return CAIRN_OK;
}

static void compare_distributions(cairn_sample *s, cairn_trial *r)
{
    memcpy(s->sorted, s->x, s->nvalues * sizeof *s->x);
    const crn_ks t = crn_ks_test(s->sorted, s->y, s->nvalues); /* y is not needed any more */
    r->ks = t.distance;
    r->ks_p = t.p;
}

static cairn_status compare(cairn_sample *s, unsigned what, cairn_trial *r)
{
    const bool same = memcmp(s->data, s->reads, s->nbytes) == 0;
    crn_deviation d = {0};
    r->psnr = INFINITY;
    r->ssim = what & CAIRN_TRIAL_SSIM && s->info.ndims > 1 && s->nvalues > 0 ? 1 : NAN;
    r->ks = what & CAIRN_TRIAL_KS && s->nvalues > 0 ? 0 : NAN;
    r->ks_p = what & CAIRN_TRIAL_KS && s->nvalues > 0 ? 1 : NAN;
    if (same || s->nvalues == 0)
        return CAIRN_OK;
    crn_trial_numbers(s->elem, s->reads, s->nvalues, s->y);
    crn_deviation_add(&d, s->x, s->y, s->nvalues);
    r->error = crn_deviation_error(&d);
    r->rms = crn_deviation_rms(&d);
    r->psnr = crn_deviation_psnr(&d);
    r->decorrelation = crn_deviation_decorrelation(&d);
    if (!isnan(r->ssim))
        CRN_TRY(compare_planes(s, &r->ssim));
    if (!isnan(r->ks))
        compare_distributions(s, r);
    return CAIRN_OK;
}

/* --- the call ------------------------------------------------------------------------------- */

static double speed(uint64_t nbytes, uint64_t ns)
{
    return ns > 0 ? (double)nbytes / (double)ns * 1e9 : 0;
}

static void set_counts(const trying *t, cairn_trial *r)
{
    const crn_codec_counts *c = &t->counts;
    r->lossy = crn_codec_is_lossy(&t->setting);
    r->nblocks = c->nblocks;
    r->nbytes = c->nbytes;
    r->stored = c->stored;
    r->nstricter = c->fallback[CRN_FALLBACK_STRICTER];
    r->nunbound = c->fallback[CRN_FALLBACK_BOUND];
    r->nspecial = c->fallback[CRN_FALLBACK_SPECIAL];
    r->nsmaller = c->fallback[CRN_FALLBACK_SIZE];
    r->naside = c->naside;
    r->encode = speed(c->nbytes, t->encode_ns);
    r->decode = speed(c->nbytes, t->decode_ns);
    /* if more of them had a larger error, the sample had one of those with probability 0.95 */
    r->exceeding = t->n < (double)t->s->info.nstretches && t->n > 0 ? 1 - pow(0.05, 1 / t->n) : 0;
}

int cairn_sample_try(cairn_sample *s, const char *codec, const char *loss, unsigned what,
                     cairn_trial *ret)
{
    trying t = {.s = s};
    cairn_trial r = {0};
    CRN_FAIL_IF(!s || !codec || !ret, CAIRN_EINVAL, "cairn_sample_try: an argument is NULL");
    CRN_TRY(crn_codec_parse(codec, loss ? loss : "", &t.setting));
    crn_codec_print(&t.setting, r.codec);
    if (t.setting.bounded)
        crn_loss_print(&t.setting.loss, r.loss);
    CRN_TRY(try_all(&t));
    set_counts(&t, &r);
    set_rate(&t, &r);
    CRN_TRY(compare(s, what, &r));
    return crn_struct_out(&r, ret);
}
