/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From captured to safe: storing this rank's share, agreeing that all ranks have theirs, letting
 * the manifest say so, raising the mark to its levels, and dropping what is older than asked for.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>
#include <stdarg.h>

enum { LOCAL_BIT = 1 << CRN_LEVEL_LOCAL, GLOBAL_BIT = 1 << CRN_LEVEL_GLOBAL };
_Static_assert((int)GLOBAL_BIT == (int)CRN_IN_TRAIL, "the manifest's bits are the levels'");

cairn_status crn_ckpt_levels(cairn *c, cairn_level level, unsigned *ret)
{
    unsigned bits = LOCAL_BIT;
    if (level == CAIRN_AUTO) {
        CRN_TRY(crn_tune_levels(c, &bits));
    } else {
        const crn_level l = (crn_level)(level - CAIRN_LEVEL_LOCAL);
        CRN_FAIL_IF((unsigned)l >= CRN_NLEVELS, CAIRN_EINVAL, "there is no level %d", (int)level);
        CRN_TRY(crn_vault_check(c->held.vault, l));
        bits |= 1u << l;
    }
    if (c->stopping) /* what comes after is unknown: the nodes may not come back */
        bits |= GLOBAL_BIT;
    *ret = bits;
    return CAIRN_OK;
}

static double seconds(uint64_t from, uint64_t to)
{
    return (double)(to - from) * 1e-9;
}

/* --- stages ------------------------------------------------------------------------------- */

/* The same for a mark that is all trees. */
static void store_trees(cairn *c)
{
    ckpt_job *j = &c->leg.job;
    if (j->status == CAIRN_OK && (j->status = crn_ckpt_trees_store(c)) < 0)
        crn_err_take(&j->err);
    j->store_ns = crn_now_ns();
}

static void drop_draft(ckpt_job *j)
{
    crn_draft_drop(j->draft);
    j->draft = NULL;
}

/* Commit the draft to the own part; if that cannot take it, it becomes one of the trail's. */
static void store_own(cairn *c)
{
    ckpt_job *j = &c->leg.job;
    crn_trees_mark *trees = crn_ckpt_trees_prepare(c);
    /* nothing is dropped before all ranks are known to have this one */
    cairn_status rc = crn_draft_try(j->draft, UINT64_MAX, &j->stats);
    if (rc == CAIRN_OK) {
        j->stored = true;
        j->draft = NULL;
    } else if (crn_divert_helps(c, rc)) {
        rc = crn_divert(c, crn_draft_mark(j->draft)->nvars);
    }
    if (rc < 0) {
        j->status = rc;
        crn_err_take(&j->err);
    }
    crn_ckpt_trees_finish(c, trees, j->stored);
}

void crn_ckpt_store(cairn *c)
{
    ckpt_job *j = &c->leg.job;
    const uint64_t start = crn_now_ns();
    crn_stage_enter(CRN_STAGE_STORE);
    if (j->only_trees) {
        store_trees(c);
        return;
    }
    if (j->status == CAIRN_OK && (j->status = crn_small_store(c)) < 0)
        crn_err_take(&j->err);
    if (j->status == CAIRN_OK && !j->diverted)
        store_own(c);
    else
        crn_ckpt_trees_finish(c, NULL, false);
    if (j->status < 0)
        drop_draft(j);
    j->store_ns = crn_now_ns();
    j->storing_ns = j->store_ns - (c->engine.running ? start : j->begin_ns);
    if (j->stored)
        crn_tally_stored(c, j->store_ns - start);
}

void crn_ckpt_scrub(cairn *c)
{
    const ckpt_job *j = &c->leg.job;
    crn_part *part;
    uint64_t n = 0;
    if (!j->stored)
        return;
    cairn_status rc = crn_vault_own(c->held.vault, &part);
    if (rc == CAIRN_OK)
        rc = crn_part_scrub(part, &n);
    if (rc < 0)
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_EACH,
                      "mark %" PRIu64 ": what it has from earlier ones could not be looked at: %s",
                      j->version, crn_err_peek()->text);
    if (n > 0)
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_EACH,
                      "mark %" PRIu64 ", level local: storage has damaged %" PRIu64
                      " blocks of earlier marks; the next one writes them again",
                      j->version, n);
}

/* Note a failure, said by all ranks, of the mark at a level, or of its trees. The first one is
 * kept.
 */
