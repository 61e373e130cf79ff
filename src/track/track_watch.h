/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The inside of trackers and watches.
 */
#ifndef CAIRN_TRACK_WATCH_H
#define CAIRN_TRACK_WATCH_H

#include "track/track_kernel.h"

#include <sys/types.h>

struct crn_tracker {
    track_kernel kernel;
    pid_t owner; /* a child has the descriptors, but they still mean its parent's memory */
    double fault;
};

/* Is this the process that the tracker was made in? */
bool crn_tracker_is_here(const crn_tracker *t);

struct crn_watch {
    crn_tracker *tracker;
    uintptr_t data;
    uint64_t nbytes, block, nblocks;
    track_range whole;         /* the pages that are the variable's alone */
    bool ours;                 /* no other watch had some of them */
    track_ranges piece;        /* of whole, that the kernel tracks, in order */
    uint64_t *written, *blind; /* sets of blocks */
    uint64_t faults;
};

#endif
