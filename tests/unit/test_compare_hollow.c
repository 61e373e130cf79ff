/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HDF5 datasets that claim more than was ever written to them, or than any disk has: compared by
 * what HDF5 shows of such values, in no time, or refused with a sentence.
 *
 * NEEDS: hdf5
 */
#include "harness/hdf5_extra.h"

#include <cairn/compare.h>

static const hsize_t exa = (hsize_t)1 << 57; /* doubles: 2^60 bytes */

/* How a dataset of doubles is made. */
typedef struct kind {
    hsize_t n, chunk; /* chunk 0: contiguous */
    double fill;
    H5D_fill_time_t time;
    const double *data; /* that is written, */
    hsize_t from, some; /* so many from here on */
} kind;

typedef struct world {
    char dir[64], path[2][96];
    const crn_h5 *h5; /* while files are made: locked */
    void *library;
} world;

static void begin(world *w)
{
    make_scratch(w->dir, sizeof w->dir, "hollow");
    for (int k = 0; k < 2; k++)
        snprintf(w->path[k], sizeof w->path[k], "%s/%c.h5", w->dir, "ab"[k]);
    assert_ok(crn_hdf5_lock(&w->h5));
    w->library = hdf5_library();
    crn_hdf5_unlock();
}

static void end(world *w)
{
    dlclose(w->library);
    remove_tree(w->dir);
}

