/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The processes of a leg. Launchers put ranks into process groups and sessions of their own, and
 * may be killed before they can end them; so a leg consists of its descendants, and orphans
 * are adopted. Nothing else is ever signalled.
 */
#include "supervise/supervise.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool crn_offspring_is_stuck(pid_t pid)
{
    crn_procs list = {0};
    size_t nended = 0, nalive = 0;
    crn_proc_list(&list);
    for (size_t i = 0; i < list.n; i++) {
        nended += list.at[i].parent == pid && list.at[i].ended;
        nalive += list.at[i].parent == pid && !list.at[i].ended;
    }
    crn_vec_done(&list);
    return nended > 0 && nalive == 0;
}

/* A supervisor that was started by exec may have had children, which are none of our business. */
static void spare_children(crn_offspring *o)
{
    crn_procs list = {0};
    crn_proc_list(&list);
    for (size_t i = 0; i < list.n; i++)
        if (list.at[i].parent == getpid() && crn_vec_push(&o->spared, list.at[i]) < 0)
            break;
    crn_vec_done(&list);
}

static bool is_spared(const crn_offspring *o, const crn_proc *p)
{
    for (size_t i = 0; i < o->spared.n; i++)
        if (o->spared.at[i].pid == p->pid && o->spared.at[i].born == p->born)
            return true;
    return false;
}

static bool is_ours(const crn_procs *list, pid_t pid)
{
    if (pid == getpid())
        return true;
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].pid == pid)
            return list->at[i].ours;
    return false;
}

/* Kill all; how many there were. */
static size_t kill_once(const crn_offspring *o)
{
    crn_procs list = {0};
    size_t n = 0;
    crn_proc_list(&list);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < list.n; i++)
            if (!list.at[i].ours && is_ours(&list, list.at[i].parent) && !is_spared(o, &list.at[i]))
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

int crn_offspring_reap(pid_t pid)
{
    int status, found = -1;
    for (pid_t p; (p = waitpid(-1, &status, WNOHANG)) > 0;)
        if (p == pid)
            found = status;
    return found;
}

/* Those killed last may have had children meanwhile, and a process in the middle of a system call
 * dies only after it: look again until there is none left, for half a minute. */
int crn_offspring_kill(const crn_offspring *o, pid_t pid)
{
    const struct timespec moment = {0, 10000000};
    int found = -1;
    for (int i = 0; i < 3000; i++) {
        const size_t n = kill_once(o);
        const int status = crn_offspring_reap(pid);
        found = status >= 0 ? status : found;
        if (n == 0)
            return found;
        nanosleep(&moment, NULL);
    }
    if (o->say)
        o->say("some processes of the program cannot be ended");
    return found;
}

void crn_offspring_start(crn_offspring *o, crn_say_fn *say)
{
    *o = (crn_offspring){.say = say};
    spare_children(o);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void crn_offspring_done(crn_offspring *o)
{
    crn_vec_done(&o->spared);
}
