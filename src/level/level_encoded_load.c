/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rebuilding blocks from what is left of their stripes. A rank works for one old rank after the
 * other, and for each by batches of stripes; all ranks take the same steps, those with nothing to
 * do as well, since any of them may have what another asks for. Every rebuilt block is verified
 * against the digest that its description has.
 */
#include "level/level_encoded_batch.h"

#include <assert.h>

/* How far the missing blocks of a want have been dealt with. */
typedef struct progress {
    crn_want *want;
    size_t at, kept;
} progress;

/* What this rank rebuilds of one old rank. */
typedef struct job {
    uint32_t rank;
    crn_layout layout;
    crn_stream stream;     /* of the old rank */
    unsigned char *needed; /* bits of its units */
    uint64_t next;         /* the unit from which the next batch is filled */
    CRN_VEC(progress) want;
    crn_batch batch;
} job;

/* --- jobs --------------------------------------------------------------------------------- */

static void job_done(job *j)
{
    crn_batch_done(&j->batch);
    crn_stream_done(&j->stream);
    free(j->needed);
    crn_vec_done(&j->want);
}

/* Where a wanted block begins in the stream. */
static uint64_t start_of(const job *j, const crn_want *w, uint64_t block)
{
    return j->stream.start[w->var - w->share->var] + block * w->var->spec.block;
}

static void need_blocks(job *j, const crn_want *w)
{
    for (size_t i = 0; i < w->missing.n; i++) {
        uint64_t from = start_of(j, w, w->missing.at[i]);
        uint64_t to = from + crn_var_block_bytes(w->var, w->missing.at[i]);
        for (uint64_t unit = from / CRN_UNIT; unit * CRN_UNIT < to; unit++)
            crn_bit_set(j->needed, unit);
    }
}

/* All that is wanted of one old rank. */
static cairn_status gather_wants(job *j, crn_want *want, size_t n)
{
    CRN_TRY(crn_alloc(&j->needed, j->stream.nunits / 8 + 1));
    for (size_t i = 0; i < n; i++) {
        if (want[i].rank != j->rank || want[i].missing.n == 0)
            continue;
        CRN_TRY(crn_vec_push(&j->want, (progress){.want = &want[i]}));
        need_blocks(j, &want[i]);
    }
    return CAIRN_OK;
}

static void find_sources(job *j, const crn_vault *v, const crn_manifest_mark *mark)
{
    const crn_stripes *stripes = &j->layout.stripes;
    uint64_t nunits[CRN_ERASURE_MAX];
    for (uint32_t i = 0; i < stripes->nseats; i++)
        nunits[i] = j->layout.seat[i].nunits;
    for (uint32_t i = 0; i < stripes->nseats; i++) {
        crn_parity_source *s = &j->batch.source[i];
        s->nparity = crn_stripes_nparity(stripes, crn_stripes_count(stripes, nunits), i);
        s->own_id = crn_parity_own_id(v, mark, &j->layout.seat[i]);
        s->parity_id = crn_parity_id(v, mark, &j->layout.seat[i]);
        s->own = crn_vault_holder(v, &s->own_id, mark->version, 0);
        s->parity = crn_vault_holder(v, &s->parity_id, mark->version, 0);
    }
}

/* Begin to work for the rank of first. CAIRN_NOTHING when no set is known that had its share. */
static cairn_status job_init(job *j, const crn_vault *v, const crn_manifest_mark *mark,
                             const crn_want *first, crn_want *want, size_t n)
{
    uint32_t seat;
    j->rank = first->rank;
    CRN_TRY(crn_stream_init(&j->stream, first->share));
    if (!crn_parity_find(v, mark, j->rank, &j->layout, &seat) ||
        j->layout.seat[seat].nunits != j->stream.nunits)
        return CAIRN_NOTHING;
    CRN_TRY(gather_wants(j, want, n));
    CRN_TRY(crn_batch_init(&j->batch, &j->layout, seat, mark->version));
    find_sources(j, v, mark);
    return CAIRN_OK;
}

