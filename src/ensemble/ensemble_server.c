/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server's loop. Runners register with their fields and ask; what they get, what a result is,
 * and when and how a cycle ends, is the method's (crn_method). Whatever comes late, twice, from
 * another study or another incarnation, or does not fit, is counted and ignored.
 */
#include "ensemble/ensemble_server.h"

#include "ensemble/ensemble_check.h"
#include "ensemble/ensemble_side.h"

#include <errno.h>
#include <time.h>
#include <inttypes.h>
#include <unistd.h>

enum { WAIT_MS = 100, BEAT_NS = 500000000 };

/* --- talking -------------------------------------------------------------------------------- */

crn_wire crn_server_wire(const crn_server *s, crn_wire_kind kind)
{
    return (crn_wire){
        .kind = kind, .study = s->study->id, .incarnation = s->incarnation, .cycle = s->cycle};
}

void crn_server_beat(crn_server *s, const char *text)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_BEAT);
    w.number = s->ndone;
    w.more = s->nfailures;
    w.member = s->nactive;
    snprintf(w.text, sizeof w.text, "%s", text);
    if (s->launcher)
        (void)crn_link_send(s->launcher, NULL, &w, NULL, 0);
    s->beat_ns = crn_now_ns();
}

static void say_hello(crn_server *s, const char *job)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_HELLO);
    const char *all = s->ranks.addresses;
    snprintf(w.text, sizeof w.text, "%s", job);
    (void)crn_link_send(s->launcher, NULL, &w, all, strlen(all));
}

void crn_server_to_rank(crn_server *s, const crn_runner_row *r, uint32_t rank, const crn_wire *w,
                        const void *data, size_t nbytes)
{
    char peer[64];
    snprintf(peer, sizeof peer, "r%u.%u", r->number, rank);
    (void)crn_link_send(s->hub, peer, w, data, nbytes);
}

/* --- runners -------------------------------------------------------------------------------- */

crn_runner_row *crn_server_runner(const crn_server *s, uint32_t number)
{
    for (size_t i = 0; i < s->runner.n; i++)
        if (s->runner.at[i]->number == number)
            return s->runner.at[i];
    return NULL;
}

static void runner_free(crn_runner_row *r)
{
    for (uint32_t k = 0; r->rank && k < r->nranks; k++)
        crn_vec_done(&r->rank[k].piece);
    free(r->rank);
    free(r->incoming);
    free(r);
}

void crn_server_forget(crn_server *s, crn_runner_row *r)
{
    for (size_t i = 0; i < s->runner.n; i++)
        if (s->runner.at[i] == r)
            s->runner.at[i] = s->runner.at[--s->runner.n];
    runner_free(r);
}

/* A runner is gone or must go: what it had is to be done by others. */
static cairn_status lose_runner(crn_server *s, crn_runner_row *r, crn_cause cause, const char *why)
{
    r->cause = cause;
    cairn_status rc = s->method->lose(s, r, why);
    if (rc >= 0)
        rc = crn_ranks_order_all(s, CRN_SHARE_FORGET, r, 0);
    if (rc >= 0 && s->ranks.size > 1)
        rc = crn_vec_push(&s->gone, r->number);
    crn_server_forget(s, r);
    return rc < 0 ? rc : s->method->advance(s);
}

static cairn_status know_layout(crn_server *s, const crn_state_fields *fields)
{
    CRN_TRY(crn_layout_init(&s->layout, fields));
    CRN_TRY(crn_ranks_slice(s));
    CRN_TRY(crn_ranges_apply(s->study, &s->layout));
    CRN_FAIL_IF(s->layout.nrows == 0, CAIRN_EINVAL, "the model has no field to be assimilated");
    CRN_TRY(crn_observing_init(&s->observing, s->study, &s->layout.field));
    if (s->study->observations[0] && !s->twin)
        CRN_TRY(crn_obs_open(&s->observing.setup, &s->obs));
    return CAIRN_OK;
}

/* The first runner's fields are the study's: now it is known what a state is. */
cairn_status crn_server_begin(crn_server *s, const crn_state_fields *fields)
{
    CRN_TRY(crn_comm_agree(s->ranks.comm, know_layout(s, fields)));
    return s->method->begin(s);
}

