/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The program that decodes what a forger may have made: cairn-decoder CAP SECONDS, started by
 * codec_worker.c. Before it looks at a byte it gives up all that a process can do but to compute,
 * to get memory, and to read from and write to its socket.
 */
#include "codec/codec_worker.h"

#include <dirent.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#define ARCH AUDIT_ARCH_PPC64LE
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#else
#error "seccomp's name of this architecture is missing here"
#endif

#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define LOAD(field)                                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define ALLOW_CALL(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), ALLOW

/* closefrom, which glibc has since 2.34. */
static void close_above(int last)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, last + 1U, ~0U, 0U) == 0)
        return;
#endif
    DIR *d = opendir("/proc/self/fd");
    struct dirent *entry;
    while (d && (entry = readdir(d))) {
        const int fd = (int)strtol(entry->d_name, NULL, 10);
        if (fd > last && fd != dirfd(d))
            close(fd);
    }
    if (d)
        closedir(d);
}

/* Limits that are lower already stay, as nobody may raise them. */
static bool limit(int what, rlim_t value)
{
    struct rlimit r;
    if (getrlimit(what, &r) < 0)
        return false;
    r.rlim_cur = r.rlim_max = CRN_MIN(r.rlim_max, value);
    return setrlimit(what, &r) == 0;
}

/* Descriptors, files, processes and core dumps: none; memory and time: ample for a block. */
static bool limit_all(size_t cap, rlim_t seconds)
{
    return limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_NPROC, 0) &&
           limit(RLIMIT_NOFILE, 0) && limit(RLIMIT_CPU, seconds) &&
           limit(RLIMIT_AS, (rlim_t)(512 << 20) + 16 * (rlim_t)cap);
}

/* Memory may be mapped if it is no file's and not to be executed. The first argument's bits that
 * matter are in the lower half, which comes first on these little-endian machines. */
static bool lock_up(void)
{
    struct sock_filter filter[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
        KILL,
        LOAD(nr),
        ALLOW_CALL(SYS_read),
        ALLOW_CALL(SYS_write),
        ALLOW_CALL(SYS_brk),
        ALLOW_CALL(SYS_munmap),
        ALLOW_CALL(SYS_mremap),
        ALLOW_CALL(SYS_madvise),
        ALLOW_CALL(SYS_clock_gettime),
        ALLOW_CALL(SYS_exit_group),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
        KILL,
        LOAD(args[2]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 2, 0),
        LOAD(args[3]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 1, 0),
        KILL,
        ALLOW,
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool decode(const crn_worker_request *r, unsigned char *area, size_t cap)
{
    const crn_codec_ops *codec = crn_codec_of_id(r->codec);
    if (!codec || r->elem >= CRN_NELEMS || r->n > cap || r->nbytes > cap)
        return false;
    return codec->decode((crn_elem)r->elem, area, r->n, area + cap, r->nbytes, NULL);
}

static bool is_old(rlim_t seconds)
{
    struct timespec used = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (rlim_t)used.tv_sec >= seconds / 2;
}

static int serve(unsigned char *area, size_t cap, rlim_t seconds)
{
    crn_worker_request request;
    crn_worker_reply reply = {.good = 1};
    if (write(CRN_WORKER_SOCKET, &reply, sizeof reply) != sizeof reply)
        return 1;
    while (!reply.last && read(CRN_WORKER_SOCKET, &request, sizeof request) == sizeof request) {
        reply.good = decode(&request, area, cap);
        reply.last = is_old(seconds);
        if (write(CRN_WORKER_SOCKET, &reply, sizeof reply) != sizeof reply)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 1;
    const size_t cap = strtoull(argv[1], NULL, 10);
    const rlim_t seconds = strtoull(argv[2], NULL, 10);
    unsigned char *area =
        mmap(NULL, 2 * cap, PROT_READ | PROT_WRITE, MAP_SHARED, CRN_WORKER_AREA, 0);
    close_above(CRN_WORKER_SOCKET);
    free(malloc(1)); /* its first use asks for random numbers */
    if (area == MAP_FAILED || chdir("/") < 0 || !limit_all(cap, seconds) || !lock_up())
        return 1;
    return serve(area, cap, seconds);
}