/* --- the other seats ---------------------------------------------------------------------- */

/* A description that does not fit the layout is of another mark. */
static cairn_status take_mark(job *j, uint32_t seat, crn_mark *mark)
{
    crn_parity_source *s = &j->batch.source[seat];
    if (!mark)
        return CAIRN_OK;
    s->mark = mark;
    cairn_status rc = crn_stream_init(&s->stream, mark);
    if (rc == CAIRN_ENOMEM)
        return rc;
    if (rc < 0 || s->stream.nunits != j->layout.seat[seat].nunits) {
        crn_mark_free(mark);
        s->mark = NULL;
    }
    return CAIRN_OK;
}

static size_t ask_marks(const job *j, crn_mark_fetch *fetch, uint32_t *seat)
{
    size_t n = 0;
    for (uint32_t i = 0; j && i < j->layout.stripes.nseats; i++) {
        if (i == j->batch.seat || j->layout.seat[i].nunits == 0)
            continue;
        seat[n] = i;
        fetch[n++] = (crn_mark_fetch){.holder = j->batch.source[i].own,
                                      .id = j->batch.source[i].own_id,
                                      .version = j->batch.version};
    }
    return n;
}

/* Learn what the other seats' streams are made of. Collective; j may be NULL. */
static cairn_status open_sources(crn_vault *v, job *j)
{
    crn_mark_fetch fetch[CRN_ERASURE_MAX];
    uint32_t seat[CRN_ERASURE_MAX];
    size_t n = ask_marks(j, fetch, seat);
    CRN_TRY(crn_fetch_marks(v, fetch, n));
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < n; i++) {
        if (rc == CAIRN_OK)
            rc = take_mark(j, seat[i], fetch[i].mark);
        else
            crn_mark_free(fetch[i].mark);
    }
    return crn_comm_agree(v->comm, rc);
}

/* --- batches ------------------------------------------------------------------------------ */

/* Units from this one to the end of its block: they belong together. */
static uint64_t units_of_block(const job *j, uint64_t unit)
{
    size_t i = crn_stream_find(&j->stream, unit * CRN_UNIT);
    const crn_var *var = &j->stream.mark->var[i];
    if (var->spec.block <= CRN_UNIT)
        return 1;
    uint64_t off = unit * CRN_UNIT - CRN_MIN(j->stream.start[i], unit * CRN_UNIT);
    uint64_t left = crn_var_block_bytes(var, off / var->spec.block) - off % var->spec.block;
    return (left + CRN_UNIT - 1) / CRN_UNIT;
}

/* Fill the next batch. CAIRN_NOTHING when all is done. */
static cairn_status next_batch(job *j)
{
    if (!j)
        return CAIRN_NOTHING;
    crn_batch *b = &j->batch;
    b->n = 0;
    for (; j->next < j->stream.nunits; j->next++) {
        if (!crn_bit(j->needed, j->next))
            continue;
        if (b->n + units_of_block(j, j->next) > b->cap)
            break;
        b->unit[b->n++] = j->next;
    }
    crn_batch_start(b);
    return b->n > 0 ? CAIRN_OK : CAIRN_NOTHING;
}

/* Fetch until each stripe of the batch has enough, or nothing is left to ask for. Collective. */
static cairn_status fetch_batch(crn_vault *v, crn_batch *b)
{
    cairn_status rc;
    while ((rc = crn_comm_agree(v->comm, b ? crn_batch_ask(b) : CAIRN_NOTHING)) == CAIRN_OK) {
        rc = crn_fetch_blocks(v, b ? b->fetch.at : NULL, b ? b->fetch.n : 0);
        if (b)
            crn_batch_take(b);
        CRN_TRY(rc);
    }
    return rc == CAIRN_NOTHING ? CAIRN_OK : rc;
}

/* --- delivery ----------------------------------------------------------------------------- */

/* The place of a unit in the batch; it is there. */
static size_t find_unit(const crn_batch *b, uint64_t unit)
{
    size_t low = 0, high = b->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (b->unit[mid] < unit)
            low = mid + 1;
        else
            high = mid;
    }
    assert(low < b->n && b->unit[low] == unit);
    return low;
}

