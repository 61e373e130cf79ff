/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Capture: the part of a mark that the program waits for.
 *
 * What fails here fails on this rank alone, while the others go on to share the mark. So nothing
 * returns early: the failure travels in the job to where the ranks agree.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>

/* Note a failure of this rank's share of the mark. */
static void fail_job(cairn *c, cairn_status rc)
{
    if (rc < 0 && c->leg.job.status == CAIRN_OK) {
        c->leg.job.status = rc;
        crn_err_take(&c->leg.job.err);
    }
}

/*
 * What the ranks ask for must be one thing, and it gets one time: the latest clock's. In the same
 * breath, are all ready? With "skip" a mark waits for no other; but there is no next time for the
 * mark with which a program leaves. Has any rank declared something since the last one, or does any
 * know of a signal?
 */
static cairn_status agree_on_mark(cairn *c, uint64_t version, cairn_level level, uint64_t *ret_time,
                                  bool *ret_unchecked)
{
    const bool waits = crn_config_word(c->held.cfg, CRN_OPT_MARK_BUSY) == 0 || c->stopping;
    uint64_t max[] = {version,
                      ~version,
                      (uint64_t)level,
                      ~(uint64_t)level,
                      !waits && !crn_engine_is_ready(c),
                      crn_wall_ns(),
                      c->leg.unchecked,
                      crn_signals_came(c)};
    CRN_TRY(crn_comm_allreduce_u64(c->held.comm, CRN_REDUCE_MAX, max, sizeof max / sizeof *max));
    CRN_FAIL_IF(max[0] != ~max[1], CAIRN_EINVAL,
                "the ranks mark different versions, from %" PRIu64 " to %" PRIu64, ~max[1], max[0]);
    CRN_FAIL_IF(max[2] != ~max[3], CAIRN_EINVAL,
                "the ranks mark version %" PRIu64 " at different levels", version);
    *ret_time = max[5];
    *ret_unchecked = max[6];
    if (max[7])
        crn_stop_begin(c);
    c->poll.whether_due.known = c->poll.whether_stop.known =
        false; /* the mark changes the answer */
    return max[4] ? CAIRN_NOTHING : CAIRN_OK;
}

/* The newest mark of this series that counts as being in the trail. */
static uint64_t newest_in_trail(const cairn *c)
{
    for (size_t i = c->held.mark.n; i-- > 0;)
        if (c->held.mark.at[i].series == c->held.series && c->held.mark.at[i].levels & CRN_IN_TRAIL)
            return c->held.mark.at[i].version;
    return CRN_NO_VERSION;
}

/* Remove what a leg left that was killed before any mark of the series counted. */
static cairn_status clear_series(cairn *c)
{
    uint64_t nfiles = 0;
    cairn_status rc = crn_vault_remove_series(c->held.vault, c->held.series);
    if (rc == CAIRN_OK && crn_comm_rank(c->held.comm) == 0)
        rc = crn_run_remove_series(c->held.run, c->held.series, &nfiles);
    return rc;
}

/*
 * Until the first mark of a leg counts: make way for it. What no manifest counts is dropped: marks
 * that were being taken or copied when the leg before was killed would otherwise push out those
 * that do count. What does count, and came after the mark that this leg resumed from, is not
 * touched: it is abandoned when the new mark counts (crn_ckpt_share), which goes to files of its
 * own.
 */
