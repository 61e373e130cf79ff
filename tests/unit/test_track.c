/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Kernel tracking: whatever changes a variable's memory, by whatever route, its blocks count as
 * written. Every route is followed by the same question: is there a block that differs from what it
 * was and is said to be clean? And, so that "everything is written" is no way out, whether blocks
 * that nobody touched are clean.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"

#include <errno.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "track/track.h"
#include "track/track_kernel.h"

enum { PAGES = 96 };

static crn_tracker *tracker; /* NULL: this kernel has no tracking */
static size_t page;

/* Memory under watch, and what it was when the watch was cleared. */
typedef struct world {
    unsigned char *map, *data, *before;
    size_t nbytes, block;
    crn_watch *w;
} world;

static unsigned char *map_pages(size_t n, int flags)
{
    unsigned char *at = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    assert_true(at != MAP_FAILED);
    return at;
}

static void keep(world *o)
{
    memcpy(o->before, o->data, o->nbytes);
    crn_watch_clear(o->w);
}

/* Begin on nbytes at off into a mapping of PAGES pages: two scans, after which all that can be
 * tracked is clean. */
static void world_init_at(world *o, unsigned char *map, size_t off, size_t nbytes, size_t block)
{
    if (!tracker)
        skip();
    *o = (world){.map = map, .data = map + off, .nbytes = nbytes, .block = block};
    for (size_t i = 0; i < nbytes; i++)
        o->data[i] = (unsigned char)(i * 7 + i / 251);
    o->before = malloc(nbytes + 1);
    assert_non_null(o->before);
    assert_ok(crn_watch_create(tracker, o->data, nbytes, block, &o->w));
    crn_watch_scan(o->w);
    keep(o);
    crn_watch_scan(o->w);
    keep(o);
}

static void world_init(world *o, size_t block)
{
    world_init_at(o, map_pages(PAGES, MAP_PRIVATE), 0, PAGES * page, block);
}

static void world_done(world *o)
{
    crn_watch_free(o->w);
    munmap(o->map, PAGES * page);
    free(o->before);
}

static bool differs(const world *o, uint64_t i)
{
    const size_t at = i * o->block;
    return memcmp(o->data + at, o->before + at, CRN_MIN(o->block, o->nbytes - at)) != 0;
}

/* Scan; no block that differs may be clean. Returns how many are clean. */
static uint64_t check(world *o)
{
    uint64_t clean = 0;
    crn_watch_scan(o->w);
    const uint64_t n = crn_watch_count(o->w).blocks;
    for (uint64_t i = 0; i < n; i++) {
        if (!crn_watch_is_written(o->w, i) && differs(o, i))
            fail_msg("block %d of %d changed, and nobody has seen it", (int)i, (int)n);
        clean += !crn_watch_is_written(o->w, i);
    }
    assert_int_equal(crn_watch_count(o->w).written, n - clean);
    keep(o);
    return clean;
}

/* --- routes ------------------------------------------------------------------------------- */

static void by_store(world *o)
{
    o->data[5 * page + 17]++;
}

static void by_memcpy(world *o)
{
    unsigned char junk[300];
    memset(junk, 0xab, sizeof junk);
    memcpy(o->data + 8 * o->block - 150, junk, sizeof junk);
}

static void *store_there(void *arg)
{
    world *o = arg;
    for (size_t i = 0; i < o->nbytes; i += 29 * page)
        __atomic_fetch_xor(&o->data[i], 0x55, __ATOMIC_RELAXED);
    return NULL;
}

static void by_threads(world *o)
{
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, store_there, o), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    o->data[0]++; /* both have turned the same bits */
}

static void by_read(world *o)
{
    int fd = open("/dev/zero", O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, o->data + 20 * page + 5, 2 * page), 2 * page);
    close(fd);
}

static void by_direct_read(world *o)
{
    char name[] = "scratch-track-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, o->before, 4 * page), 4 * page);
    assert_int_equal(fsync(fd), 0);
    close(fd);
    fd = open(name, O_RDONLY | O_DIRECT);
    if (fd >= 0) { /* where the file system can */
        assert_int_equal(pread(fd, o->data + 40 * page, 4 * page, 0), 4 * page);
        close(fd);
    }
    unlink(name);
}

