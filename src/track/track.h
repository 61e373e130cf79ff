/* SPDX-License-Identifier: BSD-3-Clause
 *
 * track: which blocks of the program's memory may have been written. Row 3.
 *
 * The kernel write-protects pages and notes, asynchronously, which ones were written in spite of it
 * (userfaultfd with WP_ASYNC, PAGEMAP_SCAN): no signal, no thread, about a microsecond at the first
 * write to a page. A watch puts that together for the blocks of one variable:
 *
 *     crn_watch_create(tracker, data, nbytes, block, &w);     every block counts as written
 *     ...
 *     crn_watch_scan(w);                          adds what was written since the last scan
 *     if (!crn_watch_is_written(w, i)) ...        block i is as it was when w was cleared last
 *     crn_watch_clear(w);                         that was kept; from here on, anew
 *
 * Nothing is ever missed: whatever the kernel does not report as clean counts as written. Clean is
 * only a page that is there, is protected by us, and has been since the last scan. So these fall
 * back, range by range: bytes on a page that is not wholly the variable's; memory that is not
 * private and anonymous, which others could write through mappings of their own; pages that are not
 * in memory (given back by madvise, swapped out); ranges that were mapped anew or moved. And as a
 * whole: everything while the process has memory pinned for devices, which write past the page
 * tables; everything in a child of fork.
 *
 * Two writers stay unseen, and the program must not let them reach a watched variable: direct reads
 * that are in flight while it is scanned, and devices whose driver does not account for what it
 * pins (docs/guide/checkpoint.md).
 *
 * One thread at a time uses a tracker and its watches; trackers are independent of each other.
 */
#ifndef CAIRN_TRACK_H
#define CAIRN_TRACK_H

#include "base/base.h"

typedef struct crn_tracker crn_tracker;
typedef struct crn_watch crn_watch;

/*
 * Ask the kernel for tracking, and see by known writes that it does what it says.
 * CAIRN_EUNSUPPORTED: the sentence names the refused call or the failed check.
 */
cairn_status crn_tracker_create(crn_tracker **ret);
void crn_tracker_free(crn_tracker *t); /* after its watches; NULL is allowed */

/* Seconds that the first write to a page costs the program, as the test found. */
double crn_tracker_fault(const crn_tracker *t);

/*
 * Watch the memory of a variable in blocks (a power of two). Memory that is under another watch of
 * this process, of any tracker, stays with that one and is never clean here. CAIRN_ENOMEM.
 */
cairn_status crn_watch_create(crn_tracker *t, const void *data, size_t nbytes, size_t block,
                              crn_watch **ret);
void crn_watch_free(crn_watch *w); /* NULL is allowed; the memory may be gone */

bool crn_watch_scan(crn_watch *w); /* false: nothing was tracked since the last one */
bool crn_watch_is_written(const crn_watch *w, uint64_t i);
void crn_watch_clear(crn_watch *w);
void crn_watch_distrust(crn_watch *w); /* every block counts as written */

typedef struct crn_watch_stats {
    uint64_t blocks, written; /* that the variable has, and that count as written */
    uint64_t pages;           /* that the kernel tracks; 0: none, every block counts as written */
    uint64_t faults;          /* pages that scans found written since the watch was cleared, */
    uint64_t page;            /* of so many bytes each */
} crn_watch_stats;

crn_watch_stats crn_watch_count(const crn_watch *w);

/* For tests: ask this instead of the kernel; NULL: the kernel. Process-wide. */
typedef int (*crn_track_ioctl)(int fd, unsigned long request, void *arg);
void crn_track_set_ioctl(crn_track_ioctl fn);

#endif
