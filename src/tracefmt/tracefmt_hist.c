/* SPDX-License-Identifier: BSD-3-Clause */
#include "tracefmt/tracefmt.h"

#include <math.h>

/* Join b into a: counts, extremes, and Chan's update of mean and squared distances. */
static void bin_join(crn_bin *a, const crn_bin *b)
{
    double n = (double)(a->n + b->n), d = b->mean - a->mean;
    a->m2 += b->m2 + d * d * ((double)a->n * (double)b->n / n);
    a->mean += d * ((double)b->n / n);
    a->n += b->n;
    a->min = CRN_MIN(a->min, b->min);
    a->max = CRN_MAX(a->max, b->max);
    a->mean = CRN_MIN(CRN_MAX(a->mean, (double)a->min), (double)a->max); /* against rounding */
}

/* How much the squared distances grow when two neighbours become one bin. */
static double join_cost(const crn_bin *a, const crn_bin *b)
{
    double d = b->mean - a->mean;
    double an = (double)(int64_t)a->n, bn = (double)(int64_t)b->n;
    return d * d * (an * bn / (an + bn));
}

static void remove_bin(crn_hist *h, int32_t i)
{
    h->nbins--;
    h->recent = 0;
    memmove(&h->bin[i], &h->bin[i + 1], (size_t)(h->nbins - i) * sizeof *h->bin);
}

/* Which bin and its next one became one. */
static int32_t unite_cheapest(crn_hist *h)
{
    int32_t best = 0;
    double least = join_cost(&h->bin[0], &h->bin[1]);
    for (int32_t i = 1; i + 1 < h->nbins; i++) {
        double cost = join_cost(&h->bin[i], &h->bin[i + 1]);
        if (cost < least) {
            best = i;
            least = cost;
        }
    }
    bin_join(&h->bin[best], &h->bin[best + 1]);
    remove_bin(h, best + 1);
    return best;
}

static void insert_bin(crn_hist *h, int32_t i, crn_bin bin)
{
    memmove(&h->bin[i + 1], &h->bin[i], (size_t)(h->nbins - i) * sizeof *h->bin);
    h->bin[i] = bin;
    h->nbins++;
}

/* Unite bins until at most nbins are left. */
static void shrink(crn_hist *h, int32_t nbins)
{
    while (h->nbins > nbins)
        unite_cheapest(h);
}

/* Add a bin: into those that it overlaps, or as a new one at i, the first bin that ends after it.
 */
static void add_bin(crn_hist *h, crn_bin bin)
{
    int32_t i = 0;
    while (i < h->nbins && h->bin[i].max < bin.min)
        i++;
    while (i < h->nbins && h->bin[i].min <= bin.max) {
        bin_join(&bin, &h->bin[i]);
        remove_bin(h, i);
    }
    if (h->nbins == CRN_HIST_BINS) {
        unite_cheapest(h);
        add_bin(h, bin); /* the bins have moved */
        return;
    }
    insert_bin(h, i, bin);
}

static void note_extremes(crn_hist *h, int64_t min, int32_t min_rank, int64_t max, int32_t max_rank)
{
    if (h->nbins == 0 || min < h->bin[0].min)
        h->min_rank = min_rank;
    if (h->nbins == 0 || max > h->bin[h->nbins - 1].max)
        h->max_rank = max_rank;
}

void crn_hist_add_slow(crn_hist *h, int64_t v, uint64_t n, int32_t rank)
{
    note_extremes(h, v, rank, v, rank);
    int32_t i = 0;
    while (i < h->nbins && h->bin[i].max < v)
        i++;
    bool between = i == h->nbins || v < h->bin[i].min;
    if (between && h->nbins == CRN_HIST_BINS) {
        int32_t united = unite_cheapest(h);
        between = i != united + 1; /* or it lies within the new one */
        i -= i > united;
    }
    if (between)
        insert_bin(h, i, (crn_bin){.n = n, .min = v, .max = v, .mean = (double)v});
    else
        crn_bin_add(&h->bin[i], v, n);
    h->recent = i;
}

void crn_hist_merge(crn_hist *h, const crn_hist *other)
{
    if (other->nbins == 0)
        return;
    note_extremes(h, other->bin[0].min, other->min_rank, other->bin[other->nbins - 1].max,
                  other->max_rank);
    for (int32_t i = 0; i < other->nbins; i++)
        add_bin(h, other->bin[i]);
}

void crn_hist_share(crn_hist *h, uint64_t n)
{
    for (int32_t i = 0; i < h->nbins; i++) {
        crn_bin *bin = &h->bin[i];
        const uint64_t all = bin->n;
        bin->n = CRN_MAX((all + n / 2) / n, 1);
        bin->m2 *= (double)bin->n / (double)all;
    }
}

