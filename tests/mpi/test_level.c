/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Levels over several marks of changing variables: what is raised can be loaded after whatever the
 * level should survive, and unchanged blocks do not move.
 *
 * TEST: ranks self 1 2 3 4 7 8
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "harness/level_world.h"

static const int node_sizes[] = {1, 2, 3};
enum { NSIZES = sizeof node_sizes / sizeof *node_sizes };

static bool has_partner(const world *w)
{
    return crn_vault_nodes(w->vault)->nnodes > 1;
}

static void raise(world *w, crn_level level)
{
    assert_ok(crn_vault_raise(w->vault, level, w->version, WORLD_KEEP, NULL));
}

/* Mark and raise to what there is, several times. Returns the levels that the marks have. */
static uint32_t marks(world *w, int n)
{
    uint32_t levels = AT_LOCAL | AT_GLOBAL | (has_partner(w) ? AT_PARTNER : 0);
    for (int i = 0; i < n; i++) {
        world_mark(w);
        if (levels & AT_PARTNER)
            raise(w, CRN_LEVEL_PARTNER);
        raise(w, CRN_LEVEL_GLOBAL);
    }
    return levels;
}

/* --- without loss --------------------------------------------------------------------------- */

static void test_every_retained_mark_comes_back(void **state)
{
    for (int i = 0; i < NSIZES; i++) {
        world w;
        crn_load_stats s;
        world_begin(&w, *state, node_sizes[i], false);
        uint32_t levels = marks(&w, 5);
        world_restart(&w);
        for (uint64_t version = 1; version <= 5; version++) {
            assert_ok(world_resume(&w, version, levels, &s));
            assert_int_equal(s.from[CRN_LEVEL_LOCAL].bad, 0);
            assert_int_equal(s.from[CRN_LEVEL_PARTNER].blocks, 0);
            assert_int_equal(s.from[CRN_LEVEL_GLOBAL].blocks, 0);
        }
        assert_fails(world_resume(&w, 6, AT_LOCAL, &s), CAIRN_ENOTFOUND, "share of rank 0");
        world_end(&w);
    }
}

static uint64_t own_blocks(world *w)
{
    crn_part *own;
    crn_mark *mark;
    uint64_t n = 0;
    assert_ok(crn_vault_own(w->vault, &own));
    assert_ok(crn_part_load(own, w->version, &mark));
    for (size_t i = 0; i < mark->nvars; i++)
        n += mark->var[i].nblocks;
    crn_mark_free(mark);
    return n;
}

/* The first copy takes everything, a copy of the same nothing. */
static void differences_only(world *w, crn_level level)
{
    crn_raise_stats first, second, again;
    crn_part *own;
    uint64_t blocks[2] = {own_blocks(w), 0};
    assert_ok(crn_vault_raise(w->vault, level, w->version, 1, &first));
    blocks[1] = first.nblocks;
    assert_ok(crn_comm_allreduce_u64(w->comm, CRN_REDUCE_SUM, blocks, 2));
    assert_int_equal(blocks[0], blocks[1]);
    w->version++;
    assert_ok(crn_vault_own(w->vault, &own));
    assert_ok(model_mark(&w->model, own, w->version, WORLD_KEEP, NULL));
    assert_ok(crn_vault_raise(w->vault, level, w->version, 1, &second));
    assert_int_equal(second.nblocks, 0);
    assert_int_equal(second.moved_bytes, 0);
    assert_ok(crn_vault_raise(w->vault, level, w->version, 1, &again));
    assert_int_equal(again.stored_bytes, 0);
}

static void test_raise_moves_only_what_the_copy_lacks(void **state)
{
    for (int i = 0; i < NSIZES; i++) {
        world w;
        world_begin(&w, *state, node_sizes[i], false);
        for (int step = 0; step < 4; step++)
            model_step(&w.model);
        world_mark(&w);
        if (has_partner(&w))
            differences_only(&w, CRN_LEVEL_PARTNER);
        differences_only(&w, CRN_LEVEL_GLOBAL);
        world_end(&w);
    }
}

