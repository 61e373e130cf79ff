/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finding what changed: for each variable, whether the kernel shall track it and in which order its
 * blocks are digested and copied, chosen by what these cost here and now.
 *
 * What a watch calls clean is as it was in some mark, and a draft inherits from some mark; only
 * when these are one and the same may a block be passed over. A mark that failed or was cancelled
 * is not inherited from, so what was written before it still counts as written after it.
 */
#include "ckpt/ckpt_session.h"

#include <math.h>

/* As in the ranges of the options. */
enum { TRACK_AUTO, TRACK_KERNEL, TRACK_HASH };
enum { DIFFERENTIAL_AUTO, DIFFERENTIAL_ALWAYS, DIFFERENTIAL_NEVER };

enum {
    PAUSE_FIRST = 4,
    PAUSE_MAX = 64 /* marks until tracking gets another chance */
};

static const double FADE = 0.95;
static const double FAULT = 1e-6; /* seconds; before the kernel was tried */

static double seconds(uint64_t from, uint64_t to)
{
    return (double)(to - from) * 1e-9;
}

/* Machines are noisy and programs change: half of the past, half of now. */
static double smooth(double before, double now, bool known)
{
    return known ? 0.5 * (before + now) : now;
}

/* --- tracking ----------------------------------------------------------------------------- */

void crn_change_done(ckpt_change *change)
{
    crn_watch_free(change->watch);
    change->watch = NULL;
    change->ntracked = 0;
}

/* The session's tracker; NULL when the kernel has none, which is said once. */
static crn_tracker *tracker_of(cairn *c, int option)
{
    if (c->tracker || c->untracked)
        return c->tracker;
    if (crn_tracker_create(&c->tracker) < 0) {
        c->untracked = true;
        crn_log_write(&c->held.log, option == TRACK_KERNEL ? CRN_LOG_WARN : CRN_LOG_INFO,
                      CRN_LOG_ROOT, "%s", crn_err_peek()->text);
    }
    return c->tracker;
}

/* Without memory there is no watch, and all is digested. */
static void begin_tracking(cairn *c, ckpt_var *v, int option)
{
    ckpt_change *ch = &v->change;
    crn_tracker *tracker = tracker_of(c, option);
    if (!tracker || crn_watch_create(tracker, v->data, v->nbytes, v->block, &ch->watch) < 0)
        return;
    ch->data = v->data;
    ch->nbytes = v->nbytes;
    ch->block = v->block;
    ch->base = ch->captured = (ckpt_mark_id){CRN_NO_VERSION, 0};
}

static bool is_watched(const ckpt_var *v)
{
    const ckpt_change *ch = &v->change;
    return ch->watch && ch->data == v->data && ch->nbytes == v->nbytes && ch->block == v->block;
}

/*
 * May tracking pay, as far as one can tell from what changed? At least one page of each block that
 * changed was written. How many more, only trying tells, and what it told fades with time.
 */
static bool may_pay(const cairn *c, const ckpt_var *v)
{
    const ckpt_change *ch = &v->change;
    const double changed = ch->share * ch->part * (double)v->nbytes;
    const crn_plan_track t = {.hash = c->rates.hash,
                              .nbytes = (double)v->nbytes,
                              .looked = changed,
                              .nfaults = changed / v->block * fmax(1, ch->density),
                              .fault = c->tracker ? crn_tracker_fault(c->tracker) : FAULT};
    double gain;
    return ch->known && crn_plan_track_gain(&t, &gain) == CAIRN_OK && gain > 0;
}

/* Two marks tell that it does not pay; after a pause, longer from time to time, it is tried again.
 */
static void choose_by_cost(cairn *c, ckpt_var *v)
{
    ckpt_change *ch = &v->change;
    if (!ch->watch)
        ch->density *= FADE;
    if (ch->watch && ch->ntracked >= 2 && ch->saved < 0) {
        crn_change_done(ch);
        ch->pause = CRN_MIN(CRN_MAX(2 * ch->pause, (unsigned)PAUSE_FIRST), (unsigned)PAUSE_MAX);
        ch->wait = ch->pause;
    } else if (ch->ntracked > PAUSE_FIRST) {
        ch->pause = 0;
    } else if (!ch->watch && ch->wait > 0) {
        ch->wait--;
    } else if (!ch->watch && v->nbytes >= CRN_TALLY_WORTH && may_pay(c, v)) {
        begin_tracking(c, v, TRACK_AUTO);
    }
}

