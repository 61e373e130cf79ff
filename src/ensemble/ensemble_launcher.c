/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The launcher: it starts the server and the runners, replaces those that die, hang or never say
 * hello, tells the runners where the server is, and takes orders. It computes nothing and knows no
 * states: killed and started again, it finds its jobs as they are.
 */
#include "ensemble/ensemble_check.h"
#include "ensemble/ensemble_command.h"
#include "ensemble/ensemble_side.h"
#include "ensemble/ensemble_slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <math.h>
#include <sys/file.h>
#include <unistd.h>

#include "supervise/supervise.h"

enum {
    WAIT_MS = 100,
    LEAVE_S = 5,
    CLEAR_S = 120,
    SERVERS_IN_A_ROW = 5,
    ADDRESSES_MAX = 1 << 26 /* bytes */
};

typedef struct launcher {
    crn_study *study;
    crn_study_mode mode;
    const char *program; /* for the server */
    crn_study_say_fn *say;
    crn_signals signals;
    crn_link *hub;
    int lock;
    crn_jobs job;
    crn_slurm slurm;
    uint32_t runner, server;        /* the highest numbers in use */
    uint32_t wanted;                /* runners */
    uint32_t nstarted, other;       /* of a check: runners; the one with other ranks, or 0 */
    char address[CRN_ADDRESS_TEXT]; /* of the server; "": there is none at present */
    char *addresses;                /* of its ranks, if there are several: a line each */
    uint32_t cycle, done, active;   /* as the server says */
    uint64_t failures, heard_ns, begun_ns, said_ns;
    uint32_t first_cycle, nservers, nunborn; /* in a row: servers without progress, runners that
                                                ended before they said hello */
    uint32_t validator, validated, nfallen; /* the highest number; cycles; validators that fell in a
                                               row, without a cycle */
    bool served;                            /* the server is done; validators are not */
    bool over, asked;
    cairn_status rc;
    char text[CRN_WIRE_TEXT + 1];
} launcher;

static void say(launcher *l, const char *fmt, ...) CAIRN_PRINTF(2);
static void say(launcher *l, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    l->say(text, false);
}

/* --- messages out --------------------------------------------------------------------------- */

static void send_to(launcher *l, const char *peer, crn_wire_kind kind, uint32_t runner,
                    const char *text)
{
    crn_wire w = {.kind = kind, .study = l->study->id, .incarnation = l->server, .runner = runner};
    snprintf(w.text, sizeof w.text, "%s", text);
    (void)crn_link_send(l->hub, peer, &w, NULL, 0);
}

static void send_serve(launcher *l, const char *peer)
{
    crn_wire w = {.kind = CRN_WIRE_SERVE, .study = l->study->id, .incarnation = l->server};
    const char *all = l->addresses ? l->addresses : "";
    snprintf(w.text, sizeof w.text, "%s", l->address);
    (void)crn_link_send(l->hub, peer, &w, all, strlen(all));
}

static uint32_t number_of(const crn_job *job)
{
    return (uint32_t)strtoul(job->name + 1, NULL, 10);
}

/* Where the server is, or the end: to a runner, and to those of its further nodes. */
static void inform(launcher *l, const crn_job *job)
{
    char peer[64];
    for (uint32_t k = 0; k <= job->nears; k++) {
        snprintf(peer, sizeof peer, k ? "%s.%u" : "%s", job->name, k);
        if (l->over || l->served)
            send_to(l, peer, CRN_WIRE_STOP, 0, "");
        else if (l->address[0])
            send_serve(l, peer);
    }
}

static void inform_all(launcher *l)
{
    for (size_t i = 0; i < l->job.n; i++)
        if (l->job.at[i]->name[0] == 'r')
            inform(l, l->job.at[i]);
}

static void end_study(launcher *l, cairn_status rc, const char *text)
{
    l->over = true;
    l->rc = rc;
    snprintf(l->text, sizeof l->text, "%s", text);
    inform_all(l);
}

/* --- jobs ----------------------------------------------------------------------------------- */

static crn_job *find_job(const launcher *l, const char *name)
{
    for (size_t i = 0; i < l->job.n; i++)
        if (strcmp(l->job.at[i]->name, name) == 0)
            return l->job.at[i];
    return NULL;
}

static size_t count_jobs(const launcher *l, char kind)
{
    size_t n = 0;
    for (size_t i = 0; i < l->job.n; i++)
        n += l->job.at[i]->name[0] == kind && !l->job.at[i]->ending;
    return n;
}

