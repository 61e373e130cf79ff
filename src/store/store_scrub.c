/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scrubbing. What a mark inherits is read by nobody until someone comes back, and what storage lost
 * meanwhile would be missing in every later mark. So with each mark a share of it is read, another
 * one each time, and what is damaged is not inherited any more: whoever makes the next mark has to
 * put it again.
 */
#include "store/store_coder.h"
#include "store/store_part.h"

/* Little at a time: nobody waits for it, and others may want the disk. */
enum { TURNS = 64, STEP_BYTES = 512 << 10, SMALL_BYTES = 4 << 10 };

/* The turn of a mark. Multiples of the golden ratio: all turns come, by whatever step the number
 * grows. */
static uint64_t turn_of(const crn_mark *m)
{
    return m->seq * 0x9e3779b97f4a7c15u / (UINT64_MAX / TURNS + 1);
}

/* What is being looked at. */
typedef struct look {
    crn_part *part;
    crn_mark *mark;
    unsigned char *window;
    bool whole; /* all blocks of a variable, not those whose turn it is: the pages take turns */
    uint64_t from, to; /* bytes of the file that the window has of small variables; */
    crn_coder coder;   /* for those */
} look;

/* A small variable's block, read together with what lies behind it in the file: that is mostly the
 * next one's. CAIRN_NOTHING: this is not the way to look at it. */
static cairn_status look_at_small(look *l, crn_var *v)
{
    unsigned char block[SMALL_BYTES];
    bool good;
    const crn_block *b = v->table;
    if (v->nblocks != 1 || v->spec.nbytes > sizeof block || b->codec & CRN_OUTSIDE)
        return CAIRN_NOTHING;
    if (b->off < l->from || b->off + b->nbytes > l->to) {
        const uint64_t end = CRN_MIN(b->off + STEP_BYTES, l->part->super.end);
        l->from = l->to = b->off;
        if (end < b->off + b->nbytes ||
            crn_file_read(l->part->file, l->window, end - b->off, b->off) < 0)
            return CAIRN_NOTHING; /* what can be read of it, one alone will tell */
        l->to = end;
    }
    l->coder.apart = l->part->distrusted;
    CRN_TRY(crn_coder_bring(&l->coder, v, 0, l->window + (b->off - l->from), block, &good));
    return good ? CAIRN_OK : crn_vec_push(&l->part->lost, b->off);
}

/* Of the n blocks of variable v, those whose turn it is; variables of one block take turns, too. */
static void choose(const look *l, size_t v, uint64_t n, uint64_t *ret_first, uint64_t *ret_end)
{
    const uint64_t turn = (turn_of(l->mark) + v) % TURNS;
    *ret_first = l->whole ? 0 : n * turn / TURNS;
    *ret_end = l->whole ? n : n * (turn + 1) / TURNS;
}

static cairn_status look_at_blocks(look *l, size_t number, crn_bad_blocks *bad)
{
    crn_var *v = &l->mark->var[number];
    const uint64_t fit = CRN_MAX(STEP_BYTES / v->spec.block, 1);
    uint64_t i, end;
    l->to = l->from; /* the window is needed */
    for (choose(l, number, v->nblocks, &i, &end); i < end; i += CRN_MIN(fit, end - i))
        CRN_TRY(crn_mark_read(l->part, l->mark, v, i, CRN_MIN(fit, end - i), l->window, bad));
    for (size_t k = 0; k < bad->n; k++)
        CRN_TRY(crn_vec_push(&l->part->lost, v->table[bad->at[k]].off));
    return CAIRN_OK;
}

static cairn_status look_at(look *l, size_t number)
{
    crn_var *v = &l->mark->var[number];
    if (v->nchanged == v->nblocks) /* it has nothing from earlier marks */
        return CAIRN_OK;
    cairn_status rc = crn_mark_table(l->part, l->mark, v);
    if (rc < 0) {
        CRN_TRY(crn_part_forgive(rc));
        return crn_vec_push(&l->part->lost, v->place.off);
    }
    if (l->whole && (rc = look_at_small(l, v)) != CAIRN_NOTHING)
        return rc;
    crn_bad_blocks bad = {0};
    rc = look_at_blocks(l, number, &bad);
    crn_vec_done(&bad);
    return rc;
}

/* A page that cannot be read is lost with what it says; the next mark writes it again. */
static cairn_status look_at_page(look *l, size_t page)
{
    size_t n;
    const size_t first = crn_page_vars(l->mark, page, &n);
    cairn_status rc = crn_mark_load_page(l->part, l->mark, page);
    if (rc < 0) {
        CRN_TRY(crn_part_forgive(rc));
        return crn_vec_push(&l->part->lost, l->mark->page[page].off);
    }
    for (size_t i = first; i < first + n; i++)
        CRN_TRY(look_at(l, i));
    return CAIRN_OK;
}

static cairn_status look_at_mark(look *l)
{
    const crn_mark *m = l->mark;
    size_t first = 0, end = m->npages;
    for (size_t v = 0; m->npages == 0 && v < m->nvars; v++) /* of format 1 */
        CRN_TRY(look_at(l, v));
    l->whole = m->npages >= TURNS;
    if (l->whole) {
        first = (size_t)(m->npages * turn_of(m) / TURNS);
        end = (size_t)(m->npages * (turn_of(m) + 1) / TURNS);
    }
    for (size_t i = first; i < end; i++)
        CRN_TRY(look_at_page(l, i));
    return CAIRN_OK;
}

static int by_place(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

cairn_status crn_part_scrub(crn_part *part, uint64_t *ret_nlost)
{
    look l = {.part = part};
    part->lost.n = 0;
    *ret_nlost = 0;
    if (part->cat.n == 0)
        return CAIRN_OK;
    /* as the file has it, not as we remember it */
    cairn_status rc = crn_part_load_record(part, &part->cat.at[part->cat.n - 1], true, &l.mark);
    if (rc < 0)
        return crn_part_forgive(rc); /* a record is not inherited, but for its pages */
    rc = crn_alloc_aligned(&l.window, CRN_BLOCK_MAX, PAGE);
    if (rc == CAIRN_OK) {
        rc = look_at_mark(&l);
        free(l.window);
        crn_coder_done(&l.coder);
    }
    crn_mark_free(l.mark);
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
