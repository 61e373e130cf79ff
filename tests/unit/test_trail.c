/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trails, runs and manifests, and the public calls that look into them.
 *
 * NEEDS: hdf5
 */
#include "harness/small_trail.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <mpi.h>

#include "io/io_fault.h"

#include <cairn/compare.h>
#include <cairn/exchange.h>
#include <cairn/trail.h>

static char scratch[64];

static int setup(void **state)
{
    (void)state;
    make_scratch(scratch, sizeof scratch, "trail");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_tree(scratch);
    return 0;
}

static void in_scratch(char path[128], const char *name)
{
    snprintf(path, 128, "%s/%s", scratch, name);
}

static void overwrite(const char *dir, const char *name, off_t at, char byte)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void test_look_into_a_trail(void **state)
{
    (void)state;
    char path[128];
    cairn_trail *t;
    in_scratch(path, "look");
    assert_ok(small_trail(path, NULL, 3, 4, 2));
    assert_ok(small_trail(path, NULL, 1, 1, 2));
    assert_ok(cairn_trail_open(path, &t));
    assert_int_equal(cairn_trail_nruns(t), 2);
    cairn_run_info run = {.struct_bytes = sizeof run};
    assert_ok(cairn_trail_run(t, 0, &run));
    assert_string_equal(run.name, "run-1");
    assert_int_equal(run.nmarks, 2);
    assert_false(run.rebuilt);
    cairn_mark_info mark = {.struct_bytes = sizeof mark};
    assert_ok(cairn_trail_mark(t, 0, 1, &mark));
    assert_int_equal(mark.version, 40);
    assert_int_equal(mark.nranks, 3);
    cairn_variable_info var = {.struct_bytes = sizeof var};
    assert_ok(cairn_trail_variable(t, 0, 1, 2, 0, &var));
    assert_string_equal(var.name, "temperature");
    assert_string_equal(var.type, "float64");
    assert_int_equal(var.nblocks, 8);
    assert_int_equal(var.nchanged, 2); /* the one of mark 3 goes back, the one of mark 4 comes */
    assert_int_equal(var.global[0], 3 * SMALL_CELLS);
    assert_int_equal(var.offset[0], 2 * SMALL_CELLS);
    double field[SMALL_CELLS];
    assert_ok(cairn_trail_read(t, 0, 1, 2, "temperature", field, sizeof field));
    for (uint64_t i = 0; i < SMALL_CELLS; i++)
        assert_true(field[i] == small_value(2, 4, i));
    assert_fails(cairn_trail_read(t, 0, 1, 2, "pressure", field, sizeof field), CAIRN_ENOTFOUND,
                 "no variable 'pressure'");
    assert_fails(cairn_trail_read(t, 0, 1, 2, "step", field, 4), CAIRN_EMISMATCH, "8 bytes");
    assert_fails(cairn_trail_mark(t, 0, 2, &mark), CAIRN_EINVAL, "2 marks");
    assert_ok(cairn_trail_verify(t, 0, CAIRN_ALL_MARKS, NULL, NULL));
    cairn_trail_close(t);
}

typedef struct found {
    int n;
    uint32_t rank;
    uint64_t block, done, total;
    char variable[32];
} found;

static int note(void *arg, const cairn_finding *f)
{
    found *to = arg;
    to->done = f->done_bytes;
    to->total = f->total_bytes;
    if (f->status == CAIRN_OK)
        return 0;
    to->n++;
    to->rank = f->rank;
    to->block = f->block;
    snprintf(to->variable, sizeof to->variable, "%s", f->variable ? f->variable : "");
    return 0;
}

