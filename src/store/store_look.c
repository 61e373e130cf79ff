/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking at marks of a variable in small pieces, to find out which size of blocks fits it: digests
 * of the pieces of one mark are held against those of the next (crn_plan_blocks has the
 * arithmetic). Of a long variable some stretches stand for the rest.
 */
#include "store/store_part.h"

enum {
    STRETCHES = 16, /* 4 MiB in all */
    GRAINS = CRN_LOOK_STRETCH / CRN_PLAN_GRAIN,
    ENCODED_MIN = 16 << 10 /* of an encoded block: smaller ones make poor codes */
};

static uint64_t count_stretches(uint64_t nbytes)
{
    return nbytes / CRN_LOOK_STRETCH + (nbytes % CRN_LOOK_STRETCH != 0);
}

void crn_look_done(crn_look *l)
{
    free(l->grain);
    *l = (crn_look){0};
}

cairn_status crn_look_begin(crn_look *l, uint64_t nbytes)
{
    if (l->nmarks == 0 || l->nbytes != nbytes) {
        crn_look_done(l);
        const uint64_t n = CRN_MIN(count_stretches(nbytes), (uint64_t)STRETCHES);
        CRN_TRY(crn_alloc(&l->grain, (size_t)n * GRAINS));
        l->nbytes = nbytes;
    }
    l->nmarks++;
    l->ngrains = 0;
    return CAIRN_OK;
}

/* The first stretch of each of STRETCHES groups. */
bool crn_look_wants(const crn_look *l, uint64_t i)
{
    const uint64_t n = count_stretches(l->nbytes);
    return n <= STRETCHES || i == 0 || i * STRETCHES / n != (i - 1) * STRETCHES / n;
}

void crn_look_at(crn_look *l, const void *data, size_t nbytes)
{
    bool changed[GRAINS];
    size_t n = 0;
    for (size_t off = 0; off < nbytes; off += CRN_PLAN_GRAIN, n++) {
        crn_digest *before = &l->grain[l->ngrains++];
        const crn_digest now = crn_digest_of((const unsigned char *)data + off,
                                             CRN_MIN((size_t)CRN_PLAN_GRAIN, nbytes - off));
        changed[n] = !crn_digest_equal(before, &now);
        *before = now;
    }
    if (l->nmarks > 1)
        crn_plan_blocks_add(&l->seen, changed, n);
}

double crn_look_cost(const crn_look *l, bool encoded, uint32_t block)
{
    return crn_plan_blocks_cost(&l->seen, l->nbytes, crn_format_entry(encoded), block);
}

uint32_t crn_look_choose(const crn_look *l, bool encoded, uint32_t now)
{
    return (uint32_t)crn_plan_blocks_choose(&l->seen, l->nbytes, crn_format_entry(encoded),
                                            encoded ? ENCODED_MIN : CRN_PLAN_GRAIN, now);
}
