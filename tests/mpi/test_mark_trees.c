/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Marks for comparing only: their trees are those of a mark with the same data, nobody can come
 * back to them, and the marks around them do not notice.
 *
 * TEST: ranks self 2
 * NEEDS: inih random123
 */
#include "harness/session.h"
#include "io/io.h"

enum { BIG = 300000, SIDE = 40, HALO = 2, WIDE = SIDE + 2 * HALO };

typedef struct memory {
    double big[BIG];
    float piece[WIDE * WIDE]; /* a piece within its halo */
    int32_t few[77];
    uint64_t step;
} memory;

static memory now;

static void set(uint64_t step)
{
    crn_rng r = crn_rng_of(test_seed(), step);
    now.step = step;
    for (int i = 0; i < 40; i++) /* some pages, not all */
        now.big[crn_rng_below(&r, BIG)] = crn_rng_unit(&r);
    now.few[crn_rng_below(&r, 77)]++;
    for (int i = 0; i < WIDE * WIDE; i++)
        now.piece[i] = (float)((uint64_t)i * step);
}

static void reset(void)
{
    for (size_t i = 0; i < BIG; i++)
        now.big[i] = (double)i;
    memset(now.few, 0, sizeof now.few);
}

static cairn *open_session(place *p)
{
    const uint64_t rank = (uint64_t)p->rank, n = (uint64_t)p->nranks;
    const cairn_piece piece = {.struct_bytes = sizeof piece,
                               .ndims = 2,
                               .global = {SIDE * n, SIDE},
                               .offset = {SIDE * rank, 0},
                               .count = {SIDE, SIDE},
                               .before = {HALO, HALO},
                               .after = {HALO, HALO}};
    cairn *c;
    assert_ok(cairn_open(p->mpi, p->config, &c));
    assert_ok(cairn_protect(c, "big", now.big, CAIRN_FLOAT64, BIG));
    assert_ok(cairn_protect_piece(c, "piece", now.piece, CAIRN_FLOAT32, &piece));
    assert_ok(cairn_protect(c, "few", now.few, CAIRN_INT32, 77));
    assert_ok(cairn_protect(c, "step", &now.step, CAIRN_UINT64, 1));
    return c;
}

static void write_config(place *p, const char *name, const char *more)
{
    assert_ok(crn_comm_barrier(p->comm));
    if (p->rank == 0) {
        FILE *f = fopen(p->config, "w");
        assert_non_null(f);
        fprintf(f,
                "[run]\ntrail = %s/trail\nname = %s\n[level]\nlocal = trail\n[keep]\nglobal = all\n"
                "[compare]\nleaf = 4KiB\n[variable]\nblock = 4KiB\nbound = 1e-3, 1e-9\n%s",
                p->dir, name, more);
        fclose(f);
    }
    assert_ok(crn_comm_barrier(p->comm));
}

/* Marks 1 to 4 of a run; which of them are for comparing only, its name says: "mttm". */
static void take_marks(place *p, const char *name, const char *more)
{
    write_config(p, name, more);
    cairn *c = open_session(p);
    reset();
    for (uint64_t v = 1; v <= 4; v++) {
        set(v);
        if (name[v - 1] == 'm')
            assert_ok(cairn_mark(c, v, CAIRN_AUTO));
        else
            assert_ok(cairn_mark_trees(c, v));
        memset(now.few, (int)v, 4); /* what comes after the call is not in the mark */
        now.few[0] = 0;
    }
    assert_ok(cairn_close(c));
}

static cairn_comparison compare(place *p, const char *a, const char *b, const char *bound)
{
    char run[2][96];
    const cairn_comparison_options how = {.struct_bytes = sizeof how, .all = true, .bound = bound};
    cairn_comparison result = {.struct_bytes = sizeof result};
    snprintf(run[0], sizeof run[0], "%s/trail/%s", p->dir, a);
    snprintf(run[1], sizeof run[1], "%s/trail/%s", p->dir, b);
    assert_ok(cairn_compare(p->mpi, run[0], run[1], &how, &result));
    return result;
}

