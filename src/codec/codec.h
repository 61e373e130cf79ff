/* SPDX-License-Identifier: BSD-3-Clause
 *
 * codec: turns a block's bytes into fewer bytes and back. Row 1.
 *
 *   name   id  values                  keeps
 *   none    0  any                     everything (also the template for a new codec)
 *   lz4     1  any                     everything; very fast
 *   zstd    2  any                     everything; smaller
 *   zfp     3  float, double           everything, a number of bits, or an absolute error
 *   fpzip   4  float, double           everything, or a number of leading bits
 *   f32     5  double                  single precision
 *   f16     6  float, double           half precision, up to 65504
 *
 * The ids are on disk and never change. Encoded bytes say by themselves how they are decoded, apart
 * from the id, the kind of values and the decoded length, which the block's table has.
 *
 * A result counts only if it is as good as was asked. Codecs of floating-point values refuse
 * infinities and NaN where they would lose them, and what they made is decoded again and compared
 * before it is handed out. "Store it as it is" is an ordinary answer of encode: CAIRN_NOTHING.
 *
 * Nothing here keeps state or allocates: the caller brings scratch memory, one per thread. Two
 * libraries do allocate a little inside: zfp (a few hundred bytes per call) and fpzip (about
 * 10 KiB per call, and it cannot report that there was none).
 *
 * To add a codec: 1. codec_<name>.c with a crn_codec_ops, after codec_none.c; 2. a line in
 * codec_table.c; 3. its libraries in CMakeLists.txt and tools/packages; 4. the table above and the
 * manual. tests/unit/test_codec.c finds it by the table.
 */
#ifndef CAIRN_CODEC_H
#define CAIRN_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* The kind of values in a block, as far as codecs care. */
typedef enum crn_elem { CRN_ELEM_BYTES, CRN_ELEM_F32, CRN_ELEM_F64, CRN_NELEMS } crn_elem;

size_t crn_elem_nbytes(crn_elem elem);

/* What is wanted. All zero but elem: everything is kept, with the codec's usual effort. */
typedef struct crn_codec_params {
    crn_elem elem;
    int effort;       /* lz4: acceleration, 1 to 65537; zstd: level, 1 to 19; 0: the usual one */
    int precision;    /* zfp, fpzip: bits kept of each value; 0: not limited */
    double tolerance; /* the largest absolute error of any value; 0: none stated */
} crn_codec_params;

typedef struct crn_codec_ops crn_codec_ops;

/* The codec with this id or name, or NULL; and the index-th, NULL after the last. */
const crn_codec_ops *crn_codec_of_id(uint32_t id);
const crn_codec_ops *crn_codec_of_name(const char *name);
const crn_codec_ops *crn_codec_at(size_t index);

const char *crn_codec_name(const crn_codec_ops *codec);
uint32_t crn_codec_id(const crn_codec_ops *codec);

/* Does it take values of this kind? Others are stored as they are. */
bool crn_codec_accepts(const crn_codec_ops *codec, crn_elem elem);

/* May decoded values differ from the encoded ones, with these parameters? */
bool crn_codec_is_lossy(const crn_codec_ops *codec, const crn_codec_params *p);

/* CAIRN_EINVAL with a sentence if the codec can never do what p asks. For a configuration. */
cairn_status crn_codec_check(const crn_codec_ops *codec, const crn_codec_params *p);

/*
 * Room that encode needs in dst for nbytes (it uses more than it returns), and the scratch memory,
 * aligned to 64 bytes, that encode needs, or, if p is NULL, decode. It may be 0.
 */
size_t crn_codec_bound(const crn_codec_ops *codec, size_t nbytes);
size_t crn_codec_scratch(const crn_codec_ops *codec, const crn_codec_params *p, size_t nbytes);

/*
 * Encode nbytes from src into dst, which has room for crn_codec_bound bytes; *ret_n is at most
 * nbytes. CAIRN_NOTHING: store src as it is, because the result would be larger, or would break the
 * tolerance, or the values are of a kind or size that the codec cannot take. CAIRN_EINVAL as for
 * crn_codec_check.
 */
cairn_status crn_codec_encode(const crn_codec_ops *codec, const crn_codec_params *p,
                              const void *src, size_t nbytes, void *dst, void *scratch,
                              size_t *ret_n);

/*
 * Decode n bytes from src into exactly nbytes at dst. Safe on any input: CAIRN_ECORRUPT when these
 * are not the bytes that encode made of nbytes of such values. dst may be partly written then.
 */
cairn_status crn_codec_decode(const crn_codec_ops *codec, crn_elem elem, const void *src, size_t n,
                              void *dst, size_t nbytes, void *scratch);

#endif