uint64_t crn_hist_count(const crn_hist *h)
{
    uint64_t n = 0;
    for (int32_t i = 0; i < h->nbins; i++)
        n += h->bin[i].n;
    return n;
}

static crn_bin joined(const crn_bin *bin, int32_t first, int32_t last)
{
    crn_bin all = bin[first];
    for (int32_t i = first + 1; i <= last; i++)
        bin_join(&all, &bin[i]);
    return all;
}

static crn_bin whole(const crn_hist *h)
{
    return h->nbins > 0 ? joined(h->bin, 0, h->nbins - 1) : (crn_bin){0};
}

double crn_hist_mean(const crn_hist *h)
{
    return whole(h).mean;
}

double crn_hist_variance(const crn_hist *h)
{
    crn_bin all = whole(h);
    return all.n > 0 ? all.m2 / (double)all.n : 0;
}

/* Take n values away at the end where bin i is; step: towards the other end. The bin that is left.
 */
static int32_t take_away(crn_bin *bin, int32_t i, int32_t step, uint64_t n)
{
    while (n >= bin[i].n) {
        n -= bin[i].n;
        i += step;
    }
    bin[i].m2 *= (double)(bin[i].n - n) / (double)bin[i].n;
    bin[i].n -= n;
    return i;
}

crn_core crn_hist_core(const crn_hist *h)
{
    const uint64_t n = crn_hist_count(h), cut = n / 10;
    crn_bin bin[CRN_HIST_BINS];
    if (n == 0)
        return (crn_core){.kept = 1};
    memcpy(bin, h->bin, sizeof bin);
    const int32_t first = take_away(bin, 0, 1, cut), last = take_away(bin, h->nbins - 1, -1, cut);
    const crn_bin left = joined(bin, first, last);
    bin[first].n += cut;
    bin[last].n += cut;
    const crn_bin drawn_in = joined(bin, first, last);
    return (crn_core){.n = (double)n,
                      .kept = (double)left.n / (double)n,
                      .mean = left.mean,
                      .variance = n > 1 ? drawn_in.m2 / (double)(n - 1) : 0};
}

void crn_hist_scale(crn_hist *h, double by)
{
    for (int32_t i = 0; i < h->nbins; i++) {
        crn_bin *bin = &h->bin[i];
        bin->min = (int64_t)((double)bin->min * by);
        bin->max = (int64_t)ceil((double)bin->max * by);
        bin->mean *= by;
        bin->m2 *= by * by;
    }
}

int64_t crn_hist_draw(const crn_hist *h, uint64_t random)
{
    uint64_t n = crn_hist_count(h);
    if (n == 0)
        return 0;
    int32_t i = 0;
    for (random %= n; random >= h->bin[i].n; i++)
        random -= h->bin[i].n;
    const crn_bin *bin = &h->bin[i];
    return bin->min == bin->max ? bin->min : (int64_t)llround(bin->mean);
}

enum { PARTS = UINT16_MAX };

/* Where within its bin: mean and deviation are noise beyond that. */
static uint16_t part_of(double v, double width)
{
    double part = v / width * PARTS + 0.5;
    return part < 0 ? 0 : part > PARTS ? PARTS : (uint16_t)part;
}

/* Bins follow each other, so each is given relative to the end of the one before. */
void crn_hist_put(crn_buf *b, const crn_hist *h)
{
    crn_put_u8(b, (uint8_t)h->nbins);
    crn_put_svar(b, h->min_rank);
    crn_put_svar(b, h->max_rank);
    uint64_t before = 0;
    for (int32_t i = 0; i < h->nbins; i++) {
        const crn_bin *bin = &h->bin[i];
        crn_put_var(b, bin->n);
        crn_put_svar(b, (int64_t)((uint64_t)bin->min - before));
        crn_put_var(b, (uint64_t)bin->max - (uint64_t)bin->min);
        if (bin->min != bin->max) {
            double width = (double)bin->max - (double)bin->min;
            crn_put_u16(b, part_of(bin->mean - (double)bin->min, width));
            crn_put_u16(b, part_of(sqrt(bin->m2 / (double)bin->n), width));
        }
        before = (uint64_t)bin->max;
    }
}

