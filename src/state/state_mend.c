/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The index, as the parts tell it: all of it where it is lost, a bucket where that is damaged. A
 * state counts when the part of each process of its writer has it, and the writer's file of drops
 * does not.
 */
#include "state/state_log.h"

#include <unistd.h>

enum { ALL_BUCKETS = -1 };

typedef struct rebuild {
    cairn_shelf *shelf;
    int64_t bucket;             /* which of them to look for, or ALL_BUCKETS */
    const state_entries *known; /* what the index still says of it, which may be outdated */
    cairn_status (*list)(struct rebuild *r, const state_entry *e);
    state_index *index;  /* what to list in: an index, */
    state_entries found; /* or this */
    uint64_t nstates;    /* that were listed */
    char *drops;         /* of the writer at hand, that it has not heeded yet; */
    CRN_VEC(char *) line;
    crn_index dropped; /* its lines */
} rebuild;

/* --- what counts -------------------------------------------------------------------------- */

/* Do the other processes of the writer have the state, too? */
static bool others_have(const cairn_shelf *s, const state_entry *e)
{
    bool all = true;
    for (uint32_t r = 1; r < e->nranks && all; r++) {
        crn_part *part;
        all = crn_writer_part(s, e->series, r, e->nranks, false, &part) == CAIRN_OK;
        if (all) {
            uint64_t when;
            all = crn_part_find_state(part, (crn_state_name){e->key, e->version}, &when) &&
                  when == e->wall_ns;
            crn_part_close(part);
        }
    }
    return all;
}

/* Was it dropped by another process while its writer lived, and is still in the part? */
static bool is_dropped(const rebuild *r, const state_entry *e)
{
    char line[STATE_DROP_LINE];
    uint32_t at;
    crn_drop_line(e, line);
    for (size_t probe = 0; crn_index_next(&r->dropped, crn_hash_text(line), &probe, &at);)
        if (strcmp(r->line.at[at], line) == 0)
            return true;
    return false;
}

static bool is_same_put(const state_entry *a, const state_entry *b)
{
    return a->version == b->version && a->series == b->series && a->wall_ns == b->wall_ns &&
           strcmp(a->key, b->key) == 0;
}

static const state_entry *find_put(const state_entries *list, const state_entry *e)
{
    for (size_t i = 0; list && i < list->n; i++)
        if (is_same_put(&list->at[i], e))
            return &list->at[i];
    return NULL;
}

/* State i of a part. One whose record cannot be read is what the index says, if that says it. */
static cairn_status take_state(rebuild *r, crn_part *part, const crn_part_info *info, size_t i)
{
    state_entry e = {.series = info->id.series, .nranks = info->id.nranks};
    const crn_state_name name = crn_part_state(part, i, &e.wall_ns);
    if (r->bucket != ALL_BUCKETS && crn_state_index_bucket(name) != (uint64_t)r->bucket)
        return CAIRN_OK;
    snprintf(e.key, sizeof e.key, "%s", name.key);
    e.version = name.version;
    if (is_dropped(r, &e) || !others_have(r->shelf, &e))
        return CAIRN_OK;
    const state_entry *known = find_put(r->known, &e);
    const cairn_status rc = crn_reader_sum(r->shelf, &e, &e.digest, &e.nbytes);
    if (rc < 0 && !known)
        return rc == CAIRN_ECORRUPT || rc == CAIRN_ENOTFOUND ? CAIRN_OK : rc;
    return r->list(r, rc < 0 ? known : &e);
}

static cairn_status know_drops(rebuild *r, uint32_t series)
{
    free(r->drops);
    r->drops = NULL;
    r->line.n = 0;
    crn_index_clear(&r->dropped);
    CRN_TRY(crn_writer_drops(r->shelf, series, &r->drops));
    for (char *rest = r->drops, *line; (line = strsep(&rest, "\n"));) {
        CRN_TRY(crn_vec_push(&r->line, line));
        CRN_TRY(crn_index_add(&r->dropped, crn_hash_text(line), r->line.n - 1));
    }
    return CAIRN_OK;
}

/* The part cannot be read: its states are what the index says they are. */
static cairn_status keep_known(rebuild *r, uint32_t series)
{
    for (size_t i = 0; r->known && i < r->known->n; i++)
        if (r->known->at[i].series == series)
            CRN_TRY(r->list(r, &r->known->at[i]));
    return CAIRN_OK;
}

/* What cannot be read does not keep the others from being found. */
static cairn_status take_part(void *arg, uint32_t series, uint32_t rank)
{
    rebuild *r = arg;
    crn_part *part;
    crn_part_info info;
    if (rank > 0)
        return CAIRN_OK;
    if (crn_writer_part(r->shelf, series, 0, 0, false, &part) < 0)
        return keep_known(r, series);
    crn_part_describe(part, &info);
    cairn_status rc = know_drops(r, series);
    for (size_t i = 0; i < info.nmarks && rc == CAIRN_OK; i++)
        rc = take_state(r, part, &info, i);
    crn_part_close(part);
    return rc;
}

static cairn_status take_parts(rebuild *r)
{
    const cairn_status rc = crn_shelf_parts(r->shelf, take_part, r);
    crn_index_done(&r->dropped);
    crn_vec_done(&r->line);
    free(r->drops);
    crn_readers_done(r->shelf);
    return rc;
}

/* --- all of it ---------------------------------------------------------------------------- */

static cairn_status list_in_index(rebuild *r, const state_entry *e)
{
    const cairn_status rc =
        crn_state_index_find(r->index, (crn_state_name){e->key, e->version}, NULL);
    if (rc != CAIRN_NOTHING)
        return rc;
    r->nstates++;
    return crn_state_index_put(r->index, e);
}

cairn_status crn_shelf_make_index(cairn_shelf *s)
{
    rebuild r = {.shelf = s, .bucket = ALL_BUCKETS, .list = list_in_index};
    CRN_TRY(crn_state_index_create(s->fd, &r.index));
    const cairn_status rc = take_parts(&r);
    crn_state_index_close(r.index);
    CRN_TRY(rc);
    CRN_TRY(crn_state_index_publish(s->fd));
    if (r.nstates > 0)
        crn_log_shelf(s, "indexed", 0, r.nstates);
    return CAIRN_OK;
}

/* --- a bucket ----------------------------------------------------------------------------- */

/* Of two puts of one name, of which one was not to be listed, the index may know which was. */
static cairn_status list_in_bucket(rebuild *r, const state_entry *e)
{
    const state_entry *known = find_put(r->known, e);
    state_entry mine = *e;
    mine.pins = known ? known->pins : 0;
    for (size_t i = 0; i < r->found.n; i++) {
        state_entry *there = &r->found.at[i];
        if (there->version != e->version || strcmp(there->key, e->key) != 0)
            continue;
        if (known)
            *there = mine;
        return CAIRN_OK;
    }
    return crn_vec_push(&r->found, mine);
}

cairn_status crn_shelf_mend(void *shelf, uint64_t bucket, state_entries *list)
{
    rebuild r = {.shelf = shelf, .bucket = (int64_t)bucket, .known = list, .list = list_in_bucket};
    const cairn_status rc = take_parts(&r);
    if (rc < 0) {
        crn_vec_done(&r.found);
        return rc;
    }
    crn_vec_done(list);
    memcpy(list, &r.found, sizeof *list);
    crn_log_shelf(shelf, "indexed", 0, list->n);
    return CAIRN_OK;
}
