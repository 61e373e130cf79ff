/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn ensemble check, on the server: the model is tried before a study pays for it. One state
 * goes to a runner and comes back unchanged; then it is propagated again and again, under
 * circumstances that must make no difference: twice in a row, after another member, on another
 * runner, on another number of ranks. A field whose bits differ depends on something that is not
 * part of the state.
 *
 * All of it is done with one step first, where the differences are still in the fields that the
 * hidden state touches, then with the steps of a cycle.
 */
#include "ensemble/ensemble_check.h"
#include "ensemble/ensemble_command.h"
#include "ensemble/ensemble_server.h"

#include <inttypes.h>
#include <stdarg.h>

#include "supervise/supervise.h"

/* On which runner: the first, the second, or the one with other ranks. */
typedef enum place { FIRST, SECOND, OTHER } place;

/* What its result is compared with. */
typedef enum against { NOTHING, ITSELF, REFERENCE, NEW_REFERENCE } against;

typedef struct trial {
    const char *what;
    place place;
    uint32_t member; /* 0, or another one */
    bool still;      /* no steps at all */
    against against;
} trial;

static const trial trials[] = {
    {"there and back", FIRST, 0, true, ITSELF},
    {"propagated", FIRST, 0, false, NEW_REFERENCE},
    {"propagated twice", FIRST, 0, false, REFERENCE},
    {"another member", FIRST, 1, false, NOTHING},
    {"after another member", FIRST, 0, false, REFERENCE},
    {"on another runner", SECOND, 0, false, REFERENCE},
    {"on another number of ranks", OTHER, 0, false, REFERENCE},
};
enum { TRIALS = sizeof trials / sizeof *trials };

struct crn_check {
    bool first;     /* the model's own first state is here */
    size_t at;      /* the trial that is next or under way */
    uint64_t steps; /* of the present round */
    uint32_t attempt;
    bool found; /* a difference, in this round */
    bool wants_other, lost_other;
    unsigned char *reference;
    double task_s; /* what a task of a cycle took */
};

void crn_check_say(const crn_server *s, const char *what, int ok, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    crn_study_event(s->study, "check", "{s:s,s:o,s:s}", "what", what, "ok",
                    ok < 0 ? json_null() : json_boolean(ok), "found", text);
}

/* --- another number of ranks ---------------------------------------------------------------- */

static cairn_status other_ranks(char **words, size_t nwords, char **ret)
{
    crn_launcher line;
    crn_buf b = {0};
    CRN_TRY(crn_launcher_init(&line, words, nwords));
    cairn_status rc = CAIRN_OK;
    if (line.known && line.nranks > 0) {
        rc = crn_launcher_set_ranks(&line, line.nranks == 1 ? 2 : line.nranks - 1);
        for (size_t i = 0; rc == CAIRN_OK && line.words[i]; i++) {
            crn_put_bytes(&b, line.words[i], strlen(line.words[i]));
            crn_put_bytes(&b, line.words[i + 1] ? " " : "", 1);
        }
        rc = rc < 0 ? rc : crn_buf_status(&b);
    }
    if (rc == CAIRN_OK)
        *ret = (char *)b.at; /* ends with its zero byte */
    else
        crn_buf_done(&b);
    crn_launcher_done(&line);
    return rc;
}

cairn_status crn_check_other(const crn_study *s, char **ret)
{
    CRN_VEC(char *) words = {0};
    char *text, *rest = NULL;
    *ret = NULL;
    if (s->check_command[0])
        return crn_strdup(s->check_command, ret);
    CRN_TRY(crn_strdup(s->runner, &text));
    cairn_status rc = CAIRN_OK;
    for (char *w = strtok_r(text, " \t", &rest); rc == CAIRN_OK && w;
         w = strtok_r(NULL, " \t", &rest))
        rc = crn_vec_push(&words, w);
    if (rc == CAIRN_OK && words.n > 0)
        rc = other_ranks(words.at, words.n, ret);
    crn_vec_done(&words);
    free(text);
    return rc;
}

/* --- comparing ------------------------------------------------------------------------------ */

typedef struct difference {
    uint64_t n, first; /* elements that differ, and which is the first */
} difference;

static difference compare_field(const crn_state_layout *l, size_t i, const unsigned char *a,
                                const unsigned char *b)
{
    const crn_state_field *f = &l->field.at[i];
    const size_t item = cairn_type_bytes(f->type);
    difference d = {0};
    for (uint64_t k = 0, n = crn_field_nbytes(f) / item; k < n; k++)
        if (memcmp(a + f->at + k * item, b + f->at + k * item, item) != 0) {
            d.first = d.n == 0 ? k : d.first;
            d.n++;
        }
    return d;
}

