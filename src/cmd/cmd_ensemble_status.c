/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn ensemble status and log: what the events of a study say.
 */
#include <errno.h>

#include "cmd/cmd_ensemble.h"

typedef struct status {
    bool runs;
    json_int_t cycle, members, failures, repeated, servers;
    double innovation, spread;
    size_t nrunners;
    char digest[64];
    json_t *update, *schedule; /* of a particle filter: the last events of these kinds */
} status;

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static void keep(json_t **place, const json_t *event)
{
    json_decref(*place);
    *place = json_copy((json_t *)event);
}

/* What an event adds to the picture. */
static void take(status *s, const json_t *event)
{
    const char *kind = text_of(event, "event"), *job = text_of(event, "job");
    if (strcmp(kind, "schedule") == 0)
        keep(&s->schedule, event);
    else if (strcmp(kind, "analysis") == 0) {
        if (json_object_get(event, "ess"))
            keep(&s->update, event);
        s->cycle = json_integer_value(json_object_get(event, "cycle"));
        s->members = json_integer_value(json_object_get(event, "members"));
        s->innovation = json_number_value(json_object_get(event, "innovation"));
        s->spread = json_number_value(json_object_get(event, "spread"));
        snprintf(s->digest, sizeof s->digest, "%s", text_of(event, "digest"));
    } else if (strcmp(kind, "failed") == 0)
        s->failures++;
    else if (strcmp(kind, "started") == 0) {
        s->nrunners += job[0] == 'r';
        s->servers += job[0] == 's';
    } else if (strcmp(kind, "ended") == 0)
        s->nrunners -= job[0] == 'r' && s->nrunners > 0;
    else if (strcmp(kind, "end") == 0)
        s->nrunners = 0;
    else if (strcmp(kind, "task") == 0)
        s->repeated += json_integer_value(json_object_get(event, "attempt")) > 1;
}

int cmd_ensemble_events(crn_study *study, void (*fn)(const char *line, void *arg), void *arg)
{
    char *path, *line = NULL;
    size_t cap = 0;
    if (crn_study_path(study, "events.jsonl", &path) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    FILE *f = fopen(path, "re");
    int code = f ? CMD_YES : cmd_fail("'%s' was not run yet", study->file);
    free(path);
    while (f && getline(&line, &cap, f) >= 0)
        fn(line, arg);
    free(line);
    if (f)
        fclose(f);
    return code;
}

static void print_line(const char *line, void *arg)
{
    (void)arg;
    fputs(line, stdout);
}

int cmd_ensemble_log(crn_study *study, char **words)
{
    (void)words;
    return cmd_ensemble_events(study, print_line, NULL);
}

static void take_line(const char *line, void *arg)
{
    json_t *event = json_loads(line, 0, NULL);
    if (event) /* a line that a full disk has cut says nothing */
        take(arg, event);
    json_decref(event);
}

static json_int_t count_of(const json_t *event, const char *key)
{
    return json_integer_value(json_object_get(event, key));
}

static double real_of(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

/* What the last update of a particle filter made, and what its cycle has cost. */
static json_t *particles_to_json(const status *s)
{
    static const char *const keys[] = {"tasks",  "hits",  "loads",    "ahead",       "steals",
                                       "bound",  "again", "supplies", "deficits",    "parents",
                                       "waited", "busy",  "idle",     "loaded_bytes"};
    json_t *o = json_pack("{s:O, s:O, s:O}", "ess", json_object_get(s->update, "ess"), "resampled",
                          json_object_get(s->update, "resampled"), "children_of",
                          json_object_get(s->update, "parents"));
    for (size_t i = 0; o && i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(s->schedule, keys[i]))
            (void)json_object_set(o, keys[i], json_object_get(s->schedule, keys[i]));
    return o;
}

static json_t *to_json(const status *s, const crn_study *study)
{
    json_t *o = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:s}", "running",
                          s->runs, "cycle", s->cycle, "cycles", (json_int_t)study->cycles,
                          "members", s->members, "runners", (json_int_t)s->nrunners, "servers",
                          s->servers, "failures", s->failures, "repeated", s->repeated,
                          "innovation", s->innovation, "spread", s->spread, "digest", s->digest);
    char kernel[CRN_KERNEL_NAME];
    crn_kernel_of(study, kernel);
    if (o && kernel[0])
        (void)json_object_set_new(o, "kernel", json_string(kernel));
    if (o && s->update && s->schedule)
        (void)json_object_set_new(o, "particles", particles_to_json(s));
    return o;
}

static void print_particles(const status *s)
{
    const json_t *c = s->schedule;
    const json_int_t most = count_of(c, "supplies") + count_of(c, "deficits") - 1;
    const double all = real_of(c, "busy") + real_of(c, "waited") + real_of(c, "idle");
    cmd_line("effective sample size %.4g of %lld, %s; %lld members have children",
             real_of(s->update, "ess"), (long long)s->members,
             json_is_true(json_object_get(s->update, "resampled")) ? "resampled" : "carried on",
             (long long)count_of(s->update, "parents"));
    cmd_line("%lld of %lld tasks from the cache, %lld steals; %lld states loaded (at least %lld, "
             "planned at most %lld, any plan at most %lld), %lld bytes",
             (long long)count_of(c, "hits"), (long long)count_of(c, "tasks"),
             (long long)count_of(c, "steals"), (long long)count_of(c, "loads"),
             (long long)count_of(c, "bound"), (long long)(most > 0 ? most : 0),
             (long long)(count_of(c, "parents") + count_of(s->update, "runners") - 1),
             (long long)count_of(c, "loaded_bytes"));
    if (all > 0)
        cmd_line("the model waited for storage %.2g%% of the time, runners were idle %.2g%%",
                 100 * real_of(c, "waited") / all, 100 * real_of(c, "idle") / all);
}

static void print_status(const status *s, const crn_study *study)
{
    char kernel[CRN_KERNEL_NAME];
    crn_kernel_of(study, kernel);
    cmd_line("%s: cycle %lld of %u is done, with %lld members", s->runs ? "running" : "not running",
             (long long)s->cycle, study->cycles, (long long)s->members);
    cmd_line("%zu runners; %lld tasks failed, %lld were repeated; %lld servers so far",
             s->runs ? s->nrunners : 0, (long long)s->failures, (long long)s->repeated,
             (long long)s->servers);
    if (s->update && s->schedule)
        print_particles(s);
    else if (s->cycle > 0)
        cmd_line("innovation %.4g, spread %.4g", s->innovation, s->spread);
    if (s->cycle > 0)
        cmd_line("analysis %s%s%s", s->digest, kernel[0] ? ", by the processor kernel " : "",
                 kernel);
}

int cmd_ensemble_status(crn_study *study, char **words)
{
    status s = {.runs = crn_study_is_running(study)};
    if (words[0] && strcmp(words[0], "json") != 0)
        return cmd_fail("status knows 'json', not '%s'", words[0]);
    int code = cmd_ensemble_events(study, take_line, &s);
    if (code == CMD_YES && words[0])
        code = cmd_print_json(to_json(&s, study), CMD_YES);
    else if (code == CMD_YES)
        print_status(&s, study);
    json_decref(s.update);
    json_decref(s.schedule);
    return code;
}
