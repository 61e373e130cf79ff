/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The method of Kalman filters, free runs and twins: the server has all states. A runner gets a
 * member's state, and hands over what became of it; when all members of a cycle are done, the
 * filter makes the analysis.
 */
#include "ensemble/ensemble_server.h"
#include "ensemble/ensemble_table.h"
#include "ensemble/ensemble_update.h"

#include <errno.h>
#include <unistd.h>

/* --- the beginning -------------------------------------------------------------------------- */

/* Members that are observed within their cycle need places before. */
static cairn_status place(crn_server *s)
{
    return s->study->asynchronous && s->obs ? crn_observe_place(s, s->analysis[0]) : CAIRN_OK;
}

cairn_status crn_kalman_analyse(crn_server *s)
{
    const uint64_t begun = crn_now_ns();
    crn_server_beat(s, "update");
    CRN_TRY(s->study->side ? crn_side_update(s) : crn_analysis_update(s));
    s->revival.propagate += (double)(begun - s->cycle_ns) * 1e-9;
    s->revival.update += (double)(crn_now_ns() - begun) * 1e-9;
    s->revival.ncycles++;
    crn_keeper_start(s, s->cycle);
    crn_server_next_cycle(s);
    return CAIRN_OK;
}

static cairn_status analyse(crn_server *s)
{
    CRN_TRY(crn_ranks_order_all(s, CRN_SHARE_UPDATE, NULL, 0));
    return crn_kalman_analyse(s);
}

/* What an earlier server of the study has kept is taken up. */
static cairn_status begin(crn_server *s)
{
    bool whole = false;
    CRN_TRY(crn_comm_agree(s->ranks.comm, crn_gather_begin(s)));
    cairn_status rc = crn_states_take_up(s, &whole);
    CRN_TRY(rc);
    if (rc == CAIRN_OK && s->ranks.rank == 0)
        crn_revival_begin(s);
    if (rc == CAIRN_OK)
        CRN_TRY(place(s));
    s->phase = rc == CAIRN_NOTHING ? CRN_PHASE_FIRST : CRN_PHASE_CYCLE;
    if (rc == CAIRN_OK && s->cycle > s->study->cycles)
        s->phase = CRN_PHASE_OVER;
    return whole ? crn_kalman_analyse(s) : CAIRN_OK;
}

/* --- tasks ---------------------------------------------------------------------------------- */

/* Other ranks of the server send their parts. */
static cairn_status order_send(crn_server *s, const crn_wire *task, const crn_runner_row *r,
                               bool background)
{
    crn_wire w = *task;
    w.kind = CRN_WIRE_SHARE;
    w.runner = r->number;
    w.number = CRN_SHARE_SEND;
    w.more = background;
    for (uint32_t k = 1; k < s->ranks.size; k++)
        CRN_TRY(crn_ranks_order(s, k, &w, NULL, 0));
    return CAIRN_OK;
}

static cairn_status give_member(crn_server *s, crn_runner_row *r, uint32_t member)
{
    crn_member_row *m = &s->member[member];
    crn_wire w = crn_server_wire(s, CRN_WIRE_TASK);
    uint64_t from, to;
    CRN_TRY(crn_async_task(s, member, &from, &to));
    const bool last = to == s->study->steps;
    m->state = CRN_MEMBER_RUNNING;
    s->nrepeated += s->async.row ? m->attempt > s->async.row[member].stale : m->attempt > 0;
    m->copies++;
    w.member = member;
    w.attempt = ++m->attempt;
    w.number = to - from;
    w.more = s->study->spin + (s->cycle - 1) * s->study->steps + from;
    w.rank = crn_states_keep_background(s) && last ? CRN_TASK_KEEP : 0;
    if (s->study->side) /* a model with noise of its own has the same in all ensembles */
        snprintf(w.text, sizeof w.text, "%u", member % s->study->members);
    if ((w.rank & CRN_TASK_KEEP) != 0)
        CRN_TRY(crn_dynamic_task(s, &w));
    crn_server_task(s, r, &w);
    CRN_TRY(order_send(s, &w, r, from > 0));
    crn_gather_send(s, r, &w, from > 0 ? s->background[member] : s->analysis[member]);
    crn_study_event(s->study, "task", "{s:i,s:i,s:i,s:o}", "cycle", s->cycle, "member", member,
                    "attempt", w.attempt, "runner", json_sprintf("r%u", r->number));
    return CAIRN_OK;
}

static cairn_status give(crn_server *s, crn_runner_row *r)
{
    uint32_t member;
    return crn_schedule_choose(s, r, &member) ? give_member(s, r, member) : CAIRN_OK;
}

/* --- results -------------------------------------------------------------------------------- */

static cairn_status advance(crn_server *s)
{
    uint32_t left = 0;
    for (uint32_t m = 0; m < s->nmembers; m++)
        left += s->member[m].state == CRN_MEMBER_TODO || s->member[m].state == CRN_MEMBER_RUNNING;
    if (left > 0 || s->phase != CRN_PHASE_CYCLE || (s->study->side && crn_side_must_wait(s)))
        return CAIRN_OK;
    if (s->ranks.size > 1 && (s->waiting = crn_keeper_works(s)))
        return CAIRN_OK; /* its steps are orders, for which there is no time in an update */
    return analyse(s);
}

