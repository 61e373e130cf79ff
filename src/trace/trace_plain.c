/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The plain log: each event as a line, in order, one file per thread. What tests compare a folded
 * trace with, and measurements its size.
 */
#include "trace/trace.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

static FILE *open_log(const crn_thread *t)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%d.%u.log", getenv("CAIRN_TRACE_PLAIN"), crn_rec.rank, t->lane);
    int fd =
        (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    FILE *log = fd < 0 ? NULL : fdopen(fd, "w"); /* an open here would count as a handler's */
    if (log)
        setvbuf(log, NULL, _IOLBF, 0); /* so that a child of fork inherits nothing to write */
    return log;
}

void crn_plain_write(crn_thread *t, const crn_record *r)
{
    crn_buf b = {0};
    if (!t->plain)
        t->plain = open_log(t);
    if (!t->plain)
        return;
    crn_rec_lock();
    crn_trace_texts names = crn_names_of_tables(&crn_rec.tables);
    crn_text_record(&b, &names, r);
    crn_rec_unlock();
    crn_put_u8(&b, '\n');
    if (!b.failed)
        fwrite(b.at, 1, b.n, t->plain);
    crn_buf_done(&b);
}
