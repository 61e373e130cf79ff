/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Becoming a writer: a group of processes goes on with the parts of one of the same size that is
 * gone, or begins new ones. So files grow with the writers that there are at a time, not with those
 * that there ever were.
 */
#include "state/state_log.h"

#include <inttypes.h>
#include <unistd.h>

/* --- parts -------------------------------------------------------------------------------- */

static cairn_status create_part(const cairn_shelf *s, uint32_t series, uint32_t rank,
                                uint32_t nranks, crn_part **ret)
{
    crn_part_id id = {.series = series, .rank = rank, .nranks = nranks, .role = CRN_ROLE_STATES};
    char name[STATE_FILE_NAME];
    int dir;
    memcpy(id.run, s->id, sizeof id.run);
    CRN_TRY(crn_writer_dir(s, series, true, &dir));
    const cairn_status rc =
        crn_part_create(dir, crn_writer_part_name(series, rank, name), &id, &s->opt, ret);
    close(dir);
    CRN_TRY(rc);
    crn_part_set_recheck(*ret, crn_shelf_rechecks(s));
    return CAIRN_OK;
}

/* Parts of a writer of nranks, that are one process's: nown of them, from rank first on. */
typedef struct holding {
    uint32_t series, nranks, first, nown;
    crn_part **part; /* nown */
} holding;

static void let_go(holding *h)
{
    for (uint32_t i = 0; i < h->nown; i++) {
        crn_part_close(h->part[i]);
        h->part[i] = NULL;
    }
}

/* Take over the parts, which nobody holds any more, and remove from them what does not count. */
static cairn_status take_over(cairn_shelf *s, holding *h)
{
    cairn_status rc = CAIRN_OK;
    for (uint32_t i = 0; i < h->nown && rc == CAIRN_OK; i++)
        rc = crn_writer_part(s, h->series, h->first + i, h->nranks, true, &h->part[i]);
    for (uint32_t i = 0; i < h->nown && rc == CAIRN_OK; i++)
        rc = crn_writer_reconcile(s, h->part[i]);
    if (rc < 0)
        let_go(h);
    return rc;
}

static cairn_status create_parts(cairn_shelf *s, holding *h)
{
    cairn_status rc = CAIRN_OK;
    for (uint32_t i = 0; i < h->nown && rc == CAIRN_OK; i++)
        rc = create_part(s, h->series, h->first + i, h->nranks, &h->part[i]);
    if (rc < 0)
        let_go(h);
    return rc;
}

/* --- writers ------------------------------------------------------------------------------ */

typedef struct known_writer {
    uint32_t series, nparts;
} known_writer;

typedef struct search {
    uint32_t newest;
    CRN_VEC(known_writer) writer;
    crn_index by_series;
} search;

static cairn_status know_part(void *arg, uint32_t series, uint32_t rank)
{
    search *f = arg;
    const uint64_t hash = crn_hash_bytes(&series, sizeof series);
    uint32_t at;
    (void)rank;
    f->newest = CRN_MAX(f->newest, series);
    for (size_t probe = 0; crn_index_next(&f->by_series, hash, &probe, &at);)
        if (f->writer.at[at].series == series) {
            f->writer.at[at].nparts++;
            return CAIRN_OK;
        }
    CRN_TRY(crn_vec_push(&f->writer, ((known_writer){series, 1})));
    return crn_index_add(&f->by_series, hash, f->writer.n - 1);
}

static void search_done(search *f)
{
    crn_vec_done(&f->writer);
    crn_index_done(&f->by_series);
}

/*
 * Some writers of the size are tried, wherever in the list: of many that live and few that are
 * gone, those at its beginning would hide the others for good. CAIRN_NOTHING: none is gone.
 */
