/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Damage in parts and copies, found while the program runs or comes back, is healed by the next
 * marks; what is said of a run by its manifest, its log or a signal is not believed further than
 * it can be.
 *
 * TEST: ranks self 2
 * NEEDS: inih
 */
#include "harness/session.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/keep.h>

#include "io/io_fault.h"
#include "store/store.h"

enum { CELLS = 1 << 16, IN_BLOCK = 512 }; /* of 4 KiB */

static const char small_blocks[] =
    "[level]\nlocal = @/local\npartner = 0\n[variable]\nblock = 4KiB\n";

static uint64_t field[CELLS];
static const char *spoilt; /* part of the path of files that are to be damaged */

static uint64_t value(uint64_t i)
{
    return i * 0x9e3779b97f4a7c15u;
}

/* No two blocks are the same, and only the first one changes. */
static void fill(const place *p, uint64_t step)
{
    for (uint64_t i = 0; i < CELLS; i++)
        field[i] = value((uint64_t)p->rank * CELLS + i);
    field[0] = step;
}

static void begin(const place *p, cairn **ret)
{
    assert_ok(cairn_open(p->mpi, p->config, ret));
    assert_ok(cairn_protect(*ret, "field", field, CAIRN_UINT64, CELLS));
    assert_true(cairn_resume(*ret, NULL) >= 0);
}

/* The version of the mark that there must be. */
static uint64_t come_back(const place *p, cairn **ret)
{
    uint64_t version;
    assert_ok(cairn_open(p->mpi, p->config, ret));
    assert_ok(cairn_protect(*ret, "field", field, CAIRN_UINT64, CELLS));
    assert_ok(cairn_resume(*ret, &version));
    return version;
}

/* A leg with one mark. */
static void take_mark(const place *p, cairn_level level)
{
    cairn *c;
    begin(p, &c);
    fill(p, 1);
    assert_ok(cairn_mark(c, 1, level));
    leave_session(c);
}

/* Turn a bit of this rank's tenth block, where a file has it. */
static int spoil(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)at;
    static unsigned char bytes[4 << 20];
    if (type != FTW_F || !strstr(path, spoilt) || st->st_size > (off_t)sizeof bytes)
        return 0;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    const ssize_t n = read(fd, bytes, sizeof bytes);
    unsigned char *found =
        memmem(bytes, (size_t)n, &field[10 * IN_BLOCK], IN_BLOCK * sizeof *field);
    if (found) {
        found[7] ^= 1;
        assert_int_equal(pwrite(fd, found + 7, 1, found + 7 - bytes), 1);
    }
    close(fd);
    return found != NULL;
}

/* Damage a file with that in its path, if it has the block; whether it had. */
static bool is_spoilt(const place *p, const char *name)
{
    spoilt = name;
    return nftw(p->dir, spoil, 8, FTW_PHYS) == 1;
}

/* Remove "/local", which is all nodes, or "/local/node-0". Collective. */
static void lose(const place *p, const char *what)
{
    char path[96];
    snprintf(path, sizeof path, "%s%s", p->dir, what);
    assert_ok(crn_comm_barrier(p->comm));
    if (p->rank == 0)
        remove_tree(path);
    assert_ok(crn_comm_barrier(p->comm));
}

/* With no nodes left, the last mark is there with every block of it. */
static void must_be_whole_in_the_trail(const place *p, uint64_t version)
{
    cairn *c;
    lose(p, "/local");
    memset(field, 0, sizeof field);
    assert_int_equal(come_back(p, &c), version);
    assert_int_equal(field[0], version);
    for (uint64_t i = 1; i < CELLS; i++)
        assert_int_equal(field[i], value((uint64_t)p->rank * CELLS + i));
    leave_session(c);
}

