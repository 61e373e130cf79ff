/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The model's side in a study. Rank 0 talks to the launcher and to the server, and gives every
 * order to all ranks, which then act alike; pieces of states go straight between each rank and the
 * server. A result that the server has not answered with the next task is kept in the model's
 * memory, and offered again to a new server.
 */
#include "ensemble/ensemble_dynamic.h"
#include "ensemble/ensemble_member.h"
#include "ensemble/ensemble_study.h"

#include <inttypes.h>

enum { WAIT_MS = 200, BEAT_S = 1, PIECES_MS = 100 };

/* What all ranks are to do. */
typedef enum verb { DO_WAIT, DO_CONNECT, DO_TASK, DO_STOP } verb;

typedef struct order {
    uint32_t verb;
    crn_wire wire;       /* serve or task */
    uint64_t naddresses; /* bytes of the text that follows a serve */
} order;

struct crn_member_runner {
    char *dir, job[32];
    uint32_t number; /* of the job */
    crn_keys keys;
    uint64_t study;
    crn_link *launcher;      /* of rank 0 only */
    crn_link **server;       /* to its ranks, rank 0 first; NULL: nothing of our pieces is there */
    uint32_t nservers;       /* 0: there is none at present */
    char *addresses;         /* of the server's ranks, as rank 0 has heard of them */
    crn_state_layout *part;  /* of each rank of the server: its slice */
    uint32_t incarnation;    /* of the server that we are connected to; 0: none */
    cairn_shelf *shelf;      /* NULL: backgrounds are not kept */
    crn_state_fields fields; /* our pieces */
    crn_wire task;           /* the last one */
    bool over;               /* the study is */
    bool holds;              /* a result that was not answered yet */
    char refusal[256];       /* why the model could not compute it; "": it could */
    uint64_t begun_ns, beat_ns;
    double took_s;
    uint64_t put_ns; /* that the last put took */
    uint64_t nbad;
};

/* --- joining -------------------------------------------------------------------------------- */

static cairn_status join(cairn_ensemble *e, crn_member_runner *r, const char *dir, const char *job)
{
    char *address, name[64];
    CRN_TRY(crn_strdup(dir, &r->dir));
    CRN_FAIL_IF(job[0] != 'r' || strlen(job) >= sizeof r->job, CAIRN_EINVAL,
                "CAIRN_ENSEMBLE_JOB '%s' is no runner's", job);
    snprintf(r->job, sizeof r->job, "%s", job);
    r->number = (uint32_t)strtoul(job + 1, NULL, 10);
    CRN_TRY(crn_keys_read(dir, &r->keys, &r->study));
    if (crn_comm_rank(e->comm) > 0)
        return CAIRN_OK;
    char *text;
    CRN_TRY(crn_study_read(dir, "launcher", &text));
    address = text;
    address[strcspn(address, "\n")] = 0;
    snprintf(name, sizeof name, "%s", job);
    cairn_status rc = crn_link_connect(&r->keys, address, name, &r->launcher);
    free(text);
    return rc;
}

static void say_hello(crn_member_runner *r)
{
    crn_wire w = {.kind = CRN_WIRE_HELLO, .study = r->study, .runner = r->number};
    snprintf(w.text, sizeof w.text, "%s", r->job);
    (void)crn_link_send(r->launcher, NULL, &w, NULL, 0);
}

cairn_status crn_runner_create(cairn_ensemble *e, crn_member_runner **ret)
{
    const char *dir = getenv("CAIRN_ENSEMBLE_DIR"), *job = getenv("CAIRN_ENSEMBLE_JOB");
    crn_member_runner *r;
    if (!dir || !job)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&r, 1));
    cairn_status rc = crn_comm_agree(e->comm, join(e, r, dir, job));
    if (rc < 0) {
        crn_runner_free(r);
        return rc;
    }
    if (r->launcher)
        say_hello(r);
    *ret = r;
    return CAIRN_OK;
}

/* dead: what is still to be sent is offered to the next one, and waits for nobody */
static void leave_server(crn_member_runner *r, bool dead)
{
    for (uint32_t k = 0; k < r->nservers; k++) {
        if (dead)
            crn_link_drop(r->server[k]);
        else
            crn_link_free(r->server[k]);
        crn_layout_done(&r->part[k]);
    }
    free(r->server);
    free(r->part);
    r->server = NULL;
    r->part = NULL;
    r->nservers = 0;
}

