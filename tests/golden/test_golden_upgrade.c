/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A part of format 1 becomes one of format 2 with its next mark, in place. The machine stops before
 * each operation of that, with what was not yet durable there, missing, reordered or torn: the
 * marks are those before or after the call that was under way, and the next mark succeeds.
 */
#include "fault/disk.h"
#include "store/store_part.h"

/* As in test_golden.c, which has written the file. */
enum { CELLS = 300, BLOCK = 1024, RANKS = 4, STEP = 10, FIRST = 20, LAST = 60, CHOICES = 12 };

static const crn_part_options options = {CRN_IO_THREADS, 2, false};
static const crn_part_id owner = {"golden run 0001", 1, 2, RANKS, CRN_ROLE_OWN};

static char work[64], image[64];

static uint64_t cell(uint64_t version, uint64_t i)
{
    return i * 1000 + (i < 64 ? version : 0);
}

static void put_mark(crn_part *part, uint64_t version)
{
    uint64_t field[CELLS];
    const crn_var_spec spec = {
        .name = "field", .type = "uint64", .item = 8, .block = BLOCK, .nbytes = sizeof field};
    crn_draft *d;
    size_t v;
    for (uint64_t i = 0; i < CELLS; i++)
        field[i] = cell(version, i);
    assert_ok(crn_draft_begin(part, version, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    assert_ok(crn_draft_put_all(d, v, field));
    assert_ok(crn_draft_commit(d, 2, NULL));
}

static void check_mark(crn_part *part, uint64_t version)
{
    uint64_t field[CELLS];
    crn_mark *m;
    assert_ok(crn_part_load(part, version, &m));
    crn_var *v = crn_mark_find(m, "field");
    assert_non_null(v);
    assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, field, NULL));
    for (uint64_t i = 0; i < CELLS; i++)
        assert_true(field[i] == cell(version, i));
    crn_mark_free(m);
}

static int open_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    return fd;
}

/* What a crash leaves: two marks, one step apart, between those at least and at most; and one more
 * can be taken. */
static void check_image(uint64_t least, uint64_t most)
{
    crn_part *part;
    crn_part_info info;
    int dir = open_dir(image);
    assert_ok(crn_part_open(dir, "part", &owner, true, &options, &part));
    crn_part_describe(part, &info);
    assert_int_equal(info.nmarks, 2);
    const uint64_t newest = crn_part_version(part, 1);
    assert_true(newest >= least && newest <= most);
    assert_int_equal(crn_part_version(part, 0), newest - STEP);
    check_mark(part, newest - STEP);
    check_mark(part, newest);
    put_mark(part, newest + STEP);
    check_mark(part, newest);
    check_mark(part, newest + STEP);
    crn_part_close(part);
    close(dir);
}

/* Let marks be taken on a copy of the golden file, and note after which operation each was there.
 */
static void live(disk_log *log, size_t after[LAST / STEP + 1])
{
    crn_part *part;
    void *data;
    size_t n;
    int golden = open_dir(TESTS_DIR "/golden"), dir = open_dir(work);
    disk_record(log, work);
    assert_ok(crn_file_slurp(golden, "good-part-1", 1 << 20, &data, &n));
    assert_ok(crn_file_replace(dir, "part", data, n));
    assert_ok(crn_part_open(dir, "part", &owner, true, &options, &part));
    assert_int_equal(part->super.format, 1);
    after[FIRST / STEP + 1] = log->op.n; /* the file has marks 20 and 30 */
    for (uint64_t version = FIRST + 2 * STEP; version <= LAST; version += STEP) {
        put_mark(part, version);
        assert_int_equal(part->super.format, 2);
        after[version / STEP] = log->op.n;
    }
    crn_fault_watch(NULL, NULL);
    crn_part_close(part);
    free(data);
    close(golden);
    close(dir);
}

static void crash_at(const disk_log *log, size_t k, const disk_choice *c, uint64_t seed,
                     const size_t *after)
{
    uint64_t least = FIRST + STEP;
    disk d;
    while (least < LAST && after[least / STEP + 1] <= k)
        least += STEP;
    disk_play(&d, log, k, c->kind == DISK_RANDOM ? c->seed : seed);
    disk_crash(&d, c);
    remove_tree(image);
    assert_int_equal(mkdir(image, 0700), 0);
    disk_write_out(&d, image);
    disk_done(&d);
    check_image(least, CRN_MIN(least + STEP, (uint64_t)LAST));
}

static void test_crash_everywhere(void **state)
{
    (void)state;
    size_t after[LAST / STEP + 1] = {0};
    disk_log log = {0};
    disk_choices choices = {0};
    disk_scratch(work, "upgrade");
    disk_scratch(image, "upgraded");
    live(&log, after);
    for (size_t k = after[FIRST / STEP + 1]; k <= log.op.n; k++) {
        const uint64_t seed = test_seed() + 1000 * k;
        disk d;
        disk_play(&d, &log, k, seed);
        disk_choose(&d, seed, CHOICES, &choices);
        disk_done(&d);
        for (size_t i = 0; i < choices.n; i++)
            crash_at(&log, k, &choices.at[i], seed, after);
    }
    crn_vec_done(&choices);
    disk_log_done(&log);
    remove_tree(work);
    remove_tree(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_crash_everywhere)};
    return cmocka_run_group_tests_name("golden_upgrade", tests, NULL, NULL);
}