/* The sentence about one field. */
static void describe(const crn_state_layout *l, size_t i, const difference *d,
                     const unsigned char *is, const unsigned char *was, char *text, size_t cap)
{
    const crn_state_field *f = &l->field.at[i];
    const size_t item = cairn_type_bytes(f->type);
    char values[80] = "";
    if (f->type == CAIRN_FLOAT32 || f->type == CAIRN_FLOAT64)
        snprintf(values, sizeof values, ": %.17g, not %.17g",
                 crn_element(is + f->at, f->type, d->first),
                 crn_element(was + f->at, f->type, d->first));
    snprintf(text, cap,
             "field '%s' differs in %" PRIu64 " of %" PRIu64 " elements, first %" PRIu64 "%s",
             f->name, d->n, crn_field_nbytes(f) / item, d->first, values);
}

/* Compare all fields; what differs is reported, a line for each field. True: nothing does. */
static bool compare(crn_server *s, const trial *t, const unsigned char *is,
                    const unsigned char *was)
{
    bool same = true;
    for (size_t i = 0; i < s->layout.field.n; i++) {
        char text[300];
        difference d = compare_field(&s->layout, i, is, was);
        if (d.n == 0)
            continue;
        same = false;
        describe(&s->layout, i, &d, is, was, text, sizeof text);
        if (t->still)
            crn_check_say(s, t->what, 0, "%s: the model changes it without a step", text);
        else
            crn_check_say(s, t->what, 0, "%s after %" PRIu64 " step%s", text, s->check->steps,
                          s->check->steps == 1 ? "" : "s");
    }
    return same;
}

/* A model has no business in parameters, and its states are finite. */
static void look_at_state(crn_server *s, const unsigned char *is, const unsigned char *was)
{
    char why[160];
    if (crn_rows_find_bad(&s->layout, is, why, sizeof why)) {
        crn_check_say(s, "finite", 0, "%s", why);
        s->check->found = true;
    }
    for (size_t i = 0; i < s->layout.field.n; i++) {
        const crn_state_field *f = &s->layout.field.at[i];
        if (f->role != CAIRN_PARAMETER || compare_field(&s->layout, i, is, was).n == 0)
            continue;
        crn_check_say(s, "parameters", 0,
                      "field '%s' is a parameter, and the model changes it; declare it as "
                      "assimilated or carried",
                      f->name);
        s->check->found = true;
    }
}

/* --- the order of trials -------------------------------------------------------------------- */

static cairn_status begin(crn_server *s)
{
    char *other;
    crn_check *c = s->check;
    CRN_TRY(crn_gather_begin(s));
    CRN_TRY(crn_check_other(s->study, &other));
    c->wants_other = other != NULL;
    free(other);
    c->steps = 1;
    s->cycle = 1;
    s->phase = CRN_PHASE_CYCLE;
    return crn_alloc(&c->reference, s->layout.nbytes);
}

/* Runners by their numbers: launchers start those of the study first. */
static crn_runner_row *runner_at(const crn_server *s, place p)
{
    for (size_t i = 0; i < s->runner.n; i++) {
        size_t lower = 0;
        for (size_t k = 0; k < s->runner.n; k++)
            lower += s->runner.at[k]->number < s->runner.at[i]->number;
        if (lower == (size_t)p)
            return s->runner.at[i];
    }
    return NULL;
}

static bool all_are_here(const crn_server *s)
{
    const crn_check *c = s->check;
    size_t n = 0;
    for (size_t i = 0; i < s->runner.n; i++)
        n += s->runner.at[i]->nknown == s->runner.at[i]->nranks;
    return n == (size_t)CRN_CHECK_RUNNERS + (c->wants_other && !c->lost_other);
}

static cairn_status end_round(crn_server *s)
{
    crn_check *c = s->check;
    if (!c->found && c->steps < s->study->steps) {
        c->steps = s->study->steps;
        c->at = 1; /* there and back again is enough */
        return CAIRN_OK;
    }
    crn_needs_report(s, runner_at(s, FIRST)->nranks, c->task_s);
    s->phase = CRN_PHASE_OVER;
    return CAIRN_OK;
}

/* Why the runner with other ranks cannot be used; NULL: it can. */
static const char *why_no_other(const crn_server *s)
{
    const crn_runner_row *first = runner_at(s, FIRST), *other = runner_at(s, OTHER);
    if (s->check->lost_other)
        return "not tried: the model ends when it is started so";
    if (!other)
        return "not tried: runner.command names no number of ranks; give check.command";
    return first->nranks == other->nranks && !crn_command_is_used(s->study)
               ? "not tried: check.command starts as many ranks"
               : NULL;
}

static void give_first(crn_server *s, crn_runner_row *r)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_TASK);
    w.rank = CRN_TASK_OWN_STATE;
    w.number = s->study->spin;
    w.attempt = ++s->check->attempt;
    crn_server_task(s, r, &w);
}