static void by_socket(world *o)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(write(pair[0], "0123456789", 10), 10);
    struct iovec iov[2] = {{o->data + 30 * page - 3, 5}, {o->data + 33 * page, 5}};
    assert_int_equal(readv(pair[1], iov, 2), 10);
    close(pair[0]);
    close(pair[1]);
}

static void by_memory_file(world *o)
{
    int fd = open("/proc/self/mem", O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "other", 5, (off_t)(uintptr_t)(o->data + 50 * page - 2)), 5);
    close(fd);
}

/* Another process writes, as MPI does that copies between processes once. */
static void by_other_process(world *o)
{
    char text[] = "from outside";
    struct iovec from = {text, sizeof text}, to = {o->data + 60 * page + 1, sizeof text};
    const pid_t parent = getpid();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(process_vm_writev(parent, &from, 1, &to, 1, 0) != (ssize_t)sizeof text);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        print_message("this process may not be written to by its child: route left out\n");
}

static void by_store_after_fork(world *o)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        memset(o->data, 0, o->nbytes); /* its own copy */
        _exit(0);
    }
    o->data[70 * page]++;
    assert_int_equal(waitpid(child, NULL, 0), child);
    o->data[71 * page]++;
}

static void by_dontneed(world *o)
{
    assert_int_equal(madvise(o->map + 12 * page, 3 * page, MADV_DONTNEED), 0);
}

static void by_dontneed_and_read(world *o)
{
    by_dontneed(o);
    assert_int_equal(((volatile unsigned char *)o->map)[13 * page], 0);
}

static void by_free(world *o)
{
    (void)madvise(o->map + 16 * page, 3 * page, MADV_FREE);
    (void)madvise(o->map + 16 * page, 3 * page, MADV_PAGEOUT);
}

static void by_mprotect(world *o)
{
    assert_int_equal(mprotect(o->map, PAGES * page, PROT_READ), 0);
    assert_int_equal(mprotect(o->map, PAGES * page, PROT_READ | PROT_WRITE), 0);
    o->data[44 * page]++;
}

