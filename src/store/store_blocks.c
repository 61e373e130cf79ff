/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which size of blocks fits a variable of a run, as its marks in the trail tell.
 */
#include "store/store_inspect.h"

enum { MARKS = 3 }; /* the newest ones; a session looks at as many */

/* Look at a mark of the variable. data: room for a stretch, or for a block if that is larger. */
static cairn_status look_at_mark(crn_look *l, crn_part *part, const crn_mark *m, crn_var *v,
                                 unsigned char *data)
{
    const uint64_t nbytes = v->spec.nbytes, block = v->spec.block;
    CRN_TRY(crn_look_begin(l, nbytes));
    for (uint64_t off = 0; off < nbytes; off += CRN_LOOK_STRETCH) {
        if (!crn_look_wants(l, off / CRN_LOOK_STRETCH))
            continue;
        const uint64_t n = CRN_MIN((uint64_t)CRN_LOOK_STRETCH, nbytes - off);
        const uint64_t first = off / block, last = (off + n - 1) / block;
        CRN_TRY(crn_mark_read(part, m, v, first, last - first + 1, data, NULL));
        crn_look_at(l, data + (off - first * block), n);
    }
    return CAIRN_OK;
}

static cairn_status look_at_var(cairn_trail *t, crn_look *l, const char *name, bool *ret_encoded,
                                uint32_t *ret_block)
{
    unsigned char *data;
    crn_var *v = crn_mark_find(t->mark, name);
    CRN_FAIL_IF(!v, CAIRN_ENOTFOUND, "mark %" PRIu64 " has no variable '%s'", t->mark->version,
                name);
    CRN_TRY(crn_io_memory(CRN_MAX((size_t)CRN_LOOK_STRETCH, (size_t)v->spec.block), &data));
    cairn_status rc = look_at_mark(l, t->part, t->mark, v, data);
    free(data);
    *ret_encoded = v->entry_bytes == crn_format_entry(true);
    *ret_block = v->spec.block;
    return rc;
}

/* The number of the mark from which on MARKS are in the trail, of as many ranks as the newest. */
static cairn_status find_first(cairn_trail *t, size_t run, size_t *ret_first, size_t *ret_end)
{
    const crn_manifest_mark *k, *newest = NULL;
    cairn_run_info info = {.struct_bytes = sizeof info};
    CRN_TRY(cairn_trail_run(t, run, &info));
    size_t n = 0;
    *ret_first = *ret_end = info.nmarks;
    for (size_t i = info.nmarks; i-- > 0 && n < MARKS; n++) {
        CRN_TRY(crn_inspect_mark(t, run, i, &k));
        if (!(k->levels & CRN_IN_TRAIL) ||
            (newest && (k->nranks != newest->nranks || k->series != newest->series)))
            break;
        newest = newest ? newest : k;
        *ret_first = i;
    }
    return CAIRN_OK;
}

int cairn_trail_blocks(cairn_trail *t, size_t run, uint32_t rank, const char *name,
                       cairn_block_choice *ret)
{
    crn_look look = {0};
    cairn_block_choice r = {0};
    size_t first, end;
    bool encoded = false;
    cairn_status rc = CAIRN_OK;
    CRN_FAIL_IF(!t || !name || !ret, CAIRN_EINVAL, "cairn_trail_blocks: an argument is NULL");
    CRN_TRY(find_first(t, run, &first, &end));
    for (size_t i = first; i < end && rc == CAIRN_OK; i++) {
        rc = crn_inspect_part(t, run, i, rank);
        if (rc == CAIRN_OK)
            rc = look_at_var(t, &look, name, &encoded, &r.block_bytes);
    }
    if (rc == CAIRN_OK && look.nmarks < 2)
        rc = CAIRN_NOTHING;
    if (rc == CAIRN_OK) {
        r.nbytes = look.nbytes;
        r.nmarks = look.nmarks;
        r.best_bytes = crn_look_choose(&look, encoded, r.block_bytes);
        for (size_t k = 0; k < CAIRN_BLOCK_SIZES; k++)
            r.written[k] = (uint64_t)crn_look_cost(&look, encoded, 1024u << k);
        rc = crn_struct_out(&r, ret);
    }
    crn_look_done(&look);
    return rc;
}
