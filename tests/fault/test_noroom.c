/* SPDX-License-Identifier: BSD-3-Clause
 *
 * No room. Every operation on the disk, and every allocation, of a call that changes a part or a
 * run fails in turn: the call fails with a sentence or succeeds all the same, the earlier marks
 * stay readable, and the next mark succeeds, in the same part and in one that is opened anew.
 *
 * NEEDS: lz4 zstd zfp fpzip liburing
 */
#include "fault/history.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

static char scratch[64];
static int dir = -1;
static char where[160]; /* the fault being tried */

static int setup(void **state)
{
    (void)state;
    disk_scratch(scratch, "noroom");
    dir = open(scratch, O_RDONLY | O_DIRECTORY);
    return dir < 0;
}

static int teardown(void **state)
{
    (void)state;
    crn_fault_arm(NULL);
    crn_mem_fail_at(0);
    close(dir);
    remove_tree(scratch);
    return 0;
}

#define must(expr)                                                                                 \
    do {                                                                                           \
        if ((expr) != CAIRN_OK)                                                                    \
            fail_msg("%s: %s: %s", where, #expr, crn_err_peek()->text);                            \
    } while (0)

/* --- one part ------------------------------------------------------------------------------- */

typedef struct scene {
    model m;
    crn_part_options opt;
    crn_part *part;
    mark_list before, after; /* the call that is to fail */
} scene;

enum { FIRST = 4 /* the version of the first mark after the past of a scene */ };

/* Three marks of which two are retained. */
static void scene_init(scene *s, uint64_t seed, crn_io_backend backend)
{
    memset(s, 0, sizeof *s);
    crn_fault_arm(NULL);
    s->opt = (crn_part_options){backend, 4, false};
    model_init(&s->m, seed, 9000);
    must(crn_part_create(dir, "part", &model_id, &s->opt, &s->part));
    for (uint64_t version = 1; version < FIRST; version++) {
        model_step(&s->m);
        must(model_mark(&s->m, s->part, version, 2, NULL));
    }
    s->before = list_of_part(s->part);
    model_step(&s->m);
}

static void scene_done(scene *s)
{
    crn_part_close(s->part);
    model_done(&s->m);
    unlinkat(dir, "part", 0);
}

static void must_have(scene *s, crn_part *part, mark_list *ret)
{
    char found[256];
    *ret = list_of_part(part);
    if (!list_equal(ret, &s->before) && !list_equal(ret, &s->after))
        fail_msg("%s: marks '%s'", where, list_text(ret, found));
    for (size_t i = 0; i < ret->n; i++)
        must(model_check(&s->m, part, ret->version[i]));
}

/* Close the part. What it took for free must be so for whoever opens it next. */
static void close_part(scene *s)
{
    crn_part_info ours, theirs;
    crn_part_describe(s->part, &ours);
    crn_part_close(s->part);
    must(crn_part_open(dir, "part", &model_id, true, &s->opt, &s->part));
    crn_part_describe(s->part, &theirs);
    crn_part_close(s->part);
    s->part = NULL;
    if (ours.used_bytes < theirs.used_bytes)
        fail_msg("%s: %" PRIu64 " bytes are taken for free that are in use", where,
                 theirs.used_bytes - ours.used_bytes);
}

/* The earlier marks are there, for us and for another reader, and the next ones succeed. */
static void must_go_on(scene *s)
{
    crn_part *reader;
    mark_list l;
    if (s->part)
        must_have(s, s->part, &l);
    must(crn_part_open(dir, "part", &model_id, false, &s->opt, &reader));
    must_have(s, reader, &l);
    crn_part_close(reader);
    for (uint64_t version = 10; version < 13; version++) {
        if (!s->part) {
            must(crn_part_open(dir, "part", &model_id, true, &s->opt, &s->part));
            l = list_of_part(s->part);
        } else if (version == 10) {
            l = list_of_part(s->part);
        }
        model_step(&s->m);
        l = list_mark(l, version, 3);
        must(model_mark(&s->m, s->part, version, 3, NULL));
        s->before = s->after = l;
        must_have(s, s->part, &l);
        close_part(s);
    }
}

/* The calls that are made to fail. Each closes the part that it has opened, if it fails. */
typedef cairn_status call(scene *s);

static cairn_status call_mark(scene *s)
{
    s->after = list_mark(s->before, FIRST, 1);
    return model_mark(&s->m, s->part, FIRST, 1, NULL);
}

static cairn_status call_trim(scene *s)
{
    s->after = list_keep(s->before, 1);
    return crn_part_trim(s->part, 1);
}

static cairn_status call_rewind(scene *s)
{
    s->after = list_rewind(s->before, FIRST - 2);
    return crn_part_rewind(s->part, FIRST - 2);
}

static cairn_status call_open(scene *s)
{
    crn_part_close(s->part);
    s->part = NULL;
    s->after = list_mark(s->before, FIRST, 2);
    CRN_TRY(crn_part_open(dir, "part", &model_id, true, &s->opt, &s->part));
    return model_mark(&s->m, s->part, FIRST, 2, NULL);
}

static call *const calls[] = {call_mark, call_trim, call_rewind, call_open};
enum { NCALLS = sizeof calls / sizeof *calls };

/* Let a call meet a fault; false: the fault lies behind its end. */
static bool strike(int which, crn_io_backend backend, crn_fault fault)
{
    scene s;
    snprintf(where, sizeof where, "call %d, backend %d, fault %d:%llu:%d:%llu", which, (int)backend,
             (int)fault.where, (unsigned long long)fault.at, (int)fault.how,
             (unsigned long long)fault.count);
    scene_init(&s, test_seed() + (uint64_t)which, backend);
    crn_fault_arm(&fault);
    cairn_status rc = calls[which](&s);
    bool struck = crn_fault_seen() >= fault.at;
    if (rc == CAIRN_OK)
        s.before = s.after;
    crn_fault_arm(NULL);
    if (rc < 0) {
        assert_true(struck);
        assert_true(rc == CAIRN_ENOSPC || rc == CAIRN_EIO);
        if (!strstr(crn_err_peek()->text, "'part'"))
            fail_msg("%s: '%s' names no file", where, crn_err_peek()->text);
    }
    must_go_on(&s);
    scene_done(&s);
    return struck;
}

/* Let each operation of a call fail in turn; how many there were. */
static uint64_t strike_each(int which, crn_io_backend backend, crn_fault fault)
{
    while (strike(which, backend, fault))
        fault.at++;
    return fault.at - 1;
}

static void test_every_operation_fails(void **state)
{
    (void)state;
    const crn_fault faults[] = {
        {CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 1}, {CRN_FAULT_WRITE, CRN_FAULT_EIO, 1, 1},
        {CRN_FAULT_WRITE, CRN_FAULT_SHORT, 1, 1},  {CRN_FAULT_WRITE, CRN_FAULT_TORN, 1, 1},
        {CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 0}, {CRN_FAULT_SYNC, CRN_FAULT_EIO, 1, 1},
        {CRN_FAULT_SYNC, CRN_FAULT_ENOSPC, 1, 2},  {CRN_FAULT_READ, CRN_FAULT_EIO, 1, 1},
        {CRN_FAULT_READ, CRN_FAULT_SHORT, 1, 1},   {CRN_FAULT_OPEN, CRN_FAULT_EIO, 1, 1},
        {CRN_FAULT_ANY, CRN_FAULT_EIO, 1, 0},
    };
    uint64_t n = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (int which = 0; which < NCALLS; which++)
            for (int backend = CRN_IO_URING; backend <= CRN_IO_THREADS; backend++)
                n += strike_each(which, (crn_io_backend)backend, faults[i]);
    print_message("%llu faults of the disk\n", (unsigned long long)n);
    assert_true(n > 200);
}

/* A disk that stays full: mark after mark fails, and one succeeds when there is room again. */
static void test_full_for_long(void **state)
{
    (void)state;
    const crn_fault_where kinds[] = {CRN_FAULT_WRITE, CRN_FAULT_SYNC};
    for (int k = 0; k < 2; k++)
        for (uint64_t at = 1; at <= 2; at++) {
            scene s;
            crn_fault full = {kinds[k], CRN_FAULT_ENOSPC, at, 0};
            snprintf(where, sizeof where, "full from operation %llu on", (unsigned long long)at);
            scene_init(&s, test_seed(), CRN_IO_THREADS);
            crn_fault_arm(&full);
            for (int i = 0; i < 5; i++) {
                assert_int_equal(call_mark(&s), CAIRN_ENOSPC);
                mark_list l;
                must_have(&s, s.part, &l);
            }
            crn_fault_arm(NULL);
            must_go_on(&s);
            scene_done(&s);
        }
}

/* --- no memory ------------------------------------------------------------------------------ */

static cairn_status call_read(scene *s)
{
    s->after = s->before;
    return model_check(&s->m, s->part, FIRST - 1);
}

static void test_every_allocation_fails(void **state)
{
    (void)state;
    call *const all[] = {call_mark, call_trim, call_rewind, call_open, call_read};
    uint64_t total = 0;
    for (size_t which = 0; which < sizeof all / sizeof *all; which++) {
        cairn_status rc;
        int calm = 0; /* successes in a row: some allocations can be done without */
        for (uint64_t n = 1; calm < 12; n++) {
            scene s;
            snprintf(where, sizeof where, "call %zu, allocation %llu", which,
                     (unsigned long long)n);
            scene_init(&s, test_seed() + which, CRN_IO_THREADS);
            crn_mem_fail_at(n);
            rc = all[which](&s);
            crn_mem_fail_at(0);
            assert_true(rc == CAIRN_OK || rc == CAIRN_ENOMEM);
            calm = rc == CAIRN_OK ? calm + 1 : 0;
            total += rc < 0;
            if (rc == CAIRN_OK)
                s.before = s.after;
            must_go_on(&s);
            scene_done(&s);
        }
    }
    print_message("%llu failed allocations\n", (unsigned long long)total);
}

/* --- a draft that is not given up ------------------------------------------------------------ */

/* A mark of one variable of so many bytes. */
static cairn_status mark_bytes(crn_part *part, uint64_t version, const void *data, size_t nbytes)
{
    const crn_var_spec spec = {
        .name = "x", .type = "bytes", .item = 1, .block = 4096, .nbytes = nbytes};
    crn_draft *d;
    size_t v;
    CRN_TRY(crn_draft_begin(part, version, &d));
    cairn_status rc = crn_draft_add(d, &spec, &v);
    if (rc == CAIRN_OK)
        rc = crn_draft_put_all(d, v, data);
    if (rc == CAIRN_OK)
        return crn_draft_commit(d, 2, NULL);
    crn_draft_drop(d);
    return rc;
}

static uint64_t file_bytes(const crn_part *part)
{
    crn_part_info info;
    crn_part_describe(part, &info);
    return info.file_bytes;
}

/* What a mark wrote that found no room in the end is given back to the disk, where whatever comes
 * next needs it. Only behind a superblock that may be there nothing is. */
static void test_no_room_gives_the_end_back(void **state)
{
    (void)state;
    enum { LARGE = 300000 };
    static unsigned char data[LARGE];
    const crn_part_options opt = {CRN_IO_THREADS, 4, false};
    crn_fault fault = {CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 0, 1};
    crn_part *part;
    uint64_t nwrites = 2;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i / 4096 + i);
    for (fault.at = 0; fault.at < nwrites; fault.at++) {
        snprintf(where, sizeof where, "write %" PRIu64 " of %" PRIu64, fault.at, nwrites);
        must(crn_part_create(dir, "part", &model_id, &opt, &part));
        must(mark_bytes(part, 1, data, 5000));
        const uint64_t before = file_bytes(part);
        crn_fault_arm(&fault);
        cairn_status rc = mark_bytes(part, 2, data, LARGE);
        if (fault.at == 0) { /* only counted: the last one is the superblock's */
            assert_ok(rc);
            assert_true(file_bytes(part) >= before + LARGE);
            nwrites = crn_fault_seen();
            assert_true(nwrites > 2);
        } else {
            assert_int_equal(rc, CAIRN_ENOSPC);
            assert_int_equal(file_bytes(part), before);
        }
        crn_fault_arm(NULL);
        must(mark_bytes(part, 3, data, LARGE));
        crn_part_close(part);
        unlinkat(dir, "part", 0);
    }
}

