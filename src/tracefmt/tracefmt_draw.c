/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Below 100 per cent: groups of a column whose values differ by less than the margin share
 * histograms.
 */
#include "tracefmt/tracefmt_merge_impl.h"

cairn_status crn_lane_draw(const crn_trace *t, size_t lane)
{
    (void)t, (void)lane;
    return CAIRN_OK;
}
