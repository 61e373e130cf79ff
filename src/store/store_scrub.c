/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scrubbing. What a mark inherits is read by nobody until someone comes back, and what storage lost
 * meanwhile would be missing in every later mark. So with each mark a share of it is read, another
 * one each time, and what is damaged is not inherited any more: whoever makes the next mark has to
 * put it again.
 */
#include "store/store_part.h"

/* Little at a time: nobody waits for it, and others may want the disk. */
enum { TURNS = 64, STEP_BYTES = 512 << 10 };

/* Of the n blocks of a variable, those whose turn it is. */
static void choose(const crn_mark *m, uint64_t n, uint64_t *ret_first, uint64_t *ret_end)
{
    /* multiples of the golden ratio: all turns come, by whatever step the number grows */
    const uint64_t turn = m->seq * 0x9e3779b97f4a7c15u / (UINT64_MAX / TURNS + 1);
    *ret_first = n * turn / TURNS;
    *ret_end = n * (turn + 1) / TURNS;
}

static cairn_status look_at_blocks(crn_part *part, const crn_mark *m, crn_var *v,
                                   unsigned char *window, crn_bad_blocks *bad)
{
    const uint64_t fit = CRN_MAX(STEP_BYTES / v->spec.block, 1);
    uint64_t i, end;
    for (choose(m, v->nblocks, &i, &end); i < end; i += CRN_MIN(fit, end - i))
        CRN_TRY(crn_mark_read(part, m, v, i, CRN_MIN(fit, end - i), window, bad));
    for (size_t k = 0; k < bad->n; k++)
        CRN_TRY(crn_vec_push(&part->lost, v->table[bad->at[k]].off));
    return CAIRN_OK;
}

static cairn_status look_at(crn_part *part, const crn_mark *m, crn_var *v, unsigned char *window)
{
    if (v->nchanged == v->nblocks) /* it has nothing from earlier marks */
        return CAIRN_OK;
    cairn_status rc = crn_mark_table(part, m, v);
    if (rc < 0) {
        CRN_TRY(crn_part_forgive(rc));
        return crn_vec_push(&part->lost, v->table_off);
    }
    crn_bad_blocks bad = {0};
    rc = look_at_blocks(part, m, v, window, &bad);
    crn_vec_done(&bad);
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

cairn_status crn_part_scrub(crn_part *part, uint64_t *ret_nlost)
{
    unsigned char *window;
    crn_mark *m; /* as the file has it, not as we remember it */
    part->lost.n = 0;
    *ret_nlost = 0;
    if (part->cat.n == 0)
        return CAIRN_OK;
    cairn_status rc = crn_part_load(part, part->cat.at[part->cat.n - 1].version, &m);
    if (rc < 0)
        return crn_part_forgive(rc); /* a record is not inherited */
    rc = crn_alloc_aligned(&window, CRN_BLOCK_MAX, PAGE);
    if (rc == CAIRN_OK) {
        for (size_t v = 0; rc == CAIRN_OK && v < m->nvars; v++)
            rc = look_at(part, m, &m->var[v], window);
        free(window);
    }
    crn_mark_free(m);
    if (part->lost.n > 0)
        qsort(part->lost.at, part->lost.n, sizeof *part->lost.at, by_place);
    *ret_nlost = part->lost.n;
    return rc;
}

cairn_status crn_part_forgive(cairn_status rc)
{
    return rc == CAIRN_ECORRUPT || rc == CAIRN_EIO ? CAIRN_OK : rc;
}

bool crn_part_is_lost(const crn_part *part, uint64_t off)
{
    return part->lost.n > 0 &&
           bsearch(&off, part->lost.at, part->lost.n, sizeof *part->lost.at, by_place) != NULL;
}
