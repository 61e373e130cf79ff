/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rebuilding blocks from what is left of their stripes. A rank works for one old rank after the
 * other, and for each by batches of stripes. It asks for as many units of each stripe as the code
 * needs, data before parity; what comes back damaged is replaced by asking for others, until a
 * stripe is whole or nothing of it is left to ask for. Every rebuilt block is verified against the
 * digest that its description has.
 */
#include "level/level_encoded.h"

#include <assert.h>

/* What is known of a seat's unit in a stripe of the batch. */
enum { UNIT_THERE, UNIT_ASKED, UNIT_HERE, UNIT_LOST };

/* Another seat of the set. */
typedef struct source {
    crn_part_id own_id, parity_id;
    int own, parity;  /* who reads these files; -1: nobody */
    uint64_t nparity; /* units of its parity */
    crn_mark *mark;   /* NULL: its data is lost */
    crn_stream stream;
} source;

/* A piece of a block that is larger than a unit, to be copied to its unit when it has come. */
typedef struct slice {
    size_t fetch; /* the block */
    uint64_t off; /* in it */
    size_t at;    /* in the batch's units */
    uint32_t nbytes;
} slice;

/* The want of a block: how far its missing blocks have been dealt with. */
typedef struct progress {
    crn_want *want;
    size_t at, kept;
} progress;

/* What this rank rebuilds of one old rank. */
typedef struct job {
    uint32_t rank, seat;
    uint64_t version;
    crn_layout layout;
    int ndata;
    crn_erasure *code;
    crn_rebuild *plan; /* for the pattern below, which neighbours mostly share */
    bool present[CRN_ERASURE_MAX];
    int wanted;
    crn_stream stream;     /* of the old rank */
    unsigned char *needed; /* bits of its units */
    uint64_t next;         /* the unit from which the next batch is filled */
    CRN_VEC(progress) want;
    source *source; /* one for each seat */
    /* the batch */
    size_t cap, n; /* units that fit, and that there are */
    uint64_t *unit;
    unsigned char *data;  /* cap units for each seat */
    unsigned char *state; /* of each of those */
    crn_block_fetches fetch;
    CRN_VEC(slice) slice; /* by ascending fetch */
} job;

/* --- jobs --------------------------------------------------------------------------------- */

/* Forget what was asked for; blocks that are larger than a unit have memory of their own. */
static void drop_fetches(job *j)
{
    for (size_t i = 0; i < j->slice.n; i++)
        if (i == 0 || j->slice.at[i].fetch != j->slice.at[i - 1].fetch)
            free(j->fetch.at[j->slice.at[i].fetch].dst);
    for (size_t i = 0; i < j->fetch.n; i++)
        crn_vec_done(&j->fetch.at[i].bad);
    j->fetch.n = j->slice.n = 0;
}

static void job_done(job *j)
{
    drop_fetches(j);
    for (uint32_t i = 0; j->source && i < j->layout.stripes.nseats; i++) {
        crn_mark_free(j->source[i].mark);
        crn_stream_done(&j->source[i].stream);
    }
    free(j->source);
    crn_rebuild_free(j->plan);
    crn_erasure_free(j->code);
    crn_stream_done(&j->stream);
    free(j->needed);
    crn_vec_done(&j->want);
    free(j->unit);
    free(j->data);
    free(j->state);
    crn_vec_done(&j->fetch);
    crn_vec_done(&j->slice);
}

static uint64_t stripe_of(const job *j, size_t i)
{
    return crn_stripe_of(&j->layout.stripes, j->seat, j->unit[i]);
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
    for (size_t i = 0; i < n; i++) {
        if (want[i].rank != j->rank || want[i].missing.n == 0)
            continue;
        CRN_TRY(crn_vec_push(&j->want, (progress){.want = &want[i]}));
        need_blocks(j, &want[i]);
    }
    return CAIRN_OK;
}

