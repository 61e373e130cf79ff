/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Moving a draft to another part, when its own cannot take it. What was put lies in the gathering's
 * buffers, or in space of the file that no mark refers to: the draft that is given up still has all
 * of it, each block verified against the digest that it was put with.
 */
#include "store/store_draft.h"

typedef struct moving {
    crn_draft *from, *to;
    bool anew; /* the other part's earlier marks are not to be trusted */
    unsigned char *block;
} moving;

static bool is_wanted(const moving *m, size_t v, uint64_t i)
{
    const unsigned char state = m->to->var.at[v].state[i];
    if (state == BLOCK_PUT || state == BLOCK_KEPT)
        return false;
    return m->anew || !crn_draft_adopts(m->to, v, i, &m->from->mark->var[v].table[i]);
}

/* As it is stored. A block that the gathering had not come to is encoded as it would have been. */
static cairn_status put(moving *m, size_t v, uint64_t i, const unsigned char *data, bool tried)
{
    crn_encoding *to = &m->to->var.at[v].encoding;
    const crn_encoding kept = *to;
    if (tried)
        to->setting.family = CRN_FAMILY_NONE;
    cairn_status rc = crn_draft_put_moved(m->to, v, i, data, &m->from->mark->var[v]);
    *to = kept;
    return rc;
}

static bool is_whole(const crn_block *b, const unsigned char *data)
{
    const crn_digest now = crn_digest_of(data, b->nbytes);
    return crn_digest_equal(&now, b->codec != 0 ? &b->stored : &b->digest);
}

/* What a buffer has of the first nvars variables. A block that is not there as it was put is left
 * to whoever reads the file. */
static cairn_status move_buffer(moving *m, size_t nvars, const gather_buffer *b)
{
    crn_mark *mark = m->from->mark;
    size_t v = 0;
    for (size_t k = 0; k < b->item.n; k++) {
        const gather_item *it = &b->item.at[k];
        const unsigned char *data = b->data + it->pos;
        size_t tried = 0;
        for (; tried < nvars && !crn_draft_has(&mark->var[v], it->block); tried++)
            v = v + 1 < nvars ? v + 1 : 0;
        if (tried == nvars)
            continue;
        const uint64_t i = (uint64_t)(it->block - mark->var[v].table);
        if (is_wanted(m, v, i) && is_whole(it->block, data))
            CRN_TRY(put(m, v, i, data, !b->encodes));
    }
    return CAIRN_OK;
}

static cairn_status move_rest(moving *m, size_t v)
{
    crn_var *var = &m->from->mark->var[v];
    for (uint64_t i = 0; i < var->nblocks; i++)
        if (is_wanted(m, v, i)) {
            CRN_TRY(crn_mark_read_moved(m->from->part, m->from->mark, var, i, 1, m->block));
            CRN_TRY(put(m, v, i, m->block, true));
        }
    return CAIRN_OK;
}

static cairn_status declare(moving *m, size_t v)
{
    crn_var *var = &m->from->mark->var[v];
    size_t number;
    var->has_stored = true; /* the draft's entries have the digest of what is stored */
    CRN_TRY(crn_draft_add(m->to, &var->spec, &number));
    crn_draft_encode(m->to, number, &m->from->var.at[v].encoding.setting);
    return CAIRN_OK;
}

cairn_status crn_draft_move(crn_draft *from, size_t nvars, crn_draft *to, bool anew)
{
    moving m = {.from = from, .to = to, .anew = anew};
    crn_gather *g = from->gather;
    cairn_status rc = CAIRN_OK;
    crn_gather_quieten(g);
    CRN_TRY(crn_io_memory(CRN_BLOCK_MAX, &m.block));
    for (size_t v = 0; v < nvars && rc == CAIRN_OK; v++)
        rc = declare(&m, v);
    for (size_t i = 0; i < g->buffer.n && rc == CAIRN_OK; i++)
        if (g->buffer.at[i]->start == g->buffer.at[i]->data) /* not the program's memory */
            rc = move_buffer(&m, nvars, g->buffer.at[i]);
    for (size_t v = 0; v < nvars && rc == CAIRN_OK; v++)
        rc = move_rest(&m, v);
    free(m.block);
    return rc;
}