static cairn_status order_begin(crn_server *s, const crn_state_fields *fields)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_SHARE);
    crn_buf b = {0};
    w.number = CRN_SHARE_BEGIN;
    crn_fields_put(&b, fields);
    cairn_status rc = crn_buf_status(&b);
    for (uint32_t k = 1; rc == CAIRN_OK && k < s->ranks.size; k++)
        rc = crn_ranks_order(s, k, &w, b.at, b.n);
    crn_buf_done(&b);
    return rc < 0 ? rc : crn_server_begin(s, fields);
}

/* All ranks have said what they have: do their pieces make whole fields? */
static cairn_status complete(crn_server *s, crn_runner_row *r)
{
    for (size_t f = 0; f < s->layout.field.n; f++) {
        uint64_t nbytes = 0;
        for (uint32_t k = 0; k < r->nranks; k++)
            nbytes += crn_field_nbytes(&r->rank[k].piece.at[f]);
        CRN_FAIL_IF(nbytes != crn_field_nbytes(&s->layout.field.at[f]), CAIRN_EMISMATCH,
                    "runner r%u: the pieces of field '%s' have %" PRIu64
                    " bytes, the field %" PRIu64,
                    r->number, s->layout.field.at[f].name, nbytes,
                    crn_field_nbytes(&s->layout.field.at[f]));
    }
    crn_study_event(s->study, "registered", "{s:o,s:i}", "runner", json_sprintf("r%u", r->number),
                    "ranks", r->nranks);
    return s->method->join(s, r);
}

static cairn_status new_runner(crn_server *s, uint32_t number, uint32_t nranks,
                               crn_runner_row **ret)
{
    crn_runner_row *r;
    CRN_TRY(crn_alloc(&r, 1));
    r->number = number;
    r->nranks = nranks;
    cairn_status rc = crn_alloc(&r->rank, r->nranks);
    if (rc == CAIRN_OK)
        rc = crn_vec_push(&s->runner, r);
    if (rc < 0)
        runner_free(r);
    else
        *ret = r;
    return rc;
}

/* Messages of a runner may come after the launcher's word that it is gone: from another rank of it,
 * or by way of another rank of the server. A row for it would be a runner that never works. */
static bool is_gone(const crn_server *s, uint32_t number)
{
    for (size_t i = 0; i < s->gone.n; i++)
        if (s->gone.at[i] == number)
            return true;
    return false;
}

cairn_status crn_server_fields(crn_server *s, const crn_letter *m)
{
    const crn_wire *w = &m->wire;
    crn_state_fields fields;
    crn_runner_row *r = crn_server_runner(s, w->runner);
    if (is_gone(s, w->runner)) {
        s->nstale++;
        return CAIRN_OK;
    }
    if (w->number == 0 || w->number > 1000000 || w->rank >= w->number ||
        (r && (r->nranks != w->number || r->rank[w->rank].known)) ||
        crn_fields_get(m->data, m->nbytes, &fields) < 0) {
        s->nbad++;
        return CAIRN_OK;
    }
    cairn_status rc = s->phase == CRN_PHASE_FIELDS ? order_begin(s, &fields) : CAIRN_OK;
    if (rc == CAIRN_OK && (rc = crn_layout_check(&s->layout, &fields)) < 0)
        crn_err_prefix("runner r%u does not fit the study: ", w->runner);
    if (rc == CAIRN_OK && !r)
        rc = new_runner(s, w->runner, (uint32_t)w->number, &r);
    if (rc < 0) {
        crn_vec_done(&fields);
        return rc;
    }
    r->rank[w->rank] = (crn_runner_rank){.known = true, .piece = fields};
    r->heard_ns = crn_now_ns();
    if (w->seconds > 0)
        r->until_ns = r->heard_ns + (uint64_t)(w->seconds * 1e9);
    r->nknown++;
    if (s->ranks.rank > 0)
        return crn_follower_runner(s, r);
    return r->nknown == r->nranks ? complete(s, r) : CAIRN_OK;
}

/* Another rank of the server knows all pieces of a runner; this one may not have heard of it. */
static cairn_status on_ready(crn_server *s, const crn_wire *w)
{
    crn_runner_row *r = crn_server_runner(s, w->runner);
    if (is_gone(s, w->runner))
        return CAIRN_OK;
    if (!r)
        CRN_TRY(new_runner(s, w->runner, w->member, &r));
    r->nready++;
    return CAIRN_OK;
}

/* --- tasks ---------------------------------------------------------------------------------- */

