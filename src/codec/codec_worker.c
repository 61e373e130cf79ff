/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starting a process that decodes, from inside whatever program uses the library. It may be an MPI
 * program with threads, gigabytes of state and memory that a network card writes to:
 *
 *  - Not fork: the pages of the program would be copied as it goes on writing to them, and old
 *    kernels let a network card write to the wrong copy; handlers of pthread_atfork would run.
 *    Instead the memory is shared until exec (CLONE_VM, CLONE_VFORK), as in posix_spawn.
 *  - Not posix_spawn: the child's end would raise SIGCHLD in the program, and be reported by its
 *    wait(). Instead a child that raises no signal starts the process and ends at once, so that the
 *    process is init's, which reaps it.
 *  - Not a program in a file, which can be missing or of another version: its bytes are part of the
 *    library and executed from memory. exec gives it a clean address space: what is decoded never
 *    meets what the program holds.
 *
 * All signals are blocked while memory is shared, and stay so in the process: in a session of its
 * own, it ends when its socket is closed, and not by a key pressed at a terminal.
 */
#include "codec/codec_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 32 << 10, NUMBER = 24 };

typedef struct launch {
    int program, sock, area;
    char cap[NUMBER], seconds[NUMBER];
    char path[4096]; /* LD_LIBRARY_PATH=... */
    char *argv[4], *envp[2];
    unsigned char *stack; /* two of STACK bytes */
    int failed;           /* errno */
} launch;

/* --- between clone and exec: system calls only, and not those of libc, which a recorder wraps ----
 */

static long above_two(int fd)
{
    return syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
}

static int become_program(void *arg)
{
    launch *l = arg;
    const long program = above_two(l->program), sock = above_two(l->sock),
               area = above_two(l->area);
    if (program >= 0 && sock >= 0 && area >= 0 &&
        syscall(SYS_dup3, sock, CRN_WORKER_SOCKET, 0) >= 0 &&
        syscall(SYS_dup3, area, CRN_WORKER_AREA, 0) >= 0) {
        syscall(SYS_setsid);
        syscall(SYS_execveat, program, "", l->argv, l->envp, AT_EMPTY_PATH);
    }
    l->failed = errno;
    _exit(1);
}

static int start_and_end(void *arg)
{
    launch *l = arg;
    if (clone(become_program, l->stack + 2 * (size_t)STACK, CLONE_VM | CLONE_VFORK, l) < 0)
        l->failed = errno;
    _exit(0);
}

/* ------------------------------------------------------------------------------------------------
 */

static int run(launch *l)
{
    sigset_t all, old;
    l->failed = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int pid = clone(start_and_end, l->stack + STACK, CLONE_VM | CLONE_VFORK, l);
    const int sys = pid < 0 ? errno : 0;
    while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return sys ? sys : l->failed;
}

static cairn_status program_file(const crn_program *program, int *ret)
{
    int fd = memfd_create("cairn-decoder", MFD_CLOEXEC);
    if (fd < 0)
        return crn_fail_sys(errno, "no memory for the decoder's program");
    for (size_t done = 0; done < program->nbytes;) {
        ssize_t n = write(fd, program->at + done, program->nbytes - done);
        if (n < 0 && errno != EINTR) {
            int sys = errno;
            close(fd);
            return crn_fail_sys(sys, "no memory for the decoder's program");
        }
        done += n > 0 ? (size_t)n : 0;
    }
    *ret = fd;
    return CAIRN_OK;
}

