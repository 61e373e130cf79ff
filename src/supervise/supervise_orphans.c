/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Processes that a supervisor left behind when it was killed. They descend from nobody any more,
 * and are known by a variable of their environment, which names the supervisor that they belong to.
 */
#include "supervise/supervise.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEAVE_S = 10 };

static const char mark_name[] = "CAIRN_SUPERVISOR";

/* Where numbers of processes mean the same: this start of this machine, and this name space. */
static void describe_machine(char *ret, size_t cap)
{
    char boot[40] = "";
    struct stat space = {0};
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f) {
        boot[fread(boot, 1, sizeof boot - 1, f)] = 0;
        fclose(f);
    }
    boot[strcspn(boot, "\n")] = 0;
    stat("/proc/self/ns/pid", &space);
    snprintf(ret, cap, "%s/%ju", boot, (uintmax_t)space.st_ino);
}

/* "pid.born machine", which names the process that another one belongs to. */
cairn_status crn_orphans_sign(void)
{
    char machine[64], text[128];
    crn_proc self;
    describe_machine(machine, sizeof machine);
    if (!crn_proc_self(&self))
        return CAIRN_OK; /* without /proc nothing can be found either */
    snprintf(text, sizeof text, "%ld.%" PRIu64 " %s", (long)self.pid, self.born, machine);
    CRN_FAIL_IF(setenv(mark_name, text, 1) != 0, CAIRN_ENOMEM, "no memory for the environment");
    return CAIRN_OK;
}

static bool has_all(const char *text, size_t n, const crn_variable *has, size_t nvariables)
{
    for (size_t i = 0; i < nvariables; i++)
        if (strcmp(crn_environment_find(text, n, has[i].name), has[i].value) != 0)
            return false;
    return true;
}

/* Does the mark name a supervisor of this machine that is no more? */
static bool is_forsaken(const char *mark, const char *machine)
{
    char *end;
    const pid_t by = (pid_t)strtol(mark, &end, 10);
    const uint64_t born = *end == '.' ? strtoull(end + 1, &end, 10) : 0;
    return *end == ' ' && strcmp(end + 1, machine) == 0 && !crn_proc_is_alive(by, born);
}

/* The variables that a process must have to be one of ours. */
typedef struct sought {
    const crn_variable *has;
    size_t n;
} sought;

static bool is_orphan(const sought *s, const char *machine, pid_t pid)
{
    size_t n;
    char *text = crn_proc_environment(pid, &n);
    if (!text)
        return false;
    bool found = is_forsaken(crn_environment_find(text, n, mark_name), machine) &&
                 has_all(text, n, s->has, s->n);
    free(text);
    return found;
}

static bool is_marked(const crn_proc *p, const crn_variable *has, size_t nvariables)
{
    size_t n;
    if (p->pid == getpid() || p->ended)
        return false;
    char *text = crn_proc_environment(p->pid, &n);
    const bool found = text && has_all(text, n, has, nvariables);
    free(text);
    return found;
}

size_t crn_marked_signal(const crn_variable *has, size_t nvariables, int number)
{
    crn_procs list = {0};
    size_t n = 0;
    crn_proc_list(&list);
    for (size_t i = 0; i < list.n; i++)
        if (is_marked(&list.at[i], has, nvariables)) {
            kill(list.at[i].pid, number);
            n++;
        }
    crn_vec_done(&list);
    return n;
}

/* How many there are, which get this signal (0: none). */
static size_t signal_orphans(const sought *s, int number)
{
    char machine[64];
    crn_procs list = {0};
    size_t n = 0;
    describe_machine(machine, sizeof machine);
    crn_proc_list(&list);
    for (size_t i = 0; i < list.n; i++)
        if (list.at[i].pid != getpid() && !list.at[i].ended &&
            is_orphan(s, machine, list.at[i].pid)) {
            kill(list.at[i].pid, number);
            n++;
        }
    crn_vec_done(&list);
    return n;
}

/* Some leave by themselves, some go on as if nothing had happened, some wait for ever for a
 * launcher that is gone. */
void crn_orphans_end(const crn_variable *has, size_t nvariables, crn_signals *s, int leave,
                     crn_say_fn *say)
{
    const sought of = {has, nvariables};
    const uint64_t until = crn_now_ns() + (uint64_t)LEAVE_S * 1000000000;
    size_t n = signal_orphans(&of, leave);
    if (n == 0)
        return;
    if (say)
        say("an earlier 'cairn run' was killed: ending what it has left behind");
    while (n > 0 && crn_now_ns() < until && crn_signals_pause(s, 0.1))
        n = signal_orphans(&of, 0);
    while (n > 0 && s->nleave == 0) {
        n = signal_orphans(&of, SIGKILL);
        if (n > 0 && !crn_signals_pause(s, 0.1))
            return;
    }
}
