/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A test that any codec of a shared object must pass: codec_check FILE.so [OPTIONS]
 *
 * Blocks of 1 to 4 dimensions and odd sizes, of bytes and of floating-point values of both widths,
 * constant, smooth, random, subnormal and of a huge range, with and without a stated loss. Never
 * may it write beyond its memory, fail on what it made itself, or differ from call to call. Blocks
 * that do not keep their loss are counted: Cairn stores those without it.
 */
#include <cairn/codec_plugin.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVALUES = 4096, GUARD = 256, FILL = 0xa5 };

static const cairn_codec_table *codec;
static const char *options = "";
static unsigned nfailed, nblocks, nrefused, nkept;
static double total, stored;

static void fail(const cairn_codec_block *b, const char *what)
{
    enum { SHOWN = 20 };
    if (nfailed++ >= SHOWN)
        return;
    printf("%u-bit values, %u dimensions, %zu of them, loss %g %g: %s\n", b->bits, b->ndims,
           b->nvalues, b->absolute, b->relative, what);
}

static uint64_t random_state = 1;

static double unit(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) * 0x1p-53;
}

static double value(int kind, size_t i)
{
    switch (kind) {
    case 0:
        return 3.25;
    case 1:
        return 100 * sin((double)i / 20);
    case 2:
        return unit() - 0.5;
    case 3:
        return (unit() - 0.5) * 1e-40;
    default:
        return ldexp(unit() - 0.5, (int)(unit() * 200) - 100);
    }
}

static void make(const cairn_codec_block *b, int kind, unsigned char *to)
{
    for (size_t i = 0; i < b->nvalues; i++) {
        const double x = value(kind, i);
        const float single = (float)x;
        if (b->bits == 64)
            memcpy(to + 8 * i, &x, 8);
        else if (b->bits == 32)
            memcpy(to + 4 * i, &single, 4);
        else
            to[i] = (unsigned char)(kind == 2 ? unit() * 256 : x);
    }
}

static double number(const cairn_codec_block *b, const unsigned char *from, size_t i)
{
    double x;
    float single;
    memcpy(&x, from + 8 * i * (b->bits == 64), 8);
    memcpy(&single, from + 4 * i * (b->bits == 32), 4);
    return b->bits == 64 ? x : single;
}

static int keeps(const cairn_codec_block *b, const unsigned char *x, const unsigned char *y)
{
    const size_t nbytes = b->nvalues * b->bits / 8;
    if (b->bits == 8 || (b->absolute == 0 && b->relative == 0))
        return memcmp(x, y, nbytes) == 0;
    for (size_t i = 0; i < b->nvalues; i++) {
        const double u = number(b, x, i), v = number(b, y, i);
        if (!(fabs(u - v) <= fmax(b->absolute, b->relative * fmax(fabs(u), fabs(v)))))
            return 0;
    }
    return 1;
}

static int is_untouched(const unsigned char *at)
{
    for (size_t i = 0; i < GUARD; i++)
        if (at[i] != FILL)
            return 0;
    return 1;
}

static void check_block(const cairn_codec_block *b, int kind)
{
    static unsigned char x[8 * NVALUES], y[8 * NVALUES + GUARD], first[8 * NVALUES + GUARD],
        again[8 * NVALUES + GUARD];
    const size_t nbytes = b->nvalues * b->bits / 8;
    make(b, kind, x);
    memset(first, FILL, sizeof first);
    memset(again, FILL, sizeof again);
    memset(y, FILL, sizeof y);
    nblocks++;
    const size_t n = codec->encode(b, options, x, first, nbytes);
    if (n > nbytes || !is_untouched(first + nbytes)) {
        fail(b, "encode has written or claims more than there is room for");
        return;
    }
    if (n == 0) {
        nrefused++;
        return;
    }
    if (codec->encode(b, options, x, again, nbytes) != n || memcmp(first, again, n) != 0)
        fail(b, "encode makes other bytes of the same values");
    if (codec->encode(b, options, x, again, n / 2) > n / 2 || !is_untouched(again + nbytes))
        fail(b, "encode ignores that there is little room");
    if (codec->decode(b, options, first, n, y) != 0)
        fail(b, "decode fails on what encode made");
    if (!is_untouched(y + nbytes))
        fail(b, "decode has written beyond the values");
    total += (double)nbytes;
    stored += (double)n;
    nkept += keeps(b, x, y) != 0;
}

static void check_shape(uint32_t ndims, const uint64_t *extent, size_t nvalues)
{
    static const double loss[][2] = {{0, 0}, {1e-3, 0}, {0, 1e-3}, {1e-30, 0}, {1e-3, 1e-6}};
    static const uint32_t bits[] = {8, 32, 64};
    cairn_codec_block b = {.ndims = ndims, .nvalues = nvalues};
    memcpy(b.extent, extent, ndims * sizeof *extent);
    for (size_t w = 0; w < 3; w++)
        for (size_t l = 0; l < sizeof loss / sizeof *loss; l++)
            for (int kind = 0; kind < 5; kind++) {
                b.bits = bits[w];
                b.absolute = loss[l][0];
                b.relative = loss[l][1];
                b.first = nvalues % 7;
                check_block(&b, kind);
            }
}

int main(int argc, char **argv)
{
    void *file = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    codec = file ? dlsym(file, "cairn_codec") : NULL;
    options = argc > 2 ? argv[2] : "";
    if (!codec) {
        printf("usage: codec_check FILE.so [OPTIONS]; %s\n", argc > 1 ? dlerror() : "");
        return 2;
    }
    if (codec->version != CAIRN_CODEC_VERSION || !codec->name || !codec->encode || !codec->decode ||
        (codec->check ? codec->check(options) != 0 : options[0] != 0)) {
        printf("its table is not of version %d, is not whole, or refuses the options\n",
               CAIRN_CODEC_VERSION);
        return 1;
    }
    for (size_t n = 1; n <= NVALUES; n = n * 3 + 1)
        check_shape(1, (uint64_t[]){n}, n);
    check_shape(2, (uint64_t[]){61, 67}, 61 * 67);
    check_shape(3, (uint64_t[]){100, 17, 19}, 1001);
    check_shape(4, (uint64_t[]){5, 5, 7, 9}, 5 * 5 * 7 * 9);
    printf("%s: %u blocks, %u refused, %u of the others within their loss, rate %.2f, %u faults\n",
           codec->name, nblocks, nrefused, nkept, stored > 0 ? total / stored : 0, nfailed);
    return nfailed > 0;
}