static void choose_tracking(cairn *c, ckpt_var *v)
{
    const int option = crn_config_variable(c->held.cfg, CRN_OPT_VARIABLE_TRACK, v->name).word;
    if (v->change.watch && !is_watched(v)) /* it moved, grew or shrank */
        crn_change_done(&v->change);
    const int differential =
        crn_config_variable(c->held.cfg, CRN_OPT_VARIABLE_DIFFERENTIAL, v->name).word;
    if (v->padded || option == TRACK_HASH || differential == DIFFERENTIAL_NEVER)
        crn_change_done(&v->change);
    else if (option == TRACK_AUTO)
        choose_by_cost(c, v);
    else if (!v->change.watch)
        begin_tracking(c, v, option);
}

bool crn_change_is_found(const cairn *c, const char *name)
{
    return crn_config_variable(c->held.cfg, CRN_OPT_VARIABLE_TRACK, name).word != TRACK_KERNEL &&
           crn_config_variable(c->held.cfg, CRN_OPT_VARIABLE_DIFFERENTIAL, name).word !=
               DIFFERENTIAL_NEVER;
}

static bool is_same_mark(ckpt_mark_id a, ckpt_mark_id b)
{
    return a.version == b.version && a.wall_ns == b.wall_ns;
}

/*
 * Let the watch speak of the mark that the draft inherits from, and take what was written since.
 * Returns whether it knew anything: what it does not know, it calls written.
 */
static bool ask_watch(const cairn *c, ckpt_change *ch)
{
    ckpt_mark_id tip = {0};
    tip.version = crn_draft_base(c->leg.job.draft, &tip.wall_ns);
    const bool committed = is_same_mark(tip, ch->captured);
    const bool known = tip.version != CRN_NO_VERSION && (committed || is_same_mark(tip, ch->base));
    if (!known)
        crn_watch_distrust(ch->watch);
    else if (committed)
        crn_watch_clear(ch->watch);
    ch->base = tip;
    ch->captured = (ckpt_mark_id){c->leg.job.version, c->leg.job.wall_ns};
    return crn_watch_scan(ch->watch) && known;
}

static bool is_clean(const void *arg, uint64_t i)
{
    return !crn_watch_is_written(arg, i);
}

/* --- digesting and copying ---------------------------------------------------------------- */

/* Digest before copying, or while: by the share of changed blocks at which both cost the same. */
static crn_put_way choose_way(const cairn *c, const ckpt_var *v)
{
    const int option =
        crn_config_variable(c->held.cfg, CRN_OPT_VARIABLE_DIFFERENTIAL, v->name).word;
    double threshold;
    if (option == DIFFERENTIAL_NEVER || c->damaged)
        return CRN_PUT_FULL;
    if (option == DIFFERENTIAL_ALWAYS || !v->change.known || c->rates.copy == 0 ||
        crn_plan_diff_threshold(c->rates.hash, c->rates.copy, CRN_PLAN_HASH_ONCE, &threshold) < 0)
        return CRN_PUT_COMPARE;
    return v->change.share > threshold ? CRN_PUT_COPY : CRN_PUT_COMPARE;
}

/*
 * The time of the mark, until it is stored, beyond that of a full one. What is copied anyway needs
 * only to be written if it changed; what is compared, to be copied as well.
 */
static double predict(const cairn *c, const ckpt_var *v, crn_put_way way)
{
    const ckpt_change *ch = &v->change;
    const ckpt_rates *r = &c->rates;
    const double full = r->copy + r->store, part = ch->watch ? ch->part : 1;
    const double faults = ch->ntracked > 0 ? ch->faults / (double)v->nbytes : 0;
    const double find = (way == CRN_PUT_COMPARE ? r->hash : r->copy) * part + faults;
    const double rest = way == CRN_PUT_COMPARE ? full : r->store;
    double gain;
    if (way == CRN_PUT_FULL)
        return 0;
    if (!ch->known || v->nbytes < CRN_TALLY_WORTH || r->copy == 0 || r->store == 0 ||
        r->hash == 0 ||
        crn_plan_diff_gain(find, full, ch->share * ch->part * rest / full, CRN_PLAN_HASH_ONCE,
                           &gain) < 0)
        return NAN;
    return gain;
}

/*
 * The machine's rates at first, by a little of the variable itself. A first mark would mislead: its
 * buffers are new, and the kernel has to find memory for them.
 */
