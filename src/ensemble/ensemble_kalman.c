/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The method of Kalman filters, free runs and twins: the server has all states. A runner gets a
 * member's state, and hands over what became of it; when all members of a cycle are done, the
 * filter makes the analysis.
 */
#include "ensemble/ensemble_server.h"

#include <errno.h>
#include <unistd.h>

/* --- the beginning -------------------------------------------------------------------------- */

static cairn_status make_memory(crn_server *s)
{
    CRN_TRY(crn_alloc(&s->analysis, s->nmembers));
    CRN_TRY(crn_alloc(&s->background, s->nmembers));
    for (uint32_t m = 0; m < s->nmembers; m++) {
        CRN_TRY(crn_alloc(&s->analysis[m], s->layout.nbytes));
        CRN_TRY(crn_alloc(&s->background[m], s->layout.nbytes));
    }
    return CAIRN_OK;
}

static cairn_status analyse(crn_server *s)
{
    crn_server_beat(s, "update");
    CRN_TRY(crn_analysis_update(s));
    crn_keeper_start(s, s->cycle);
    crn_server_next_cycle(s);
    return CAIRN_OK;
}

/* What an earlier server of the study has kept is taken up. */
static cairn_status begin(crn_server *s)
{
    bool whole = false;
    CRN_TRY(make_memory(s));
    cairn_status rc = crn_states_take_up(s, &whole);
    CRN_TRY(rc);
    s->phase = rc == CAIRN_NOTHING ? CRN_PHASE_FIRST : CRN_PHASE_CYCLE;
    if (rc == CAIRN_OK && s->cycle > s->study->cycles)
        s->phase = CRN_PHASE_OVER;
    return whole ? analyse(s) : CAIRN_OK;
}

static cairn_status join(crn_server *s, crn_runner_row *r)
{
    return crn_alloc(&r->incoming, s->layout.nbytes);
}

/* --- tasks ---------------------------------------------------------------------------------- */

static void send_state(crn_server *s, const crn_runner_row *r, const crn_wire *task)
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
            crn_piece_read(&s->layout, f, piece, s->analysis[task->member], data);
            crn_server_to_rank(s, r, k, &w, data, n);
            free(data);
        }
}

static void give_member(crn_server *s, crn_runner_row *r, uint32_t member)
{
    crn_member_row *m = &s->member[member];
    crn_wire w = crn_server_wire(s, CRN_WIRE_TASK);
    m->state = CRN_MEMBER_RUNNING;
    s->nrepeated += m->attempt > 0;
    m->copies++;
    w.member = member;
    w.attempt = ++m->attempt;
    w.number = s->study->steps;
    w.more = s->study->spin + (s->cycle - 1) * s->study->steps;
    w.rank = s->study->keep != CRN_KEEP_ANALYSIS && !s->twin ? CRN_TASK_KEEP : 0;
    crn_server_task(s, r, &w);
    send_state(s, r, &w);
    crn_study_event(s->study, "task", "{s:i,s:i,s:i,s:o}", "cycle", s->cycle, "member", member,
                    "attempt", w.attempt, "runner", json_sprintf("r%u", r->number));
}

static cairn_status give(crn_server *s, crn_runner_row *r)
{
    uint32_t member;
    if (crn_schedule_choose(s, r, &member))
        give_member(s, r, member);
    return CAIRN_OK;
}

/* --- results -------------------------------------------------------------------------------- */

static cairn_status advance(crn_server *s)
{
    uint32_t left = 0;
    for (uint32_t m = 0; m < s->nmembers; m++)
        left += s->member[m].state == CRN_MEMBER_TODO || s->member[m].state == CRN_MEMBER_RUNNING;
    return left == 0 && s->phase == CRN_PHASE_CYCLE ? analyse(s) : CAIRN_OK;
}

static cairn_status on_first(crn_server *s, crn_runner_row *r)
{
    unsigned char *state = s->background[0];
    s->background[0] = r->incoming;
    r->incoming = state;
    CRN_TRY(crn_analysis_first(s));
    crn_keeper_start(s, 0);
    crn_server_next_cycle(s);
    return CAIRN_OK;
}

static cairn_status take_result(crn_server *s, crn_runner_row *r, const crn_wire *w)
{
    char why[160];
    crn_member_row *m = &s->member[w->member];
    if (crn_rows_find_bad(&s->layout, r->incoming, why, sizeof why))
        return crn_schedule_failed(s, w->member, r->number, true, why);
    unsigned char *state = s->background[w->member];
    s->background[w->member] = r->incoming;
    r->incoming = state;
    m->state = CRN_MEMBER_DONE;
    s->ndone++;
    crn_schedule_took(s, w->seconds);
    crn_study_event(s->study, "done", "{s:i,s:i,s:o,s:o}", "cycle", s->cycle, "member", w->member,
                    "runner", json_sprintf("r%u", r->number), "seconds",
                    crn_study_real(w->seconds));
    return CAIRN_OK;
}