void crn_runner_free(crn_member_runner *r)
{
    if (!r)
        return;
    if (r->launcher && r->nservers > 0 && !r->over) {
        crn_wire w = {.kind = CRN_WIRE_LEAVE,
                      .study = r->study,
                      .runner = r->number,
                      .incarnation = r->incarnation};
        (void)crn_link_send(r->server[0], NULL, &w, NULL, 0);
    }
    cairn_shelf_close(r->shelf);
    leave_server(r, false);
    crn_link_free(r->launcher);
    free(r->addresses);
    crn_vec_done(&r->fields);
    free(r->dir);
    free(r);
}

/* --- fields --------------------------------------------------------------------------------- */

static cairn_status add_piece(cairn_ensemble *e, const crn_member_field *m, crn_state_fields *to)
{
    crn_state_field f = {.role = m->role, .type = m->piece.type, .ndims = m->piece.ndims};
    memcpy(f.name, m->name, sizeof f.name);
    memcpy(f.global, m->piece.global, sizeof f.global);
    memcpy(f.offset, m->piece.offset, sizeof f.offset);
    memcpy(f.count, m->piece.count, sizeof f.count);
    if (f.ndims == 0) { /* one rank has all of it */
        uint64_t whole[2] = {f.count[0], f.count[0]};
        CRN_TRY(crn_comm_allreduce_u64(e->comm, CRN_REDUCE_MAX, whole, 1));
        CRN_TRY(crn_comm_allreduce_u64(e->comm, CRN_REDUCE_SUM, whole + 1, 1));
        CRN_FAIL_IF(whole[0] != whole[1] || whole[0] == 0, CAIRN_EINVAL,
                    "field '%s' has no place in a global array: only one rank may have it", f.name);
        f.ndims = 1;
        f.global[0] = whole[0];
        f.offset[0] = 0;
    }
    for (int d = f.ndims; d < 8; d++)
        f.global[d] = f.offset[d] = f.count[d] = 0;
    return crn_vec_push(to, f);
}

static cairn_status collect_fields(cairn_ensemble *e, crn_state_fields *ret)
{
    CRN_FAIL_IF(e->field.n == 0, CAIRN_EINVAL, "the model declares no field");
    for (size_t i = 0; i < e->field.n; i++)
        CRN_TRY(add_piece(e, e->field.at[i], ret));
    return CAIRN_OK;
}

cairn_status crn_member_pieces(cairn_ensemble *e, crn_state_fields *ret)
{
    return crn_comm_agree(e->comm, collect_fields(e, ret));
}

/* --- talking to the server ------------------------------------------------------------------ */

static crn_wire wire_of(const cairn_ensemble *e, crn_wire_kind kind)
{
    const crn_member_runner *r = e->runner;
    return (crn_wire){.kind = kind,
                      .study = r->study,
                      .incarnation = r->incarnation,
                      .cycle = r->task.cycle,
                      .member = r->task.member,
                      .attempt = r->task.attempt,
                      .runner = r->number,
                      .rank = (uint32_t)crn_comm_rank(e->comm)};
}

static void send_beat(cairn_ensemble *e, crn_wire_kind kind)
{
    crn_wire w = wire_of(e, kind);
    if (e->runner->nservers > 0)
        (void)crn_link_send(e->runner->server[0], NULL, &w, NULL, 0);
    e->runner->beat_ns = crn_now_ns();
}

/* Where the part of field i that rank k of the server has lies in this rank's piece. */
static unsigned char *part_of(const cairn_ensemble *e, uint32_t k, size_t i, size_t *ret_nbytes)
{
    const crn_state_field *f = &e->runner->fields.at[i];
    const size_t item = cairn_type_bytes(f->type);
    uint64_t first, end;
    crn_part_range(&e->runner->part[k], i, f, &first, &end);
    *ret_nbytes = (end - first) * item;
    return (unsigned char *)e->field.at[i]->piece.data + first * item;
}

/* This rank's pieces of the result. */
static void send_pieces(cairn_ensemble *e)
{
    for (uint32_t k = 0; k < e->runner->nservers; k++)
        for (size_t i = 0; e->runner->server[k] && i < e->field.n; i++) {
            size_t nbytes;
            const unsigned char *data = part_of(e, k, i, &nbytes);
            crn_wire w = wire_of(e, CRN_WIRE_PIECE);
            w.number = i;
            if (nbytes > 0)
                (void)crn_link_send(e->runner->server[k], NULL, &w, data, nbytes);
        }
}

/* Is its background coded before it is put? Then what goes on is what a reader of it gets. */
static bool is_coded(const crn_member_runner *r)
{
    return (r->task.rank & CRN_TASK_CODED) != 0;
}

