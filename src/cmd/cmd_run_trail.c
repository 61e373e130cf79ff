/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The run that 'cairn run' looks after: which one it is, what the trail knows of it, and what is
 * added to its log.
 */
#include "cmd/cmd_run.h"

#include <cairn/keep.h>
#include <errno.h>
#include <limits.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "report/report.h"

enum { PATIENCE_S = 60, ROOM = 1 << 20 };

/* --- which run ---------------------------------------------------------------------------- */

/* The run that was begun last and is not finished, as a program would choose; NULL: none. Tasks of
 * a job array have runs of their own. */
static int newest_unfinished(cairn_trail *trail, char **ret)
{
    uint64_t newest = 0;
    const char *best = NULL;
    crn_job_task task;
    const bool any = !crn_job_task_find(&task);
    for (size_t r = 0; r < cairn_trail_nruns(trail); r++) {
        cairn_run_info run = {.struct_bytes = sizeof run};
        if (cairn_trail_run(trail, r, &run) < 0) /* a program would stop here, too */
            return cmd_fail("run '%s' may be the one to continue: %s", run.name,
                            cairn_error_text());
        if (!any && !crn_job_task_fits(&task, run.name))
            continue;
        if (!run.finished && run.created_ns >= newest) {
            newest = run.created_ns;
            best = run.name;
        }
    }
    if (best && crn_strdup(best, ret) < 0)
        return cmd_fail("no memory");
    return CMD_YES;
}

/* A name that no run has. */
static int free_name(cairn_trail *trail, char **ret)
{
    char name[CRN_JOB_NAME];
    size_t r;
    crn_job_task task;
    const bool array = crn_job_task_find(&task);
    for (unsigned n = 1;; n++) {
        if (array)
            crn_job_task_name(&task, n, name);
        else
            snprintf(name, sizeof name, "run-%u", n);
        if (!trail || cairn_trail_find_run(trail, name, &r) < 0)
            break;
    }
    return crn_strdup(name, ret) < 0 ? cmd_fail("no memory") : CMD_YES;
}

static int choose_name(run_place *p)
{
    cairn_trail *trail = NULL;
    int code = CMD_YES;
    int rc = cairn_trail_open(p->trail, &trail);
    if (rc < 0 && rc != CAIRN_ENOTFOUND)
        return cmd_fail("%s", cairn_error_text());
    if (trail)
        code = newest_unfinished(trail, &p->name);
    if (code == CMD_YES && !p->name)
        code = free_name(trail, &p->name);
    cairn_trail_close(trail);
    return code;
}

/* The program may change its folder before it opens the run. */
static int absolute(const char *path, char **ret)
{
    char *here = path[0] == '/' ? NULL : get_current_dir_name();
    if (path[0] != '/' && !here)
        return cmd_fail("cannot find out which folder this is: %s", strerror(errno));
    int n = asprintf(ret, "%s%s%s", here ? here : "", here ? "/" : "", path);
    free(here);
    return n < 0 ? cmd_fail("no memory") : CMD_YES;
}

/* A trail is made by the program, the folder that it lies in is not: to report that after some
 * tries would be late. */
static int check_folder(const char *trail)
{
    char *folder, *slash;
    if (access(trail, F_OK) == 0)
        return CMD_YES;
    if (crn_strdup(trail, &folder) < 0)
        return cmd_fail("no memory");
    for (size_t n = strlen(folder); n > 1 && folder[n - 1] == '/'; n--)
        folder[n - 1] = 0;
    if ((slash = strrchr(folder, '/')) && slash > folder)
        *slash = 0;
    int code = access(folder, X_OK) == 0
                   ? CMD_YES
                   : cmd_fail("cannot make trail '%s': '%s': %s", trail, folder, strerror(errno));
    free(folder);
    return code;
}