static cairn_status start_job(launcher *l, char kind, uint32_t number, const char *command)
{
    char name[32];
    crn_job *job;
    snprintf(name, sizeof name, "%c%u", kind, number);
    CRN_TRY(crn_job_start(l->study, name, command, &job));
    crn_study_event(l->study, "started", "{s:s}", "job", name);
    return crn_vec_push(&l->job, job);
}

static cairn_status start_runner(launcher *l, const char *command, bool other)
{
    char *line;
    CRN_TRY(crn_command_line(l->study, l->program, command, other, &line));
    cairn_status rc = start_job(l, 'r', ++l->runner, line);
    free(line);
    return rc;
}

static cairn_status start_server(launcher *l)
{
    char *command, mpirun[64] = "";
    const bool ranks = crn_server_has_ranks(l->study, l->mode);
    const bool given = l->study->server[0] && (ranks || l->study->server_ranks == 1);
    l->address[0] = 0;
    l->heard_ns = crn_now_ns();
    if (ranks && !given)
        snprintf(mpirun, sizeof mpirun, "mpirun -n %u ", l->study->server_ranks);
    CRN_FAIL_IF(asprintf(&command, "%s%s ensemble serve '%s' %s", mpirun,
                         given ? l->study->server : l->program, l->study->file,
                         crn_mode_word(l->mode)) < 0,
                CAIRN_ENOMEM, "no memory for a command");
    cairn_status rc = start_job(l, 's', ++l->server, command);
    free(command);
    return rc;
}

/* Two runners as the study has them, and one with another number of ranks, if that is possible;
 * one that ends is not replaced, since it is a finding. */
static cairn_status start_for_check(launcher *l)
{
    char *other = NULL;
    if (l->nstarted > 0)
        return CAIRN_OK;
    while (l->nstarted < l->wanted) {
        CRN_TRY(start_runner(l, l->study->runner, false));
        l->nstarted++;
    }
    if (l->mode == CRN_MODE_CHECK)
        CRN_TRY(crn_check_other(l->study, &other));
    if (!other)
        return CAIRN_OK;
    cairn_status rc = start_runner(l, other, true);
    l->other = l->runner;
    free(other);
    return rc;
}

static cairn_status start_validators(launcher *l)
{
    while (count_jobs(l, 'v') < l->study->side->validators) {
        char *command;
        CRN_FAIL_IF(asprintf(&command, "%s ensemble validator '%s' %s", l->program, l->study->file,
                             crn_mode_word(l->mode)) < 0,
                    CAIRN_ENOMEM, "no memory for a command");
        cairn_status rc = start_job(l, 'v', ++l->validator, command);
        free(command);
        CRN_TRY(rc);
    }
    return CAIRN_OK;
}

static cairn_status start_missing(launcher *l)
{
    if (l->study->side)
        CRN_TRY(start_validators(l));
    if (l->served)
        return CAIRN_OK;
    if (count_jobs(l, 's') == 0)
        CRN_TRY(start_server(l));
    if (l->mode == CRN_MODE_CHECK || l->mode == CRN_MODE_TRY)
        return start_for_check(l);
    while (count_jobs(l, 'r') < l->wanted)
        CRN_TRY(start_runner(l, l->study->runner, false));
    return CAIRN_OK;
}

static void on_runner_end(launcher *l, const crn_job *job, const char *how)
{
    char words[200], server[32];
    snprintf(server, sizeof server, "s%u", l->server);
    crn_wire w = {.kind = CRN_WIRE_LEAVE,
                  .study = l->study->id,
                  .incarnation = l->server,
                  .runner = number_of(job),
                  .number = job->cause};
    snprintf(w.text, sizeof w.text, "%s",
             job->cause == CRN_CAUSE_LIMIT ? "time limit" : "lost process");
    const bool other = l->other > 0 && number_of(job) == l->other;
    (void)crn_link_send(l->hub, server, &w, NULL, 0);
    l->nunborn = job->hello || other ? 0 : l->nunborn + 1;
    if (l->nunborn <= (l->nstarted > 0 ? 0 : 2 * l->wanted))
        return;
    crn_job_last_words(l->study, job, words, sizeof words);
    char text[500];
    snprintf(text, sizeof text,
             "%u runners have ended before they said hello, the last with %s: '%s' (%s/log/%s)",
             l->nunborn, how, words, l->study->dir, job->name);
    end_study(l, CAIRN_EPEER, text);
}

