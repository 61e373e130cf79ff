/* SPDX-License-Identifier: BSD-3-Clause
 *
 * io: files, many asynchronous reads and writes in flight, atomic replacement. Row 1.
 *
 * Everything that Cairn writes passes here, so here is also the one place where tests inject faults
 * and watch what reaches the disk (io_fault.h). Short transfers, EINTR and EAGAIN are handled once,
 * inside: an operation either moves all its bytes or fails.
 *
 * A crn_io is a queue of operations over io_uring, or over a pool of threads where the kernel
 * refuses io_uring. It is used by one thread at a time, and a thread that has submitted must not
 * end before its operations were waited for: the kernel would cancel them. Files may be shared by
 * several queues and threads.
 */
#ifndef CAIRN_IO_H
#define CAIRN_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/base.h"

/* --- files and directories ------------------------------------------------------------------ */

typedef struct crn_file crn_file;

enum {
    CRN_READ = 1,
    CRN_WRITE = 2,
    CRN_CREATE = 4, /* the caller syncs the directory when the name must last */
    CRN_EXCL = 8,   /* with CRN_CREATE: fail with CAIRN_EBUSY if it exists */
    CRN_DIRECT = 16 /* also open past the page cache, where the file system can */
};

/*
 * Modes. Who may read what is decided by the directory that it is made in: a file there is the
 * owner's, and those may read and write it, too, who may do so with the directory, as far as the
 * umask lets them. In a directory with the set-group-ID bit the group may read it whatever the
 * umask says (crn_dir_share). A file that is made by a path (AT_FDCWD) is one that a person has
 * named, and follows the umask alone, as any program's do.
 */

/*
 * Open name below directory dirfd (AT_FDCWD allowed). Links are not followed, and only regular
 * files are opened. CAIRN_ENOTFOUND, CAIRN_EIO, CAIRN_ENOSPC, CAIRN_EBUSY, CAIRN_ENOMEM.
 */
cairn_status crn_file_open(int dirfd, const char *name, int flags, crn_file **ret);

/* Close; NULL is allowed. Never fails: what must last was synced before. */
void crn_file_close(crn_file *f);

/*
 * Lock f against all others that lock it, in this process or another, on this machine or, where the
 * file system carries locks to its server, on any; until it is closed or the process ends, whatever
 * processes that has started. CAIRN_EBUSY when another has it; CAIRN_EUNSUPPORTED where the file
 * system knows no locks; CAIRN_EIO, CAIRN_ENOMEM.
 */
cairn_status crn_file_lock(crn_file *f);

/* The same, trying for so long before CAIRN_EBUSY. */
cairn_status crn_file_lock_within(crn_file *f, unsigned ms);

/*
 * Lock n bytes of f from off on against all others that lock some of them, in this process (by
 * another opening) or another, whether the file has them or not; until they are unlocked, f is
 * closed or the process ends. Others are waited for; CAIRN_EBUSY when one takes longer than half a
 * minute, CAIRN_EUNSUPPORTED where the file system knows no such locks.
 */
cairn_status crn_file_lock_range(crn_file *f, uint64_t off, uint64_t n);
void crn_file_unlock_range(crn_file *f, uint64_t off, uint64_t n);

int crn_file_fd(const crn_file *f); /* for statistics; never for writing */
cairn_status crn_file_nbytes(const crn_file *f, uint64_t *ret);

/*
 * The alignment of memory, offset and length at which f is surely read and written past the page
 * cache; 0 when it never is. Other transfers of the same file pass through the cache: each
 * operation is looked at alone, and what one way has written the other way reads once it is done.
 */
size_t crn_file_direct_align(const crn_file *f);

/* Is more than half of the range in memory: in the page cache, or in a file system that lies there?
 * Of a long range some stretches are looked at. False where it is unknown. */
bool crn_file_is_cached(const crn_file *f, uint64_t off, uint64_t nbytes);