/* The shared memory. Nobody can make it shorter, which would end whoever touches it. */
static cairn_status area_file(crn_worker *w, int *ret)
{
    const size_t nbytes = 2 * w->limits.cap;
    int fd = memfd_create("cairn-decoded", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return crn_fail_sys(errno, "no memory to share with a decoder");
    void *at = MAP_FAILED;
    if (ftruncate(fd, (off_t)nbytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        at = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        int sys = errno;
        close(fd);
        return crn_fail_sys(sys, "no memory to share with a decoder");
    }
    w->area = at;
    *ret = fd;
    return CAIRN_OK;
}

/* Its libraries lie where those of this program do; nothing else of the environment is its own. */
static void describe(launch *l, const crn_worker_limits *limits)
{
    static char name[] = "cairn-decoder";
    const char *path = getenv("LD_LIBRARY_PATH");
    int n = snprintf(l->path, sizeof l->path, "LD_LIBRARY_PATH=%s", path ? path : "");
    l->envp[0] = path && n > 0 && (size_t)n < sizeof l->path ? l->path : NULL;
    snprintf(l->cap, sizeof l->cap, "%zu", limits->cap);
    snprintf(l->seconds, sizeof l->seconds, "%u", limits->cpu_seconds);
    l->argv[0] = name;
    l->argv[1] = l->cap;
    l->argv[2] = l->seconds;
}

static cairn_status launch_program(crn_worker *w, launch *l, const crn_program *program)
{
    int pair[2], sys;
    CRN_TRY(program_file(program, &l->program));
    CRN_TRY(area_file(w, &l->area));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return crn_fail_sys(errno, "no socket to talk to a decoder");
    w->sock = pair[0];
    l->sock = pair[1];
    CRN_TRY(crn_alloc_aligned(&l->stack, 2 * (size_t)STACK, 64));
    describe(l, &w->limits);
    sys = run(l);
    if (sys != 0)
        return crn_fail_sys(sys, "cannot start a process that decodes");
    return CAIRN_OK;
}

static void launch_done(launch *l)
{
    if (l->program >= 0)
        close(l->program);
    if (l->area >= 0)
        close(l->area);
    if (l->sock >= 0)
        close(l->sock);
    free(l->stack);
    free(l);
}

/* Wait for a packet. 0: no other process has the socket any more; -1: the time is over. */
static ssize_t receive(const crn_worker *w, crn_worker_reply *reply)
{
    struct pollfd p = {.fd = w->sock, .events = POLLIN};
    const uint64_t end = crn_now_ns() + w->limits.wait_seconds * UINT64_C(1000000000);
    for (;;) {
        const uint64_t now = crn_now_ns();
        int n = poll(&p, 1, now < end ? (int)((end - now) / 1000000) + 1 : 0);
        if (n == 0 && now >= end)
            return -1;
        if (n < 0 && errno != EINTR)
            return 0;
        if (n <= 0)
            continue;
        ssize_t got = recv(w->sock, reply, sizeof *reply, 0);
        if (got >= 0 || errno != EINTR)
            return got == sizeof *reply ? got : 0;
    }
}

cairn_status crn_worker_start(const crn_program *program, const crn_worker_limits *limits,
                              crn_worker **ret)
{
    crn_worker *w;
    launch *l;
    crn_worker_reply ready;
    CRN_TRY(crn_alloc(&w, 1));
    w->sock = -1;
    w->limits = *limits;
    cairn_status rc = crn_alloc(&l, 1);
    if (rc == CAIRN_OK) {
        l->program = l->area = l->sock = -1;
        rc = launch_program(w, l, program);
        launch_done(l); /* else the socket would not show that the process has ended */
    }
    if (rc == CAIRN_OK && receive(w, &ready) <= 0)
        rc = crn_fail(CAIRN_EUNSUPPORTED,
                      "a process that decodes ended before it began: the system lets it not use "
                      "seccomp, or lacks a library (libzfp, libfpzip)");
    if (rc < 0) {
        crn_worker_end(w);
        return rc;
    }
    *ret = w;
    return CAIRN_OK;
}

crn_worker_answer crn_worker_ask(crn_worker *w, const crn_worker_request *request, const void *src,
                                 void *dst, bool *ret_usable)
{
    crn_worker_reply reply;
    ssize_t n;
    *ret_usable = false;
    memcpy(w->area, src, request->n);
    do
        n = send(w->sock, request, sizeof *request, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return CRN_WORKER_DIED;
    n = receive(w, &reply);
    if (n <= 0)
        return n < 0 ? CRN_WORKER_HANGS : CRN_WORKER_DIED;
    *ret_usable = !reply.last;
    if (!reply.good)
        return CRN_WORKER_REFUSES;
    memcpy(dst, w->area + w->limits.cap, request->nbytes);
    return CRN_WORKER_GOOD;
}

void crn_worker_end(crn_worker *w)
{
    if (!w)
        return;
    if (w->sock >= 0)
        close(w->sock);
    if (w->area)
        munmap(w->area, 2 * w->limits.cap);
    free(w);
}
