/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Structures that cross the public line. Each begins with a size_t, struct_bytes, that the caller
 * sets to the size which it was compiled with; members are only ever added at the end. So a program
 * and a library of different versions understand each other: what the caller's structure does not
 * have is taken as zero and not handed out, what this library does not know is left alone.
 *
 * A call copies what it is given, works with its own copy, and hands that out when it has
 * succeeded. All of these fail with CAIRN_EINVAL where the caller's structure is NULL or its size
 * was not set.
 */
#ifndef CAIRN_BASE_STRUCT_H
#define CAIRN_BASE_STRUCT_H

#include <stddef.h>

#include "base/base_err.h"

/* Take the caller's *theirs into *ours, and hand *ours out to *theirs; both of the same type. */
#define crn_struct_in(theirs, ours)  crn_struct_take((theirs), (ours), sizeof *(ours))
#define crn_struct_out(ours, theirs) crn_struct_give((ours), (theirs), sizeof *(ours))

/* For a structure that is only filled: fail before the work, not after it. */
cairn_status crn_struct_check(const void *theirs);

cairn_status crn_struct_take(const void *theirs, void *ours, size_t nbytes);
cairn_status crn_struct_give(const void *ours, void *theirs, size_t nbytes);

#endif
