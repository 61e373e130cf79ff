/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program whose variables may lose something: from each level it gets the same bits back, within
 * the bound of what it had, and again after every restart; the trail is whole.
 *
 * TEST: ranks self 2 4
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "harness/session.h"
#include "store/store.h"

#include <math.h>

enum { N = 40000, STEPS = 4 };

static double had[N], field[N], again[N];

static void compute(int rank, uint64_t step)
{
    for (size_t i = 0; i < N; i++)
        if (step == 1 || i / 5000 == step % 8)
            field[i] = (double)step + 100 * sin((double)(i + (size_t)rank * N) / 300);
    field[7] = NAN;
}

static cairn *open_session(const place *p)
{
    cairn *c;
    assert_ok(cairn_open(p->mpi, p->config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_FLOAT64, N));
    return c;
}

static void begin(place *p, crn_comm *comm)
{
    char text[512];
    const int n = crn_comm_size(comm);
    snprintf(text, sizeof text,
             "[level]\nlocal = @/local\nnode_size = 1\npartner = %d\nencoded = %d\ngroup = 4\n"
             "global = 1\n[variable]\nblock = 16KiB\ncodec = zfp\nloss = abs 1e-4\nbound = 1e-3\n",
             n > 1, n > 3);
    place_init(p, comm, text);
}

static void take_marks(const place *p)
{
    cairn *c = open_session(p);
    for (uint64_t step = 1; step <= STEPS; step++) {
        compute(p->rank, step);
        assert_ok(cairn_mark(c, step, CAIRN_LEVEL_GLOBAL));
        assert_ok(cairn_settle(c));
    }
    memcpy(had, field, sizeof had);
    leave_session(c);
    assert_ok(crn_comm_barrier(p->comm));
}

/* What the log has of the codecs of a mark, as a number of its only variable. */
static double logged(const place *p, uint64_t version, const char *member)
{
    char path[128], line[4096], of[64];
    double value = -1;
    snprintf(path, sizeof path, "%s/trail/run-1/events", p->dir);
    snprintf(of, sizeof of, "\"codecs\",\"version\":%d,", (int)version);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, of) ? strstr(line, member) : NULL;
        if (at)
            value = strtod(at + strlen(member) + 2, NULL); /* behind the quote and the colon */
    }
    fclose(f);
    return value;
}

/* A mark tells what became of its blocks, over all ranks: of the first 20 each, with a NaN each. */
static void test_counts_are_in_the_log(void **state)
{
    place p;
    begin(&p, *state);
    take_marks(&p);
    const double n = crn_comm_size(p.comm);
    assert_true(logged(&p, 1, "blocks") == 20 * n && logged(&p, 1, "nbytes") == 8. * N * n);
    assert_true(logged(&p, 1, "aside") == n && logged(&p, 1, "stored") < 4. * N * n);
    assert_true(logged(&p, 1, "error") > 1e-6 && logged(&p, 1, "error") <= 1e-4);
    assert_true(logged(&p, 2, "blocks") > 0 && logged(&p, 2, "blocks") < 5 * n);
    assert_true(logged(&p, 2, "bound") == -1); /* no block fell back */
    place_done(&p);
}

/* What comes back is within the bound, has lost something, and is what came back before. */
static cairn *resume(const place *p, uint64_t expected)
{
    uint64_t version;
    memset(field, 0x77, sizeof field);
    cairn *c = open_session(p);
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, expected);
    assert_true(isnan(field[7]));
    double most = 0;
    for (size_t i = 0; i < N; i++)
        most = i == 7 ? most : fmax(most, fabs(field[i] - had[i]));
    assert_true(most > 0 && most <= 1e-4);
    if (expected > STEPS || again[0] != 0)
        assert_memory_equal(again, field, sizeof field);
    memcpy(again, field, sizeof again);
    return c;
}

static void forget(const place *p, const char *name)
{
    char path[128];
    assert_ok(crn_comm_barrier(p->comm));
    snprintf(path, sizeof path, "%s/%s", p->dir, name);
    if (p->rank == 0)
        remove_tree(path);
    assert_ok(crn_comm_barrier(p->comm));
}