/* Put the background on the shelf. Collective. A failure is the server's to know: it then has the
 * only copy. */
static void keep_background(cairn_ensemble *e)
{
    char key[32];
    cairn_field field[CRN_MEMBER_FIELDS];
    crn_chosen chosen = {0};
    crn_member_runner *r = e->runner;
    if (!r->shelf || r->task.cycle == 0 || r->refusal[0])
        return;
    for (size_t i = 0; i < e->field.n; i++) {
        const crn_state_field *f = &r->fields.at[i];
        field[i] = e->field.at[i]->piece;
        field[i].ndims = f->ndims;
        memcpy(field[i].global, f->global, sizeof f->global);
        memcpy(field[i].offset, f->offset, sizeof f->offset);
        memcpy(field[i].count, f->count, sizeof f->count);
    }
    snprintf(key, sizeof key, "b%06u", r->task.member);
    if (is_coded(r))
        (void)!crn_dynamic_choose(r->dir, e->comm, r->shelf, r->task.cycle, r->task.member, field,
                                  e->field.n, &chosen);
    const uint64_t begun = crn_now_ns();
    (void)!cairn_state_put(r->shelf, key, r->task.cycle, NULL, field, e->field.n);
    r->put_ns = crn_now_ns() - begun;
    crn_dynamic_settle(&chosen);
}

static void send_result(cairn_ensemble *e, bool keep)
{
    crn_member_runner *r = e->runner;
    if (keep && is_coded(r))
        keep_background(e);
    if (!r->refusal[0])
        send_pieces(e);
    if (keep && !is_coded(r))
        keep_background(e);
    if (!r->launcher || r->nservers == 0)
        return;
    crn_wire w = wire_of(e, CRN_WIRE_DONE);
    w.seconds = r->took_s;
    w.number = r->refusal[0] != 0;
    w.more = is_coded(r) ? r->put_ns : 0;
    memcpy(w.text, r->refusal, sizeof r->refusal);
    (void)crn_link_send(r->server[0], NULL, &w, NULL, 0);
}

/* --- orders --------------------------------------------------------------------------------- */

/* Where the ranks of the server listen; the bytes that this takes, as text. */
static size_t note_addresses(crn_member_runner *r, const crn_letter *m)
{
    const bool many = m->nbytes > 0;
    const char *text = many ? (const char *)m->data : m->wire.text;
    free(r->addresses);
    r->addresses = strndup(text, many ? m->nbytes : sizeof m->wire.text);
    return r->addresses ? strlen(r->addresses) + 1 : 0;
}

/* Rank 0: does the launcher want something? */
static bool hear_launcher(crn_member_runner *r, order *ret)
{
    crn_letter m = {0};
    bool found = false;
    while (!found && crn_link_take(r->launcher, &m, &r->nbad) == CAIRN_OK) {
        found = m.wire.study == r->study &&
                (m.wire.kind == CRN_WIRE_STOP ||
                 (m.wire.kind == CRN_WIRE_SERVE && m.wire.incarnation > r->incarnation));
        if (found)
            *ret = (order){m.wire.kind == CRN_WIRE_STOP ? DO_STOP : DO_CONNECT, m.wire, 0};
        if (found && ret->verb == DO_CONNECT)
            ret->naddresses = note_addresses(r, &m);
        crn_letter_done(&m);
    }
    return found;
}

/* Rank 0: has the server a task? Pieces that come before theirs belong to an earlier one. */
static bool hear_server(crn_member_runner *r, order *ret)
{
    crn_letter m = {0};
    bool found = false;
    while (!found && r->nservers > 0 && crn_link_take(r->server[0], &m, &r->nbad) == CAIRN_OK) {
        found = m.wire.study == r->study && m.wire.incarnation == r->incarnation &&
                (m.wire.kind == CRN_WIRE_TASK || m.wire.kind == CRN_WIRE_STOP);
        if (found)
            *ret = (order){m.wire.kind == CRN_WIRE_STOP ? DO_STOP : DO_TASK, m.wire, 0};
        crn_letter_done(&m);
    }
    return found;
}

static order await_order(cairn_ensemble *e)
{
    crn_member_runner *r = e->runner;
    order o = {.verb = DO_WAIT};
    while (!hear_launcher(r, &o) && !hear_server(r, &o)) {
        crn_link *const link[] = {r->launcher, r->nservers > 0 ? r->server[0] : NULL};
        crn_link_wait(link, 2, -1, WAIT_MS);
        if (crn_now_ns() > r->beat_ns + (uint64_t)BEAT_S * 1000000000)
            send_beat(e, CRN_WIRE_BEAT);
    }
    return o;
}

