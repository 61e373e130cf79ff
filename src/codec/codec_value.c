/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tests that stand between a lossy codec and the disk.
 */
#include "codec/codec_ops.h"

#include <float.h>
#include <math.h>

bool crn_codec_all_finite(crn_elem elem, const void *data, size_t nbytes)
{
    if (elem == CRN_ELEM_BYTES)
        return true;
    size_t n = nbytes / crn_elem_nbytes(elem);
    bool finite = true; /* without an early end, so that the loop runs on vectors */
    for (size_t i = 0; i < n; i++)
        finite &= fabs(crn_codec_load(elem, data, i)) <= DBL_MAX;
    return finite;
}

bool crn_codec_all_close(crn_elem elem, const void *a, const void *b, size_t nbytes,
                         double tolerance)
{
    if (!crn_codec_all_finite(elem, b, nbytes))
        return false;
    size_t n = nbytes / crn_elem_nbytes(elem);
    bool close = true;
    for (size_t i = 0; tolerance > 0 && i < n; i++)
        close &= fabs(crn_codec_load(elem, a, i) - crn_codec_load(elem, b, i)) <= tolerance;
    return close;
}
