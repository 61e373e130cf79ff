/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Processes that descend from this one. Launchers put ranks into process groups and sessions of
 * their own, and may be killed before they can end them; so what belongs to a leg is told by
 * descent, and orphans are adopted. Nothing else is ever signalled.
 */
#include "cmd/cmd_run.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct process {
    pid_t pid, parent;
    bool ended; /* and waits for its parent to take notice */
    bool ours;
} process;

typedef CRN_VEC(process) process_list;

void cmd_tree_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int cmd_tree_reap(pid_t pid)
{
    int status, found = -1;
    for (pid_t p; (p = waitpid(-1, &status, WNOHANG)) > 0;)
        if (p == pid)
            found = status;
    return found;
}

/* "12 (name) S 7 ...", where a name may have any characters. */
static bool read_process(const char *pid, process *ret)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    const char *end = strrchr(text, ')');
    if (!end || strlen(end) < 5)
        return false;
    *ret = (process){.pid = (pid_t)strtol(pid, NULL, 10),
                     .parent = (pid_t)strtol(end + 4, NULL, 10),
                     .ended = end[2] == 'Z'};
    return true;
}

static void list_processes(process_list *ret)
{
    DIR *dir = opendir("/proc");
    process p;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && read_process(e->d_name, &p) &&
            crn_vec_push(ret, p) < 0)
            break; /* the others are found when these are gone */
    if (dir)
        closedir(dir);
}

bool cmd_tree_is_stuck(pid_t pid)
{
    process_list list = {0};
    size_t nended = 0, nalive = 0;
    list_processes(&list);
    for (size_t i = 0; i < list.n; i++) {
        nended += list.at[i].parent == pid && list.at[i].ended;
        nalive += list.at[i].parent == pid && !list.at[i].ended;
    }
    crn_vec_done(&list);
    return nended > 0 && nalive == 0;
}

static bool is_ours(const process_list *list, pid_t pid)
{
    if (pid == getpid())
        return true;
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].pid == pid)
            return list->at[i].ours;
    return false;
}

static void kill_once(void)
{
    process_list list = {0};
    bool more = true;
    list_processes(&list);
    while (more) {
        more = false;
        for (size_t i = 0; i < list.n; i++)
            if (!list.at[i].ours && is_ours(&list, list.at[i].parent))
                list.at[i].ours = more = true;
    }
    for (size_t i = 0; i < list.n; i++)
        if (list.at[i].ours)
            kill(list.at[i].pid, SIGKILL);
    crn_vec_done(&list);
}

/* Those killed last may have had children meanwhile, and a process in the middle of a system call
 * dies only after it: look again until there is no child left, for half a minute. */
int cmd_tree_kill(pid_t pid)
{
    const struct timespec moment = {0, 10000000};
    int found = -1;
    for (int i = 0; i < 3000; i++) {
        kill_once();
        int status = cmd_tree_reap(pid);
        found = status >= 0 ? status : found;
        if (waitid(P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD)
            return found;
        nanosleep(&moment, NULL);
    }
    cmd_run_say("some processes of the program cannot be ended");
    return found;
}