/* --- tests ---------------------------------------------------------------------------------- */

static void test_trees_are_those_of_a_mark(void **state)
{
    static const char *const how[] = {"", "[mark]\nmode = synchronous\n",
                                      "[mark]\nstaging = 8MiB\n"};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        place p;
        place_init(&p, *state, "");
        take_marks(&p, "mmmm", "");
        take_marks(&p, "mttm", how[i]);
        for (int k = 0; k < 2; k++) {
            const cairn_comparison r = compare(&p, "mmmm", "mttm", k ? "0" : NULL);
            assert_int_equal(r.verdict, CAIRN_SAME);
            assert_int_equal(r.nmarks, 4);
            assert_int_equal(r.read_bytes, 0);
        }
        place_done(&p);
    }
}

/* All of the state does not fit the room for copies. */
static void test_more_than_there_is_room_for(void **state)
{
    static double huge[(10 << 20) / sizeof(double)];
    static const char *const name[] = {"m", "t"};
    place p;
    place_init(&p, *state, "");
    for (int k = 0; k < 2; k++) {
        cairn *c;
        write_config(&p, name[k], "[mark]\nstaging = 8MiB\n");
        c = open_session(&p);
        assert_ok(cairn_protect(c, "huge", huge, CAIRN_FLOAT64, sizeof huge / sizeof *huge));
        reset();
        set(9);
        for (size_t i = 0; i < sizeof huge / sizeof *huge; i++)
            huge[i] = (double)i;
        assert_ok(k ? cairn_mark_trees(c, 9) : cairn_mark(c, 9, CAIRN_AUTO));
        assert_ok(cairn_close(c));
    }
    const cairn_comparison r = compare(&p, "m", "t", NULL);
    assert_int_equal(r.verdict, CAIRN_SAME);
    assert_int_equal(r.read_bytes, 0);
    place_done(&p);
}

/* Marks and marks for comparing only, in any order: what is resumed is the last mark, bit for bit.
 */
static void test_marks_do_not_notice(void **state)
{
    static const char *const tracks[] = {"kernel", "hash", "auto"};
    static memory kept;
    crn_rng r = crn_rng_of(test_seed(), 77);
    for (int turn = 0; turn < 9; turn++) {
        place p;
        char more[64];
        uint64_t version = 0, last = 0, found;
        place_init(&p, *state, "");
        snprintf(more, sizeof more, "track = %s\n", tracks[turn % 3]);
        write_config(&p, "run", more);
        cairn *c = open_session(&p);
        reset();
        for (uint64_t v = 1; v <= 8; v++) {
            set(v);
            version = v;
            if (v > 1 && crn_rng_below(&r, 2)) {
                assert_ok(cairn_mark_trees(c, v));
                continue;
            }
            assert_ok(cairn_mark(c, v, CAIRN_AUTO));
            last = v;
            memcpy(&kept, &now, sizeof kept);
        }
        assert_ok(cairn_settle(c));
        assert_int_equal(raise(SIGUSR1), 0);
        assert_true(cairn_should_stop(c));
        assert_ok(cairn_close(c));
        memset(&now, 0xee, sizeof now);
        c = open_session(&p);
        assert_ok(cairn_resume(c, &found));
        assert_int_equal(found, last);
        assert_true(version >= last);
        assert_memory_equal(now.big, kept.big, sizeof now.big);
        assert_memory_equal(now.few, kept.few, sizeof now.few);
        for (int i = HALO; i < HALO + SIDE; i++)
            assert_memory_equal(now.piece + i * WIDE + HALO, kept.piece + i * WIDE + HALO,
                                SIDE * sizeof *now.piece);
        assert_int_equal(now.step, last);
        assert_ok(cairn_close(c));
        place_done(&p);
    }
}

