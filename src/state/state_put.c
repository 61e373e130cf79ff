/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Putting a state, by all processes of a group together:
 *
 *     1. each prepares its share as a draft; the blocks go to the file, and nobody sees them
 *     2. process 0 locks the bucket of the name: of two groups that put the same state one is first
 *     3. all commit their parts, and agree that all have
 *     4. process 0 lists the state in the index; now it counts
 *
 * Whatever dies before the last step leaves a state that does not count, and that is removed by
 * whoever opens the part next.
 */
#include "state/state_shelf.h"

#include <inttypes.h>

typedef struct share {
    crn_digest digest;
    uint64_t nbytes;
} share;

typedef struct putting {
    cairn_shelf *s;
    crn_state_name name;
    const char *parent;
    const cairn_field *field;
    size_t n;
    crn_var_spec *spec;
    crn_draft *draft;
    bool locked; /* process 0 */
    bool committed;
    state_entry entry; /* what process 0 will list */
} putting;

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
    CRN_TRY(crn_alloc(&p->spec, p->n));
    for (size_t i = 0; i < p->n; i++)
        CRN_TRY(crn_field_spec(p->s, &p->field[i], &p->spec[i]));
    return CAIRN_OK;
}

/* --- two writers, one state --------------------------------------------------------------- */

/* The state is there: is ours the same? */
static cairn_status judge(const putting *p, const state_entry *there)
{
    char old[STATE_DIGEST_TEXT], new[STATE_DIGEST_TEXT];
    if (crn_digest_equal(&there->digest, &p->entry.digest))
        return CAIRN_NOTHING;
    return crn_fail(CAIRN_EMISMATCH,
                    "another one was put before, by writer %" PRIu32 ", and has digest %s, not %s",
                    there->series, crn_state_digest_text(&there->digest, old),
                    crn_state_digest_text(&p->entry.digest, new));
}

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

/* Is the state there already, before anything is written? Then it is only compared. Collective;
 * CAIRN_OK: no, CAIRN_NOTHING: yes, and the same. */
static cairn_status look_first(putting *p)
{
    state_entry there;
    share mine = {.nbytes = 0};
    cairn_status rc = CAIRN_OK;
    if (is_first(p)) {
        rc = crn_state_index_find(p->s->index, p->name, &there);
        rc = rc == CAIRN_OK ? CAIRN_NOTHING : rc == CAIRN_NOTHING ? CAIRN_OK : rc;
    }
    rc = share_verdict(p, rc);
    if (rc != CAIRN_NOTHING)
        return rc;
    rc = gather(p, crn_memory_digest(p->spec, p->field, p->n, &mine.digest), &mine);
    CRN_TRY(rc);
    return share_verdict(p, is_first(p) ? judge(p, &there) : CAIRN_OK);
}

/* --- limits ------------------------------------------------------------------------------- */

typedef struct census {
    uint64_t nstates, nbytes;
} census;

static int count(void *arg, const state_entry *e)
{
    census *c = arg;
    c->nstates++;
    c->nbytes += e->nbytes;
    return 0;
}

/* What to give up is the caller's to choose. */
static cairn_status check_limits(const putting *p)
{
    const uint64_t states = crn_config_count(p->s->cfg, CRN_OPT_STATE_MAX_STATES);
    const uint64_t nbytes = crn_config_nbytes(p->s->cfg, CRN_OPT_STATE_MAX_BYTES);
    census c = {0};
    if (states == UINT64_MAX && nbytes == UINT64_MAX)
        return CAIRN_OK;
    CRN_TRY(crn_state_index_scan(p->s->index, count, &c));
    CRN_FAIL_IF(c.nstates >= states, CAIRN_ENOSPC,
                "the shelf has %" PRIu64 " states, and state.max_states allows no more: drop one",
                c.nstates);
    CRN_FAIL_IF(p->entry.nbytes > nbytes || c.nbytes > nbytes - p->entry.nbytes, CAIRN_ENOSPC,
                "the shelf has %" PRIu64 " bytes, and state.max_bytes does not allow %" PRIu64
                " more: drop something",
                c.nbytes, p->entry.nbytes);
    return CAIRN_OK;
}