static void test_trim_and_rewind_reach_every_copy(void **state)
{
    world w;
    crn_load_stats s;
    world_begin(&w, *state, 1, false);
    uint32_t levels = marks(&w, 5);
    assert_ok(crn_vault_trim(w.vault, CRN_LEVEL_LOCAL, 4));
    assert_ok(crn_vault_trim(w.vault, CRN_LEVEL_PARTNER, 3));
    assert_ok(crn_vault_trim(w.vault, CRN_LEVEL_GLOBAL, 2));
    assert_ok(crn_vault_rewind(w.vault, 4));
    world_restart(&w);
    assert_fails(world_resume(&w, 5, AT_LOCAL, &s), CAIRN_ENOTFOUND, "mark 5 is not whole");
    assert_fails(world_resume(&w, 1, AT_LOCAL, &s), CAIRN_ENOTFOUND, "mark 1 is not whole");
    for (uint64_t version = 2; version <= 4; version++)
        assert_ok(world_resume(&w, version, levels, &s));
    for (int node = 0; node < w.nranks; node++)
        world_lose_node(&w, node);
    assert_ok(world_resume(&w, 4, levels, &s));
    assert_fails(world_resume(&w, 3, levels, &s), CAIRN_ENOTFOUND, "mark 3");
    assert_fails(world_resume(&w, 5, levels, &s), CAIRN_ENOTFOUND, "mark 5");
    world_end(&w);
}

/* Own parts in the trail: every level above is there already, or refused. */
static void test_without_local_storage_marks_are_in_the_trail(void **state)
{
    world w;
    crn_load_stats s;
    world_begin(&w, *state, 1, true);
    assert_fails(crn_vault_check(w.vault, CRN_LEVEL_PARTNER), CAIRN_EINVAL, "node-local storage");
    for (int i = 0; i < 3; i++) {
        world_mark(&w);
        raise(&w, CRN_LEVEL_GLOBAL);
    }
    assert_ok(crn_vault_trim(w.vault, CRN_LEVEL_LOCAL, 2));
    world_restart(&w);
    assert_ok(world_resume(&w, 3, AT_GLOBAL, &s));
    assert_ok(world_resume(&w, 2, AT_GLOBAL, &s));
    assert_fails(world_resume(&w, 1, AT_GLOBAL, &s), CAIRN_ENOTFOUND, "mark 1");
    world_end(&w);
}

static void test_one_node_has_no_partner(void **state)
{
    world w;
    world_begin(&w, *state, 8, false);
    assert_fails(crn_vault_check(w.vault, CRN_LEVEL_PARTNER), CAIRN_EINVAL, "at least 2 nodes");
    world_mark(&w);
    assert_fails(crn_vault_raise(w.vault, CRN_LEVEL_PARTNER, 1, 1, NULL), CAIRN_EINVAL, "2 nodes");
    raise(&w, CRN_LEVEL_GLOBAL);
    world_end(&w);
}

/* --- losses --------------------------------------------------------------------------------- */

static void test_partner_survives_any_one_node(void **state)
{
    for (int i = 0; i < NSIZES; i++) {
        world w;
        crn_load_stats s;
        int nnodes = 1;
        for (int lost = 0; lost < nnodes; lost++) {
            world_begin(&w, *state, node_sizes[i], false);
            nnodes = crn_vault_nodes(w.vault)->nnodes;
            if (nnodes > 1) {
                marks(&w, 3);
                world_lose_node(&w, lost);
                world_restart(&w);
                assert_ok(world_resume(&w, 3, AT_LOCAL | AT_PARTNER, &s));
                assert_true(s.from[CRN_LEVEL_PARTNER].blocks > 0);
                assert_int_equal(s.from[CRN_LEVEL_PARTNER].bad, 0);
                assert_int_equal(s.from[CRN_LEVEL_LOCAL].bad, 0); /* what is gone is not damaged */
                assert_int_equal(s.from[CRN_LEVEL_LOCAL].absent, s.from[CRN_LEVEL_PARTNER].blocks);
                assert_int_equal(s.from[CRN_LEVEL_GLOBAL].blocks, 0);
            }
            world_end(&w);
        }
    }
}

