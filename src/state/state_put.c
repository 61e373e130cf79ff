/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Putting a state, by all processes of a group together:
 *
 *     1. capture: each prepares its share as a draft, of which nobody sees anything
 *     2. store: each commits its part
 *     3. finish: all agree that all have; process 0 locks the bucket of the name, so that of two
 *        groups that put the same state one is first, and lists it in the index; now it counts
 *
 * Only the first and the last step are collective, and only the first one needs the program's
 * memory, so that the others can be left to the engine. Whatever dies before the last step leaves a
 * state that does not count, and that is removed by whoever opens the part next.
 */
#include "state/state_log.h"

#include <inttypes.h>

typedef struct share {
    crn_digest digest;
    uint64_t nbytes;
} share;

struct state_putting {
    cairn_shelf *s;
    crn_state_name name; /* whose key is that of the entry, once it is checked */
    const char *parent;  /* until it is captured, like the next three */
    const cairn_field *field;
    size_t n;
    state_vars var;
    crn_draft *draft;
    bool committed;
    bool mends, struck; /* a damaged state that it is the same as: it is in its place now, and */
    state_entry old;    /* may have been in our own part, which had to give it up first */
    uint64_t begun_ns;
    state_entry entry; /* what process 0 will list */
};

typedef state_putting putting;

static bool is_first(const putting *p)
{
    return crn_comm_rank(p->s->comm) == 0;
}

static cairn_status agree(const putting *p, cairn_status rc)
{
    return crn_comm_agree(p->s->comm, rc);
}

static cairn_status check(putting *p)
{
    CRN_FAIL_IF(!p->name.key || !crn_key_is_valid(p->name.key), CAIRN_EINVAL,
                "that is no key: use 1 to %d letters, digits, '.', '_' and '-'", CRN_KEY_MAX);
    CRN_FAIL_IF(p->name.version > CRN_VERSION_MAX, CAIRN_EINVAL, "versions end at %" PRIu64,
                CRN_VERSION_MAX);
    snprintf(p->entry.key, sizeof p->entry.key, "%s", p->name.key);
    p->name.key = p->entry.key;
    return crn_fields_declare(p->s, p->field, p->n, &p->var);
}

/* --- two writers, one state --------------------------------------------------------------- */

/* Process 0 learns what all have. Collective. */
static cairn_status gather(putting *p, cairn_status rc, const share *mine)
{
    const size_t n = (size_t)crn_comm_size(p->s->comm);
    share *all = NULL;
    crn_digest *digest = NULL;
    if (rc == CAIRN_OK)
        rc = crn_alloc(&all, n);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&digest, n);
    CRN_TRY_OUT(rc, agree(p, rc));
    CRN_TRY_OUT(rc, crn_comm_gather(p->s->comm, mine, sizeof *mine, 0, all));
    p->entry.nbytes = 0;
    for (size_t i = 0; is_first(p) && i < n; i++) {
        digest[i] = all[i].digest;
        p->entry.nbytes += all[i].nbytes;
    }
    if (is_first(p))
        p->entry.digest = crn_shares_digest(digest, n);
out:
    free(all);
    free(digest);
    return rc;
}

/* What process 0 found out, for all. */
static cairn_status share_verdict(const putting *p, cairn_status rc)
{
    int32_t code = rc;
    CRN_TRY(agree(p, CRN_MIN(rc, CAIRN_OK)));
    CRN_TRY(crn_comm_bcast(p->s->comm, &code, sizeof code, 0));
    return (cairn_status)code;
}

/* Of a state that is the same: can all of it be read? Each process looks at its share. Collective;
 * CAIRN_OK: no, so it is put in its place, and CAIRN_NOTHING. */
static cairn_status look_closer(putting *p, const share *mine)
{
    cairn_shelf *s = p->s;
    uint64_t damaged = 0;
    if (!crn_shelf_rechecks(s))
        return CAIRN_NOTHING;
    CRN_TRY(crn_comm_bcast(s->comm, &p->old, sizeof p->old, 0));
    const cairn_status rc =
        crn_share_verify(s, &p->old, (uint32_t)crn_comm_rank(s->comm), &mine->digest);
    damaged = crn_is_damage(rc);
    CRN_TRY(agree(p, damaged ? CAIRN_OK : rc));
    CRN_TRY(crn_comm_allreduce_u64(s->comm, CRN_REDUCE_MAX, &damaged, 1));
    p->mends = damaged > 0;
    return p->mends ? CAIRN_OK : CAIRN_NOTHING;
}

