/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A codec of your own, in a shared object: for those that Cairn does not have. Build one that
 * exports a table called cairn_codec, and name its file in a configuration:
 *
 *     [variable temperature]
 *     codec = /path/to/libmine.so:level=3
 *     loss = abs 1e-6
 *
 * share/doc/Cairn/codec/ has a template, and a test that any such codec must pass.
 *
 * Nothing that it makes is believed: each block is decoded and compared before it counts, and is
 * stored without loss where it is not within the stated loss, or not the same where none is stated.
 * Values that are not finite it never sees. It does run in the program's process, as part of it: a
 * codec that writes where it must not, or crashes, takes the program along.
 *
 * Whoever reads such blocks needs the same file, by the codec of the variable or by the option
 * codec.plugins (CAIRN_CODEC_PLUGINS in the environment). A trail has the codec's name, never its
 * path.
 */
#ifndef CAIRN_CODEC_PLUGIN_H
#define CAIRN_CODEC_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_CODEC_VERSION 1 /* of the table */

/* What is to be stored: values of an array, one behind the other, the last index fastest. */
typedef struct cairn_codec_block {
    uint32_t bits;  /* of a value: 64 and 32 are floating point, 8 are bytes of anything */
    uint32_t ndims; /* of the array, 1 to 4 */
    uint64_t extent[4];
    uint64_t first; /* where in the array the block begins */
    size_t nvalues;
    double absolute, relative; /* |x - y| <= max(absolute, relative max(|x|, |y|)) is wanted; both
                                  0: nothing may be lost */
} cairn_codec_block;

typedef struct cairn_codec_table {
    uint32_t version; /* CAIRN_CODEC_VERSION */
    const char *name; /* on disk: 1 to 31 letters, digits, '.', '_' and '-'; never changed */

    /* Are these options, the text behind "file.so:", or ""? 0: yes. NULL: there are none. */
    int (*check)(const char *options);

    /* Encode into dst of cap bytes. Returns how many it took; 0: it cannot, or they do not fit. Any
     * thread may call this and decode, several at once. */
    size_t (*encode)(const cairn_codec_block *block, const char *options, const void *values,
                     void *dst, size_t cap);

    /* Decode n bytes, which encode made with the same block and options, into all of values. 0 when
     * that went well. The bytes are those that were stored, unless somebody has forged them. */
    int (*decode)(const cairn_codec_block *block, const char *options, const void *src, size_t n,
                  void *values);
} cairn_codec_table;

/* The table must be seen from outside, whatever is built around it: */
#define CAIRN_CODEC_EXPORT __attribute__((visibility("default")))
extern CAIRN_CODEC_EXPORT const cairn_codec_table cairn_codec;

#ifdef __cplusplus
}
#endif
#endif