/* After a loss the run goes on: copies are made anew from nothing. */
static void test_raising_again_after_a_loss(void **state)
{
    world w;
    crn_load_stats s;
    world_begin(&w, *state, 2, false);
    if (has_partner(&w)) {
        uint32_t levels = marks(&w, 2);
        world_lose_node(&w, 0);
        world_restart(&w);
        assert_ok(world_resume(&w, 2, levels, &s));
        assert_ok(crn_vault_rewind(w.vault, 2));
        marks(&w, 2);
        world_lose_node(&w, 1);
        world_restart(&w);
        assert_ok(world_resume(&w, 4, AT_LOCAL | AT_PARTNER, &s));
    }
    world_end(&w);
}

static void test_global_survives_the_loss_of_all_nodes(void **state)
{
    world w;
    crn_load_stats s;
    world_begin(&w, *state, 2, false);
    uint32_t levels = marks(&w, 3);
    int nnodes = crn_vault_nodes(w.vault)->nnodes;
    for (int node = 0; node < nnodes; node++)
        world_lose_node(&w, node);
    world_restart(&w);
    assert_ok(world_resume(&w, 3, levels, &s));
    assert_true(s.from[CRN_LEVEL_GLOBAL].blocks > 0);
    assert_int_equal(s.from[CRN_LEVEL_GLOBAL].bad, 0);
    assert_fails(world_resume(&w, 3, AT_LOCAL | AT_PARTNER, &s), CAIRN_ENOTFOUND,
                 "share of rank 0 is neither in its own part");
    world_end(&w);
}

/* Ranks were placed on other nodes: their files are fetched from where they are. */
static void test_own_parts_are_found_on_other_nodes(void **state)
{
    world w;
    crn_load_stats s;
    world_begin(&w, *state, 2, false);
    marks(&w, 3);
    if (w.rank == 0 && has_partner(&w)) {
        char a[160], b[160], swap[160];
        snprintf(a, sizeof a, "%s/node-0", w.local);
        snprintf(b, sizeof b, "%s/node-1", w.local);
        snprintf(swap, sizeof swap, "%s/node-swap", w.local);
        assert_int_equal(rename(a, swap) | rename(b, a) | rename(swap, b), 0);
    }
    world_restart(&w);
    assert_ok(world_resume(&w, 3, AT_LOCAL, &s));
    assert_int_equal(s.from[CRN_LEVEL_PARTNER].blocks + s.from[CRN_LEVEL_GLOBAL].blocks, 0);
    world_end(&w);
}

/* --- damage --------------------------------------------------------------------------------- */

/* Damage a block of rank 0's share in the copies of some levels; returns whether there is one. */
static bool damage(world *w, uint32_t levels)
{
    char path[256];
    uint64_t done = 0;
    crn_part *part;
    crn_part_id id = {.series = WORLD_SERIES, .rank = 0, .nranks = w->writers};
    memcpy(id.run, crn_run_manifest(w->run)->run, sizeof id.run);
    if (w->rank == 0) {
        if (levels & AT_LOCAL) {
            world_path(w, 0, "own", 0, path);
            assert_ok(crn_part_open(AT_FDCWD, path, &id, false, &model_options, &part));
            done = damage_block(part, path, w->version);
            crn_part_close(part);
        }
        if (levels & AT_PARTNER) {
            id.role = CRN_ROLE_PARTNER;
            world_path(w, 1, "partner", 0, path);
            assert_ok(crn_part_open(AT_FDCWD, path, &id, false, &model_options, &part));
            done = damage_block(part, path, w->version);
            crn_part_close(part);
        }
        if (levels & AT_GLOBAL) {
            snprintf(path, sizeof path, "%s/run-1/series-%d/000/part-000000", w->dir, WORLD_SERIES);
            assert_ok(
                crn_run_part(w->run, WORLD_SERIES, 0, w->writers, false, &model_options, &part));
            done = damage_block(part, path, w->version);
            crn_part_close(part);
        }
    }
    assert_ok(crn_comm_allreduce_u64(w->comm, CRN_REDUCE_SUM, &done, 1));
    return done > 0;
}

