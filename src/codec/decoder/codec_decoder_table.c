/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the program decodes: the codecs whose decoders believe their input.
 */
#include "codec/codec_ops.h"

const crn_codec_ops *crn_codec_of_id(uint32_t id)
{
#if CRN_WITH_ZFP
    if (id == crn_codec_zfp.id)
        return &crn_codec_zfp;
    if (id == crn_codec_zfp_box.id)
        return &crn_codec_zfp_box;
#endif
#if CRN_WITH_FPZIP
    if (id == crn_codec_fpzip.id)
        return &crn_codec_fpzip;
    if (id == crn_codec_fpzip_box.id)
        return &crn_codec_fpzip_box;
#endif
    (void)id;
    return NULL;
}