static void test_verify_names_variable_and_block(void **state)
{
    (void)state;
    char path[128];
    cairn_trail *t;
    found f = {0};
    in_scratch(path, "verify");
    assert_ok(small_trail(path, "r", 2, 1, 1));
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_verify(t, 0, CAIRN_ALL_MARKS, note, &f));
    assert_int_equal(f.n, 0);
    assert_true(f.done == f.total && f.total == 2 * (SMALL_CELLS * 8 + 8));
    cairn_trail_close(t);
    overwrite(path, "r/series-1/000/part-000001", 8192 + 3 * SMALL_BLOCK + 17, 1);
    assert_ok(cairn_trail_open(path, &t));
    assert_int_equal(cairn_trail_verify(t, 0, CAIRN_ALL_MARKS, note, &f), CAIRN_ECORRUPT);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.rank, 1);
    assert_int_equal(f.block, 3);
    assert_string_equal(f.variable, "temperature");
    cairn_trail_close(t);
}

typedef struct meanwhile {
    const char *path;
    uint64_t mark; /* the next to be written, by the first call only */
    found f;
} meanwhile;

static int write_meanwhile(void *arg, const cairn_finding *f)
{
    meanwhile *w = arg;
    if (w->mark > 0)
        assert_ok(small_trail_more(w->path, "r", 1, w->mark));
    w->mark = 0;
    return note(&w->f, f);
}

static void test_marks_dropped_during_a_verification_are_no_damage(void **state)
{
    (void)state;
    char path[128];
    cairn_trail *t;
    in_scratch(path, "meanwhile");
    assert_ok(small_trail(path, "r", 1, 3, 3));
    meanwhile w = {.path = path, .mark = 4};
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_verify(t, 0, CAIRN_ALL_MARKS, write_meanwhile, &w));
    assert_int_equal(w.f.n, 0);
    cairn_trail_close(t);
    assert_ok(cairn_trail_open(path, &t)); /* all that it lists is dropped before it looks */
    assert_ok(small_trail_more(path, "r", 1, 6));
    assert_ok(cairn_trail_verify(t, 0, CAIRN_ALL_MARKS, note, &w.f));
    assert_int_equal(w.f.n, 0);
    cairn_trail_close(t);
}

typedef struct moment {
    const char *path;
    uint64_t mark; /* the next to be written */
    char said[256];
} moment;

static int write_at_once(void *arg, uint64_t done_bytes, uint64_t total_bytes)
{
    moment *m = arg;
    (void)done_bytes, (void)total_bytes;
    if (m->mark > 0)
        assert_ok(small_trail_more(m->path, "r", 2, m->mark));
    m->mark = 0;
    return 0;
}

static void test_marks_dropped_during_an_export_are_no_damage(void **state)
{
    (void)state;
    char path[128], file[128];
    in_scratch(path, "exported");
    in_scratch(file, "exported.h5");
    assert_ok(small_trail(path, "r", 2, 3, 1));
    moment m = {path, 4, ""};
    cairn_export_options what = {.struct_bytes = sizeof what,
                                 .trail = path,
                                 .run = "r",
                                 .version = 30,
                                 .path = file,
                                 .progress = write_at_once,
                                 .arg = &m};
    assert_fails(cairn_export(&what, NULL), CAIRN_ENOTFOUND,
                 "mark 30 of run 'r' went while it was read");
    assert_int_equal(access(file, F_OK), -1);
    assert_fails(cairn_export(&what, NULL), CAIRN_ENOTFOUND, "run 'r' has no mark 30; 'cairn ls'");
    what.version = 50;
    assert_ok(cairn_export(&what, NULL));
}

static void write_beside(void *arg, uint64_t done_bytes, uint64_t total_bytes)
{
    (void)write_at_once(arg, done_bytes, total_bytes);
}

static int keep_untold(void *arg, const cairn_comparison_row *row)
{
    if (row->verdict == CAIRN_INCONCLUSIVE)
        snprintf(((moment *)arg)->said, sizeof((moment *)arg)->said, "%s", row->text);
    return 0;
}

static void test_marks_dropped_during_a_comparison_are_no_damage(void **state)
{
    (void)state;
    char path[128], other[128];
    in_scratch(path, "compared");
    in_scratch(other, "other");
    assert_ok(small_trail(path, "r", 2, 3, 1));
    assert_ok(small_trail(other, "r", 2, 3, 1));
    moment m = {path, 4, ""};
    cairn_comparison_options how = {.struct_bytes = sizeof how,
                                    .direct = true,
                                    .nthreads = 1,
                                    .progress = write_beside,
                                    .row = keep_untold,
                                    .arg = &m};
    cairn_comparison result = {.struct_bytes = sizeof result};
    assert_ok(cairn_compare(MPI_COMM_SELF, path, other, &how, &result));
    assert_int_equal(result.verdict, CAIRN_INCONCLUSIVE);
    assert_non_null(strstr(m.said, "went while it was read"));
}

