/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Differential marks at every level against a plain model: random writes, growth and shrinkage
 * between marks of random levels, then nodes are lost, and what comes back must be the newest mark
 * that its level lets survive, or a newer one, bit for bit. What step n of the program does follows
 * from the seed, the rank, n and the leg that took it, so that the model of any mark is made by
 * taking the steps again, and no two futures are alike.
 *
 * TEST: ranks 4
 * NEEDS: inih random123
 */
#include "harness/session.h"

enum { NVARS = 3, ROOM = 20 << 10, STEPS = 7, LEGS = 3, TRIALS = 6 };

typedef struct program {
    uint64_t seed, step;
    size_t nbytes[NVARS];
    unsigned char data[NVARS][ROOM];
} program;

static const char *const name_of[NVARS] = {"a", "b", "c"};

static program prog, model;
static uint64_t leg_of[LEGS * STEPS + 1]; /* of each step, the leg that took it last */

/* --- the program ------------------------------------------------------------------------------ */

static void program_init(program *p, uint64_t seed)
{
    memset(p, 0, sizeof *p);
    p->seed = seed;
    for (int i = 0; i < NVARS; i++)
        p->nbytes[i] = (size_t)ROOM >> i;
}

static void program_step(program *p)
{
    p->step++;
    crn_rng rng = crn_rng_of(p->seed, p->step + 1000 * leg_of[p->step]);
    for (int i = 0; i < NVARS; i++) {
        const uint64_t what = crn_rng_below(&rng, 8);
        if (what == 0)
            p->nbytes[i] = 1 + crn_rng_below(&rng, ROOM);
        for (uint64_t n = what < 2 ? 0 : crn_rng_below(&rng, 3); n > 0; n--) {
            const size_t at = crn_rng_below(&rng, ROOM);
            const size_t len = 1 + crn_rng_below(&rng, CRN_MIN((size_t)ROOM - at, (size_t)3000));
            memset(p->data[i] + at, (int)crn_rng_below(&rng, 5), len); /* often what is there */
        }
    }
}

static void step_to(program *p, uint64_t version)
{
    while (p->step < version)
        program_step(p);
}

static void protect(program *p, cairn *c)
{
    for (int i = 0; i < NVARS; i++)
        assert_ok(cairn_protect(c, name_of[i], p->data[i], CAIRN_UINT8, p->nbytes[i]));
}

/* --- marks and losses ------------------------------------------------------------------------- */

/* What is expected of each level: the version of its newest mark. */
typedef struct hopes {
    uint64_t newest[5]; /* by cairn_level; 0: none */
} hopes;

static void take_marks(cairn *c, crn_rng *dice, uint64_t leg, hopes *h)
{
    static const cairn_level levels[] = {CAIRN_LEVEL_LOCAL, CAIRN_LEVEL_PARTNER,
                                         CAIRN_LEVEL_ENCODED, CAIRN_LEVEL_GLOBAL};
    for (int n = 0; n < STEPS; n++) {
        const bool first = prog.step == 0; /* something must survive everything */
        const cairn_level level = first ? CAIRN_LEVEL_GLOBAL : levels[crn_rng_below(dice, 4)];
        leg_of[prog.step + 1] = leg;
        program_step(&prog);
        protect(&prog, c);
        assert_ok(cairn_mark(c, prog.step, level));
        h->newest[CAIRN_LEVEL_LOCAL] = h->newest[level] = prog.step;
    }
}

static uint64_t newest_of(const hopes *h, cairn_level from)
{
    uint64_t newest = 0;
    for (int level = (int)from; level <= CAIRN_LEVEL_GLOBAL; level++)
        newest = CRN_MAX(newest, h->newest[level]);
    return newest;
}

static void lose(place *p, const char *what)
{
    char path[128];
    assert_ok(crn_comm_barrier(p->comm));
    snprintf(path, sizeof path, "%s/local%s", p->dir, what);
    if (p->rank == 0)
        remove_tree(path);
    assert_ok(crn_comm_barrier(p->comm));
}

/* Lose no node, one, or all; the oldest mark that may come back. What the nodes keep for each other
 * survives one loss, and must be made anew before the next. */
static uint64_t lose_nodes(place *p, crn_rng *dice, hopes *h)
{
    char node[16] = "";
    const uint64_t which = crn_rng_below(dice, (uint64_t)p->nranks);
    const uint64_t how = crn_rng_below(dice, 4);
    const cairn_level left[] = {CAIRN_LEVEL_LOCAL, CAIRN_LEVEL_GLOBAL, CAIRN_LEVEL_PARTNER,
                                CAIRN_LEVEL_PARTNER};
    const uint64_t newest = newest_of(h, left[how]);
    if (how == 0)
        return newest;
    if (how > 1)
        snprintf(node, sizeof node, "/node-%d", (int)which);
    lose(p, node);
    h->newest[CAIRN_LEVEL_PARTNER] = h->newest[CAIRN_LEVEL_ENCODED] = 0;
    return newest;
}

/* Probe, take the sizes that the variables had, resume, compare; go on from there. */
static void come_back(cairn *c, uint64_t wanted)
{
    uint64_t version = 0;
    assert_ok(cairn_probe(c, &version));
    assert_true(version >= wanted);
    program_init(&model, prog.seed);
    step_to(&model, version);
    prog = model;
    for (int i = 0; i < NVARS; i++)
        memset(prog.data[i], 0xee, prog.nbytes[i]);
    protect(&prog, c);
    assert_ok(cairn_resume_at(c, version));
    for (int i = 0; i < NVARS; i++)
        assert_memory_equal(prog.data[i], model.data[i], ROOM);
}

/* --- many of them ----------------------------------------------------------------------------- */

static void write_config(place *p, uint64_t seed)
{
    static const char *const track[] = {"hash", "kernel", "auto"};
    static const char *const differential[] = {"auto", "always", "never"};
    if (p->rank > 0)
        return;
    FILE *f = fopen(p->config, "a");
    assert_non_null(f);
    fprintf(f,
            "[level]\nlocal = %s/local\nnode_size = 1\ngroup = 4\nparity = 1\n[mark]\nmode = %s\n"
            "[variable]\nblock = %dKiB\ntrack = %s\ndifferential = %s\n",
            p->dir, seed % 2 ? "synchronous" : "background", 1 << seed % 3, track[seed % 3],
            differential[seed / 3 % 3]);
    fclose(f);
}

static void play(crn_comm *comm, uint64_t seed)
{
    place p;
    crn_rng dice = crn_rng_of(seed, 0); /* the same on all ranks */
    hopes h = {{0}};
    uint64_t wanted = 0;
    place_init(&p, comm, "");
    write_config(&p, seed);
    assert_ok(crn_comm_barrier(comm));
    program_init(&prog, seed * 64 + (uint64_t)p.rank);
    for (int leg = 0; leg < LEGS; leg++) {
        cairn *c;
        assert_ok(cairn_open(p.mpi, p.config, &c));
        if (leg > 0)
            come_back(c, wanted);
        take_marks(c, &dice, (uint64_t)leg, &h);
        leave_session(c);
        wanted = lose_nodes(&p, &dice, &h);
    }
    place_done(&p);
}

static void test_what_a_level_promises_comes_back(void **state)
{
    for (uint64_t i = 0; i < TRIALS; i++)
        play(*state, test_seed() + i);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_a_level_promises_comes_back)};
    return run_mpi_tests(argc, argv, tests);
}
