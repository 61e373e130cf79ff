/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Node-local storage that is full or fails: marks for the trail get there all the same, are said to
 * be there only, and come back from there; the next ones try the nodes again.
 *
 * TEST: ranks self 2 3
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "harness/session.h"

#include <sys/mount.h>

#include "io/io_fault.h"
#include "store/store.h"

enum { NVARS = 4, CELLS = 40000, ROWS = 300, LARGE = 1 << 21, NSMALL = 2000, WORDS = 1000 };

static uint64_t field[NVARS][CELLS];
static uint64_t padded[(ROWS + 2) * (ROWS + 2)];
static uint64_t *large; /* more than may be held in memory; NULL: not protected */
static uint64_t small[NSMALL][WORDS];
static size_t nsmall; /* that are protected: marks take them together */

/* What a mark has: some of it as the mark before, some not. */
static uint64_t value_of(int rank, size_t var, size_t i, uint64_t version)
{
    const uint64_t since = i * NVARS / CELLS <= version % NVARS ? version : var;
    return since * 1000 + (uint64_t)rank + i % 7;
}

/* Every other one stays as it is. */
static uint64_t small_value_of(int rank, size_t v, uint64_t version)
{
    return (v % 2 ? version * 1000 : 17) + v + (uint64_t)rank;
}

static void fill(const place *p, uint64_t version)
{
    for (size_t v = 0; v < nsmall; v++)
        for (size_t i = 0; i < WORDS; i++)
            small[v][i] = small_value_of(p->rank, v, version) + i;
    for (size_t v = 0; v < NVARS; v++)
        for (size_t i = 0; i < CELLS; i++)
            field[v][i] = value_of(p->rank, v, i, version);
    for (size_t i = 0; i < sizeof padded / sizeof *padded; i++)
        padded[i] = value_of(p->rank, 1, i, version);
    for (size_t i = 0; large && i < LARGE; i++)
        large[i] = value_of(p->rank, 2, i % CELLS, version) + i / CELLS;
}

static void must_be(const place *p, uint64_t version)
{
    for (size_t v = 0; v < nsmall; v++)
        for (size_t i = 0; i < WORDS; i++)
            assert_int_equal(small[v][i], small_value_of(p->rank, v, version) + i);
    for (size_t v = 0; v < NVARS; v++)
        for (size_t i = 0; i < CELLS; i++)
            if (field[v][i] != value_of(p->rank, v, i, version))
                fail_msg("mark %d, field %zu, place %zu", (int)version, v, i);
    for (size_t y = 1; y <= ROWS; y++)
        for (size_t x = 1; x <= ROWS; x++)
            assert_int_equal(padded[y * (ROWS + 2) + x],
                             value_of(p->rank, 1, y * (ROWS + 2) + x, version));
    for (size_t i = 0; large && i < LARGE; i++)
        assert_int_equal(large[i], value_of(p->rank, 2, i % CELLS, version) + i / CELLS);
}

static void set_up(place *p, crn_comm *comm, const char *settings)
{
    place_init(p, comm, "[level]\nlocal = @/local\nnode_size = 1\npartner = 0\nencoded = 0\n");
    if (p->rank == 0) {
        FILE *f = fopen(p->config, "a");
        assert_non_null(f);
        fputs(settings, f);
        fclose(f);
    }
    assert_ok(crn_comm_barrier(comm));
}

static cairn *open_at(place *p)
{
    static const char *const name[NVARS] = {"a", "b", "c", "d"};
    const cairn_piece piece = {.struct_bytes = sizeof piece,
                               .ndims = 2,
                               .global = {(uint64_t)p->nranks * ROWS, ROWS},
                               .offset = {(uint64_t)p->rank * ROWS},
                               .count = {ROWS, ROWS},
                               .before = {1, 1},
                               .after = {1, 1}};
    cairn *c;
    assert_ok(cairn_open(p->mpi, p->config, &c));
    for (size_t v = 0; v < NVARS; v++)
        assert_ok(cairn_protect(c, name[v], field[v], CAIRN_UINT64, CELLS));
    assert_ok(cairn_protect_piece(c, "padded", padded, CAIRN_UINT64, &piece));
    if (large)
        assert_ok(cairn_protect(c, "large", large, CAIRN_UINT64, LARGE));
    for (size_t v = 0; v < nsmall; v++) {
        char label[24];
        snprintf(label, sizeof label, "s%zu", v);
        assert_ok(cairn_protect(c, label, small[v], CAIRN_UINT64, WORDS));
    }
    return c;
}

static int mark(place *p, cairn *c, uint64_t version, cairn_level level)
{
    fill(p, version);
    int rc = cairn_mark(c, version, level);
    fill(p, 100 + version); /* the program goes on */
    return rc < 0 ? rc : cairn_settle(c);
}

static void run_in(place *p, const char *command)
{
    char line[512];
    assert_ok(crn_comm_barrier(p->comm));
    snprintf(line, sizeof line, "cd %s && %s", p->dir, command);
    if (p->rank == 0 && system(line) != 0)
        fail_msg("%s", command);
    assert_ok(crn_comm_barrier(p->comm));
}

/* Leave the session without another mark, and come back. */
static cairn *come_back(place *p, cairn *c, uint64_t wanted)
{
    uint64_t version = 0;
    leave_session(c);
    c = open_at(p);
    fill(p, 50);
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, wanted);
    must_be(p, wanted);
    return c;
}

/* How the last rank's writes fail, and by which settings. */
typedef struct trial {
    const char *settings;
    crn_fault fault;
} trial;

/* Let a mark for the trail meet the fault; false: there were not so many writes. Whatever comes of
 * it, the program comes back to that mark, or to the one before where it was told of a failure. */
