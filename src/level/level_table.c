/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The levels, one row each, cheapest first. Nobody else asks for the kind.
 */
#include "level/level_ops.h"

const char *crn_level_name(crn_level level)
{
    static const char *const name[CRN_NLEVELS] = {"local", "partner", "encoded", "global"};
    return name[level];
}