static cairn_status make_batch(job *j)
{
    /* a batch takes some 32 MiB, but always the largest block */
    size_t nseats = j->layout.stripes.nseats;
    j->cap = CRN_MAX(512 / nseats, (size_t)CRN_BLOCK_MAX / CRN_UNIT);
    CRN_TRY(crn_alloc(&j->unit, j->cap));
    CRN_TRY(crn_alloc(&j->state, j->cap * nseats));
    return crn_alloc_aligned(&j->data, j->cap * nseats * CRN_UNIT, 4096);
}

static void find_sources(job *j, const crn_vault *v, const crn_manifest_mark *mark)
{
    const crn_stripes *stripes = &j->layout.stripes;
    uint64_t nunits[CRN_ERASURE_MAX];
    for (uint32_t i = 0; i < stripes->nseats; i++)
        nunits[i] = j->layout.seat[i].nunits;
    for (uint32_t i = 0; i < stripes->nseats; i++) {
        source *s = &j->source[i];
        s->nparity = crn_stripes_nparity(stripes, crn_stripes_count(stripes, nunits), i);
        s->own_id = crn_parity_own_id(v, mark, &j->layout.seat[i]);
        s->parity_id = crn_parity_id(v, mark, &j->layout.seat[i]);
        s->own = crn_vault_holder(v, &s->own_id, mark->version, 0);
        s->parity = crn_vault_holder(v, &s->parity_id, mark->version, 0);
    }
}

/* Begin to work for the rank of first, if there is anything to rebuild from. */
static cairn_status job_init(job *j, const crn_vault *v, const crn_manifest_mark *mark,
                             const crn_want *first, crn_want *want, size_t n)
{
    j->rank = first->rank;
    j->version = mark->version;
    CRN_TRY(crn_stream_init(&j->stream, first->share));
    if (!crn_parity_find(v, mark, j->rank, &j->layout, &j->seat) ||
        j->layout.seat[j->seat].nunits != j->stream.nunits)
        return CAIRN_NOTHING;
    const crn_stripes *s = &j->layout.stripes;
    j->ndata = (int)(s->nseats - s->nparity);
    CRN_TRY(crn_alloc(&j->needed, j->stream.nunits / 8 + 1));
    CRN_TRY(gather_wants(j, want, n));
    CRN_TRY(crn_erasure_create(j->ndata, (int)s->nparity, &j->code));
    CRN_TRY(crn_alloc(&j->source, s->nseats));
    find_sources(j, v, mark);
    return make_batch(j);
}

/* --- the other seats ---------------------------------------------------------------------- */

/* A description that does not fit the layout is of another mark. */
static cairn_status take_mark(job *j, uint32_t seat, crn_mark *mark)
{
    source *s = &j->source[seat];
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
        if (i == j->seat || j->layout.seat[i].nunits == 0)
            continue;
        seat[n] = i;
        fetch[n++] = (crn_mark_fetch){
            .holder = j->source[i].own, .id = j->source[i].own_id, .version = j->version};
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
    uint64_t off = unit * CRN_UNIT - CRN_MIN(j->stream.start[i], unit * CRN_UNIT);
    if (var->spec.block <= CRN_UNIT)
        return 1;
    uint64_t left = crn_var_block_bytes(var, off / var->spec.block) - off % var->spec.block;
    return (left + CRN_UNIT - 1) / CRN_UNIT;
}

static size_t place(const job *j, uint32_t seat, size_t i)
{
    return seat * j->cap + i;
}

static unsigned char *unit_at(const job *j, size_t at)
{
    return j->data + at * CRN_UNIT;
}

/* What is known of a unit before anyone is asked; beyond the end of a stream it is zeros. */
static unsigned char first_state(const job *j, uint32_t seat, size_t i)
{
    const crn_stripes *s = &j->layout.stripes;
    uint64_t stripe = stripe_of(j, i);
    if (seat == j->seat)
        return UNIT_LOST;
    if (!crn_stripe_is_data(s, stripe, seat))
        return j->source[seat].parity < 0 ? UNIT_LOST : UNIT_THERE;
    if (crn_stripe_unit(s, stripe, seat) >= j->layout.seat[seat].nunits) {
        memset(unit_at(j, place(j, seat, i)), 0, CRN_UNIT);
        return UNIT_HERE;
    }
    return j->source[seat].mark ? UNIT_THERE : UNIT_LOST;
}