/* The memory is good: the mark after the one that could not be copied is written in full. */
static void test_damage_that_copying_finds(void **state)
{
    place p;
    cairn *c;
    place_init(&p, *state, small_blocks);
    begin(&p, &c);
    fill(&p, 1);
    assert_ok(cairn_mark(c, 1, CAIRN_LEVEL_LOCAL));
    assert_ok(cairn_settle(c));
    assert_true(is_spoilt(&p, "own-"));
    fill(&p, 2);
    assert_ok(cairn_mark(c, 2, CAIRN_LEVEL_GLOBAL));
    assert_refused(c, cairn_settle(c), CAIRN_ECORRUPT, "block 10");
    fill(&p, 3);
    assert_ok(cairn_mark(c, 3, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_settle(c));
    leave_session(c);
    must_be_whole_in_the_trail(&p, 3);
    place_done(&p);
}

/* And so it is where the kernel says that the memory was not written: it is storage that changed.
 */
static void test_damage_under_memory_that_is_tracked(void **state)
{
    place p;
    cairn *c;
    place_init(&p, *state,
               "[level]\nlocal = @/local\npartner = 0\n"
               "[variable]\nblock = 4KiB\ntrack = kernel\n");
    begin(&p, &c);
    fill(&p, 0);
    for (uint64_t step = 1; step <= 5; step++) {
        field[0] = step;
        assert_ok(cairn_mark(c, step, step < 4 ? CAIRN_LEVEL_LOCAL : CAIRN_LEVEL_GLOBAL));
        if (step == 4)
            assert_refused(c, cairn_settle(c), CAIRN_ECORRUPT, "block 10");
        else
            assert_ok(cairn_settle(c));
        if (step == 3)
            assert_true(is_spoilt(&p, "own-"));
    }
    leave_session(c);
    must_be_whole_in_the_trail(&p, 5);
    place_done(&p);
}

/* Copies do not inherit for ever what storage has damaged: each looks at a share of it. */
static void test_damage_that_nobody_reads(void **state)
{
    enum { MARKS = 100 }; /* in which each share has its turn, and the damaged mark goes */
    place p;
    cairn *c;
    place_init(&p, *state, small_blocks);
    begin(&p, &c);
    for (uint64_t step = 1; step <= MARKS; step++) {
        fill(&p, step);
        assert_ok(cairn_mark(c, step, CAIRN_LEVEL_GLOBAL));
        assert_ok(cairn_settle(c));
        if (step == 1)
            assert_true(is_spoilt(&p, "/trail/"));
        assert_ok(crn_comm_barrier(p.comm));
    }
    leave_session(c);
    must_be_whole_in_the_trail(&p, MARKS);
    place_done(&p);
}

/* Nor do own parts, of which there may be no copy at all: memory is good. */
static void lose_a_block_of_the_part(const place *p, const char *part)
{
    enum { MARKS = 100 };
    cairn *c;
    begin(p, &c);
    for (uint64_t step = 1; step <= MARKS; step++) {
        fill(p, step);
        assert_ok(cairn_mark(c, step, CAIRN_LEVEL_LOCAL));
        assert_ok(cairn_settle(c));
        if (step == 1)
            assert_true(is_spoilt(p, part));
        assert_ok(crn_comm_barrier(p->comm));
    }
    leave_session(c);
    memset(field, 0, sizeof field);
    assert_int_equal(come_back(p, &c), MARKS);
    for (uint64_t i = 1; i < CELLS; i++)
        assert_int_equal(field[i], value((uint64_t)p->rank * CELLS + i));
    leave_session(c);
}

static void test_damage_of_own_parts_in_the_trail(void **state)
{
    place p;
    place_init(&p, *state, "[level]\nlocal = trail\n[variable]\nblock = 4KiB\n");
    lose_a_block_of_the_part(&p, "/part-");
    place_done(&p);
}

static void test_damage_of_own_parts_on_nodes(void **state)
{
    place p;
    place_init(&p, *state,
               "[level]\nlocal = @/local\npartner = 0\nglobal = 0\n[mark]\nmode = synchronous\n"
               "[variable]\nblock = 4KiB\ntrack = kernel\n");
    lose_a_block_of_the_part(&p, "/own-");
    place_done(&p);
}

/* Nor does a copy fail because what it would inherit cannot be read: it is written again. */
static void test_what_a_copy_cannot_read(void **state)
{
    place p;
    cairn *c;
    if (crn_comm_size(*state) > 1)
        skip();
    place_init(&p, *state, "[level]\nlocal = @/local\n[variable]\nblock = 4KiB\n");
    begin(&p, &c);
    for (uint64_t step = 1; step < 40; step++) {
        const crn_fault fault = {CRN_FAULT_READ, CRN_FAULT_EIO, step / 2, 1};
        fill(&p, step);
        crn_fault_arm(&fault); /* every other one strikes where the one before did */
        cairn_status rc = (cairn_status)cairn_mark(c, step, CAIRN_LEVEL_GLOBAL);
        rc = rc < 0 ? rc : (cairn_status)cairn_settle(c);
        crn_fault_arm(NULL);
        if (rc < 0 && strstr(cairn_last_error(c), "part-"))
            fail_msg("mark %d: %s", (int)step, cairn_last_error(c));
    }
    leave_session(c);
    place_done(&p);
}

/* Blocks of the mark that were written by it. */
static uint64_t count_written(const place *p, size_t mark)
{
    char trail[96];
    cairn_trail *t;
    cairn_variable_info var = {.struct_bytes = sizeof var};
    snprintf(trail, sizeof trail, "%s/trail", p->dir);
    assert_ok(cairn_trail_open(trail, &t));
    assert_ok(cairn_trail_variable(t, 0, mark, 0, 0, &var));
    cairn_trail_close(t);
    return var.nchanged;
}

static void test_without_nodes_a_resume_finds_no_damage(void **state)
{
    place p;
    cairn *c;
    place_init(&p, *state, "[level]\nlocal = trail\n[keep]\nglobal = all\n");
    fill(&p, 1);
    begin(&p, &c);
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    leave_session(c);
    begin(&p, &c);
    assert_ok(cairn_mark(c, 2, CAIRN_AUTO));
    leave_session(c);
    assert_true(count_written(&p, 0) > 0);
    assert_int_equal(count_written(&p, 1), 0);
    place_done(&p);
}

static void test_pieces_declared_while_a_mark_is_open(void **state)
{
    place p;
    cairn *c;
    const uint64_t global = CELLS, zero = 0, half = CELLS / 2;
    if (crn_comm_size(*state) > 1)
        skip();
    place_init(&p, *state, "");
    fill(&p, 1);
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_ok(cairn_protect_part(c, "field", field, CAIRN_UINT64, 1, &global, &zero, &global));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    assert_ok(cairn_begin(c, 1, CAIRN_AUTO));
    assert_ok(cairn_protect_part(c, "field", field, CAIRN_UINT64, 1, &global, &zero, &half));
    assert_refused(c, cairn_commit(c), CAIRN_EINVAL, "field");
    assert_refused(c, cairn_commit(c), CAIRN_EINVAL, "no mark is open");
    assert_ok(cairn_protect_part(c, "field", field, CAIRN_UINT64, 1, &global, &zero, &global));
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    assert_ok(cairn_close(c));
    place_done(&p);
}

/* Two nodes. The one of rank 0 is lost, and the file that makes up for it has a bad block: that
 * comes from the trail, and the next mark of the level does not inherit it. */
static void check_healing(crn_comm *comm, const char *settings, const char *file, cairn_level level)
{
    place p;
    cairn *c;
    if (crn_comm_size(comm) < 2)
        skip();
    place_init(&p, comm, settings);
    take_mark(&p, CAIRN_AUTO);
    if (p.rank == 0)
        assert_true(is_spoilt(&p, file));
    lose(&p, "/local/node-0");
    assert_int_equal(come_back(&p, &c), 1);
    field[0] = 2;
    assert_ok(cairn_mark(c, 2, level));
    assert_ok(cairn_settle(c));
    if (p.rank == 0)
        assert_true(is_spoilt(&p, file)); /* the good block is there again */
    leave_session(c);
    place_done(&p);
}

static void test_damage_in_a_copy_that_coming_back_finds(void **state)
{
    check_healing(*state,
                  "[level]\nlocal = @/local\nnode_size = 1\npartner = 1\nglobal = 1\n"
                  "[variable]\nblock = 4KiB\n",
                  "partner-0", CAIRN_LEVEL_PARTNER);
}

/* Parity of a group of two is the other rank's data. */
static void test_damage_in_parity_that_coming_back_finds(void **state)
{
    check_healing(*state,
                  "[level]\nlocal = @/local\nnode_size = 1\npartner = 0\nglobal = 1\n"
                  "encoded = 1\ngroup = 2\nparity = 1\n[variable]\nblock = 4KiB\n",
                  "parity-", CAIRN_LEVEL_ENCODED);
}

/* Nor does parity inherit for ever what storage has damaged. */
static void test_damage_in_parity_that_nobody_reads(void **state)
{
    enum { MARKS = 100 };
    place p;
    cairn *c;
    if (crn_comm_size(*state) < 2)
        skip();
    place_init(&p, *state,
               "[level]\nlocal = @/local\nnode_size = 1\npartner = 0\nglobal = 0\n"
               "encoded = 1\ngroup = 2\nparity = 1\n[variable]\nblock = 4KiB\n");
    begin(&p, &c);
    fill(&p, MARKS);
    for (uint64_t step = 1; step <= MARKS; step++) {
        field[CELLS - 1] = step; /* far from the block that is spoilt */
        assert_ok(cairn_mark(c, step, CAIRN_AUTO));
        assert_ok(cairn_settle(c));
        if (step == 1 && p.rank == 0)
            assert_true(is_spoilt(&p, "parity-"));
        assert_ok(crn_comm_barrier(p.comm));
    }
    leave_session(c);
    lose(&p, "/local/node-0");
    memset(field, 0, sizeof field);
    assert_int_equal(come_back(&p, &c), MARKS);
    for (uint64_t i = 1; i < CELLS - 1; i++)
        assert_int_equal(field[i], value((uint64_t)p.rank * CELLS + i));
    leave_session(c);
    place_done(&p);
}

/* Told to stop right after a node was replaced: the mark, which that node's rank has from its
 * partner only, gets to the trail all the same. */
static void test_leaving_at_once_without_an_own_part(void **state)
{
    place p;
    cairn *c;
    if (crn_comm_size(*state) < 2)
        skip();
    place_init(&p, *state,
               "[level]\nlocal = @/local\nnode_size = 1\npartner = 1\nglobal = 0\n"
               "[variable]\nblock = 4KiB\n");
    take_mark(&p, CAIRN_LEVEL_PARTNER);
    lose(&p, "/local/node-0");
    assert_int_equal(come_back(&p, &c), 1);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_true(cairn_should_stop(c));
    assert_int_equal(cairn_mark(c, 1, CAIRN_AUTO), CAIRN_NOTHING);
    assert_ok(cairn_close(c));
    must_be_whole_in_the_trail(&p, 1);
    place_done(&p);
}

/* The rank that needs a block finds it damaged; it is another one whose part has it. */
static void test_damage_in_the_part_of_another_rank(void **state)
{
    place p;
    cairn *c;
    const uint64_t global = 2 * CELLS, count = CELLS;
    if (crn_comm_size(*state) < 2)
        skip();
    place_init(&p, *state,
               "[level]\nlocal = @/local\nnode_size = 1\npartner = 1\n"
               "[variable]\nblock = 4KiB\n");
    for (uint64_t leg = 0; leg < 2; leg++) {
        const uint64_t offset = ((uint64_t)p.rank ^ leg) * CELLS;
        for (uint64_t i = 0; leg == 0 && i < CELLS; i++)
            field[i] = value(i); /* the same on both ranks */
        assert_ok(cairn_open(p.mpi, p.config, &c));
        assert_ok(cairn_protect_part(c, "field", field, CAIRN_UINT64, 1, &global, &offset, &count));
        assert_true(cairn_resume(c, NULL) >= 0);
        assert_ok(cairn_mark(c, 1 + leg, CAIRN_AUTO));
        leave_session(c);
        if (p.rank == 1)
            assert_true(is_spoilt(&p, "own-1")); /* in the second leg: it is good again */
        assert_ok(crn_comm_barrier(p.comm));
    }
    place_done(&p);
}

/* Ranks may come to other nodes than they had, where their parts begin anew: a command that sees
 * all nodes finds the newest. */
static void test_draining_parts_that_moved(void **state)
{
    place p;
    cairn *c;
    MPI_Comm turned;
    cairn_drain_result out = {.struct_bytes = sizeof out};
    if (crn_comm_size(*state) < 2)
        skip();
    place_init(&p, *state, "[level]\nlocal = @/local\nnode_size = 1\npartner = 0\nglobal = 0\n");
    begin(&p, &c);
    fill(&p, 1);
    assert_ok(cairn_mark(c, 1, CAIRN_LEVEL_LOCAL));
    assert_int_equal(MPI_Comm_split(p.mpi, 0, -p.rank, &turned), MPI_SUCCESS);
    assert_ok(cairn_reopen(c, turned));
    assert_ok(cairn_resume(c, NULL));
    assert_ok(cairn_mark(c, 2, CAIRN_LEVEL_LOCAL));
    leave_session(c);
    MPI_Comm_free(&turned);
    assert_ok(crn_comm_barrier(p.comm));
    if (p.rank == 0) {
        assert_ok(cairn_drain(MPI_COMM_SELF, p.config, &out));
        assert_int_equal(out.version, 2);
        assert_int_equal(out.nlost, 0);
    }
    place_done(&p);
}

/* --- what is said of a run ------------------------------------------------------------------- */

/* Wherever the manifest's replacement fails: the mark that it would have pushed out is still there,
 * or the new one is. */
static void test_a_manifest_that_may_be_there(void **state)
{
    for (uint64_t n = 1; n < 14; n++) {
        place p;
        cairn *c;
        const crn_fault fault = {CRN_FAULT_SYNC, CRN_FAULT_EIO, n, 1};
        place_init(&p, *state,
                   "[level]\nlocal = trail\n[keep]\nglobal = 1\n[compare]\ntrees = no\n");
        begin(&p, &c);
        fill(&p, 1);
        assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
        assert_ok(cairn_settle(c));
        fill(&p, 2);
        if (p.rank == 0)
            crn_fault_arm(&fault);
        (void)cairn_mark(c, 2, CAIRN_AUTO);
        (void)cairn_settle(c);
        crn_fault_arm(NULL);
        assert_int_equal(raise(SIGUSR1), 0);
        (void)cairn_should_stop(c);
        (void)cairn_close(c);
        const uint64_t version = come_back(&p, &c);
        assert_int_equal(field[0], version);
        leave_session(c);
        place_done(&p);
    }
}

static void test_a_signal_that_nobody_asked_for(void **state)
{
    place p;
    cairn *c;
    place_init(&p, *state, "");
    begin(&p, &c);
    fill(&p, 1);
    if (p.rank == 0)
        assert_int_equal(raise(SIGUSR1), 0);
    assert_ok(cairn_mark(c, 1, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_close(c));
    begin(&p, &c);
    assert_int_equal(field[0], 1);
    assert_int_equal(cairn_probe(c, NULL), CAIRN_OK);
    leave_session(c);
    place_done(&p);
}

static void test_a_log_that_cannot_be_read(void **state)
{
    place p;
    cairn *c;
    char events[128];
    place_init(&p, *state, "");
    take_mark(&p, CAIRN_LEVEL_GLOBAL);
    snprintf(events, sizeof events, "%s/trail/run-1/events", p.dir);
    if (p.rank == 0)
        assert_int_equal(truncate(events, INT64_C(2) << 30), 0); /* a hole */
    assert_ok(crn_comm_barrier(p.comm));
    assert_int_equal(come_back(&p, &c), 1);
    leave_session(c);
    place_done(&p);
}

/* As an import leaves it that was killed. */
static void test_a_run_without_marks_hides_none(void **state)
{
    place p;
    cairn *c;
    char path[96];
    crn_trail *t;
    crn_run *run;
    place_init(&p, *state, "");
    take_mark(&p, CAIRN_LEVEL_GLOBAL);
    snprintf(path, sizeof path, "%s/trail", p.dir);
    if (p.rank == 0) {
        assert_ok(crn_trail_open(path, false, &t));
        assert_ok(crn_run_create(t, NULL, &run));
        crn_run_close(run);
        crn_trail_close(t);
    }
    assert_ok(crn_comm_barrier(p.comm));
    assert_int_equal(come_back(&p, &c), 1);
    leave_session(c);
    place_done(&p);
}

static _Noreturn void open_and_tell(const char *config)
{
    cairn *c;
    _exit(cairn_open(MPI_COMM_SELF, config, &c) == CAIRN_EBUSY ? 0 : 1);
}

/* The second of two programs waits until the first has begun its run, and is refused then. */
static void test_two_programs_that_start_together(void **state)
{
    place p;
    char path[96];
    crn_trail *t;
    crn_run *run;
    crn_file *lock;
    int status;
    if (crn_comm_size(*state) > 1)
        skip();
    place_init(&p, *state, "");
    snprintf(path, sizeof path, "%s/trail", p.dir);
    assert_ok(crn_trail_open(path, true, &t));
    assert_ok(crn_trail_lock(t, &lock));
    assert_non_null(lock);
    const pid_t second = fork();
    assert_true(second >= 0);
    if (second == 0)
        open_and_tell(p.config);
    usleep(100000); /* time to pass the lock by, if it could */
    assert_ok(crn_run_create(t, NULL, &run));
    crn_file_close(lock);
    assert_int_equal(waitpid(second, &status, 0), second);
    assert_int_equal(status, 0);
    crn_run_close(run);
    crn_trail_close(t);
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage_that_copying_finds),
        cmocka_unit_test(test_damage_under_memory_that_is_tracked),
        cmocka_unit_test(test_damage_that_nobody_reads),
        cmocka_unit_test(test_damage_of_own_parts_in_the_trail),
        cmocka_unit_test(test_damage_of_own_parts_on_nodes),
        cmocka_unit_test(test_what_a_copy_cannot_read),
        cmocka_unit_test(test_without_nodes_a_resume_finds_no_damage),
        cmocka_unit_test(test_pieces_declared_while_a_mark_is_open),
        cmocka_unit_test(test_damage_in_a_copy_that_coming_back_finds),
        cmocka_unit_test(test_damage_in_parity_that_coming_back_finds),
        cmocka_unit_test(test_damage_in_parity_that_nobody_reads),
        cmocka_unit_test(test_leaving_at_once_without_an_own_part),
        cmocka_unit_test(test_damage_in_the_part_of_another_rank),
        cmocka_unit_test(test_draining_parts_that_moved),
        cmocka_unit_test(test_a_manifest_that_may_be_there),
        cmocka_unit_test(test_a_signal_that_nobody_asked_for),
        cmocka_unit_test(test_a_log_that_cannot_be_read),
        cmocka_unit_test(test_a_run_without_marks_hides_none),
        cmocka_unit_test(test_two_programs_that_start_together),
    };
    return run_mpi_tests(argc, argv, tests);
}