static void test_verify_goes_on_behind_what_cannot_be_read(void **state)
{
    (void)state;
    char path[128], file[160];
    cairn_trail *t;
    found f = {0};
    in_scratch(path, "unreadable");
    assert_ok(small_trail(path, "r", 3, 1, 1));
    snprintf(file, sizeof file, "%s/r/series-1/000/part-000000", path);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkfifo(file, 0600), 0);
    assert_ok(cairn_trail_open(path, &t));
    assert_fails(cairn_trail_verify(t, 0, 0, note, &f), CAIRN_EIO, "not a regular file");
    assert_int_equal(f.n, 1);
    assert_int_equal(f.rank, 0);
    cairn_trail_close(t);
    overwrite(path, "r/series-1/000/part-000002", 8192 + 3 * SMALL_BLOCK + 17, 1);
    assert_ok(cairn_trail_open(path, &t));
    assert_int_equal(cairn_trail_verify(t, 0, 0, note, &f), CAIRN_ECORRUPT);
    assert_int_equal(f.n, 3);
    assert_int_equal(f.rank, 2);
    cairn_trail_close(t);
}

static void test_lost_manifest_is_rebuilt(void **state)
{
    (void)state;
    char path[128], file[160];
    cairn_trail *t;
    cairn_run_info run = {.struct_bytes = sizeof run};
    cairn_mark_info mark = {.struct_bytes = sizeof mark};
    in_scratch(path, "rebuild");
    assert_ok(small_trail(path, "r", 3, 3, 2));
    for (int damage = 0; damage < 2; damage++) {
        snprintf(file, sizeof file, "%s/r/manifest", path);
        if (damage == 0)
            overwrite(path, "r/manifest", 60, 99);
        else
            assert_int_equal(unlink(file), 0);
        assert_ok(cairn_trail_open(path, &t));
        assert_ok(cairn_trail_run(t, 0, &run));
        assert_true(run.rebuilt);
        assert_int_equal(run.nmarks, 2);
        assert_ok(cairn_trail_mark(t, 0, 1, &mark));
        assert_int_equal(mark.version, 30);
        assert_int_equal(mark.nbytes, 3 * (SMALL_CELLS * 8 + 8));
        assert_ok(cairn_trail_verify(t, 0, CAIRN_ALL_MARKS, NULL, NULL));
        cairn_trail_close(t);
    }
    /* without a part and without a manifest nothing is left to tell by */
    snprintf(file, sizeof file, "%s/r/series-1/000/part-000001", path);
    assert_int_equal(unlink(file), 0);
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_run(t, 0, &run));
    assert_int_equal(run.nmarks, 0);
    cairn_trail_close(t);
}

/* A passing error: who looks sees what parts tell, who writes leaves the manifest as it is. */
static void test_unreadable_manifest_is_not_replaced(void **state)
{
    (void)state;
    char path[128];
    crn_trail *t;
    crn_run *run;
    const crn_fault passing = {CRN_FAULT_READ, CRN_FAULT_EIO, 1, 1};
    in_scratch(path, "passing");
    assert_ok(small_trail(path, "r", 1, 1, 1));
    assert_ok(crn_trail_open(path, false, &t));
    for (int write = 0; write < 2; write++) {
        crn_fault_arm(&passing);
        cairn_status rc = crn_run_open(t, "r", write, &run);
        crn_fault_arm(NULL);
        assert_int_equal(rc, write ? CAIRN_EIO : CAIRN_OK);
        if (write)
            assert_non_null(strstr(crn_err_peek()->text, "run 'r': cannot read"));
        else
            crn_run_close(run);
    }
    assert_ok(crn_run_open(t, "r", true, &run));
    assert_false(crn_run_was_rebuilt(run));
    crn_run_close(run);
    crn_trail_close(t);
}