void crn_server_clear(crn_runner_row *r)
{
    r->ncame = 0;
    r->nwhole = 0;
    r->bad[0] = 0;
    for (uint32_t k = 0; k < r->nranks; k++)
        memset(r->rank[k].came, 0, sizeof r->rank[k].came);
}

void crn_server_task_with(crn_server *s, crn_runner_row *r, const crn_wire *task, const void *data,
                          size_t nbytes)
{
    r->task = *task;
    r->ntasks++;
    r->busy = true;
    r->idle = false;
    r->waits = false;
    crn_server_clear(r);
    r->begun_ns = crn_now_ns();
    crn_server_to_rank(s, r, 0, task, data, nbytes);
}

void crn_server_task(crn_server *s, crn_runner_row *r, const crn_wire *task)
{
    crn_server_task_with(s, r, task, NULL, 0);
}

/* The model's own first state is wanted, from one runner. */
static void ask_first(crn_server *s, crn_runner_row *r)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_TASK);
    for (size_t i = 0; i < s->runner.n; i++)
        if (s->runner.at[i]->busy)
            return;
    w.rank = CRN_TASK_OWN_STATE;
    w.number = s->study->spin;
    crn_server_task(s, r, &w);
}

/* Does its job end before a member would be done? One that had no task yet gets its chance. */
static bool ends_too_soon(const crn_server *s, const crn_runner_row *r)
{
    return r->until_ns > 0 && r->ntasks > 0 &&
           crn_now_ns() + (uint64_t)(crn_schedule_need_s(s) * 1e9) > r->until_ns;
}

/* The launcher replaces it; nothing is lost. */
static void retire(crn_server *s, crn_runner_row *r)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_LEAVE);
    w.runner = r->number;
    snprintf(w.text, sizeof w.text, "its time ends before another member would be done");
    (void)crn_link_send(s->launcher, NULL, &w, NULL, 0);
    crn_study_event(s->study, "retired", "{s:o,s:f,s:f}", "runner", json_sprintf("r%u", r->number),
                    "left", ((double)r->until_ns - (double)crn_now_ns()) / 1e9, "need",
                    crn_schedule_need_s(s));
    (void)lose_runner(s, r, CRN_CAUSE_LIMIT, "time limit");
}