static void fail_at(cairn *c, const char *where, cairn_status rc)
{
    ckpt_job *j = &c->leg.job;
    crn_err_prefix("mark %" PRIu64 ", %s%s: ", j->version, j->only_trees ? "" : "level ", where);
    crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_ROOT, "%s", crn_err_peek()->text);
    crn_holding_event(&c->held, &(crn_event){.kind = CRN_EVENT_FAILED,
                                             .failed = {.version = j->version,
                                                        .level = where,
                                                        .text = crn_err_peek()->text}});
    if (j->status == CAIRN_OK) {
        j->status = rc;
        crn_err_take(&j->err);
    }
}

static void fail_level(cairn *c, crn_level level, cairn_status rc)
{
    fail_at(c, crn_level_name(level), rc);
}

/* The mark is at a level now: let the manifest say so. */
static cairn_status publish_at(cairn *c, crn_comm *comm, crn_level level)
{
    crn_holding_retain(&c->held, level);
    crn_stage_enter(CRN_STAGE_COMMIT);
    return crn_holding_publish(&c->held, comm, false);
}

/* Let the own part retain what is at any level that it belongs to: all but the trail's copies. */
static cairn_status retain_own(cairn *c)
{
    uint64_t *version;
    size_t n = 0, first = c->held.mark.n;
    if (c->held.retained)
        return CAIRN_OK;
    for (crn_level l = CRN_LEVEL_LOCAL; l < CRN_NLEVELS; l++)
        if (l != CRN_LEVEL_GLOBAL)
            first = CRN_MIN(first, c->held.below[l]);
    CRN_TRY(crn_alloc(&version, c->held.mark.n - first));
    for (size_t i = first; i < c->held.mark.n; i++)
        if (c->held.mark.at[i].series == c->held.series &&
            c->held.mark.at[i].levels & ~(unsigned)GLOBAL_BIT)
            version[n++] = c->held.mark.at[i].version;
    cairn_status rc = crn_vault_retain_own(c->held.vault, version, n);
    free(version);
    c->held.retained = rc == CAIRN_OK;
    return rc;
}

/* The manifest says so: older ones at the level may go. */
static void settle_at(cairn *c, crn_comm *comm, crn_level level)
{
    cairn_status rc = CAIRN_OK;
    if (level != CRN_LEVEL_LOCAL)
        rc = crn_vault_trim(c->held.vault, level, crn_holding_keep(&c->held, level));
    if (rc == CAIRN_OK)
        rc = retain_own(c);
    rc = crn_comm_agree(comm, rc);
    c->leg.job.level_ns[level] = crn_now_ns();
    if (rc < 0)
        fail_level(c, level, rc);
}

/* Remove what ranks of another number left behind, once no mark is in it any more. What fails is
 * only in the way, and tried again with the next mark. */
static void drop_old_series(cairn *c)
{
    uint64_t nfiles = 0;
    for (; c->held.oldest_series < c->held.series &&
           !crn_holding_has_series(&c->held, c->held.oldest_series);
         c->held.oldest_series++) {
        cairn_status rc = crn_vault_remove_series(c->held.vault, c->held.oldest_series);
        if (rc == CAIRN_OK && crn_comm_rank(c->held.comm) == 0)
            rc = crn_run_remove_series(c->held.run, c->held.oldest_series, &nfiles);
        if (rc < 0) {
            crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_EACH, "%s", crn_err_peek()->text);
            return;
        }
    }
}

/* The first mark of a leg that came back to an older one takes the place of those after that, and
 * of that one if it is the same again: how many are left. */
static size_t count_unabandoned(const cairn *c)
{
    size_t n = c->held.mark.n;
    for (; n > 0; n--) {
        const crn_manifest_mark *m = &c->held.mark.at[n - 1];
        const bool after = c->leg.resumed_from == CRN_NO_VERSION ||
                           m->version > c->leg.resumed_from || m->version == c->leg.job.version;
        if (m->series == c->held.series || !after)
            break;
    }
    return n;
}

/* Add up what the ranks have and let the mark count. The same on all ranks from here on. */
static cairn_status count_local(cairn *c, crn_comm *comm, unsigned levels)
{
    ckpt_job *j = &c->leg.job;
    uint64_t sum[] = {j->nbytes, j->stats.blocks, j->stats.changed,
                      j->stats.data_bytes + j->stats.meta_bytes, j->stats.healed};
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_SUM, sum, sizeof sum / sizeof *sum));
    j->nbytes = sum[0];
    j->stats.blocks = sum[1];
    j->stats.changed = sum[2];
    j->written = sum[3];
    j->stats.healed = sum[4];
    const size_t left = count_unabandoned(c);
    c->held.retained &= left == c->held.mark.n;
    c->held.mark.n = left;
    crn_holding_touch(&c->held, left);
    return crn_vec_push(&c->held.mark, (crn_manifest_mark){.version = j->version,
                                                           .wall_ns = j->wall_ns,
                                                           .nbytes = j->nbytes,
                                                           .series = c->held.series,
                                                           .nranks = (uint32_t)crn_comm_size(comm),
                                                           .levels = levels});
}

