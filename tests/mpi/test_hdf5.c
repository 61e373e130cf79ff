/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Global marks as HDF5 files: they come back without anything else, go when they are no longer
 * kept, and are not believed when someone has changed them. Every case runs with one file and with
 * one of each rank, in the background and synchronously.
 *
 * TEST: ranks self 1 3
 *
 * NEEDS: hdf5
 */
#include "harness/session.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "io/io_fault.h"

/* Pieces are columns, so that a row of each is short and lies apart from the next. */
enum { ROWS = 300, COLUMNS = 23, LAYERS = 7, ITEMS = 11 };

typedef struct grain {
    uint32_t kind;
    double x[3];
} grain;

typedef struct world {
    place at;
    uint64_t step;
    double plate[ROWS * COLUMNS];
    float cube[LAYERS * COLUMNS * LAYERS];
    grain grains[ITEMS * 4];
} world;

static void world_init(world *w, crn_comm *comm, const char *settings)
{
    char all[512];
    memset(w, 0, sizeof *w);
    snprintf(all, sizeof all,
             "[level]\nlocal = @/local\npartner = 0\nglobal = 1\n[variable]\nblock = 1KiB\n%s",
             settings);
    place_init(&w->at, comm, all);
}

static void for_all_settings(crn_comm *comm, void (*fn)(world *w, bool pieces))
{
    static const char *const form[] = {"hdf5", "hdf5-virtual"};
    static const char *const mode[] = {"background", "synchronous"};
    for (int which = 0; which < 4; which++) {
        static world w;
        char settings[256];
        snprintf(settings, sizeof settings, "[global]\nformat = %s\n[mark]\nmode = %s\n",
                 form[which % 2], mode[which / 2]);
        world_init(&w, comm, settings);
        fn(&w, which % 2 == 1);
        place_done(&w.at);
    }
}

static void advance(world *w)
{
    w->step++;
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        w->plate[i] = (double)w->at.rank * 1e6 + (double)(w->step * i);
    for (size_t i = 0; i < LAYERS * COLUMNS * LAYERS; i++)
        w->cube[i] = (float)(w->at.rank + 1) / (float)(w->step + i);
    for (uint32_t i = 0; i < ITEMS * 4; i++) { /* one by one: the padding stays as it is */
        grain *g = &w->grains[i];
        g->kind = i + (uint32_t)w->step;
        g->x[0] = i;
        g->x[1] = w->at.rank;
        g->x[2] = 0.5;
    }
}

static void protect(world *w, cairn *c)
{
    const uint64_t n = (uint64_t)w->at.nranks, r = (uint64_t)w->at.rank;
    const uint64_t plate[] = {ROWS, COLUMNS * n}, at[] = {0, COLUMNS * r}, has[] = {ROWS, COLUMNS};
    const uint64_t cube[] = {LAYERS, COLUMNS * n, LAYERS}, corner[] = {0, COLUMNS * r, 0};
    const uint64_t part[] = {LAYERS, COLUMNS, LAYERS};
    const cairn_member member[] = {CAIRN_MEMBER(grain, kind, CAIRN_UINT32),
                                   CAIRN_MEMBER(grain, x, CAIRN_FLOAT64)};
    cairn_type grain_type;
    assert_ok(cairn_define_type(c, sizeof(grain), member, 2, &grain_type));
    assert_ok(cairn_protect(c, "step", &w->step, CAIRN_UINT64, 1));
    assert_ok(cairn_protect_part(c, "plate", w->plate, CAIRN_FLOAT64, 2, plate, at, has));
    assert_ok(cairn_protect_part(c, "fluid/cube", w->cube, CAIRN_FLOAT32, 3, cube, corner, part));
    /* another number of elements on each rank */
    assert_ok(cairn_protect(c, "grains", w->grains, grain_type, ITEMS * (1 + r % 4)));
    assert_ok(cairn_describe(c, "plate", "units", "K"));
}

static void mark(world *w, cairn *c, int n)
{
    for (int i = 0; i < n; i++) {
        advance(w);
        assert_ok(cairn_mark(c, w->step, CAIRN_AUTO));
    }
    assert_ok(cairn_settle(c));
}

/* Leave the session, so that its run can be resumed, and lose the nodes. */
static void leave_nodes(world *w, cairn *c)
{
    leave_session(c);
    assert_ok(crn_comm_barrier(w->at.comm));
    if (w->at.rank == 0) {
        char local[96];
        snprintf(local, sizeof local, "%s/local", w->at.dir);
        remove_tree(local);
    }
    assert_ok(crn_comm_barrier(w->at.comm));
}