static void on_server_end(launcher *l, const crn_job *job, const char *how)
{
    char words[200], text[500];
    l->address[0] = 0;
    l->nservers++;
    if (l->nservers <= SERVERS_IN_A_ROW)
        return;
    crn_job_last_words(l->study, job, words, sizeof words);
    snprintf(text, sizeof text, "the server has ended %u times without a new cycle, with %s: '%s'",
             l->nservers, how, words);
    end_study(l, CAIRN_EPEER, text);
}

/* How far are validators? One that falls is replaced, unless they all do without any progress. */
static void look_at_validators(launcher *l)
{
    const uint32_t before = l->validated;
    l->validated = crn_side_validated(l->study, before);
    if (l->validated > before)
        l->nfallen = 0;
    if (l->served && l->validated == l->study->cycles)
        end_study(l, CAIRN_OK, "");
}

static void on_validator_end(launcher *l, const crn_job *job, const char *how)
{
    char words[200], text[500];
    look_at_validators(l);
    if (l->over || l->validated == l->study->cycles ||
        ++l->nfallen <= SERVERS_IN_A_ROW * l->study->side->validators)
        return;
    crn_job_last_words(l->study, job, words, sizeof words);
    snprintf(text, sizeof text, "validators have ended %u times without a new cycle, with %s: '%s'",
             l->nfallen, how, words);
    end_study(l, CAIRN_EPEER, text);
}

static void take_messages(launcher *l);

/* A server that leaves by itself has said why: that may still be on its way. (Above 128 its shell
 * tells of the signal that has ended it.) */
static void hear_out(launcher *l, const char *how)
{
    int code;
    const bool left = sscanf(how, "exit code %d", &code) == 1 && code <= 128;
    for (int i = 0; left && i < 20 && !l->over; i++) {
        crn_link_wait(&l->hub, 1, -1, WAIT_MS);
        take_messages(l);
    }
}

static void on_end(launcher *l, const crn_job *job, const char *how)
{
    const char kind = job->name[0];
    crn_study_event(l->study, "ended", "{s:s,s:s}", "job", job->name, "how", how);
    if (kind == 's')
        hear_out(l, how); /* its last word may be among them */
    if (l->over || (kind != 'v' && l->served) ||
        (kind == 'v' && crn_side_validated(l->study, l->validated) == l->study->cycles))
        return; /* as it should */
    say(l, "%s '%s' has ended: %s",
        kind == 'r'   ? "runner"
        : kind == 'v' ? "validator"
                      : "server",
        job->name, how);
    if (kind == 'r')
        on_runner_end(l, job, how);
    else if (kind == 'v')
        on_validator_end(l, job, how);
    else
        on_server_end(l, job, how);
}

/* Look for jobs that have ended, that hang, or that never said hello. */
static void watch_jobs(launcher *l)
{
    char how[96];
    const uint64_t now = crn_now_ns();
    for (size_t i = 0; i < l->job.n; i++) {
        crn_job *job = l->job.at[i];
        const bool runner = job->name[0] == 'r';
        if (crn_job_ended(l->study, job, how, sizeof how)) {
            l->job.at[i--] = l->job.at[--l->job.n];
            if (!l->over)
                on_end(l, job, how);
            free(job);
        } else if (job->name[0] == 'v') {
            if (!job->ending && (double)(now - job->heard_ns) / 1e9 > l->study->server_s) {
                say(l, "validator '%s' gives no sign of life: ending it", job->name);
                crn_job_kill(l->study, job);
            }
        } else if (job->place == CRN_JOB_SLURM && !job->running) {
            l->heard_ns = runner ? l->heard_ns : now; /* it waits for its turn */
        } else if (runner && !job->hello && !job->ending &&
                   (double)(now - job->started_ns) / 1e9 > l->study->register_s) {
            say(l, "runner '%s' has not said hello: ending it", job->name);
            crn_job_kill(l->study, job);
        } else if (!runner && !job->ending && !l->served &&
                   (double)(now - l->heard_ns) / 1e9 > l->study->server_s) {
            say(l, "the server gives no sign of life: ending it");
            crn_job_kill(l->study, job);
        }
    }
}

/* --- messages in ---------------------------------------------------------------------------- */

/* Where a server listens: a line for each of its ranks, the first of which speaks for all. */
static bool note_addresses(launcher *l, const char *text, size_t n)
{
    size_t first = 0;
    while (first < n && text[first] != '\n')
        first++;
    if (n > ADDRESSES_MAX || first == 0 || first >= sizeof l->address)
        return false;
    free(l->addresses);
    l->addresses = first < n ? strndup(text, n) : NULL;
    snprintf(l->address, sizeof l->address, "%.*s", (int)first, text);
    return true;
}

