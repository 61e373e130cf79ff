/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Linux's side of tracking. Debian 12's headers are older than PAGEMAP_SCAN (Linux 6.7): what is
 * missing there is declared here, under names of our own so that newer headers do not clash.
 */
#include "track/track_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* UFFD_USER_MODE_ONLY: what a user may open; asynchronous faults never reach the point where it
 * would matter. */
enum { USER_MODE = 1 };

#define FEATURE_WP_UNPOPULATED (UINT64_C(1) << 13)
#define FEATURE_WP_ASYNC       (UINT64_C(1) << 15)

typedef struct scan_region {
    uint64_t start, end, categories;
} scan_region;

typedef struct scan_arg {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
} scan_arg;

#define SCAN             _IOWR('f', 16, scan_arg)
#define SCAN_PROTECT     UINT64_C(1)
#define SCAN_CHECK_ASYNC UINT64_C(2) /* EPERM where memory is not registered */
#define CATEGORY_WRITTEN (UINT64_C(1) << 1)
#define CATEGORY_PRESENT (UINT64_C(1) << 3)
_Static_assert(sizeof(scan_arg) == 96 && sizeof(scan_region) == 24, "the kernel's layout");

enum { REGIONS = 512 }; /* of one call to the kernel */

/* One mapping (Linux 6.11). */
typedef struct map_query {
    uint64_t size, flags, address, start, end, mode, page, offset, inode;
    uint32_t major, minor, name_size, id_size;
    uint64_t name, id;
} map_query;

#define QUERY         _IOWR('f', 17, map_query)
#define QUERY_OR_NEXT UINT64_C(16)
#define MODE_MASK     UINT64_C(11) /* readable, writable, shared */
#define MODE_OWN      UINT64_C(3)
_Static_assert(sizeof(map_query) == 104, "the kernel's layout");

static int real_ioctl(int fd, unsigned long request, void *arg)
{
    return ioctl(fd, request, arg);
}

static crn_track_ioctl ask = real_ioctl;

void crn_track_set_ioctl(crn_track_ioctl fn)
{
    ask = fn ? fn : real_ioctl;
}

size_t crn_track_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* --- opening ------------------------------------------------------------------------------ */

static cairn_status fail_open(const char *what)
{
    return crn_fail(CAIRN_EUNSUPPORTED, "the kernel does not track writes: %s: %s", what,
                    strerror(errno));
}

static cairn_status open_both(track_kernel *k)
{
    const uint64_t features = FEATURE_WP_ASYNC | FEATURE_WP_UNPOPULATED;
    struct uffdio_api api = {.api = UFFD_API, .features = features};
    k->uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE);
    if (k->uffd < 0)
        return fail_open("userfaultfd");
    if (ask(k->uffd, UFFDIO_API, &api) < 0)
        return fail_open("asynchronous write protection");
    CRN_FAIL_IF((api.features & features) != features, CAIRN_EUNSUPPORTED,
                "the kernel does not track writes: no asynchronous write protection");
    k->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (k->pagemap < 0)
        return fail_open("/proc/self/pagemap");
    return CAIRN_OK;
}

cairn_status crn_track_open(track_kernel *k)
{
    *k = (track_kernel){-1, -1};
    cairn_status rc = open_both(k);
    if (rc < 0)
        crn_track_close(k);
    return rc;
}

void crn_track_close(track_kernel *k)
{
    if (k->uffd >= 0)
        close(k->uffd);
    if (k->pagemap >= 0)
        close(k->pagemap);
    *k = (track_kernel){-1, -1};
}

/* --- ranges ------------------------------------------------------------------------------- */

/*
 * Kernels of before 2025 let pages that were protected keep the mark of it when mremap takes them
 * out of a registered range, though they may be written then. A scan would take them for protected
 * ones and leave them so: the mark is taken off what is registered.
 */
bool crn_track_register(const track_kernel *k, track_range r)
{
    struct uffdio_register arg = {.range = {r.start, r.end - r.start},
                                  .mode = UFFDIO_REGISTER_MODE_WP};
    struct uffdio_writeprotect off = {.range = arg.range};
    if (ask(k->uffd, UFFDIO_REGISTER, &arg) < 0)
        return false;
    if (ask(k->uffd, UFFDIO_WRITEPROTECT, &off) == 0)
        return true;
    crn_track_unregister(k, r);
    return false;
}

void crn_track_unregister(const track_kernel *k, track_range r)
{
    struct uffdio_range arg = {r.start, r.end - r.start};
    (void)ask(k->uffd, UFFDIO_UNREGISTER, &arg); /* the program may have unmapped it */
}