/*
 * Blocking forms of the operations below. A read past the end of the file is CAIRN_ECORRUPT.
 *
 * A sync that failed is never tried again here: the kernel reports a lost write once and then
 * forgets it, so that a second sync would succeed although the bytes are gone. After a failure
 * everything written since the last good sync counts as lost and must be written again.
 */
cairn_status crn_file_read(crn_file *f, void *data, size_t nbytes, uint64_t off);
cairn_status crn_file_write(crn_file *f, const void *data, size_t nbytes, uint64_t off);
cairn_status crn_file_sync(crn_file *f); /* fdatasync */
/* Give the storage of a range back: it reads as zeros, and the file is as long as before.
 * CAIRN_EUNSUPPORTED where the file system cannot. */
cairn_status crn_file_punch(crn_file *f, uint64_t off, uint64_t nbytes);
cairn_status crn_file_truncate(crn_file *f, uint64_t nbytes);

/*
 * Open a directory (without following a link), creating it with mode 0700 if create is set; the
 * caller syncs the directory above when the name must last.
 */
cairn_status crn_dir_open(int dirfd, const char *name, bool create, int *ret_fd);

/* The same, but one that is made lets those in who may enter the directory above. */
cairn_status crn_dir_open_within(int dirfd, const char *name, bool create, int *ret_fd);

/* Let others into a directory, and into what will be made in it; never fewer than now. */
typedef enum crn_share {
    CRN_SHARE_NONE,  /* nobody else */
    CRN_SHARE_GROUP, /* the directory's group may read */
    CRN_SHARE_UMASK, /* others as the umask allows */
} crn_share;
cairn_status crn_dir_share(int fd, crn_share share);

/* Let those read a file who could if it were made in its directory now. */
cairn_status crn_file_share(crn_file *f, int dirfd);

/* The same for a path that a person gave, which may be a link: scratch directories often are. */
cairn_status crn_dir_open_path(const char *path, bool create, int *ret_fd);

/*
 * Is the directory at path, absolute and without a link in it, the caller's own, such that nobody
 * else could have made or changed it? CAIRN_ENOTFOUND; CAIRN_EMISMATCH: it is another user's, or
 * others may write to it, or replace it, or a step of the path is a link.
 */
cairn_status crn_dir_check_private(const char *path);
cairn_status crn_dir_sync(int dirfd); /* what was created, renamed and unlinked in it will last */

/* Names of the entries of a directory but "." and "..", sorted; free each and the array. */
cairn_status crn_dir_list(int dirfd, char ***ret_names, size_t *ret_n);

/*
 * Open a file to write, made if there is none, that no other process owns so until it is closed or
 * renamed. CAIRN_EBUSY when one does. Where the file system knows no locks it is only opened.
 */
cairn_status crn_file_own(int dirfd, const char *name, crn_file **ret);

/*
 * Replace name by data atomically and durably: write ".<name>.tmp", sync, rename, sync of the
 * directory. After a failure the old file is as it was; only when the last step failed is the new
 * one in its place, not yet durable. Others that replace the same file are waited for; CAIRN_EBUSY
 * when one takes longer than half a minute.
 */
cairn_status crn_file_replace(int dirfd, const char *name, const void *data, size_t nbytes);

/* The same without any sync, for what can be made again: after a loss of power the file may be the
 * old one, the new one, or empty. name has no directory in it. */
cairn_status crn_file_put(int dirfd, const char *name, const void *data, size_t nbytes);

/*
 * Read a whole file of at most max bytes; a larger one is CAIRN_ECORRUPT. A zero byte that does not
 * count follows the content. Free *ret.
 */
cairn_status crn_file_slurp(int dirfd, const char *name, size_t max, void **ret,
                            size_t *ret_nbytes);

cairn_status crn_rename(int dirfd, const char *from, const char *to);
cairn_status crn_unlink(int dirfd, const char *name); /* also an empty directory */

