/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fetching descriptions of marks from part files on any node. A rank that can read the file itself
 * does so; for the rest it sends each holder one list of what it wants.
 */
#include "level/level_fetch.h"

/* --- reading a file for oneself or another ------------------------------------------------- */

void crn_reader_done(crn_reader *r)
{
    crn_mark_free(r->mark);
    r->mark = NULL;
}

cairn_status crn_reader_turn(crn_reader *r, const crn_part_id *id, uint64_t version)
{
    if (r->mark && memcmp(&r->id, id, sizeof *id) == 0 && r->version == version)
        return CAIRN_OK;
    crn_reader_done(r);
    CRN_TRY(crn_vault_part(r->vault, id, false, &r->part));
    CRN_TRY(crn_part_load(r->part, version, &r->mark));
    r->id = *id;
    r->version = version;
    return CAIRN_OK;
}

/* --- descriptions --------------------------------------------------------------------------- */

static cairn_status read_mark(crn_reader *r, const crn_part_id *id, uint64_t version)
{
    CRN_TRY(crn_reader_turn(r, id, version));
    for (size_t i = 0; i < r->mark->nvars; i++)
        CRN_TRY(crn_mark_table(r->part, r->mark, &r->mark->var[i]));
    return CAIRN_OK;
}

void crn_request_put_id(crn_buf *buf, const crn_part_id *id, uint64_t version)
{
    crn_put_bytes(buf, id->run, sizeof id->run);
    crn_put_u32(buf, id->series);
    crn_put_u32(buf, id->rank);
    crn_put_u32(buf, id->nranks);
    crn_put_u32(buf, id->role);
    crn_put_u64(buf, version);
}

void crn_request_get_id(crn_cursor *c, crn_part_id *id, uint64_t *version)
{
    crn_get_bytes(c, id->run, sizeof id->run);
    id->series = crn_get_u32(c);
    id->rank = crn_get_u32(c);
    id->nranks = crn_get_u32(c);
    id->role = crn_get_u32(c);
    *version = crn_get_u64(c);
    crn_cursor_expect(c, id->role <= CRN_ROLE_PARITY);
}

static bool is_remote(const crn_vault *v, int holder)
{
    return holder >= 0 && holder != v->rank;
}

/* With what blocks are stored as, if some of them can move as they are. */
static void put_description(const crn_mark *m, crn_buf *buf)
{
    for (size_t i = 0; i < m->nvars; i++)
        for (uint64_t b = 0; b < m->var[i].nblocks; b++)
            if (crn_block_moves(&m->var[i], b)) {
                crn_mark_put_moved(m, buf);
                return;
            }
    crn_mark_put(m, buf);
}

/* What this process reads itself; what cannot be read stays NULL. The mark's tables hold places
 * too, which mean nothing to others: a description is made as if it had travelled. */
static cairn_status describe_here(crn_reader *r, crn_mark_fetch *f)
{
    crn_buf buf = {0};
    if (read_mark(r, &f->id, f->version) < 0)
        return CAIRN_OK;
    put_description(r->mark, &buf);
    cairn_status rc = crn_buf_status(&buf);
    if (rc == CAIRN_OK) {
        crn_cursor c = crn_cursor_of(buf.at, buf.n);
        rc = crn_mark_get(&c, &f->mark);
    }
    crn_buf_done(&buf);
    return rc;
}

static cairn_status ask_marks(crn_vault *v, crn_reader *r, crn_mark_fetch *fetch, size_t n,
                              crn_outbox *ret)
{
    for (size_t i = 0; i < n; i++) {
        crn_buf *buf;
        fetch[i].mark = NULL;
        if (fetch[i].holder == v->rank) {
            CRN_TRY(describe_here(r, &fetch[i]));
        } else if (fetch[i].holder >= 0) {
            CRN_TRY(crn_outbox_for(ret, fetch[i].holder, &buf));
            crn_request_put_id(buf, &fetch[i].id, fetch[i].version);
        }
    }
    return CAIRN_OK;
}

/* Answer every list of requests with as many answers: a byte that says whether one follows. */
static cairn_status answer_marks(crn_reader *r, const crn_parcels *asked, crn_outbox *ret)
{
    for (size_t i = 0; i < asked->in.n; i++) {
        crn_cursor c = crn_cursor_of(asked->in.at[i].data, asked->in.at[i].n);
        crn_buf *buf;
        CRN_TRY(crn_outbox_for(ret, asked->in.at[i].peer, &buf));
        while (c.n > 0 && !c.failed) {
            crn_part_id id;
            uint64_t version;
            crn_request_get_id(&c, &id, &version);
            bool whole = !c.failed && read_mark(r, &id, version) == CAIRN_OK;
            crn_put_u8(buf, whole);
            if (whole)
                put_description(r->mark, buf);
        }
        CRN_TRY(crn_cursor_status(&c, "request"));
    }
    return CAIRN_OK;
}

static cairn_status take_marks(crn_vault *v, const crn_parcels *answers, crn_mark_fetch *fetch,
                               size_t n)
{
    for (size_t i = 0; i < answers->in.n; i++) {
        crn_cursor c = crn_cursor_of(answers->in.at[i].data, answers->in.at[i].n);
        for (size_t k = 0; k < n; k++) {
            if (!is_remote(v, fetch[k].holder) || fetch[k].holder != answers->in.at[i].peer)
                continue;
            if (crn_get_u8(&c) != 0)
                CRN_TRY(crn_mark_get(&c, &fetch[k].mark));
        }
        CRN_TRY(crn_cursor_status(&c, "description"));
    }
    return CAIRN_OK;
}

cairn_status crn_fetch_marks(crn_vault *v, crn_mark_fetch *fetch, size_t n)
{
    crn_reader r = {.vault = v};
    crn_outbox ask = {0}, answer = {0};
    crn_parcels asked = {0}, answered = {0};
    cairn_status rc = ask_marks(v, &r, fetch, n, &ask);
    CRN_TRY_OUT(rc, crn_outbox_swap(&ask, v->comm, rc, &asked));
    rc = answer_marks(&r, &asked, &answer);
    CRN_TRY_OUT(rc, crn_outbox_swap(&answer, v->comm, rc, &answered));
    rc = take_marks(v, &answered, fetch, n);
    CRN_TRY_OUT(rc, crn_comm_agree(v->comm, rc));
out:
    for (size_t i = 0; rc < 0 && i < n; i++) {
        crn_mark_free(fetch[i].mark);
        fetch[i].mark = NULL;
    }
    crn_reader_done(&r);
    crn_outbox_done(&ask);
    crn_outbox_done(&answer);
    crn_parcels_done(&asked);
    crn_parcels_done(&answered);
    return rc;
}
