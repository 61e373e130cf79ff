/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A batch of stripes to rebuild one seat's units of: which other units to ask for, taking what
 * comes, and computing what is lost. Data is asked for before parity; what comes back damaged is
 * replaced by asking for others, until a stripe is whole or nothing of it is left to ask for.
 */
#include "level/level_encoded_batch.h"

/* What is known of a seat's unit in a stripe. */
enum { UNIT_THERE, UNIT_ASKED, UNIT_HERE, UNIT_LOST };

/* Forget what was asked for; blocks that are larger than a unit have memory of their own. */
static void drop_fetches(crn_batch *b)
{
    for (size_t i = 0; i < b->slice.n; i++)
        if (i == 0 || b->slice.at[i].fetch != b->slice.at[i - 1].fetch)
            free(b->fetch.at[b->slice.at[i].fetch].dst);
    for (size_t i = 0; i < b->fetch.n; i++)
        crn_vec_done(&b->fetch.at[i].missing);
    b->fetch.n = b->slice.n = 0;
}

cairn_status crn_batch_init(crn_batch *b, const crn_layout *layout, uint32_t seat, uint64_t version)
{
    /* a batch takes some 32 MiB, but always the largest block */
    size_t nseats = layout->stripes.nseats;
    b->layout = layout;
    b->seat = seat;
    b->version = version;
    b->ndata = (int)(layout->stripes.nseats - layout->stripes.nparity);
    b->cap = CRN_MAX(512 / nseats, (size_t)CRN_BLOCK_MAX / CRN_UNIT);
    CRN_TRY(crn_erasure_create(b->ndata, (int)layout->stripes.nparity, &b->code));
    CRN_TRY(crn_alloc(&b->source, nseats));
    CRN_TRY(crn_alloc(&b->unit, b->cap));
    CRN_TRY(crn_alloc(&b->state, b->cap * nseats));
    return crn_alloc_aligned(&b->data, b->cap * nseats * CRN_UNIT, 4096);
}

void crn_batch_done(crn_batch *b)
{
    drop_fetches(b);
    for (uint32_t i = 0; b->source && i < b->layout->stripes.nseats; i++) {
        crn_mark_free(b->source[i].mark);
        crn_stream_done(&b->source[i].stream);
    }
    free(b->source);
    crn_rebuild_free(b->plan);
    crn_erasure_free(b->code);
    free(b->unit);
    free(b->data);
    free(b->state);
    crn_vec_done(&b->fetch);
    crn_vec_done(&b->slice);
}

static uint64_t stripe_of(const crn_batch *b, size_t i)
{
    return crn_stripe_of(&b->layout->stripes, b->seat, b->unit[i]);
}

static size_t place(const crn_batch *b, uint32_t seat, size_t i)
{
    return seat * b->cap + i;
}

static unsigned char *unit_at(const crn_batch *b, size_t at)
{
    return b->data + at * CRN_UNIT;
}

/* What is known of a unit before anyone is asked; beyond the end of a stream it is zeros. */
static unsigned char first_state(const crn_batch *b, uint32_t seat, size_t i)
{
    const crn_stripes *s = &b->layout->stripes;
    uint64_t stripe = stripe_of(b, i);
    if (seat == b->seat)
        return UNIT_LOST;
    if (!crn_stripe_is_data(s, stripe, seat))
        return b->source[seat].parity < 0 ? UNIT_LOST : UNIT_THERE;
    if (crn_stripe_unit(s, stripe, seat) >= b->layout->seat[seat].nunits) {
        memset(unit_at(b, place(b, seat, i)), 0, CRN_UNIT);
        return UNIT_HERE;
    }
    return b->source[seat].mark ? UNIT_THERE : UNIT_LOST;
}

void crn_batch_start(crn_batch *b)
{
    for (uint32_t seat = 0; seat < b->layout->stripes.nseats; seat++)
        for (size_t i = 0; i < b->n; i++)
            b->state[place(b, seat, i)] = first_state(b, seat, i);
}

/* --- asking ------------------------------------------------------------------------------- */