static void on_hello(launcher *l, const crn_letter *m)
{
    char name[CRN_PEER_NAME + 1], *node;
    snprintf(name, sizeof name, "%s", m->peer);
    if ((node = strchr(name, '.')))
        *node++ = 0;
    crn_job *job = find_job(l, name);
    if (!job)
        return;
    job->hello = true;
    if (node)
        job->nears = CRN_MAX(job->nears, (uint32_t)CRN_MIN(strtoul(node, NULL, 10), 100000));
    job->heard_ns = crn_now_ns();
    if (job->name[0] == 'v')
        return;
    if (job->name[0] == 'r') {
        inform(l, job);
        return;
    }
    if (number_of(job) != l->server || !note_addresses(l, (const char *)m->data, m->nbytes))
        return;
    l->heard_ns = crn_now_ns();
    crn_study_event(l->study, "serving", "{s:s}", "job", job->name);
    inform_all(l);
}

static void on_beat(launcher *l, const char *peer, const crn_wire *w)
{
    crn_job *job = peer[0] == 'v' ? find_job(l, peer) : NULL;
    if (job)
        job->heard_ns = crn_now_ns();
    if (w->incarnation != l->server)
        return;
    l->heard_ns = crn_now_ns();
    if (w->cycle > l->cycle) {
        l->nservers = 0;
        if (l->cycle == 0) {
            l->first_cycle = w->cycle;
            l->begun_ns = crn_now_ns();
        }
        l->cycle = w->cycle;
    }
    l->done = (uint32_t)w->number;
    l->active = w->member;
    l->failures = w->more;
}

/* The server wants a runner ended. */
static void on_leave(launcher *l, const crn_wire *w)
{
    char name[32];
    snprintf(name, sizeof name, "r%u", w->runner);
    crn_job *job = find_job(l, name);
    if (!job || w->incarnation != l->server)
        return;
    say(l, "runner '%s': %s; ending it", name, w->text);
    crn_job_kill(l->study, job);
}

static void on_stop(launcher *l, const crn_wire *w)
{
    if (w->incarnation == l->server && w->number == 0 && l->study->side) {
        l->served = true;
        inform_all(l);
    } else if (w->incarnation == l->server)
        end_study(l,
                  w->number == 1   ? CAIRN_EPEER
                  : w->number == 2 ? CAIRN_NOTHING
                                   : CAIRN_OK,
                  w->text);
}

static void carry_out(launcher *l, const char *peer, const char *order)
{
    char answer[200] = "", name[32];
    unsigned n;
    if (strcmp(order, "stop") == 0) {
        l->asked = true;
        snprintf(answer, sizeof answer, "stopping");
    } else if (sscanf(order, "scale %u", &n) == 1 && n >= 1 && n <= 10000) {
        l->wanted = n;
        snprintf(answer, sizeof answer, "%u runners", n);
    } else if (sscanf(order, "kill %u%c", &n, name) == 1 && l->address[0]) {
        snprintf(name, sizeof name, "s%u", l->server);
        send_to(l, name, CRN_WIRE_ORDER, 0, order); /* which knows who has the member */
        snprintf(answer, sizeof answer, "killing the runners of member %u", n);
    } else if (sscanf(order, "kill %31s", name) == 1 && find_job(l, name)) {
        crn_job_kill(l->study, find_job(l, name));
        snprintf(answer, sizeof answer, "killed %s", name);
    } else
        snprintf(answer, sizeof answer, "cannot '%.100s'", order);
    crn_study_event(l->study, "order", "{s:s}", "order", order);
    send_to(l, peer, CRN_WIRE_ORDER, 0, answer);
}

static void take_messages(launcher *l)
{
    crn_letter m = {0};
    while (crn_link_take(l->hub, &m, NULL) == CAIRN_OK) {
        if (m.wire.study == l->study->id && m.wire.kind == CRN_WIRE_HELLO)
            on_hello(l, &m);
        else if (m.wire.study == l->study->id && m.wire.kind == CRN_WIRE_BEAT)
            on_beat(l, m.peer, &m.wire);
        else if (m.wire.study == l->study->id && m.wire.kind == CRN_WIRE_LEAVE)
            on_leave(l, &m.wire);
        else if (m.wire.study == l->study->id && m.wire.kind == CRN_WIRE_STOP)
            on_stop(l, &m.wire);
        else if (m.wire.study == l->study->id && m.wire.kind == CRN_WIRE_ORDER)
            carry_out(l, m.peer, m.wire.text);
        crn_letter_done(&m);
    }
}

