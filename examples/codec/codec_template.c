/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A template for a codec of your own (<cairn/codec_plugin.h>): it keeps the upper bytes of each
 * value, 3 of 4 or 5 of 8, or as many as its options say. Build it, try it, use it:
 *
 *     cc -shared -fPIC -o libcut.so codec_template.c
 *     cc -o codec_check codec_check.c -ldl -lm && ./codec_check ./libcut.so
 *     CAIRN_VARIABLE_CODEC=$PWD/libcut.so CAIRN_VARIABLE_LOSS='rel 1e-3' ./program
 */
#include <cairn/codec_plugin.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a value that are kept. */
static size_t kept(const cairn_codec_block *block, const char *options)
{
    const size_t width = block->bits / 8, n = (size_t)atoi(options);
    if (n > 0 && n < width)
        return n;
    return width == 8 ? 5 : 3;
}

static int check(const char *options)
{
    return options[0] && (atoi(options) < 2 || atoi(options) > 7);
}

/* Values that lose too much by it are noticed by Cairn: it stores such blocks without loss. */
static size_t encode(const cairn_codec_block *block, const char *options, const void *values,
                     void *dst, size_t cap)
{
    const size_t width = block->bits / 8, n = kept(block, options);
    const int lossless = block->absolute == 0 && block->relative == 0;
    if (width == 1 || lossless || n * block->nvalues > cap)
        return 0;
    for (size_t i = 0; i < block->nvalues; i++) /* little-endian: the upper bytes are the last */
        memcpy((char *)dst + n * i, (const char *)values + width * i + (width - n), n);
    return n * block->nvalues;
}

static int decode(const cairn_codec_block *block, const char *options, const void *src, size_t n,
                  void *values)
{
    const size_t width = block->bits / 8, each = kept(block, options);
    if (width == 1 || n != each * block->nvalues)
        return 1;
    memset(values, 0, width * block->nvalues);
    for (size_t i = 0; i < block->nvalues; i++)
        memcpy((char *)values + width * i + (width - each), (const char *)src + each * i, each);
    return 0;
}

const cairn_codec_table cairn_codec = {CAIRN_CODEC_VERSION, "cut", check, encode, decode};