/*
 * Memory for transfers, aligned for direct ones; free it. A large piece lies on huge pages where
 * the system has them: a device takes few long segments at up to twice the speed of many pages.
 */
cairn_status crn_io_memory(size_t nbytes, unsigned char **ret);

/* --- many operations in flight -------------------------------------------------------------- */

typedef struct crn_io crn_io;

typedef enum crn_io_backend { CRN_IO_AUTO, CRN_IO_URING, CRN_IO_THREADS } crn_io_backend;

typedef enum crn_op_kind { CRN_OP_READ, CRN_OP_WRITE, CRN_OP_SYNC } crn_op_kind;

/*
 * One operation. The caller owns it and the memory it names, and leaves both alone from submit
 * until wait returns it. Operations in flight have no order among themselves; a sync covers what
 * had been returned by wait before the sync was submitted, and nothing else.
 */
typedef struct crn_op {
    crn_op_kind kind;
    crn_file *file;
    const struct iovec *iov; /* at least one, at most CRN_OP_IOV; read or written in order at off */
    int niov;                /* iov and niov mean nothing to a sync */
    uint64_t off;
    void *user;          /* the caller's */
    cairn_status status; /* set when done; the story is in err */
    crn_err err;         /* set when status is negative */
    /* io's own, from here on */
    size_t nbytes, moved;    /* of the whole operation; moved by the attempts so far */
    int piece;               /* index of the first piece of iov that is not finished */
    size_t piece_done;       /* bytes of it that are */
    struct iovec rest;       /* what is left of that piece, once it is begun */
    const struct iovec *cur; /* the attempt under way: where, */
    int ncur, fd;            /* how many, through which descriptor, */
    bool direct;             /* which is the direct one, */
    ssize_t result;          /* and its outcome: bytes, or a negative errno */
    bool cut;                /* a test wants the next attempt to be short */
    struct crn_op *next;
} crn_op;

enum { CRN_OP_IOV = 1024 };

/*
 * A queue with at most depth operations in flight (more may be submitted; they wait inside).
 * CRN_IO_URING fails with CAIRN_EUNSUPPORTED where the kernel refuses it; CRN_IO_AUTO does not.
 */
cairn_status crn_io_create(crn_io_backend backend, unsigned depth, crn_io **ret);
void crn_io_free(crn_io *io);              /* waits for what is in flight; NULL is allowed */
const char *crn_io_name(const crn_io *io); /* "io_uring" or "threads" */

/*
 * Start op. Fails only when nothing could be started; failures of the transfer come with wait.
 * Small transfers may be gathered inside until a few have come together or wait is called.
 */
cairn_status crn_io_submit(crn_io *io, crn_op *op);

/*
 * Wait for one operation and hand it back in *ret_op (NULL: none is in flight). Its own failure is
 * in op->status, not in the result of this call.
 */
cairn_status crn_io_wait(crn_io *io, crn_op **ret_op);

/* --- stages --------------------------------------------------------------------------------- */

/* The stages that a mark passes, and a resume: named places for tests to end a process at. */
typedef enum crn_stage {
    CRN_STAGE_CAPTURE, /* between two variables */
    CRN_STAGE_STORE,   /* captured, not yet in the own part */
    CRN_STAGE_RAISE,   /* and on, for each level above local: counts, not yet at that level */
    CRN_STAGE_COMMIT = CRN_STAGE_RAISE + CRN_NLEVELS -
                       CRN_LEVEL_RAISED, /* the files have it, not yet in the manifest */
    CRN_STAGE_RESUME,                    /* found and described, not yet brought back */
    CRN_NSTAGES
} crn_stage;

#define CRN_STAGE_OF(level) ((crn_stage)(CRN_STAGE_RAISE + (level)-CRN_LEVEL_RAISED))

/* Say that the calling thread enters a stage. With nothing armed, one relaxed load. */
void crn_stage_enter(crn_stage stage);

#endif
