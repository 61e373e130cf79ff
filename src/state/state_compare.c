/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing states: those of a key on a shelf are to the comparison what the marks of a run are.
 */
#include "state/state_compare.h"

#include <inttypes.h>

typedef struct state_side {
    const cairn_states *states;
    char *name;
    state_entries entry; /* by version */
    CRN_VEC(diff_mark) mark;
    crn_diff_source source;
} state_side;

/* --- which states ------------------------------------------------------------------------- */

static int take_entry(void *arg, const state_entry *e)
{
    state_side *s = arg;
    return strcmp(e->key, s->states->key) == 0 && crn_vec_push(&s->entry, *e) < 0;
}

static int by_version(const void *a, const void *b)
{
    const state_entry *x = a, *y = b;
    return (x->version > y->version) - (x->version < y->version);
}

static cairn_status list_one(state_side *s)
{
    const crn_state_name name = {s->states->key, s->states->version};
    state_entry e;
    const cairn_status rc = crn_state_index_find(s->states->shelf->index, name, &e);
    CRN_TRY(rc);
    CRN_FAIL_IF(rc == CAIRN_NOTHING, CAIRN_ENOTFOUND, "'%s': there is no version %" PRIu64, s->name,
                name.version);
    return crn_vec_push(&s->entry, e);
}

static cairn_status list_all(state_side *s)
{
    const cairn_status rc = crn_state_index_scan(s->states->shelf->index, take_entry, s);
    CRN_FAIL_IF(rc == CAIRN_NOTHING, CAIRN_ENOMEM, "no memory for a list of states");
    CRN_TRY(rc);
    CRN_FAIL_IF(s->entry.n == 0, CAIRN_ENOTFOUND, "'%s': there is no such state", s->name);
    qsort(s->entry.at, s->entry.n, sizeof *s->entry.at, by_version);
    return CAIRN_OK;
}

/* All processes go by the first one's list: others may be put meanwhile. Collective. */
static cairn_status share_list(crn_comm *comm, state_side *s)
{
    uint64_t n = s->entry.n;
    CRN_TRY(crn_comm_bcast(comm, &n, sizeof n, 0));
    if (crn_comm_rank(comm) > 0)
        CRN_TRY(crn_comm_agree(comm, crn_vec_reserve(&s->entry, n)));
    else
        CRN_TRY(crn_comm_agree(comm, CAIRN_OK));
    s->entry.n = n;
    return crn_comm_bcast(comm, s->entry.at, n * sizeof *s->entry.at, 0);
}

static cairn_status list(crn_comm *comm, state_side *s)
{
    const cairn_shelf *shelf = s->states->shelf;
    const size_t room = strlen(shelf->path) + strlen(s->states->key) + 2;
    cairn_status rc = crn_alloc(&s->name, room);
    if (rc == CAIRN_OK)
        snprintf(s->name, room, "%s/%s", shelf->path, s->states->key);
    if (rc == CAIRN_OK && crn_comm_rank(comm) == 0)
        rc = s->states->all ? list_all(s) : list_one(s);
    CRN_TRY(crn_comm_agree(comm, rc));
    return share_list(comm, s);
}

/* --- as sources --------------------------------------------------------------------------- */

static cairn_status open_share(void *arg, size_t i, uint32_t rank, crn_part **ret_part,
                               crn_mark **ret)
{
    const state_side *s = arg;
    return crn_reader_open(s->states->shelf, &s->entry.at[i], rank, ret_part, ret);
}

static bool has_dropped(void *arg, size_t i)
{
    const state_side *s = arg;
    const state_entry *e = &s->entry.at[i];
    state_entry now;
    const cairn_status rc =
        crn_state_index_find(s->states->shelf->index, (crn_state_name){e->key, e->version}, &now);
    return rc == CAIRN_NOTHING || (rc == CAIRN_OK && now.wall_ns != e->wall_ns);
}

/* Two single states are compared whatever their versions are. */
static cairn_status make_source(state_side *s, const uint64_t *version)
{
    for (size_t i = 0; i < s->entry.n; i++) {
        const state_entry *e = &s->entry.at[i];
        CRN_TRY(crn_vec_push(&s->mark, ((diff_mark){.version = version ? *version : e->version,
                                                    .wall_ns = e->wall_ns,
                                                    .series = e->series,
                                                    .nranks = e->nranks,
                                                    .in_trail = true,
                                                    .nbytes = e->nbytes})));
    }
    s->source = (crn_diff_source){.name = s->name,
                                  .mark = s->mark.at,
                                  .n = s->mark.n,
                                  .open = open_share,
                                  .has_dropped = has_dropped,
                                  .arg = s};
    return CAIRN_OK;
}

static void done(state_side *s)
{
    free(s->name);
    crn_vec_done(&s->entry);
    crn_vec_done(&s->mark);
}

/* --- the call ----------------------------------------------------------------------------- */

static cairn_status prepare(crn_comm *comm, state_side side[2])
{
    const bool single = !side[0].states->all && !side[1].states->all;
    CRN_TRY(list(comm, &side[0]));
    CRN_TRY(list(comm, &side[1]));
    cairn_status rc = make_source(&side[0], NULL);
    if (rc == CAIRN_OK)
        rc = make_source(&side[1], single ? &side[0].entry.at[0].version : NULL);
    return crn_comm_agree(comm, rc);
}

static cairn_status check(const cairn_states *s)
{
    CRN_FAIL_IF(!s || !s->shelf || !s->key, CAIRN_EINVAL, "comparing: an argument is NULL");
    CRN_FAIL_IF(!crn_key_is_valid(s->key), CAIRN_EINVAL, "'%.80s' is no key", s->key);
    return CAIRN_OK;
}

cairn_status crn_states_compare(crn_comm *comm, const cairn_states *first,
                                const cairn_states *second, const cairn_comparison_options *how,
                                cairn_comparison *ret)
{
    state_side side[2] = {{.states = first}, {.states = second}};
    cairn_status rc = check(first);
    if (rc == CAIRN_OK)
        rc = check(second);
    rc = crn_comm_agree(comm, rc);
    if (rc == CAIRN_OK)
        rc = prepare(comm, side);
    if (rc == CAIRN_OK)
        rc = crn_diff_sources(comm, &side[0].source, &side[1].source, how, ret);
    else
        crn_comm_free(comm);
    done(&side[0]);
    done(&side[1]);
    return rc;
}