/* Is the state there already, before anything is written? Then it is only compared. Collective;
 * CAIRN_OK: no, or what is there is damaged; CAIRN_NOTHING: yes, and the same. */
static cairn_status look_first(putting *p)
{
    share mine = {.nbytes = 0};
    cairn_status rc = CAIRN_OK;
    if (is_first(p)) {
        rc = crn_state_index_find(p->s->index, p->name, &p->old);
        rc = rc == CAIRN_OK ? CAIRN_NOTHING : rc == CAIRN_NOTHING ? CAIRN_OK : rc;
    }
    rc = share_verdict(p, rc);
    if (rc != CAIRN_NOTHING)
        return rc;
    rc = gather(p, crn_memory_digest(&p->var, &mine.digest), &mine);
    CRN_TRY(rc);
    rc = share_verdict(p, is_first(p) ? crn_state_judge(&p->old, &p->entry) : CAIRN_OK);
    return rc == CAIRN_NOTHING ? look_closer(p, &mine) : rc;
}

/* --- the three steps ---------------------------------------------------------------------- */

static cairn_status prepare(putting *p)
{
    p->struck = p->mends && p->old.series == p->s->series;
    CRN_TRY(crn_part_drop(p->s->part, &p->name, 1)); /* a put that failed may have left it */
    CRN_TRY(crn_state_begin(p->s->part, p->name, p->parent, &p->draft));
    crn_draft_set_time(p->draft, p->entry.wall_ns);
    for (size_t i = 0; i < p->var.n; i++) {
        crn_put how = {.way = CRN_PUT_COPY};
        size_t v;
        CRN_TRY(crn_draft_add(p->draft, &p->var.at[i].spec, &v));
        crn_draft_encode(p->draft, v, &p->var.at[i].codec);
        CRN_TRY(crn_draft_put_changed(p->draft, v, p->var.at[i].data, &how));
        crn_stage_enter(CRN_STAGE_CAPTURE);
    }
    return CAIRN_OK;
}

/* The time of process 0 names this put in all parts. */
static cairn_status draw_time(putting *p)
{
    p->entry.wall_ns = crn_wall_ns();
    return crn_comm_bcast(p->s->comm, &p->entry.wall_ns, sizeof p->entry.wall_ns, 0);
}

/* Collective; CAIRN_NOTHING: it is there. */
static cairn_status capture(putting *p, uint64_t staging)
{
    share mine = {.nbytes = 0};
    CRN_TRY(crn_writer_begin(p->s));
    CRN_TRY(crn_writer_heed(p->s));
    cairn_status rc = look_first(p);
    if (rc != CAIRN_OK)
        return rc;
    CRN_TRY(draw_time(p));
    crn_part_set_staging(p->s->part, staging);
    rc = prepare(p);
    if (rc == CAIRN_OK)
        rc = crn_mark_digest(crn_draft_mark(p->draft), true, &mine.digest, &mine.nbytes);
    CRN_TRY(gather(p, rc, &mine));
    return agree(p, is_first(p) && !p->mends ? crn_state_limits(p->s, &p->entry) : CAIRN_OK);
}

/* Process 0: list the state, unless another group was faster. */
static cairn_status claim(putting *p)
{
    state_entry *e = &p->entry;
    if (!is_first(p))
        return CAIRN_OK;
    e->version = p->name.version;
    e->series = p->s->series;
    e->nranks = (uint32_t)crn_comm_size(p->s->comm);
    const cairn_status rc = crn_state_claim(p->s, e, p->mends ? &p->old : NULL);
    if (rc == CAIRN_OK && p->mends && p->old.series != e->series)
        (void)crn_writer_reclaim(p->s, &p->old); /* costs space, and nothing else */
    return rc;
}

