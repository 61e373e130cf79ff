/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A codec of a shared object for test_codec_foreign, which is honest with the option "good" and
 * misbehaves as the others say.
 */
#include <cairn/codec_plugin.h>
#include <string.h>

static int check(const char *options)
{
    static const char *const known[] = {"good", "lie",  "bound", "much",
                                        "none", "fail", "nan",   "all"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(options, known[i]) == 0)
            return 0;
    return options[0] != 0;
}

/* The upper half of each double, and how many there are. */
static size_t encode(const cairn_codec_block *b, const char *options, const void *values, void *dst,
                     size_t cap)
{
    const size_t n = 4 * b->nvalues;
    if (strcmp(options, "none") == 0)
        return 0;
    if (strcmp(options, "much") == 0)
        return cap + 1000;
    if (strcmp(options, "all") == 0)
        return cap; /* of memory that it has not written */
    if (b->bits != 64 || n > cap)
        return 0;
    for (size_t i = 0; i < b->nvalues; i++)
        memcpy((char *)dst + 4 * i, (const char *)values + 8 * i + 4, 4);
    return n;
}

static int decode(const cairn_codec_block *b, const char *options, const void *src, size_t n,
                  void *values)
{
    double *to = values;
    if (strcmp(options, "fail") == 0)
        return 1;
    memset(values, 0, b->nvalues * b->bits / 8);
    if (strcmp(options, "lie") == 0) /* all is well, and nothing is */
        return 0;
    for (size_t i = 0; b->bits == 64 && i < b->nvalues && 4 * i + 4 <= n; i++)
        memcpy((char *)values + 8 * i + 4, (const char *)src + 4 * i, 4);
    if (strcmp(options, "bound") == 0) /* one value in the middle */
        to[b->nvalues / 2] += 1;
    if (strcmp(options, "nan") == 0)
        memset(to, 0xff, 8);
    return 0;
}

const cairn_codec_table cairn_codec = {CAIRN_CODEC_VERSION, "bad", check, encode, decode};
