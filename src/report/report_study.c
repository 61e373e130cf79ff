/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the events of an ensemble's study say: which job was there when, what each runner did, what
 * failed and what that cost. One pass over the lines; the newest tasks are kept, all are counted.
 */
#include "report/report.h"

#include <errno.h>
#include <math.h>

enum { LISTED_MAX = 10000 }; /* of tasks, updates, failures: pictures show fewer */

typedef struct study_log {
    json_t *jobs, *tasks, *updates, *failures;
    json_t *held;  /* by runner: its last task, which has ended if it has "to" */
    json_t *freed; /* by runner: when its last result came */
    double first, last;
    double busy; /* seconds of runners with a task */
    double lost; /* seconds of tasks that failed */
    json_int_t ntasks, nfailed, cycle;
    json_t
        *schedule; /* of a particle filter: what the cycle has cost, for the update that follows */
    double down;   /* when the server ended, while there is none */
    json_t *died;
    CRN_VEC(double) response;
} study_log;

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static double real_of(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

/* The newest few stay: at twice as many the older half goes, so that it costs little for each. */
static void add(json_t **list, json_t *item)
{
    const size_t n = json_array_size(*list);
    (void)json_array_append_new(*list, item);
    if (n + 1 < 2 * LISTED_MAX)
        return;
    json_t *newest = json_array();
    for (size_t i = n + 1 - LISTED_MAX; newest && i <= n; i++)
        (void)json_array_append(newest, json_array_get(*list, i));
    json_decref(*list);
    *list = newest;
}

static json_t *find_job(const study_log *s, const char *name)
{
    for (size_t i = json_array_size(s->jobs); i-- > 0;)
        if (strcmp(text_of(json_array_get(s->jobs, i), "job"), name) == 0)
            return json_array_get(s->jobs, i);
    return NULL;
}

/* --- tasks ---------------------------------------------------------------------------------- */

static void close_task(study_log *s, const char *runner, double at, const char *end)
{
    json_t *task = json_object_get(s->held, runner);
    if (!task || json_object_get(task, "to"))
        return;
    const double took = at - real_of(task, "from");
    (void)json_object_set_new(task, "to", json_real(at));
    (void)json_object_set_new(task, "end", json_string(end));
    s->busy += took;
    if (strcmp(end, "done") != 0)
        s->lost += took;
}

static void on_task(study_log *s, const json_t *event, double at)
{
    const char *runner = text_of(event, "runner");
    const json_t *freed = json_object_get(s->freed, runner);
    close_task(s, runner, at, "lost"); /* a server that died had given it */
    if (freed && s->down == 0)
        (void)crn_vec_push(&s->response, at - json_real_value(freed));
    (void)json_object_del(s->freed, runner);
    json_t *task =
        json_pack("{s:s, s:O, s:O, s:O, s:f}", "runner", runner, "cycle",
                  json_object_get(event, "cycle"), "member", json_object_get(event, "member"),
                  "attempt", json_object_get(event, "attempt"), "from", at);
    if (!task)
        return;
    if (json_object_get(event, "from")) /* of a particle filter: cache or storage */
        (void)json_object_set(task, "parent_from", json_object_get(event, "from"));
    (void)json_object_set(s->held, runner, task);
    add(&s->tasks, task);
    s->ntasks++;
    if (s->died) { /* the first task of the new server: what the old one's death has cost */
        (void)json_object_set_new(s->died, "cost", json_real(at - s->down));
        json_decref(s->died);
        s->died = NULL;
        s->down = 0;
    }
}

static void on_done(study_log *s, const json_t *event, double at)
{
    const char *runner = text_of(event, "runner");
    close_task(s, runner, at, "done");
    (void)json_object_set_new(s->freed, runner, json_real(at));
}

static void on_failed(study_log *s, const json_t *event, double at)
{
    const char *runner = text_of(event, "runner"), *cause = text_of(event, "cause");
    const json_t *task = json_object_get(s->held, runner);
    close_task(s, runner, at, cause); /* unless its runner has ended before the server knew */
    const double cost = task ? real_of(task, "to") - real_of(task, "from") : 0;
    s->nfailed++;
    add(&s->failures, json_pack("{s:f, s:s, s:O?, s:O?, s:s, s:f}", "at", at, "job", runner,
                                "cycle", json_object_get(event, "cycle"), "member",
                                json_object_get(event, "member"), "cause", cause, "cost", cost));
}

/* --- jobs ----------------------------------------------------------------------------------- */

static void on_started(study_log *s, const json_t *event, double at)
{
    add(&s->jobs, json_pack("{s:s, s:f}", "job", text_of(event, "job"), "began", at));
}

static void on_ended(study_log *s, const json_t *event, double at)
{
    const char *name = text_of(event, "job");
    json_t *job = find_job(s, name);
    if (job) {
        (void)json_object_set_new(job, "ended", json_real(at));
        (void)json_object_set_new(job, "how", json_string(text_of(event, "how")));
    }
    close_task(s, name, at, "lost process");
    (void)json_object_del(s->freed, name);
    if (name[0] != 's')
        return;
    s->down = at;
    json_decref(s->died);
    s->died = json_pack("{s:f, s:s, s:s}", "at", at, "job", name, "cause", text_of(event, "how"));
    add(&s->failures, json_incref(s->died));
}

/* What a particle filter's cycle has cost, with what no plan and what no cycle of this filter
 * exceeds: S + B - 1, D + R - 1. */
static void add_schedule(json_t *update, const json_t *schedule, const json_t *analysis)
{
    static const char *const keys[] = {"tasks",  "hits",   "loads",   "ahead",
                                       "steals", "bound",  "planned", "loaded_bytes",
                                       "busy",   "waited", "idle"};
    const double pairs = real_of(schedule, "supplies") + real_of(schedule, "deficits");
    const double whole = real_of(schedule, "parents") + real_of(analysis, "runners");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(schedule, keys[i]))
            (void)json_object_set(update, keys[i], json_object_get(schedule, keys[i]));
    (void)json_object_set_new(update, "most", json_integer((json_int_t)fmax(pairs - 1, 0)));
    (void)json_object_set_new(update, "ever", json_integer((json_int_t)fmax(whole - 1, 0)));
}