/* The marks that counted before one that may have to be given up, as far as it may change them. */
typedef struct ckpt_before {
    crn_manifest_mark *mark;
    size_t from, n;
} ckpt_before;

static cairn_status remember(const cairn *c, crn_level level, ckpt_before *ret)
{
    const size_t n = c->held.mark.n;
    *ret = (ckpt_before){.n = n, .from = crn_holding_retains_from(&c->held, level)};
    ret->from = CRN_MIN(ret->from, count_unabandoned(c));
    CRN_TRY(crn_alloc(&ret->mark, n - ret->from));
    if (n > ret->from)
        memcpy(ret->mark, c->held.mark.at + ret->from, (n - ret->from) * sizeof *ret->mark);
    return CAIRN_OK;
}

/* Give up a mark that some rank does not have or that the manifest could not take in. It must not
 * stay in the parts, or it would push out those that do count when the next ones come. */
static void give_up(cairn *c, crn_comm *comm, const ckpt_before *before, bool published,
                    crn_level level, cairn_status rc)
{
    ckpt_job *j = &c->leg.job;
    crn_err why = *crn_err_peek();
    drop_draft(j);
    if (before->mark)
        memcpy(c->held.mark.at + before->from, before->mark,
               (before->n - before->from) * sizeof *before->mark);
    c->held.mark.n = before->n;
    crn_holding_touch(&c->held, before->from);
    c->held.retained = false;
    /* a manifest that could not be finished may be the one that is found: what it names must stay
     * until the one before it is back */
    const bool stays = published && crn_holding_publish(&c->held, comm, false) < 0;
    const uint64_t newest = before->n > 0 ? c->held.mark.at[before->n - 1].version : CRN_NO_VERSION;
    if (j->stored && !stays)
        (void)crn_vault_rewind(c->held.vault, newest);
    else if (j->diverted && !stays) /* its own part has nothing, and may not be writable */
        (void)crn_vault_rewind_trail(c->held.vault, newest);
    j->stored = false;
    j->status = CAIRN_OK;
    crn_err_give(&why);
    fail_level(c, level, rc);
}

/* Has some rank's own part no room for the mark, which was therefore diverted? Then say so, the
 * first time also in the log. Collective. */
static bool tell_diverted(cairn *c, crn_comm *comm)
{
    ckpt_job *j = &c->leg.job;
    if (!crn_divert_is_allowed(c))
        return false;
    const bool said = c->no_room;
    c->no_room = crn_comm_agree(comm, j->diverted ? crn_err_give(&j->no_room) : CAIRN_OK) < 0;
    if (!c->no_room)
        return false;
    crn_err_prefix("mark %" PRIu64 ", level local: ", j->version);
    crn_holding_event(&c->held, &(crn_event){.kind = CRN_EVENT_FAILED,
                                             .failed = {.version = j->version,
                                                        .level = crn_level_name(CRN_LEVEL_LOCAL),
                                                        .text = crn_err_peek()->text}});
    if (!said)
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_ROOT,
                      "%s; while that is so, marks go to the trail alone",
                      crn_err_peek()->text);
    return true;
}

static uint64_t count_blocks(const crn_mark *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->nvars; i++)
        n += m->var[i].nblocks;
    return n;
}

/* Bring a diverted mark to the trail, from drafts and from those own parts that have it. */
static cairn_status raise_diverted(cairn *c, crn_comm *comm)
{
    ckpt_job *j = &c->leg.job;
    crn_raise_stats stats;
    crn_draft *draft = j->draft;
    const uint64_t nblocks = draft ? count_blocks(crn_draft_mark(draft)) : 0;
    crn_stage_enter(CRN_STAGE_OF(CRN_LEVEL_GLOBAL));
    j->draft = NULL;
    CRN_TRY(crn_vault_raise_diverted(c->held.vault, j->version, draft,
                                     crn_holding_keep(&c->held, CRN_LEVEL_GLOBAL), &stats));
    if (draft)
        j->stats = (crn_draft_stats){.blocks = nblocks, .changed = stats.nblocks};
    uint64_t sum = stats.stored_bytes;
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_SUM, &sum, 1));
    j->level_bytes[CRN_LEVEL_GLOBAL] = sum;
    return CAIRN_OK;
}