/* One value differs in a mark that has no data: trees tell where, not what. */
static void test_difference_is_found(void **state)
{
    place p;
    char golden[96], run[96];
    place_init(&p, *state, "");
    take_marks(&p, "tmtt", "");
    write_config(&p, "other", "");
    cairn *c = open_session(&p);
    reset();
    for (uint64_t v = 1; v <= 4; v++) {
        set(v);
        now.big[1000] += v == 3 && p.rank == p.nranks - 1 ? 0.125 : 0;
        assert_ok(cairn_mark_trees(c, v));
        memset(now.few, (int)v, 4);
        now.few[0] = 0;
    }
    assert_ok(cairn_close(c));
    const cairn_comparison r = compare(&p, "tmtt", "other", NULL);
    assert_int_equal(r.verdict, CAIRN_UNPROVEN);
    snprintf(golden, sizeof golden, "%s/golden", p.dir);
    snprintf(run, sizeof run, "%s/trail/tmtt", p.dir);
    if (p.rank == 0)
        assert_ok(cairn_bless(run, golden));
    assert_ok(crn_comm_barrier(p.comm));
    snprintf(run, sizeof run, "%s/trail/other", p.dir);
    cairn_comparison g = {.struct_bytes = sizeof g};
    assert_ok(cairn_gate(p.mpi, golden, run, NULL, &g));
    assert_int_equal(g.verdict, CAIRN_UNPROVEN);
    assert_int_equal(g.first.version, 3);
    assert_string_equal(g.first.variable, "big");
    assert_int_equal(g.first.rank, p.nranks - 1);
    assert_int_equal(g.first.index[0], 1000 / 512 * 512);
    place_done(&p);
}

/* --- what is lost --------------------------------------------------------------------------- */

/* What cairn_trail_verify says: how much is damaged, and the last of it. */
typedef struct verdict {
    int ndamages;
    uint64_t version;
    uint32_t rank;
    char text[400];
} verdict;

static int on_finding(void *arg, const cairn_finding *f)
{
    verdict *v = arg;
    if (f->status == CAIRN_OK)
        return 0;
    v->ndamages++;
    v->version = f->version;
    v->rank = f->rank;
    snprintf(v->text, sizeof v->text, "%s", f->text);
    return 0;
}

static verdict verify(const place *p)
{
    verdict v = {0};
    char path[96];
    cairn_trail *t;
    snprintf(path, sizeof path, "%s/trail", p->dir);
    assert_ok(cairn_trail_open(path, &t));
    const int rc = cairn_trail_verify(t, 0, CAIRN_ALL_MARKS, on_finding, &v);
    assert_int_equal(rc, v.ndamages > 0 ? CAIRN_ECORRUPT : CAIRN_OK);
    cairn_trail_close(t);
    return v;
}

/* Take bytes off the end of a file of the only run, called "run". */
static void cut(const place *p, const char *name, off_t nbytes)
{
    char path[200];
    struct stat st;
    snprintf(path, sizeof path, "%s/trail/run/%s", p->dir, name);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - nbytes), 0);
}

/* Let the log end where these words are. */
static void cut_log(const place *p, const char *words)
{
    char path[200];
    void *log;
    size_t nbytes;
    int dir;
    snprintf(path, sizeof path, "%s/trail/run", p->dir);
    assert_ok(crn_dir_open_path(path, false, &dir));
    assert_ok(crn_file_slurp(dir, "events", 1 << 20, &log, &nbytes));
    close(dir);
    const char *at = strstr(log, words);
    assert_non_null(at);
    cut(p, "events", (off_t)strlen(at));
    free(log);
}

/* Marks of one run, each a letter: "mtt". */
static void take_some(place *p, cairn *c, uint64_t first, const char *kinds)
{
    for (uint64_t i = 0; kinds[i]; i++) {
        set(first + i);
        if (kinds[i] == 'm')
            assert_ok(cairn_mark(c, first + i, CAIRN_AUTO));
        else
            assert_ok(cairn_mark_trees(c, first + i));
    }
    assert_ok(cairn_settle(c));
    assert_ok(crn_comm_barrier(p->comm));
}

