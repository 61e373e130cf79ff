/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The encoded level: every way to lose up to nparity nodes of a group, damage of single units,
 * other ranks at the restart, and that unchanged stripes are left alone.
 *
 * TEST: ranks self 3 4 5 7 8
 *
 * NEEDS: isal
 */
#include "harness/level_world.h"
#include "level/level_encoded.h"

enum { ENCODED = AT_LOCAL | AT_ENCODED };

/* Nodes of one or two ranks, also uneven ones; one or two groups; one or two parities. */
typedef struct shape {
    int nranks;
    int node_size, group, nparity;
} shape;

static const shape shapes[] = {{3, 1, 3, 1}, {3, 1, 3, 2}, {4, 1, 4, 1}, {4, 1, 4, 2},
                               {5, 2, 3, 1}, {5, 2, 3, 2}, {7, 2, 3, 1}, {7, 2, 4, 2},
                               {8, 2, 4, 1}, {8, 2, 4, 2}, {8, 1, 3, 2}};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

static void begin(world *w, crn_comm *comm, const shape *s)
{
    *w = (world){.node_size = s->node_size, .group = s->group, .nparity = s->nparity};
    world_begin_as(w, comm);
}

/* Call test with a world of each shape that this job can have. */
static void each_shape(crn_comm *comm, void test(world *w))
{
    for (int i = 0; i < NSHAPES; i++) {
        world w;
        if (shapes[i].nranks != crn_comm_size(comm))
            continue;
        begin(&w, comm, &shapes[i]);
        test(&w);
        world_end(&w);
    }
}

static void mark_and_raise(world *w, crn_raise_stats *stats)
{
    world_mark(w);
    assert_ok(crn_vault_raise(w->vault, CRN_LEVEL_ENCODED, w->version, WORLD_KEEP, stats));
}

/* --- loss --------------------------------------------------------------------------------- */

/* Take a node's storage away, or bring it back. */
static void move_node(world *w, int node, bool away)
{
    char here[160], there[160];
    snprintf(here, sizeof here, "%s/node-%d", w->local, node);
    snprintf(there, sizeof there, "%s/lost-%d", w->local, node);
    if (w->rank == 0)
        assert_int_equal(rename(away ? here : there, away ? there : here), 0);
}

static void move_nodes(world *w, unsigned nodes, bool away)
{
    for (int node = 0; node < 31; node++)
        if (nodes >> node & 1)
            move_node(w, node, away);
    assert_ok(crn_comm_barrier(w->comm));
}

static int count_bits(unsigned v)
{
    int n = 0;
    for (; v; v &= v - 1)
        n++;
    return n;
}

/* No group loses more than it can. */
static bool is_survivable(const world *w, unsigned lost)
{
    const crn_nodes *nodes = crn_vault_nodes(w->vault);
    for (int node = 0; node < nodes->nnodes; node++) {
        int first, n;
        crn_group_of(nodes->nnodes, w->group, node, &first, &n);
        if (count_bits(lost >> first & ((1u << n) - 1)) > w->nparity)
            return false;
    }
    return true;
}

/* Returns the blocks that parity gave: none where the lost ranks had no state. */
static uint64_t lose(world *w, unsigned lost)
{
    crn_load_stats s = {0};
    bool survivable = is_survivable(w, lost);
    world_leave(w);
    move_nodes(w, lost, true);
    world_enter(w, w->comm, false);
    if (survivable) {
        assert_ok(world_resume(w, w->version, ENCODED, &s));
        assert_int_equal(s.from[CRN_LEVEL_ENCODED].bad, 0);
    } else {
        assert_fails(world_resume(w, w->version, ENCODED, &s), CAIRN_ENOTFOUND,
                     "cannot be rebuilt from parity");
    }
    world_leave(w);
    move_nodes(w, lost, false);
    world_enter(w, w->comm, false);
    return s.from[CRN_LEVEL_ENCODED].blocks;
}

/* Is this pattern tried? All that one group survives, and some that hit more than that. */
static bool is_tried(const world *w, unsigned lost, int nnodes)
{
    int first, n, nlost = count_bits(lost);
    crn_group_of(nnodes, w->group, 0, &first, &n);
    bool in_first = lost < 1u << n;
    if (nlost > w->nparity + 1 || (nlost > w->nparity && lost % 3 != 0))
        return false;
    return in_first || lost % 5 == 0;
}