static void verify(const place *p)
{
    char path[96];
    cairn_trail *t;
    snprintf(path, sizeof path, "%s/trail", p->dir);
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_verify(t, 0, CAIRN_ALL_MARKS, NULL, NULL));
    cairn_trail_close(t);
}

static void test_the_same_from_each_level(void **state)
{
    place p;
    begin(&p, *state);
    memset(again, 0, sizeof again);
    take_marks(&p);
    verify(&p);
    leave_session(resume(&p, STEPS)); /* from the own parts */
    forget(&p, "local/node-0");       /* from a partner or parity, or the trail */
    leave_session(resume(&p, STEPS));
    forget(&p, "local"); /* from the trail */
    leave_session(resume(&p, STEPS));
    place_done(&p);
}

/* Each leg resumes, takes a mark of what it got, and leaves. */
static void test_restarts_do_not_drift(void **state)
{
    place p;
    begin(&p, *state);
    memset(again, 0, sizeof again);
    take_marks(&p);
    for (uint64_t leg = 0; leg < 4; leg++) {
        cairn *c = resume(&p, STEPS + leg);
        assert_ok(cairn_mark(c, STEPS + leg + 1, CAIRN_LEVEL_GLOBAL));
        assert_ok(cairn_settle(c));
        leave_session(c);
        assert_ok(crn_comm_barrier(p.comm));
    }
    verify(&p);
    place_done(&p);
}

/* Bytes that the trail has of the blocks of a mark, of all ranks. */
static double trail_bytes(const place *p, uint64_t version)
{
    const crn_part_options opt = {.backend = CRN_IO_AUTO, .depth = 4};
    char path[96];
    double n = 0;
    crn_trail *t;
    crn_run *run;
    snprintf(path, sizeof path, "%s/trail", p->dir);
    assert_ok(crn_trail_open(path, false, &t));
    assert_ok(crn_run_open(t, "run-1", false, &run));
    for (int r = 0; r < crn_comm_size(p->comm); r++) {
        crn_part *part;
        crn_mark *m;
        const uint32_t nranks = (uint32_t)crn_comm_size(p->comm);
        assert_ok(crn_run_part(run, 1, (uint32_t)r, nranks, false, &opt, &part));
        assert_ok(crn_part_load(part, version, &m));
        crn_var *v = crn_mark_find(m, "field");
        assert_ok(crn_mark_table(part, m, v));
        for (uint64_t i = 0; i < v->nblocks; i++)
            n += v->table[i].nbytes;
        crn_mark_free(m);
        crn_part_close(part);
    }
    crn_run_close(run);
    crn_trail_close(t);
    return n;
}

/* What is drained from the nodes, by fewer processes or after the loss of some, is stored as it was
 * there: not decoded, and not encoded again. */
static void test_a_drain_moves_what_is_stored(void **state)
{
    place p;
    cairn_drain_result drained = {.struct_bytes = sizeof drained};
    const int nranks = crn_comm_size(*state);
    char text[256];
    snprintf(text, sizeof text,
             "[level]\nlocal = @/local\nnode_size = 1\npartner = %d\nencoded = 0\nglobal = 0\n"
             "[variable]\nblock = 16KiB\ncodec = zfp\nloss = abs 1e-4\n",
             nranks > 1);
    place_init(&p, *state, text);
    compute(p.rank, 1);
    cairn *c = open_session(&p);
    assert_ok(cairn_mark(c, 1, nranks > 1 ? CAIRN_LEVEL_PARTNER : CAIRN_LEVEL_LOCAL));
    assert_ok(cairn_settle(c));
    memcpy(had, field, sizeof had);
    leave_session(c);
    if (nranks > 1)
        forget(&p, "local/node-1"); /* its share comes from the partner */
    assert_ok(cairn_drain(p.mpi, p.config, &drained));
    assert_int_equal(drained.version, 1);
    const double wanted = logged(&p, 1, "stored"), has = trail_bytes(&p, 1);
    if (has != wanted)
        fail_msg("the trail has %.0f bytes of %.0f", has, wanted);
    verify(&p);
    forget(&p, "local");
    memset(again, 0, sizeof again);
    leave_session(resume(&p, 1));
    place_done(&p);
}