/* A put fails because an earlier write did; a caller that goes on must not get a mark of it. */
static void test_a_failed_draft_cannot_be_committed(void **state)
{
    (void)state;
    enum { BYTES = 40 << 20, BLOCK = 1 << 20 };
    scene s;
    crn_draft *d;
    size_t v;
    unsigned char *data = calloc(1, BYTES);
    crn_var_spec spec = {
        .name = "state", .type = "bytes", .item = 1, .block = BLOCK, .nbytes = BYTES};
    crn_fault fault = {CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 1};
    scene_init(&s, test_seed(), CRN_IO_THREADS);
    s.after = s.before;
    assert_ok(crn_draft_begin(s.part, FIRST, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    crn_fault_arm(&fault);
    int failed = 0;
    for (uint64_t i = 0; i < BYTES / BLOCK; i++)
        failed += crn_draft_put(d, v, i, data + i * BLOCK, NULL) < 0;
    crn_fault_arm(NULL);
    assert_true(failed > 0);
    assert_fails(crn_draft_commit(d, 1, NULL), CAIRN_ENOSPC, "'part'");
    must_go_on(&s);
    scene_done(&s);
    free(data);
}

/* The same when there was no memory for a variable. */
static void test_a_variable_without_memory_cannot_be_committed(void **state)
{
    (void)state;
    cairn_status rc = CAIRN_ENOMEM;
    for (uint64_t n = 1; rc < 0; n++) {
        scene s;
        crn_draft *d;
        size_t v;
        crn_var_spec spec = {
            .name = "late", .type = "bytes", .item = 1, .block = 1024, .nbytes = 5000};
        scene_init(&s, test_seed(), CRN_IO_THREADS);
        s.after = s.before;
        assert_ok(crn_draft_begin(s.part, FIRST, &d));
        crn_mem_fail_at(n);
        rc = crn_draft_add(d, &spec, &v);
        crn_mem_fail_at(0);
        crn_draft_stats stats;
        cairn_status committed = rc < 0 ? crn_draft_commit(d, 2, &stats) : CAIRN_OK;
        if (rc == CAIRN_OK) {
            crn_draft_drop(d);
        } else if (committed == CAIRN_OK) {
            assert_int_equal(stats.blocks, 0); /* it was as if it had never been added */
            assert_ok(crn_part_rewind(s.part, FIRST - 1));
            s.before = s.after = list_of_part(s.part);
        } else {
            assert_int_equal(committed, CAIRN_ENOMEM);
        }
        must_go_on(&s);
        scene_done(&s);
    }
}

/* --- a run ---------------------------------------------------------------------------------- */

static cairn_status commit_run(crn_run *run, uint64_t version)
{
    crn_manifest_mark k = {.version = version, .nranks = 1, .series = 1, .levels = CRN_IN_TRAIL};
    return crn_run_commit(run, &k, 2);
}

/* From nothing to a run with two marks, giving up at the first failure. */
static cairn_status make_run(const char *path, const crn_part_options *opt, model *m)
{
    crn_trail *t = NULL;
    crn_run *run = NULL;
    crn_part *part = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_trail_open(path, true, &t));
    rc = crn_run_open(t, "r", true, &run);
    if (rc == CAIRN_ENOTFOUND)
        rc = crn_run_create(t, "r", &run);
    if (rc < 0)
        goto out;
    CRN_TRY_OUT(rc, crn_run_part(run, 1, 0, 1, true, opt, &part));
    CRN_TRY_OUT(rc, crn_part_rewind(part, 0));
    for (uint64_t version = 1; version <= 2; version++) {
        CRN_TRY_OUT(rc, model_mark(m, part, version, 2, NULL));
        CRN_TRY_OUT(rc, commit_run(run, version));
    }
out:
    crn_part_close(part);
    crn_run_close(run);
    crn_trail_close(t);
    return rc;
}

static bool strike_run(crn_fault fault)
{
    const crn_part_options opt = {CRN_IO_THREADS, 2, false};
    char path[96];
    model m;
    crn_err err;
    model_init(&m, test_seed(), 3000);
    model_step(&m);
    snprintf(path, sizeof path, "%s/t", scratch);
    snprintf(where, sizeof where, "fault %d:%llu:%d", (int)fault.where,
             (unsigned long long)fault.at, (int)fault.how);
    crn_fault_arm(&fault);
    cairn_status rc = make_run(path, &opt, &m);
    bool struck = crn_fault_seen() >= fault.at;
    crn_err_take(&err);
    crn_fault_arm(NULL);
    if (rc < 0) {
        assert_true(struck && (rc == CAIRN_ENOSPC || rc == CAIRN_EIO));
        assert_true(strlen(err.text) > 0);
        must(make_run(path, &opt, &m)); /* and once there is room, all of it */
    }
    remove_tree(path);
    model_done(&m);
    return struck;
}

static void test_every_operation_of_a_run_fails(void **state)
{
    (void)state;
    const crn_fault faults[] = {{CRN_FAULT_ANY, CRN_FAULT_EIO, 1, 1},
                                {CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 1},
                                {CRN_FAULT_WRITE, CRN_FAULT_TORN, 1, 1},
                                {CRN_FAULT_RENAME, CRN_FAULT_ENOSPC, 1, 0}};
    uint64_t n = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        crn_fault fault = faults[i];
        while (strike_run(fault))
            fault.at++;
        n += fault.at - 1;
    }
    print_message("%llu faults of the disk under a run\n", (unsigned long long)n);
}