static void each_loss(world *w)
{
    int nnodes = crn_vault_nodes(w->vault)->nnodes;
    uint64_t rebuilt = 0;
    for (int i = 0; i < 3; i++)
        mark_and_raise(w, NULL);
    for (unsigned lost = 1; lost < 1u << nnodes; lost++)
        if (is_tried(w, lost, nnodes))
            rebuilt += lose(w, lost);
    assert_true(rebuilt > 0);
}

static void test_any_nodes_may_vanish(void **state)
{
    each_shape(*state, each_loss);
}

/* --- several marks ------------------------------------------------------------------------ */

static void many_marks(world *w)
{
    crn_load_stats s;
    for (int i = 0; i < 6; i++)
        mark_and_raise(w, NULL);
    for (uint64_t version = 1; version <= 6; version++) {
        world_leave(w);
        move_nodes(w, 1u << version % (unsigned)w->group, true);
        world_enter(w, w->comm, false);
        assert_ok(world_resume(w, version, ENCODED, &s));
        world_leave(w);
        move_nodes(w, 1u << version % (unsigned)w->group, false);
        world_enter(w, w->comm, false);
    }
}

static void test_every_retained_mark_comes_back(void **state)
{
    each_shape(*state, many_marks);
}

/* What the last mark of this rank's parity files has, and what of that it wrote itself. */
static void count_parity(world *w, uint64_t *ret_units, uint64_t *ret_written)
{
    uint64_t n[2] = {0, 0};
    for (int i = 0; i < crn_sets_count(w->vault); i++) {
        crn_set set;
        crn_part *part;
        crn_mark *mark;
        assert_ok(crn_set_init(&set, w->vault, i));
        crn_part_id id = crn_set_file(w->vault, &set);
        crn_set_done(&set);
        assert_ok(crn_vault_part(w->vault, &id, true, &part));
        assert_ok(crn_part_load(part, w->version, &mark));
        n[0] += crn_mark_find(mark, CRN_VAR_PARITY)->nblocks;
        n[1] += crn_mark_find(mark, CRN_VAR_PARITY)->nchanged;
        crn_mark_free(mark);
    }
    assert_ok(crn_comm_allreduce_u64(w->comm, CRN_REDUCE_SUM, n, 2));
    *ret_units = n[0];
    *ret_written = n[1];
}

/* Mark what the model has, without a step. */
static void mark_again(world *w)
{
    crn_part *own;
    w->version++;
    assert_ok(crn_vault_own(w->vault, &own));
    assert_ok(model_mark(&w->model, own, w->version, WORLD_KEEP, NULL));
    assert_ok(crn_vault_raise(w->vault, CRN_LEVEL_ENCODED, w->version, WORLD_KEEP, NULL));
}

/* One changed byte costs one unit on each of nparity nodes. */
static void change_little(world *w)
{
    uint64_t all, written;
    crn_raise_stats stats;
    for (int i = 0; i < 4; i++)
        model_step(&w->model);
    mark_and_raise(w, NULL);
    count_parity(w, &all, &written);
    assert_true(all > 0 && written == all);

    mark_again(w);
    count_parity(w, &all, &written);
    assert_int_equal(written, 0);

    for (int i = 0; i < MODEL_VARS && w->rank == w->nranks - 1; i++) {
        model_var *v = &w->model.now.var[i];
        if (v->exists && v->nbytes > 0 && v->block <= CRN_UNIT) {
            v->data[v->nbytes / 2] ^= 1;
            break;
        }
    }
    mark_again(w);
    count_parity(w, &all, &written);
    assert_int_equal(written, w->nparity);

    assert_ok(crn_vault_raise(w->vault, CRN_LEVEL_ENCODED, w->version, WORLD_KEEP, &stats));
    assert_int_equal(stats.stored_bytes, 0); /* it has the mark already */
}

static void test_unchanged_stripes_keep_their_parity(void **state)
{
    each_shape(*state, change_little);
}

/* --- damage ------------------------------------------------------------------------------- */