enum { REQUESTS = 4096 };

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* How much of this thread's time a request has taken until its reply was queued. */
static void note_request(crn_server *s, crn_runner_row *r, uint64_t since)
{
    const double seconds = (double)(r->ask_ns + cpu_ns() - since) * 1e-9;
    if (s->request.n < REQUESTS)
        (void)crn_vec_push(&s->request, seconds);
    else
        s->request.at[s->nrequests % REQUESTS] = seconds;
    s->nrequests++;
    r->ask_ns = 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_request(crn_server *s)
{
    if (s->request.n == 0)
        return 0;
    qsort(s->request.at, s->request.n, sizeof(double), by_size);
    return s->request.at[s->request.n / 2];
}

static cairn_status give(crn_server *s, crn_runner_row *r)
{
    const uint64_t since = cpu_ns();
    CRN_TRY(s->method->give(s, r));
    if (r->busy)
        note_request(s, r, since);
    return CAIRN_OK;
}

static cairn_status schedule(crn_server *s)
{
    for (size_t i = 0; i < s->runner.n; i++) {
        crn_runner_row *r = s->runner.at[i];
        if (!r->idle || r->busy || r->nknown < r->nranks || r->nready < s->ranks.nothers)
            continue;
        if (ends_too_soon(s, r)) {
            retire(s, r);
            i--;
            continue;
        }
        if (s->phase == CRN_PHASE_FIRST)
            ask_first(s, r);
        else if (s->phase == CRN_PHASE_CYCLE)
            CRN_TRY(give(s, r));
    }
    return CAIRN_OK;
}

void crn_server_next_cycle(crn_server *s)
{
    s->cycle++;
    s->moved_ns = crn_now_ns();
    s->phase = s->cycle > s->study->cycles ? CRN_PHASE_OVER : CRN_PHASE_CYCLE;
    crn_schedule_begin(s);
    crn_server_beat(s, "cycle");
}

/* --- messages ------------------------------------------------------------------------------- */

/* From another rank of the server. */
static cairn_status on_share(crn_server *s, const crn_letter *m)
{
    const crn_wire *w = &m->wire;
    char name[CRN_PEER_NAME + 1];
    snprintf(name, sizeof name, "s%u.%" PRIu64, s->incarnation, w->more);
    if (w->more == 0 || w->more >= s->ranks.size || strcmp(name, m->peer) != 0) {
        s->nbad++;
        return CAIRN_OK;
    }
    CRN_TRY(crn_ranks_heard(s, (uint32_t)w->more, w));
    crn_runner_row *r = crn_server_runner(s, w->runner);
    switch (w->number) {
    case CRN_SHARE_READY:
        return on_ready(s, w);
    case CRN_SHARE_WHOLE:
        return r ? s->method->letter(s, r, m) : CAIRN_OK;
    case CRN_SHARE_KEPT:
        return crn_keeper_heard(s, w);
    default:
        return CAIRN_OK;
    }
}

static cairn_status on_runner(crn_server *s, const crn_letter *m)
{
    const crn_wire *w = &m->wire;
    if (w->study != s->study->id || w->incarnation != s->incarnation) {
        s->nstale++;
        return CAIRN_OK;
    }
    crn_runner_row *r = crn_server_runner(s, w->runner);
    switch (w->kind) {
    case CRN_WIRE_FIELDS:
        return crn_server_fields(s, m);
    case CRN_WIRE_SHARE:
        return on_share(s, m);
    case CRN_WIRE_ASK:
    case CRN_WIRE_BEAT:
        if (r) {
            r->idle = r->idle || w->kind == CRN_WIRE_ASK;
            r->heard_ns = crn_now_ns();
        }
        return CAIRN_OK;
    case CRN_WIRE_LEAVE:
        return r ? lose_runner(s, r, CRN_CAUSE_LOST, "lost process") : CAIRN_OK;
    default: /* what has to do with states and results */
        if (!r || r->nknown < r->nranks)
            s->nstale++;
        return r && r->nknown == r->nranks ? s->method->letter(s, r, m) : CAIRN_OK;
    }
}

/* A runner must go: the launcher is to end it. */
static cairn_status end_runner(crn_server *s, crn_runner_row *r, crn_cause cause, const char *why)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_LEAVE);
    w.runner = r->number;
    snprintf(w.text, sizeof w.text, "%s", why);
    (void)crn_link_send(s->launcher, NULL, &w, NULL, 0);
    return lose_runner(s, r, cause, why);
}

/* "kill 3": end the runners that have member 3 now. */
static cairn_status on_order(crn_server *s, const char *order)
{
    unsigned member;
    if (sscanf(order, "kill %u", &member) != 1)
        return CAIRN_OK;
    for (size_t i = 0; i < s->runner.n; i++) {
        crn_runner_row *r = s->runner.at[i];
        if (r->busy && r->task.member == member && s->phase == CRN_PHASE_CYCLE) {
            CRN_TRY(end_runner(s, r, CRN_CAUSE_LOST, "killed by order"));
            i = (size_t)-1; /* the list has changed */
        }
    }
    return CAIRN_OK;
}

/* A runner's job is over. It may be one that has not said, or not said here, that it is there. */
static cairn_status on_leave(crn_server *s, const crn_wire *w)
{
    crn_runner_row *r = crn_server_runner(s, w->runner);
    CRN_TRY(crn_vec_push(&s->gone, w->runner));
    if (r)
        return lose_runner(s, r, w->number == CRN_CAUSE_LIMIT ? CRN_CAUSE_LIMIT : CRN_CAUSE_LOST,
                           w->text);
    if (s->method->gone)
        return s->method->gone(s, w->runner, w->text);
    return s->method == &crn_method_check ? crn_check_lost(s, w->runner, w->text) : CAIRN_OK;
}

static cairn_status on_launcher(crn_server *s, const crn_wire *w)
{
    if (w->study != s->study->id)
        s->nstale++;
    else if (w->kind == CRN_WIRE_STOP)
        s->stopping = true;
    else if (w->kind == CRN_WIRE_ORDER)
        return on_order(s, w->text);
    else if (w->kind == CRN_WIRE_LEAVE)
        return on_leave(s, w);
    else if (w->kind == CRN_WIRE_HELLO) { /* a new launcher does not know us */
        char job[32];
        snprintf(job, sizeof job, "s%u", s->incarnation);
        say_hello(s, job);
    }
    return CAIRN_OK;
}