/* --- a disk that is really full --------------------------------------------------------------- */

enum { CANNOT_MOUNT = 77, DISK_BYTES = 512 << 10 };

/* A small file system of our own at path, gone with the process. */
static bool mount_small(const char *path)
{
    char how[32];
    snprintf(how, sizeof how, "size=%d", DISK_BYTES);
    if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("small", path, "tmpfs", 0, how) == 0;
}

/* Marks until nothing fits; then room is made. Returns the line that is wrong, or 0. */
static int fill_up(const char *path)
{
    const crn_part_options opt = {CRN_IO_AUTO, 4, true};
    static unsigned char filler[DISK_BYTES / 2];
    model m;
    crn_part *part;
    cairn_status rc = CAIRN_OK;
    uint64_t version = 0;
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || crn_file_replace(fd, "filler", filler, sizeof filler) < 0 ||
        crn_part_create(fd, "part", &model_id, &opt, &part) < 0)
        return __LINE__;
    model_init(&m, test_seed(), 20000);
    while (rc == CAIRN_OK && version < MODEL_MARKS - 2) {
        model_step(&m);
        rc = model_mark(&m, part, ++version, CRN_KEEP_ALL, NULL);
    }
    if (rc != CAIRN_ENOSPC || version < 2)
        return __LINE__;
    for (uint64_t v = 1; v < version; v++)
        if (model_check(&m, part, v) < 0)
            return __LINE__;
    if (model_mark(&m, part, version, CRN_KEEP_ALL, NULL) != CAIRN_ENOSPC)
        return __LINE__;
    if (unlinkat(fd, "filler", 0) < 0 || model_mark(&m, part, version, CRN_KEEP_ALL, NULL) < 0)
        return __LINE__;
    crn_part_close(part);
    if (crn_part_open(fd, "part", &model_id, true, &opt, &part) < 0)
        return __LINE__;
    for (uint64_t v = 1; v <= version; v++)
        if (model_check(&m, part, v) < 0)
            return __LINE__;
    crn_part_close(part);
    model_done(&m);
    close(fd);
    return 0;
}

static void test_full_file_system(void **state)
{
    (void)state;
    char path[96];
    int status;
    snprintf(path, sizeof path, "%s/small", scratch);
    assert_int_equal(mkdir(path, 0700), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int line = mount_small(path) ? fill_up(path) : CANNOT_MOUNT;
        if (line > CANNOT_MOUNT)
            fprintf(stderr, "line %d: %s\n", line, crn_err_peek()->text);
        _exit(line > CANNOT_MOUNT ? 1 : line);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT_MOUNT) {
        print_message("SKIPPED: this user may not mount a small file system, so none was filled\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_fails),
        cmocka_unit_test(test_full_for_long),
        cmocka_unit_test(test_every_allocation_fails),
        cmocka_unit_test(test_no_room_gives_the_end_back),
        cmocka_unit_test(test_a_failed_draft_cannot_be_committed),
        cmocka_unit_test(test_a_variable_without_memory_cannot_be_committed),
        cmocka_unit_test(test_every_operation_of_a_run_fails),
        cmocka_unit_test(test_full_file_system),
    };
    return cmocka_run_group_tests_name("noroom", tests, setup, teardown);
}
