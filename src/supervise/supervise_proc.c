/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The processes of this machine, from /proc.
 */
#include "supervise/supervise.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 1 << 22 };

/* "12 (name) S 7 ...", where a name may have any characters; its birth is the 22nd field. */
static bool parse_process(const char *text, crn_proc *ret)
{
    enum { FIRST = 4, LAST = 22 };
    long long field[LAST + 1];
    const char *name_end = strrchr(text, ')');
    if (!name_end || strlen(name_end) < 4)
        return false;
    char *at = (char *)name_end + 3, *end;
    for (int i = FIRST; i <= LAST; i++, at = end) {
        field[i] = strtoll(at, &end, 10);
        if (end == at)
            return false;
    }
    *ret = (crn_proc){.pid = (pid_t)strtol(text, NULL, 10),
                      .parent = (pid_t)field[FIRST],
                      .born = (uint64_t)field[LAST],
                      .ended = name_end[2] == 'Z' || name_end[2] == 'X'};
    return true;
}

static bool read_process(const char *pid, crn_proc *ret)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return parse_process(text, ret);
}

void crn_proc_list(crn_procs *ret)
{
    DIR *dir = opendir("/proc");
    crn_proc p;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && read_process(e->d_name, &p) &&
            crn_vec_push(ret, p) < 0)
            break; /* the others are found when these are gone */
    if (dir)
        closedir(dir);
}

bool crn_proc_self(crn_proc *ret)
{
    return read_process("self", ret);
}

bool crn_proc_is_alive(pid_t pid, uint64_t born)
{
    char name[32];
    crn_proc now;
    snprintf(name, sizeof name, "%ld", (long)pid);
    return read_process(name, &now) && now.born == born && !now.ended;
}

char *crn_proc_environment(pid_t pid, size_t *ret_n)
{
    char path[64], *text;
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || crn_alloc(&text, ENVIRONMENT_MAX) < 0) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    size_t n = 0;
    for (ssize_t k; (k = read(fd, text + n, ENVIRONMENT_MAX - 1 - n)) > 0;)
        n += (size_t)k;
    close(fd);
    text[n] = 0;
    *ret_n = n;
    return text;
}

const char *crn_environment_find(const char *text, size_t n, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = text; at < text + n; at += strlen(at) + 1)
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return at + len + 1;
    return "";
}