static void calibrate(ckpt_rates *r, const ckpt_var *v)
{
    const size_t half = v->nbytes / 2 / v->block * v->block;
    const size_t sample = CRN_MIN(half, (size_t)CRN_BLOCK_MAX); /* whole blocks, of any size */
    const unsigned char *data = v->data;
    unsigned char *to;
    if (r->copy > 0 || v->padded || sample < CRN_TALLY_WORTH ||
        crn_alloc_aligned(&to, sample, 4096) < 0)
        return;
    memset(to, 0, sample);
    const uint64_t start = crn_now_ns();
    for (size_t i = 0; i < sample; i += v->block)
        (void)crn_digest_of(data + i, v->block);
    const uint64_t hashed = crn_now_ns();
    for (size_t i = 0; i < sample; i += v->block)
        (void)crn_digest_copy(to + i, data + half + i, v->block);
    r->hash = seconds(start, hashed) / (double)sample;
    r->copy = seconds(hashed, crn_now_ns()) / (double)sample;
    free(to);
}

/* What the times of one variable say about the machine. */
static void learn_rates(ckpt_rates *r, const crn_put *how, double took)
{
    const double hashed = (double)how->hashed;
    if (how->hashed < CRN_TALLY_WORTH || how->fresh > 0)
        return;
    if (how->way != CRN_PUT_COMPARE)
        r->copy = smooth(r->copy, took / hashed, r->copy > 0);
    else
        r->hash = smooth(r->hash, fmax(took - (double)how->changed * r->copy, took / 4) / hashed,
                         r->hash > 0);
}

/* And what they say about the variable, as far as there was something to compare it with. */
static void learn_shares(ckpt_change *ch, const crn_put *how, uint64_t nbytes)
{
    if (how->fresh > 0 || nbytes == 0)
        return;
    if (how->hashed > 0)
        ch->share = smooth(ch->share, (double)how->changed / (double)how->hashed, ch->known);
    ch->part = smooth(ch->part, (double)how->hashed / (double)nbytes, ch->known);
    ch->known = true;
}

static void learn_tracking(const cairn *c, ckpt_change *ch, const ckpt_tally *t,
                           const crn_watch_stats *w, double scan)
{
    const crn_plan_track track = {.hash = c->rates.hash,
                                  .nbytes = (double)t->nbytes,
                                  .looked = (double)t->hashed,
                                  .nfaults = (double)w->faults,
                                  .fault = crn_tracker_fault(c->tracker),
                                  .scan = scan};
    double gain;
    if (crn_plan_track_gain(&track, &gain) < 0)
        return;
    ch->saved = smooth(ch->saved, gain, ch->ntracked > 0);
    ch->faults = smooth(ch->faults, (double)t->fault_ns * 1e-9, ch->ntracked > 0);
    if (t->hashed > 0)
        ch->density = (double)w->faults * ch->block / (double)t->hashed;
    ch->ntracked++;
}

/* --- one variable of one mark ------------------------------------------------------------- */

/* Tallies are told, not needed: one that there is no memory for is left out. */
static void keep_tally(cairn *c, const ckpt_var *v, ckpt_tally t)
{
    if (v->small)
        crn_small_tally(c, &t);
    else if (crn_strdup(v->name, &t.name) == CAIRN_OK && crn_vec_push(&c->tally, t) < 0)
        free(t.name);
}

cairn_status crn_change_put(cairn *c, ckpt_var *v, size_t number)
{
    ckpt_change *ch = &v->change;
    ckpt_tally t = {.nbytes = v->nbytes};
    const uint64_t start = crn_now_ns();
    calibrate(&c->rates, v);
    choose_tracking(c, v);
    t.tracked = ch->watch && ask_watch(c, ch);
    t.way = choose_way(c, v);
    t.predicted = predict(c, v, t.way);
    const uint64_t scanned = crn_now_ns();
    crn_put how = {.way = t.way, .is_clean = ch->watch ? is_clean : NULL, .arg = ch->watch};
    CRN_TRY(v->padded ? crn_ckpt_put_padded(c->leg.job.draft, number, v, &how)
                      : crn_draft_put_changed(c->leg.job.draft, number, v->data, &how));
    const uint64_t end = crn_now_ns();
    t.hashed = how.hashed;
    t.changed = how.changed;
    t.stored = how.stored;
    t.capture_ns = end - start;
    learn_rates(&c->rates, &how, seconds(scanned, end));
    learn_shares(ch, &how, v->nbytes);
    if (t.tracked) {
        const crn_watch_stats w = crn_watch_count(ch->watch);
        t.written = w.faults * w.page;
        t.fault_ns = (uint64_t)((double)w.faults * crn_tracker_fault(c->tracker) * 1e9);
        learn_tracking(c, ch, &t, &w, seconds(start, scanned));
    }
    keep_tally(c, v, t);
    return CAIRN_OK;
}
