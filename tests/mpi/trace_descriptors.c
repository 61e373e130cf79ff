/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ways in which a program comes by descriptors and loses them: each rank writes 8 KiB to files
 * and 2 KiB to pipes that have the numbers of files that were closed.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 1024, HIGH = 200 };

static void must(int ok)
{
    if (!ok)
        abort();
}

static void put(int fd)
{
    static char piece[PIECE];
    must(write(fd, piece, PIECE) == PIECE);
}

/* A number that a file had is that of a pipe now. */
static void use_again(int fd)
{
    int end[2];
    must(pipe(end) == 0 && dup2(end[1], fd) == fd);
    put(fd);
    must(close(end[0]) == 0 && close(end[1]) == 0 && close(fd) == 0);
}

static void copies(int fd)
{
    int low = fcntl(fd, F_DUPFD, HIGH), high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH + 1);
    must(low == HIGH && high == HIGH + 1 && dup3(fd, HIGH + 2, O_CLOEXEC) == HIGH + 2);
    for (int copy = low; copy <= HIGH + 2; copy++)
        put(copy);
    must(close_range(HIGH, HIGH + 1, 0) == 0);
    use_again(HIGH);
    put(HIGH + 2);
    closefrom(HIGH + 2);
    use_again(HIGH + 2);
}

/* What the child closes, it alone has closed. */
static void child(int fd)
{
    pid_t pid = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    if (pid == 0) {
        close(fd); // NOLINT(clang-analyzer-unix.Vfork): as programs do
        _exit(0);
    }
    must(pid > 0 && waitpid(pid, NULL, 0) == pid);
    put(fd);
}

int main(int argc, char **argv)
{
    char one[] = "one-XXXXXX", two[] = "two-XXXXXX.txt";
    MPI_Init(&argc, &argv);
    int fd = mkstemp(one), other = mkostemps(two, 4, O_APPEND);
    must(fd >= 0 && other >= 0);
    put(fd);
    put(other);
    put(other);
    copies(fd);
    child(fd);
    must(close(fd) == 0 && close(other) == 0 && unlink(one) == 0 && unlink(two) == 0);
    MPI_Finalize();
    return 0;
}