static void test_run_without_its_first_series_is_seen(void **state)
{
    (void)state;
    char path[128], from[160], to[160];
    cairn_trail *t;
    cairn_run_info run = {.struct_bytes = sizeof run};
    in_scratch(path, "series");
    assert_ok(small_trail(path, "r", 1, 1, 1));
    snprintf(from, sizeof from, "%s/r/series-1", path);
    snprintf(to, sizeof to, "%s/r/series-2", path);
    assert_int_equal(rename(from, to), 0);
    snprintf(to, sizeof to, "%s/r/manifest", path);
    assert_int_equal(unlink(to), 0);
    assert_ok(cairn_trail_open(path, &t));
    assert_int_equal(cairn_trail_nruns(t), 1);
    assert_ok(cairn_trail_run(t, 0, &run));
    assert_true(run.rebuilt);
    cairn_trail_close(t);
}

static void test_run_that_cannot_be_looked_into_is_seen(void **state)
{
    (void)state;
    char path[128], link[160];
    cairn_trail *t;
    cairn_run_info run = {.struct_bytes = sizeof run};
    in_scratch(path, "loop"); /* as without permission, but for root, too */
    assert_ok(small_trail(path, "r", 1, 1, 1));
    snprintf(link, sizeof link, "%s/s", path);
    assert_int_equal(symlink("s", link), 0);
    assert_ok(cairn_trail_open(path, &t));
    assert_int_equal(cairn_trail_nruns(t), 2);
    assert_fails(cairn_trail_run(t, 1, &run), CAIRN_EIO, "'s' is not a directory");
    cairn_trail_close(t);
}

static void test_swapped_parts_are_noticed(void **state)
{
    (void)state;
    char path[128], a[160], b[160], c[160];
    cairn_trail *t;
    cairn_part_info part = {.struct_bytes = sizeof part};
    in_scratch(path, "swap");
    assert_ok(small_trail(path, "r", 2, 1, 1));
    snprintf(a, sizeof a, "%s/r/series-1/000/part-000000", path);
    snprintf(b, sizeof b, "%s/r/series-1/000/part-000001", path);
    snprintf(c, sizeof c, "%s/c", path);
    assert_true(rename(a, c) == 0 && rename(b, a) == 0 && rename(c, b) == 0);
    assert_ok(cairn_trail_open(path, &t));
    assert_fails(cairn_trail_part(t, 0, 0, 0, &part), CAIRN_EMISMATCH,
                 "is the part of rank 1 of 2, series 1, not of rank 0");
    assert_int_equal(cairn_trail_verify(t, 0, 0, NULL, NULL), CAIRN_ECORRUPT);
    cairn_trail_close(t);
}

static void test_what_is_no_trail_is_refused(void **state)
{
    (void)state;
    char path[128];
    cairn_trail *t;
    crn_trail *w;
    crn_run *run;
    assert_fails(cairn_trail_open("nowhere", &t), CAIRN_ENOTFOUND, "nowhere");
    assert_fails(cairn_trail_open(scratch, &t), CAIRN_ENOTFOUND, "is not a trail");
    in_scratch(path, "names");
    assert_ok(crn_trail_open(path, true, &w));
    assert_fails(crn_run_create(w, "../up", &run), CAIRN_EINVAL, "cannot name a run");
    assert_fails(crn_run_create(w, ".hidden", &run), CAIRN_EINVAL, "cannot name a run");
    assert_fails(crn_run_open(w, "absent", false, &run), CAIRN_ENOTFOUND, "has no run 'absent'");
    crn_trail_close(w);
    overwrite(path, "trail", 12, '2');
    assert_fails(cairn_trail_open(path, &t), CAIRN_EUNSUPPORTED, "newer format");
}

/* Whatever bit of the file 'trail' flips, and if it is lost, a trail with a run is one; who writes
 * to it mends the file. */
