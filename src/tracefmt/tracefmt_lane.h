/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What building and merging share: putting a lane in order once its structure is known.
 */
#ifndef CAIRN_TRACEFMT_LANE_H
#define CAIRN_TRACEFMT_LANE_H

#include "tracefmt/tracefmt_trace.h"

/*
 * Give the symbols that the root reaches new numbers, bodies before the rules that hold them, and
 * drop the others; gaps and times follow.
 */
cairn_status crn_lane_order(crn_lane *l);

#endif
