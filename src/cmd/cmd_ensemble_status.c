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
} status;

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

/* What an event adds to the picture. */
static void take(status *s, const json_t *event)
{
    const char *kind = text_of(event, "event"), *job = text_of(event, "job");
    if (strcmp(kind, "analysis") == 0) {
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

static json_t *to_json(const status *s, const crn_study *study)
{
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:s}", "running", s->runs,
                     "cycle", s->cycle, "cycles", (json_int_t)study->cycles, "members", s->members,
                     "runners", (json_int_t)s->nrunners, "servers", s->servers, "failures",
                     s->failures, "repeated", s->repeated, "innovation", s->innovation, "spread",
                     s->spread, "digest", s->digest);
}

int cmd_ensemble_status(crn_study *study, char **words)
{
    status s = {.runs = crn_study_is_running(study)};
    if (words[0] && strcmp(words[0], "json") != 0)
        return cmd_fail("status knows 'json', not '%s'", words[0]);
    int code = cmd_ensemble_events(study, take_line, &s);
    if (code != CMD_YES)
        return code;
    if (words[0])
        return cmd_print_json(to_json(&s, study), CMD_YES);
    cmd_line("%s: cycle %lld of %u is done, with %lld members", s.runs ? "running" : "not running",
             (long long)s.cycle, study->cycles, (long long)s.members);
    cmd_line("%zu runners; %lld tasks failed, %lld were repeated; %lld servers so far",
             s.runs ? s.nrunners : 0, (long long)s.failures, (long long)s.repeated,
             (long long)s.servers);
    if (s.cycle > 0)
        cmd_line("innovation %.4g, spread %.4g, analysis %s", s.innovation, s.spread, s.digest);
    return CMD_YES;
}