/* Resume, and hold what comes against what the step of version has. */
static void come_back(world *w, cairn **c, uint64_t version)
{
    static world want;
    uint64_t found = 0;
    want = *w;
    want.step = version - 1;
    advance(&want);
    memset(w->plate, 0, sizeof w->plate);
    memset(w->cube, 0, sizeof w->cube);
    memset(w->grains, 0, sizeof w->grains);
    assert_ok(cairn_open(w->at.mpi, w->at.config, c));
    protect(w, *c);
    assert_ok(cairn_resume(*c, &found));
    assert_int_equal(found, version);
    assert_int_equal(w->step, version);
    assert_memory_equal(w->plate, want.plate, sizeof w->plate);
    assert_memory_equal(w->cube, want.cube, sizeof w->cube);
    assert_memory_equal(w->grains, want.grains,
                        ITEMS * (1 + (size_t)w->at.rank % 4) * sizeof(grain));
}

static char *file_of(const world *w, uint64_t version, const char *end, char buf[256])
{
    snprintf(buf, 256, "%s/trail/run-1/series-1/mark-%" PRIu64 "%s", w->at.dir, version, end);
    return buf;
}

static bool is_there(const world *w, uint64_t version, const char *end)
{
    char path[256];
    return access(file_of(w, version, end, path), F_OK) == 0;
}

static void come_back_from_files(world *w, bool pieces)
{
    cairn *c;
    assert_ok(cairn_open(w->at.mpi, w->at.config, &c));
    protect(w, c);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    mark(w, c, 3);
    assert_true(is_there(w, 3, ".h5"));
    assert_true(is_there(w, 3, ".xmf"));
    assert_int_equal(is_there(w, 3, "/rank-000000.h5"), pieces);
    leave_nodes(w, c);
    come_back(w, &c, 3);
    mark(w, c, 1); /* the run goes on */
    leave_nodes(w, c);
    come_back(w, &c, 4);
    assert_ok(cairn_close(c));
}

static void test_come_back(void **state)
{
    for_all_settings(*state, come_back_from_files);
}

static void keep_two(world *w, bool pieces)
{
    cairn *c;
    assert_ok(cairn_open(w->at.mpi, w->at.config, &c));
    protect(w, c);
    mark(w, c, 4);
    assert_ok(crn_comm_barrier(w->at.comm));
    for (uint64_t v = 1; v <= 4; v++) {
        assert_int_equal(is_there(w, v, ".h5"), v > 2);
        assert_int_equal(is_there(w, v, ".xmf"), v > 2);
        assert_int_equal(is_there(w, v, ""), v > 2 && pieces);
    }
    assert_ok(cairn_close(c));
}

static void test_keep(void **state)
{
    for_all_settings(*state, keep_two);
}

/* Change a byte that is a variable's: most are. */
static void change(const char *path)
{
    const int fd = open(path, O_RDWR);
    char byte;
    assert_true(fd >= 0);
    const off_t at = lseek(fd, 0, SEEK_END) / 2;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void notice_change(world *w, bool pieces)
{
    cairn *c;
    char path[256];
    assert_ok(cairn_open(w->at.mpi, w->at.config, &c));
    protect(w, c);
    mark(w, c, 3);
    leave_nodes(w, c);
    if (w->at.rank == 0)
        change(file_of(w, 3, pieces ? "/rank-000000.h5" : ".h5", path));
    assert_ok(crn_comm_barrier(w->at.comm));
    come_back(w, &c, 2);
    leave_nodes(w, c);
    /* without the file there is no mark */
    if (w->at.rank == 0)
        assert_int_equal(unlink(file_of(w, 2, pieces ? "/rank-000000.h5" : ".h5", path)), 0);
    assert_ok(crn_comm_barrier(w->at.comm));
    assert_ok(cairn_open(w->at.mpi, w->at.config, &c));
    protect(w, c);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_ENOTFOUND);
    assert_ok(cairn_close(c));
}

static void test_notice_change(void **state)
{
    for_all_settings(*state, notice_change);
}

/* A run may change its mind: marks of one form follow those of another. */
static void change_form(crn_comm *comm, const char *first, const char *then)
{
    static world w;
    char settings[128];
    cairn *c;
    snprintf(settings, sizeof settings, "[global]\nformat = %s\n", first);
    world_init(&w, comm, settings);
    assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
    protect(&w, c);
    mark(&w, c, 2);
    leave_nodes(&w, c);
    setenv("CAIRN_GLOBAL_FORMAT", then, 1);
    come_back(&w, &c, 2);
    mark(&w, c, 1);
    leave_nodes(&w, c);
    come_back(&w, &c, 3);
    leave_nodes(&w, c);
    assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
    protect(&w, c);
    assert_ok(cairn_resume_at(c, 2));
    assert_ok(cairn_close(c));
    unsetenv("CAIRN_GLOBAL_FORMAT");
    place_done(&w.at);
}