static cairn_status next_order(cairn_ensemble *e, order *ret)
{
    crn_member_runner *r = e->runner;
    if (r->launcher)
        *ret = await_order(e);
    CRN_TRY(crn_comm_bcast(e->comm, ret, sizeof *ret, 0));
    if (ret->verb != DO_CONNECT || crn_comm_size(e->comm) == 1)
        return CAIRN_OK;
    cairn_status rc = CAIRN_OK;
    if (!r->launcher) {
        free(r->addresses);
        rc = crn_alloc(&r->addresses, ret->naddresses);
    }
    CRN_TRY(crn_comm_agree(e->comm, rc));
    return crn_comm_bcast(e->comm, r->addresses, ret->naddresses, 0);
}

/* Until the end of the job, as the launcher or the job's script knows it; 0: not known. */
static double seconds_left(void)
{
    const char *text = getenv("CAIRN_ENSEMBLE_UNTIL");
    uint64_t until;
    if (!text || crn_parse_count(text, &until) < 0)
        return 0;
    const double left = (double)until - (double)crn_wall_ns() * 1e-9;
    return left > 0 ? left : 1e-3;
}

/* Slices of the server's ranks, by the lines of their addresses. */
static cairn_status know_ranks(crn_member_runner *r)
{
    uint32_t n = 1;
    for (const char *c = r->addresses; *c; c++)
        n += *c == '\n';
    CRN_TRY(crn_alloc(&r->server, n));
    CRN_TRY(crn_alloc(&r->part, n));
    for (; r->nservers < n; r->nservers++) {
        CRN_TRY(crn_layout_init(&r->part[r->nservers], &r->fields));
        crn_layout_slice(&r->part[r->nservers], r->nservers, n);
    }
    return CAIRN_OK;
}

/* Rank 0 of the server knows all ranks of its runners, others those that share fields with them. */
static bool shares_with(const cairn_ensemble *e, uint32_t k)
{
    size_t nbytes = 0;
    for (size_t i = 0; k > 0 && nbytes == 0 && i < e->field.n; i++)
        (void)part_of(e, k, i, &nbytes);
    return k == 0 || nbytes > 0;
}

static cairn_status register_at(cairn_ensemble *e, uint32_t k, const char *address)
{
    crn_member_runner *r = e->runner;
    char name[64];
    crn_buf b = {0};
    snprintf(name, sizeof name, "%s.%d", r->job, crn_comm_rank(e->comm));
    CRN_TRY(crn_link_connect(&r->keys, address, name, &r->server[k]));
    crn_wire w = wire_of(e, CRN_WIRE_FIELDS);
    w.number = (uint64_t)crn_comm_size(e->comm);
    w.seconds = seconds_left();
    crn_fields_put(&b, &r->fields);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        (void)crn_link_send(r->server[k], NULL, &w, b.at, b.n);
    crn_buf_done(&b);
    return rc;
}

/* A new server: all ranks register, and what it may lack is offered to it. */
static cairn_status connect_server(cairn_ensemble *e, const crn_wire *serve)
{
    crn_member_runner *r = e->runner;
    char *rest = NULL, *address;
    leave_server(r, true);
    r->incarnation = serve->incarnation;
    CRN_FAIL_IF(!r->addresses, CAIRN_ENOMEM, "no memory for an address");
    if (!r->addresses[0]) /* there is none at present */
        return CAIRN_OK;
    CRN_TRY(know_ranks(r));
    address = strtok_r(r->addresses, "\n", &rest);
    for (uint32_t k = 0; k < r->nservers && address; k++) {
        if (shares_with(e, k))
            CRN_TRY(register_at(e, k, address));
        address = strtok_r(NULL, "\n", &rest);
    }
    if (r->holds)
        send_result(e, false);
    if (r->launcher)
        send_beat(e, CRN_WIRE_ASK);
    return CAIRN_OK;
}

/* --- tasks ---------------------------------------------------------------------------------- */

static bool belongs(const cairn_ensemble *e, uint32_t k, const crn_letter *m, const crn_wire *task)
{
    const crn_wire *w = &m->wire;
    const bool ours = w->kind == CRN_WIRE_PIECE && w->study == task->study &&
                      w->incarnation == task->incarnation && w->cycle == task->cycle &&
                      w->member == task->member && w->attempt == task->attempt &&
                      w->number < e->field.n;
    size_t nbytes = 0;
    if (ours)
        (void)part_of(e, k, w->number, &nbytes);
    return nbytes > 0 && m->nbytes == nbytes;
}

