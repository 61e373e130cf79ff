/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where levels meet trouble: a failing disk or no memory on one rank, other numbers of ranks, a
 * lone process after the job, files that stayed behind.
 *
 * TEST: ranks self 2 3 5
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "harness/level_world.h"
#include "level/level_ops.h"

static bool can_raise(const world *w, crn_level level)
{
    return level != CRN_LEVEL_PARTNER || crn_vault_nodes(w->vault)->nnodes > 1;
}

/* --- one rank fails ------------------------------------------------------------------------- */

/* The rank that fails: the last one, which is also the only one of a lone process. */
static bool is_victim(const world *w)
{
    return w->rank == w->nranks - 1;
}

/* Whether the level's copies alone can give a mark: own parts set aside for a moment. */
static cairn_status load_from_copies(world *w, uint64_t version, uint32_t level)
{
    crn_load_stats s = {0};
    char path[256], aside[264];
    uint32_t own = (uint32_t)w->rank;
    crn_manifest_mark mark = world_manifest(w, version, level);
    world_path(w, crn_vault_nodes(w->vault)->node, "own", w->rank, path);
    snprintf(aside, sizeof aside, "%s.aside", path);
    assert_int_equal(rename(path, aside), 0);
    cairn_status rc = crn_vault_survey(w->vault, NULL, 0);
    if (rc == CAIRN_OK)
        rc = crn_vault_can_load(w->vault, &mark);
    if (rc == CAIRN_OK)
        rc = world_load(w, &mark, &own, 1, &s);
    assert_int_equal(rename(aside, path), 0);
    assert_ok(crn_comm_barrier(w->comm));
    return rc;
}

/* No rank keeps a copy of a mark that some rank could not copy. */
static void assert_no_partner_has(world *w, uint64_t version)
{
    assert_ok(crn_vault_survey(w->vault, NULL, 0));
    for (size_t i = 0; i < w->vault->seen.n; i++)
        assert_false(w->vault->seen.at[i].role == CRN_ROLE_PARTNER &&
                     w->vault->seen.at[i].version == version);
}

typedef enum trouble { DISK, MEMORY } trouble;

/* Raise with the n-th operation of the victim failing, if there are so many; on a disk that is
 * known, and *ret_more becomes false on all ranks. */
static cairn_status raise_in_trouble(world *w, crn_level level, trouble kind, uint64_t n,
                                     bool *ret_more)
{
    const crn_fault plan = {CRN_FAULT_ANY, CRN_FAULT_ENOSPC, n, 1};
    if (is_victim(w) && kind == DISK)
        crn_fault_arm(&plan);
    if (is_victim(w) && kind == MEMORY)
        crn_mem_fail_at(n);
    cairn_status rc = crn_vault_raise(w->vault, level, w->version, WORLD_KEEP, NULL);
    *ret_more = kind == MEMORY || crn_fault_seen() >= n;
    crn_fault_arm(NULL);
    crn_mem_fail_at(0);
    assert_true(rc == CAIRN_OK || crn_err_peek()->rank == w->nranks - 1);
    assert_ok(crn_comm_bcast(w->comm, ret_more, sizeof *ret_more, w->nranks - 1));
    return rc;
}

static void assert_all_say(const world *w, cairn_status rc)
{
    uint64_t range[2] = {(uint64_t)-rc, UINT64_MAX - (uint64_t)-rc};
    assert_ok(crn_comm_allreduce_u64(w->comm, CRN_REDUCE_MAX, range, 2));
    assert_int_equal(range[0], UINT64_MAX - range[1]);
}

/*
 * Let the n-th operation fail, for growing n until none does any more; the mark before must stand
 * each time. Some failures are survived, such as a read that works the second time.
 */
static void every_failure(world *w, crn_level level, uint32_t bit, trouble kind)
{
    enum { ENOUGH = 3 }; /* successes in a row without memory: it was not asked for any more */
    int nfailed = 0, nok = 0;
    bool more = true;
    world_mark(w);
    assert_ok(crn_vault_raise(w->vault, level, w->version, WORLD_KEEP, NULL));
    world_mark(w);
    for (uint64_t n = 1; more && (kind == DISK || nok < ENOUGH); n += 1 + n / 8) {
        cairn_status rc = raise_in_trouble(w, level, kind, n, &more);
        assert_all_say(w, rc);
        if (rc == CAIRN_OK) {
            world_mark(w);
            nok++;
        } else {
            assert_true(rc == CAIRN_ENOSPC || rc == CAIRN_ENOMEM);
            assert_no_partner_has(w, w->version);
            nfailed++;
            nok = 0;
        }
        assert_ok(load_from_copies(w, w->version - 1, bit));
    }
    assert_true(nfailed > 2);
}

