/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A runner around a model whose source cannot be changed. Each task becomes a file, a copy of the
 * model's first state with the member's fields in it; the command makes another file of it, from
 * which the fields are read. A model that says no (an exit code) is refused; one that is killed
 * takes its runner along, as a process that was lost.
 */
#include "ensemble/ensemble_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ensemble/ensemble.h"
#include "ensemble/ensemble_check.h"
#include "ensemble/ensemble_hdf5.h"
#include "ensemble/ensemble_member.h"

enum { SHELL_KILLED = 128 }; /* plus the signal: how a shell reports it */

bool crn_command_is_used(const crn_study *s)
{
    return strstr(s->runner, "{in}") != NULL;
}

cairn_status crn_command_line(const crn_study *s, const char *program, const char *command,
                              bool other, char **ret)
{
    if (!crn_command_is_used(s))
        return crn_strdup(command, ret);
    CRN_FAIL_IF(
        asprintf(ret, "%s ensemble advance '%s'%s", program, s->file, other ? " other" : "") < 0,
        CAIRN_ENOMEM, "no memory for a command");
    return CAIRN_OK;
}

/* --- the command ---------------------------------------------------------------------------- */

static bool put_value(crn_buf *b, const char *name, size_t n, const crn_command_values *v)
{
    const struct {
        const char *name, *text;
        uint64_t number;
    } known[] = {{"in", v->in, 0},
                 {"out", v->out, 0},
                 {"steps", NULL, v->steps},
                 {"step", NULL, v->step},
                 {"cycle", NULL, v->cycle},
                 {"member", NULL, v->member},
                 {"attempt", NULL, v->attempt}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == n && memcmp(known[i].name, name, n) == 0) {
            char number[24];
            snprintf(number, sizeof number, "%" PRIu64, known[i].number);
            const char *text = known[i].text ? known[i].text : number;
            crn_put_bytes(b, text, strlen(text));
            return true;
        }
    return false;
}

cairn_status crn_command_fill(const char *command, const crn_command_values *v, char **ret)
{
    crn_buf b = {0};
    for (const char *p = command; *p;) {
        const char *end = *p == '{' ? strchr(p, '}') : NULL;
        if (end && put_value(&b, p + 1, (size_t)(end - p - 1), v))
            p = end + 1;
        else
            crn_put_bytes(&b, p++, 1);
    }
    crn_put_bytes(&b, "", 1);
    CRN_TRY(crn_buf_status(&b));
    *ret = (char *)b.at;
    return CAIRN_OK;
}

/* --- files ---------------------------------------------------------------------------------- */

typedef struct runner {
    const crn_study *study;
    const char *command;
    char *work, *in, *out; /* the folder of this job, and files in it */
    crn_datasets state;
    cairn_ensemble *e;
} runner;

static cairn_status copy_file(const char *from, const char *to)
{
    struct stat st;
    int a = open(from, O_RDONLY | O_CLOEXEC);
    int b = a < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cairn_status rc = CAIRN_OK;
    if (b < 0 || fstat(a, &st) < 0)
        rc = crn_fail_sys(errno, "cannot copy '%s' to '%s'", from, to);
    for (off_t left = rc < 0 ? 0 : st.st_size; rc == CAIRN_OK && left > 0;) {
        ssize_t n = sendfile(b, a, NULL, (size_t)CRN_MIN(left, (off_t)1 << 30));
        if (n <= 0)
            rc = crn_fail_sys(n < 0 ? errno : EIO, "cannot copy '%s' to '%s'", from, to);
        left -= n;
    }
    if (a >= 0)
        close(a);
    if (b >= 0 && close(b) < 0 && rc == CAIRN_OK)
        rc = crn_fail_sys(errno, "cannot copy '%s' to '%s'", from, to);
    return rc;
}

static cairn_status make_folder(const char *path)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return crn_fail_sys(errno, "cannot make '%s'", path);
    return CAIRN_OK;
}

/* work/JOB of the study's directory; what an earlier job of the name left there is overwritten. */
static cairn_status make_work(runner *r)
{
    const char *job = getenv("CAIRN_ENSEMBLE_JOB");
    char *all;
    CRN_FAIL_IF(!job || job[0] != 'r', CAIRN_EINVAL,
                "a runner is started by 'cairn ensemble run', not by hand");
    CRN_TRY(crn_study_path(r->study, "work", &all));
    cairn_status rc = make_folder(all);
    if (rc == CAIRN_OK && (asprintf(&r->work, "%s/%s", all, job) < 0 ||
                           asprintf(&r->in, "%s/%s/in.h5", all, job) < 0 ||
                           asprintf(&r->out, "%s/%s/out.h5", all, job) < 0))
        rc = crn_fail(CAIRN_ENOMEM, "no memory for paths");
    free(all);
    return rc < 0 ? rc : make_folder(r->work);
}

/* --- a task --------------------------------------------------------------------------------- */

