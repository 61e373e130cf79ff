/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A recorder in a program of another MPI stands aside before any of its wrappers is used: their
 * arguments and the calls below them mean other things there. Since a library that is loaded cannot
 * leave, the program is started anew without it, before its main.
 */
#include "trace/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef OPEN_MPI
static const crn_mpi_kind ours = CRN_MPI_OPEN;
#else
static const crn_mpi_kind ours = CRN_MPI_MPICH;
#endif

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Take what has this file's name out of a list by blanks or colons, in place. True: it was there.
 */
static bool take_out(char *list, const char *name)
{
    bool found = false;
    char *to = list;
    for (char *at = list; *at;) {
        size_t n = strcspn(at, ": ");
        const size_t behind = n + (at[n] != '\0');
        char *end = at + n, was = *end;
        *end = '\0';
        const bool it = n > 0 && strcmp(last_part(at), name) == 0;
        *end = was;
        found |= it;
        if (!it) {
            memmove(to, at, behind);
            to += behind;
        }
        at += behind;
    }
    *to = '\0';
    return found;
}

/* False: the recorder is not preloaded, but linked. */
static bool leave_preload(void)
{
    Dl_info self;
    char *list = NULL;
    const char *now = getenv("LD_PRELOAD");
    if (!now || dladdr((const void *)&ours, &self) == 0 || crn_strdup(now, &list) < 0)
        return false;
    bool done = take_out(list, last_part(self.dli_fname)) &&
                (*list ? setenv("LD_PRELOAD", list, 1) : unsetenv("LD_PRELOAD")) == 0;
    free(list);
    return done;
}

/* The launcher's rank of this process; one that was started alone is the first. */
static bool is_first(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                        "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i]);
        if (rank)
            return strcmp(rank, "0") == 0;
    }
    return true;
}

/* For 'cairn trace record', which prints it last: the output of the ranks is often lost among the
 * program's own. */
static void leave_note(const char *sentence)
{
    const char *out = getenv("CAIRN_TRACE_OUT");
    char *path = NULL;
    if (!out || !*out || asprintf(&path, "%s" CRN_MPI_REFUSED, out) < 0)
        return;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    free(path);
    if (fd < 0)
        return;
    (void)!write(fd, sentence, strlen(sentence)); /* a cut note still says that it was refused */
    close(fd);
}

void crn_rec_refuse(const char *format, ...)
{
    char *sentence = NULL;
    va_list ap;
    va_start(ap, format);
    const int n = vasprintf(&sentence, format, ap);
    va_end(ap);
    if (n < 0)
        return;
    if (is_first()) {
        fprintf(stderr, "cairn: nothing is recorded: %s\n", sentence);
        leave_note(sentence);
    }
    free(sentence);
}

/* glibc hands the program's arguments to constructors. */
__attribute__((constructor)) static void stand_aside(int argc, char **argv)
{
    const crn_mpi_kind theirs = crn_mpi_of_program();
    (void)argc;
    if (theirs == CRN_MPI_UNKNOWN || theirs == ours)
        return;
    crn_rec_refuse(
        "this recorder is for %s, but '%s' uses %s; use the cairn that was built with %s",
        crn_mpi_name(ours), argv[0], crn_mpi_name(theirs), crn_mpi_name(theirs));
    if (!leave_preload()) {
        fprintf(stderr, "cairn: '%s' is linked with the recorder and cannot run with it\n",
                argv[0]);
        _exit(126);
    }
    execv("/proc/self/exe", argv);
    fprintf(stderr, "cairn: cannot start '%s' without the recorder: %s\n", argv[0],
            strerror(errno));
    _exit(126);
}
