/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranks of a server behind rank 0. They do what rank 0 orders, in its order: send their parts of a
 * member to a runner, take what comes of it, and come to what is collective. Runners register with
 * those ranks that have something of their pieces. Nothing of a runner is read before the study's
 * layout is known: it waits in the socket.
 */
#include "ensemble/ensemble_server.h"

enum { WAIT_MS = 100 };

/* A part of a result is whole: what is wrong with it, and that it is here. */
static cairn_status on_whole(crn_server *s, crn_runner_row *r, const crn_wire *piece)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_SHARE);
    char why[160] = "";
    w.number = CRN_SHARE_WHOLE;
    w.runner = r->number;
    w.member = piece->member;
    w.attempt = piece->attempt;
    (void)crn_rows_find_bad(&s->layout, r->incoming, why, sizeof why);
    snprintf(w.text, sizeof w.text, "%s", why);
    return crn_ranks_report(s, &w);
}

cairn_status crn_follower_runner(crn_server *s, crn_runner_row *r)
{
    if (r->nready > 0 || !crn_gather_knows(s, r))
        return CAIRN_OK;
    r->nready = 1;
    CRN_TRY(s->method->join(s, r));
    crn_wire w = crn_server_wire(s, CRN_WIRE_SHARE);
    w.number = CRN_SHARE_READY;
    w.runner = r->number;
    w.member = r->nranks;
    return crn_ranks_report(s, &w);
}

static cairn_status on_letter(crn_server *s, const crn_letter *m)
{
    const crn_wire *w = &m->wire;
    crn_runner_row *r = crn_server_runner(s, w->runner);
    if (w->study != s->study->id || w->incarnation != s->incarnation)
        s->nstale++;
    else if (w->kind == CRN_WIRE_FIELDS) {
        const cairn_status rc = crn_server_fields(s, m);
        return rc == CAIRN_EMISMATCH ? CAIRN_OK : rc; /* rank 0 says what is wrong with them */
    } else if (w->kind == CRN_WIRE_PIECE && r && r->nready > 0)
        return crn_gather_letter(s, r, m, on_whole);
    return CAIRN_OK;
}

/* --- orders --------------------------------------------------------------------------------- */

static cairn_status begin(crn_server *s, const crn_letter *m)
{
    crn_state_fields fields;
    CRN_TRY(crn_fields_get(m->data, m->nbytes, &fields));
    cairn_status rc = crn_server_begin(s, &fields);
    crn_vec_done(&fields);
    return rc;
}

/* The first state is nobody's task; else what came before, of another one, does not count. */
static void send(crn_server *s, crn_runner_row *r, const crn_wire *w)
{
    const bool background = w->more != 0;
    if (r->ncame == 0 || r->in_member != w->member || r->in_attempt != w->attempt)
        crn_server_clear(r);
    r->task = *w;
    r->task.kind = CRN_WIRE_TASK;
    r->busy = true;
    crn_gather_send(s, r, &r->task, background ? s->background[w->member] : s->analysis[w->member]);
}

static cairn_status take(crn_server *s, crn_runner_row *r, uint32_t member)
{
    bool whole;
    crn_gather_swap(s, r, member);
    return crn_async_reached(s, member, s->background[member], &whole);
}

/* What has to do with a runner. */
static cairn_status on_runner(crn_server *s, crn_runner_row *r, const crn_wire *w)
{
    switch (w->number) {
    case CRN_SHARE_SEND:
        send(s, r, w);
        return CAIRN_OK;
    case CRN_SHARE_FIRST:
        crn_gather_swap(s, r, 0);
        crn_server_clear(r);
        return CAIRN_OK;
    case CRN_SHARE_TAKE:
        return take(s, r, w->member);
    case CRN_SHARE_CLEAR:
        r->busy = false;
        crn_server_clear(r);
        return CAIRN_OK;
    case CRN_SHARE_FORGET:
        crn_server_forget(s, r);
        return CAIRN_OK;
    default:
        return CAIRN_OK;
    }
}

/* What fails on all ranks alike, rank 0 says. */
static cairn_status collective(crn_server *s, const crn_letter *m, bool *over)
{
    cairn_status rc;
    switch (m->wire.number) {
    case CRN_SHARE_BEGIN:
        rc = begin(s, m);
        break;
    case CRN_SHARE_FIRST:
        rc = crn_kalman_first(s);
        break;
    default:
        rc = crn_kalman_analyse(s);
    }
    *over = rc < 0 && !s->ranks.broken;
    return *over ? CAIRN_NOTHING : rc;
}

static cairn_status carry_out(crn_server *s, const crn_letter *m, bool *over)
{
    const crn_wire *w = &m->wire;
    crn_runner_row *r = s->layout.nbytes > 0 ? crn_server_runner(s, w->runner) : NULL;
    CRN_TRY(crn_ranks_heard(s, 0, w));
    if (r)
        CRN_TRY(on_runner(s, r, w));
    switch (w->number) {
    case CRN_SHARE_BEGIN:
    case CRN_SHARE_FIRST:
    case CRN_SHARE_UPDATE:
        return collective(s, m, over);
    case CRN_SHARE_FAILED:
        crn_failed_keep(s, w->member);
        return CAIRN_OK;
    case CRN_SHARE_EXPORT:
        crn_keeper_export(s);
        return CAIRN_OK;
    case CRN_SHARE_OVER:
        *over = true;
        return CAIRN_OK;
    default:
        return CAIRN_OK;
    }
}

static cairn_status take_orders(crn_server *s, bool *over)
{
    crn_letter m = {0};
    cairn_status rc = CAIRN_OK;
    while (rc >= 0 && !*over && crn_link_take(s->head, &m, &s->nbad) == CAIRN_OK) {
        if (m.wire.kind == CRN_WIRE_SHARE && m.wire.study == s->study->id &&
            m.wire.incarnation == s->incarnation)
            rc = carry_out(s, &m, over);
        crn_letter_done(&m);
    }
    return rc < 0 ? rc : CAIRN_OK;
}

/* Orders first: a part that a runner sends follows from one. */
static cairn_status take_letters(crn_server *s)
{
    crn_letter m = {0};
    cairn_status rc = CAIRN_OK;
    while (rc >= 0 && s->layout.nbytes > 0 && crn_link_take(s->hub, &m, &s->nbad) == CAIRN_OK) {
        rc = on_letter(s, &m);
        crn_letter_done(&m);
    }
    return rc < 0 ? rc : CAIRN_OK;
}

cairn_status crn_follower_run(crn_server *s)
{
    bool over = false;
    while (!over) {
        const bool reads = s->layout.nbytes > 0;
        crn_link *const link[] = {s->head, reads ? s->hub : NULL};
        crn_link_wait(link, 2, -1, WAIT_MS);
        CRN_TRY(take_orders(s, &over));
        if (!over)
            CRN_TRY(take_letters(s));
        CRN_TRY(crn_keeper_look(s));
        CRN_TRY(over ? CAIRN_OK : crn_ranks_beat(s));
    }
    return CAIRN_OK;
}