/* Fill the next batch. CAIRN_NOTHING when all is done. */
static cairn_status next_batch(job *j)
{
    if (!j)
        return CAIRN_NOTHING;
    j->n = 0;
    for (; j->next < j->stream.nunits; j->next++) {
        if (!crn_bit(j->needed, j->next))
            continue;
        if (j->n + units_of_block(j, j->next) > j->cap)
            break;
        j->unit[j->n++] = j->next;
    }
    for (uint32_t seat = 0; seat < j->layout.stripes.nseats; seat++)
        for (size_t i = 0; i < j->n; i++)
            j->state[place(j, seat, i)] = first_state(j, seat, i);
    return j->n > 0 ? CAIRN_OK : CAIRN_NOTHING;
}

/* --- asking ------------------------------------------------------------------------------- */

/* Mark what to ask for in a stripe: nothing if it has enough, or can never have. */
static void choose(job *j, size_t i)
{
    const crn_stripes *s = &j->layout.stripes;
    uint64_t stripe = stripe_of(j, i);
    int here = 0, there = 0;
    for (uint32_t seat = 0; seat < s->nseats; seat++) {
        here += j->state[place(j, seat, i)] == UNIT_HERE;
        there += j->state[place(j, seat, i)] == UNIT_THERE;
    }
    int lack = j->ndata - here;
    for (int role = 0; lack > 0 && there >= lack && role < (int)s->nseats; role++) {
        unsigned char *state = &j->state[place(j, crn_stripe_seat(s, stripe, role), i)];
        if (*state != UNIT_THERE)
            continue;
        *state = UNIT_ASKED;
        there--;
        lack--;
    }
}

/* Ask for blocks, as one with the last ones where they follow on. */
static cairn_status push_fetch(job *j, const crn_block_fetch *f)
{
    crn_block_fetch *last = j->fetch.n > 0 ? &j->fetch.at[j->fetch.n - 1] : NULL;
    bool is_slice = j->slice.n > 0 && j->slice.at[j->slice.n - 1].fetch == j->fetch.n - 1;
    if (last && !is_slice && last->var == f->var && last->holder == f->holder &&
        last->first + last->n == f->first && last->dst + last->n * f->block == f->dst) {
        last->n += f->n;
        return CAIRN_OK;
    }
    return crn_vec_push(&j->fetch, *f);
}

/* Ask for a piece of a block that is larger than a unit; the block may be on its way already. */
static cairn_status push_slice(job *j, const crn_block_fetch *f, uint64_t off, size_t at,
                               uint32_t nbytes)
{
    crn_block_fetch one = *f;
    const crn_block_fetch *last = j->slice.n > 0 ? &j->fetch.at[j->fetch.n - 1] : NULL;
    CRN_TRY(crn_vec_reserve(&j->slice, 1));
    if (!last || last->var != f->var || last->first != f->first) {
        CRN_TRY(crn_vec_reserve(&j->fetch, 1));
        CRN_TRY(crn_alloc(&one.dst, f->block));
        j->fetch.at[j->fetch.n++] = one;
    }
    j->slice.at[j->slice.n++] =
        (slice){.fetch = j->fetch.n - 1, .off = off, .at = at, .nbytes = nbytes};
    return CAIRN_OK;
}

static cairn_status ask_data(job *j, uint32_t seat, size_t i)
{
    const source *src = &j->source[seat];
    uint64_t unit = crn_stripe_unit(&j->layout.stripes, stripe_of(j, i), seat);
    uint64_t from = unit * CRN_UNIT, to = from + CRN_UNIT;
    unsigned char *dst = unit_at(j, place(j, seat, i));
    memset(dst, 0, CRN_UNIT);
    crn_stretch p = {.v = crn_stream_find(&src->stream, from)};
    while (crn_stream_next(&src->stream, from, to, &p)) {
        const crn_var *var = &src->mark->var[p.v];
        uint64_t block = var->spec.block;
        crn_block_fetch f = {.holder = src->own,
                             .id = src->own_id,
                             .version = j->version,
                             .var = var->spec.name,
                             .block = var->spec.block,
                             .nbytes = var->spec.nbytes,
                             .first = p.off / block,
                             .n = (p.nbytes + block - 1) / block,
                             .dst = dst + (p.at - from)};
        if (block > CRN_UNIT && p.nbytes != crn_var_block_bytes(var, f.first))
            CRN_TRY(push_slice(j, &f, p.off % block,
                               place(j, seat, i) * CRN_UNIT + (size_t)(p.at - from),
                               (uint32_t)p.nbytes));
        else
            CRN_TRY(push_fetch(j, &f));
    }
    return CAIRN_OK;
}

