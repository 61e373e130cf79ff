/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much the bits of a value tell of the bits of its neighbour. Bits that are noise tell nothing,
 * and need not be stored (Kloewer, Razinger, Dominguez, Dueben and Palmer 2021).
 */
#include "validate/validate.h"

#include <math.h>

/* Of the standard normal distribution, what is exceeded on either side with probability 0.01. */
#define QUANTILE 2.5758293035489004

static uint32_t mantissa_of(const crn_bits *b)
{
    return b->width == 64 ? 52 : 23;
}

static uint64_t value_at(const crn_bits *b, const void *row, size_t i)
{
    uint64_t wide;
    uint32_t narrow;
    if (b->width == 64) {
        memcpy(&wide, (const unsigned char *)row + i * 8, 8);
        return wide;
    }
    memcpy(&narrow, (const unsigned char *)row + i * 4, 4);
    return narrow;
}

static bool is_finite(const crn_bits *b, uint64_t v)
{
    const uint64_t exponent = b->width == 64 ? 0x7ffULL << 52 : 0xffULL << 23;
    return (v & exponent) != exponent;
}

void crn_bits_add(crn_bits *b, const void *row, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint64_t x = value_at(b, row, i - 1), y = value_at(b, row, i), xy = x & y;
        if (!is_finite(b, x) || !is_finite(b, y))
            continue;
        b->n++;
        for (uint32_t k = 0; k < b->width; k++) {
            b->first[k] += x >> k & 1;
            b->next[k] += y >> k & 1;
            b->both[k] += xy >> k & 1;
        }
    }
}

/* p log2(p / (q r)): of one of the four outcomes. */
static double outcome(double p, double q, double r)
{
    return p > 0 ? p * log2(p / (q * r)) : 0;
}

static double information(const crn_bits *b, uint32_t k)
{
    const double n = (double)b->n, q = (double)b->first[k] / n, r = (double)b->next[k] / n;
    const double both = (double)b->both[k] / n, only_q = q - both, only_r = r - both;
    const double neither = (n - (double)b->first[k] - (double)b->next[k] + (double)b->both[k]) / n;
    return outcome(both, q, r) + outcome(only_q, q, 1 - r) + outcome(only_r, 1 - q, r) +
           outcome(neither, 1 - q, 1 - r);
}

/* What n tosses of a coin seem to tell of themselves, at most, with probability 0.99. */
static double by_chance(uint64_t n)
{
    const double p = fmin(0.5 + QUANTILE / (2 * sqrt((double)n)), 1);
    const double entropy = -p * log2(p) - (p < 1 ? (1 - p) * log2(1 - p) : 0);
    return 1 - entropy;
}

double crn_bits_information(const crn_bits *b, double ret[64])
{
    double sum = 0;
    memset(ret, 0, 64 * sizeof *ret);
    for (uint32_t k = 0; b->n > 0 && k < b->width; k++) {
        const double i = information(b, k);
        ret[k] = i > by_chance(b->n) ? i : 0;
        sum += ret[k];
    }
    return sum;
}

int crn_bits_needed(const crn_bits *b, double share)
{
    double each[64], held = 0;
    const double all = crn_bits_information(b, each);
    const uint32_t mantissa = mantissa_of(b);
    int nbits = 0;
    if (all <= 0)
        return -1;
    for (uint32_t k = b->width; k-- > mantissa;)
        held += each[k];
    for (uint32_t k = mantissa; k-- > 0 && held < share * all; nbits++)
        held += each[k];
    return nbits;
}
