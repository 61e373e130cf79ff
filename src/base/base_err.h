/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The error idiom. A function that can fail returns cairn_status. Where it fails, CRN_FAIL_IF (or
 * crn_fail) writes the story of the failure into the calling thread's record; on the way up,
 * CRN_TRY forwards the code and adds a frame. The public line, or the thread that did the work,
 * takes the record away with crn_err_take and keeps it in its own object, so no state outlives a
 * call.
 *
 *     static cairn_status load(...)
 *     {
 *         CRN_FAIL_IF(n > MAX, CAIRN_ECORRUPT, "'%s': %zu marks, at most %d are possible", ...);
 *         CRN_TRY(crn_file_read(file, buf, n, 0));
 *         return CAIRN_OK;
 *     }
 *
 * With resources held, the same with one forward goto:
 *
 *     CRN_TRY_OUT(rc, crn_file_read(...));     jumps to 'out' with rc set
 *
 * Messages: lower case, no full stop, the subject in quotes: "cannot open '%s'".
 */
#ifndef CAIRN_BASE_ERR_H
#define CAIRN_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

#include <cairn/error.h>

enum { CRN_ERR_TEXT = 512, CRN_ERR_FRAMES = 12 };

typedef struct crn_err {
    cairn_status code;
    int sys;  /* errno of the failing system call, or 0 */
    int rank; /* the rank that failed first, or -1 */
    char text[CRN_ERR_TEXT];
    int nframes;
    struct {
        const char *file;
        int line;
    } frame[CRN_ERR_FRAMES]; /* innermost first */
} crn_err;

/*
 * Record a failure on this thread and return code. crn_fail_sys picks the code from errno
 * (ENOSPC and EDQUOT give CAIRN_ENOSPC, ENOENT CAIRN_ENOTFOUND, ENOMEM CAIRN_ENOMEM, others
 * CAIRN_EIO) and appends ": " and its text. Both keep errno.
 */
#define crn_fail(code, ...)    crn_err_raise(__FILE__, __LINE__, (code), 0, __VA_ARGS__)
#define crn_fail_sys(sys, ...) crn_err_raise_sys(__FILE__, __LINE__, (sys), __VA_ARGS__)

cairn_status crn_err_raise(const char *file, int line, cairn_status code, int sys, const char *fmt,
                           ...) CAIRN_PRINTF(5);
cairn_status crn_err_raise_sys(const char *file, int line, int sys, const char *fmt, ...)
    CAIRN_PRINTF(4);

/* Append a frame to this thread's record. */
void crn_err_frame(const char *file, int line);

/* Put words before the text of this thread's record, such as "mark 12, level partner: ". */
void crn_err_prefix(const char *fmt, ...) CAIRN_PRINTF(1);

/* Copy this thread's record to *ret and clear it. */
void crn_err_take(crn_err *ret);

/* Make *err this thread's record again and return its code. */
cairn_status crn_err_give(const crn_err *err);

/* This thread's record: valid until its next failure. Never NULL. */
const crn_err *crn_err_peek(void);

/* What an errno says, in any thread; the memory lasts as long as the statement's block. */
#define CRN_SYS_TEXT(sys) strerror_r((sys), (char[64]){0}, 64)

/* Write "text (file:line < file:line ...)" into buf. */
void crn_err_format(const crn_err *err, bool frames, char *buf, size_t nbytes);

#define CRN_TRY(expr)                                                                              \
    do {                                                                                           \
        cairn_status crn_rc_ = (expr);                                                             \
        if (crn_rc_ < 0) {                                                                         \
            crn_err_frame(__FILE__, __LINE__);                                                     \
            return crn_rc_;                                                                        \
        }                                                                                          \
    } while (0)

#define CRN_TRY_OUT(rc, expr)                                                                      \
    do {                                                                                           \
        (rc) = (expr);                                                                             \
        if ((rc) < 0) {                                                                            \
            crn_err_frame(__FILE__, __LINE__);                                                     \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

#define CRN_FAIL_IF(cond, code, ...)                                                               \
    do {                                                                                           \
        if (cond)                                                                                  \
            return crn_fail(code, __VA_ARGS__);                                                    \
    } while (0)

#endif