static cairn_status make_way(cairn *c)
{
    bool abandons = false;
    uint32_t newest = c->held.series;
    if (!c->leg.rewind)
        return CAIRN_OK;
    for (size_t i = 0; i < c->held.mark.n; i++) {
        const crn_manifest_mark *m = &c->held.mark.at[i];
        const bool after =
            c->leg.resumed_from == CRN_NO_VERSION || m->version > c->leg.resumed_from;
        abandons |= after && m->series == c->held.series;
        newest = CRN_MAX(newest, m->series);
    }
    if (abandons) {
        c->held.series = newest + 1;
        crn_vault_begin_series(c->held.vault, c->held.series);
    }
    if (!crn_holding_has_series(&c->held, c->held.series))
        return crn_comm_agree(c->held.comm, clear_series(c));
    cairn_status rc = crn_vault_rewind(c->held.vault, c->leg.resumed_from);
    if (rc == CAIRN_OK)
        rc = crn_vault_rewind_trail(c->held.vault, newest_in_trail(c));
    return crn_comm_agree(c->held.comm, rc);
}

/* Of the mark that the next one follows, or CRN_NO_VERSION. */
static uint64_t newest_version(const cairn *c)
{
    if (c->leg.rewind)
        return c->leg.resumed_from;
    return c->held.mark.n > 0 ? c->held.mark.at[c->held.mark.n - 1].version : CRN_NO_VERSION;
}

/*
 * Is it a last mark of the one that this leg came back to, though there are later ones that it
 * could have had? To leave is to go on from there: the mark is taken again, and takes their place
 * as any other would, so that the next leg does not find itself where this one chose not to be.
 * Later ones that only could not be produced may be there again when their nodes are.
 */
static bool replaces_later(const cairn *c, uint64_t version)
{
    if (!c->stopping || !c->leg.rewind || version == CRN_NO_VERSION ||
        version != c->leg.resumed_from)
        return false;
    for (size_t i = 0; i < c->held.mark.n; i++)
        if (c->held.mark.at[i].version > version && c->held.mark.at[i].version < c->leg.lost_from &&
            crn_vault_can_load(c->held.vault, &c->held.mark.at[i]) == CAIRN_OK)
            return true;
    return false;
}

static cairn_status check_order(const cairn *c, uint64_t version)
{
    CRN_FAIL_IF(c->leg.rewind && c->held.mark.n > 0 && !c->leg.resumed, CAIRN_EINVAL,
                "run '%s' has marks: resume it before marking, or begin another run",
                crn_run_name(c->held.run));
    const uint64_t newest = newest_version(c);
    CRN_FAIL_IF(version > CRN_VERSION_MAX, CAIRN_EINVAL,
                "%" PRIu64 " is not a version: they end at %" PRIu64, version, CRN_VERSION_MAX);
    CRN_FAIL_IF(newest != CRN_NO_VERSION && version <= newest && !replaces_later(c, version),
                CAIRN_EINVAL, "mark %" PRIu64 " would follow mark %" PRIu64 ": versions must grow",
                version, newest);
    return CAIRN_OK;
}

/* The usual loop marks before it advances: at once after a resume. And a program that is told to
 * stop marks though it just did. */
static bool is_there(const cairn *c, uint64_t version)
{
    if (version == CRN_NO_VERSION || replaces_later(c, version))
        return false;
    if (c->leg.rewind)
        return version == c->leg.resumed_from;
    return c->stopping && c->held.mark.n > 0 &&
           version == c->held.mark.at[c->held.mark.n - 1].version;
}

static cairn_status begin_draft(cairn *c)
{
    crn_part *part;
    crn_vault_refresh(c->held.vault);
    CRN_TRY(crn_vault_own(c->held.vault, &part));
    crn_part_set_staging(
        part, c->engine.running ? crn_config_nbytes(c->held.cfg, CRN_OPT_MARK_STAGING) : 0);
    crn_part_set_threads(part, (unsigned)crn_config_count(c->held.cfg, CRN_OPT_CODEC_THREADS));
    CRN_TRY(crn_draft_begin(part, c->leg.job.version, &c->leg.job.draft));
    crn_draft_set_time(c->leg.job.draft, c->leg.job.wall_ns);
    crn_ckpt_trees_begin(c);
    return CAIRN_OK;
}

