/* SPDX-License-Identifier: BSD-3-Clause */
#include "level/level.h"

const char *crn_level_name(crn_level level)
{
    static const char *const name[CRN_NLEVELS] = {"local", "partner", "encoded", "global"};
    return name[level];
}
