/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn trace record: run a command with libcairn-trace preloaded. The environment does all: the
 * launcher hands it on to the ranks.
 */
#include "cmd/cmd_trace.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "cairn trace record [-o FILE] [--precision P] [--no-times] -- COMMAND [ARGUMENT ...]";

#define LIBRARY "libcairn-trace.so"

/* Beside the program as it is installed, or as it is built. */
static int find_library(char buf[PATH_MAX])
{
    static const char *const folders[] = {"../lib", ("../" CAIRN_LIBDIR), "."};
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return cmd_fail("cannot tell where this program is: %s", strerror(errno));
    self[n] = 0;
    char *slash = strrchr(self, '/');
    *slash = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s/" LIBRARY, self, folders[i]);
        if (realpath(path, buf))
            return CMD_YES;
    }
    return cmd_fail("no '" LIBRARY "' in '%s/../lib': is Cairn installed whole?", self);
}

/* A name that means the same in every folder that the program may go to. */
static int absolute(const char *name, char *buf, size_t cap)
{
    char here[PATH_MAX];
    bool whole = name[0] == '/';
    if (!whole && !getcwd(here, sizeof here))
        return cmd_fail("cannot tell which folder this is: %s", strerror(errno));
    int n = snprintf(buf, cap, "%s%s%s", whole ? "" : here, whole ? "" : "/", name);
    return (size_t)n < cap ? CMD_YES : cmd_fail("'%s' is too long for a name", name);
}

typedef struct recording {
    const char *out, *precision;
    bool no_times;
    char library[PATH_MAX], path[PATH_MAX];
} recording;

/*
 * Open MPI hands to other machines only those variables that it is told, by -x or by this one, not
 * by both.
 */
static int set_handed_on(char **command)
{
    for (char **word = command; *word; word++)
        if (strcmp(*word, "-x") == 0)
            return 0;
    return setenv("OMPI_MCA_mca_base_env_list",
                  "LD_PRELOAD;CAIRN_TRACE_OUT;CAIRN_TRACE_PRECISION;CAIRN_TRACE_TIMES", 0);
}

static int set_environment(const recording *r, char **command)
{
    char preload[2 * PATH_MAX];
    const char *before = getenv("LD_PRELOAD");
    snprintf(preload, sizeof preload, "%s%s%s", r->library, before && *before ? ":" : "",
             before ? before : "");
    if (setenv("LD_PRELOAD", preload, 1) != 0 || setenv("CAIRN_TRACE_OUT", r->path, 1) != 0 ||
        setenv("CAIRN_TRACE_PRECISION", r->precision ? r->precision : "100", 1) != 0 ||
        setenv("CAIRN_TRACE_TIMES", r->no_times ? "0" : "1", 1) != 0 || set_handed_on(command) != 0)
        return cmd_fail("no memory for the environment");
    return CMD_YES;
}

/* Run it; its exit code, as a shell would give it. */
static int run(const recording *r, char **command)
{
    int status;
    pid_t child = fork();
    if (child < 0)
        return cmd_fail("cannot start '%s': %s", command[0], strerror(errno));
    if (child == 0) {
        if (set_environment(r, command) == CMD_YES)
            execvp(command[0], command);
        cmd_fail("cannot start '%s': %s", command[0], strerror(errno));
        _exit(127);
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return cmd_fail("cannot wait for '%s': %s", command[0], strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Is this the name of a trace, or of what one rank left of it: BASE or BASE.7? */
static bool is_of(const char *name, const char *base)
{
    const size_t n = strlen(base);
    if (strncmp(name, base, n) != 0)
        return false;
    const char *rest = name + n;
    return !*rest || (*rest == '.' && rest[1] && !rest[1 + strspn(rest + 1, "0123456789")]);
}

/* What an earlier run left would be taken for this one's. */
static int remove_old(const char *path)
{
    const char *base = strrchr(path, '/') + 1; /* it is absolute */
    char folder[PATH_MAX], name[2 * PATH_MAX];
    struct dirent *entry;
    struct stat st;
    int rc = 0;
    snprintf(folder, sizeof folder, "%.*s", (int)(base - path), path);
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

/* Say what there is now, on standard error: standard output is the program's. */
static void report(const recording *r)
{
    char size[CRN_NUMBER_TEXT];
    struct stat st;
    cairn_trace *left;
    cairn_trace_info info = {.struct_bytes = sizeof info};
    if (stat(r->path, &st) == 0) {
        fprintf(stderr, "cairn: wrote '%s', %s\n", r->out,
                crn_format_nbytes((uint64_t)st.st_size, size, sizeof size));
        return;
    }
    if (cairn_trace_open(r->path, &left) < 0) {
        cmd_fail("'%s' was not written: the command is no MPI program, or was killed early",
                 r->out);
        return;
    }
    if (cairn_trace_describe(left, &info) == CAIRN_OK && info.incomplete)
        cmd_fail("'%s' is incomplete, but can be read: %s", r->out, info.incomplete);
    cairn_trace_close(left);
}

static int check(recording *r)
{
    uint64_t precision;
    if (r->precision && cmd_trace_number("--precision", r->precision, 100, &precision) != CMD_YES)
        return CMD_UNKNOWN;
    if (absolute(r->out, r->path, sizeof r->path) != CMD_YES)
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
    if (remove_old(r.path) != CMD_YES)
        return CMD_UNKNOWN;
    code = run(&r, argv);
    report(&r);
    return code;
}
