/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the wrappers of the system's calls share. A descriptor is followed if it was opened after
 * MPI_Init by the program, or by MPI-IO on its behalf: sockets, pipes and what MPI opens for itself
 * are none of our business, and cost one look into an array.
 */
#ifndef CAIRN_TRACE_POSIX_H
#define CAIRN_TRACE_POSIX_H

#include "trace/trace.h"

#define HERE __builtin_return_address(0), __builtin_frame_address(0)

/* The function that we stand before, found when it is first needed. */
#define REAL(name)                                                                                 \
    (__extension__({                                                                               \
        static _Atomic(void *) at_;                                                                \
        (__typeof__(&name))crn_next(&at_, #name);                                                  \
    }))

/* ---- descriptors (trace_fd.c) ---- */

enum { CRN_FDS = 1 << 16 }; /* from here on none is followed */

int64_t crn_fd_number(int fd); /* -1: it is not followed */
int64_t crn_fd_follow(int fd);
void crn_fd_unfollow(int fd);

/*
 * Where the recorded events leave a descriptor in its file. What stdio moved by other calls than
 * those that are recorded shows in how much further it is.
 */
int64_t crn_fd_position(int fd);
void crn_fd_set_position(int fd, int64_t at);

/* A child of vfork has our memory but descriptors of its own; one of fork may find locks taken. */
bool crn_fd_in_child(void);

/* The name of something that is no file that holds anything. */
bool crn_fd_is_special(const char *path);

/* ---- entering and leaving ---- */

/* False: do not record. */
bool crn_fd_enter(crn_ev *e, uint32_t call, int fd, const void *ret, const void *frame);

/* Of a call that changes which descriptors there are. */
bool crn_fd_enter_change(crn_ev *e, uint32_t call, int fd, const void *ret, const void *frame);

/* Nothing is recorded of a call that failed. */
void crn_fd_leave(crn_ev *e, bool ok);

/* With columns fd bytes moved, where the descriptor moves on, and fd bytes offset moved. */
ssize_t crn_fd_leave_moved(crn_ev *e, int fd, size_t nbytes, ssize_t moved);
ssize_t crn_fd_leave_moved_at(crn_ev *e, size_t nbytes, int64_t off, ssize_t moved);

/* With columns fd offset whence outoffset: wherever it was, it is at this offset now, or < 0. */
void crn_fd_leave_seek(crn_ev *e, int fd, int64_t off, int whence, int64_t at);

#endif
