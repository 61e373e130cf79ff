/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copying a state from one shelf to another, as it is stored: every block is checked, none is
 * decoded, and what the other shelf's part has already is not read. The copy has the parts of as
 * many processes as the state, so it has the same digest, and the same time.
 */
#include "state/state_log.h"

#include <inttypes.h>

typedef struct copying {
    cairn_shelf *from, *to;
    crn_state_name name;
    state_entry entry; /* as the first shelf has it */
    bool mends;        /* the other one has it, and it is damaged there: */
    state_entry old;
    crn_digest *share;     /* of what was copied */
    crn_part **part;       /* of the other shelf's writer */
    uint32_t series, done; /* parts that have it */
    state_step_fn *go_on;
    void *arg;
} copying;

static cairn_status copy_vars(copying *c, crn_draft *d, crn_part *part, const crn_mark *m)
{
    crn_draft_set_time(d, m->wall_ns);
    for (size_t i = 0; i < m->nvars; i++) {
        size_t v;
        CRN_TRY(crn_draft_add(d, &m->var[i].spec, &v));
        CRN_TRY(crn_draft_copy(d, v, part, m, &m->var[i], c->go_on, c->arg));
        crn_stage_enter(CRN_STAGE_CAPTURE);
    }
    return CAIRN_OK;
}

static cairn_status copy_mark(copying *c, crn_part *part, const crn_mark *m, uint32_t rank)
{
    crn_draft *d;
    uint64_t nbytes;
    CRN_TRY(crn_mark_digest(m, false, &c->share[rank], &nbytes));
    CRN_TRY(crn_part_drop(c->part[rank], &c->name, 1)); /* a copy that failed may have left it */
    CRN_TRY(crn_state_begin(c->part[rank], c->name, NULL, &d));
    const cairn_status rc = copy_vars(c, d, part, m);
    if (rc < 0) {
        crn_draft_drop(d);
        return rc;
    }
    crn_stage_enter(CRN_STAGE_STORE);
    c->done = rank + 1; /* also when it fails: its last write may have reached the disk */
    return crn_draft_commit(d, CRN_KEEP_ALL, NULL);
}

static cairn_status copy_shares(copying *c)
{
    for (uint32_t r = 0; r < c->entry.nranks; r++) {
        crn_part *part;
        crn_mark *m;
        CRN_TRY(crn_reader_load(c->from, &c->entry, r, &part, &m));
        const cairn_status rc = copy_mark(c, part, m, r);
        crn_mark_free(m);
        CRN_TRY(rc);
    }
    const crn_digest all = crn_shares_digest(c->share, c->entry.nranks);
    CRN_FAIL_IF(!crn_digest_equal(&all, &c->entry.digest), CAIRN_ECORRUPT,
                "what the parts have is not what the index of shelf '%s' says", c->from->path);
    return CAIRN_OK;
}

static cairn_status find(const copying *c, state_entry *ret)
{
    const cairn_status rc = crn_state_index_find(c->from->index, c->name, ret);
    CRN_FAIL_IF(rc == CAIRN_NOTHING, CAIRN_ENOTFOUND, "shelf '%s' has no such state",
                c->from->path);
    return rc;
}

/* What looks like damage may be a state that was dropped while it was read. */
static cairn_status explain(const copying *c, cairn_status rc)
{
    const crn_err why = *crn_err_peek();
    state_entry now;
    if (rc >= 0 || rc == CAIRN_ECANCELED || rc == CAIRN_ENOSPC)
        return rc;
    CRN_FAIL_IF(crn_state_index_find(c->from->index, c->name, &now) == CAIRN_NOTHING ||
                    (now.wall_ns != c->entry.wall_ns && rc == CAIRN_ECORRUPT),
                CAIRN_ENOTFOUND, "it was dropped from shelf '%s' meanwhile", c->from->path);
    return crn_err_give(&why);
}

/* A copy that failed leaves nothing. */
static void take_back(copying *c)
{
    const crn_err why = *crn_err_peek();
    for (uint32_t r = 0; r < c->done; r++)
        (void)crn_part_drop(c->part[r], &c->name, 1);
    state_entry mine = c->entry;
    mine.series = c->series;
    if (c->done == c->entry.nranks)
        crn_state_unlist(c->to, &mine);
    if (c->mends && c->old.series == c->series) /* it had to be given up first */
        crn_state_unlist(c->to, &c->old);
    (void)crn_err_give(&why);
}

/* Is it there? CAIRN_NOTHING: yes, the same; CAIRN_OK: no, or what is there is damaged. */
static cairn_status look_first(copying *c)
{
    cairn_status rc = crn_state_index_find(c->to->index, c->name, &c->old);
    CRN_TRY(rc);
    if (rc == CAIRN_NOTHING)
        return crn_state_limits(c->to, &c->entry);
    rc = crn_state_judge(&c->old, &c->entry);
    for (uint32_t r = 0; rc == CAIRN_NOTHING && crn_shelf_rechecks(c->to) && r < c->old.nranks;
         r++) {
        const cairn_status look = crn_share_verify(c->to, &c->old, r, NULL);
        c->mends = crn_is_damage(look);
        rc = c->mends ? CAIRN_OK : look < 0 ? look : rc;
    }
    return rc;
}

static cairn_status copy(copying *c)
{
    cairn_status rc = look_first(c);
    if (rc != CAIRN_OK)
        return rc;
    CRN_TRY(crn_writer_host(c->to, c->entry.nranks, &c->series, &c->part));
    rc = copy_shares(c);
    if (rc == CAIRN_OK) {
        state_entry mine = c->entry;
        mine.series = c->series;
        mine.pins = 0;
        rc = crn_state_claim(c->to, &mine, c->mends ? &c->old : NULL);
        if (rc == CAIRN_OK && c->mends && c->old.series != c->series)
            (void)crn_writer_reclaim(c->to, &c->old); /* costs space, and nothing else */
    }
    if (rc != CAIRN_OK)
        take_back(c);
    return rc;
}

cairn_status crn_state_copy(cairn_shelf *from, cairn_shelf *to, crn_state_name name,
                            state_step_fn *go_on, void *arg)
{
    copying c = {.from = from, .to = to, .name = name, .go_on = go_on, .arg = arg};
    CRN_TRY(find(&c, &c.entry));
    CRN_TRY(crn_alloc(&c.share, c.entry.nranks));
    const uint64_t begun_ns = crn_now_ns();
    const cairn_status rc = explain(&c, copy(&c));
    if (rc != CAIRN_NOTHING && rc != CAIRN_ECANCELED)
        crn_log_state(to, &c.entry,
                      rc < 0    ? "copy failed"
                      : c.mends ? "mended"
                                : "copied",
                      (double)(crn_now_ns() - begun_ns) * 1e-9, rc);
    if (rc < 0)
        crn_readers_done(from); /* they may be of a state that is gone */
    free(c.share);
    return rc;
}
