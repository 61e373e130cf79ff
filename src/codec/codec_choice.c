/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which codec a variable's blocks go to, by what was measured. A mark is as safe as was asked for
 * after its blocks were encoded and their bytes have gone to storage; of a byte that takes
 *
 *     encode + rate * max(device, copy)
 *
 * seconds: no byte gets anywhere faster than it is copied. Another codec is taken only if that is
 * clearly less, or, where space was asked for, if the rate is.
 */
#include "codec/codec_ops.h"

#include <math.h>

enum { TRY_EVERY = 4 };                             /* marks that encoded something */
static const double clearly = 0.95;                 /* of the time, or the bytes */
static const double fading = 0.97, smoothing = 0.5; /* of what was measured, from mark to mark */

/* Codecs that were left out of this build are no way. */
static void add(crn_choice *c, const char *text)
{
    if (c->n < CRN_CHOICES && crn_codec_parse(text, "", &c->way[c->n].setting) == CAIRN_OK)
        c->n++;
}

void crn_choice_init(crn_choice *c, crn_elem elem, const crn_codec_setting *asked)
{
    *c = (crn_choice){.space = asked->space};
    add(c, "none");
    c->way[0].rate = 1;
    add(c, "lz4:shuffle");
    add(c, "zstd:shuffle");
    if (elem == CRN_ELEM_BYTES) {
        add(c, "lz4");
        add(c, "zstd");
    } else {
        add(c, "zfp");
        add(c, "fpzip");
    }
    for (size_t i = 0; i < c->n; i++)
        c->way[i].setting.flat = asked->flat;
    c->now = c->space && c->n > 2 ? 2 : 0;
}

static bool is_known(const crn_choice *c, size_t i)
{
    return c->way[i].rate > 0;
}

/* What to try beside: all at first, then one after the other, now and then. */
size_t crn_choice_trials(const crn_choice *c, size_t trial[CRN_CHOICES])
{
    size_t n = 0;
    if (c->nmarks > 0 && c->nmarks % TRY_EVERY != 0)
        return 0;
    if (c->nmarks > 0) {
        trial[0] = 1 + c->nmarks / TRY_EVERY % (c->n - 1);
        return trial[0] != c->now;
    }
    for (size_t i = 1; i < c->n; i++)
        if (i != c->now)
            trial[n++] = i;
    return n;
}

static double follow(double before, double now)
{
    return before > 0 ? before + smoothing * (now - before) : now;
}

void crn_choice_saw(crn_choice *c, size_t i, uint64_t nbytes, uint64_t stored, double seconds)
{
    if (nbytes == 0 || i == 0)
        return;
    c->way[i].encode = follow(c->way[i].encode, seconds / (double)nbytes);
    c->way[i].rate = follow(c->way[i].rate, (double)stored / (double)nbytes);
}

/* While blocks are encoded others are being written: what is left of the time says the least that
 * storage takes. So the most that was seen counts, and fades. */
void crn_choice_saw_device(crn_choice *c, double seconds, uint64_t stored)
{
    if (stored > 0)
        c->device = fmax(seconds / (double)stored, fading * c->device);
}

/* A program may have been held for other reasons: the least counts, and grows. */
void crn_choice_saw_copy(crn_choice *c, double seconds, uint64_t nbytes)
{
    if (nbytes > 0)
        c->copy = fmin(seconds / (double)nbytes, c->copy > 0 ? c->copy / fading : INFINITY);
}

static double cost(const crn_choice *c, size_t i)
{
    const crn_way *w = &c->way[i];
    return c->space ? w->rate : w->encode + w->rate * fmax(c->device, c->copy);
}

bool crn_choice_decide(crn_choice *c)
{
    size_t best = c->now;
    c->nmarks++;
    for (size_t i = 0; i < c->n; i++)
        if (is_known(c, i) && (!is_known(c, best) || cost(c, i) < cost(c, best)))
            best = i;
    if (best == c->now || (is_known(c, c->now) && cost(c, best) > clearly * cost(c, c->now)))
        return false;
    c->now = best;
    return true;
}