/* Do all ranks have the mark? Then it counts from now on: at the level of their own parts, or in
 * the trail alone. */
static cairn_status agree(cairn *c, crn_comm *comm, bool diverted)
{
    const crn_level level = diverted ? CRN_LEVEL_GLOBAL : CRN_LEVEL_LOCAL;
    ckpt_job *j = &c->leg.job;
    ckpt_before before = {.from = c->held.mark.n, .n = c->held.mark.n};
    if (j->status < 0)
        crn_err_give(&j->err);
    else
        j->status = remember(c, level, &before);
    cairn_status rc = crn_comm_agree(comm, j->status);
    if (rc == CAIRN_OK && diverted)
        rc = raise_diverted(c, comm);
    if (rc == CAIRN_OK)
        rc = crn_comm_agree(
            comm, count_local(c, comm, diverted ? GLOBAL_BIT : crn_holding_own_bits(&c->held)));
    const bool publishes = rc == CAIRN_OK;
    if (publishes)
        rc = publish_at(c, comm, level);
    if (rc < 0)
        give_up(c, comm, &before, publishes, level, rc);
    free(before.mark);
    return rc;
}

/* Without an engine the program stands still while all of this happens. */
static double held_since(const cairn *c, uint64_t start)
{
    return c->engine.running ? 0 : seconds(start, crn_now_ns());
}

static void raise_to(cairn *c, crn_comm *comm, crn_level level)
{
    ckpt_job *j = &c->leg.job;
    crn_raise_stats stats = {0};
    const uint64_t start = crn_now_ns();
    crn_stage_enter(CRN_STAGE_OF(level));
    cairn_status rc = crn_vault_raise(c->held.vault, level, j->version,
                                      crn_holding_keep(&c->held, level), &stats);
    if (rc < 0) {
        uint64_t damaged = rc == CAIRN_ECORRUPT;
        fail_level(c, level, rc);
        if (crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, &damaged, 1) == CAIRN_OK)
            j->damaged |= damaged; /* the program still has what the part has lost */
        return;
    }
    uint64_t sum[] = {stats.moved_bytes, stats.stored_bytes, stats.nhealed};
    if (crn_comm_allreduce_u64(comm, CRN_REDUCE_SUM, sum, 3) < 0)
        return; /* a peer is gone: nothing counts any more */
    if (sum[2] > 0)
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_ROOT,
                      "mark %" PRIu64 ", level %s: storage has damaged %" PRIu64
                      " blocks of earlier marks; they are written again",
                      j->version, crn_level_name(level), sum[2]);
    j->level_bytes[level] = sum[1];
    c->held.mark.at[c->held.mark.n - 1].levels |= 1u << level;
    crn_holding_touch(&c->held, c->held.mark.n - 1);
    rc = publish_at(c, comm, level);
    if (rc < 0) { /* the copies are there, and the next manifest will say so */
        fail_level(c, level, rc);
        return;
    }
    settle_at(c, comm, level);
    if (level == CRN_LEVEL_GLOBAL)
        crn_holding_tell_viewers(&c->held);
    const char *format = crn_config_text(c->held.cfg, CRN_OPT_GLOBAL_FORMAT);
    crn_holding_event(&c->held,
                      &(crn_event){.kind = CRN_EVENT_RAISED,
                                   .raised = {.version = j->version,
                                              .level = crn_level_name(level),
                                              .format = level == CRN_LEVEL_GLOBAL ? format : NULL,
                                              .seconds = seconds(start, crn_now_ns()),
                                              .held = held_since(c, start),
                                              .moved = sum[0],
                                              .stored = sum[1],
                                              .healed = sum[2]}});
}

/* One behind the mark at which the program stands; 0: that one is in the trail, or one behind it. A
 * leg that came back to an older mark does not stand at the newest. */
static size_t find_last(const cairn *c)
{
    for (size_t i = c->held.mark.n; i > 0 && !(c->held.mark.at[i - 1].levels & GLOBAL_BIT); i--)
        if (!c->leg.rewind || c->held.mark.at[i - 1].version == c->leg.resumed_from)
            return i;
    return 0;
}

