/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Watches: from pages that the kernel names to blocks of a variable.
 *
 * Two sets of blocks, a bit each. Blind are those that the kernel does not track as a whole;
 * written are those that may differ from what they were when the watch was cleared, blind ones
 * always among them.
 */
#include "track/track_watch.h"

#include <pthread.h>

/*
 * What the watches of this process have taken. Whether a page was written is one bit in the page
 * table, and a scan takes it away: of two watches over one page, the second would miss what the
 * first has seen. Page tables are the process's, and so is this list.
 */
static struct {
    pthread_mutex_t mutex;
    CRN_VEC(track_range) range; /* guarded by mutex */
} claimed = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Take a range for one watch; false when another one has some of it, or without memory. */
static bool claim(track_range r)
{
    bool ours = true;
    pthread_mutex_lock(&claimed.mutex);
    for (size_t i = 0; i < claimed.range.n; i++)
        ours = ours && (r.end <= claimed.range.at[i].start || claimed.range.at[i].end <= r.start);
    ours = ours && crn_vec_push(&claimed.range, r) == CAIRN_OK;
    pthread_mutex_unlock(&claimed.mutex);
    return ours;
}

static void disclaim(track_range r)
{
    pthread_mutex_lock(&claimed.mutex);
    for (size_t i = 0; i < claimed.range.n; i++)
        if (claimed.range.at[i].start == r.start) {
            claimed.range.at[i] = claimed.range.at[--claimed.range.n];
            break;
        }
    if (claimed.range.n == 0)
        crn_vec_done(&claimed.range);
    pthread_mutex_unlock(&claimed.mutex);
}

/* --- sets of blocks ----------------------------------------------------------------------- */

static size_t nwords(const crn_watch *w)
{
    return (size_t)((w->nblocks + 63) / 64);
}

static void set_block(uint64_t *set, uint64_t i, bool yes)
{
    const uint64_t bit = UINT64_C(1) << (i % 64);
    set[i / 64] = yes ? set[i / 64] | bit : set[i / 64] & ~bit;
}

static void set_all(const crn_watch *w, uint64_t *set)
{
    memset(set, 0xff, nwords(w) * sizeof *set);
}

bool crn_watch_is_written(const crn_watch *w, uint64_t i)
{
    return w->written[i / 64] >> (i % 64) & 1;
}

void crn_watch_clear(crn_watch *w)
{
    w->faults = 0;
    memcpy(w->written, w->blind, nwords(w) * sizeof *w->written);
}

void crn_watch_distrust(crn_watch *w)
{
    w->faults = 0;
    set_all(w, w->written);
}

crn_watch_stats crn_watch_count(const crn_watch *w)
{
    crn_watch_stats s = {.blocks = w->nblocks, .faults = w->faults, .page = crn_track_page()};
    for (uint64_t i = 0; i < w->nblocks; i++)
        s.written += crn_watch_is_written(w, i);
    for (size_t i = 0; i < w->piece.n; i++)
        s.pages += (w->piece.at[i].end - w->piece.at[i].start) / s.page;
    return s;
}

/* --- beginning and ending ----------------------------------------------------------------- */

cairn_status crn_watch_create(crn_tracker *t, const void *data, size_t nbytes, size_t block,
                              crn_watch **ret)
{
    const uintptr_t page = crn_track_page();
    crn_watch *w;
    CRN_TRY(crn_alloc(&w, 1));
    *w = (crn_watch){.tracker = t, .data = (uintptr_t)data, .nbytes = nbytes, .block = block};
    w->nblocks = nbytes / block + (nbytes % block != 0);
    w->whole.start = CRN_ROUND_UP(w->data, page);
    w->whole.end = CRN_MAX((w->data + nbytes) & ~(page - 1), w->whole.start);
    cairn_status rc = crn_alloc(&w->written, nwords(w));
    if (rc == CAIRN_OK)
        rc = crn_alloc(&w->blind, nwords(w));
    if (rc < 0) {
        crn_watch_free(w);
        return rc;
    }
    set_all(w, w->written);
    set_all(w, w->blind);
    w->ours = w->whole.start < w->whole.end && claim(w->whole);
    *ret = w;
    return CAIRN_OK;
}

/* Let the kernel's tracking go: nothing is known from here on. */
static void go_blind(crn_watch *w)
{
    if (crn_tracker_is_here(w->tracker))
        for (size_t i = 0; i < w->piece.n; i++)
            crn_track_unregister(&w->tracker->kernel, w->piece.at[i]);
    w->piece.n = 0;
    w->faults = 0;
    set_all(w, w->blind);
    set_all(w, w->written);
}

void crn_watch_free(crn_watch *w)
{
    if (!w)
        return;
    if (w->written && w->blind)
        go_blind(w);
    if (w->ours)
        disclaim(w->whole);
    crn_vec_done(&w->piece);
    free(w->written);
    free(w->blind);
    free(w);
}

/* --- scanning ----------------------------------------------------------------------------- */

/* Blocks that lie wholly within r are not blind. */
static void see(crn_watch *w, track_range r)
{
    const uint64_t from = r.start - w->data, to = r.end - w->data;
    for (uint64_t i = (from + w->block - 1) / w->block; i < w->nblocks; i++) {
        if (CRN_MIN((i + 1) * w->block, w->nbytes) > to)
            break;
        set_block(w->blind, i, false);
    }
}

static void note_written(void *arg, track_range r)
{
    crn_watch *w = arg;
    const uint64_t last = (r.end - 1 - w->data) / w->block;
    for (uint64_t i = (r.start - w->data) / w->block; i <= last; i++)
        set_block(w->written, i, true);
    w->faults += (r.end - r.start) / crn_track_page();
}

static bool scan_pieces(crn_watch *w)
{
    for (size_t i = 0; i < w->piece.n; i++)
        if (!crn_track_scan(&w->tracker->kernel, w->piece.at[i], note_written, w))
            return false;
    return true;
}

static bool contains(const track_ranges *set, track_range r)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->at[i].start <= r.start && r.end <= set->at[i].end)
            return true;
    return false;
}

/*
 * Begin to track what can be. Mappings are looked at once more after they were registered: one that
 * takes their place still later is not registered, and the next scan notices.
 */
static bool register_pieces(crn_watch *w)
{
    track_ranges mapped = {0};
    bool sure = crn_track_find_private(w->whole, &mapped) == CAIRN_OK;
    for (size_t i = 0; sure && i < mapped.n; i++)
        if (crn_track_register(&w->tracker->kernel, mapped.at[i]))
            sure = crn_vec_push(&w->piece, mapped.at[i]) == CAIRN_OK;
    sure = sure && crn_track_find_private(w->whole, &mapped) == CAIRN_OK;
    for (size_t i = 0; sure && i < w->piece.n; i++)
        sure = contains(&mapped, w->piece.at[i]);
    crn_vec_done(&mapped);
    return sure;
}

static void begin_anew(crn_watch *w)
{
    go_blind(w);
    if (!register_pieces(w) || !scan_pieces(w)) { /* this scan only protects */
        go_blind(w);
        return;
    }
    for (size_t i = 0; i < w->piece.n; i++)
        see(w, w->piece.at[i]);
    w->faults = 0;
    set_all(w, w->written);
}

bool crn_watch_scan(crn_watch *w)
{
    if (!w->ours || !crn_tracker_is_here(w->tracker) || crn_track_is_pinned())
        go_blind(w);
    else if (w->piece.n > 0 && scan_pieces(w))
        return true;
    else
        begin_anew(w);
    return false;
}