/* Bring a block to its place, if all its units were rebuilt and give what they should. */
static bool deliver_block(const job *j, const crn_want *w, uint64_t block)
{
    uint64_t from = start_of(j, w, block);
    uint32_t nbytes = crn_var_block_bytes(w->var, block);
    size_t first = find_unit(&j->batch, from / CRN_UNIT);
    size_t nunits = (size_t)(from % CRN_UNIT + nbytes + CRN_UNIT - 1) / CRN_UNIT;
    for (size_t i = 0; i < nunits; i++)
        if (!crn_batch_unit(&j->batch, first + i))
            return false;
    unsigned char *dst = w->dst + (block - w->first) * w->var->spec.block;
    crn_digest d = crn_digest_copy(dst, crn_batch_unit(&j->batch, first) + from % CRN_UNIT, nbytes);
    return crn_digest_equal(&d, &w->var->table[block].digest);
}

/* Batches and missing blocks both ascend, so that each block is met once. */
static void deliver(job *j)
{
    uint64_t last = j->batch.unit[j->batch.n - 1];
    for (size_t k = 0; k < j->want.n; k++) {
        progress *p = &j->want.at[k];
        crn_bad_blocks *missing = &p->want->missing;
        for (; p->at < missing->n; p->at++) {
            uint64_t block = missing->at[p->at];
            if (start_of(j, p->want, block) / CRN_UNIT > last)
                break;
            if (!deliver_block(j, p->want, block))
                missing->at[p->kept++] = block;
        }
    }
}

static cairn_status finish_batch(job *j)
{
    if (!j || j->batch.n == 0)
        return CAIRN_OK;
    CRN_TRY(crn_batch_rebuild(&j->batch));
    deliver(j);
    return CAIRN_OK;
}

static void finish_job(job *j)
{
    for (size_t k = 0; k < j->want.n; k++) {
        progress *p = &j->want.at[k];
        assert(p->at == p->want->missing.n);
        p->want->missing.n = p->kept;
    }
}

/* --- all of it ---------------------------------------------------------------------------- */

/* Rebuild all that one job wants. Collective; j is NULL where there is none. */
static cairn_status run_job(crn_vault *v, job *j)
{
    cairn_status rc;
    CRN_TRY(open_sources(v, j));
    while ((rc = crn_comm_agree(v->comm, next_batch(j))) == CAIRN_OK) {
        CRN_TRY(fetch_batch(v, j ? &j->batch : NULL));
        CRN_TRY(crn_comm_agree(v->comm, finish_batch(j)));
    }
    if (j && rc == CAIRN_NOTHING)
        finish_job(j);
    return rc == CAIRN_NOTHING ? CAIRN_OK : rc;
}

/* The next old rank above after for which something is wanted, or NULL. */
static crn_want *next_rank(crn_want *want, size_t n, int64_t after)
{
    crn_want *next = NULL;
    for (size_t i = 0; i < n; i++)
        if (want[i].missing.n > 0 && (int64_t)want[i].rank > after &&
            (!next || want[i].rank < next->rank))
            next = &want[i];
    return next;
}

cairn_status crn_encoded_load(crn_vault *v, const crn_manifest_mark *mark, crn_want *want, size_t n)
{
    int64_t last = -1;
    for (;;) {
        crn_want *first = next_rank(want, n, last);
        job j = {0};
        cairn_status here = first ? job_init(&j, v, mark, first, want, n) : CAIRN_NOTHING;
        cairn_status rc = crn_comm_agree(v->comm, here < 0 || !first ? here : CAIRN_OK);
        if (rc == CAIRN_OK)
            rc = run_job(v, here == CAIRN_OK ? &j : NULL);
        job_done(&j);
        if (rc != CAIRN_OK)
            return rc == CAIRN_NOTHING ? CAIRN_OK : rc;
        last = first ? (int64_t)first->rank : last;
    }
}