static cairn_status judge(crn_server *s, crn_runner_row *r, const crn_wire *w)
{
    crn_member_row *m = &s->member[w->member];
    if (m->state != CRN_MEMBER_TODO && m->state != CRN_MEMBER_RUNNING) {
        s->nstale++; /* another runner was first */
        return CAIRN_OK;
    }
    m->state = CRN_MEMBER_RUNNING;
    if (w->number != 0) {
        char text[256];
        snprintf(text, sizeof text, "the model refuses: %.200s", w->text);
        return crn_schedule_failed(s, w->member, r->number, true, text);
    }
    return take_result(s, r, w);
}

/* The result that was announced: is it whole by now? Each rank has its own connection, so pieces
 * may come after the announcement. */
static cairn_status on_result(crn_server *s, crn_runner_row *r)
{
    const crn_wire w = r->done;
    cairn_status rc = CAIRN_OK;
    if (w.number == 0 && (r->ncame < r->nwanted || r->in_member != w.member))
        return CAIRN_OK;
    r->waits = r->busy = false;
    if (s->phase == CRN_PHASE_FIRST)
        rc = on_first(s, r);
    else if (s->phase == CRN_PHASE_CYCLE)
        rc = judge(s, r, &w);
    crn_server_clear(r);
    return rc < 0 ? rc : advance(s);
}

static cairn_status on_done(crn_server *s, crn_runner_row *r, const crn_wire *w)
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
    return on_result(s, r);
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
static cairn_status on_piece(crn_server *s, crn_runner_row *r, const crn_letter *m)
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
    return r->waits ? on_result(s, r) : CAIRN_OK;
}

static cairn_status letter(crn_server *s, crn_runner_row *r, const crn_letter *m)
{
    if (m->wire.kind == CRN_WIRE_PIECE)
        return on_piece(s, r, m);
    if (m->wire.kind == CRN_WIRE_DONE)
        return on_done(s, r, &m->wire);
    s->nbad++;
    return CAIRN_OK;
}

/* --- runners that are late or gone ---------------------------------------------------------- */

static cairn_status lose(crn_server *s, crn_runner_row *r, const char *why)
{
    const bool matters = r->busy && r->task.cycle == s->cycle && s->phase == CRN_PHASE_CYCLE;
    return matters ? crn_schedule_failed(s, r->task.member, r->number, false, why) : CAIRN_OK;
}

static void overdue(crn_server *s, uint32_t member)
{
    s->member[member].overdue = true;
}

/* --- opening and closing -------------------------------------------------------------------- */

static cairn_status open_twin(crn_server *s, char **ret)
{
    CRN_FAIL_IF(!s->study->observations[0], CAIRN_EINVAL,
                "'%s': filter.observations names no file to write to", s->study->file);
    CRN_FAIL_IF(asprintf(ret, "%s.new", s->study->observations) < 0, CAIRN_ENOMEM, "no memory");
    s->twin_file = fopen(*ret, "we");
    if (!s->twin_file)
        return crn_fail_sys(errno, "cannot write '%s'", *ret);
    fprintf(s->twin_file, "# cycle field index value variance\n");
    return CAIRN_OK;
}

static cairn_status close_twin(crn_server *s, const char *path)
{
    int failed = fflush(s->twin_file) != 0 || fsync(fileno(s->twin_file)) != 0;
    if (failed || rename(path, s->study->observations) != 0)
        return crn_fail_sys(errno, "cannot write '%s'", s->study->observations);
    return CAIRN_OK;
}

static cairn_status open_states(crn_server *s)
{
    return s->twin ? open_twin(s, &s->twin_path) : crn_states_open(s);
}

static cairn_status tick(crn_server *s)
{
    if (s->keeper.works && atomic_load(&s->keeper.ended))
        crn_keeper_join(s);
    return CAIRN_OK;
}

static cairn_status close_states(crn_server *s, cairn_status rc)
{
    if (rc == CAIRN_OK && s->twin && !s->stopping)
        rc = close_twin(s, s->twin_path);
    crn_keeper_join(s);
    return rc;
}

static void free_states(crn_server *s)
{
    crn_states_close(s);
    for (uint32_t m = 0; m < s->nmembers; m++) {
        free(s->analysis ? s->analysis[m] : NULL);
        free(s->background ? s->background[m] : NULL);
    }
    free(s->analysis);
    free(s->background);
    free(s->twin_path);
    if (s->twin_file)
        fclose(s->twin_file);
}

const crn_method crn_method_kalman = {.open = open_states,
                                      .begin = begin,
                                      .join = join,
                                      .give = give,
                                      .letter = letter,
                                      .lose = lose,
                                      .overdue = overdue,
                                      .advance = advance,
                                      .tick = tick,
                                      .close = close_states,
                                      .free = free_states};
