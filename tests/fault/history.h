/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What may be found after a crash. A history goes along with the operations of a disk_log: whenever
 * a call that changes a list of marks begins or has succeeded, it notes which lists are allowed
 * from that operation on. Before, between and after a call there is one; during it, and after one
 * that failed, there are two or more.
 */
#ifndef CAIRN_TESTS_HISTORY_H
#define CAIRN_TESTS_HISTORY_H

#include "fault/disk.h"
#include "harness/model.h"

enum { HISTORY_ALTS = 6 };

typedef struct mark_list {
    bool absent; /* the file need not even exist */
    size_t n;
    uint64_t version[MODEL_MARKS];
} mark_list;

typedef struct epoch {
    size_t at; /* operations of the log before it */
    size_t n;
    mark_list list[HISTORY_ALTS];
} epoch;

typedef struct history {
    CRN_VEC(epoch) epoch;
    epoch now;
    mark_list list; /* as the program believes */
    mark_list next; /* what the call under way makes of it */
} history;

static inline void history_note(history *h, size_t at)
{
    h->now.at = at;
    assert_ok(crn_vec_push(&h->epoch, h->now));
}

static inline void history_init(history *h)
{
    memset(h, 0, sizeof *h);
    h->list.absent = true;
    h->now = (epoch){.n = 1, .list = {h->list}};
    history_note(h, 0);
}

static inline void history_done(history *h)
{
    crn_vec_done(&h->epoch);
}

/* A call begins that makes next of the list. */
static inline void history_begin(history *h, size_t at, const mark_list *next)
{
    h->next = *next;
    assert_true(h->now.n < HISTORY_ALTS);
    h->now.list[h->now.n++] = *next;
    history_note(h, at);
}

/* It has succeeded. */
static inline void history_end(history *h, size_t at)
{
    h->list = h->next;
    h->now = (epoch){.n = 1, .list = {h->list}};
    history_note(h, at);
}

static inline const epoch *history_at(const history *h, size_t at)
{
    size_t i = h->epoch.n;
    while (i > 1 && h->epoch.at[i - 1].at > at)
        i--;
    return &h->epoch.at[i - 1];
}

/* --- what calls make of lists --------------------------------------------------------------- */

static inline mark_list list_keep(mark_list l, uint64_t keep)
{
    size_t gone = l.n > keep ? l.n - (size_t)keep : 0;
    l.n -= gone;
    memmove(l.version, l.version + gone, l.n * sizeof *l.version);
    return l;
}

static inline mark_list list_mark(mark_list l, uint64_t version, uint64_t keep)
{
    l.absent = false;
    l.version[l.n++] = version;
    return list_keep(l, keep);
}

static inline mark_list list_rewind(mark_list l, uint64_t version)
{
    while (l.n > 0 && l.version[l.n - 1] > version)
        l.n--;
    return l;
}

static inline bool list_equal(const mark_list *a, const mark_list *b)
{
    return a->absent == b->absent && a->n == b->n &&
           memcmp(a->version, b->version, a->n * sizeof *a->version) == 0;
}

static inline bool epoch_allows(const epoch *e, const mark_list *l)
{
    for (size_t i = 0; i < e->n; i++)
        if (list_equal(&e->list[i], l))
            return true;
    return false;
}

static inline mark_list list_of_part(const crn_part *part)
{
    crn_part_info info;
    mark_list l = {0};
    crn_part_describe(part, &info);
    assert_true(info.nmarks <= MODEL_MARKS);
    for (; l.n < info.nmarks; l.n++)
        l.version[l.n] = crn_part_version(part, l.n);
    return l;
}

static inline mark_list list_of_run(const crn_run *run)
{
    const crn_manifest *m = crn_run_manifest(run);
    mark_list l = {0};
    assert_true(m->mark.n <= MODEL_MARKS);
    for (; l.n < m->mark.n; l.n++)
        l.version[l.n] = m->mark.at[l.n].version;
    return l;
}

static inline const char *list_text(const mark_list *l, char buf[256])
{
    size_t n = 0;
    snprintf(buf, 256, "%s", l->absent ? "no file" : "no marks");
    for (size_t i = 0; i < l->n && n < 240; i++)
        n += (size_t)snprintf(buf + n, 256 - n, "%s%" PRIu64, i ? " " : "", l->version[i]);
    return buf;
}

#endif