static void test_lost_trees_are_missed(void **state)
{
    place p;
    place_init(&p, *state, "");
    write_config(&p, "run", "");
    cairn *c = open_session(&p);
    reset();
    take_some(&p, c, 1, "mttt");
    assert_ok(cairn_close(c));
    assert_ok(crn_comm_barrier(p.comm));
    if (p.rank == 0) {
        char name[128];
        const uint32_t last = (uint32_t)p.nranks - 1;
        assert_int_equal(verify(&p).ndamages, 0);
        snprintf(name, sizeof name, "trees/000/trees-%06u", last);
        cut(&p, name, 1);
        verdict v = verify(&p);
        assert_int_equal(v.ndamages, 1);
        assert_int_equal(v.version, 4);
        assert_int_equal(v.rank, last);
        assert_non_null(strstr(v.text, "of 1 mark from here on were finished, and are gone"));
        snprintf(name, sizeof name, "%s/trail/run/trees", p.dir);
        remove_tree(name);
        v = verify(&p);
        assert_int_equal(v.ndamages, 1); /* one for all ranks */
        assert_int_equal(v.version, 2);
        assert_non_null(strstr(v.text, "of 3 marks"));
    }
    place_done(&p);
}

/* A run that went back has other marks now, also where it died before it told of them. */
static void test_replaced_trees_are_not_missed(void **state)
{
    place p;
    uint64_t version;
    place_init(&p, *state, "");
    write_config(&p, "run", "");
    cairn *c = open_session(&p);
    reset();
    take_some(&p, c, 1, "mttt");
    leave_session(c);
    c = open_session(&p);
    assert_ok(cairn_resume(c, &version));
    take_some(&p, c, 2, "tt");
    leave_session(c);
    assert_ok(crn_comm_barrier(p.comm));
    if (p.rank == 0) {
        assert_int_equal(verify(&p).ndamages, 0);
        cut_log(&p, "\"event\":\"resume\"");
        assert_int_equal(verify(&p).ndamages, 0);
    }
    place_done(&p);
}

static void test_order(void **state)
{
    place p;
    place_init(&p, *state, "");
    write_config(&p, "run", "");
    cairn *c = open_session(&p);
    reset();
    assert_ok(cairn_mark(c, 5, CAIRN_AUTO));
    assert_int_equal(cairn_mark_trees(c, 5), CAIRN_NOTHING);
    assert_refused(c, cairn_mark_trees(c, 4), CAIRN_EINVAL, "versions must grow");
    assert_ok(cairn_mark_trees(c, 7));
    assert_refused(c, cairn_mark_trees(c, 7), CAIRN_EINVAL, "versions must grow");
    assert_ok(cairn_mark(c, 7, CAIRN_AUTO));
    assert_ok(cairn_begin(c, 8, CAIRN_AUTO));
    assert_refused(c, cairn_mark_trees(c, 9), CAIRN_EINVAL, "is open");
    assert_ok(cairn_commit(c));
    assert_ok(cairn_close(c));
    write_config(&p, "off", "[compare]\ntrees = no\n");
    c = open_session(&p);
    assert_int_equal(cairn_mark_trees(c, 1), CAIRN_NOTHING);
    assert_ok(cairn_close(c));
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trees_are_those_of_a_mark),
                                       cmocka_unit_test(test_more_than_there_is_room_for),
                                       cmocka_unit_test(test_marks_do_not_notice),
                                       cmocka_unit_test(test_difference_is_found),
                                       cmocka_unit_test(test_lost_trees_are_missed),
                                       cmocka_unit_test(test_replaced_trees_are_not_missed),
                                       cmocka_unit_test(test_order)};
    return run_mpi_tests(argc, argv, tests);
}
