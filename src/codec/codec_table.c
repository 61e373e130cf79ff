/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of codecs.
 */
#include "codec/codec_ops.h"

static const crn_codec_ops *const table[] = {
    &crn_codec_none,  &crn_codec_lz4,     &crn_codec_zstd,      &crn_codec_zfp,
    &crn_codec_fpzip, &crn_codec_zfp_box, &crn_codec_fpzip_box, &crn_codec_shuffle,
    &crn_codec_f32,   &crn_codec_f16,     &crn_codec_foreign,
};

const crn_codec_ops *crn_codec_at(size_t index)
{
    return index < sizeof table / sizeof *table ? table[index] : NULL;
}

const crn_codec_ops *crn_codec_of_id(uint32_t id)
{
    for (size_t i = 0; crn_codec_at(i); i++)
        if (table[i]->id == id)
            return table[i];
    return NULL;
}

const crn_codec_ops *crn_codec_of_name(const char *name)
{
    for (size_t i = 0; crn_codec_at(i); i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}