static void on_analysis(study_log *s, const json_t *event, double at)
{
    s->cycle = json_integer_value(json_object_get(event, "cycle"));
    json_t *update = json_pack("{s:f, s:f}", "from", at - real_of(event, "seconds"), "to", at);
    const char *const keys[] = {"cycle",  "members", "observations", "innovation", "spread",
                                "digest", "ess",     "resampled",    "zero"};
    for (size_t i = 0; update && i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(event, keys[i]))
            (void)json_object_set(update, keys[i], json_object_get(event, keys[i]));
    if (update && s->schedule)
        add_schedule(update, s->schedule, event);
    json_decref(s->schedule);
    s->schedule = NULL;
    add(&s->updates, update);
    (void)json_object_clear(s->freed); /* what comes next waits for no answer */
}

/* All jobs leave at the end; a later 'run' starts others. */
static void on_end(study_log *s, double at)
{
    size_t i;
    json_t *job;
    json_array_foreach(s->jobs, i, job) if (!json_object_get(job, "ended"))
    {
        (void)json_object_set_new(job, "ended", json_real(at));
        (void)json_object_set_new(job, "how", json_string("the end"));
    }
    (void)json_object_clear(s->held);
    (void)json_object_clear(s->freed);
}

static void take(study_log *s, const json_t *event)
{
    const char *kind = text_of(event, "event");
    const double at = (double)json_integer_value(json_object_get(event, "at")) * 1e-9;
    if (at == 0)
        return;
    s->first = s->first == 0 ? at : s->first;
    s->last = at;
    if (strcmp(kind, "task") == 0)
        on_task(s, event, at);
    else if (strcmp(kind, "done") == 0)
        on_done(s, event, at);
    else if (strcmp(kind, "failed") == 0)
        on_failed(s, event, at);
    else if (strcmp(kind, "started") == 0)
        on_started(s, event, at);
    else if (strcmp(kind, "ended") == 0)
        on_ended(s, event, at);
    else if (strcmp(kind, "schedule") == 0) {
        json_decref(s->schedule);
        s->schedule = json_copy((json_t *)event);
    } else if (strcmp(kind, "analysis") == 0)
        on_analysis(s, event, at);
    else if (strcmp(kind, "end") == 0)
        on_end(s, at);
}

/* --- the whole ------------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between a result and the next task of its runner in a cycle. */
static json_t *responses(study_log *s)
{
    const size_t n = s->response.n;
    if (n == 0)
        return json_null();
    qsort(s->response.at, n, sizeof(double), by_size);
    return json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t)n, "median",
                     s->response.at[n / 2], "p90", s->response.at[n * 9 / 10], "longest",
                     s->response.at[n - 1]);
}

/* Seconds that runners were there, from the first task of the study to the end. */
static double present(const study_log *s)
{
    size_t i;
    const json_t *job;
    double sum = 0;
    json_array_foreach(s->jobs, i, job) if (text_of(job, "job")[0] == 'r') sum +=
        (json_object_get(job, "ended") ? real_of(job, "ended") : s->last) - real_of(job, "began");
    return sum;
}

static json_t *finish(study_log *s, const char *name)
{
    const double there = present(s);
    return json_pack("{s:s, s:f, s:f, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:O, s:O, s:O, s:O}",
                     "study", name, "began", s->first, "ended", s->last, "cycle", s->cycle,
                     "tasks_given", s->ntasks, "failed", s->nfailed, "busy_seconds", s->busy,
                     "lost_seconds", s->lost, "busy", there > 0 ? s->busy / there : 0.0, "response",
                     responses(s), "jobs", s->jobs, "tasks", s->tasks, "updates", s->updates,
                     "failures", s->failures);
}

static cairn_status read_lines(study_log *s, const char *path)
{
    char *line = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "re");
    if (!f)
        return crn_fail_sys(errno, "cannot read the events '%s'", path);
    while (getline(&line, &cap, f) >= 0) {
        json_t *event = json_loads(line, 0, NULL);
        if (event) /* a line that a full disk has cut says nothing */
            take(s, event);
        json_decref(event);
    }
    free(line);
    fclose(f);
    return CAIRN_OK;
}

cairn_status crn_report_study(const char *name, const char *events, json_t **ret)
{
    study_log s = {.jobs = json_array(),
                   .tasks = json_array(),
                   .updates = json_array(),
                   .failures = json_array(),
                   .held = json_object(),
                   .freed = json_object()};
    cairn_status rc = read_lines(&s, events);
    json_t *study = rc == CAIRN_OK ? finish(&s, name) : NULL;
    if (rc == CAIRN_OK && !study)
        rc = crn_fail(CAIRN_ENOMEM, "no memory for the report of '%s'", name);
    json_decref(s.jobs), json_decref(s.tasks), json_decref(s.updates), json_decref(s.failures);
    json_decref(s.held), json_decref(s.freed), json_decref(s.died);
    json_decref(s.schedule);
    crn_vec_done(&s.response);
    if (rc == CAIRN_OK)
        *ret = study;
    return rc;
}
