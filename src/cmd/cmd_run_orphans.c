/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a 'cairn run' that was killed has left behind. It descends from nobody any more, and is told
 * by a variable of its environment, which names the 'cairn run' that it belongs to.
 */
#include "cmd/cmd_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEAVE_S = 10, ENVIRONMENT_MAX = 1 << 22 };

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

/* "pid.born machine", by which a process knows whom it belongs to. */
int cmd_orphans_sign(void)
{
    char machine[64], text[128];
    run_process self;
    describe_machine(machine, sizeof machine);
    if (!cmd_proc_self(&self))
        return CMD_YES; /* without /proc nothing can be found either */
    snprintf(text, sizeof text, "%ld.%" PRIu64 " %s", (long)self.pid, self.born, machine);
    return setenv(mark_name, text, 1) == 0 ? CMD_YES : cmd_fail("no memory for the environment");
}

/* The environment that a process was started with: strings, one after the other. NULL: it is not
 * ours to read, or gone. */
static char *read_environment(pid_t pid, size_t *ret_n)
{
    char path[64], *text;
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || crn_alloc(&text, ENVIRONMENT_MAX) < 0) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    size_t n = 0;
    for (ssize_t k; (k = read(fd, text + n, ENVIRONMENT_MAX - 1 - n)) > 0;)
        n += (size_t)k;
    close(fd);
    text[n] = 0;
    *ret_n = n;
    return text;
}

static const char *find_variable(const char *text, size_t n, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = text; at < text + n; at += strlen(at) + 1)
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return at + len + 1;
    return "";
}

/* Does the mark name a 'cairn run' of this machine that is no more? */
static bool is_forsaken(const char *mark, const char *machine)
{
    char *end;
    const pid_t by = (pid_t)strtol(mark, &end, 10);
    const uint64_t born = *end == '.' ? strtoull(end + 1, &end, 10) : 0;
    return *end == ' ' && strcmp(end + 1, machine) == 0 && !cmd_proc_is_alive(by, born);
}

static bool is_orphan(const run_place *p, const char *machine, pid_t pid)
{
    size_t n;
    char *text = read_environment(pid, &n);
    if (!text)
        return false;
    const bool found = is_forsaken(find_variable(text, n, mark_name), machine) &&
                       strcmp(find_variable(text, n, "CAIRN_RUN_TRAIL"), p->trail) == 0 &&
                       strcmp(find_variable(text, n, "CAIRN_RUN_NAME"), p->name) == 0;
    free(text);
    return found;
}

/* How many there are, which get this signal (0: none). */
static size_t signal_orphans(const run_place *p, int number)
{
    char machine[64];
    run_processes list = {0};
    size_t n = 0;
    describe_machine(machine, sizeof machine);
    cmd_proc_list(&list);
    for (size_t i = 0; i < list.n; i++)
        if (list.at[i].pid != getpid() && !list.at[i].ended &&
            is_orphan(p, machine, list.at[i].pid)) {
            kill(list.at[i].pid, number);
            n++;
        }
    crn_vec_done(&list);
    return n;
}

/* Some leave by themselves, some go on as if nothing had happened, some wait for ever for a
 * launcher that is gone. */
void cmd_orphans_end(const run_place *p, run_signals *s, int leave)
{
    const uint64_t until = crn_now_ns() + (uint64_t)LEAVE_S * 1000000000;
    size_t n = signal_orphans(p, leave);
    if (n == 0)
        return;
    cmd_run_say("an earlier 'cairn run' was killed: ending what it has left behind");
    while (n > 0 && crn_now_ns() < until && cmd_signals_pause(s, 0.1))
        n = signal_orphans(p, 0);
    while (n > 0 && s->nleave == 0) {
        n = signal_orphans(p, SIGKILL);
        if (n > 0 && !cmd_signals_pause(s, 0.1))
            return;
    }
}
