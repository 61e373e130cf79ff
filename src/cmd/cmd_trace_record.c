/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn trace record: run a command with libcairn-trace preloaded. The environment does all: the
 * launcher hands it on to the ranks.
 */
#include "cmd/cmd_trace.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "cairn trace record [-o FILE] [--precision P] [--no-times] -- COMMAND [ARGUMENT ...]";

#define LIBRARY "libcairn-trace.so"

enum { NOT_FOUND = 127 }; /* the exit code of a command that is not there, as shells have it */

/* Beside the program as it is installed, or as it is built. */
static int find_library(char buf[PATH_MAX])
{
    static const char *const folders[] = {"../lib", ("../" CAIRN_LIBDIR), "."};
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return cmd_fail("cannot find out where this program is: %s", strerror(errno));
    self[n] = 0;
    char *slash = strrchr(self, '/');
    *slash = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s/" LIBRARY, self, folders[i]);
        if (realpath(path, buf))
            return CMD_YES;
    }
    return cmd_fail("no '" LIBRARY "' in '%s/../lib': is Cairn installed whole, and was "
                    "it built with zstd?",
                    self);
}

/* A name that means the same in every folder that the program may go to. */
static int absolute(const char *name, char *buf, size_t cap)
{
    char here[PATH_MAX];
    bool whole = name[0] == '/';
    if (!whole && !getcwd(here, sizeof here))
        return cmd_fail("cannot find out which folder this is: %s", strerror(errno));
    int n = snprintf(buf, cap, "%s%s%s", whole ? "" : here, whole ? "" : "/", name);
    return (size_t)n < cap ? CMD_YES : cmd_fail("'%s' is too long for a name", name);
}

typedef struct recording {
    const char *out, *precision;
    bool no_times;
    char library[PATH_MAX], path[PATH_MAX];
} recording;

/* What the recorder reads; the guide explains it. */
static const char *const variables[] = {
    "LD_PRELOAD",       "CAIRN_TRACE_OUT",    "CAIRN_TRACE_PRECISION", "CAIRN_TRACE_TIMES",
    "CAIRN_TRACE_KEEP", "CAIRN_TRACE_MEMORY", "CAIRN_TRACE_PLAIN",     "CAIRN_TRACE_OFF"};

/*
 * Open MPI hands to other machines only those variables that are named by -x or by this one, not
 * by both; and it complains about such as are not set.
 */
static int set_handed_on(char **command)
{
    char list[256];
    size_t n = 0;
    for (char **word = command; *word; word++)
        if (strcmp(*word, "-x") == 0)
            return 0;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]))
            n +=
                (size_t)snprintf(list + n, sizeof list - n, "%s%s", n > 0 ? ";" : "", variables[i]);
    return setenv("OMPI_MCA_mca_base_env_list", list, 0);
}

static int set_environment(const recording *r, char **command)
{
    crn_buf preload = {0};
    const char *before = getenv("LD_PRELOAD");
    crn_put_text(&preload, "%s%s%s", r->library, before && *before ? ":" : "",
                 before ? before : "");
    const bool set = crn_buf_text(&preload) && setenv("LD_PRELOAD", (char *)preload.at, 1) == 0;
    crn_buf_done(&preload);
    if (!set || setenv("CAIRN_TRACE_OUT", r->path, 1) != 0 ||
        (r->precision && setenv("CAIRN_TRACE_PRECISION", r->precision, 1) != 0) ||
        (r->no_times && setenv("CAIRN_TRACE_TIMES", "0", 1) != 0) || set_handed_on(command) != 0)
        return cmd_fail("no memory for the environment");
    return CMD_YES;
}

/* ---- running it ---- */

/* These are the command's. */
static void signals_of_interest(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGTERM);
    sigaddset(ret, SIGHUP);
    sigaddset(ret, SIGINT);
    sigaddset(ret, SIGQUIT);
    sigaddset(ret, SIGCHLD);
}

/*
 * Until the command has ended, hand signals on to it. Not those of the terminal, which it gets
 * itself: of two, Open MPI's launcher takes the second as impatience.
 */