static void flip(const char *path, uint64_t at)
{
    unsigned char byte;
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

/* Flip a bit in the first blocks of a variable (NULL: of the first that has any) in a part file. */
static void damage(world *w, int node, const char *role, int rank, const char *var, uint64_t most)
{
    char path[256];
    crn_part *part;
    crn_mark *mark;
    crn_part_options opt = model_options;
    world_path(w, node, role, rank, path);
    assert_ok(crn_part_open(AT_FDCWD, path, NULL, false, &opt, &part));
    assert_ok(crn_part_load(part, w->version, &mark));
    crn_var *v = var ? crn_mark_find(mark, var) : NULL;
    for (size_t k = 0; !v && k < mark->nvars; k++)
        v = mark->var[k].nblocks > 0 ? &mark->var[k] : NULL;
    assert_non_null(v);
    assert_ok(crn_mark_table(part, mark, v));
    for (uint64_t i = 0; i < CRN_MIN(v->nblocks, most); i++)
        flip(path, v->table[i].off + 5);
    crn_mark_free(mark);
    crn_part_close(part);
}

/* A bad block in an own part comes from parity. */
static void damage_data(world *w)
{
    crn_load_stats s;
    for (int i = 0; i < 4; i++)
        mark_and_raise(w, NULL);
    if (w->rank == 0)
        damage(w, 0, "own", 0, NULL, 1);
    world_restart(w);
    assert_ok(world_resume(w, w->version, ENCODED, &s));
    assert_int_equal(s.from[CRN_LEVEL_ENCODED].blocks, 1);
    assert_int_equal(s.from[CRN_LEVEL_LOCAL].bad, 1);
}

/* What was loaded has been checked; what a small state has may not meet the damage. */
static void refused_or_right(cairn_status rc)
{
    if (rc != CAIRN_OK)
        assert_fails(rc, CAIRN_ENOTFOUND, "is damaged or lost in the own part and at every other");
}

/* A lost node and a bad first parity of its stripes: the second helps, where there is one. */
static void damage_parity(world *w)
{
    crn_load_stats s;
    for (int i = 0; i < 4; i++)
        mark_and_raise(w, NULL);
    if (w->rank == 0)
        damage(w, 0, "parity", 0, CRN_VAR_PARITY, UINT64_MAX);
    world_leave(w);
    move_nodes(w, 1u << 2, true);
    world_enter(w, w->comm, false);
    if (w->nparity == 2)
        assert_ok(world_resume(w, w->version, ENCODED, &s));
    else
        refused_or_right(world_resume(w, w->version, ENCODED, &s));
    world_leave(w);
    move_nodes(w, 1u << 2, false);
    world_enter(w, w->comm, false);
}

static void test_damaged_units_are_rebuilt(void **state)
{
    each_shape(*state, damage_data);
    each_shape(*state, damage_parity);
}

/* Own parts that went another way after the parity was made: a refusal, never wrong data. */
static void outdated(world *w)
{
    crn_load_stats s;
    crn_part *own;
    mark_and_raise(w, NULL);
    mark_and_raise(w, NULL);
    assert_ok(crn_vault_own(w->vault, &own));
    assert_ok(crn_part_rewind(own, w->version - 1));
    for (int i = 0; i < MODEL_VARS; i++)
        for (uint64_t k = 0; k < w->model.now.var[i].nbytes; k += 1000)
            w->model.now.var[i].data[k] ^= 1;
    assert_ok(model_mark(&w->model, own, w->version, WORLD_KEEP, NULL));
    world_leave(w);
    move_nodes(w, 1u << 1, true);
    world_enter(w, w->comm, false);
    crn_manifest_mark mark = world_manifest(w, w->version, ENCODED);
    uint32_t lost = (uint32_t)w->node_size; /* the first rank of node 1 */
    assert_ok(crn_vault_survey(w->vault, NULL, 0));
    refused_or_right(world_load(w, &mark, &lost, 1, &s));
    world_leave(w);
    move_nodes(w, 1u << 1, false);
    world_enter(w, w->comm, false);
}

/* A leg that went another way: its parity gives way to that of the mark that counts now. */
static void abandoned(world *w)
{
    crn_part *own;
    mark_and_raise(w, NULL);
    assert_ok(crn_vault_own(w->vault, &own));
    assert_ok(crn_part_rewind(own, 0));
    model_step(&w->model);
    assert_ok(model_mark(&w->model, own, 1, WORLD_KEEP, NULL));
    assert_ok(crn_vault_raise(w->vault, CRN_LEVEL_ENCODED, 1, WORLD_KEEP, NULL));
    uint64_t all, written;
    count_parity(w, &all, &written);
    assert_true(all > 0 && written == all);
}

static void test_abandoned_parity_gives_way(void **state)
{
    each_shape(*state, abandoned);
}

static void test_parity_of_another_mark_is_refused(void **state)
{
    each_shape(*state, outdated);
}

/* --- other ranks at the restart ----------------------------------------------------------- */

/* Some ranks, or one alone without MPI, load the shares of all. */
static void load_all(world *w, crn_comm *comm)
{
    world part = *w;
    crn_load_stats s = {0};
    uint32_t ranks[8];
    size_t n = 0;
    world_enter(&part, comm, false);
    for (uint32_t r = (uint32_t)part.rank; r < w->writers; r += (uint32_t)part.nranks)
        ranks[n++] = r;
    crn_manifest_mark mark = world_manifest(w, w->version, ENCODED);
    assert_ok(crn_vault_survey(part.vault, NULL, 0));
    assert_ok(crn_vault_can_load(part.vault, &mark));
    assert_ok(world_load(&part, &mark, ranks, n, &s));
    world_sum(&part, &s);
    assert_true(s.from[CRN_LEVEL_ENCODED].blocks > 0);
    world_leave(&part);
}

/* With fewer ranks the last node is not there; a lone process sees all directories. */
static void resume_elsewhere(world *w)
{
    crn_comm *all = w->comm, *self;
    int fewer = (crn_vault_nodes(w->vault)->nnodes - 1) * w->node_size;
    for (int i = 0; i < 3; i++)
        mark_and_raise(w, NULL);
    world_leave(w);
    crn_comm *some = lowest_ranks(all, fewer);
    if (some)
        load_all(w, some);
    crn_comm_free(some);
    assert_ok(crn_comm_barrier(all));
    move_nodes(w, 1u << 1, true);
    if (w->rank == 0) {
        assert_ok(crn_comm_create_self(&self));
        load_all(w, self);
        crn_comm_free(self);
    }
    assert_ok(crn_comm_barrier(all));
    move_nodes(w, 1u << 1, false);
    world_enter(w, all, false);
}

static void test_other_ranks_come_back(void **state)
{
    each_shape(*state, resume_elsewhere);
}

/* After a node was replaced by an empty one its parity is made anew. */
static void replace_node(world *w)
{
    crn_load_stats s;
    uint64_t all, written;
    mark_and_raise(w, NULL);
    mark_and_raise(w, NULL);
    world_leave(w);
    world_lose_node(w, 0);
    world_enter(w, w->comm, false);
    assert_ok(world_resume(w, w->version, ENCODED, &s));
    mark_and_raise(w, NULL);
    count_parity(w, &all, &written);
    assert_true(written > 0);
    for (unsigned node = 1; node < (unsigned)w->group; node++)
        lose(w, 1u << node);
}

static void test_new_node_gets_its_parity(void **state)
{
    each_shape(*state, replace_node);
}

/* --- failures ----------------------------------------------------------------------------- */

static uint64_t sum(world *w, uint64_t n)
{
    assert_ok(crn_comm_allreduce_u64(w->comm, CRN_REDUCE_SUM, &n, 1));
    return n;
}

/* Whatever fails on one rank fails on all, and the mark before can still be rebuilt. */
static void fail_raise(world *w, void arm(uint64_t n), uint64_t growth)
{
    uint64_t failures = 0, step = 1;
    mark_and_raise(w, NULL);
    world_mark(w);
    for (uint64_t n = 1;; n += step, step += growth) {
        if (w->rank == 1)
            arm(n);
        cairn_status rc =
            crn_vault_raise(w->vault, CRN_LEVEL_ENCODED, w->version, WORLD_KEEP, NULL);
        if (w->rank == 1)
            arm(0);
        uint64_t nfailed = sum(w, rc < 0);
        assert_true(nfailed == 0 || nfailed == (uint64_t)w->nranks);
        if (nfailed == 0)
            break;
        failures++;
    }
    assert_true(failures >= 3);
    lose(w, 1u << 1);
    w->version--;
    lose(w, 1u << 1);
}

static void arm_write(uint64_t n)
{
    crn_fault fault = {.where = CRN_FAULT_WRITE, .how = CRN_FAULT_ENOSPC, .at = n, .count = 1};
    crn_fault_arm(n > 0 ? &fault : NULL);
}

static void fail_writes(world *w)
{
    fail_raise(w, arm_write, 0);
}

static void fail_memory(world *w)
{
    fail_raise(w, crn_mem_fail_at, 2);
}

/* A block that is damaged before it was ever encoded. */
static void fail_reading(world *w)
{
    for (int i = 0; i < 3; i++)
        model_step(&w->model);
    world_mark(w);
    if (w->rank == 0)
        damage(w, 0, "own", 0, NULL, 1);
    assert_ok(crn_comm_barrier(w->comm));
    assert_fails(crn_vault_raise(w->vault, CRN_LEVEL_ENCODED, w->version, 1, NULL), CAIRN_ECORRUPT,
                 "is damaged");
}

static void test_failure_to_raise_is_everyones(void **state)
{
    each_shape(*state, fail_reading);
    each_shape(*state, fail_writes);
    each_shape(*state, fail_memory);
}

/* One rank has no memory while a lost node is rebuilt. */
static void fail_rebuild(world *w)
{
    crn_load_stats s;
    uint64_t failures = 0;
    mark_and_raise(w, NULL);
    mark_and_raise(w, NULL);
    world_leave(w);
    move_nodes(w, 1u << 1, true);
    world_enter(w, w->comm, false);
    crn_manifest_mark mark = world_manifest(w, w->version, ENCODED);
    uint32_t own = (uint32_t)w->rank;
    for (uint64_t n = 1, failed = 1; failed > 0; n += 1 + n / 8) {
        if (w->rank == w->node_size)
            crn_mem_fail_at(n);
        cairn_status rc = crn_vault_survey(w->vault, NULL, 0);
        if (rc == CAIRN_OK)
            rc = world_load(w, &mark, &own, 1, &s);
        crn_mem_fail_at(0);
        failed = sum(w, rc < 0);
        assert_true(failed == 0 || failed == (uint64_t)w->nranks);
        failures += failed > 0;
    }
    assert_true(failures > 3);
    world_leave(w);
    move_nodes(w, 1u << 1, false);
    world_enter(w, w->comm, false);
}

static void test_failure_to_rebuild_is_everyones(void **state)
{
    each_shape(*state, fail_rebuild);
}

/* --- what is refused ---------------------------------------------------------------------- */

static void refused(crn_comm *comm, const shape *s, const char *words)
{
    world w;
    begin(&w, comm, s);
    assert_fails(crn_vault_check(w.vault, CRN_LEVEL_ENCODED), CAIRN_EINVAL, words);
    world_mark(&w);
    assert_fails(crn_vault_raise(w.vault, CRN_LEVEL_ENCODED, w.version, 1, NULL), CAIRN_EINVAL,
                 words);
    world_end(&w);
}

static void test_impossible_groups_are_refused(void **state)
{
    refused(*state, &(shape){0, 8, 2, 1}, "needs a group of 2 nodes, and this job has 1");
    refused(*state, &(shape){0, 1, 2, 2}, "larger than the parity");
    refused(*state, &(shape){0, 1, 3, 0}, "at least one parity");
    refused(*state, &(shape){0, 1, 9, 2}, "needs a group of 9 nodes");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_impossible_groups_are_refused),
        cmocka_unit_test(test_any_nodes_may_vanish),
        cmocka_unit_test(test_every_retained_mark_comes_back),
        cmocka_unit_test(test_unchanged_stripes_keep_their_parity),
        cmocka_unit_test(test_damaged_units_are_rebuilt),
        cmocka_unit_test(test_parity_of_another_mark_is_refused),
        cmocka_unit_test(test_abandoned_parity_gives_way),
        cmocka_unit_test(test_other_ranks_come_back),
        cmocka_unit_test(test_new_node_gets_its_parity),
        cmocka_unit_test(test_failure_to_raise_is_everyones),
        cmocka_unit_test(test_failure_to_rebuild_is_everyones),
    };
    world_bytes = 250000; /* several units, some of them within one block */
    world_block_sizes = 9;
    return run_mpi_tests(argc, argv, tests);
}