/* A golden file has no sketch of values that a codec has changed, and tells where by too much. */
static void test_golden_files_know_what_is_lost(void **state)
{
    static const char *const bound[] = {"1e-3", "1e-5"};
    for (int tight = 0; tight < 2; tight++) {
        place p;
        char text[256], run[96], golden[96];
        cairn_bless_result made = {.struct_bytes = sizeof made};
        snprintf(text, sizeof text,
                 "[level]\nglobal = 1\n[variable]\nblock = 16KiB\ncodec = zfp\nloss = abs 1e-4\n"
                 "bound = %s\n",
                 bound[tight]);
        place_init(&p, *state, text);
        compute(p.rank, 1);
        cairn *c = open_session(&p);
        assert_ok(cairn_mark(c, 1, CAIRN_LEVEL_GLOBAL));
        assert_ok(cairn_close(c));
        assert_ok(crn_comm_barrier(p.comm));
        snprintf(run, sizeof run, "%s/trail/run-1", p.dir);
        snprintf(golden, sizeof golden, "%s/golden-%d", p.dir, p.rank);
        assert_ok(cairn_bless_as(run, golden, NULL, &made));
        const uint64_t n = (uint64_t)crn_comm_size(p.comm);
        if (made.nsketched != 0 || made.nlossy != n || made.nloose != (tight ? n : 0))
            fail_msg("%d: %d sketched, %d lossy, %d loose", tight, (int)made.nsketched,
                     (int)made.nlossy, (int)made.nloose);
        place_done(&p);
    }
}

static uint64_t sum;

static int add_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path, (void)ftw;
    sum += type == FTW_F ? (uint64_t)st->st_blocks * 512 : 0;
    return 0;
}

/* Bytes of the files below a folder of the place, which are parts but for a few. */
static uint64_t files_of(const place *p, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", p->dir, name);
    sum = 0;
    nftw(path, add_file, 16, FTW_PHYS);
    return sum;
}

/* A copy moves what is stored: it takes no more than its original, on a partner and in the trail.
 */