static int wait_for(pid_t child, int *ret_status)
{
    sigset_t set;
    siginfo_t info;
    pid_t ended;
    signals_of_interest(&set);
    while ((ended = waitpid(child, ret_status, WNOHANG)) == 0)
        if (sigwaitinfo(&set, &info) > 0 && info.si_signo != SIGCHLD && info.si_code != SI_KERNEL)
            kill(child, info.si_signo);
    return ended == child ? 0 : -1;
}

/* Run it; its exit code, as a shell would give it. */
static int run(const recording *r, char **command)
{
    int status;
    sigset_t set, was;
    signals_of_interest(&set);
    signal(SIGCHLD, SIG_DFL); /* where it is ignored, nobody learns how a child has ended */
    sigprocmask(SIG_BLOCK, &set, &was);
    pid_t child = fork();
    if (child < 0)
        return cmd_fail("cannot start '%s': %s", command[0], strerror(errno));
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &was, NULL);
        if (set_environment(r, command) == CMD_YES)
            execvp(command[0], command);
        cmd_fail("cannot start '%s': %s", command[0], strerror(errno));
        _exit(NOT_FOUND);
    }
    if (wait_for(child, &status) < 0)
        return cmd_fail("cannot wait for '%s': %s", command[0], strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- what is there before and after ---- */

/* A word that was mistyped must not cost an earlier run's trace. */
static bool can_be_found(const char *command)
{
    const char *folders = getenv("PATH");
    char path[2 * PATH_MAX];
    if (strchr(command, '/'))
        return access(command, X_OK) == 0;
    for (const char *at = folders ? folders : "/bin:/usr/bin", *end; at;
         at = *end ? end + 1 : NULL) {
        end = strchrnul(at, ':');
        snprintf(path, sizeof path, "%.*s%s%s", (int)(end - at), at, end > at ? "/" : "", command);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* The folder of an absolute name, with the slash. */
static void folder_of(const char *path, char buf[PATH_MAX])
{
    snprintf(buf, PATH_MAX, "%.*s", (int)(strrchr(path, '/') + 1 - path), path);
}

/* A trail is often made by the first run that is recorded into it: its folder is made before it. */
static bool can_be_made(const char *folder)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%.*s", (int)(strlen(folder) - 1), folder);
    if (access(folder, F_OK) == 0 || errno != ENOENT)
        return false;
    strrchr(parent, '/')[1] = 0;
    return access(parent, W_OK | X_OK) == 0;
}

/* Before a run of hours, not after it. */
static int check_output(const recording *r)
{
    char folder[PATH_MAX];
    struct stat st;
    folder_of(r->path, folder);
    if (lstat(r->path, &st) == 0 && !S_ISREG(st.st_mode))
        return cmd_fail("'%s' is something else than a file: name another one", r->out);
    if (access(folder, W_OK | X_OK) != 0 && !can_be_made(folder))
        return cmd_fail("'%s' cannot be written: %s", r->out, strerror(errno));
    return CMD_YES;
}

/* Is this the name of a trace, or of what one rank left of it, BASE or BASE.7, whole or not; or of
 * the note of a recorder that refused? */
static bool is_of(const char *name, const char *base)
{
    const size_t n = strlen(base);
    if (strncmp(name, base, n) != 0)
        return false;
    const char *rest = name + n;
    if (*rest == '.' && rest[1] >= '0' && rest[1] <= '9')
        rest += 1 + strspn(rest + 1, "0123456789");
    return !*rest || strcmp(rest, ".new") == 0 || strcmp(rest, CRN_MPI_REFUSED) == 0;
}

static int make_folder(const char *path)
{
    char folder[PATH_MAX];
    folder_of(path, folder);
    if (mkdir(folder, 0700) == 0 || errno == EEXIST)
        return CMD_YES;
    return cmd_fail("cannot make '%s': %s", folder, strerror(errno));
}

/* What an earlier run left would be taken for this one's. */
static int remove_old(const char *path)
{
    const char *base = strrchr(path, '/') + 1; /* it is absolute */
    char folder[PATH_MAX], name[2 * PATH_MAX];
    struct dirent *entry;
    struct stat st;
    int rc = 0;
    folder_of(path, folder);
    DIR *d = opendir(folder);
    while (d && rc == 0 && (entry = readdir(d))) {
        snprintf(name, sizeof name, "%s%s", folder, entry->d_name);
        if (is_of(entry->d_name, base) && lstat(name, &st) == 0 && S_ISREG(st.st_mode))
            rc = unlink(name);
    }
    if (d)
        closedir(d);
    return rc == 0 ? CMD_YES : cmd_fail("cannot replace '%s': %s", name, strerror(errno));
}

/* Did the recorder refuse, because the program's MPI is not its own? Its note says so. */
static bool was_refused(const recording *r)
{
    char path[PATH_MAX + sizeof CRN_MPI_REFUSED], note[1024];
    snprintf(path, sizeof path, "%s" CRN_MPI_REFUSED, r->path);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    const bool any = fgets(note, sizeof note, f) != NULL;
    fclose(f);
    unlink(path);
    cmd_fail("'%s' was not written: %s", r->out, any ? note : "the program's MPI is another one");
    return true;
}

static int nothing_written(const recording *r)
{
    return cmd_fail("'%s' was not written: unless the recorder says why, the command is no MPI "
                    "program, or ended early and in another way than it should",
                    r->out);
}

/* Say what there is now, on standard error: standard output is the program's. */
static int report(const recording *r)
{
    char size[CRN_NUMBER_TEXT];
    struct stat st;
    cairn_trace *left;
    cairn_trace_info info = {.struct_bytes = sizeof info};
    const bool written = stat(r->path, &st) == 0;
    if (written)
        fprintf(stderr, "cairn: wrote '%s', %s\n", r->out,
                crn_format_nbytes((uint64_t)st.st_size, size, sizeof size));
    else if (was_refused(r))
        return CMD_UNKNOWN;
    if (cairn_trace_open(r->path, &left) < 0)
        return written ? cmd_fail("%s", cairn_error_text()) : nothing_written(r);
    if (cairn_trace_describe(left, &info) == CAIRN_OK && info.incomplete)
        cmd_fail("'%s' is incomplete, but can be read: %s%s", r->out, info.incomplete,
                 info.ndropped > 0 ? "; CAIRN_TRACE_MEMORY allows for more" : "");
    cairn_trace_close(left);
    return CMD_YES;
}

static int check(recording *r)
{
    uint64_t precision;
    if (r->precision && cmd_trace_number("--precision", r->precision, 100, &precision) != CMD_YES)
        return CMD_UNKNOWN;
    if (absolute(r->out, r->path, sizeof r->path) != CMD_YES || check_output(r) != CMD_YES)
        return CMD_UNKNOWN;
    return find_library(r->library);
}

int cmd_trace_record(int argc, char **argv)
{
    recording r = {.out = "run.ctr"};
    int code;
    const cmd_option options[] = {
        CMD_TEXT('o', "output", "FILE", &r.out, "where the trace goes (run.ctr)"),
        CMD_TEXT('p', "precision", "P", &r.precision,
                 "per cent: 100 loses nothing but times, 0 keeps only the shape (100)"),
        CMD_FLAG(0, "no-times", &r.no_times, "record no times"), CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc < 1)
        return cmd_misuse(usage, "a command must be given");
    if (check(&r) != CMD_YES)
        return CMD_UNKNOWN;
    if (!can_be_found(argv[0])) {
        cmd_fail("cannot start '%s': %s", argv[0], strerror(errno));
        return NOT_FOUND;
    }
    if (make_folder(r.path) != CMD_YES || remove_old(r.path) != CMD_YES)
        return CMD_UNKNOWN;
    code = run(&r, argv);
    return report(&r) == CMD_YES || code != 0 ? code : CMD_UNKNOWN;
}
