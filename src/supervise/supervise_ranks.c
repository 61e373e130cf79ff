/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ranks of a launcher, as far as they are on this machine: the processes below it whose
 * environment has their rank while that of their parents does not.
 */
#include "supervise/supervise.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { SOONEST_NS = 50000000, LATEST_NS = 2000000000, LAG_S = 10 };

/* By which launchers tell a process its rank: Open MPI's, MPICH's, those that use PMIx, Slurm's. */
static bool has_rank(pid_t pid)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                        "SLURM_PROCID"};
    size_t n;
    bool found = false;
    char *text = crn_proc_environment(pid, &n);
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++)
        found |= *crn_environment_find(text, n, names[i]) != 0;
    free(text);
    return found;
}

static bool is_known(const crn_rank_watch *r, pid_t pid)
{
    for (size_t i = 0; i < r->known.n; i++)
        if (r->known.at[i] == pid)
            return true;
    return false;
}

/* Watch a process; kernels that cannot do it let the launcher's end be the end. */
static void watch(crn_rank_watch *r, pid_t pid)
{
#ifdef SYS_pidfd_open
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0 && crn_vec_push(&r->known, pid) < 0)
        close(fd);
    else if (fd >= 0 && crn_vec_push(&r->process, (struct pollfd){.fd = fd, .events = POLLIN}) < 0)
        close(fd);
#else
    (void)r;
    (void)pid;
#endif
}

/* All below pid, from the top down; those that have a rank are not looked below. */
static void look_below(crn_rank_watch *r, const crn_procs *list, pid_t pid, int depth)
{
    enum { DEPTH_MAX = 8 };
    for (size_t i = 0; depth < DEPTH_MAX && i < list->n; i++) {
        const crn_proc *p = &list->at[i];
        if (p->parent != pid || p->ended || is_known(r, p->pid))
            continue;
        if (has_rank(p->pid))
            watch(r, p->pid);
        else
            look_below(r, list, p->pid, depth + 1);
    }
}

/* Note deaths; a process that has ended can be read from. */
static void take_deaths(crn_rank_watch *r)
{
    const uint64_t now = crn_wall_ns();
    size_t nleft = 0;
    if (r->process.n == 0 || poll(r->process.at, r->process.n, 0) <= 0)
        return;
    for (size_t i = 0; i < r->process.n; i++) {
        if (r->process.at[i].revents == 0) {
            r->process.at[nleft++] = r->process.at[i];
            continue;
        }
        close(r->process.at[i].fd);
        (void)!crn_vec_push(&r->died, now); /* without memory: the launcher's end counts */
    }
    r->process.n = nleft;
}

void crn_rank_watch_look(crn_rank_watch *r, pid_t launcher)
{
    crn_procs list = {0};
    take_deaths(r);
    if (crn_now_ns() - r->look_ns < r->pause_ns)
        return;
    if (!has_rank(launcher)) { /* else all have one: this is a rank of something else itself */
        crn_proc_list(&list);
        look_below(r, &list, launcher, 0);
        crn_vec_done(&list);
    }
    r->pause_ns = CRN_MIN(CRN_MAX(2 * r->pause_ns, (uint64_t)SOONEST_NS), (uint64_t)LATEST_NS);
    r->look_ns = crn_now_ns();
}

uint64_t crn_rank_watch_first(const crn_rank_watch *r, uint64_t end_ns)
{
    for (size_t i = 0; i < r->died.n; i++)
        if (end_ns - r->died.at[i] < (uint64_t)LAG_S * 1000000000)
            return CRN_MIN(r->died.at[i], end_ns);
    return end_ns;
}

void crn_rank_watch_done(crn_rank_watch *r)
{
    for (size_t i = 0; i < r->process.n; i++)
        close(r->process.at[i].fd);
    crn_vec_done(&r->process);
    crn_vec_done(&r->known);
    crn_vec_done(&r->died);
}