/* What background work has left to say, once. */
static cairn_status say_behind(cairn *c)
{
    if (c->leg.behind.code == 0)
        return CAIRN_OK;
    cairn_status rc = crn_err_give(&c->leg.behind);
    memset(&c->leg.behind, 0, sizeof c->leg.behind);
    return rc;
}

cairn_status crn_ckpt_catch_up(cairn *c)
{
    crn_engine_finish(c);
    return say_behind(c);
}

/* With tells, what went wrong with the mark before ends this one before it has begun. */
static cairn_status begin(cairn *c, uint64_t version, cairn_level level, bool tells)
{
    unsigned levels;
    uint64_t wall_ns = 0;
    bool unchecked = false;
    crn_ckpt_beat(c);
    CRN_FAIL_IF(c->leg.open, CAIRN_EINVAL, "mark %" PRIu64 " is open: commit or cancel it first",
                c->leg.job.version);
    crn_stop_leave(c);
    cairn_status rc = agree_on_mark(c, version, level, &wall_ns, &unchecked);
    if (rc != CAIRN_OK)
        return rc;
    CRN_TRY(crn_ckpt_check_identity(c));
    crn_engine_finish(c);
    if (tells)
        CRN_TRY(say_behind(c));
    if (is_there(c, version)) {
        rc = c->stopping ? make_way(c) : CAIRN_OK;
        if (c->stopping && rc == CAIRN_OK)
            rc = crn_ckpt_raise_last(c);
        return rc < 0 ? rc : CAIRN_NOTHING;
    }
    CRN_TRY(check_order(c, version));
    if (unchecked)
        CRN_TRY(crn_ckpt_check_shares(c));
    CRN_TRY(crn_ckpt_levels(c, level, &levels));
    CRN_TRY(make_way(c));
    c->leg.job = (ckpt_job){.version = version,
                            .levels = levels,
                            .any_level = level == CAIRN_AUTO,
                            .interval_s = crn_tune_interval(c),
                            .wall_ns = wall_ns,
                            .begin_ns = crn_now_ns()};
    c->nbegun++;
    crn_tally_reset(c);
    crn_coded_reset(c);
    crn_small_begin(c);
    c->leg.open = true;
    crn_ckpt_tell_recorder(version);
    rc = begin_draft(c);
    if (crn_divert_helps(c, rc))
        rc = crn_divert(c, 0);
    fail_job(c, rc);
    return CAIRN_OK;
}

static cairn_status put_own(cairn *c, ckpt_var *v)
{
    size_t number;
    crn_blocks_look(c, v);
    const crn_var_spec spec = crn_ckpt_spec(v);
    cairn_status rc = crn_draft_add(c->leg.job.draft, &spec, &number);
    crn_ckpt_trees_add(c, v);
    CRN_TRY(rc);
    crn_coded_put(c, v->name, v->small, number);
    CRN_TRY(crn_change_put(c, v, number));
    crn_ckpt_trees_put(c, v, number);
    return CAIRN_OK;
}

static void put(cairn *c, ckpt_var *v)
{
    c->leg.job.nbytes += v->nbytes;
    if (c->leg.job.status < 0)
        return;
    const size_t nwhole = c->leg.job.draft ? crn_draft_mark(c->leg.job.draft)->nvars : 0;
    cairn_status rc = c->leg.job.diverted ? crn_divert_put(c, v) : put_own(c, v);
    if (crn_divert_helps(c, rc)) {
        rc = crn_divert(c, nwhole);
        if (rc == CAIRN_OK) /* what the other draft has of it may be half of it */
            rc = crn_divert_put(c, v);
    }
    fail_job(c, rc);
    crn_stage_enter(CRN_STAGE_CAPTURE);
}

static void capture(cairn *c, ckpt_var *v)
{
    v->captured = c->nbegun;
    if (!v->share) {
        put(c, v);
        return;
    }
    ckpt_var view;
    cairn_status rc = crn_share_view(v, &view);
    fail_job(c, rc);
    if (rc == CAIRN_OK) {
        put(c, &view);
        crn_change_done(&view.change);
    }
    crn_share_forget(v);
}

