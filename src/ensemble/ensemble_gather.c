/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States between the server and the ranks of a runner: pieces out, pieces in, and the announcement
 * of a result, which counts when all of its pieces are there.
 */
#include "ensemble/ensemble_server.h"

cairn_status crn_gather_begin(crn_server *s)
{
    CRN_TRY(crn_alloc(&s->analysis, s->nmembers));
    CRN_TRY(crn_alloc(&s->background, s->nmembers));
    for (uint32_t m = 0; m < s->nmembers; m++) {
        CRN_TRY(crn_alloc(&s->analysis[m], s->layout.nbytes));
        CRN_TRY(crn_alloc(&s->background[m], s->layout.nbytes));
    }
    return CAIRN_OK;
}

void crn_gather_done(crn_server *s)
{
    for (uint32_t m = 0; m < s->nmembers; m++) {
        free(s->analysis ? s->analysis[m] : NULL);
        free(s->background ? s->background[m] : NULL);
    }
    free(s->analysis);
    free(s->background);
}

cairn_status crn_gather_join(crn_server *s, crn_runner_row *r)
{
    return crn_alloc(&r->incoming, s->layout.nbytes);
}

void crn_gather_send(crn_server *s, const crn_runner_row *r, const crn_wire *task,
                     const unsigned char *state)
{
    for (uint32_t k = 0; k < r->nranks; k++)
        for (size_t f = 0; f < s->layout.field.n; f++) {
            const crn_state_field *piece = &r->rank[k].piece.at[f];
            unsigned char *data;
            size_t n = crn_field_nbytes(piece);
            crn_wire w = *task;
            w.kind = CRN_WIRE_PIECE;
            w.number = f;
            w.rank = k;
            if (n == 0 || crn_alloc(&data, n) < 0)
                continue;
            crn_piece_read(&s->layout, f, piece, state, data);
            crn_server_to_rank(s, r, k, &w, data, n);
            free(data);
        }
}

/* The result that was announced: is it whole by now? Each rank has its own connection, so pieces
 * may come after the announcement. */
static cairn_status on_result(crn_server *s, crn_runner_row *r, crn_take_fn *take)
{
    const crn_wire w = r->done;
    if (w.number == 0 && (r->ncame < r->nwanted || r->in_member != w.member))
        return CAIRN_OK;
    r->waits = r->busy = false;
    cairn_status rc = take(s, r, &w);
    crn_server_clear(r);
    return rc;
}

static cairn_status on_done(crn_server *s, crn_runner_row *r, const crn_wire *w, crn_take_fn *take)
{
    if (w->cycle != s->cycle || w->member >= s->nmembers ||
        (r->busy && (r->task.member != w->member || r->task.attempt != w->attempt))) {
        s->nstale++;
        return CAIRN_OK;
    }
    r->task = r->done = *w;
    if (!r->busy) /* offered by a runner whose server has died */
        r->begun_ns = crn_now_ns();
    r->busy = r->waits = true;
    r->heard_ns = crn_now_ns();
    return on_result(s, r, take);
}

/* Is it a piece of the result that comes, and new? */
static bool is_welcome(const crn_server *s, const crn_runner_row *r, const crn_letter *m)
{
    const crn_wire *w = &m->wire;
    if (w->rank >= r->nranks || w->number >= s->layout.field.n || w->cycle != s->cycle ||
        m->nbytes != crn_field_nbytes(&r->rank[w->rank].piece.at[w->number]))
        return false;
    if (r->ncame > 0 && (r->in_member != w->member || r->in_attempt != w->attempt))
        return false;
    if (r->busy && (r->task.member != w->member || r->task.attempt != w->attempt))
        return false;
    return (r->rank[w->rank].came[w->number / 64] >> w->number % 64 & 1) == 0;
}

/* A piece of a result: of the task that the runner has, or, after the server's death, of one that
 * an earlier server gave it. */
static cairn_status on_piece(crn_server *s, crn_runner_row *r, const crn_letter *m,
                             crn_take_fn *take)
{
    const crn_wire *w = &m->wire;
    if (!is_welcome(s, r, m)) {
        s->nstale++;
        return CAIRN_OK;
    }
    crn_piece_write(&s->layout, w->number, &r->rank[w->rank].piece.at[w->number], m->data,
                    r->incoming);
    r->rank[w->rank].came[w->number / 64] |= UINT64_C(1) << w->number % 64;
    r->in_member = w->member;
    r->in_attempt = w->attempt;
    r->ncame++;
    r->heard_ns = crn_now_ns();
    return r->waits ? on_result(s, r, take) : CAIRN_OK;
}

cairn_status crn_gather_letter(crn_server *s, crn_runner_row *r, const crn_letter *m,
                               crn_take_fn *take)
{
    if (m->wire.kind == CRN_WIRE_PIECE)
        return on_piece(s, r, m, take);
    if (m->wire.kind == CRN_WIRE_DONE)
        return on_done(s, r, &m->wire, take);
    s->nbad++;
    return CAIRN_OK;
}