static cairn_status adopt_some(cairn_shelf *s, const search *f, holding *h)
{
    enum { TRIES = 16 };
    const uint64_t any = crn_hash_mix(crn_wall_ns(), (uint64_t)getpid());
    const size_t start = f->writer.n > 0 ? any % f->writer.n : 0;
    int tries = 0;
    for (size_t i = 0; i < f->writer.n && tries < TRIES; i++) {
        const known_writer *w = &f->writer.at[(start + i) % f->writer.n];
        if (w->nparts != h->nranks)
            continue;
        h->series = w->series;
        if (take_over(s, h) == CAIRN_OK)
            return CAIRN_OK;
        tries++;
    }
    return CAIRN_NOTHING;
}

/* With the shelf's lock, the process of rank 0, or that has all ranks: parts to go on with, or with
 * a new number. */
static cairn_status begin_parts(cairn_shelf *s, bool adopts, holding *h, bool *ret_adopted)
{
    search f = {0};
    crn_file *lock;
    CRN_TRY(crn_shelf_lock(s, &lock));
    cairn_status rc = crn_shelf_parts(s, know_part, &f);
    *ret_adopted = rc == CAIRN_OK && adopts && adopt_some(s, &f, h) == CAIRN_OK;
    if (rc == CAIRN_OK && !*ret_adopted) {
        h->series = f.newest + 1;
        rc = create_parts(s, h);
    }
    crn_file_close(lock);
    search_done(&f);
    return rc;
}

static void note_adopted(cairn_shelf *s, const holding *h)
{
    crn_part_info info;
    crn_part_describe(h->part[0], &info);
    crn_log_shelf(s, "adopted", h->series, info.nmarks);
}

/* --- groups ------------------------------------------------------------------------------- */

/* The choice of process 0, for all. */
typedef struct choice {
    uint32_t series, adopted;
} choice;

/* Collective; CAIRN_NOTHING: a part of the writer that process 0 has chosen is held by another. */
static cairn_status begin_together(cairn_shelf *s, bool adopts, holding *h)
{
    const bool first = crn_comm_rank(s->comm) == 0;
    choice c = {0, 0};
    cairn_status rc = CAIRN_OK;
    if (first) {
        bool adopted = false;
        rc = begin_parts(s, adopts, h, &adopted);
        c = (choice){h->series, adopted};
    }
    CRN_TRY(crn_comm_agree(s->comm, rc));
    CRN_TRY(crn_comm_bcast(s->comm, &c, sizeof c, 0));
    h->series = c.series;
    if (!first)
        rc = c.adopted ? take_over(s, h) : create_parts(s, h);
    uint64_t failed = rc < 0;
    if (c.adopted) {
        CRN_TRY(crn_comm_allreduce_u64(s->comm, CRN_REDUCE_MAX, &failed, 1));
        if (failed) {
            let_go(h);
            return CAIRN_NOTHING;
        }
    }
    rc = crn_comm_agree(s->comm, rc);
    if (rc < 0)
        let_go(h);
    else if (c.adopted && first)
        note_adopted(s, h);
    return rc;
}

cairn_status crn_writer_begin(cairn_shelf *s)
{
    holding h = {.nranks = (uint32_t)crn_comm_size(s->comm),
                 .first = (uint32_t)crn_comm_rank(s->comm),
                 .nown = 1,
                 .part = &s->part};
    if (s->series > 0)
        return CAIRN_OK;
    cairn_status rc = begin_together(s, true, &h);
    if (rc == CAIRN_NOTHING)
        rc = begin_together(s, false, &h);
    CRN_TRY(rc);
    s->series = h.series;
    return CAIRN_OK;
}

cairn_status crn_writer_create(cairn_shelf *s, uint32_t nranks, uint32_t *ret_series,
                               crn_part **ret)
{
    holding h = {.nranks = nranks, .nown = nranks, .part = ret};
    bool adopted = false;
    CRN_TRY(begin_parts(s, true, &h, &adopted));
    *ret_series = h.series;
    if (adopted)
        note_adopted(s, &h);
    return CAIRN_OK;
}
