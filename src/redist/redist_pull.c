/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pulling: stretches become lists of blocks wanted, round by round.
 */
#include "redist/redist.h"

/* Memory of a round: blocks of which only parts are wanted, and the parts. */
enum { ROUND_BYTES = 1 << 25, ROUND_PARTS = 1 << 18 };

/* A part of a block that was read to the round's memory. */
struct crn_round_part {
    const unsigned char *from;
    unsigned char *to;
    size_t nbytes;
};

/* --- what to pull ------------------------------------------------------------------------- */

/* Is what comes next the continuation of p, here and there? */
static bool goes_on(const crn_pull *p, uint32_t rank, const char *name, uint32_t item,
                    uint64_t first, const unsigned char *to)
{
    return p->rank == rank && p->name == name && p->at.nouter == 0 && p->at.to == 0 &&
           p->at.from + p->at.n == first && p->to + p->at.n * item == to;
}

cairn_status crn_pulls_add_range(crn_pulls *p, uint32_t rank, const char *name, uint32_t item,
                                 uint64_t first, uint64_t n, unsigned char *to)
{
    if (n == 0)
        return CAIRN_OK;
    if (p->n > 0 && goes_on(&p->at[p->n - 1], rank, name, item, first, to)) {
        p->at[p->n - 1].at.n += n;
        return CAIRN_OK;
    }
    return crn_vec_push(
        p, (crn_pull){.rank = rank, .name = name, .at = {.from = first, .n = n}, .to = to});
}

cairn_status crn_pulls_add_box(crn_pulls *p, uint32_t rank, const char *name, uint64_t first,
                               const crn_box *common, const crn_box *piece, const crn_box *memory,
                               unsigned char *to)
{
    crn_stretches at = crn_stretches_of(common, piece, memory);
    at.from += first;
    return crn_vec_push(p, (crn_pull){.rank = rank, .name = name, .at = at, .to = to});
}

/* --- a round ------------------------------------------------------------------------------ */

/* How many whole blocks begin at byte from, which is the start of one, and lie in nbytes? */
static uint64_t count_whole(const crn_var *v, uint64_t from, uint64_t nbytes, uint64_t *ret_bytes)
{
    const bool to_the_end = from + nbytes == v->spec.nbytes;
    const uint64_t n = nbytes / v->spec.block + (to_the_end && nbytes % v->spec.block != 0);
    *ret_bytes = to_the_end ? nbytes : n * v->spec.block;
    return n;
}

static crn_want want_of(const crn_pull *p, uint64_t first, uint64_t n, unsigned char *dst)
{
    return (crn_want){
        .rank = p->rank, .share = p->share, .var = p->var, .first = first, .n = n, .dst = dst};
}

/* Let a block be read to the round's memory; false: there is no more room. */
static cairn_status take_block(crn_round *r, const crn_pull *p, uint64_t i, bool *ret_fits)
{
    const uint32_t nbytes = crn_var_block_bytes(p->var, i);
    *ret_fits = true;
    if (r->last == p && r->block == i)
        return CAIRN_OK;
    *ret_fits = r->used + nbytes <= ROUND_BYTES;
    if (!*ret_fits)
        return CAIRN_OK;
    if (!r->memory)
        CRN_TRY(crn_alloc(&r->memory, ROUND_BYTES));
    if (r->last == p && r->block + 1 == i)
        r->want.at[r->want.n - 1].n++;
    else
        CRN_TRY(crn_vec_push(&r->want, want_of(p, i, 1, r->memory + r->used)));
    r->last = p;
    r->block = i;
    r->block_at = r->used;
    r->used += nbytes;
    return CAIRN_OK;
}

/* Take on as much as fits of the stretch that p is at; false: the round is full. */
static cairn_status take_stretch(crn_round *r, crn_pull *p, bool *ret_fits)
{
    const uint32_t item = p->var->spec.item, block = p->var->spec.block;
    const uint64_t nbytes = p->at.n * item;
    *ret_fits = true;
    while (p->done < nbytes) {
        const uint64_t from = p->at.from * item + p->done, i = from / block, in = from % block;
        unsigned char *to = p->to + p->at.to * item + p->done;
        uint64_t taken, n = 0;
        if (in == 0 && (n = count_whole(p->var, from, nbytes - p->done, &taken)) > 0) {
            CRN_TRY(crn_vec_push(&r->want, want_of(p, i, n, to)));
            r->last = NULL;
        } else {
            taken = CRN_MIN(nbytes - p->done, crn_var_block_bytes(p->var, i) - in);
            CRN_TRY(take_block(r, p, i, ret_fits));
            *ret_fits = *ret_fits && r->part.n < ROUND_PARTS;
            if (!*ret_fits)
                return CAIRN_OK;
            CRN_TRY(crn_vec_push(&r->part,
                                 (struct crn_round_part){r->memory + r->block_at + in, to, taken}));
        }
        p->done += taken;
    }
    return CAIRN_OK;
}

cairn_status crn_round_fill(crn_round *r, crn_pulls *pulls, size_t *at)
{
    r->want.n = r->part.n = r->used = 0;
    r->last = NULL;
    for (; *at < pulls->n; ++*at) {
        crn_pull *p = &pulls->at[*at];
        bool fits = true;
        if (!p->at.begun)
            (void)crn_stretches_next(&p->at);
        do {
            CRN_TRY(take_stretch(r, p, &fits));
            if (!fits)
                return CAIRN_OK;
            p->done = 0;
        } while (crn_stretches_next(&p->at));
    }
    return CAIRN_OK;
}

void crn_round_copy(const crn_round *r)
{
    for (size_t i = 0; i < r->part.n; i++)
        memcpy(r->part.at[i].to, r->part.at[i].from, r->part.at[i].nbytes);
}

void crn_round_done(crn_round *r)
{
    crn_vec_done(&r->want);
    crn_vec_done(&r->part);
    free(r->memory);
}
