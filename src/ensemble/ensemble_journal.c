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

/* A test names a line before, or after, which the process ends as by SIGKILL, of the first server,
 * and one of each later server if it likes: journal:LINE[:LATER[:after]]. */
static void set_fault(crn_journal *j)
{
    const char *fault = getenv("CAIRN_ENSEMBLE_FAULT"), *job = getenv("CAIRN_ENSEMBLE_JOB");
    unsigned first = 0, later = 0;
    char when[8] = "";
    if (!fault || !job || sscanf(fault, "journal:%u:%u:%7s", &first, &later, when) < 1)
        return;
    j->die_at = strcmp(job, "s1") == 0 ? first : later;
    j->dies_after = strcmp(when, "after") == 0;
}

static void end_here(const crn_journal *j, bool after)
{
    if (j->nlines == j->die_at && j->dies_after == after)
        (void)raise(SIGKILL);
}

/* --- reading -------------------------------------------------------------------------------- */

/* A line is TEXT SPACE DIGEST NEWLINE; true and cut to its text if it is whole. */
static bool check_line(char *line, size_t n)
{
    char *end;
    if (n < DIGEST + 3 || line[n - 1] != '\n' || line[n - DIGEST - 2] != ' ')
        return false;
    line[n - 1] = 0;
    const size_t text = n - DIGEST - 2;
    const uint64_t digest = strtoull(line + text + 1, &end, 16);
    if (end != line + n - 1 || crn_hash_bytes(line, text) != digest)
        return false;
    line[text] = 0;
    return true;
}

/* ret_whole: bytes up to the end of the last whole line. One that is not may be the last one only:
 * it was under way when its server died. */
static cairn_status read_lines(const crn_journal *j, FILE *f, crn_journal_fn *fn, void *arg,
                               off_t *ret_whole)
{
    char *line = NULL;
    size_t cap = 0, number = 0;
    ssize_t n;
    cairn_status rc = CAIRN_OK;
    *ret_whole = 0;
    while (rc == CAIRN_OK && (n = getline(&line, &cap, f)) > 0) {
        number++;
        if (check_line(line, (size_t)n)) {
            rc = fn(arg, line);
            *ret_whole += n;
        } else if (getc(f) != EOF) {
            rc = crn_fail(CAIRN_ECORRUPT,
                          "line %zu of '%s' is damaged: the study cannot go on from here", number,
                          j->path);
        }
    }
    if (rc == CAIRN_OK && ferror(f))
        rc = crn_fail_sys(errno, "cannot read '%s'", j->path);
    free(line);
    return rc;
}

cairn_status crn_journal_read(const crn_journal *j, FILE *f, crn_journal_fn *fn, void *arg)
{
    off_t whole;
    CRN_TRY(read_lines(j, f, fn, arg, &whole));
    CRN_FAIL_IF(whole == 0 && ftello(f) > 0, CAIRN_ECORRUPT,
                "'%s' is cut in its beginning: the study cannot go on from here", j->path);
    if (j->fd >= 0 && ftruncate(j->fd, whole) < 0)
        return crn_fail_sys(errno, "cannot cut '%s'", j->path);
    return whole > 0 ? CAIRN_OK : CAIRN_NOTHING;
}

cairn_status crn_journal_open(crn_journal *j, const crn_study *study, crn_journal_fn *fn, void *arg)
{
    *j = (crn_journal){.study = study, .fd = -1};
    set_fault(j);
    CRN_TRY(crn_study_path(study, "journal", &j->path));
    j->fd = open(j->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *f = j->fd < 0 ? NULL : fopen(j->path, "re");
    if (!f)
        return crn_fail_sys(errno, "cannot open '%s'", j->path);
    cairn_status rc = crn_journal_read(j, f, fn, arg);
    fclose(f);
    return rc;
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
    j->nlines++;
    end_here(j, false);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK && write(j->fd, b.at, b.n) != (ssize_t)b.n)
        rc = crn_fail_sys(errno ? errno : ENOSPC, "cannot write to '%s'", j->path);
    end_here(j, true);
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
    j->nlines++;
    end_here(j, false);
    CRN_TRY(crn_buf_status(lines));
    CRN_TRY(crn_study_write(j->study, "journal", crn_buf_text(lines)));
    end_here(j, true);
    int fd = open(j->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return crn_fail_sys(errno, "cannot open '%s'", j->path);
    close(j->fd);
    j->fd = fd;
    j->nunsynced = 0;
    return CAIRN_OK;
}
