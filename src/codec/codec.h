/* SPDX-License-Identifier: BSD-3-Clause
 *
 * codec: turns a block's bytes into fewer bytes and back, without losing any. Row 1.
 *
 *   name   id  values          good for
 *   none    0  any             (the template for a new codec)
 *   lz4     1  any             speed
 *   zstd    2  any             size
 *   zfp     3  float, double   smooth fields
 *   fpzip   4  float, double   smooth fields; smaller and slower
 *
 * The ids are on disk and never change; docs/format.md says what the bytes are. Whoever decodes
 * must know the id, the kind of values and the decoded length, which the block's table has.
 *
 * A result counts only if it is as good as was asked: what a codec of floating-point values made is
 * decoded again and compared before it is handed out. "Store it as it is" is an ordinary answer of
 * encode: CAIRN_NOTHING.
 *
 * Nothing here keeps state or allocates, but for the processes of crn_codec_decode_apart: the
 * caller brings scratch memory, one per thread. Two libraries do allocate a little inside: zfp (a
 * few hundred bytes per call) and fpzip (about 10 KiB per call, and it cannot report that there was
 * none).
 *
 * To add a codec: 1. codec_<name>.c with a crn_codec_ops, after codec_none.c; 2. a line in
 * codec_table.c and in codec_missing.c; 3. its library in cmake/CairnParts.cmake, CMakeLists.txt
 * and tools/packages; 4. the table above, the one in docs/format.md, and the option variable.codec.
 * tests/unit/test_codec.c finds it by the table.
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

typedef struct crn_codec_ops crn_codec_ops;

/* The codec with this id or name, or NULL; and the index-th, NULL after the last. */
const crn_codec_ops *crn_codec_of_id(uint32_t id);
const crn_codec_ops *crn_codec_of_name(const char *name);
const crn_codec_ops *crn_codec_at(size_t index);

const char *crn_codec_name(const crn_codec_ops *codec);
uint32_t crn_codec_id(const crn_codec_ops *codec);

/* Can it be used? CAIRN_EUNSUPPORTED when it was left out of this build, or when its library cannot
 * be loaded, which happens here at the latest. */
cairn_status crn_codec_ready(const crn_codec_ops *codec);

/* Does it take values of this kind? Others are stored as they are. */
bool crn_codec_accepts(const crn_codec_ops *codec, crn_elem elem);

/*
 * Room that encode needs in dst for nbytes (it uses more than it returns), and the scratch memory,
 * aligned to CRN_CODEC_ALIGN bytes, that encode and decode need. It may be 0.
 */
enum { CRN_CODEC_ALIGN = 64 };
size_t crn_codec_bound(const crn_codec_ops *codec, size_t nbytes);
size_t crn_codec_encode_scratch(const crn_codec_ops *codec, size_t nbytes);
size_t crn_codec_decode_scratch(const crn_codec_ops *codec);

/*
 * Encode nbytes from src into dst, which has room for crn_codec_bound bytes; *ret_n is at most
 * nbytes. CAIRN_EUNSUPPORTED: as crn_codec_ready. CAIRN_NOTHING: store src as it is, because the
 * result would be larger, or the values are of a kind or size that the codec cannot take.
 * CAIRN_ENOMEM, CAIRN_EINTERNAL: the library failed.
 */
cairn_status crn_codec_encode(const crn_codec_ops *codec, crn_elem elem, const void *src,
                              size_t nbytes, void *dst, void *scratch, size_t *ret_n);

/*
 * Decode n bytes from src into exactly nbytes at dst. Safe on any damage: CAIRN_ECORRUPT when these
 * are not the bytes that encode made of nbytes of such values. dst may be partly written then.
 */
cairn_status crn_codec_decode(const crn_codec_ops *codec, crn_elem elem, const void *src, size_t n,
                              void *dst, size_t nbytes, void *scratch);

/*
 * The same, and safe on any input, also such as a forger has made. Codecs whose decoders believe
 * their input (zfp, fpzip) decode in a process of their own that can do nothing else; if that
 * crashes or does not end, these bytes are damaged, and the next ones go to another process. Any
 * thread may call it. CAIRN_EIO, CAIRN_EUNSUPPORTED when there can be no such process.
 */
cairn_status crn_codec_decode_apart(const crn_codec_ops *codec, crn_elem elem, const void *src,
                                    size_t n, void *dst, size_t nbytes, void *scratch);

#endif