static void test_copies_are_no_larger(void **state)
{
    place p;
    char text[256];
    const int n = crn_comm_size(*state);
    snprintf(text, sizeof text,
             "[level]\nlocal = @/local\nnode_size = 1\npartner = %d\nglobal = 1\n"
             "[variable]\nblock = 16KiB\ncodec = zfp\nloss = abs 1e-4\n[compare]\ntrees = no\n",
             n > 1);
    place_init(&p, *state, text);
    compute(p.rank, 1);
    cairn *c = open_session(&p);
    assert_ok(cairn_mark(c, 1, n > 1 ? CAIRN_LEVEL_PARTNER : CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_settle(c));
    compute(p.rank, 1);
    field[0]++; /* one block changes */
    assert_ok(cairn_mark(c, 2, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_settle(c));
    assert_ok(crn_comm_barrier(p.comm));
    const uint64_t local = files_of(&p, "local"), trail = files_of(&p, "trail");
    const double copies = n > 1 ? 2 : 1; /* on the nodes: the own part, and a partner's */
    if (trail > 0.7 * 8 * N * n || (double)local > copies * 1.15 * (double)trail ||
        (double)local < copies * 0.85 * (double)trail)
        fail_msg("%llu bytes on the nodes, %llu in the trail", (unsigned long long)local,
                 (unsigned long long)trail);
    assert_ok(crn_comm_barrier(p.comm));
    leave_session(c);
    verify(&p);
    place_done(&p);
}

/* By a codec of a shared object, the template of examples/codec: likewise. */
static void test_a_codec_of_a_shared_object(void **state)
{
    place p;
    uint64_t version;
    double most = 0;
    place_init(&p, *state,
               "[level]\nlocal = @/local\nnode_size = 1\nglobal = 1\n[variable]\nblock = 16KiB\n"
               "codec = ../unit/cut_codec.so:4\nloss = rel 1e-5\n");
    take_marks(&p);
    verify(&p);
    assert_true(logged(&p, 1, "stored") < 8. * N * crn_comm_size(p.comm) * 0.6);
    forget(&p, "local");
    memset(field, 0x77, sizeof field);
    cairn *c = open_session(&p);
    assert_ok(cairn_resume(c, &version));
    for (size_t i = 0; i < N; i++)
        most = i == 7 ? most : fmax(most, fabs(field[i] - had[i]) / fabs(had[i]));
    assert_true(isnan(field[7]) && most > 0 && most <= 1e-5);
    leave_session(c);
    place_done(&p);
}

static cairn_verdict compare_with(const place *p, double shift)
{
    const char *const name[] = {"a", "b"};
    char run[2][96];
    const cairn_comparison_options how = {
        .struct_bytes = sizeof how, .all = true, .direct = true, .bound = "1e-3"};
    cairn_comparison result = {.struct_bytes = sizeof result};
    for (int k = 0; k < 2; k++) {
        setenv("CAIRN_RUN_NAME", name[k], 1);
        compute(p->rank, 1);
        for (size_t i = 0; i < N; i += 100)
            field[i] += k * shift;
        cairn *c = open_session(p);
        assert_ok(cairn_mark(c, 1, CAIRN_LEVEL_GLOBAL));
        assert_ok(cairn_close(c));
        snprintf(run[k], sizeof run[k], "%s/trail/%s", p->dir, name[k]);
    }
    unsetenv("CAIRN_RUN_NAME");
    assert_ok(cairn_compare(p->mpi, run[0], run[1], &how, &result));
    return result.verdict;
}

/* Both runs may be off by 1e-4: the same up to 8e-4, different from 12e-4 on, nothing between. */
static void test_comparing_knows_what_may_be_lost(void **state)
{
    static const struct {
        double shift;
        cairn_verdict verdict;
    } c[] = {{5e-4, CAIRN_SAME}, {10e-4, CAIRN_INCONCLUSIVE}, {20e-4, CAIRN_DIFFERENT}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        place p;
        place_init(&p, *state,
                   "[level]\nlocal = trail\n[variable]\ncodec = zfp\nloss = abs 1e-4\n");
        assert_int_equal(compare_with(&p, c[i].shift), c[i].verdict);
        place_done(&p);
    }
}

static void test_bad_settings_are_refused(void **state)
{
    place p;
    cairn *c;
    static const struct {
        const char *text, *words;
    } bad[] = {{"[variable]\ncodec = fpzip:precision=41\n", "even"},
               {"[variable other]\ncodec = fpzip:precision=2\n", "variable 'other'"},
               {"[variable]\nloss = abs -1\n[variable t]\ncodec = zfp\n", "not above 0"},
               {"[variable t]\ncodec = ./no_such.so\n", "cannot load codec"},
               {"[codec]\nplugins = ./no_such.so\n", "cannot load codec"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) { /* when the configuration is read */
        place_init(&p, *state, bad[i].text);
        assert_int_equal(cairn_open(p.mpi, p.config, &c), CAIRN_EINVAL);
        assert_non_null(strstr(cairn_error_text(), bad[i].words));
        place_done(&p);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_from_each_level),
        cmocka_unit_test(test_counts_are_in_the_log),
        cmocka_unit_test(test_restarts_do_not_drift),
        cmocka_unit_test(test_a_drain_moves_what_is_stored),
        cmocka_unit_test(test_a_codec_of_a_shared_object),
        cmocka_unit_test(test_copies_are_no_larger),
        cmocka_unit_test(test_golden_files_know_what_is_lost),
        cmocka_unit_test(test_comparing_knows_what_may_be_lost),
        cmocka_unit_test(test_bad_settings_are_refused),
    };
    return run_mpi_tests(argc, argv, tests);
}