/*
 * Whether a page that madvise has emptied is "written" nobody promises, so pages that are not
 * present are asked for by name. Swapped out ones are among them, and will be read.
 */
bool crn_track_scan(const track_kernel *k, track_range r, void (*each)(void *arg, track_range r),
                    void *arg)
{
    scan_region region[REGIONS];
    scan_arg scan = {.size = sizeof scan,
                     .flags = SCAN_PROTECT | SCAN_CHECK_ASYNC,
                     .start = r.start,
                     .end = r.end,
                     .vec = (uint64_t)(uintptr_t)region,
                     .vec_len = REGIONS,
                     .category_inverted = CATEGORY_PRESENT,
                     .category_anyof_mask = CATEGORY_WRITTEN | CATEGORY_PRESENT,
                     .return_mask = CATEGORY_WRITTEN};
    while (scan.start < r.end) {
        const int n = ask(k->pagemap, SCAN, &scan);
        if (n < 0 || n > REGIONS || scan.walk_end <= scan.start || scan.walk_end > r.end)
            return false;
        for (int i = 0; i < n; i++)
            each(arg, (track_range){(uintptr_t)region[i].start, (uintptr_t)region[i].end});
        scan.start = scan.walk_end;
    }
    return true;
}

/* --- /proc -------------------------------------------------------------------------------- */

static cairn_status add_range(track_ranges *to, track_range r)
{
    if (to->n > 0 && to->at[to->n - 1].end == r.start) {
        to->at[to->n - 1].end = r.end;
        return CAIRN_OK;
    }
    return crn_vec_push(to, r);
}

/* What follows the mode in a line of /proc/self/maps: offset, device, inode. */
static uint64_t inode_of(const char *rest)
{
    char *at;
    strtoull(rest, &at, 16);
    at += strcspn(at, ":");
    if (*at != 0)
        strtoull(at + 1, &at, 16);
    return strtoull(at, NULL, 10);
}

/* One line of /proc/self/maps: the part of it that lies within r, if nobody else can write it. */
static cairn_status take_mapping(const char *line, track_range r, track_ranges *to)
{
    char *rest;
    uintptr_t start = strtoul(line, &rest, 16);
    uintptr_t end = *rest == '-' ? strtoul(rest + 1, &rest, 16) : 0;
    start = CRN_MAX(start, r.start);
    end = CRN_MIN(end, r.end);
    if (start >= end || strncmp(rest, " rw", 3) != 0 || rest[4] != 'p' || inode_of(rest + 5) != 0)
        return CAIRN_OK;
    return add_range(to, (track_range){start, end});
}

/* Ask for the mappings of r alone; false where the kernel cannot be asked. */
static bool ask_mappings(int maps, track_range r, track_ranges *ret, cairn_status *ret_rc)
{
    map_query q = {.size = sizeof q, .flags = QUERY_OR_NEXT, .address = r.start};
    *ret_rc = CAIRN_OK;
    while (*ret_rc == CAIRN_OK && q.address < r.end) {
        if (ask(maps, QUERY, &q) < 0)
            return errno == ENOENT; /* there is no next one */
        const track_range part = {CRN_MAX(q.start, r.start), CRN_MIN(q.end, r.end)};
        if (part.start < part.end && (q.mode & MODE_MASK) == MODE_OWN && q.inode == 0)
            *ret_rc = add_range(ret, part);
        q.address = q.end;
    }
    return true;
}

static cairn_status read_mappings(FILE *maps, track_range r, track_ranges *ret)
{
    char *line = NULL;
    size_t cap = 0;
    cairn_status rc = CAIRN_OK;
    while (rc == CAIRN_OK && getline(&line, &cap, maps) >= 0)
        rc = take_mapping(line, r, ret);
    free(line);
    return rc;
}

cairn_status crn_track_find_private(track_range r, track_ranges *ret)
{
    cairn_status rc;
    FILE *maps = fopen("/proc/self/maps", "re");
    ret->n = 0;
    if (!maps)
        return CAIRN_OK; /* nothing is known to be private */
    if (!ask_mappings(fileno(maps), r, ret, &rc)) {
        ret->n = 0;
        rc = read_mappings(maps, r, ret);
    }
    fclose(maps);
    return rc;
}

bool crn_track_is_pinned(void)
{
    char line[256];
    uint64_t kib = UINT64_MAX;
    FILE *status = fopen("/proc/self/status", "re");
    if (!status)
        return true;
    while (kib == UINT64_MAX && fgets(line, sizeof line, status))
        if (strncmp(line, "VmPin:", 6) == 0)
            kib = strtoull(line + 6, NULL, 10);
    fclose(status);
    return kib != 0;
}
