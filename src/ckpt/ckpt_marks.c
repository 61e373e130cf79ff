/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The marks of a run: what the manifest says of them, which of them are kept, and what its log
 * tells.
 */
#include "ckpt/ckpt_holding.h"

/* Without node-local storage own parts lie in the trail: such a mark is local and global at once.
 */
unsigned crn_holding_own_bits(const crn_holding *h)
{
    return 1u << CRN_LEVEL_LOCAL | (h->local ? 0 : CRN_IN_TRAIL);
}

uint64_t crn_holding_keep(const crn_holding *h, crn_level level)
{
    const bool in_trail = level == CRN_LEVEL_LOCAL && !h->local;
    return crn_config_count(h->cfg, crn_opt_keep(in_trail ? CRN_LEVEL_GLOBAL : level));
}

cairn_status crn_holding_publish(crn_holding *h, crn_comm *comm, bool finished)
{
    cairn_status rc = CAIRN_OK;
    if (crn_comm_rank(comm) == 0)
        rc = crn_run_replace_marks(h->run, h->mark.at, h->mark.n, h->nsame, finished);
    rc = crn_comm_agree(comm, rc);
    h->nsame = rc == CAIRN_OK ? h->mark.n : 0;
    return rc;
}

void crn_holding_touch(crn_holding *h, size_t i)
{
    h->nsame = CRN_MIN(h->nsame, i);
    for (crn_level l = CRN_LEVEL_LOCAL; l < CRN_NLEVELS; l++)
        h->below[l] = CRN_MIN(h->below[l], i);
}

/* All before from have a level. */
static void drop_levelless(crn_holding *h, size_t from)
{
    size_t n = from;
    for (size_t i = from; i < h->mark.n; i++)
        if (h->mark.at[i].levels != 0)
            h->mark.at[n++] = h->mark.at[i];
    h->mark.n = n;
    crn_holding_touch(h, from);
}

void crn_holding_drop_levelless(crn_holding *h)
{
    drop_levelless(h, 0);
}

size_t crn_holding_retains_from(const crn_holding *h, crn_level level)
{
    return crn_holding_keep(h, level) == CRN_KEEP_ALL ? h->mark.n : h->below[level];
}

void crn_holding_retain(crn_holding *h, crn_level level)
{
    const unsigned bits = level == CRN_LEVEL_LOCAL ? crn_holding_own_bits(h) : 1u << level;
    const uint64_t keep = crn_holding_keep(h, level);
    const size_t first = crn_holding_retains_from(h, level);
    size_t oldest = h->mark.n, changed = h->mark.n;
    uint64_t seen = 0;
    if (keep == CRN_KEEP_ALL)
        return;
    for (size_t i = h->mark.n; i-- > first;) {
        crn_manifest_mark *m = &h->mark.at[i];
        if (!(m->levels & 1u << level))
            continue;
        if (seen++ < keep) {
            oldest = i;
            continue;
        }
        m->levels &= ~bits;
        h->retained &= (m->levels & ~(unsigned)CRN_IN_TRAIL) != 0;
        changed = i;
    }
    h->below[level] = oldest;
    if (changed < h->mark.n)
        drop_levelless(h, changed);
}

void crn_holding_forget_nodes(crn_holding *h)
{
    for (size_t i = 0; i < h->mark.n; i++)
        h->mark.at[i].levels &= CRN_IN_TRAIL;
    crn_holding_drop_levelless(h);
}

bool crn_holding_has_series(const crn_holding *h, uint32_t series)
{
    for (size_t i = 0; i < h->mark.n; i++)
        if (h->mark.at[i].series == series)
            return true;
    return false;
}

/* --- events ------------------------------------------------------------------------------- */

static bool write_event(crn_holding *h, crn_event *e)
{
    const crn_err before = *crn_err_peek(); /* of what the event tells: not to be written over */
    e->time = (double)crn_wall_ns() * 1e-9;
    char *line = crn_event_encode(e);
    pthread_mutex_lock(&h->events_mutex);
    const bool written = line && crn_run_log(h->run, line) == CAIRN_OK;
    pthread_mutex_unlock(&h->events_mutex);
    if (!written) /* the log tells of marks; it must not fail them */
        (void)crn_err_give(&before);
    free(line);
    return written;
}

bool crn_holding_event(crn_holding *h, crn_event *e)
{
    const bool written = crn_comm_rank(h->comm) == 0 && write_event(h, e);
    crn_event_done(e);
    return written;
}