static void by_mapping(world *o)
{
    assert_true(mmap(o->map + 10 * page, 5 * page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
}

/* By the kernel's own call: libraries that MPI brings along replace mremap, and lose where to. */
static void move(unsigned char *from, unsigned char *to)
{
    assert_true(syscall(SYS_mremap, from, PAGES * page, PAGES * page, MREMAP_MAYMOVE | MREMAP_FIXED,
                        to) == (long)(intptr_t)to);
}

/* Memory that is under watch itself, and clean, takes the place. */
static void by_moving_here(world *o)
{
    world other;
    world_init(&other, o->block);
    memset(other.data, 0x77, other.nbytes);
    (void)check(&other);
    move(other.map, o->map);
    crn_watch_free(other.w);
    free(other.before);
}

static void by_moving_away_and_back(world *o)
{
    unsigned char *spare = map_pages(PAGES, MAP_PRIVATE);
    move(o->map, spare);
    spare[3 * page]++;
    move(spare, o->map);
}

static void by_shrinking_and_growing(world *o)
{
    assert_true(mremap(o->map, PAGES * page, 20 * page, 0) == o->map);
    assert_true(mmap(o->map + 20 * page, (PAGES - 20) * page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
}

static void by_nothing(world *o)
{
    (void)o;
}

static const struct {
    const char *name;
    void (*take)(world *o);
    bool anew; /* the mapping is another one: nothing needs to be clean at once */
} routes[] = {
    {"nothing", by_nothing, false},
    {"store", by_store, false},
    {"memcpy", by_memcpy, false},
    {"threads", by_threads, false},
    {"read", by_read, false},
    {"direct read", by_direct_read, false},
    {"socket", by_socket, false},
    {"memory file", by_memory_file, false},
    {"other process", by_other_process, false},
    {"store after fork", by_store_after_fork, false},
    {"madvise", by_dontneed, false},
    {"madvise and read", by_dontneed_and_read, false},
    {"madvise free", by_free, false},
    {"mprotect", by_mprotect, false},
    {"mmap", by_mapping, true},
    {"mremap to here", by_moving_here, true},
    {"mremap away and back", by_moving_away_and_back, true},
    {"mremap shorter and longer", by_shrinking_and_growing, true},
};

static void follow(size_t route, size_t block)
{
    world o;
    world_init(&o, block);
    for (int round = 0; round < 3; round++) {
        if (round > 0)
            routes[route].take(&o);
        const uint64_t clean = check(&o);
        if (clean < crn_watch_count(o.w).blocks / 3 && !routes[route].anew)
            fail_msg("%s: only %d blocks are clean", routes[route].name, (int)clean);
    }
    assert_int_equal(check(&o), crn_watch_count(o.w).blocks); /* tracked again, and clean */
    world_done(&o);
}

static void test_no_route_is_missed(void **state)
{
    (void)state;
    const size_t blocks[] = {1024, page, 8 * page};
    for (size_t b = 0; b < 3; b++)
        for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
            follow(i, blocks[b]);
}

/* --- what cannot be tracked --------------------------------------------------------------- */

static void test_shared_memory_is_never_clean(void **state)
{
    (void)state;
    world o;
    char name[] = "scratch-track-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(ftruncate(fd, (off_t)(PAGES * page)), 0);
    const int flags[] = {MAP_SHARED, MAP_PRIVATE};
    for (int i = 0; i < 2; i++) { /* a private one shows what others write until it is written */
        void *map = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, flags[i], fd, 0);
        assert_true(map != MAP_FAILED);
        world_init_at(&o, map, 0, PAGES * page, page);
        assert_int_equal(pwrite(fd, "other", 5, (off_t)(9 * page)), 5);
        assert_int_equal(check(&o), 0);
        world_done(&o);
    }
    world_init_at(&o, map_pages(PAGES, MAP_SHARED), 0, PAGES * page, page);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        o.data[9 * page]++;
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(check(&o), 0);
    world_done(&o);
    close(fd);
}

/* One mapping in the middle is shared: around it, tracking goes on. */
static void test_ranges_fall_back_alone(void **state)
{
    (void)state;
    world o;
    unsigned char *map = map_pages(PAGES, MAP_PRIVATE);
    assert_true(mmap(map + 32 * page, 16 * page, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    world_init_at(&o, map, 0, PAGES * page, 2 * page);
    assert_int_equal(check(&o), (PAGES - 16) / 2);
    o.data[0]++;
    o.data[PAGES * page - 1]++;
    assert_int_equal(check(&o), (PAGES - 16) / 2 - 2);
    world_done(&o);
}

/* Pages at the ends that are shared with other data count as written; all others are tracked. */
static void test_edges_that_are_not_pages(void **state)
{
    (void)state;
    for (size_t off = 1; off < 5000; off += 1237) {
        world o;
        const size_t nbytes = 37 * page + 11, nblocks = (nbytes + 4095) / 4096;
        world_init_at(&o, map_pages(PAGES, MAP_PRIVATE), off, nbytes, 4096);
        for (size_t at = 0; at < nbytes; at += 13 * page) {
            o.data[at]++;
            o.data[nbytes - 1 - at]++;
            assert_true(check(&o) >= nblocks - 8);
        }
        world_done(&o);
    }
}

static void test_small_and_empty_variables(void **state)
{
    (void)state;
    world o;
    world_init_at(&o, map_pages(PAGES, MAP_PRIVATE), 100, 200, 1024);
    assert_int_equal(check(&o), 0);
    world_done(&o);
    crn_watch *w;
    assert_ok(crn_watch_create(tracker, NULL, 0, 1024, &w));
    crn_watch_scan(w);
    crn_watch_clear(w);
    assert_int_equal(crn_watch_count(w).blocks, 0);
    crn_watch_free(w);
}

/* The bits of a page can be taken once only: who comes second is told nothing. */
static void test_overlapping_watches(void **state)
{
    (void)state;
    world o;
    crn_tracker *second;
    crn_watch *same, *later;
    world_init(&o, page);
    assert_ok(crn_tracker_create(&second));
    assert_ok(crn_watch_create(tracker, o.data + 10 * page, 10 * page, page, &same));
    assert_ok(crn_watch_create(second, o.data, o.nbytes, page, &later));
    for (int round = 0; round < 3; round++) {
        crn_watch_clear(same);
        crn_watch_clear(later);
        o.data[15 * page]++;
        crn_watch_scan(same);
        crn_watch_scan(later);
        assert_int_equal(crn_watch_count(same).written, 10);
        assert_int_equal(crn_watch_count(later).written, PAGES);
        assert_int_equal(check(&o), PAGES - 1);
    }
    crn_watch_free(same);
    crn_watch_free(later);
    crn_tracker_free(second);
    world_done(&o);
}

static void test_written_stays_until_cleared(void **state)
{
    (void)state;
    world o;
    world_init(&o, page);
    o.data[3 * page]++;
    crn_watch_scan(o.w);
    o.data[7 * page]++;
    crn_watch_scan(o.w);
    assert_true(crn_watch_is_written(o.w, 3) && crn_watch_is_written(o.w, 7));
    assert_int_equal(crn_watch_count(o.w).written, 2);
    assert_int_equal(crn_watch_count(o.w).faults, 2);
    crn_watch_clear(o.w);
    assert_true(crn_watch_scan(o.w));
    assert_int_equal(crn_watch_count(o.w).faults, 0);
    world_done(&o);
}

/* A child has the same descriptors, and they mean its parent's memory. */
static void test_child_of_fork(void **state)
{
    (void)state;
    world o;
    world_init(&o, page);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        o.data[0]++;
        crn_watch_scan(o.w);
        const bool all = crn_watch_count(o.w).written == PAGES;
        crn_watch_free(o.w);
        _exit(!all);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    o.data[4 * page]++;
    assert_int_equal(check(&o), PAGES - 1);
    world_done(&o);
}

/* --- random writes ------------------------------------------------------------------------ */

static void test_random_writes(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 4);
    for (int k = 0; k < 12; k++) {
        world o;
        const size_t off = crn_rng_below(&rng, 2 * page);
        const size_t nbytes = 1 + crn_rng_below(&rng, (PAGES - 2) * page - 1);
        world_init_at(&o, map_pages(PAGES, MAP_PRIVATE), off, nbytes,
                      (size_t)1024 << crn_rng_below(&rng, 7));
        for (int round = 0; round < 40; round++) {
            for (uint64_t n = crn_rng_below(&rng, 6); n > 0; n--) {
                const size_t at = crn_rng_below(&rng, nbytes);
                const size_t len = 1 + crn_rng_below(&rng, CRN_MIN(nbytes - at, 3 * page));
                memset(o.data + at, (int)crn_rng_below(&rng, 256), len);
            }
            if (crn_rng_below(&rng, 8) == 0)
                by_dontneed(&o);
            if (crn_rng_below(&rng, 20) == 0)
                by_mapping(&o);
            (void)check(&o);
        }
        world_done(&o);
    }
}

/* --- kernels that lie or refuse ----------------------------------------------------------- */

static unsigned long lie_about; /* the request that is answered wrongly */
static int lie;                 /* what is answered; negative: an error */

static int lying_ioctl(int fd, unsigned long request, void *arg)
{
    if (request != lie_about)
        return ioctl(fd, request, arg);
    if (lie < 0)
        errno = -lie;
    return lie < 0 ? -1 : lie;
}

/* The last argument of the kernel's call: where it got to. */
static int blind_scan(int fd, unsigned long request, void *arg)
{
    uint64_t *scan = arg;
    if (request != lie_about)
        return ioctl(fd, request, arg);
    scan[4] = scan[3]; /* walk_end = end: all was looked at, and nothing found */
    return 0;
}

static int all_scan(int fd, unsigned long request, void *arg)
{
    uint64_t *scan = arg;
    if (request != lie_about)
        return ioctl(fd, request, arg);
    uint64_t *region = (uint64_t *)(uintptr_t)scan[5];
    region[0] = scan[2];
    region[1] = scan[4] = scan[3];
    return 1;
}

static void assert_noticed(crn_track_ioctl kernel, const char *words)
{
    crn_tracker *t;
    crn_track_set_ioctl(kernel);
    const cairn_status rc = crn_tracker_create(&t);
    crn_track_set_ioctl(NULL);
    assert_fails(rc, CAIRN_EUNSUPPORTED, words);
}

static void test_a_kernel_that_reports_nothing_is_noticed(void **state)
{
    (void)state;
    if (!tracker)
        skip();
    const unsigned long scan = _IOC(_IOC_READ | _IOC_WRITE, 'f', 16, 96);
    const unsigned long uffd_api = _IOC(_IOC_READ | _IOC_WRITE, 0xAA, 0x3F, 24);
    lie_about = scan;
    assert_noticed(blind_scan, "misses page 3");
    assert_noticed(all_scan, "when nothing was written, it reports page 0");
    lie = -ENOTTY;
    assert_noticed(lying_ioctl, "does not track writes");
    lie = 1 << 30;
    assert_noticed(lying_ioctl, "does not track writes");
    lie_about = uffd_api;
    lie = -EINVAL;
    assert_noticed(lying_ioctl, "asynchronous write protection");
    crn_tracker *t;
    assert_ok(crn_tracker_create(&t)); /* the real one, as before */
    crn_tracker_free(t);
}

/* A scan that fails later on takes nothing for clean. */
static void test_a_scan_that_fails(void **state)
{
    (void)state;
    world o;
    world_init(&o, page);
    lie_about = _IOC(_IOC_READ | _IOC_WRITE, 'f', 16, 96);
    lie = -EFAULT;
    crn_track_set_ioctl(lying_ioctl);
    o.data[8 * page]++;
    const uint64_t clean = check(&o);
    crn_track_set_ioctl(NULL);
    assert_int_equal(clean, 0);
    assert_int_equal(check(&o), 0);
    assert_int_equal(check(&o), PAGES);
    world_done(&o);
}

/* Kernels of before 6.11 cannot be asked for a mapping: the list of all is read. */
static void test_a_kernel_that_cannot_be_asked(void **state)
{
    lie_about = _IOC(_IOC_READ | _IOC_WRITE, 'f', 17, 104);
    lie = -ENOTTY;
    crn_track_set_ioctl(lying_ioctl);
    test_ranges_fall_back_alone(state);
    test_edges_that_are_not_pages(state);
    crn_track_set_ioctl(NULL);
}

/* Memory that came from elsewhere: nothing is known, and no page of it counts as a write. */
static void test_beginning_anew_is_no_write(void **state)
{
    (void)state;
    world o;
    world_init(&o, page);
    by_mapping(&o);
    assert_false(crn_watch_scan(o.w));
    assert_int_equal(crn_watch_count(o.w).faults, 0);
    assert_int_equal(crn_watch_count(o.w).written, PAGES);
    world_done(&o);
}

static void test_no_memory(void **state)
{
    (void)state;
    world o;
    world_init(&o, page);
    for (uint64_t n = 1; n < 8; n++) {
        by_mapping(&o); /* what is tracked is put together anew */
        crn_mem_fail_at(n);
        (void)check(&o);
        crn_mem_fail_at(0);
        (void)check(&o);
    }
    world_done(&o);
}

static int set_up(void **state)
{
    (void)state;
    page = crn_track_page();
    if (crn_tracker_create(&tracker) < 0)
        print_message("*** kernel tracking is not tested: %s\n", crn_err_peek()->text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    crn_tracker_free(tracker);
    return 0;
}

/* What a watch knows counts for one mark; for another it knows nothing. */
static void test_distrust(void **state)
{
    (void)state;
    world o;
    world_init(&o, 4 * page);
    const uint64_t n = crn_watch_count(o.w).blocks;
    assert_int_equal(check(&o), n);
    crn_watch_distrust(o.w);
    for (uint64_t i = 0; i < n; i++)
        assert_true(crn_watch_is_written(o.w, i));
    assert_int_equal(crn_watch_count(o.w).written, n);
    assert_int_equal(check(&o), 0); /* a scan alone tells nothing of what was before */
    o.data[9 * page]++;
    assert_int_equal(check(&o), n - 1);
    world_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distrust),
        cmocka_unit_test(test_no_route_is_missed),
        cmocka_unit_test(test_shared_memory_is_never_clean),
        cmocka_unit_test(test_ranges_fall_back_alone),
        cmocka_unit_test(test_edges_that_are_not_pages),
        cmocka_unit_test(test_small_and_empty_variables),
        cmocka_unit_test(test_overlapping_watches),
        cmocka_unit_test(test_written_stays_until_cleared),
        cmocka_unit_test(test_child_of_fork),
        cmocka_unit_test(test_random_writes),
        cmocka_unit_test(test_a_kernel_that_reports_nothing_is_noticed),
        cmocka_unit_test(test_a_scan_that_fails),
        cmocka_unit_test(test_a_kernel_that_cannot_be_asked),
        cmocka_unit_test(test_beginning_anew_is_no_write),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
