/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Do the processes of a group mean the same state? What one of them calls otherwise would be listed
 * and never whole.
 */
#include "state/state_shelf.h"

#include <inttypes.h>

/* What a process says of a state, for the others: its name, and of each field what must be the same
 * everywhere. A process may leave out a field of which it has nothing. */
static void put_words(crn_buf *b, crn_state_name name, const cairn_field *f, size_t n)
{
    crn_put_str(b, name.key);
    crn_put_u64(b, name.version);
    crn_put_u32(b, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        const int ndims = f[i].kind == CAIRN_FIELD_CELLS ? 1 : f[i].ndims;
        crn_put_str(b, f[i].name);
        crn_put_u32(b, f[i].type);
        crn_put_u32(b, (uint32_t)f[i].kind);
        crn_put_u32(b, (uint32_t)ndims);
        for (int d = 0; d < ndims; d++)
            crn_put_u64(b, f[i].global[d]);
    }
}

/* --- process 0 looks closer --------------------------------------------------------------- */

typedef struct words {
    char name[CRN_VAR_NAME + 1];
    uint32_t type, kind, ndims;
    uint64_t global[CRN_DIMS_MAX];
    size_t rank; /* who says so */
} words;

typedef struct census {
    CRN_VEC(words) said;
    crn_index by_name;
} census;

static void get_words(crn_cursor *c, words *w)
{
    crn_get_str(c, w->name, CRN_VAR_NAME);
    w->type = crn_get_u32(c);
    w->kind = crn_get_u32(c);
    w->ndims = crn_get_u32(c);
    crn_cursor_expect(c, w->ndims <= CRN_DIMS_MAX);
    for (uint32_t d = 0; !c->failed && d < w->ndims; d++)
        w->global[d] = crn_get_u64(c);
}

static cairn_status compare(const words *a, const words *b)
{
    CRN_FAIL_IF(a->type != b->type, CAIRN_EMISMATCH,
                "field '%s' is %s on process %zu and %s on process %zu", a->name,
                cairn_type_name(a->type), a->rank, cairn_type_name(b->type), b->rank);
    CRN_FAIL_IF(a->kind != b->kind || a->ndims != b->ndims, CAIRN_EMISMATCH,
                "field '%s' has another kind, or another number of dimensions, on process %zu than "
                "on process %zu",
                a->name, a->rank, b->rank);
    for (uint32_t d = 0; d < a->ndims; d++)
        CRN_FAIL_IF(a->global[d] != b->global[d], CAIRN_EMISMATCH,
                    "field '%s', dimension %" PRIu32 ": the array has %" PRIu64
                    " elements on process %zu and %" PRIu64 " on process %zu",
                    a->name, d, a->global[d], a->rank, b->global[d], b->rank);
    return CAIRN_OK;
}

static cairn_status take_words(census *all, const words *w)
{
    const uint64_t hash = crn_hash_text(w->name);
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&all->by_name, hash, &probe, &at);)
        if (strcmp(all->said.at[at].name, w->name) == 0)
            return compare(&all->said.at[at], w);
    CRN_TRY(crn_vec_push(&all->said, *w));
    return crn_index_add(&all->by_name, hash, all->said.n - 1);
}

static cairn_status take_rank(census *all, crn_cursor *c, crn_state_name name, size_t rank)
{
    char key[CRN_KEY_MAX + 1];
    crn_get_str(c, key, CRN_KEY_MAX);
    const uint64_t version = crn_get_u64(c);
    const uint32_t n = crn_get_u32(c);
    CRN_TRY(crn_cursor_status(c, "words of a process"));
    CRN_FAIL_IF(strcmp(key, name.key) != 0 || version != name.version, CAIRN_EMISMATCH,
                "process %zu puts state '%s' %" PRIu64 ", and process 0 '%s' %" PRIu64, rank, key,
                version, name.key, name.version);
    for (uint32_t i = 0; i < n; i++) {
        words w = {.rank = rank};
        get_words(c, &w);
        CRN_TRY(crn_cursor_status(c, "words of a process"));
        CRN_TRY(take_words(all, &w));
    }
    return CAIRN_OK;
}

static cairn_status look_closer(const crn_gathered *g, size_t nranks, crn_state_name name)
{
    census all = {0};
    cairn_status rc = CAIRN_OK;
    for (size_t r = 0; r < nranks && rc == CAIRN_OK; r++) {
        crn_cursor c = crn_cursor_of(g->data + g->off[r], g->off[r + 1] - g->off[r]);
        rc = take_rank(&all, &c, name, r);
    }
    crn_vec_done(&all.said);
    crn_index_done(&all.by_name);
    return rc;
}

/* --- all ---------------------------------------------------------------------------------- */

/* Do all say the same, word by word? Mostly so, and then nobody has to look at all. */
static cairn_status say_same(crn_comm *comm, const crn_buf *b, bool *ret)
{
    const crn_digest d = crn_digest_of(b->at, b->n);
    uint64_t low[2];
    memcpy(&low[0], d.b, sizeof low[0]);
    low[1] = ~low[0];
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_MIN, low, 2));
    *ret = low[0] == ~low[1];
    return CAIRN_OK;
}

cairn_status crn_fields_alike(crn_comm *comm, crn_state_name name, const cairn_field *f, size_t n)
{
    crn_gathered all = {0};
    crn_buf b = {0};
    bool same;
    if (crn_comm_size(comm) == 1)
        return CAIRN_OK;
    put_words(&b, name, f, n);
    cairn_status rc = crn_comm_agree(comm, crn_buf_status(&b));
    if (rc == CAIRN_OK)
        rc = say_same(comm, &b, &same);
    if (rc == CAIRN_OK && !same) {
        rc = crn_comm_gatherv(comm, b.at, b.n, 0, &all);
        if (rc == CAIRN_OK && crn_comm_rank(comm) == 0)
            rc = look_closer(&all, (size_t)crn_comm_size(comm), name);
        rc = crn_comm_agree(comm, rc);
    }
    crn_gathered_done(&all);
    crn_buf_done(&b);
    return rc;
}
