/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What tracking asks of Linux, one function each: userfaultfd, PAGEMAP_SCAN and three files of
 * /proc. Nothing here decides.
 */
#ifndef CAIRN_TRACK_KERNEL_H
#define CAIRN_TRACK_KERNEL_H

#include "track/track.h"

typedef struct track_kernel {
    int uffd, pagemap; /* -1: not open */
} track_kernel;

/* Memory from start up to end, whole pages. */
typedef struct track_range {
    uintptr_t start, end;
} track_range;

typedef CRN_VEC(track_range) track_ranges;

cairn_status crn_track_open(track_kernel *k);
void crn_track_close(track_kernel *k); /* lets go of all that is registered, too */

size_t crn_track_page(void);

/* Let the kernel track a range that is wholly mapped; false where it refuses. */
bool crn_track_register(const track_kernel *k, track_range r);
void crn_track_unregister(const track_kernel *k, track_range r); /* what is left of it */

/*
 * Give the pages of a range that are not there, or were written since they were protected, to each,
 * in order, and protect them. false: some of it is not registered any more, or the kernel failed;
 * then nothing is known.
 */
bool crn_track_scan(const track_kernel *k, track_range r, void (*each)(void *arg, track_range r),
                    void *arg);

/* The pieces of a range that are private, anonymous and writable, in order, neighbours joined. */
cairn_status crn_track_find_private(track_range r, track_ranges *ret);

/* Has this process memory pinned for devices? Also when that cannot be known. */
bool crn_track_is_pinned(void);

#endif