/* What is in the part for nobody, since those who dropped it could not say so, is in the way now;
 * so is free space of the file, where what is to come does not fit. */
static void make_room(putting *p)
{
    crn_draft_drop(p->draft);
    p->draft = NULL;
    crn_part_info before, now;
    crn_part_describe(p->s->part, &before);
    (void)crn_writer_reconcile(p->s, p->s->part);
    crn_part_describe(p->s->part, &now);
    p->s->made_room = crn_part_shrink(p->s->part) || now.nmarks < before.nmarks;
}

/* End what was begun. A put that failed leaves nothing; what cannot be removed now does not count,
 * and is removed by the next writer. */
static void conclude(putting *p, cairn_status rc)
{
    const crn_err why = *crn_err_peek();
    if (is_first(p) && rc != CAIRN_NOTHING && p->entry.key[0]) {
        p->entry.version = p->name.version;
        crn_log_state(p->s, &p->entry,
                      rc < 0     ? "put failed"
                      : p->mends ? "mended"
                                 : "put",
                      (double)(crn_now_ns() - p->begun_ns) * 1e-9, rc);
    }
    if (rc != CAIRN_OK && p->committed) {
        (void)crn_part_drop(p->s->part, &p->name, 1);
        p->entry.version = p->name.version;
        p->entry.series = p->s->series;
        crn_state_unlist(p->s, &p->entry);
    }
    if (rc < 0 && p->struck && is_first(p))
        crn_state_unlist(p->s, &p->old);
    if (rc == CAIRN_ENOSPC && p->s->part)
        make_room(p);
    crn_draft_drop(p->draft);
    crn_state_vars_done(&p->var);
    free(p);
    if (rc < 0)
        (void)crn_err_give(&why);
}

cairn_status crn_put_capture(cairn_shelf *s, crn_state_name name, const char *parent,
                             const cairn_field *field, size_t n, uint64_t staging,
                             state_putting **ret)
{
    putting *p;
    CRN_TRY(crn_comm_agree(s->comm, crn_alloc(&p, 1)));
    *p = (putting){
        .s = s, .name = name, .parent = parent, .field = field, .n = n, .begun_ns = crn_now_ns()};
    cairn_status rc = agree(p, check(p));
    if (rc == CAIRN_OK)
        rc = crn_fields_alike(s->comm, p->name, field, n);
    if (rc == CAIRN_OK)
        rc = crn_fields_share_cells(s->comm, field, n);
    if (rc == CAIRN_OK)
        rc = capture(p, staging);
    if (rc != CAIRN_OK) {
        conclude(p, rc);
        return rc;
    }
    *ret = p;
    return CAIRN_OK;
}

cairn_status crn_put_store(state_putting *p)
{
    crn_stage_enter(CRN_STAGE_STORE);
    const cairn_status rc = crn_draft_commit(p->draft, CRN_KEEP_ALL, NULL);
    p->draft = NULL;
    p->committed = rc == CAIRN_OK;
    return rc;
}

cairn_status crn_put_finish(state_putting *p, cairn_status stored)
{
    cairn_status rc = agree(p, stored);
    if (rc == CAIRN_OK)
        rc = share_verdict(p, claim(p));
    conclude(p, rc);
    return rc;
}

static cairn_status put_once(cairn_shelf *s, crn_state_name name, const char *parent,
                             const cairn_field *field, size_t n)
{
    state_putting *p;
    const cairn_status rc = crn_put_capture(s, name, parent, field, n, 0, &p);
    return rc == CAIRN_OK ? crn_put_finish(p, crn_put_store(p)) : rc;
}

cairn_status crn_state_put(cairn_shelf *s, crn_state_name name, const char *parent,
                           const cairn_field *field, size_t n)
{
    uint64_t again = 0;
    cairn_status rc = put_once(s, name, parent, field, n);
    if (rc != CAIRN_ENOSPC)
        return rc;
    const crn_err why = *crn_err_peek();
    again = s->made_room;
    s->made_room = false;
    CRN_TRY(crn_comm_allreduce_u64(s->comm, CRN_REDUCE_MAX, &again, 1));
    return again ? put_once(s, name, parent, field, n) : crn_err_give(&why);
}
