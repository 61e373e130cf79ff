/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States between the server and the ranks of a runner: pieces out, pieces in, and the announcement
 * of a result, which counts when all of its pieces are there: those of this rank's slice, and, by
 * their own word, those of the other ranks of the server.
 */
#include "ensemble/ensemble_server.h"

cairn_status crn_gather_begin(crn_server *s)
{
    const bool alone = s->ranks.size == 1;
    const uint64_t nbytes = crn_slice_nbytes(&s->layout);
    CRN_TRY(crn_alloc(&s->analysis, s->nmembers));
    CRN_TRY(crn_alloc(&s->background, s->nmembers));
    CRN_TRY(crn_alloc(&s->whole, s->nmembers));
    for (uint32_t m = 0; m < s->nmembers; m++) {
        CRN_TRY(crn_alloc(&s->analysis[m], nbytes));
        CRN_TRY(crn_alloc(&s->background[m], nbytes));
        if (alone)
            s->whole[m] = s->analysis[m];
        else if (crn_ranks_has_home(&s->ranks, m))
            CRN_TRY(crn_alloc(&s->whole[m], s->layout.nbytes));
    }
    return CAIRN_OK;
}

void crn_gather_done(crn_server *s)
{
    for (uint32_t m = 0; m < s->nmembers; m++) {
        free(s->analysis ? s->analysis[m] : NULL);
        free(s->background ? s->background[m] : NULL);
        if (s->whole && s->ranks.size > 1)
            free(s->whole[m]);
    }
    free(s->whole);
    free(s->analysis);
    free(s->background);
}

cairn_status crn_gather_join(crn_server *s, crn_runner_row *r)
{
    r->nwanted = 0;
    for (size_t f = 0; f < s->layout.field.n; f++)
        for (uint32_t k = 0; k < r->nranks; k++)
            r->nwanted +=
                r->rank[k].known && crn_part_nbytes(&s->layout, f, &r->rank[k].piece.at[f]) > 0;
    return crn_alloc(&r->incoming, crn_slice_nbytes(&s->layout));
}

bool crn_gather_knows(const crn_server *s, const crn_runner_row *r)
{
    for (size_t f = 0; f < s->layout.field.n; f++) {
        uint64_t first, end, nbytes = 0;
        crn_slice_range(&s->layout, f, &first, &end);
        for (uint32_t k = 0; k < r->nranks; k++)
            if (r->rank[k].known)
                nbytes += crn_part_nbytes(&s->layout, f, &r->rank[k].piece.at[f]);
        if (nbytes != (end - first) * cairn_type_bytes(s->layout.field.at[f].type))
            return false;
    }
    return true;
}

void crn_gather_swap(crn_server *s, crn_runner_row *r, uint32_t member)
{
    unsigned char *state = s->background[member];
    s->background[member] = r->incoming;
    r->incoming = state;
}

void crn_gather_send(crn_server *s, const crn_runner_row *r, const crn_wire *task,
                     const unsigned char *state)
{
    for (uint32_t k = 0; k < r->nranks; k++)
        for (size_t f = 0; r->rank[k].known && f < s->layout.field.n; f++) {
            const crn_state_field *piece = &r->rank[k].piece.at[f];
            unsigned char *data;
            size_t n = r->rank[k].known ? crn_part_nbytes(&s->layout, f, piece) : 0;
            crn_wire w = *task;
            w.kind = CRN_WIRE_PIECE;
            w.number = f;
            w.rank = k;
            if (n == 0 || crn_alloc(&data, n) < 0)
                continue;
            crn_part_read(&s->layout, f, piece, state, data);
            crn_server_to_rank(s, r, k, &w, data, n);
            free(data);
        }
}

/* The result that was announced: is it whole by now? Each rank has its own connection, so pieces
 * may come after the announcement. */
static cairn_status on_result(crn_server *s, crn_runner_row *r, crn_take_fn *take)
{
    const crn_wire w = r->done;
    const bool here = r->ncame == r->nwanted && (r->nwanted == 0 || r->in_member == w.member);
    const bool there =
        r->nwhole == s->ranks.nothers &&
        (r->nwhole == 0 || (r->share_member == w.member && r->share_attempt == w.attempt));
    if (w.number == 0 && (!here || !there))
        return CAIRN_OK;
    r->waits = r->busy = false;
    cairn_status rc = take(s, r, &w);
    crn_server_clear(r);
    return rc < 0 ? rc : crn_ranks_order_all(s, CRN_SHARE_CLEAR, r, w.member);
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
        !r->rank[w->rank].known || m->nbytes == 0 ||
        m->nbytes != crn_part_nbytes(&s->layout, w->number, &r->rank[w->rank].piece.at[w->number]))
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
    crn_part_write(&s->layout, w->number, &r->rank[w->rank].piece.at[w->number], m->data,
                   r->incoming);
    r->rank[w->rank].came[w->number / 64] |= UINT64_C(1) << w->number % 64;
    r->in_member = w->member;
    r->in_attempt = w->attempt;
    r->ncame++;
    r->heard_ns = crn_now_ns();
    if (s->ranks.rank > 0)
        return r->ncame == r->nwanted ? take(s, r, w) : CAIRN_OK;
    return r->waits ? on_result(s, r, take) : CAIRN_OK;
}

cairn_status crn_gather_share(crn_server *s, crn_runner_row *r, const crn_wire *w,
                              crn_take_fn *take)
{
    if (w->cycle != s->cycle) {
        s->nstale++;
        return CAIRN_OK;
    }
    if (r->share_member != w->member || r->share_attempt != w->attempt)
        r->nwhole = 0;
    if (r->nwhole == 0)
        r->bad[0] = 0;
    r->share_member = w->member;
    r->share_attempt = w->attempt;
    r->nwhole++;
    if (w->text[0] && (!r->bad[0] || w->more < r->bad_rank)) {
        r->bad_rank = (uint32_t)w->more;
        snprintf(r->bad, sizeof r->bad, "%.*s", (int)sizeof r->bad - 1, w->text);
    }
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