static void test_damaged_marker_is_rebuilt(void **state)
{
    static const char text[] = "cairn trail 1\n";
    char path[128], file[160];
    crn_trail *t;
    void *back;
    size_t n;
    (void)state;
    in_scratch(path, "marker");
    assert_ok(small_trail(path, NULL, 1, 1, 1));
    snprintf(file, sizeof file, "%s/trail", path);
    for (size_t bit = 0; bit <= 8 * strlen(text); bit++) {
        if (bit == 8 * strlen(text))
            assert_int_equal(unlink(file), 0);
        else
            overwrite(path, "trail", (off_t)(bit / 8), (char)(text[bit / 8] ^ 1 << bit % 8));
        assert_ok(crn_trail_open(path, false, &t));
        crn_trail_close(t);
        assert_ok(crn_trail_open(path, true, &t));
        crn_trail_close(t);
        assert_ok(crn_file_slurp(AT_FDCWD, file, 100, &back, &n));
        assert_string_equal(back, text);
        free(back);
    }
}

/* Many programs that begin on a new trail at once. */
static void test_trail_is_made_by_many(void **state)
{
    enum { NPROGRAMS = 12, NTIMES = 10 };
    (void)state;
    for (int k = 0; k < NTIMES; k++) {
        char path[128], name[16];
        int status;
        snprintf(name, sizeof name, "many-%d", k);
        in_scratch(path, name);
        fflush(NULL);
        for (int i = 0; i < NPROGRAMS; i++) {
            if (fork() == 0) {
                crn_trail *t;
                _exit(crn_trail_open(path, true, &t) == CAIRN_OK ? 0 : 1);
            }
        }
        for (int i = 0; i < NPROGRAMS; i++) {
            assert_true(wait(&status) > 0);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
    }
}

static void test_run_lock_names_its_holder_and_dies_with_it(void **state)
{
    (void)state;
    char path[128], who[64];
    int pipes[2];
    crn_trail *t;
    crn_run *run;
    in_scratch(path, "lock");
    assert_ok(small_trail(path, "r", 1, 1, 1));
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        bool held = crn_trail_open(path, false, &t) == CAIRN_OK &&
                    crn_run_open(t, "r", true, &run) == CAIRN_OK;
        if (write(pipes[1], held ? "y" : "n", 1) == 1)
            pause();
        _exit(1);
    }
    char held;
    assert_int_equal(read(pipes[0], &held, 1), 1);
    assert_int_equal(held, 'y');
    assert_ok(crn_trail_open(path, false, &t));
    snprintf(who, sizeof who, "run 'r' is being written by process %ld on", (long)child);
    assert_fails(crn_run_open(t, "r", true, &run), CAIRN_EBUSY, who);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_ok(crn_run_open(t, "r", true, &run)); /* the leftover of a dead process holds nothing */
    crn_run_close(run);
    crn_trail_close(t);
    close(pipes[0]);
    close(pipes[1]);
}

static size_t count_runs(crn_trail *t)
{
    char **names;
    size_t n;
    assert_ok(crn_trail_runs(t, &names, &n));
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return n;
}

static size_t count_entries(const char *path)
{
    char **names;
    size_t n;
    int fd;
    assert_ok(crn_dir_open_path(path, false, &fd));
    assert_ok(crn_dir_list(fd, &names, &n));
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    close(fd);
    return n;
}