/* --- the four steps ----------------------------------------------------------------------- */

static cairn_status prepare(putting *p)
{
    CRN_TRY(crn_state_begin(p->s->part, p->name, p->parent, &p->draft));
    crn_draft_set_time(p->draft, p->entry.wall_ns);
    for (size_t i = 0; i < p->n; i++) {
        crn_put how = {.way = CRN_PUT_COPY};
        size_t v;
        CRN_TRY(crn_draft_add(p->draft, &p->spec[i], &v));
        CRN_TRY(crn_draft_put_changed(p->draft, v, p->field[i].data, &how));
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

/* Process 0: keep others from putting the same state, and see whether one was faster. */
static cairn_status arbitrate(putting *p)
{
    state_entry there;
    if (!is_first(p))
        return CAIRN_OK;
    CRN_TRY(check_limits(p));
    CRN_TRY(crn_state_index_lock(p->s->index, p->name));
    p->locked = true;
    const cairn_status rc = crn_state_index_find(p->s->index, p->name, &there);
    return rc == CAIRN_NOTHING ? CAIRN_OK : rc == CAIRN_OK ? judge(p, &there) : rc;
}

static cairn_status commit(putting *p)
{
    crn_stage_enter(CRN_STAGE_STORE);
    const cairn_status rc = crn_draft_commit(p->draft, CRN_KEEP_ALL, NULL);
    p->draft = NULL;
    p->committed = rc == CAIRN_OK;
    return rc;
}

static cairn_status list(putting *p)
{
    state_entry *e = &p->entry;
    if (!is_first(p))
        return CAIRN_OK;
    snprintf(e->key, sizeof e->key, "%s", p->name.key);
    e->version = p->name.version;
    e->series = p->s->series;
    e->nranks = (uint32_t)crn_comm_size(p->s->comm);
    crn_stage_enter(CRN_STAGE_COMMIT);
    const cairn_status rc = crn_state_index_put(p->s->index, e);
    if (rc < 0) { /* it may stand there all the same */
        const crn_err why = *crn_err_peek();
        (void)crn_state_index_remove(p->s->index, p->name);
        return crn_err_give(&why);
    }
    return CAIRN_OK;
}

/* Collective; CAIRN_NOTHING: it is there. */
static cairn_status put(putting *p)
{
    share mine = {.nbytes = 0};
    CRN_TRY(crn_writer_begin(p->s));
    CRN_TRY(crn_writer_heed(p->s));
    cairn_status rc = look_first(p);
    if (rc != CAIRN_OK)
        return rc;
    CRN_TRY(draw_time(p));
    rc = prepare(p);
    if (rc == CAIRN_OK)
        rc = crn_mark_digest(crn_draft_mark(p->draft), true, &mine.digest, &mine.nbytes);
    CRN_TRY(gather(p, rc, &mine));
    rc = share_verdict(p, arbitrate(p));
    if (rc != CAIRN_OK)
        return rc;
    CRN_TRY(agree(p, commit(p)));
    return agree(p, list(p));
}

/* End what was begun. A put that failed leaves nothing; what cannot be removed now does not count,
 * and is removed by the next writer. */
static void conclude(putting *p, cairn_status rc)
{
    const crn_err why = *crn_err_peek();
    if (rc < 0 && p->committed)
        (void)crn_part_drop(p->s->part, &p->name, 1);
    crn_draft_drop(p->draft);
    if (p->locked)
        crn_state_index_unlock(p->s->index, p->name);
    free(p->spec);
    if (rc < 0)
        (void)crn_err_give(&why);
}

cairn_status crn_state_put(cairn_shelf *s, crn_state_name name, const char *parent,
                           const cairn_field *field, size_t n)
{
    putting p = {.s = s, .name = name, .parent = parent, .field = field, .n = n};
    cairn_status rc = agree(&p, check(&p));
    if (rc == CAIRN_OK)
        rc = put(&p);
    conclude(&p, rc);
    return rc;
}