static cairn_status take_all(crn_server *s)
{
    crn_letter m = {0};
    cairn_status rc = CAIRN_OK;
    uint64_t since = cpu_ns();
    while (rc == CAIRN_OK && (s->phase != CRN_PHASE_OVER || crn_keeper_works(s)) &&
           crn_link_take(s->hub, &m, &s->nbad) == CAIRN_OK) {
        rc = on_runner(s, &m);
        crn_runner_row *r =
            m.wire.kind == CRN_WIRE_ASK ? crn_server_runner(s, m.wire.runner) : NULL;
        crn_letter_done(&m);
        const uint64_t now = cpu_ns();
        if (r)
            r->ask_ns = now - since;
        since = now;
    }
    while (rc == CAIRN_OK && crn_link_take(s->launcher, &m, &s->nbad) == CAIRN_OK) {
        rc = on_launcher(s, &m.wire);
        crn_letter_done(&m);
    }
    return rc < 0 ? rc : CAIRN_OK;
}

/* Overdue tasks: others may start them, too; a runner that takes twice as long hangs. */
static cairn_status check_due(crn_server *s)
{
    const double due = crn_schedule_due_s(s);
    const uint64_t now = crn_now_ns();
    for (size_t i = 0; i < s->runner.n; i++) {
        crn_runner_row *r = s->runner.at[i];
        double took = (double)(now - r->begun_ns) / 1e9;
        if (!r->busy || took < due)
            continue;
        if (r->task.cycle == s->cycle && s->phase == CRN_PHASE_CYCLE)
            s->method->overdue(s, r->task.member);
        if (took > 2 * due) /* the list changes: the others are looked at next time */
            return end_runner(s, r, CRN_CAUSE_HANG, "hang");
    }
    return CAIRN_OK;
}

static cairn_status loop(crn_server *s)
{
    while ((s->phase != CRN_PHASE_OVER || crn_keeper_works(s)) && !s->stopping) {
        crn_link *const link[] = {s->hub, s->launcher};
        crn_link_wait(link, 2, -1, WAIT_MS);
        CRN_TRY(take_all(s));
        CRN_TRY(check_due(s));
        CRN_TRY(schedule(s));
        CRN_TRY(s->method->tick(s));
        CRN_TRY(crn_ranks_beat(s));
        if (crn_now_ns() > s->beat_ns + BEAT_NS)
            crn_server_beat(s, "");
    }
    return CAIRN_OK;
}

/* --- the beginning and the end -------------------------------------------------------------- */

static cairn_status listen(crn_server *s)
{
    char host[CRN_ADDRESS_TEXT];
    crn_study_address(s->study, host, sizeof host);
    return crn_link_listen(&s->study->keys, host, 0, &s->hub);
}

static cairn_status prepare(crn_server *s)
{
    const char *job = getenv("CAIRN_ENSEMBLE_JOB");
    CRN_FAIL_IF(!job || job[0] != 's', CAIRN_EINVAL,
                "a server is started by 'cairn ensemble run', not by hand");
    s->incarnation = (uint32_t)strtoul(job + 1, NULL, 10);
    s->nmembers = s->nactive = s->twin ? 1 : s->study->members;
    if (s->method == &crn_method_check || s->method == &crn_method_try)
        s->nmembers = s->nactive = CRN_CHECK_MEMBERS;
    if (s->study->side)
        s->nmembers = s->nactive = (uint32_t)s->study->side->coding.n * s->study->members;
    CRN_TRY(crn_alloc(&s->member, s->nmembers));
    CRN_TRY(s->method->open(s));
    return listen(s);
}

static cairn_status greet_launcher(crn_server *s)
{
    const char *job = getenv("CAIRN_ENSEMBLE_JOB");
    char *address;
    CRN_TRY(crn_study_read(s->study->dir, "launcher", &address));
    address[strcspn(address, "\n")] = 0;
    cairn_status rc = crn_link_connect(&s->study->keys, address, job, &s->launcher);
    free(address);
    CRN_TRY(rc);
    say_hello(s, job);
    return CAIRN_OK;
}

/* All ranks; then rank 0 speaks to the launcher. */
static cairn_status start(crn_server *s)
{
    CRN_TRY(crn_comm_agree(s->ranks.comm, prepare(s)));
    CRN_TRY(crn_ranks_meet(s));
    return s->ranks.rank == 0 ? greet_launcher(s) : CAIRN_OK;
}