static void test_change_form(void **state)
{
    change_form(*state, "parts", "hdf5");
    change_form(*state, "hdf5", "parts");
    change_form(*state, "hdf5", "hdf5-virtual");
}

/* Operations on files fail on rank 0, one in each mark, later and later: marks fail, and the next
 * one after all of them is whole and can be had from the files alone. */
static void fail_at(crn_comm *comm, const char *format)
{
    static world w;
    char settings[128];
    cairn *c;
    uint64_t left = 0, nfailed = 0;
    snprintf(settings, sizeof settings, "[global]\nformat = %s\n[mark]\nmode = synchronous\n",
             format);
    world_init(&w, comm, settings);
    assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
    protect(&w, c);
    mark(&w, c, 2);
    for (uint64_t at = 1; left == 0; at += 3) {
        const crn_fault plan = {
            .where = CRN_FAULT_ANY, .how = CRN_FAULT_ENOSPC, .at = at, .count = 1};
        advance(&w);
        if (w.at.rank == 0)
            crn_fault_arm(&plan);
        nfailed += cairn_mark(c, w.step, CAIRN_LEVEL_GLOBAL) < 0;
        left = w.at.rank == 0 && crn_fault_seen() < at;
        if (w.at.rank == 0)
            crn_fault_arm(NULL);
        assert_ok(crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, &left, 1));
    }
    assert_true(nfailed > 5);
    mark(&w, c, 1);
    leave_nodes(&w, c);
    come_back(&w, &c, w.step);
    assert_false(is_there(&w, 1, ".h5"));
    assert_ok(cairn_close(c));
    place_done(&w.at);
}

static void test_failures(void **state)
{
    fail_at(*state, "hdf5");
    fail_at(*state, "hdf5-virtual");
}

/* Does the manifest say that a mark is in the trail? */
static bool is_counted(const world *w, uint64_t version)
{
    char path[96];
    cairn_trail *t;
    cairn_run_info run = {.struct_bytes = sizeof run};
    cairn_mark_info mark = {.struct_bytes = sizeof mark};
    bool found = false;
    snprintf(path, sizeof path, "%s/trail", w->at.dir);
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_run(t, 0, &run));
    for (size_t i = 0; i < run.nmarks; i++) {
        assert_ok(cairn_trail_mark(t, 0, i, &mark));
        found |= mark.version == version && mark.levels & 1 << 3;
    }
    cairn_trail_close(t);
    return found;
}

/* The disk of the last rank is full from some write on: the mark fails, and what there is of it so
 * far does not stay in the way. */
static void fill_at(crn_comm *comm, const char *format)
{
    static world w;
    char settings[128];
    cairn *c;
    uint64_t left = 0;
    snprintf(settings, sizeof settings, "[global]\nformat = %s\n[mark]\nmode = synchronous\n",
             format);
    world_init(&w, comm, settings);
    assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
    protect(&w, c);
    mark(&w, c, 1);
    const bool last = w.at.rank == w.at.nranks - 1;
    for (crn_fault plan = {CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 0}; left == 0; plan.at += 3) {
        advance(&w);
        if (last)
            crn_fault_arm(&plan);
        const int rc = cairn_mark(c, w.step, CAIRN_LEVEL_GLOBAL);
        left = last && crn_fault_seen() < plan.at;
        crn_fault_arm(NULL);
        assert_ok(crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, &left, 1));
        if (left > 0 || is_counted(&w, w.step) || strstr(cairn_last_error(c), "manifest"))
            continue; /* it is there; to say so, or to drop an older one, is what failed */
        assert_int_equal(rc, CAIRN_ENOSPC);
        assert_false(is_there(&w, w.step, ".h5") || is_there(&w, w.step, ".xmf"));
        assert_false(is_there(&w, w.step, ""));
    }
    assert_ok(cairn_close(c));
    place_done(&w.at);
}

static void test_full_disk(void **state)
{
    fill_at(*state, "hdf5");
    fill_at(*state, "hdf5-virtual");
}

static void test_needs_local(void **state)
{
    static world w;
    cairn *c;
    world_init(&w, *state, "[global]\nformat = hdf5\n");
    setenv("CAIRN_LEVEL_LOCAL", "trail", 1);
    assert_int_equal(cairn_open(w.at.mpi, w.at.config, &c), CAIRN_EINVAL);
    assert_non_null(strstr(cairn_last_error(NULL), "level.local is 'trail'"));
    unsetenv("CAIRN_LEVEL_LOCAL");
    place_done(&w.at);
}