/* Mark what to ask for in a stripe: nothing if it has enough, or can never have. */
static void choose(crn_batch *b, size_t i)
{
    const crn_stripes *s = &b->layout->stripes;
    uint64_t stripe = stripe_of(b, i);
    int here = 0, there = 0;
    for (uint32_t seat = 0; seat < s->nseats; seat++) {
        here += b->state[place(b, seat, i)] == UNIT_HERE;
        there += b->state[place(b, seat, i)] == UNIT_THERE;
    }
    int lack = b->ndata - here;
    for (int role = 0; lack > 0 && there >= lack && role < (int)s->nseats; role++) {
        unsigned char *state = &b->state[place(b, crn_stripe_seat(s, stripe, role), i)];
        if (*state != UNIT_THERE)
            continue;
        *state = UNIT_ASKED;
        there--;
        lack--;
    }
}

/* Ask for blocks, as one with the last ones where they follow on. */
static cairn_status push_fetch(crn_batch *b, const crn_want *f)
{
    crn_want *last = b->fetch.n > 0 ? &b->fetch.at[b->fetch.n - 1] : NULL;
    bool is_slice = b->slice.n > 0 && b->slice.at[b->slice.n - 1].fetch == b->fetch.n - 1;
    if (last && !is_slice && last->name == f->name && last->holder == f->holder &&
        last->first + last->n == f->first && last->dst + last->n * f->block == f->dst) {
        last->n += f->n;
        return CAIRN_OK;
    }
    return crn_vec_push(&b->fetch, *f);
}

/* Ask for a piece of a block that is larger than a unit; the block may be on its way already. */
static cairn_status push_slice(crn_batch *b, const crn_want *f, uint64_t off, size_t at,
                               uint32_t nbytes)
{
    crn_want one = *f;
    const crn_want *last = b->slice.n > 0 ? &b->fetch.at[b->fetch.n - 1] : NULL;
    CRN_TRY(crn_vec_reserve(&b->slice, 1));
    if (!last || last->name != f->name || last->first != f->first) {
        CRN_TRY(crn_vec_reserve(&b->fetch, 1));
        CRN_TRY(crn_alloc(&one.dst, f->block));
        b->fetch.at[b->fetch.n++] = one;
    }
    b->slice.at[b->slice.n++] =
        (crn_slice){.fetch = b->fetch.n - 1, .off = off, .at = at, .nbytes = nbytes};
    return CAIRN_OK;
}

static cairn_status ask_data(crn_batch *b, uint32_t seat, size_t i)
{
    const crn_parity_source *src = &b->source[seat];
    uint64_t unit = crn_stripe_unit(&b->layout->stripes, stripe_of(b, i), seat);
    uint64_t from = unit * CRN_UNIT, to = from + CRN_UNIT;
    unsigned char *dst = unit_at(b, place(b, seat, i));
    memset(dst, 0, CRN_UNIT);
    crn_stretch p = {.v = crn_stream_find(&src->stream, from)};
    while (crn_stream_next(&src->stream, from, to, &p)) {
        const crn_var *var = &src->mark->var[p.v];
        uint64_t block = var->spec.block;
        crn_want f = {.holder = src->own,
                      .id = src->own_id,
                      .version = b->version,
                      .name = var->spec.name,
                      .block = var->spec.block,
                      .nbytes = var->spec.nbytes,
                      .first = p.off / block,
                      .n = (p.nbytes + block - 1) / block,
                      .dst = dst + (p.at - from)};
        if (block > CRN_UNIT && p.nbytes != crn_var_block_bytes(var, f.first))
            CRN_TRY(push_slice(b, &f, p.off % block,
                               place(b, seat, i) * CRN_UNIT + (size_t)(p.at - from),
                               (uint32_t)p.nbytes));
        else
            CRN_TRY(push_fetch(b, &f));
    }
    return CAIRN_OK;
}

static cairn_status ask_parity(crn_batch *b, uint32_t seat, size_t i)
{
    const crn_parity_source *src = &b->source[seat];
    crn_want f = {.holder = src->parity,
                  .id = src->parity_id,
                  .version = b->version,
                  .name = CRN_VAR_PARITY,
                  .block = CRN_UNIT,
                  .nbytes = src->nparity * CRN_UNIT,
                  .n = 1,
                  .dst = unit_at(b, place(b, seat, i))};
    f.first = crn_stripe_unit(&b->layout->stripes, stripe_of(b, i), seat);
    return push_fetch(b, &f);
}