/* --- progress ------------------------------------------------------------------------------- */

static void show_progress(launcher *l)
{
    char text[200], left[CRN_NUMBER_TEXT] = "?";
    if (l->cycle == 0 || crn_now_ns() < l->said_ns + 500000000)
        return;
    l->said_ns = crn_now_ns();
    double cycles = l->cycle - l->first_cycle + (l->active > 0 ? (double)l->done / l->active : 0);
    double seconds = (double)(l->said_ns - l->begun_ns) / 1e9;
    if (cycles > 0)
        crn_format_seconds(seconds / cycles * (l->study->cycles + 1 - l->first_cycle - cycles),
                           left, sizeof left);
    snprintf(text, sizeof text,
             "cycle %u of %u: %u of %u members, %zu runners, %" PRIu64 " failures, %s left",
             CRN_MIN(l->cycle, l->study->cycles), l->study->cycles, l->done, l->active,
             count_jobs(l, 'r'), l->failures, left);
    l->say(text, true);
}

/* --- the study ------------------------------------------------------------------------------ */

static cairn_status take_lock(launcher *l)
{
    char *path;
    CRN_TRY(crn_study_path(l->study, "lock", &path));
    l->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cairn_status rc = l->lock < 0 ? crn_fail_sys(errno, "cannot open '%s'", path) : CAIRN_OK;
    if (rc == CAIRN_OK && flock(l->lock, LOCK_EX | LOCK_NB) != 0)
        rc = crn_fail(CAIRN_EBUSY, "'%s' is being run already", l->study->dir);
    free(path);
    return rc;
}

bool crn_study_is_running(const crn_study *study)
{
    char *path;
    if (crn_study_path(study, "lock", &path) < 0)
        return false;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;
    if (fd >= 0)
        close(fd);
    free(path);
    return held;
}

/* Listen where an earlier launcher did, since its jobs know that address; else anywhere. */
static cairn_status listen_again(launcher *l)
{
    char *was = NULL;
    unsigned port = 0;
    if (crn_study_read(l->study->dir, "launcher", &was) == CAIRN_OK && strrchr(was, ':'))
        port = (unsigned)strtoul(strrchr(was, ':') + 1, NULL, 10);
    free(was);
    if (l->job.n == 0)
        port = 0;
    char host[CRN_ADDRESS_TEXT];
    crn_study_address(l->study, host, sizeof host);
    cairn_status rc = crn_link_listen(&l->study->keys, host, port, &l->hub);
    if (rc < 0 && port > 0) { /* its jobs are lost to us, and we to them */
        for (size_t i = 0; i < l->job.n; i++)
            crn_job_kill(l->study, l->job.at[i]);
        rc = crn_link_listen(&l->study->keys, host, 0, &l->hub);
    }
    CRN_TRY(rc);
    return crn_study_write(l->study, "launcher", crn_link_address(l->hub));
}

static cairn_status start(launcher *l)
{
    CRN_TRY(take_lock(l));
    CRN_TRY(crn_jobs_find(l->study, &l->runner, &l->server, &l->validator, &l->job));
    l->slurm.used =
        l->study->runner_place == CRN_JOB_SLURM || l->study->server_place == CRN_JOB_SLURM;
    CRN_TRY(crn_slurm_look(l->study, &l->slurm, true, &l->job));
    CRN_TRY(listen_again(l));
    if (l->job.n > 0)
        say(l, "going on with %zu jobs of an earlier launcher", l->job.n);
    l->heard_ns = crn_now_ns();
    return CAIRN_OK;
}

/* Jobs of an earlier launcher do not know that there is a new one until it speaks. */
static void greet(launcher *l)
{
    for (size_t i = 0; i < l->job.n; i++)
        if (!l->job.at[i]->hello && l->job.at[i]->adopted) {
            send_to(l, l->job.at[i]->name, CRN_WIRE_HELLO, 0, "");
            l->job.at[i]->hello = l->job.at[i]->name[0] == 'r';
        }
}

