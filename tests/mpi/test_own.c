/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The own part: what becomes of marks when it is damaged while the program runs, and when it lies
 * in the trail; and what is declared while a mark is open.
 *
 * TEST: ranks self
 */
#include "harness/session.h"

#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

enum { CELLS = 1 << 16, IN_BLOCK = 512 }; /* of 4 KiB */

static uint64_t field[CELLS];

static void fill(uint64_t step)
{
    for (uint64_t i = 0; i < CELLS; i++)
        field[i] = i * 0x9e3779b97f4a7c15u;
    field[0] = step;
}

static void begin(const place *p, cairn **ret)
{
    assert_ok(cairn_open(p->mpi, p->config, ret));
    assert_ok(cairn_protect(*ret, "field", field, CAIRN_UINT64, CELLS));
    assert_true(cairn_resume(*ret, NULL) >= 0);
}

/* Turn a bit of the tenth block, wherever a file has it. */
static int spoil(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)at;
    static unsigned char bytes[4 << 20];
    if (type != FTW_F || st->st_size > (off_t)sizeof bytes)
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

/* The memory is good: the mark after the one that could not be copied is written in full. */
static void test_damage_that_copying_finds(void **state)
{
    place p;
    char local[96];
    cairn *c;
    uint64_t version;
    place_init(&p, *state, "[level]\nlocal = @/local\n[variable]\nblock = 4KiB\n");
    snprintf(local, sizeof local, "%s/local", p.dir);
    begin(&p, &c);
    fill(1);
    assert_ok(cairn_mark(c, 1, CAIRN_LEVEL_LOCAL));
    assert_ok(cairn_settle(c));
    assert_int_equal(nftw(local, spoil, 8, FTW_PHYS), 1);
    fill(2);
    assert_ok(cairn_mark(c, 2, CAIRN_LEVEL_GLOBAL));
    assert_refused(c, cairn_settle(c), CAIRN_ECORRUPT, "block 10");
    fill(3);
    assert_ok(cairn_mark(c, 3, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_settle(c));
    leave_session(c);
    remove_tree(local);
    memset(field, 0, sizeof field);
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, 3);
    assert_true(field[0] == 3 && field[10 * IN_BLOCK] == 10 * IN_BLOCK * 0x9e3779b97f4a7c15u);
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
    fill(1);
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
    place_init(&p, *state, "");
    fill(1);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage_that_copying_finds),
        cmocka_unit_test(test_without_nodes_a_resume_finds_no_damage),
        cmocka_unit_test(test_pieces_declared_while_a_mark_is_open),
    };
    return run_mpi_tests(argc, argv, tests);
}
