/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Results. Every call that can fail returns a cairn_status: 0 for success, a positive value for an
 * answer that is not an error, a negative code for a failure. Codes are for decisions that a
 * program can take; the sentence for a person is kept beside them (cairn_last_error,
 * cairn_error_text). The values are pinned: they never change between releases.
 *
 * What a call would fill in is untouched when it fails, unless it says otherwise. The library never
 * prints, exits or aborts. Any thread may call it (with a communicator: any that may call MPI);
 * only what a call has made, a session, a trail or a trace, is used by one thread at a time.
 */
#ifndef CAIRN_ERROR_H
#define CAIRN_ERROR_H

#include <cairn/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cairn_status {
    CAIRN_OK = 0,
    CAIRN_NOTHING = 1, /* there is nothing to do or to resume: not an error */

    CAIRN_ENOMEM = -1,       /* no memory; nothing was changed */
    CAIRN_EIO = -2,          /* the system failed a read, a write or another call */
    CAIRN_ENOSPC = -3,       /* no room, or over quota; the call may succeed later */
    CAIRN_ECORRUPT = -4,     /* what was read is not what was written */
    CAIRN_ENOTFOUND = -5,    /* no such trail, run, mark, variable or file */
    CAIRN_EMISMATCH = -6,    /* what is there does not fit what was asked: type, shape, identity */
    CAIRN_EBUSY = -7,        /* in use by another process, or not finished yet */
    CAIRN_EUNSUPPORTED = -8, /* a newer format, or something that this build or machine lacks */
    CAIRN_EINVAL = -9,       /* a wrong argument, option or configuration value */
    CAIRN_EPEER = -10,       /* another rank failed; its story is in the sentence */
    CAIRN_EINTERNAL = -11,   /* a bug in Cairn: please report it */
    CAIRN_ECANCELED = -12    /* given up because the caller asked for it */
} cairn_status;

/*
 * The name of a status in a few lower-case words, such as "no room". Not collective. Never fails:
 * an unknown value gives "unknown status".
 */
CAIRN_API const char *cairn_strerror(int status);

/*
 * The sentence for a person about the last call of this library that failed on the calling thread:
 * what, where, why. Valid until the thread's next failure. Not collective. Never NULL.
 */
CAIRN_API const char *cairn_error_text(void);

#ifdef __cplusplus
}
#endif
#endif
