/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The local level: a rank's own part, on its node. The null member of the family: a mark is here
 * before it is raised to anything, so there is nothing to copy.
 */
#include "level/level_ops.h"

static cairn_status local_check(const crn_vault *v)
{
    (void)v;
    return CAIRN_OK;
}

/* Nothing to do but to see that the mark is there, which the other levels find on the way. */
static cairn_status local_raise(crn_vault *v, uint64_t version, uint64_t keep,
                                crn_raise_stats *stats)
{
    crn_part *part;
    crn_mark *mark = NULL;
    (void)keep, (void)stats;
    cairn_status rc = crn_vault_own(v, &part);
    if (rc == CAIRN_OK)
        rc = crn_part_load(part, version, &mark);
    crn_mark_free(mark);
    return crn_comm_agree(v->comm, rc);
}

static cairn_status local_each(crn_vault *v, cairn_status (*visit)(crn_part *, uint64_t),
                               uint64_t arg)
{
    crn_part_id id = crn_vault_own_id(v);
    return crn_vault_visit(v, &id, visit, arg);
}

const crn_level_ops crn_level_local = {
    .role = CRN_ROLE_OWN,
    .file = "own",
    .check = local_check,
    .raise = local_raise,
    .each = local_each,
};
