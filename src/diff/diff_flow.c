/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading while values are compared, for whatever is looked at: blocks that two variables cut in
 * the same way, or ranges of pieces that are cut differently. A thread takes some of the work into
 * each of its slots and lets it be read; while it compares one slot, the others are on their way.
 * Several threads that share the work have a joint result.
 */
#include "diff/diff.h"

/* What was started is waited for, also after a failure. */
cairn_status crn_diff_flow_run(const diff_flow *f, void *arg, size_t nslots)
{
    cairn_status rc = CAIRN_OK; /* CAIRN_NOTHING: all of the work is taken */
    size_t nstarted = 0, nfinished = 0;
    for (;;) {
        while (rc == CAIRN_OK && nstarted - nfinished < nslots) {
            rc = f->start(arg, nstarted % nslots);
            nstarted += rc != CAIRN_NOTHING;
        }
        if (nfinished == nstarted)
            return CRN_MIN(rc, CAIRN_OK);
        const size_t slot = nfinished++ % nslots;
        cairn_status end = f->finish(arg, slot);
        if (rc >= 0 && end < 0)
            rc = end;
        if (rc >= 0)
            f->compare(arg, slot);
    }
}

void crn_diff_joint_init(diff_joint *j, diff_row *row)
{
    *j = (diff_joint){.row = row,
                      .blank = {.bound = row->bound,
                                .fields = row->fields,
                                .order = row->order,
                                .at = row->at,
                                .global = row->global,
                                .ndims = row->ndims}};
    pthread_mutex_init(&j->mutex, NULL);
}

bool crn_diff_joint_add(diff_joint *j, const diff_row *row, cairn_status rc)
{
    pthread_mutex_lock(&j->mutex);
    crn_diff_row_add(j->row, row);
    if (rc < 0 && j->err.code == 0)
        j->err = *crn_err_peek();
    pthread_mutex_unlock(&j->mutex);
    return rc == CAIRN_OK;
}

cairn_status crn_diff_joint_end(diff_joint *j)
{
    pthread_mutex_destroy(&j->mutex);
    return j->err.code < 0 ? crn_err_give(&j->err) : CAIRN_OK;
}