cairn_status crn_ckpt_raise_last(cairn *c)
{
    const size_t n = find_last(c);
    uint64_t nbytes;
    c->marked_since_stop = true;
    if (n == 0)
        return CAIRN_OK;
    const crn_manifest_mark *m = &c->held.mark.at[n - 1];
    crn_vault_use_comm(c->held.vault, c->held.comm);
    /* what is not whole in the own parts comes from wherever this leg had it from */
    if (n < c->held.mark.n || m->series != c->held.series || (c->leg.rewind && c->damaged))
        return crn_holding_drain_mark(&c->held, n - 1, &nbytes);
    c->leg.job = (ckpt_job){.version = m->version, .begin_ns = crn_now_ns()};
    raise_to(c, c->held.comm, CRN_LEVEL_GLOBAL);
    return c->leg.job.status < 0 ? crn_err_give(&c->leg.job.err) : CAIRN_OK;
}

static void tell_mark(cairn *c)
{
    const ckpt_job *j = &c->leg.job;
    const double now = seconds(0, crn_wall_ns());
    crn_holding_event(
        &c->held,
        &(crn_event){.kind = CRN_EVENT_MARK,
                     .mark = {.version = j->version,
                              .held = seconds(0, j->held_ns) + held_since(c, c->last_mark_ns),
                              .stored = seconds(j->begin_ns, j->store_ns),
                              .begun = now - seconds(j->begin_ns, crn_now_ns()),
                              .interval = j->interval_s,
                              .nbytes = j->nbytes,
                              .blocks = j->stats.blocks,
                              .changed = j->stats.changed,
                              .written = j->written,
                              .healed = j->stats.healed}});
}

/* A mark that is all trees: do all ranks have theirs? */
static void share_trees(cairn *c, crn_comm *comm)
{
    ckpt_job *j = &c->leg.job;
    cairn_status rc = j->status < 0 ? crn_err_give(&j->err) : CAIRN_OK;
    rc = crn_comm_agree(comm, rc);
    if (rc == CAIRN_OK)
        rc = crn_comm_allreduce_u64(comm, CRN_REDUCE_SUM, &j->nbytes, 1);
    if (rc < 0) {
        j->status = CAIRN_OK; /* what this rank alone knew is said now */
        fail_at(c, "trees", rc);
        return;
    }
    crn_holding_event(&c->held, &(crn_event){.kind = CRN_EVENT_TREES,
                                             .trees = {.version = j->version,
                                                       .nranks = (uint64_t)crn_comm_size(comm),
                                                       .held = seconds(0, j->held_ns),
                                                       .stored = seconds(j->begin_ns, j->store_ns),
                                                       .nbytes = j->nbytes}});
}

/* The rest of a diverted mark's way: older ones in the trail may go. Where own parts have it, it
 * stays as what the next one inherits from. */
static void settle_diverted(cairn *c, crn_comm *comm)
{
    ckpt_job *j = &c->leg.job;
    const crn_level level = CRN_LEVEL_GLOBAL;
    j->stored = false; /* not on all ranks: there is nothing to compare */
    j->level_ns[level] = crn_now_ns();
    tell_mark(c);
    crn_holding_event(&c->held,
                      &(crn_event){.kind = CRN_EVENT_RAISED,
                                   .raised = {.version = j->version,
                                              .level = crn_level_name(level),
                                              .seconds = seconds(j->store_ns, j->level_ns[level]),
                                              .held = held_since(c, j->store_ns),
                                              .stored = j->level_bytes[level]}});
    crn_tally_tell(c, comm);
    crn_coded_tell(c, comm);
    cairn_status rc = crn_vault_trim(c->held.vault, level, crn_holding_keep(&c->held, level));
    rc = crn_comm_agree(comm, rc);
    if (rc < 0)
        fail_level(c, level, rc);
    drop_old_series(c);
}

void crn_ckpt_share(cairn *c, crn_comm *comm)
{
    ckpt_job *j = &c->leg.job;
    if (j->only_trees) {
        share_trees(c, comm);
        return;
    }
    crn_vault_use_comm(c->held.vault, comm);
    const bool diverted = tell_diverted(c, comm);
    if (agree(c, comm, diverted) < 0)
        return;
    if (diverted) {
        settle_diverted(c, comm);
        return;
    }
    settle_at(c, comm, CRN_LEVEL_LOCAL);
    if (!c->held.local)
        j->level_ns[CRN_LEVEL_GLOBAL] = j->level_ns[CRN_LEVEL_LOCAL];
    tell_mark(c);
    crn_tally_tell(c, comm);
    crn_coded_tell(c, comm);
    for (crn_level l = CRN_LEVEL_RAISED; l < CRN_NLEVELS; l++)
        if (j->levels & 1u << l & ~crn_holding_own_bits(&c->held))
            raise_to(c, comm, l);
    crn_choices_learn(c, comm);
    drop_old_series(c);
}
