/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread's error record: written where something fails, taken at the public line. Programs
 * print its text, which may quote names from files that others wrote: it never has what may not be
 * shown.
 */
#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Each thread has its own, so that a background thread's failure never mixes with the caller's. */
static _Thread_local crn_err record;

static void start(const char *file, int line, cairn_status code, int sys)
{
    record.code = code;
    record.sys = sys;
    record.rank = -1;
    record.nframes = 0;
    crn_err_frame(file, line);
}

cairn_status crn_err_raise(const char *file, int line, cairn_status code, int sys, const char *fmt,
                           ...)
{
    int keep = errno;
    va_list ap;
    start(file, line, code, sys);
    va_start(ap, fmt);
    vsnprintf(record.text, sizeof record.text, fmt, ap);
    va_end(ap);
    crn_text_clean(record.text);
    errno = keep;
    return code;
}

static cairn_status code_of(int sys)
{
    switch (sys) {
    case ENOSPC:
    case EDQUOT:
        return CAIRN_ENOSPC;
    case ENOENT:
        return CAIRN_ENOTFOUND;
    case ENOMEM:
        return CAIRN_ENOMEM;
    default:
        return CAIRN_EIO;
    }
}

cairn_status crn_err_raise_sys(const char *file, int line, int sys, const char *fmt, ...)
{
    va_list ap;
    start(file, line, code_of(sys), sys);
    va_start(ap, fmt);
    vsnprintf(record.text, sizeof record.text, fmt, ap);
    va_end(ap);
    size_t n = strlen(record.text);
    snprintf(record.text + n, sizeof record.text - n, ": %s", CRN_SYS_TEXT(sys));
    crn_text_clean(record.text);
    errno = sys;
    return record.code;
}

void crn_err_frame(const char *file, int line)
{
    if (record.nframes == CRN_ERR_FRAMES)
        return;
    record.frame[record.nframes].file = file;
    record.frame[record.nframes].line = line;
    record.nframes++;
}

void crn_err_prefix(const char *fmt, ...)
{
    char words[CRN_ERR_TEXT], text[CRN_ERR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    memcpy(text, record.text, sizeof text);
    size_t n = strlen(words);
    memcpy(record.text, words, n + 1);
    snprintf(record.text + n, sizeof record.text - n, "%s", text);
    crn_text_clean(record.text);
}

void crn_err_take(crn_err *ret)
{
    *ret = record;
    memset(&record, 0, sizeof record);
}

cairn_status crn_err_give(const crn_err *err)
{
    record = *err;
    return record.code;
}

const crn_err *crn_err_peek(void)
{
    return &record;
}

void crn_err_format(const crn_err *err, bool frames, char *buf, size_t nbytes)
{
    int n = snprintf(buf, nbytes, "%s", err->text[0] ? err->text : cairn_strerror(err->code));
    for (int i = 0; frames && i < err->nframes && n >= 0 && (size_t)n < nbytes; i++)
        n += snprintf(buf + n, nbytes - (size_t)n, "%s%s:%d", i ? " < " : " [", err->frame[i].file,
                      err->frame[i].line);
    if (frames && err->nframes > 0 && n >= 0 && (size_t)n < nbytes)
        snprintf(buf + n, nbytes - (size_t)n, "]");
}
