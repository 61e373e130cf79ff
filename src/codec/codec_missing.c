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

#if !CRN_WITH_LZ4
MISSING(lz4, 1, CRN_ELEMS_ALL);
#endif
#if !CRN_WITH_ZSTD
MISSING(zstd, 2, CRN_ELEMS_ALL);
#endif
#if !CRN_WITH_ZFP
MISSING(zfp, 3, CRN_ELEMS_FLOAT);
#endif
#if !CRN_WITH_FPZIP
MISSING(fpzip, 4, CRN_ELEMS_FLOAT);
#endif