/* Ask for what the batch lacks. CAIRN_NOTHING when that is nothing, or cannot be had. */
cairn_status crn_batch_ask(crn_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        choose(b, i);
    for (uint32_t seat = 0; seat < b->layout->stripes.nseats; seat++) {
        for (size_t i = 0; i < b->n; i++) {
            if (b->state[place(b, seat, i)] != UNIT_ASKED)
                continue;
            if (crn_stripe_is_data(&b->layout->stripes, stripe_of(b, i), seat))
                CRN_TRY(ask_data(b, seat, i));
            else
                CRN_TRY(ask_parity(b, seat, i));
        }
    }
    return b->fetch.n > 0 ? CAIRN_OK : CAIRN_NOTHING;
}

/* --- taking ------------------------------------------------------------------------------- */

/* Copy the pieces of a large block to their units. Returns how many slices that were. */
static size_t take_slices(crn_batch *b, size_t fetch, size_t first)
{
    const crn_want *f = &b->fetch.at[fetch];
    size_t i = first;
    for (; i < b->slice.n && b->slice.at[i].fetch == fetch; i++) {
        const crn_slice *s = &b->slice.at[i];
        if (f->missing.n > 0)
            b->state[s->at / CRN_UNIT] = UNIT_LOST;
        else
            memcpy(b->data + s->at, f->dst + s->off, s->nbytes);
    }
    return i - first;
}

/* Note which units have come. */
void crn_batch_take(crn_batch *b)
{
    size_t nslices = 0;
    for (size_t k = 0; k < b->fetch.n; k++) {
        crn_want *f = &b->fetch.at[k];
        size_t n = take_slices(b, k, nslices);
        nslices += n;
        for (size_t i = 0; n == 0 && i < f->missing.n; i++) {
            size_t off = (size_t)(f->dst - b->data) + (f->missing.at[i] - f->first) * f->block;
            b->state[off / CRN_UNIT] = UNIT_LOST;
        }
    }
    drop_fetches(b);
    for (uint32_t seat = 0; seat < b->layout->stripes.nseats; seat++)
        for (size_t i = 0; i < b->n; i++)
            if (b->state[place(b, seat, i)] == UNIT_ASKED)
                b->state[place(b, seat, i)] = UNIT_HERE;
}

/* --- rebuilding --------------------------------------------------------------------------- */

/* A plan for what is here of a stripe; CAIRN_ENOTFOUND when that is too little. */
static cairn_status plan_for(crn_batch *b, size_t i)
{
    const crn_stripes *s = &b->layout->stripes;
    uint64_t stripe = stripe_of(b, i);
    bool present[CRN_ERASURE_MAX] = {false}, wanted[CRN_ERASURE_MAX] = {false};
    int role = crn_stripe_role(s, stripe, b->seat);
    for (uint32_t seat = 0; seat < s->nseats; seat++)
        present[crn_stripe_role(s, stripe, seat)] = b->state[place(b, seat, i)] == UNIT_HERE;
    if (b->plan && role == b->wanted && memcmp(present, b->present, sizeof present) == 0)
        return CAIRN_OK;
    crn_rebuild_free(b->plan);
    b->plan = NULL;
    wanted[role] = true;
    memcpy(b->present, present, sizeof present);
    b->wanted = role;
    return crn_rebuild_create(b->code, present, wanted, &b->plan);
}

cairn_status crn_batch_rebuild(crn_batch *b)
{
    const crn_stripes *s = &b->layout->stripes;
    for (size_t i = 0; i < b->n; i++) {
        unsigned char *block[CRN_ERASURE_MAX];
        cairn_status rc = plan_for(b, i);
        if (rc == CAIRN_ENOTFOUND)
            continue;
        CRN_TRY(rc);
        for (uint32_t seat = 0; seat < s->nseats; seat++)
            block[crn_stripe_role(s, stripe_of(b, i), seat)] = unit_at(b, place(b, seat, i));
        crn_rebuild_run(b->plan, CRN_UNIT, block);
        b->state[place(b, b->seat, i)] = UNIT_HERE;
    }
    return CAIRN_OK;
}

const unsigned char *crn_batch_unit(const crn_batch *b, size_t i)
{
    size_t at = place(b, b->seat, i);
    return b->state[at] == UNIT_HERE ? unit_at(b, at) : NULL;
}