/* Run the command; its exit code. CAIRN_EPEER: it was killed. */
static cairn_status run(const char *command, int *ret)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return crn_fail_sys(errno, "cannot run '%s'", command);
    const int code = WIFSIGNALED(status) ? SHELL_KILLED + WTERMSIG(status) : WEXITSTATUS(status);
    CRN_FAIL_IF(code > SHELL_KILLED, CAIRN_EPEER, "'%s' was killed by signal %d", command,
                code - SHELL_KILLED);
    *ret = code;
    return CAIRN_OK;
}

/* The state that failed and how it was tried, to be run again by hand. */
static void keep_failed(runner *r, const cairn_task *task, const char *command)
{
    char *folder, *to;
    if (crn_study_path(r->study, "failed", &folder) < 0)
        return;
    if (make_folder(folder) == CAIRN_OK &&
        asprintf(&to, "%s/m%06u-%" PRIu64 ".h5", folder, task->member, task->cycle) >= 0) {
        if (rename(r->in, to) == 0)
            (void)crn_study_append(r->study, "failed/commands",
                                   "# member %u, cycle %" PRIu64 ": %s was %s\n%s", task->member,
                                   task->cycle, to, r->in, command);
        free(to);
    }
    free(folder);
}

static cairn_status refuse(runner *r, const cairn_task *task, const char *command, const char *why)
{
    keep_failed(r, task, command);
    return (cairn_status)cairn_member_refuse(r->e, why);
}

static cairn_status try_command(runner *r, const cairn_task *task, const char *command)
{
    char why[256];
    int code = 0;
    (void)unlink(r->out);
    CRN_TRY(run(command, &code));
    if (code != 0) {
        snprintf(why, sizeof why, "exit code %d of '%.200s'", code, command);
        return refuse(r, task, command, why);
    }
    /* without {out} the model changes the file that it was given */
    const char *result = strstr(r->command, "{out}") ? r->out : r->in;
    if (crn_datasets_read(result, &r->state) < 0) {
        snprintf(why, sizeof why, "%.250s", crn_err_peek()->text);
        return refuse(r, task, command, why);
    }
    return CAIRN_OK;
}

static cairn_status advance(runner *r, const cairn_task *task)
{
    const crn_command_values v = {.in = r->in,
                                  .out = r->out,
                                  .steps = task->nsteps,
                                  .step = task->step,
                                  .cycle = task->cycle,
                                  .member = task->member,
                                  .attempt = task->attempt};
    char *command;
    CRN_TRY(copy_file(r->study->model_first, r->in));
    CRN_TRY(crn_datasets_write(r->in, &r->state));
    if (task->nsteps == 0) /* there and back */
        return crn_datasets_read(r->in, &r->state);
    CRN_TRY(crn_command_fill(r->command, &v, &command));
    cairn_status rc = try_command(r, task, command);
    free(command);
    return rc;
}

/* --- the runner ----------------------------------------------------------------------------- */

static cairn_status declare(runner *r)
{
    for (size_t i = 0; i < r->state.n; i++) {
        const crn_state_field *f = &r->state.at[i].field;
        cairn_field piece = {
            .name = f->name, .data = r->state.at[i].data, .type = f->type, .ndims = f->ndims};
        memcpy(piece.global, f->global, sizeof piece.global);
        memcpy(piece.count, f->global, sizeof piece.count);
        CRN_TRY((cairn_status)cairn_member_field(r->e, f->role, &piece));
    }
    return CAIRN_OK;
}

static cairn_status serve(runner *r)
{
    cairn_task task = {.struct_bytes = sizeof task};
    const crn_study *s = r->study;
    CRN_FAIL_IF(!s->model_first[0], CAIRN_EINVAL,
                "'%s': runner.command has {in}: model.first must name a file with a first state",
                s->file);
    CRN_TRY(make_work(r));
    CRN_TRY(crn_datasets_find(s->model_first, s->model_assimilated, s->model_carried,
                              s->model_parameter, &r->state));
    CRN_TRY(crn_datasets_read(s->model_first, &r->state));
    CRN_TRY((cairn_status)cairn_member_open(MPI_COMM_SELF, 0, &r->e));
    CRN_TRY(declare(r));
    int more;
    while ((more = cairn_member_next(r->e, &task)) > 0)
        CRN_TRY(advance(r, &task));
    return (cairn_status)more;
}

cairn_status crn_command_run(crn_study *study, bool other)
{
    runner r = {.study = study, .command = study->runner};
    char *command = NULL;
    if (other)
        CRN_TRY(crn_check_other(study, &command));
    if (command)
        r.command = command;
    cairn_status rc = serve(&r);
    cairn_member_close(r.e);
    if (r.in)
        (void)unlink(r.in);
    if (r.out)
        (void)unlink(r.out);
    if (r.work)
        (void)rmdir(r.work);
    crn_datasets_done(&r.state);
    free(r.work), free(r.in), free(r.out);
    free(command);
    return rc;
}