static bool strike(crn_comm *comm, const trial *t, uint64_t *nsaved)
{
    place p;
    set_up(&p, comm, t->settings);
    cairn *c = open_at(&p);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    assert_ok(mark(&p, c, 1, CAIRN_LEVEL_GLOBAL));
    assert_ok(mark(&p, c, 2, CAIRN_LEVEL_LOCAL));
    if (p.rank == p.nranks - 1)
        crn_fault_arm(&t->fault);
    const int rc = mark(&p, c, 3, CAIRN_LEVEL_GLOBAL);
    uint64_t struck = p.rank == p.nranks - 1 && crn_fault_seen() >= t->fault.at;
    crn_fault_arm(NULL);
    assert_ok(crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, &struck, 1));
    if (rc == CAIRN_OK) {
        *nsaved += struck;
        c = come_back(&p, c, 3);
        leave_session(c);
        run_in(&p, "rm -rf local"); /* it is in the trail */
        c = open_at(&p);
        c = come_back(&p, c, 3);
    } else {
        uint64_t version = 0;
        leave_session(c);
        c = open_at(&p);
        assert_ok(cairn_resume(c, &version));
        assert_in_range(version, 2, 3);
        must_be(&p, version);
    }
    assert_ok(mark(&p, c, 4, CAIRN_LEVEL_LOCAL));
    assert_ok(mark(&p, c, 5, CAIRN_LEVEL_GLOBAL));
    c = come_back(&p, c, 5);
    leave_session(c);
    place_done(&p);
    return struck;
}

static void test_each_write_fails(void **state)
{
    const trial trials[] = {
        {"", {CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 1}},
        {"", {CRN_FAULT_SYNC, CRN_FAULT_EIO, 1, 1}},
        {"[mark]\nmode = synchronous\n", {CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 1}},
        {"[variable]\ncodec = lz4\n", {CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 1}},
        {"[io]\nbackend = threads\ndirect = no\n", {CRN_FAULT_WRITE, CRN_FAULT_TORN, 1, 1}},
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        trial t = trials[i];
        uint64_t nsaved = 0;
        const uint64_t last = i == 0 ? UINT64_MAX : 6;
        for (; t.fault.at <= last && strike(*state, &t, &nsaved); t.fault.at++)
            if (t.fault.at == 1)
                assert_int_equal(nsaved, 1); /* the own part's: not the mark's end */
    }
}

/* More than may be held in memory: capture itself fails, after some of it was written. */
static void test_capture_fails(void **state)
{
    uint64_t nsaved = 0;
    trial t = {"[mark]\nstaging = 8MiB\n", {CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 1}};
    assert_ok(crn_alloc(&large, LARGE));
    for (t.fault.at = 1; t.fault.at < 4; t.fault.at++)
        assert_true(strike(*state, &t, &nsaved));
    assert_int_equal(nsaved, 3);
    free(large);
    large = NULL;
}

/* Many small variables on their way to storage, which have no memory of the program's any more. */
static void test_storing_small_fails(void **state)
{
    uint64_t nsaved = 0;
    trial t = {"[mark]\nstaging = 8MiB\n", {CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 1}};
    assert_ok(crn_alloc(&large, LARGE));
    nsmall = NSMALL;
    for (t.fault.at = 1; t.fault.at < 6; t.fault.at += 2)
        assert_true(strike(*state, &t, &nsaved));
    assert_int_equal(nsaved, 3);
    free(large);
    large = NULL;
    nsmall = 0;
}

static bool mount_small(const place *p)
{
    char dir[120];
    uint64_t done = 0;
    snprintf(dir, sizeof dir, "%s/local", p->dir);
    if (p->rank == 0)
        done = mkdir(dir, 0700) == 0 && mount("none", dir, "tmpfs", 0, "size=1m,mode=0700") == 0;
    assert_ok(crn_comm_allreduce_u64(p->comm, CRN_REDUCE_MAX, &done, 1));
    return done;
}

/* A disk that stays full from the first mark on, then has room. */
static void test_full_for_long(void **state)
{
    place p;
    char dir[120];
    set_up(&p, *state, "[run]\nname = r\n");
    snprintf(dir, sizeof dir, "%s/local", p.dir);
    if (!mount_small(&p)) {
        place_done(&p);
        skip();
    }
    cairn *c = open_at(&p);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    for (uint64_t v = 1; v < 5; v++)
        assert_ok(mark(&p, c, v, CAIRN_LEVEL_GLOBAL));
    assert_int_equal(mark(&p, c, 5, CAIRN_LEVEL_LOCAL), CAIRN_ENOSPC);
    c = come_back(&p, c, 4);
    run_in(&p, "grep -rq 'mark 4, level local: ' trail");
    assert_ok(mark(&p, c, 5, CAIRN_AUTO)); /* of which the nodes alone were asked, had they room */
    c = come_back(&p, c, 5);
    assert_ok(mark(&p, c, 6, CAIRN_LEVEL_GLOBAL));
    assert_ok(crn_comm_barrier(p.comm));
    if (p.rank == 0)
        assert_int_equal(mount("none", dir, "tmpfs", MS_REMOUNT, "size=64m,mode=0700"), 0);
    assert_ok(crn_comm_barrier(p.comm));
    assert_ok(mark(&p, c, 7, CAIRN_LEVEL_LOCAL));
    c = come_back(&p, c, 7);
    leave_session(c);
    assert_ok(crn_comm_barrier(p.comm));
    if (p.rank == 0)
        assert_int_equal(umount2(dir, MNT_DETACH), 0);
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_write_fails),
        cmocka_unit_test(test_capture_fails),
        cmocka_unit_test(test_storing_small_fails),
        cmocka_unit_test(test_full_for_long),
    };
    return run_mpi_tests(argc, argv, tests);
}