static cairn_status ask_parity(job *j, uint32_t seat, size_t i)
{
    const source *src = &j->source[seat];
    crn_block_fetch f = {.holder = src->parity,
                         .id = src->parity_id,
                         .version = j->version,
                         .var = CRN_VAR_PARITY,
                         .block = CRN_UNIT,
                         .nbytes = src->nparity * CRN_UNIT,
                         .n = 1,
                         .dst = unit_at(j, place(j, seat, i))};
    f.first = crn_stripe_unit(&j->layout.stripes, stripe_of(j, i), seat);
    return push_fetch(j, &f);
}

/* Ask for what the batch lacks. CAIRN_NOTHING when that is nothing, or cannot be had. */
static cairn_status ask_more(job *j)
{
    if (!j || j->n == 0)
        return CAIRN_NOTHING;
    for (size_t i = 0; i < j->n; i++)
        choose(j, i);
    for (uint32_t seat = 0; seat < j->layout.stripes.nseats; seat++) {
        for (size_t i = 0; i < j->n; i++) {
            if (j->state[place(j, seat, i)] != UNIT_ASKED)
                continue;
            if (crn_stripe_is_data(&j->layout.stripes, stripe_of(j, i), seat))
                CRN_TRY(ask_data(j, seat, i));
            else
                CRN_TRY(ask_parity(j, seat, i));
        }
    }
    return j->fetch.n > 0 ? CAIRN_OK : CAIRN_NOTHING;
}

/* --- taking ------------------------------------------------------------------------------- */

/* Copy the pieces of a large block to their units. Returns how many slices that were. */
static size_t take_slices(job *j, size_t fetch, size_t first)
{
    const crn_block_fetch *f = &j->fetch.at[fetch];
    size_t i = first;
    for (; i < j->slice.n && j->slice.at[i].fetch == fetch; i++) {
        const slice *s = &j->slice.at[i];
        if (f->bad.n > 0)
            j->state[s->at / CRN_UNIT] = UNIT_LOST;
        else
            memcpy(j->data + s->at, f->dst + s->off, s->nbytes);
    }
    return i - first;
}

/* Note which units have come. */
static void take_units(job *j)
{
    size_t nslices = 0;
    for (size_t k = 0; k < j->fetch.n; k++) {
        crn_block_fetch *f = &j->fetch.at[k];
        size_t n = take_slices(j, k, nslices);
        nslices += n;
        for (size_t i = 0; n == 0 && i < f->bad.n; i++) {
            size_t off = (size_t)(f->dst - j->data) + (f->bad.at[i] - f->first) * f->block;
            j->state[off / CRN_UNIT] = UNIT_LOST;
        }
    }
    drop_fetches(j);
    for (uint32_t seat = 0; seat < j->layout.stripes.nseats; seat++)
        for (size_t i = 0; i < j->n; i++)
            if (j->state[place(j, seat, i)] == UNIT_ASKED)
                j->state[place(j, seat, i)] = UNIT_HERE;
}

/* --- rebuilding --------------------------------------------------------------------------- */

/* A plan for what is here of a stripe; CAIRN_ENOTFOUND when that is too little. */
static cairn_status plan_for(job *j, size_t i)
{
    const crn_stripes *s = &j->layout.stripes;
    uint64_t stripe = stripe_of(j, i);
    bool present[CRN_ERASURE_MAX] = {false}, wanted[CRN_ERASURE_MAX] = {false};
    int role = crn_stripe_role(s, stripe, j->seat);
    for (uint32_t seat = 0; seat < s->nseats; seat++)
        present[crn_stripe_role(s, stripe, seat)] = j->state[place(j, seat, i)] == UNIT_HERE;
    if (j->plan && role == j->wanted && memcmp(present, j->present, sizeof present) == 0)
        return CAIRN_OK;
    crn_rebuild_free(j->plan);
    j->plan = NULL;
    wanted[role] = true;
    memcpy(j->present, present, sizeof present);
    j->wanted = role;
    return crn_rebuild_create(j->code, present, wanted, &j->plan);
}

