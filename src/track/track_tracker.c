/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trackers, and the test that each must pass before it is believed: kernels are known that accept
 * every call and report nothing (soft-dirty bits do so on some).
 */
#include "track/track_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP /* Linux has it since 5.7, glibc since 2.32 */
#define MREMAP_DONTUNMAP 4
#endif

bool crn_tracker_is_here(const crn_tracker *t)
{
    return t->owner == getpid();
}

double crn_tracker_fault(const crn_tracker *t)
{
    return t->fault;
}

enum { TEST_PAGES = 64, STORED = 3, READ = 5, EMPTIED = 7 };

/* The pages that the test has changed, and no others, must be reported. */
static cairn_status expect(crn_watch *w, const char *when, bool (*changed)(uint64_t i))
{
    crn_watch_clear(w);
    crn_watch_scan(w);
    for (uint64_t i = 0; i < TEST_PAGES; i++)
        CRN_FAIL_IF(crn_watch_is_written(w, i) != changed(i), CAIRN_EUNSUPPORTED,
                    "the kernel does not track writes: %s, it %s page %d", when,
                    changed(i) ? "misses" : "reports", (int)i);
    return CAIRN_OK;
}

static bool is_none(uint64_t i)
{
    (void)i;
    return false;
}

static bool is_touched(uint64_t i)
{
    return i == STORED || i == READ || i == EMPTIED;
}

static bool is_any(uint64_t i)
{
    (void)i;
    return true;
}

/* A store, a write by the kernel, and pages given back. */
static cairn_status touch(unsigned char *at, size_t page)
{
    ((volatile unsigned char *)at)[STORED * page] ^= 1;
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return crn_fail_sys(errno, "cannot open '/dev/zero'");
    const ssize_t n = read(fd, at + READ * page, page);
    close(fd);
    CRN_FAIL_IF(n != (ssize_t)page || madvise(at + EMPTIED * page, page, MADV_DONTNEED) != 0,
                CAIRN_EUNSUPPORTED, "the kernel does not do what the test of tracking needs");
    return CAIRN_OK;
}

static int ascending(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

/* What a first write costs: the median, as one that was interrupted took a thousand times that. */
static void time_faults(crn_tracker *t, volatile unsigned char *at, size_t page)
{
    uint64_t taken[TEST_PAGES];
    for (size_t i = 0; i < TEST_PAGES; i++) {
        const uint64_t start = crn_now_ns();
        at[i * page] ^= 1;
        taken[i] = crn_now_ns() - start;
    }
    qsort(taken, TEST_PAGES, sizeof *taken, ascending);
    t->fault = (double)taken[TEST_PAGES / 2] * 1e-9;
}

/* Other memory in the same place. */
static cairn_status remap(unsigned char *at, size_t page)
{
    CRN_FAIL_IF(mmap(at, TEST_PAGES * page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at,
                CAIRN_EUNSUPPORTED, "the kernel does not do what the test of tracking needs");
    memset(at, 1, TEST_PAGES * page);
    return CAIRN_OK;
}

/* The same memory, which was elsewhere and was written there. */
static cairn_status move(unsigned char *at, size_t page)
{
    const size_t nbytes = TEST_PAGES * page;
    void *away = mremap(at, nbytes, nbytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    if (away != MAP_FAILED) {
        memset(away, 2, nbytes);
        away = mremap(away, nbytes, nbytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
    }
    CRN_FAIL_IF(away != at, CAIRN_EUNSUPPORTED,
                "the kernel does not do what the test of tracking needs");
    return CAIRN_OK;
}

static cairn_status test(crn_tracker *t, crn_watch *w, unsigned char *at, size_t page)
{
    memset(at, 1, TEST_PAGES * page);
    CRN_TRY(expect(w, "at first", is_any));
    CRN_TRY(expect(w, "when nothing was written", is_none));
    CRN_TRY(touch(at, page));
    CRN_TRY(expect(w, "after three writes", is_touched));
    time_faults(t, at, page);
    CRN_TRY(expect(w, "after many writes", is_any));
    CRN_TRY(remap(at, page));
    CRN_TRY(expect(w, "after the memory was replaced", is_any));
    CRN_TRY(move(at, page));
    CRN_TRY(expect(w, "after the memory was moved", is_any));
    CRN_TRY(touch(at, page));
    CRN_TRY(expect(w, "after writes to memory that was moved", is_touched));
    return CAIRN_OK;
}

static cairn_status test_in_scratch(crn_tracker *t)
{
    const size_t page = crn_track_page(), nbytes = TEST_PAGES * page;
    crn_watch *w = NULL;
    unsigned char *at =
        mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return crn_fail_sys(errno, "cannot map %zu bytes", nbytes);
    (void)madvise(at, nbytes, MADV_NOHUGEPAGE);
    cairn_status rc = crn_watch_create(t, at, nbytes, page, &w);
    if (rc == CAIRN_OK)
        rc = test(t, w, at, page);
    crn_watch_free(w);
    munmap(at, nbytes);
    return rc;
}

cairn_status crn_tracker_create(crn_tracker **ret)
{
    crn_tracker *t;
    CRN_TRY(crn_alloc(&t, 1));
    t->owner = getpid();
    cairn_status rc = crn_track_open(&t->kernel);
    if (rc == CAIRN_OK)
        rc = test_in_scratch(t);
    if (rc < 0) {
        crn_tracker_free(t);
        return rc;
    }
    *ret = t;
    return CAIRN_OK;
}

void crn_tracker_free(crn_tracker *t)
{
    if (!t)
        return;
    crn_track_close(&t->kernel);
    free(t);
}
