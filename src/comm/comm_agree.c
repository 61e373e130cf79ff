/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One status for all ranks: the base of every collective that must not half succeed.
 */
#include "comm/comm_ops.h"

/* A failure as it travels: the record without its frames, which mean nothing elsewhere. */
typedef struct story {
    int32_t code, sys, rank;
    char text[CRN_ERR_TEXT];
} story;

static void describe(const crn_comm *c, cairn_status code, story *s)
{
    crn_err err;
    crn_err_take(&err);
    if (err.code != code) { /* a bare code: whatever the record holds is another failure's */
        err = (crn_err){.code = code, .rank = -1};
        snprintf(err.text, sizeof err.text, "%s", cairn_strerror(code));
    }
    if (err.rank < 0) /* else agreed before */
        err.rank = c->rank;
    *s = (story){.code = err.code, .sys = err.sys, .rank = err.rank};
    memcpy(s->text, err.text, sizeof s->text);
    (void)crn_err_give(&err);
}

static void adopt(const story *s)
{
    crn_err err = {.code = s->code, .sys = s->sys, .rank = s->rank};
    memcpy(err.text, s->text, sizeof err.text);
    (void)crn_err_give(&err);
    crn_err_frame(__FILE__, __LINE__);
}

cairn_status crn_comm_agree(crn_comm *c, cairn_status local)
{
    /* one number that puts failures first, lowest rank first, then the answers */
    uint64_t rank = (uint64_t)c->rank, size = (uint64_t)c->size;
    uint64_t verdict = local < 0 ? rank : size + (uint64_t)local;
    CRN_TRY(crn_comm_allreduce_u64(c, CRN_REDUCE_MIN, &verdict, 1));
    if (verdict >= size)
        return (cairn_status)(verdict - size);
    story s;
    if (rank == verdict)
        describe(c, local, &s);
    CRN_TRY(crn_comm_bcast(c, &s, sizeof s, (int)verdict));
    if (rank != verdict)
        adopt(&s);
    return (cairn_status)s.code;
}
