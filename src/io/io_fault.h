/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Faults on purpose. Tests arm one plan for the process, by call or by the environment variable
 * CAIRN_FAULT="<where>:<n>:<how>", such as "write:17:enospc": the n-th operation of that kind, from
 * 1, misbehaves; ":<count>" behind it says how many do, 0 for all. They can also watch every
 * operation that changes a disk, in order, to rebuild what a crash would have left. With nothing
 * armed the cost is one relaxed load per operation.
 */
#ifndef CAIRN_IO_FAULT_H
#define CAIRN_IO_FAULT_H

#include "io/io.h"

typedef enum crn_fault_where {
    CRN_FAULT_NONE,
    CRN_FAULT_ANY,    /* every operation below counts, stages do not */
    CRN_FAULT_WRITE,  /* also truncation */
    CRN_FAULT_SYNC,   /* of files and of directories */
    CRN_FAULT_RENAME, /* also unlinking */
    CRN_FAULT_READ,
    CRN_FAULT_OPEN,   /* of files, for reading too, and the making of directories */
    CRN_FAULT_STAGES, /* and on: the stages of io.h; only exit, kill and slow strike there */
    CRN_FAULT_WHERES = CRN_FAULT_STAGES + CRN_NSTAGES
} crn_fault_where;

typedef enum crn_fault_how {
    CRN_FAULT_EIO,
    CRN_FAULT_ENOSPC,
    CRN_FAULT_SHORT, /* the first call moves only part of the bytes; where none move, nothing */
    CRN_FAULT_TORN,  /* some of the 512-byte sectors are written, then EIO; elsewhere EIO */
    CRN_FAULT_EXIT,  /* _exit(86) before the operation */
    CRN_FAULT_KILL,  /* SIGKILL to the own process before the operation */
    CRN_FAULT_SLOW   /* a tenth of a second before the operation, which then goes well */
} crn_fault_how;

typedef struct crn_fault {
    crn_fault_where where;
    crn_fault_how how;
    uint64_t at;    /* from 1; 0: never, only count */
    uint64_t count; /* how many operations from at on misbehave; 0: all */
} crn_fault;

/*
 * An operation counts once, when it is submitted or called, however many system calls it takes. An
 * injected failure means that nothing was sent to the kernel. Any thread may call these.
 */
void crn_fault_arm(const crn_fault *plan); /* NULL disarms; resets the counter */
uint64_t crn_fault_seen(void);             /* operations of the armed kind since then */

/*
 * Passed to a watcher before the operation happens; operations that an armed plan fails do not
 * happen. Opening counts when it may create.
 */
typedef struct crn_fault_event {
    enum {
        CRN_SEEN_OPEN,
        CRN_SEEN_WRITE,
        CRN_SEEN_SYNC,
        CRN_SEEN_TRUNCATE,
        CRN_SEEN_RENAME,
        CRN_SEEN_UNLINK,
        CRN_SEEN_MKDIR,
        CRN_SEEN_DIRSYNC
    } kind;
    int dirfd;        /* where the name is, as given at its opening; for DIRSYNC the directory */
    const char *name; /* the file; the old name for RENAME; NULL for DIRSYNC */
    const char *to;   /* the new name for RENAME */
    const crn_file *file; /* for WRITE, SYNC and TRUNCATE */
    uint64_t off;         /* for WRITE; the new length for TRUNCATE */
    size_t nbytes;
    const struct iovec *iov;
    int niov;
} crn_fault_event;

typedef void crn_fault_watcher(void *arg, const crn_fault_event *event);
void crn_fault_watch(crn_fault_watcher *watcher, void *arg); /* NULL: stop. One thread only */

#endif
