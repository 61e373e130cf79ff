/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names and options of levels, from the level table.
 */
#include "base/base.h"

typedef struct facts {
    const char *name;
    crn_opt_id mtbf, keep, every;
} facts;

/* The first level is every mark's: it has no option that says how often. */
#define OWN(id, word, survives, mtbf, keep)                                                        \
    {#word, CRN_OPT_PLAN_##mtbf, CRN_OPT_KEEP_##id, CRN_OPT_COUNT_OF},
#define ROW(id, word, survives, mtbf, keep, every, note)                                           \
    {#word, CRN_OPT_PLAN_##mtbf, CRN_OPT_KEEP_##id, CRN_OPT_LEVEL_##id},

static const facts level_facts[CRN_NLEVELS] = {CRN_LEVELS(OWN, ROW)};

const char *crn_level_name(crn_level level)
{
    return level_facts[level].name;
}

crn_opt_id crn_opt_mtbf(crn_level level)
{
    return level_facts[level].mtbf;
}

crn_opt_id crn_opt_keep(crn_level level)
{
    return level_facts[level].keep;
}

crn_opt_id crn_opt_every(crn_level level)
{
    return level_facts[level].every;
}