/* Take pieces that have come; how many of this task's were among them. */
static size_t take_pieces(cairn_ensemble *e, const crn_wire *task)
{
    const crn_member_runner *r = e->runner;
    crn_letter m = {0};
    size_t n = 0, nbytes;
    for (uint32_t k = 0; k < r->nservers; k++)
        while (r->server[k] && crn_link_take(r->server[k], &m, &e->runner->nbad) == CAIRN_OK) {
            if (belongs(e, k, &m, task)) {
                memcpy(part_of(e, k, m.wire.number, &nbytes), m.data, m.nbytes);
                n++;
            }
            crn_letter_done(&m);
        }
    return n;
}

/* All ranks wait for their pieces; 1: all have them, 0: the server is gone. Collective. */
static int await_pieces(cairn_ensemble *e, const crn_wire *task)
{
    crn_member_runner *r = e->runner;
    size_t wanted = 0, have = 0, nbytes;
    for (uint32_t k = 0; k < r->nservers; k++)
        for (size_t i = 0; i < e->field.n; i++) {
            (void)part_of(e, k, i, &nbytes);
            wanted += nbytes > 0;
        }
    for (;;) {
        have += take_pieces(e, task);
        if (have < wanted) {
            crn_link_wait(r->server, r->nservers, -1, PIECES_MS);
            have += take_pieces(e, task);
        }
        order o;
        uint64_t v[2] = {have >= wanted, 1};
        if (r->launcher && have < wanted && hear_launcher(r, &o)) {
            v[1] = 0;
            say_hello(r); /* the launcher repeats what it said */
        }
        CRN_TRY(crn_comm_allreduce_u64(e->comm, CRN_REDUCE_MIN, v, 2));
        if (v[0] || !v[1])
            return v[0] ? 1 : 0;
    }
}

static cairn_status open_shelf(cairn_ensemble *e)
{
    char *path;
    crn_member_runner *r = e->runner;
    if (r->shelf)
        return CAIRN_OK;
    CRN_FAIL_IF(asprintf(&path, "%s/shelf", r->dir) < 0, CAIRN_ENOMEM, "no memory for a path");
    int rc = cairn_shelf_open_group(e->mpi, path, NULL, &r->shelf);
    free(path);
    CRN_FAIL_IF(rc < 0, (cairn_status)rc, "%s", cairn_error_text());
    return CAIRN_OK;
}

/* As the model knows it: of ensembles side by side, the same in each. */
static uint32_t member_of(const crn_wire *task)
{
    return task->text[0] ? (uint32_t)strtoul(task->text, NULL, 10) : task->member;
}

static int begin_task(cairn_ensemble *e, const crn_wire *task, cairn_task *ret)
{
    crn_member_runner *r = e->runner;
    r->holds = false;
    if ((task->rank & CRN_TASK_OWN_STATE) == 0) {
        int got = await_pieces(e, task);
        if (got <= 0)
            return got;
    }
    if ((task->rank & CRN_TASK_KEEP) != 0)
        CRN_TRY(open_shelf(e));
    r->task = *task;
    r->refusal[0] = 0;
    r->begun_ns = crn_now_ns();
    *ret = (cairn_task){.struct_bytes = sizeof *ret,
                        .nsteps = task->number,
                        .step = task->more,
                        .cycle = task->cycle,
                        .member = member_of(task),
                        .attempt = task->attempt};
    return 1;
}

static void finish_task(cairn_ensemble *e)
{
    crn_member_runner *r = e->runner;
    r->took_s = (double)(crn_now_ns() - r->begun_ns) / 1e9;
    r->holds = true;
    send_result(e, true);
    if (r->launcher)
        send_beat(e, CRN_WIRE_ASK);
}

void crn_runner_refuse(crn_member_runner *r, const char *why)
{
    snprintf(r->refusal, sizeof r->refusal, "%s", why && why[0] ? why : "no reason given");
}

int crn_runner_next(cairn_ensemble *e, cairn_task *ret)
{
    order o;
    int got = 0;
    if (!e->begun)
        CRN_TRY(crn_member_pieces(e, &e->runner->fields));
    else
        finish_task(e);
    e->begun = true;
    while (got == 0) {
        CRN_TRY(next_order(e, &o));
        if (o.verb == DO_STOP) {
            e->runner->over = true;
            return 0;
        }
        if (o.verb == DO_CONNECT)
            CRN_TRY(crn_comm_agree(e->comm, connect_server(e, &o.wire)));
        else if (o.verb == DO_TASK)
            got = begin_task(e, &o.wire, ret);
    }
    return got;
}
