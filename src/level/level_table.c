/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The levels' implementations, from the level table, and the callbacks of those whose files are
 * plain copies of parts. Nobody else asks for the kind.
 */
#include "level/level_ops.h"

#define OPS(id, word, ...) &crn_level_##word,

const crn_level_ops *const crn_level_table[CRN_NLEVELS] = {CRN_LEVELS(OPS, OPS)};

bool crn_level_holds(const crn_vault *v, crn_level level, const crn_manifest_mark *mark,
                     uint32_t rank)
{
    const crn_level_ops *ops = crn_level_table[level];
    return ops->holds ? ops->holds(v, mark, rank) : crn_role_holds(v, ops->role, mark, rank);
}

cairn_status crn_level_describe(crn_vault *v, crn_level level, const crn_manifest_mark *mark,
                                crn_ask *ask, size_t n)
{
    const crn_level_ops *ops = crn_level_table[level];
    if (ops->describe)
        return ops->describe(v, mark, ask, n);
    return crn_role_describe(v, ops->role, mark, ask, n);
}

cairn_status crn_level_load(crn_vault *v, crn_level level, const crn_manifest_mark *mark,
                            crn_want *want, size_t n)
{
    const crn_level_ops *ops = crn_level_table[level];
    return ops->load ? ops->load(v, mark, want, n) : crn_role_load(v, ops->role, mark, want, n);
}

const char *crn_role_name(uint32_t role)
{
    for (int l = 0; l < CRN_NLEVELS; l++)
        if (crn_level_table[l]->role == role)
            return crn_level_table[l]->file;
    return NULL;
}