static void capture_rest(cairn *c, ckpt_var *v)
{
    if (!crn_ckpt_is_captured(c, v))
        capture(c, v);
}

/* Small variables whose digests the session does not have, one by one. */
static void capture_each(cairn *c)
{
    const ckpt_smalls *s = &c->small;
    const crn_draft *d = c->leg.job.draft;
    const size_t first = d ? crn_draft_mark(d)->nvars : 0;
    for (size_t i = s->taken; i < s->at.n; i++)
        capture_rest(c, &c->var.at[s->at.at[i].place]);
    if (s->at.n > 0)
        crn_small_note(c, first);
}

static void capture_together(cairn *c)
{
    cairn_status rc = crn_small_capture(c);
    if (crn_divert_helps(c, rc)) {
        c->small.pending = false;
        rc = crn_divert(c, c->small.first + c->small.taken);
        if (rc == CAIRN_OK)
            capture_each(c);
    }
    fail_job(c, rc);
    crn_stage_enter(CRN_STAGE_CAPTURE);
}

/* All that was not captured since the mark was begun. */
static void capture_all(cairn *c)
{
    if (crn_small_sort(c) < 0) {
        for (size_t i = 0; i < c->var.n; i++)
            capture_rest(c, &c->var.at[i]);
        return;
    }
    for (size_t i = 0; i < c->small.large.n; i++)
        capture_rest(c, &c->var.at[c->small.large.at[i]]);
    if (crn_small_is_known(c))
        capture_together(c);
    else
        capture_each(c);
}

static cairn_status commit(cairn *c)
{
    capture_all(c);
    c->leg.open = false;
    c->nmarks++;
    c->last_mark_ns = crn_now_ns();
    c->marked_since_stop = c->stopping;
    c->leg.job.held_ns += c->last_mark_ns - c->open_ns;
    crn_engine_submit(c);
    if (!c->engine.running) {
        c->leg.job.held_ns += crn_now_ns() - c->last_mark_ns;
        crn_engine_finish(c);
    }
    return say_behind(c);
}

int cairn_begin(cairn *c, uint64_t version, cairn_level level)
{
    CKPT_NEEDS(c);
    const uint64_t start = crn_now_ns();
    cairn_status rc = begin(c, version, level, true);
    if (rc == CAIRN_OK)
        c->leg.job.held_ns = crn_now_ns() - start;
    return crn_ckpt_result(c, rc);
}

int cairn_capture(cairn *c, const char *name)
{
    CKPT_NEEDS_ALSO(c, name);
    const uint64_t start = crn_now_ns();
    ckpt_var *v = crn_ckpt_find_declared(c, name);
    if (!c->leg.open)
        return crn_ckpt_result(c, crn_fail(CAIRN_EINVAL, "no mark is open"));
    if (!v)
        return crn_ckpt_result(c, crn_fail(CAIRN_ENOTFOUND, "no variable '%s' is protected", name));
    if (crn_ckpt_is_captured(c, v) || v->share)
        return crn_ckpt_result(
            c, crn_fail(CAIRN_EINVAL, "variable '%s' was captured before in this mark", name));
    crn_small_distrust(c);
    capture(c, v);
    if (crn_ckpt_has_halo(v)) /* the program may write to all of its memory from now on */
        capture(c, crn_ckpt_halo_of(c, name));
    c->leg.job.held_ns += crn_now_ns() - start;
    return CAIRN_OK;
}

static void cancel(cairn *c)
{
    crn_draft_drop(c->leg.job.draft);
    c->leg.job.draft = NULL;
    c->leg.open = false;
    for (size_t i = 0; i < c->var.n; i++)
        crn_share_forget(&c->var.at[i]);
}

