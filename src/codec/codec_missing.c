/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Codecs whose libraries were not there when Cairn was built: known by name and number, so that
 * configurations and files which ask for them get an answer.
 */
#include "codec/codec_ops.h"

#define MISSING(codec, number, kinds)                                                              \
    static cairn_status ready_##codec(void)                                                        \
    {                                                                                              \
        return crn_fail(CAIRN_EUNSUPPORTED, "this Cairn was built without codec '" #codec          \
                                            "': build it with lib" #codec);                        \
    }                                                                                              \
    const crn_codec_ops crn_codec_##codec = {                                                      \
        .name = #codec, .id = (number), .elems = (kinds), .ready = ready_##codec}

#define MISSING_BOXES(codec, number)                                                               \
    const crn_codec_ops crn_codec_##codec##_box = {.name = #codec "-box",                          \
                                                   .id = (number),                                 \
                                                   .elems = CRN_ELEMS_FLOAT,                       \
                                                   .trusting = true,                               \
                                                   .ready = ready_##codec};                        \
    const crn_box_ops crn_##codec##_boxes = {0};                                                   \
    uint64_t crn_##codec##_param(crn_elem elem, uint32_t ndims, crn_mode mode, double value)       \
    {                                                                                              \
        (void)elem, (void)ndims, (void)mode, (void)value;                                          \
        return 0;                                                                                  \
    }                                                                                              \
    extern const crn_box_ops crn_##codec##_boxes

#if !CRN_WITH_LZ4
MISSING(lz4, 1, CRN_ELEMS_ALL);
#endif
#if !CRN_WITH_ZSTD
MISSING(zstd, 2, CRN_ELEMS_ALL);

size_t crn_zstd_work(size_t nbytes, int level)
{
    (void)nbytes, (void)level;
    return 0;
}

cairn_status crn_zstd_encode(int level, const void *src, size_t nbytes, void *dst, size_t cap,
                             void *work, size_t *ret_n)
{
    (void)level, (void)src, (void)nbytes, (void)dst, (void)cap, (void)work, (void)ret_n;
    return CAIRN_NOTHING;
}
#endif
#if !CRN_WITH_ZFP
MISSING(zfp, 3, CRN_ELEMS_FLOAT);
MISSING_BOXES(zfp, 5);
#endif
#if !CRN_WITH_FPZIP
MISSING(fpzip, 4, CRN_ELEMS_FLOAT);
MISSING_BOXES(fpzip, 6);
#endif