cairn_status crn_kalman_first(crn_server *s)
{
    CRN_TRY(s->study->side ? crn_side_first(s) : crn_analysis_first(s));
    CRN_TRY(place(s));
    crn_keeper_start(s, 0);
    crn_keeper_wait(s); /* runners that have had a task have no first state for another server */
    CRN_TRY(crn_comm_agree(s->ranks.comm, CAIRN_OK));
    crn_server_next_cycle(s);
    return CAIRN_OK;
}

static cairn_status on_first(crn_server *s, crn_runner_row *r)
{
    CRN_TRY(crn_ranks_order_all(s, CRN_SHARE_FIRST, r, 0));
    crn_gather_swap(s, r, 0);
    return crn_kalman_first(s);
}

static cairn_status take_result(crn_server *s, crn_runner_row *r, const crn_wire *w)
{
    char why[160];
    crn_member_row *m = &s->member[w->member];
    const bool bad = crn_rows_find_bad(&s->layout, r->incoming, why, sizeof why);
    if (bad || r->bad[0]) {
        CRN_TRY(crn_states_refuse(s, w->member, s->cycle));
        return crn_schedule_failed(s, w->member, r->number, CRN_CAUSE_STATE, bad ? why : r->bad);
    }
    CRN_TRY(crn_ranks_order_all(s, CRN_SHARE_TAKE, r, w->member));
    crn_gather_swap(s, r, w->member);
    bool whole;
    CRN_TRY(crn_async_reached(s, w->member, s->background[w->member], &whole));
    m->state = whole ? CRN_MEMBER_DONE : CRN_MEMBER_TODO;
    s->ndone += whole;
    crn_schedule_took(s, w->seconds);
    if (w->more > 0)
        crn_dynamic_stored(s, w->cycle, w->member, (double)w->more * 1e-9);
    crn_study_event(s->study, "done", "{s:i,s:i,s:o,s:o}", "cycle", s->cycle, "member", w->member,
                    "runner", json_sprintf("r%u", r->number), "seconds",
                    crn_study_real(w->seconds));
    return CAIRN_OK;
}

static cairn_status judge(crn_server *s, crn_runner_row *r, const crn_wire *w)
{
    crn_member_row *m = &s->member[w->member];
    if ((m->state != CRN_MEMBER_TODO && m->state != CRN_MEMBER_RUNNING) ||
        crn_async_is_stale(s, w->member, w->attempt)) {
        s->nstale++; /* another runner was first */
        return CAIRN_OK;
    }
    m->state = CRN_MEMBER_RUNNING;
    if (w->number != 0) {
        char text[256];
        snprintf(text, sizeof text, "the model refuses: %.200s", w->text);
        return crn_schedule_failed(s, w->member, r->number, CRN_CAUSE_REFUSED, text);
    }
    return take_result(s, r, w);
}

static cairn_status take(crn_server *s, crn_runner_row *r, const crn_wire *w)
{
    cairn_status rc = CAIRN_OK;
    if (s->phase == CRN_PHASE_FIRST)
        rc = on_first(s, r);
    else if (s->phase == CRN_PHASE_CYCLE)
        rc = judge(s, r, w);
    return rc < 0 ? rc : advance(s);
}

static cairn_status letter(crn_server *s, crn_runner_row *r, const crn_letter *m)
{
    if (m->wire.kind == CRN_WIRE_SHARE)
        return crn_gather_share(s, r, &m->wire, take);
    return crn_gather_letter(s, r, m, take);
}

/* --- runners that are late or gone ---------------------------------------------------------- */

static cairn_status lose(crn_server *s, crn_runner_row *r, const char *why)
{
    const bool matters = r->busy && r->task.cycle == s->cycle && s->phase == CRN_PHASE_CYCLE;
    return matters ? crn_schedule_failed(s, r->task.member, r->number, r->cause, why) : CAIRN_OK;
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
    if (s->twin)
        return open_twin(s, &s->twin_path);
    CRN_TRY(crn_kernel_record(s));
    return crn_states_open(s);
}

static cairn_status tick(crn_server *s)
{
    CRN_TRY(crn_keeper_look(s));
    crn_revival_look(s);
    return s->waiting ? advance(s) : CAIRN_OK;
}

/* Also of a study that has failed, whose sentence stays. */
static cairn_status export_tables(const crn_server *s, cairn_status rc)
{
    const crn_err why = *crn_err_peek();
    cairn_status exported = crn_tables_export(s->study);
    return rc < 0 ? crn_err_give(&why) : exported;
}

static cairn_status close_states(crn_server *s, cairn_status rc)
{
    if (rc == CAIRN_OK && s->twin && !s->stopping)
        rc = close_twin(s, s->twin_path);
    crn_keeper_join(s);
    if (s->ranks.rank > 0)
        return rc;
    if (rc == CAIRN_OK)
        crn_revival_report(s);
    return s->twin ? rc : export_tables(s, rc);
}

static void free_states(crn_server *s)
{
    crn_states_close(s);
    crn_gather_done(s);
    free(s->twin_path);
    if (s->twin_file)
        fclose(s->twin_file);
}

const crn_method crn_method_kalman = {.open = open_states,
                                      .begin = begin,
                                      .join = crn_gather_join,
                                      .give = give,
                                      .letter = letter,
                                      .lose = lose,
                                      .overdue = overdue,
                                      .advance = advance,
                                      .tick = tick,
                                      .close = close_states,
                                      .free = free_states};