static cairn_status rebuild(job *j)
{
    const crn_stripes *s = &j->layout.stripes;
    for (size_t i = 0; i < j->n; i++) {
        unsigned char *block[CRN_ERASURE_MAX];
        cairn_status rc = plan_for(j, i);
        if (rc == CAIRN_ENOTFOUND)
            continue;
        CRN_TRY(rc);
        for (uint32_t seat = 0; seat < s->nseats; seat++)
            block[crn_stripe_role(s, stripe_of(j, i), seat)] = unit_at(j, place(j, seat, i));
        crn_rebuild_run(j->plan, CRN_UNIT, block);
        j->state[place(j, j->seat, i)] = UNIT_HERE;
    }
    return CAIRN_OK;
}

/* The place of a unit in the batch; it is there. */
static size_t find_unit(const job *j, uint64_t unit)
{
    size_t low = 0, high = j->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (j->unit[mid] < unit)
            low = mid + 1;
        else
            high = mid;
    }
    assert(low < j->n && j->unit[low] == unit);
    return low;
}

/* Bring a block to the one who wants it, if all its units were rebuilt and give what they should.
 */
static bool deliver_block(const job *j, const crn_want *w, uint64_t block)
{
    uint64_t from = start_of(j, w, block);
    uint32_t nbytes = crn_var_block_bytes(w->var, block);
    size_t at = place(j, j->seat, find_unit(j, from / CRN_UNIT));
    size_t nunits = (size_t)(from % CRN_UNIT + nbytes + CRN_UNIT - 1) / CRN_UNIT;
    for (size_t i = 0; i < nunits; i++)
        if (j->state[at + i] != UNIT_HERE)
            return false;
    unsigned char *dst = w->dst + (block - w->first) * w->var->spec.block;
    crn_digest d = crn_digest_copy(dst, unit_at(j, at) + from % CRN_UNIT, nbytes);
    return crn_digest_equal(&d, &w->var->table[block].digest);
}

/* Batches and missing blocks both ascend, so that each block is met once. */
static void deliver(job *j)
{
    for (size_t k = 0; k < j->want.n; k++) {
        progress *p = &j->want.at[k];
        crn_bad_blocks *missing = &p->want->missing;
        for (; p->at < missing->n; p->at++) {
            uint64_t block = missing->at[p->at];
            if (start_of(j, p->want, block) / CRN_UNIT > j->unit[j->n - 1])
                break;
            if (!deliver_block(j, p->want, block))
                missing->at[p->kept++] = block;
        }
    }
}

static cairn_status finish_batch(job *j)
{
    if (!j || j->n == 0)
        return CAIRN_OK;
    CRN_TRY(rebuild(j));
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

/* Fetch until each stripe of the batch has enough, or nothing is left to ask for. Collective. */
static cairn_status fetch_batch(crn_vault *v, job *j)
{
    cairn_status rc;
    while ((rc = crn_comm_agree(v->comm, ask_more(j))) == CAIRN_OK) {
        rc = crn_fetch_blocks(v, j ? j->fetch.at : NULL, j ? j->fetch.n : 0);
        if (j)
            take_units(j);
        CRN_TRY(rc);
    }
    return rc == CAIRN_NOTHING ? CAIRN_OK : rc;
}

/* Rebuild all that one job wants. Collective; j is NULL where there is none. */
static cairn_status run_job(crn_vault *v, job *j)
{
    cairn_status rc;
    CRN_TRY(open_sources(v, j));
    while ((rc = crn_comm_agree(v->comm, next_batch(j))) == CAIRN_OK) {
        CRN_TRY(fetch_batch(v, j));
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