static void test_damage_falls_to_the_next_level_and_is_counted(void **state)
{
    world w;
    crn_load_stats s;
    world_begin(&w, *state, 1, false);
    uint32_t levels = marks(&w, 4);
    int partner = (levels & AT_PARTNER) != 0;
    world_leave(&w);
    world_enter(&w, *state, false);
    assert_true(damage(&w, AT_LOCAL));
    assert_ok(world_resume(&w, 4, levels, &s));
    assert_int_equal(s.from[CRN_LEVEL_LOCAL].bad, 1);
    assert_int_equal(s.from[CRN_LEVEL_PARTNER].blocks, partner);
    assert_int_equal(s.from[CRN_LEVEL_GLOBAL].blocks, !partner);
    if (partner) {
        assert_true(damage(&w, AT_PARTNER));
        assert_ok(world_resume(&w, 4, levels, &s));
        assert_int_equal(s.from[CRN_LEVEL_LOCAL].bad, 1);
        assert_int_equal(s.from[CRN_LEVEL_PARTNER].bad, 1);
        assert_int_equal(s.from[CRN_LEVEL_GLOBAL].blocks, 1);
    }
    assert_true(damage(&w, AT_GLOBAL));
    assert_fails(world_resume(&w, 4, levels, &s), CAIRN_ENOTFOUND,
                 "block 0 (and 0 more) is damaged or lost");
    world_end(&w);
}

/* A file that is no part file any more counts as absent and is replaced by the next raise. */
static void test_a_wrecked_file_is_as_good_as_none(void **state)
{
    world w;
    crn_load_stats s;
    char path[256];
    world_begin(&w, *state, 1, false);
    uint32_t levels = marks(&w, 2);
    world_leave(&w);
    world_enter(&w, *state, false);
    if (w.rank == 0) {
        world_path(&w, 0, "own", 0, path);
        assert_int_equal(truncate(path, 100), 0);
        world_path(&w, 1, "partner", 0, path);
        assert_int_equal(w.nranks > 1 ? truncate(path, 100) : 0, 0);
        world_path(&w, 0, "own", 99, path); /* neither is a stranger's */
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    assert_ok(crn_comm_barrier(w.comm));
    assert_ok(world_resume(&w, 2, levels, &s));
    assert_true(s.from[CRN_LEVEL_GLOBAL].blocks > 0);
    assert_fails(world_resume(&w, 2, levels & ~(uint32_t)AT_GLOBAL, &s), CAIRN_ENOTFOUND,
                 "some files are damaged");
    assert_ok(crn_vault_rewind(w.vault, 2));
    marks(&w, 1);
    assert_ok(world_resume(&w, 3, levels, &s));
    assert_int_equal(s.from[CRN_LEVEL_LOCAL].bad, 0);
    world_end(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_retained_mark_comes_back),
        cmocka_unit_test(test_raise_moves_only_what_the_copy_lacks),
        cmocka_unit_test(test_trim_and_rewind_reach_every_copy),
        cmocka_unit_test(test_without_local_storage_marks_are_in_the_trail),
        cmocka_unit_test(test_one_node_has_no_partner),
        cmocka_unit_test(test_partner_survives_any_one_node),
        cmocka_unit_test(test_raising_again_after_a_loss),
        cmocka_unit_test(test_global_survives_the_loss_of_all_nodes),
        cmocka_unit_test(test_own_parts_are_found_on_other_nodes),
        cmocka_unit_test(test_damage_falls_to_the_next_level_and_is_counted),
        cmocka_unit_test(test_a_wrecked_file_is_as_good_as_none),
    };
    return run_mpi_tests(argc, argv, tests);
}