static cairn_status loop(launcher *l)
{
    while (!l->over) {
        crn_link_wait(&l->hub, 1, l->signals.fd, WAIT_MS);
        while (crn_signals_next(&l->signals) != 0)
            ;
        take_messages(l);
        CRN_TRY(crn_slurm_look(l->study, &l->slurm, false, &l->job));
        watch_jobs(l);
        greet(l);
        if (l->study->side)
            look_at_validators(l);
        if (l->signals.nleave > 0 || l->asked)
            end_study(l, CAIRN_NOTHING, "asked to stop; run it again to go on");
        else if (!l->over)
            CRN_TRY(start_missing(l));
        show_progress(l);
    }
    return CAIRN_OK;
}

/* End those that do not leave by themselves: after a failure all; in the end those that wait for
 * their turn; when the time is over those that are left. */
static void end_jobs(launcher *l, bool late)
{
    for (size_t i = 0; i < l->job.n; i++) {
        crn_job *job = l->job.at[i];
        const bool waits = job->place == CRN_JOB_SLURM && !job->running;
        if ((late || l->rc != CAIRN_OK || waits) && (!job->ending || job->place == CRN_JOB_LOCAL))
            crn_job_kill(l->study, job);
    }
}

/* All jobs leave, or are ended. A batch system that does not answer is not waited for for ever. */
static void clear(launcher *l)
{
    const uint64_t now = crn_now_ns(), until = now + (uint64_t)LEAVE_S * 1000000000;
    end_jobs(l, false);
    while (l->job.n > 0 && crn_now_ns() < now + (uint64_t)CLEAR_S * 1000000000) {
        crn_link_wait(&l->hub, 1, -1, 20);
        take_messages(l);
        (void)crn_slurm_look(l->study, &l->slurm, false, &l->job);
        watch_jobs(l);
        end_jobs(l, crn_now_ns() > until);
    }
    for (size_t i = 0; i < l->job.n; i++)
        say(l, "job '%s' does not end: see to it", l->job.at[i]->name);
}

static void launcher_done(launcher *l)
{
    while (l->job.n > 0)
        free(l->job.at[--l->job.n]);
    crn_vec_done(&l->job);
    free(l->addresses);
    crn_link_free(l->hub);
    if (l->lock >= 0)
        close(l->lock);
    crn_signals_end(&l->signals);
}

static uint32_t wanted_runners(const crn_study *study, crn_study_mode mode)
{
    if (mode == CRN_MODE_CHECK)
        return CRN_CHECK_RUNNERS;
    const bool many = mode == CRN_MODE_RUN || mode == CRN_MODE_PLAIN || mode == CRN_MODE_NOISE;
    return many ? study->runners : 1;
}

cairn_status crn_launcher_run(crn_study *study, crn_study_mode mode, const char *program,
                              crn_study_say_fn *say_fn)
{
    launcher l = {.study = study,
                  .mode = mode,
                  .program = program,
                  .say = say_fn,
                  .lock = -1,
                  .wanted = wanted_runners(study, mode)};
    study->plain = mode != CRN_MODE_RUN;
    CRN_TRY(crn_signals_start(&l.signals));
    cairn_status rc = start(&l);
    if (rc == CAIRN_OK) {
        rc = loop(&l);
        if (rc < 0)
            end_study(&l, rc, crn_err_peek()->text);
        clear(&l);
        rc = l.rc;
        crn_study_event(study, "end", "{s:b}", "ok", rc == CAIRN_OK);
        if (rc < 0)
            (void)crn_fail(rc, "%s", l.text);
    }
    launcher_done(&l);
    return rc;
}

cairn_status crn_launcher_order(crn_study *study, const char *order, char *text, size_t cap)
{
    char *address, name[32];
    crn_link *link;
    crn_letter m = {0};
    crn_wire w = {.kind = CRN_WIRE_ORDER, .study = study->id};
    cairn_status rc = crn_study_read(study->dir, "launcher", &address);
    if (rc == CAIRN_ENOTFOUND)
        return CAIRN_NOTHING;
    CRN_TRY(rc);
    snprintf(name, sizeof name, "o%ld", (long)getpid());
    rc = crn_link_connect(&study->keys, address, name, &link);
    free(address);
    CRN_TRY(rc);
    snprintf(w.text, sizeof w.text, "%s", order);
    rc = crn_link_send(link, NULL, &w, NULL, 0);
    if (rc >= 0) {
        crn_link_wait(&link, 1, -1, 5000);
        rc = crn_link_take(link, &m, NULL);
    }
    if (rc == CAIRN_OK)
        snprintf(text, cap, "%s", m.wire.text);
    crn_letter_done(&m);
    crn_link_free(link);
    return rc;
}