static void add(const world *w, hid_t file, const char *name, const kind *k)
{
    const crn_h5 *h5 = w->h5;
    const hid_t type = h5->H5T_NATIVE_DOUBLE_g;
    hid_t plist = h5->H5Pcreate(h5->H5P_CLS_DATASET_CREATE_ID_g);
    if (k->chunk > 0)
        assert_true(EXTRA(w, H5Pset_chunk)(plist, 1, &k->chunk) >= 0);
    if (k->time == H5D_FILL_TIME_NEVER)
        h5->H5Pset_fill_time(plist, k->time);
    else
        assert_true(EXTRA(w, H5Pset_fill_value)(plist, type, &k->fill) >= 0);
    hid_t space = h5->H5Screate_simple(1, &k->n, NULL);
    hid_t set = h5->H5Dcreate2(file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    assert_true(set >= 0);
    if (k->some > 0) {
        hid_t memory = h5->H5Screate_simple(1, &k->some, NULL);
        h5->H5Sselect_hyperslab(space, H5S_SELECT_SET, &k->from, NULL, &k->some, NULL);
        assert_true(h5->H5Dwrite(set, type, memory, space, H5P_DEFAULT, k->data) >= 0);
        h5->H5Sclose(memory);
    }
    h5->H5Dclose(set);
    h5->H5Sclose(space);
    h5->H5Pclose(plist);
}

static int keep_row(void *arg, const cairn_comparison_row *row)
{
    cairn_comparison_row *last = arg;
    *last = *row;
    return 0;
}

/* Compare two files that have such a dataset each, behind one that fills memory with junk. */
static cairn_verdict compare(world *w, const char *bound, const kind *a, const kind *b,
                             cairn_comparison_row *ret, cairn_comparison *sum)
{
    static double junk[4096];
    const kind *const kinds[2] = {a, b};
    const kind full = {.n = 4096, .chunk = 1024, .data = junk, .some = 4096};
    const cairn_comparison_options how = {
        .struct_bytes = sizeof how, .bound = bound, .nthreads = 1, .row = keep_row, .arg = ret};
    for (int i = 0; i < 4096; i++)
        junk[i] = 77;
    *sum = (cairn_comparison){.struct_bytes = sizeof *sum};
    assert_ok(crn_hdf5_lock(&w->h5));
    for (int k = 0; k < 2; k++) {
        hid_t file = w->h5->H5Fcreate(w->path[k], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        add(w, file, "junk", &full);
        add(w, file, "x", kinds[k]);
        assert_true(w->h5->H5Fclose(file) >= 0);
    }
    crn_hdf5_unlock();
    assert_ok(cairn_compare_files(MPI_COMM_SELF, w->path[0], w->path[1], &how, sum));
    return sum->verdict;
}

static void test_nothing_was_written(void **state)
{
    (void)state;
    world w;
    cairn_comparison_row row;
    cairn_comparison sum;
    const kind chunked = {.n = exa, .chunk = 1024, .fill = 3}, flat = {.n = exa, .fill = 3};
    const kind near = {.n = exa, .chunk = 64, .fill = 3 + 1e-9},
               never = {.n = exa, .chunk = 64, .time = H5D_FILL_TIME_NEVER};
    begin(&w);
    assert_int_equal(compare(&w, NULL, &chunked, &flat, &row, &sum), CAIRN_SAME);
    assert_true(row.nvalues == exa && row.read_bytes == 0);
    assert_int_equal(compare(&w, "1e-6", &flat, &near, &row, &sum), CAIRN_SAME);
    assert_int_equal(compare(&w, NULL, &never, &never, &row, &sum), CAIRN_SAME);
    assert_int_equal(compare(&w, NULL, &chunked, &near, &row, &sum), CAIRN_DIFFERENT);
    assert_true(row.ndiffering == exa && row.low[0] == 0 && row.high[0] == exa - 1);
    assert_true(row.max == 3 + 1e-9 - 3 && row.rms > 0.999e-9 && row.rms < 1.001e-9);
    assert_string_equal(row.first, "3");
    end(&w);
}

static void test_little_was_written(void **state)
{
    (void)state;
    world w;
    cairn_comparison_row row;
    cairn_comparison sum;
    const double one = 1;
    const kind none = {.n = exa, .chunk = 1024}, flat = {.n = exa};
    const kind some = {.n = exa, .chunk = 1024, .data = &one, .from = exa / 2, .some = 1};
    begin(&w);
    assert_int_equal(compare(&w, NULL, &none, &some, &row, &sum), CAIRN_INCONCLUSIVE);
    assert_int_equal(compare(&w, NULL, &some, &flat, &row, &sum), CAIRN_INCONCLUSIVE);
    assert_int_equal(compare(&w, NULL, &some, &some, &row, &sum), CAIRN_INCONCLUSIVE);
    end(&w);
}

/* Of what can be read, values that were never written count as what HDF5 shows of them. */
static void test_some_was_written(void **state)
{
    (void)state;
    world w;
    cairn_comparison_row row;
    cairn_comparison sum;
    enum { N = 3950 }; /* the last chunk is not full */
    static double data[N];
    const kind none = {.n = N, .fill = 5}, all = {.n = N, .data = data, .some = N};
    const kind some = {.n = N, .chunk = 100, .fill = 5, .data = data, .from = 250, .some = 10};
    const kind never = {
        .n = N, .chunk = 100, .time = H5D_FILL_TIME_NEVER, .data = data, .from = 200, .some = 100};
    const kind most = {
        .n = N, .chunk = 100, .time = H5D_FILL_TIME_NEVER, .data = data, .some = N - 50};
    begin(&w);
    for (int i = 0; i < N; i++)
        data[i] = 5;
    assert_int_equal(compare(&w, NULL, &none, &all, &row, &sum), CAIRN_SAME);
    assert_int_equal(compare(&w, NULL, &all, &some, &row, &sum), CAIRN_SAME);
    assert_int_equal(compare(&w, NULL, &some, &none, &row, &sum), CAIRN_SAME);
    data[3] = 6; /* of some it is the fourth that is written */
    assert_int_equal(compare(&w, NULL, &none, &all, &row, &sum), CAIRN_DIFFERENT);
    assert_true(row.ndiffering == 1 && row.index[0] == 3 && row.max == 1);
    assert_int_equal(compare(&w, NULL, &none, &some, &row, &sum), CAIRN_DIFFERENT);
    assert_true(row.ndiffering == 1 && row.index[0] == 253);
    memset(data, 0, sizeof data);
    assert_int_equal(compare(&w, NULL, &all, &never, &row, &sum), CAIRN_SAME);
    assert_int_equal(compare(&w, NULL, &all, &most, &row, &sum), CAIRN_SAME);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_was_written),
                                       cmocka_unit_test(test_little_was_written),
                                       cmocka_unit_test(test_some_was_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