static crn_bin get_bin(crn_cursor *c, uint64_t before)
{
    crn_bin bin = {.n = crn_get_var_max(c, CRN_SEQ_MAX)};
    bin.min = (int64_t)(before + (uint64_t)crn_get_svar(c));
    uint64_t width = crn_get_var(c);
    crn_cursor_expect(c, bin.n > 0 && width <= (uint64_t)INT64_MAX - (uint64_t)bin.min);
    bin.max = c->failed ? bin.min : (int64_t)((uint64_t)bin.min + width);
    bin.mean = (double)bin.min;
    if (width > 0) {
        bin.mean += (double)width * crn_get_u16(c) / PARTS;
        double sd = (double)width * crn_get_u16(c) / PARTS;
        bin.m2 = sd * sd * (double)bin.n;
    }
    return bin;
}

cairn_status crn_hist_get(crn_cursor *c, crn_hist *ret)
{
    crn_hist h = {.nbins = crn_get_u8(c)};
    h.min_rank = (int32_t)crn_get_svar(c);
    h.max_rank = (int32_t)crn_get_svar(c);
    crn_cursor_expect(c, h.nbins > 0 && h.nbins <= CRN_HIST_BINS);
    uint64_t before = 0;
    for (int32_t i = 0; i < h.nbins && !c->failed; i++) {
        h.bin[i] = get_bin(c, before);
        crn_cursor_expect(c, i == 0 || h.bin[i].min > h.bin[i - 1].max);
        before = (uint64_t)h.bin[i].max;
    }
    CRN_TRY(crn_cursor_status(c, "a histogram"));
    *ret = h;
    return CAIRN_OK;
}

/*
 * Times span nine decades and are noise below a few per cent: codes are steps of 1/16 octave, of
 * which a neighbour's difference fits one byte.
 */
enum { TIME_CODE_MAX = 16 * 62 };

static uint64_t time_code(double ns)
{
    return ns < 1 ? 0 : CRN_MIN((uint64_t)(16 * log2(ns) + 1.5), TIME_CODE_MAX);
}

static double time_of(uint64_t code)
{
    return code == 0 ? 0 : exp2((double)(code - 1) / 16);
}

void crn_hist_put_time(crn_buf *b, const crn_hist *full)
{
    crn_hist h = *full;
    shrink(&h, CRN_TIME_BINS);
    crn_put_u8(b, (uint8_t)h.nbins);
    if (h.nbins > 0) {
        crn_put_var(b, (uint64_t)h.min_rank);
        crn_put_var(b, (uint64_t)h.max_rank);
    }
    uint64_t before = 0;
    for (int32_t i = 0; i < h.nbins; i++) {
        const crn_bin *bin = &h.bin[i];
        uint64_t min = CRN_MAX(time_code((double)bin->min), before);
        uint64_t mean = CRN_MAX(time_code(bin->mean), min);
        uint64_t max = CRN_MAX(time_code((double)bin->max), mean);
        crn_put_var(b, bin->n);
        crn_put_var(b, min - before);
        if (bin->n > 1) {
            crn_put_var(b, mean - min);
            crn_put_var(b, max - mean);
            crn_put_var(b, time_code(sqrt(bin->m2 / (double)bin->n)));
        }
        before = max;
    }
}

static crn_bin get_time_bin(crn_cursor *c, uint64_t *before)
{
    crn_bin bin = {.n = crn_get_var_max(c, CRN_SEQ_MAX)};
    uint64_t min = *before + crn_get_var_max(c, TIME_CODE_MAX), mean = min, max = min, sd = 0;
    if (bin.n > 1) {
        mean += crn_get_var_max(c, TIME_CODE_MAX);
        max = mean + crn_get_var_max(c, TIME_CODE_MAX);
        sd = crn_get_var_max(c, TIME_CODE_MAX);
    }
    crn_cursor_expect(c, bin.n > 0 && max <= TIME_CODE_MAX);
    if (!c->failed) {
        bin.min = (int64_t)time_of(min);
        bin.max = (int64_t)time_of(max);
        bin.mean = time_of(mean);
        bin.m2 = time_of(sd) * time_of(sd) * (double)bin.n;
    }
    *before = max;
    return bin;
}

cairn_status crn_hist_get_time(crn_cursor *c, crn_hist *ret)
{
    crn_hist h = {.nbins = crn_get_u8(c)};
    crn_cursor_expect(c, h.nbins <= CRN_TIME_BINS);
    if (h.nbins > 0) {
        h.min_rank = (int32_t)crn_get_var_max(c, INT32_MAX);
        h.max_rank = (int32_t)crn_get_var_max(c, INT32_MAX);
    }
    uint64_t before = 0;
    for (int32_t i = 0; i < h.nbins && !c->failed; i++)
        h.bin[i] = get_time_bin(c, &before);
    CRN_TRY(crn_cursor_status(c, "a histogram of times"));
    *ret = h;
    return CAIRN_OK;
}