static void trouble_at(crn_comm *comm, crn_level level, uint32_t bit, trouble kind)
{
    world w;
    world_begin(&w, comm, 2, false);
    if (can_raise(&w, level))
        every_failure(&w, level, bit, kind);
    world_end(&w);
}

static void test_a_failing_disk_on_one_rank(void **state)
{
    trouble_at(*state, CRN_LEVEL_PARTNER, AT_PARTNER, DISK);
    trouble_at(*state, CRN_LEVEL_GLOBAL, AT_GLOBAL, DISK);
}

static void test_no_memory_on_one_rank(void **state)
{
    trouble_at(*state, CRN_LEVEL_PARTNER, AT_PARTNER, MEMORY);
    trouble_at(*state, CRN_LEVEL_GLOBAL, AT_GLOBAL, MEMORY);
}

/* --- other numbers of ranks ----------------------------------------------------------------- */

static crn_comm *lower_half(crn_comm *c)
{
    return lowest_ranks(c, (crn_comm_size(c) + 1) / 2);
}

/* Every rank loads several shares, some of which others load as well. */
static void load_overlapping(world *w, uint64_t version, uint32_t levels)
{
    enum { MOST = 8 };
    crn_manifest_mark mark = world_manifest(w, version, levels);
    crn_load_stats s = {0};
    uint32_t old[MOST];
    size_t n = 0;
    for (uint32_t r = 0; r < mark.nranks && n < MOST; r++)
        if ((r + (uint32_t)w->rank) % 3 != 1)
            old[n++] = (r * 5 + 2 * (uint32_t)w->rank) % mark.nranks;
    assert_ok(crn_vault_survey(w->vault, NULL, 0));
    assert_ok(crn_vault_can_load(w->vault, &mark));
    assert_ok(world_load(w, &mark, old, n, &s));
}

static void write_marks(world *w, int n)
{
    for (int i = 0; i < n; i++) {
        world_mark(w);
        assert_ok(crn_vault_raise(w->vault, CRN_LEVEL_GLOBAL, w->version, WORLD_KEEP, NULL));
    }
}

/* Marks of all ranks, loaded by half of them. Nodes that are no longer there have nothing. */
static void test_fewer_ranks_load_all_shares(void **state)
{
    world w;
    crn_comm *half = lower_half(*state);
    world_begin(&w, *state, 1, false);
    write_marks(&w, 3);
    world_leave(&w);
    if (half) {
        world_enter(&w, half, false);
        load_overlapping(&w, 3, AT_LOCAL | AT_GLOBAL);
        world_leave(&w);
        crn_comm_free(half);
    }
    w.comm = *state;
    world_end(&w);
}

static void test_more_ranks_load_all_shares(void **state)
{
    world w;
    crn_comm *half = lower_half(*state);
    world_begin(&w, *state, 1, false);
    world_leave(&w);
    if (half) {
        world_enter(&w, half, false);
        write_marks(&w, 3);
        world_leave(&w);
        crn_comm_free(half);
    }
    w.writers = ((uint32_t)crn_comm_size(*state) + 1) / 2;
    world_enter(&w, *state, false);
    load_overlapping(&w, 3, AT_LOCAL);
    load_overlapping(&w, 2, AT_LOCAL);
    world_end(&w);
}

/* After the job has died, one process sees what all virtual nodes have. */
static void test_a_lone_process_sees_all_nodes(void **state)
{
    world w;
    crn_comm *self;
    world_begin(&w, *state, 2, false);
    world_mark(&w);
    world_mark(&w);
    world_leave(&w);
    if (crn_comm_rank(*state) == 0) {
        assert_ok(crn_comm_create_self(&self));
        world_enter(&w, self, false);
        crn_manifest_mark mark = world_manifest(&w, 2, AT_LOCAL);
        crn_load_stats s = {0};
        assert_ok(crn_vault_survey(w.vault, NULL, 0));
        assert_ok(crn_vault_can_load(w.vault, &mark));
        for (uint32_t r = 0; r < mark.nranks; r++)
            assert_ok(world_load(&w, &mark, &r, 1, &s));
        assert_int_equal(s.from[CRN_LEVEL_LOCAL].bad, 0);
        world_leave(&w);
        crn_comm_free(self);
    }
    w.comm = *state;
    w.rank = crn_comm_rank(*state);
    world_end(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_failing_disk_on_one_rank),
        cmocka_unit_test(test_no_memory_on_one_rank),
        cmocka_unit_test(test_fewer_ranks_load_all_shares),
        cmocka_unit_test(test_more_ranks_load_all_shares),
        cmocka_unit_test(test_a_lone_process_sees_all_nodes),
    };
    return run_mpi_tests(argc, argv, tests);
}
