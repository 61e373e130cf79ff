/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The levels, one row each, cheapest first. Nobody else asks for the kind.
 */
#include "level/level_ops.h"

const crn_level_ops *const crn_level_table[CRN_NLEVELS] = {
    [CRN_LEVEL_LOCAL] = &crn_level_local,
    [CRN_LEVEL_PARTNER] = &crn_level_partner,
    [CRN_LEVEL_ENCODED] = &crn_level_encoded,
    [CRN_LEVEL_GLOBAL] = &crn_level_global,
};

const char *crn_level_name(crn_level level)
{
    return crn_level_table[level]->name;
}