static void test_describe(void **state)
{
    static world w;
    cairn *c;
    world_init(&w, *state, "");
    assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
    protect(&w, c);
    assert_int_equal(cairn_describe(c, "plates", "units", "K"), CAIRN_ENOTFOUND);
    assert_int_equal(cairn_describe(c, "plate", "a=b", "K"), CAIRN_EINVAL);
    assert_int_equal(cairn_describe(c, "plate", "", "K"), CAIRN_EINVAL);
    assert_int_equal(cairn_describe(c, "plate", "units", "K\nm"), CAIRN_EINVAL);
    assert_int_equal(cairn_describe(c, "plate", "layout", "list"), CAIRN_EINVAL);
    assert_ok(cairn_describe(c, "plate", "units", "mK"));
    assert_ok(cairn_describe(c, "plate", "description", "how hot it is"));
    assert_ok(cairn_describe(c, "plate", "units", NULL));
    protect(&w, c); /* what was said stays */
    advance(&w);
    assert_ok(cairn_mark(c, 1, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_close(c));
    if (w.at.rank == 0) {
        cairn_trail *t;
        cairn_variable_info v = {.struct_bytes = sizeof v};
        char path[96];
        snprintf(path, sizeof path, "%s/trail", w.at.dir);
        assert_ok(cairn_trail_open(path, &t));
        assert_ok(cairn_trail_variable(t, 0, 0, 0, 1, &v));
        assert_string_equal(v.name, "plate");
        assert_string_equal(v.attributes, "description=how hot it is\nunits=K\n");
        cairn_trail_close(t);
    }
    place_done(&w.at);
}

/* --- through a file and back ------------------------------------------------------------------ */

/* Rank r has r items of its own and in cells: on three ranks they are as many as there are ranks.
 */
static void protect_few(world *w, cairn *c, uint64_t *own, uint64_t *item)
{
    const uint64_t me = (uint64_t)w->at.rank, n = (uint64_t)w->at.nranks;
    assert_ok(cairn_protect(c, "own", own, CAIRN_UINT64, me));
    assert_ok(cairn_protect_ragged(c, "items", item, CAIRN_UINT64, n, 1, &me, &me));
    assert_ok(
        cairn_describe(c, "items", "a", "cells=77")); /* what people say is not ours to read */
    assert_ok(cairn_describe(c, "items", "acells", "78"));
    assert_ok(cairn_protect(c, "step", &w->step, CAIRN_UINT64, 1));
}

static void exchange(const world *w)
{
    char from[96], file[96], to[96];
    snprintf(from, sizeof from, "%s/trail", w->at.dir);
    snprintf(file, sizeof file, "%s/few.h5", w->at.dir);
    snprintf(to, sizeof to, "%s/new", w->at.dir);
    cairn_export_options out = {.struct_bytes = sizeof out,
                                .trail = from,
                                .run = "run-1",
                                .version = w->step,
                                .path = file};
    cairn_import_options in = {
        .struct_bytes = sizeof in, .path = file, .trail = to, .version = w->step};
    assert_ok(cairn_export(&out, NULL));
    assert_ok(cairn_import(&in, NULL));
}

static void test_few_items_keep_their_ranks(void **state)
{
    static world w;
    cairn *c;
    uint64_t own[4], item[4], nitems = 0;
    world_init(&w, *state, "[mark]\nmode = synchronous\n");
    const uint64_t me = (uint64_t)w.at.rank;
    w.step = 5;
    for (uint64_t i = 0; i < 4; i++) {
        own[i] = me * 10 + i;
        item[i] = me * 100 + i;
    }
    assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
    protect_few(&w, c, own, item);
    assert_ok(cairn_mark(c, 5, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_close(c));
    assert_ok(crn_comm_barrier(w.at.comm));
    char to[96];
    snprintf(to, sizeof to, "%s/new", w.at.dir);
    if (w.at.rank == 0)
        exchange(&w);
    setenv("CAIRN_RUN_TRAIL", to, 1);
    assert_ok(crn_comm_barrier(w.at.comm));
    memset(own, 0, sizeof own);
    memset(item, 0, sizeof item);
    w.step = 0;
    assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
    assert_ok(cairn_probe_cells(c, "items", 1, &me, &nitems));
    assert_int_equal(nitems, me);
    protect_few(&w, c, own, item);
    assert_ok(cairn_resume(c, NULL));
    assert_int_equal(w.step, 5);
    for (uint64_t i = 0; i < me; i++)
        assert_true(own[i] == me * 10 + i && item[i] == me * 100 + i);
    assert_ok(cairn_close(c));
    unsetenv("CAIRN_RUN_TRAIL");
    place_done(&w.at);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_come_back),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_notice_change),
        cmocka_unit_test(test_change_form),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_needs_local),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_few_items_keep_their_ranks),
    };
    return run_mpi_tests(argc, argv, tests);
}
