/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of io share, and nobody else sees: the file object, the life of an operation
 * (io_op.c), the table that a backend fills, the gate through which all changes of a disk go.
 *
 *        crn_file_write                crn_io_submit, crn_io_wait
 *              |                                  |
 *              |          io_queue.c: depth, waiting and finished lists
 *              |                |                        |
 *              +--- io_op.c: fault gate, direct or not, resuming ---+
 *              |                |                        |
 *          crn_op_call     io_threads.c             io_uring.c
 */
#ifndef CAIRN_IO_IMPL_H
#define CAIRN_IO_IMPL_H

#include <sys/types.h>

#include <stdatomic.h>

#include "io/io_fault.h"

/* Never changed while open, apart from direct_refused and what io_lock.c has. */
struct crn_file {
    int fd;                      /* through the page cache */
    int direct_fd;               /* past it; -1 where the file system cannot */
    size_t direct_align;         /* of offset and lengths; 0 without direct_fd */
    size_t direct_mem_align;     /* of memory */
    _Atomic bool direct_refused; /* any thread sets it, once, when the kernel refused a transfer */
    int dirfd; /* as given to open; only passed to watchers, may be closed by now */
    char *name;
    bool locked;             /* io_lock.c: then it is in the list, */
    crn_file *next, *before; /* between these */
};

/* Let go of the lock on f, if there is one. */
void crn_file_unlock(crn_file *f);

/* May this attempt go past the page cache? */
bool crn_file_takes_direct(const crn_file *f, const struct iovec *iov, int niov, uint64_t off);

/* --- the life of an operation: io_op.c ------------------------------------------------------ */

/* Check and measure what the caller filled in, and reset the rest. CAIRN_EINVAL. */
cairn_status crn_op_prepare(crn_op *op);

/* Pass the fault gate. False when that has ended op already, or when it has nothing to move. */
bool crn_op_begin(crn_op *op);

/* Describe the next attempt in op->fd, op->cur and op->ncur. */
void crn_op_aim(crn_op *op);

/* Make that attempt by a blocking system call; bytes, or a negative errno. */
ssize_t crn_op_call(const crn_op *op);

/* Take in the outcome op->result of an attempt. True when op has ended, its status set. */
bool crn_op_settle(crn_op *op);

/* End op with the failure in the calling thread's record. */
void crn_op_fail(crn_op *op);

/* --- backends ------------------------------------------------------------------------------- */

/*
 * To add a backend: 1. a file io_<name>.c with its table; 2. a line in io_queue.c's list; 3. a
 * value of crn_io_backend and a word of the option io.backend; the tests run over all of them.
 */
typedef struct crn_io_ops {
    const char *name;

    /* Make ready for up to depth attempts at once. CAIRN_EUNSUPPORTED, CAIRN_ENOMEM. */
    cairn_status (*create)(unsigned depth, void **ret_self);

    /* End it; nothing is in flight. */
    void (*free)(void *self);

    /* Start the attempt that crn_op_aim described. A failure means that it will not happen. */
    cairn_status (*start)(void *self, crn_op *op);

    /* Wait for an attempt to end (at least one was started), and hand it back with op->result set.
     * A failure is one of the backend, not of an attempt. */
    cairn_status (*finish)(void *self, crn_op **ret_op);
} crn_io_ops;

extern const crn_io_ops crn_io_uring, crn_io_threads;

/* A list of operations, first in, first out. */
typedef struct crn_op_list {
    crn_op *first, *last;
} crn_op_list;

static inline void crn_op_push(crn_op_list *list, crn_op *op)
{
    op->next = NULL;
    if (list->first)
        list->last->next = op;
    else
        list->first = op;
    list->last = op;
}

static inline crn_op *crn_op_pop(crn_op_list *list)
{
    crn_op *op = list->first;
    if (op)
        list->first = op->next;
    return op;
}

/* --- modes: io_mode.c ------------------------------------------------------------------------ */

/* What to create a file with in a directory, and a directory that lets in who may enter it. */
mode_t crn_mode_of_file(int dirfd);
mode_t crn_mode_of_dir(int dirfd);

/* After that: what the directory gives to its group, though the umask does not. */
void crn_mode_keep(int dirfd, int fd, mode_t mode);

/* --- the fault gate: io_fault.c ------------------------------------------------------------- */

/* CAIRN_EINVAL when CAIRN_FAULT is set to something that makes no sense. */
cairn_status crn_fault_ready(void);

/*
 * Every operation goes through here once before it happens. 0: let it happen; else the errno with
 * which it must fail. *ret_cut (may be NULL) is set when its first call must be short. event is
 * NULL for what changes no disk. Does not return when the plan ends the process here.
 */
int crn_fault_pass(crn_fault_where where, const crn_fault_event *event, bool *ret_cut);

#endif
