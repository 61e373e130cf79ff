/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GROUP = 256, GROUP_NS = 1000000000, DIGEST = 16, LINE = 512 };

/* A test names a line, of the first server, before which the process ends as by SIGKILL. */
static uint64_t fault_at(void)
{
    const char *fault = getenv("CAIRN_ENSEMBLE_FAULT"), *job = getenv("CAIRN_ENSEMBLE_JOB");
    if (!fault || !job || strcmp(job, "s1") != 0 || strncmp(fault, "journal:", 8) != 0)
        return 0;
    return strtoull(fault + 8, NULL, 10);
}

static void count_line(crn_journal *j)
{
    if (++j->nlines == j->die_at)
        (void)raise(SIGKILL);
}

/* --- reading -------------------------------------------------------------------------------- */

/* A line is TEXT SPACE DIGEST; true and cut to its text if it is whole. */
static bool check_line(char *line)
{
    const size_t n = strlen(line);
    char *end;
    if (n < DIGEST + 2 || line[n - DIGEST - 1] != ' ')
        return false;
    const uint64_t digest = strtoull(line + n - DIGEST, &end, 16);
    if (*end || crn_hash_bytes(line, n - DIGEST - 1) != digest)
        return false;
    line[n - DIGEST - 1] = 0;
    return true;
}

/* *ret_whole: bytes up to the end of the last whole line. */
static cairn_status read_lines(crn_journal *j, char *text, crn_journal_fn *fn, void *arg,
                               size_t *ret_whole)
{
    size_t number = 0;
    char *line = text, *end;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        number++;
        if (!check_line(line)) {
            CRN_FAIL_IF(strchr(end + 1, '\n'), CAIRN_ECORRUPT,
                        "line %zu of '%s' is damaged: the study cannot go on from here", number,
                        j->path);
            break;
        }
        CRN_TRY(fn(arg, line));
    }
    *ret_whole = (size_t)(line - text);
    return CAIRN_OK;
}

cairn_status crn_journal_open(crn_journal *j, const crn_study *study, crn_journal_fn *fn, void *arg)
{
    char *text = NULL;
    size_t whole = 0;
    *j = (crn_journal){.study = study, .fd = -1, .die_at = fault_at()};
    CRN_TRY(crn_study_path(study, "journal", &j->path));
    cairn_status rc = crn_study_read(study->dir, "journal", &text);
    const bool fresh = rc == CAIRN_ENOTFOUND || (rc == CAIRN_OK && !text[0]);
    if (rc == CAIRN_OK)
        rc = read_lines(j, text, fn, arg, &whole);
    free(text);
    if (rc < 0 && !fresh)
        return rc;
    j->fd = open(j->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (j->fd < 0 || ftruncate(j->fd, (off_t)whole) < 0)
        return crn_fail_sys(errno, "cannot open '%s'", j->path);
    return fresh ? CAIRN_NOTHING : CAIRN_OK;
}

void crn_journal_close(crn_journal *j)
{
    if (j->fd >= 0 && j->path)
        close(j->fd);
    free(j->path);
    j->path = NULL;
}

/* --- writing -------------------------------------------------------------------------------- */

static void put_line(crn_buf *b, const char *fmt, va_list ap)
{
    char line[LINE];
    int n = vsnprintf(line, sizeof line, fmt, ap);
    n = CRN_MIN(n, (int)sizeof line - 1);
    crn_put_bytes(b, line, (size_t)n);
    crn_put_text(b, " %016" PRIx64 "\n", crn_hash_bytes(line, (size_t)n));
}

void crn_journal_line(crn_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put_line(b, fmt, ap);
    va_end(ap);
}

cairn_status crn_journal_add(crn_journal *j, const char *fmt, ...)
{
    crn_buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    put_line(&b, fmt, ap);
    va_end(ap);
    count_line(j);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK && write(j->fd, b.at, b.n) != (ssize_t)b.n)
        rc = crn_fail_sys(errno ? errno : ENOSPC, "cannot write to '%s'", j->path);
    crn_buf_done(&b);
    if (j->nunsynced++ == 0)
        j->written_ns = crn_now_ns();
    return rc;
}

cairn_status crn_journal_sync(crn_journal *j, bool due)
{
    if (j->nunsynced == 0 ||
        (due && j->nunsynced < GROUP && crn_now_ns() < j->written_ns + GROUP_NS))
        return CAIRN_OK;
    if (fdatasync(j->fd) < 0)
        return crn_fail_sys(errno, "cannot sync '%s'", j->path);
    j->nunsynced = 0;
    return CAIRN_OK;
}

cairn_status crn_journal_replace(crn_journal *j, crn_buf *lines)
{
    count_line(j);
    CRN_TRY(crn_buf_status(lines));
    CRN_TRY(crn_study_write(j->study, "journal", crn_buf_text(lines)));
    int fd = open(j->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return crn_fail_sys(errno, "cannot open '%s'", j->path);
    close(j->fd);
    j->fd = fd;
    j->nunsynced = 0;
    return CAIRN_OK;
}
