/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The encoded level: parity over the nodes of a group. Its row of the table.
 */
#include "level/level_encoded.h"

static cairn_status encoded_check(const crn_vault *v)
{
    const int group = v->opt.group, nparity = v->opt.nparity, nnodes = v->nodes.nnodes;
    CRN_FAIL_IF(!v->local, CAIRN_EINVAL,
                "level 'encoded' needs node-local storage: name a directory with level.local");
    CRN_TRY(crn_erasure_check());
    CRN_FAIL_IF(nparity < 1, CAIRN_EINVAL, "level 'encoded' needs at least one parity, not %d",
                nparity);
    CRN_FAIL_IF(group <= nparity, CAIRN_EINVAL,
                "a group of %d nodes cannot lose %d of them: the group must be larger than the "
                "parity",
                group, nparity);
    CRN_FAIL_IF(nnodes < group, CAIRN_EINVAL,
                "level 'encoded' needs a group of %d nodes, and this job has %d", group, nnodes);
    int largest = nnodes / (nnodes / group) + (nnodes % (nnodes / group) != 0);
    CRN_FAIL_IF(largest > CRN_ERASURE_MAX, CAIRN_EINVAL,
                "a group of %d nodes is too large: at most %d are possible", largest,
                CRN_ERASURE_MAX);
    return CAIRN_OK;
}

static cairn_status encoded_each(crn_vault *v, cairn_status (*visit)(crn_part *part, uint64_t arg),
                                 uint64_t arg)
{
    if (encoded_check(v) < 0) /* then it has no files, either */
        return CAIRN_OK;
    for (int i = 0; i < crn_sets_count(v); i++) {
        crn_set set;
        CRN_TRY(crn_set_init(&set, v, i));
        crn_part_id id = crn_set_file(v, &set);
        crn_set_done(&set);
        CRN_TRY(crn_vault_visit(v, &id, visit, arg));
    }
    return CAIRN_OK;
}

const crn_level_ops crn_level_encoded = {
    .role = CRN_ROLE_PARITY,
    .file = "parity",
    .check = encoded_check,
    .raise = crn_encoded_raise,
    .each = encoded_each,
    .survey = crn_encoded_survey,
    .holds = crn_encoded_holds,
    .describe = crn_encoded_describe,
    .load = crn_encoded_load,
};