/* What was declared while the mark was open must fit together, too. */
static cairn_status check_again(cairn *c)
{
    uint64_t unchecked = c->leg.unchecked;
    CRN_TRY(crn_comm_allreduce_u64(c->held.comm, CRN_REDUCE_MAX, &unchecked, 1));
    return unchecked ? crn_ckpt_check_shares(c) : CAIRN_OK;
}

int cairn_commit(cairn *c)
{
    CKPT_NEEDS(c);
    if (!c->leg.open)
        return crn_ckpt_result(c, crn_fail(CAIRN_EINVAL, "no mark is open"));
    c->open_ns = crn_now_ns();
    crn_ckpt_tell_recorder(
        c->leg.job.version); /* what came since the mark was begun may be in it */
    cairn_status rc = check_again(c);
    if (rc < 0)
        cancel(c);
    else
        rc = commit(c);
    return crn_ckpt_result(c, rc);
}

int cairn_cancel(cairn *c)
{
    CKPT_NEEDS(c);
    if (!c->leg.open)
        return crn_ckpt_result(c, crn_fail(CAIRN_EINVAL, "no mark is open"));
    cancel(c);
    return CAIRN_OK;
}

int cairn_mark(cairn *c, uint64_t version, cairn_level level)
{
    CKPT_NEEDS(c);
    c->open_ns = crn_now_ns();
    cairn_status rc = begin(c, version, level, false);
    if (rc == CAIRN_OK)
        rc = commit(c);
    return crn_ckpt_result(c, rc);
}

/* --- marks for comparing only --------------------------------------------------------------- */

/* Is there a mark of this version, which has trees as well? */
static bool is_marked(const cairn *c, uint64_t version)
{
    return version != CRN_NO_VERSION && version == newest_version(c);
}

static cairn_status take_trees(cairn *c, uint64_t version)
{
    uint64_t wall_ns = 0;
    bool unchecked = false;
    crn_ckpt_beat(c);
    CRN_FAIL_IF(c->leg.open, CAIRN_EINVAL, "mark %" PRIu64 " is open: commit or cancel it first",
                c->leg.job.version);
    if (!c->leg.trees)
        return CAIRN_NOTHING;
    cairn_status rc = agree_on_mark(c, version, CAIRN_AUTO, &wall_ns, &unchecked);
    if (rc != CAIRN_OK)
        return rc;
    crn_engine_finish(c);
    if (is_marked(c, version))
        return CAIRN_NOTHING;
    CRN_TRY(check_order(c, version));
    const uint64_t before = crn_ckpt_trees_version(c);
    CRN_FAIL_IF(before != CRN_NO_VERSION && version <= before, CAIRN_EINVAL,
                "mark %" PRIu64 " would follow mark %" PRIu64 ": versions must grow", version,
                before);
    if (unchecked)
        CRN_TRY(crn_ckpt_check_shares(c));
    c->leg.job = (ckpt_job){
        .version = version, .wall_ns = wall_ns, .only_trees = true, .begin_ns = crn_now_ns()};
    crn_ckpt_tell_recorder(version);
    fail_job(c, crn_ckpt_trees_capture(c));
    c->leg.job.held_ns = crn_now_ns() - c->open_ns;
    crn_engine_submit(c);
    if (!c->engine.running)
        crn_engine_finish(c);
    return say_behind(c);
}

int cairn_mark_trees(cairn *c, uint64_t version)
{
    CKPT_NEEDS(c);
    c->open_ns = crn_now_ns();
    return crn_ckpt_result(c, take_trees(c, version));
}

/* --- waiting -------------------------------------------------------------------------------- */

int cairn_settle(cairn *c)
{
    CKPT_NEEDS(c);
    if (c->leg.open)
        return crn_ckpt_result(c,
                               crn_fail(CAIRN_EINVAL, "mark %" PRIu64 " is open: commit it first",
                                        c->leg.job.version));
    crn_engine_settle(c);
    return crn_ckpt_result(c, say_behind(c));
}
