/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The processes of a leg. Launchers put ranks into process groups and sessions of their own, and
 * may be killed before they can end them; so what belongs to a leg is told by descent, and orphans
 * are adopted. Nothing else is ever signalled.
 */
#include "cmd/cmd_run.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool cmd_tree_is_stuck(pid_t pid)
{
    run_processes list = {0};
    size_t nended = 0, nalive = 0;
    cmd_proc_list(&list);
    for (size_t i = 0; i < list.n; i++) {
        nended += list.at[i].parent == pid && list.at[i].ended;
        nalive += list.at[i].parent == pid && !list.at[i].ended;
    }
    crn_vec_done(&list);
    return nended > 0 && nalive == 0;
}

/* Whoever became 'cairn run' by exec may have had children, which are none of our business. */
static void spare_children(run_tree *t)
{
    run_processes list = {0};
    cmd_proc_list(&list);
    for (size_t i = 0; i < list.n; i++)
        if (list.at[i].parent == getpid() && crn_vec_push(&t->spared, list.at[i]) < 0)
            break;
    crn_vec_done(&list);
}

static bool is_spared(const run_tree *t, const run_process *p)
{
    for (size_t i = 0; i < t->spared.n; i++)
        if (t->spared.at[i].pid == p->pid && t->spared.at[i].born == p->born)
            return true;
    return false;
}

static bool is_ours(const run_processes *list, pid_t pid)
{
    if (pid == getpid())
        return true;
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].pid == pid)
            return list->at[i].ours;
    return false;
}

/* Kill all; how many there were. */
static size_t kill_once(const run_tree *t)
{
    run_processes list = {0};
    size_t n = 0;
    cmd_proc_list(&list);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < list.n; i++)
            if (!list.at[i].ours && is_ours(&list, list.at[i].parent) && !is_spared(t, &list.at[i]))
                list.at[i].ours = more = true;
    }
    for (size_t i = 0; i < list.n; i++) {
        n += list.at[i].ours;
        if (list.at[i].ours)
            kill(list.at[i].pid, SIGKILL);
    }
    crn_vec_done(&list);
    return n;
}

int cmd_tree_reap(pid_t pid)
{
    int status, found = -1;
    for (pid_t p; (p = waitpid(-1, &status, WNOHANG)) > 0;)
        if (p == pid)
            found = status;
    return found;
}

/* Those killed last may have had children meanwhile, and a process in the middle of a system call
 * dies only after it: look again until there is none left, for half a minute. */
int cmd_tree_kill(const run_tree *t, pid_t pid)
{
    const struct timespec moment = {0, 10000000};
    int found = -1;
    for (int i = 0; i < 3000; i++) {
        const size_t n = kill_once(t);
        const int status = cmd_tree_reap(pid);
        found = status >= 0 ? status : found;
        if (n == 0)
            return found;
        nanosleep(&moment, NULL);
    }
    cmd_run_say("some processes of the program cannot be ended");
    return found;
}

void cmd_tree_start(run_tree *t)
{
    *t = (run_tree){0};
    spare_children(t);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void cmd_tree_done(run_tree *t)
{
    crn_vec_done(&t->spared);
}
