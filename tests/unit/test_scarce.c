/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Little memory: a draft that may hold back more than there is room for writes earlier instead.
 */
#include "harness/harness.h"
#include "harness/scratch.h"
#include "store/store.h"

#include <sys/resource.h>

enum { NBLOCKS = 48, BLOCK = 1 << 20, SPARE = 24 << 20 };

static const crn_part_id id = {.series = 1, .rank = 0, .nranks = 1};

/* Leave the process so many bytes of address space. */
static struct rlimit leave_room(uint64_t nbytes)
{
    struct rlimit before, now;
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    now = before;
    now.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + nbytes;
    assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
    return before;
}

static void test_what_cannot_be_held_back_is_written(void **state)
{
    (void)state;
    const crn_part_options opt = {CRN_IO_THREADS, 1, false};
    const crn_var_spec spec = {.name = "field",
                               .type = "uint8",
                               .item = 1,
                               .block = BLOCK,
                               .nbytes = (uint64_t)NBLOCKS * BLOCK};
    unsigned char *field, *back;
    crn_part *part;
    crn_draft *d;
    crn_mark *m;
    size_t v;
    assert_ok(crn_alloc(&field, spec.nbytes));
    assert_ok(crn_alloc(&back, spec.nbytes));
    for (uint64_t i = 0; i < spec.nbytes; i++)
        field[i] = (unsigned char)(i * 2654435761u >> 13);
    assert_ok(crn_part_create(dir, "scarce", &id, &opt, &part));
    crn_part_set_staging(part, 2 * spec.nbytes);
    assert_ok(crn_draft_begin(part, 1, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    const struct rlimit before = leave_room(SPARE);
    cairn_status rc = crn_draft_put_all(d, v, field);
    if (rc == CAIRN_OK)
        rc = crn_draft_commit(d, 1, NULL);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_ok(rc);
    assert_ok(crn_part_load(part, 1, &m));
    assert_ok(crn_mark_read(part, m, &m->var[0], 0, NBLOCKS, back, NULL));
    assert_memory_equal(field, back, spec.nbytes);
    crn_mark_free(m);
    crn_part_close(part);
    free(field);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_cannot_be_held_back_is_written)};
    return cmocka_run_group_tests_name("scarce", tests, scratch_begin, scratch_end);
}