static void test_run_is_seen_when_it_is_presented(void **state)
{
    (void)state;
    char path[128], remains[160];
    crn_trail *t;
    crn_run *one, *other, *taken, *again;
    in_scratch(path, "hidden");
    assert_ok(crn_trail_open(path, true, &t));
    assert_ok(crn_run_prepare(t, NULL, &one));
    assert_ok(crn_run_prepare(t, "name", &other)); /* the first one is in use */
    assert_int_equal(count_runs(t), 0);
    assert_ok(crn_run_create(t, NULL, &taken)); /* by somebody else meanwhile */
    assert_string_equal(crn_run_name(taken), "run-1");
    assert_ok(crn_run_present(t, one, NULL));
    assert_string_equal(crn_run_name(one), "run-2");
    assert_int_equal(count_runs(t), 2);
    assert_fails(crn_run_open(t, "run-2", true, &again), CAIRN_EBUSY, "is being written");
    crn_run_close(taken);
    crn_run_withdraw(t, one); /* it was seen: it stays */
    assert_fails(crn_run_present(t, other, "run-2"), CAIRN_EBUSY, "already has a run 'run-2'");
    snprintf(remains, sizeof remains, "%s/name", path); /* as of a program that was killed */
    assert_int_equal(mkdir(remains, 0700), 0);
    assert_ok(crn_run_present(t, other, "name"));
    crn_run_withdraw(t, other);
    assert_int_equal(count_runs(t), 3);
    assert_int_equal(count_entries(path), 3 + 2); /* "trail" and "lock" */
    crn_trail_close(t);
}

static void test_run_that_was_never_presented_is_swept(void **state)
{
    (void)state;
    char path[128];
    crn_trail *t;
    crn_run *run, *left;
    in_scratch(path, "swept");
    assert_ok(crn_trail_open(path, true, &t));
    assert_ok(crn_run_prepare(t, NULL, &left));
    crn_run_close(left); /* as when its process is killed: the lock ends, and the files stay */
    assert_int_equal(count_entries(path), 1 + 2);
    assert_ok(crn_run_prepare(t, NULL, &run));
    assert_int_equal(count_entries(path), 1 + 2);
    crn_run_withdraw(t, run);
    assert_int_equal(count_entries(path), 2);
    crn_run_withdraw(t, NULL);
    crn_trail_close(t);
}

static void test_manifest_survives_no_damage_unnoticed(void **state)
{
    (void)state;
    crn_manifest m = {.seq = 7}, back;
    crn_buf buf = {0};
    for (uint64_t i = 0; i < 3; i++)
        assert_ok(crn_vec_push(&m.mark, (crn_manifest_mark){.version = i, .nranks = 2}));
    crn_manifest_put(&m, &buf);
    assert_ok(crn_buf_status(&buf));
    assert_ok(crn_manifest_parse(buf.at, buf.n, &back));
    assert_int_equal(back.mark.n, 3);
    assert_int_equal(back.mark.at[2].version, 2);
    crn_manifest_done(&back);
    for (size_t n = 0; n < buf.n; n++)
        assert_true(crn_manifest_parse(buf.at, n, &back) < 0);
    for (size_t bit = 0; bit < 8 * buf.n; bit++) {
        buf.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(crn_manifest_parse(buf.at, buf.n, &back) < 0);
        buf.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    crn_buf_done(&buf);
    crn_manifest_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_look_into_a_trail),
        cmocka_unit_test(test_verify_names_variable_and_block),
        cmocka_unit_test(test_marks_dropped_during_a_verification_are_no_damage),
        cmocka_unit_test(test_marks_dropped_during_an_export_are_no_damage),
        cmocka_unit_test(test_marks_dropped_during_a_comparison_are_no_damage),
        cmocka_unit_test(test_verify_goes_on_behind_what_cannot_be_read),
        cmocka_unit_test(test_lost_manifest_is_rebuilt),
        cmocka_unit_test(test_unreadable_manifest_is_not_replaced),
        cmocka_unit_test(test_run_without_its_first_series_is_seen),
        cmocka_unit_test(test_run_that_cannot_be_looked_into_is_seen),
        cmocka_unit_test(test_swapped_parts_are_noticed),
        cmocka_unit_test(test_what_is_no_trail_is_refused),
        cmocka_unit_test(test_damaged_marker_is_rebuilt),
        cmocka_unit_test(test_trail_is_made_by_many),
        cmocka_unit_test(test_run_lock_names_its_holder_and_dies_with_it),
        cmocka_unit_test(test_run_is_seen_when_it_is_presented),
        cmocka_unit_test(test_run_that_was_never_presented_is_swept),
        cmocka_unit_test(test_manifest_survives_no_damage_unnoticed),
    };
    return cmocka_run_group_tests_name("trail", tests, setup, teardown);
}