int cmd_run_place_find(run_place *p, const char *trail)
{
    crn_config *cfg;
    *p = (run_place){0};
    if (crn_config_load(NULL, &cfg) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    int code = absolute(trail ? trail : crn_config_text(cfg, CRN_OPT_RUN_TRAIL), &p->trail);
    if (code == CMD_YES)
        code = check_folder(p->trail);
    const char *name = crn_config_text(cfg, CRN_OPT_RUN_NAME);
    if (code == CMD_YES && *name && crn_strdup(name, &p->name) < 0)
        code = cmd_fail("no memory");
    crn_config_free(cfg);
    if (code == CMD_YES && !p->name)
        code = choose_name(p);
    if (code == CMD_YES &&
        (setenv("CAIRN_RUN_TRAIL", p->trail, 1) != 0 || setenv("CAIRN_RUN_NAME", p->name, 1) != 0))
        code = cmd_fail("no memory for the environment");
    if (code != CMD_YES)
        cmd_run_place_done(p);
    return code;
}

void cmd_run_place_done(run_place *p)
{
    free(p->trail);
    free(p->name);
    *p = (run_place){0};
}

/* --- what the trail knows ----------------------------------------------------------------- */

static void take_leg(json_t *leg, run_state *s)
{
    const char *end = json_string_value(json_object_get(leg, "end"));
    snprintf(s->end, sizeof s->end, "%s", end ? end : "");
    s->stopped = strcmp(s->end, "stopped") == 0;
    s->opened = json_is_number(json_object_get(leg, "opened"));
    s->resumed = json_is_integer(json_object_get(leg, "resumed"));
    s->from = (uint64_t)json_integer_value(json_object_get(leg, "resumed"));
    s->lost_s = crn_event_number(leg, "lost_seconds");
}

/* Those of the last leg that came so far: a launcher that finds too few nodes starts nothing. */
static int count_nodes(json_t *legs)
{
    int n = 0;
    for (size_t i = json_array_size(legs); n == 0 && i-- > 0;)
        n = (int)CRN_MIN(crn_event_number(json_array_get(legs, i), "nodes"), INT_MAX);
    return n;
}

static int read_run(cairn_trail *trail, size_t r, run_state *s)
{
    cairn_run_info run = {.struct_bytes = sizeof run};
    cairn_mark_info mark = {.struct_bytes = sizeof mark};
    crn_report_log *log;
    if (cairn_trail_run(trail, r, &run) < 0)
        return cmd_fail("%s", cairn_error_text());
    s->exists = true;
    s->finished = run.finished;
    s->marked = run.nmarks > 0 && cairn_trail_mark(trail, r, run.nmarks - 1, &mark) == CAIRN_OK;
    s->newest = mark.version;
    if (crn_report_read(trail, r, &log) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    json_t *legs = crn_report_legs(log);
    take_leg(json_array_get(legs, json_array_size(legs) - 1), s);
    s->nnodes = count_nodes(legs);
    json_decref(legs);
    crn_report_log_free(log);
    return CMD_YES;
}

int cmd_run_state(const run_place *p, run_state *ret)
{
    cairn_trail *trail;
    size_t r;
    *ret = (run_state){0};
    int rc = cairn_trail_open(p->trail, &trail);
    if (rc == CAIRN_ENOTFOUND)
        return CMD_YES;
    if (rc < 0)
        return cmd_fail("%s", cairn_error_text());
    int code = CMD_YES;
    if (cairn_trail_find_run(trail, p->name, &r) == CAIRN_OK)
        code = read_run(trail, r, ret);
    cairn_trail_close(trail);
    return code;
}

bool cmd_run_disk_is_full(const run_place *p)
{
    struct statvfs fs;
    return statvfs(p->trail, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < ROOM;
}

/* --- the log ------------------------------------------------------------------------------ */

/* Ranks on other machines may outlive their launcher for a while, and so may those of a 'cairn run'
 * that was killed. */
int cmd_run_note(const run_place *p, crn_signals *s, crn_event *event)
{
    char *text = crn_event_encode(event);
    crn_event_done(event);
    if (!CRN_WITH_JANSSON) /* there is no log */
        return CMD_YES;
    if (!text)
        return cmd_fail("no memory for an event");
    int rc = cairn_note(p->trail, p->name, text);
    for (int i = 0; rc == CAIRN_EBUSY && i < PATIENCE_S; i++) {
        if (i == 0)
            cmd_run_say("%s: waiting for it", cairn_error_text());
        if (!crn_signals_pause(s, 1))
            break;
        rc = cairn_note(p->trail, p->name, text);
    }
    free(text);
    if (rc == CAIRN_OK || rc == CAIRN_ENOTFOUND)
        return CMD_YES;
    cmd_fail("%s", cairn_error_text());
    return rc == CAIRN_EBUSY ? CMD_NO : CMD_UNKNOWN;
}