static void give_trial(crn_server *s, crn_runner_row *r, const trial *t)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_TASK);
    w.member = t->member;
    w.attempt = ++s->check->attempt;
    w.number = t->still ? 0 : s->check->steps;
    w.more = s->study->spin;
    crn_server_task(s, r, &w);
    crn_gather_send(s, r, &w, s->analysis[t->member]);
}

/* In each turn of the loop: is the next runner ready for the next trial? */
static cairn_status tick(crn_server *s)
{
    crn_check *c = s->check;
    if (s->phase != CRN_PHASE_CYCLE || !all_are_here(s))
        return CAIRN_OK;
    const trial *t = &trials[c->at];
    const char *why = c->at < TRIALS && t->place == OTHER ? why_no_other(s) : NULL;
    if (why) {
        if (c->found || c->steps >= s->study->steps)
            crn_check_say(s, t->what, -1, "%s", why);
        c->at++;
    }
    if (c->at == TRIALS)
        return end_round(s);
    crn_runner_row *r = runner_at(s, trials[c->at].place);
    if (!r || r->busy || !r->idle)
        return CAIRN_OK;
    if (!c->first)
        give_first(s, r);
    else
        give_trial(s, r, &trials[c->at]);
    return CAIRN_OK;
}

/* The model's own first state, and another member beside it. */
static cairn_status take_first(crn_server *s, const unsigned char *state)
{
    memcpy(s->background[0], state, s->layout.nbytes);
    CRN_TRY(crn_analysis_first(s));
    s->check->first = true;
    return CAIRN_OK;
}

static void judge(crn_server *s, const trial *t, const unsigned char *is)
{
    crn_check *c = s->check;
    const unsigned char *start = s->analysis[t->member];
    bool same = true;
    if (t->against == NEW_REFERENCE) {
        memcpy(c->reference, is, s->layout.nbytes);
        look_at_state(s, is, start);
    } else if (t->against != NOTHING)
        same = compare(s, t, is, t->against == ITSELF ? start : c->reference);
    c->found = c->found || !same;
    const bool last = c->steps >= s->study->steps || t->still;
    if (same && last && t->against != NOTHING && t->against != NEW_REFERENCE)
        crn_check_say(s, t->what, 1, "%zu fields, %" PRIu64 " bytes: the same bits",
                      s->layout.field.n, s->layout.nbytes);
}

static cairn_status take(crn_server *s, crn_runner_row *r, const crn_wire *done)
{
    crn_check *c = s->check;
    if (done->attempt != c->attempt)
        return CAIRN_OK;
    CRN_FAIL_IF(done->number != 0, CAIRN_EPEER, "the model refuses: %.200s", done->text);
    if (!c->first)
        return take_first(s, r->incoming);
    const trial *t = &trials[c->at++];
    if (!t->still)
        c->task_s = done->seconds * (double)s->study->steps / (double)c->steps;
    judge(s, t, r->incoming);
    return CAIRN_OK;
}

cairn_status crn_check_lost(crn_server *s, uint32_t runner, const char *why)
{
    crn_check *c = s->check;
    uint32_t higher = 0;
    for (size_t i = 0; i < s->runner.n; i++)
        higher += s->runner.at[i]->number > runner;
    const bool other = c->wants_other && !c->lost_other && higher == 0;
    CRN_FAIL_IF(!other, CAIRN_EPEER, "runner r%u: %s, during '%s'; its output is in '%s/log/r%u'",
                runner, why, c->first ? trials[c->at].what : "its first state", s->study->dir,
                runner);
    c->lost_other = true;
    return CAIRN_OK;
}

/* --- the method ----------------------------------------------------------------------------- */

static cairn_status open_check(crn_server *s)
{
    return crn_alloc(&s->check, 1);
}

static cairn_status give(crn_server *s, crn_runner_row *r)
{
    (void)s, (void)r; /* tick does, in the order of trials */
    return CAIRN_OK;
}

static cairn_status letter(crn_server *s, crn_runner_row *r, const crn_letter *m)
{
    return crn_gather_letter(s, r, m, take);
}

static cairn_status lose(crn_server *s, crn_runner_row *r, const char *why)
{
    return crn_check_lost(s, r->number, why);
}

static void overdue(crn_server *s, uint32_t member)
{
    (void)s, (void)member;
}

static cairn_status advance(crn_server *s)
{
    (void)s;
    return CAIRN_OK;
}

static cairn_status close_check(crn_server *s, cairn_status rc)
{
    (void)s;
    return rc;
}

static void free_check(crn_server *s)
{
    crn_gather_done(s);
    if (s->check)
        free(s->check->reference);
    free(s->check);
}

const crn_method crn_method_check = {.open = open_check,
                                     .begin = begin,
                                     .join = crn_gather_join,
                                     .give = give,
                                     .letter = letter,
                                     .lose = lose,
                                     .overdue = overdue,
                                     .advance = advance,
                                     .tick = tick,
                                     .close = close_check,
                                     .free = free_check};