static void server_done(crn_server *s)
{
    s->method->free(s);
    free(s->member);
    while (s->runner.n > 0)
        runner_free(s->runner.at[--s->runner.n]);
    crn_vec_done(&s->runner);
    crn_vec_done(&s->seconds);
    crn_vec_done(&s->request);
    crn_vec_done(&s->gone);
    crn_async_done(s);
    crn_obs_close(s->obs);
    crn_observing_done(&s->observing);
    crn_layout_done(&s->layout);
    crn_link_free(s->head);
    crn_link_free(s->hub);
    crn_link_free(s->launcher);
    crn_ranks_done(&s->ranks);
}

/* The last word: to the launcher, which ends the runners. */
static void finish(crn_server *s, cairn_status rc)
{
    char text[400];
    snprintf(text, sizeof text, "%.380s", rc < 0 ? crn_err_peek()->text : "");
    crn_wire w = crn_server_wire(s, CRN_WIRE_STOP);
    snprintf(w.text, sizeof w.text, "%s", text);
    w.number = rc < 0 ? 1 : s->stopping ? 2 : 0;
    if (s->method != &crn_method_check && s->method != &crn_method_try)
        crn_study_event(s->study, "over", "{s:i,s:I,s:I,s:I,s:I,s:f}", "cycle", s->cycle - 1,
                        "failures", (json_int_t)s->nfailures, "repeated", (json_int_t)s->nrepeated,
                        "ignored", (json_int_t)(s->nbad + s->nstale), "refused",
                        (json_int_t)(s->hub ? crn_link_refused(s->hub) : 0), "request_s",
                        median_request(s));
    if (s->launcher)
        (void)crn_link_send(s->launcher, NULL, &w, NULL, 0);
    if (s->ranks.sent) /* those that know already that it is over are gone */
        for (uint32_t k = 1; k < s->ranks.size; k++)
            crn_ranks_over(s, k);
    if (rc == CAIRN_OK && !s->stopping) /* also where no launcher is left that would */
        for (size_t i = 0; i < s->runner.n; i++)
            crn_server_to_rank(s, s->runner.at[i], 0, &w, NULL, 0);
}

static const char *const mode_words[] = {
    [CRN_MODE_RUN] = "run", [CRN_MODE_TWIN] = "twin",   [CRN_MODE_CHECK] = "check",
    [CRN_MODE_TRY] = "try", [CRN_MODE_PLAIN] = "plain", [CRN_MODE_NOISE] = "noise"};

const char *crn_mode_word(crn_study_mode mode)
{
    return mode_words[mode];
}

crn_study_mode crn_mode_of(const char *word)
{
    for (size_t i = 0; word && i < sizeof mode_words / sizeof *mode_words; i++)
        if (strcmp(word, mode_words[i]) == 0)
            return (crn_study_mode)i;
    return CRN_MODE_RUN;
}

cairn_status crn_server_run(crn_study *study, crn_study_mode mode, crn_comm *comm)
{
    crn_server s = {.study = study, .twin = mode == CRN_MODE_TWIN, .method = &crn_method_kalman};
    if (study->particle.on && mode == CRN_MODE_RUN)
        s.method = &crn_method_particle;
    if (mode == CRN_MODE_CHECK || mode == CRN_MODE_TRY)
        s.method = mode == CRN_MODE_TRY ? &crn_method_try : &crn_method_check;
    s.ranks.comm = comm;
    s.ranks.rank = (uint32_t)crn_comm_rank(comm);
    s.ranks.size = (uint32_t)crn_comm_size(comm);
    crn_comm_set_patient(comm, true);
    study->quiet = s.ranks.rank > 0;
    cairn_status rc = start(&s);
    if (rc == CAIRN_OK)
        rc = s.ranks.rank == 0 ? loop(&s) : crn_follower_run(&s);
    rc = crn_dynamic_close(&s, rc);
    rc = s.method->close(&s, rc);
    if (rc == CAIRN_OK && s.keeper.rc < 0) /* what was computed is lost with this process */
        rc = crn_fail(CAIRN_EIO,
                      "the last analysis was not kept: %.200s; mend that, and run the "
                      "study again",
                      s.keeper.text);
    if (s.ranks.rank == 0 && !s.ranks.broken)
        finish(&s, rc);
    server_done(&s);
    return rc;
}
