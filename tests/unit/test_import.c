/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Marks made of HDF5 files that nobody would write by hand: claims of sizes and ranks that are not
 * true, groups that lie in themselves, rows longer than memory for them, things that are no
 * numbers.
 *
 * NEEDS: hdf5
 */
#include <pthread.h>
#include <unistd.h>

#include "harness/hdf5_extra.h"

#include "exchange/exchange.h"
#include "hdf5/hdf5.h"
#include "io/io_fault.h"

#include <cairn/exchange.h>

typedef struct world {
    char dir[64], path[96], trail[96];
    const crn_h5 *h5; /* locked while the file is made */
    hid_t file;       /* 0: it is whole */
    void *library;
    cairn_import_options how; /* of the last import */
    cairn_import_result made;
} world;

static void make_file(world *w)
{
    make_scratch(w->dir, sizeof w->dir, "import");
    snprintf(w->path, sizeof w->path, "%s/in.h5", w->dir);
    snprintf(w->trail, sizeof w->trail, "%s/trail", w->dir);
    assert_ok(crn_hdf5_lock(&w->h5));
    w->library = hdf5_library();
    w->file = w->h5->H5Fcreate(w->path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(w->file >= 0);
}

static void close_file(world *w)
{
    if (w->file <= 0)
        return;
    assert_true(w->h5->H5Fclose(w->file) >= 0);
    w->file = 0;
    crn_hdf5_unlock();
    dlclose(w->library);
}

static void remove_files(world *w)
{
    close_file(w);
    remove_tree(w->dir);
}

/* A test begins with an empty file, */
static int begin(void **state)
{
    world *w;
    assert_ok(crn_alloc(&w, 1));
    make_file(w);
    *state = w;
    return 0;
}

static int end(void **state)
{
    remove_files(*state);
    free(*state);
    return 0;
}

/* and so does each further case of it. */
static void begin_again(world *w)
{
    remove_files(w);
    make_file(w);
}

/* The file is whole: import it. */
static cairn_status import(world *w, uint32_t nranks)
{
    close_file(w);
    w->how = (cairn_import_options){
        .struct_bytes = sizeof w->how, .path = w->path, .trail = w->trail, .nranks = nranks};
    w->made = (cairn_import_result){.struct_bytes = sizeof w->made};
    return cairn_import(&w->how, &w->made);
}

static hid_t add(const world *w, const char *name, hid_t type, int ndims, const hsize_t *dims)
{
    hid_t space =
        ndims < 0 ? w->h5->H5Screate(H5S_NULL) : w->h5->H5Screate_simple(ndims, dims, NULL);
    hid_t set =
        w->h5->H5Dcreate2(w->file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    w->h5->H5Sclose(space);
    assert_true(set >= 0);
    return set;
}

/* A dataset of numbers, one after the other from first on. */
static void add_numbers(const world *w, const char *name, int ndims, const hsize_t *dims,
                        uint64_t first)
{
    uint64_t n = 1, *data;
    for (int d = 0; d < ndims; d++)
        n *= dims[d];
    assert_ok(crn_alloc(&data, n));
    for (uint64_t i = 0; i < n; i++)
        data[i] = first + i;
    hid_t type = w->h5->H5T_NATIVE_UINT64_g, set = add(w, name, type, ndims, dims);
    assert_true(w->h5->H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    w->h5->H5Dclose(set);
    free(data);
}

/* A link in group that leads to what path says, in another file (NULL: in this one). */
static void add_link(const world *w, hid_t group, const char *name, const char *file,
                     const char *path)
{
    const herr_t rc =
        file ? EXTRA(w, H5Lcreate_external)(file, path, group, name, H5P_DEFAULT, H5P_DEFAULT)
             : EXTRA(w, H5Lcreate_soft)(path, group, name, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(rc >= 0);
}

/* n numbers that are all the same */
static void add_attribute(const world *w, const char *key, hsize_t n, uint32_t number)
{
    uint32_t *value;
    assert_ok(crn_alloc(&value, n));
    for (hsize_t i = 0; i < n; i++)
        value[i] = number;
    hid_t type = w->h5->H5T_NATIVE_UINT32_g, space = w->h5->H5Screate_simple(1, &n, NULL);
    hid_t a = w->h5->H5Acreate2(w->file, key, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(w->h5->H5Awrite(a, type, value) >= 0);
    w->h5->H5Aclose(a);
    w->h5->H5Sclose(space);
    free(value);
}

/* All ranks' shares of a variable, behind each other, are the numbers from first on. */
static void check_numbers(const world *w, const char *name, uint32_t nranks, uint64_t first)
{
    const crn_part_options opt = {CRN_IO_THREADS, 2, false};
    crn_trail *trail;
    crn_run *run;
    assert_ok(crn_trail_open(w->trail, false, &trail));
    assert_ok(crn_run_open(trail, "run-1", false, &run));
    for (uint32_t rank = 0; rank < nranks; rank++) {
        crn_part *part;
        crn_mark *m;
        uint64_t *data;
        assert_ok(crn_run_part(run, 1, rank, nranks, false, &opt, &part));
        assert_ok(crn_part_load(part, 0, &m));
        crn_var *v = crn_mark_find(m, name);
        assert_non_null(v);
        assert_ok(crn_alloc(&data, v->spec.nbytes / 8));
        assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, data, NULL));
        for (uint64_t i = 0; i < v->spec.nbytes / 8; i++)
            if (data[i] != first++)
                fail_msg("'%s', rank %u, element %d", name, rank, (int)i);
        free(data);
        crn_mark_free(m);
        crn_part_close(part);
    }
    crn_run_close(run);
    crn_trail_close(trail);
}

/* --- sizes ---------------------------------------------------------------------------------- */

static void test_rows_longer_than_the_window(void **state)
{
    world *w = *state;
    const hsize_t flat[] = {2, 2500000}, deep[] = {3, 2, 1, 2200000}, small[] = {7, 3};
    add_numbers(w, "flat", 2, flat, 5);
    add_numbers(w, "deep", 4, deep, 1000);
    add_numbers(w, "small", 2, small, 0);
    assert_ok(import(w, 2));
    assert_int_equal(w->made.nvars, 3);
    check_numbers(w, "flat", 2, 5);
    check_numbers(w, "deep", 2, 1000);
    check_numbers(w, "small", 2, 0);
}

static void test_empty_arrays(void **state)
{
    world *w = *state;
    const hsize_t none[] = {0, 5}, row[] = {4, 0, 7};
    w->h5->H5Dclose(add(w, "none", w->h5->H5T_NATIVE_UINT64_g, 2, none));
    w->h5->H5Dclose(add(w, "row", w->h5->H5T_NATIVE_UINT64_g, 3, row));
    assert_ok(import(w, 3));
    assert_true(w->made.nvars == 2 && w->made.nbytes == 0);
    check_numbers(w, "row", 3, 0);
}

/* Nothing was written to them, so that such files are small. */
static void test_claims_of_huge_sizes(void **state)
{
    world *w = *state;
    const hsize_t disk[] = {UINT64_C(1) << 50}, wide[] = {UINT64_C(1) << 33, UINT64_C(1) << 33};
    w->h5->H5Dclose(add(w, "disk", w->h5->H5T_NATIVE_UINT8_g, 1, disk));
    assert_fails(import(w, 4), CAIRN_ENOSPC, "have 1.00 PiB, and there is room for");
    begin_again(w);
    hid_t properties = w->h5->H5Pcreate(w->h5->H5P_CLS_DATASET_CREATE_ID_g);
    const hsize_t chunk[] = {1, 8};
    assert_true(EXTRA(w, H5Pset_chunk)(properties, 2, chunk) >= 0);
    hid_t space = w->h5->H5Screate_simple(2, wide, NULL);
    hid_t set = w->h5->H5Dcreate2(w->file, "wide", w->h5->H5T_NATIVE_DOUBLE_g, space, H5P_DEFAULT,
                                  properties, H5P_DEFAULT);
    w->h5->H5Pclose(properties);
    w->h5->H5Sclose(space);
    if (set >= 0) { /* HDF5 may refuse it itself */
        w->h5->H5Dclose(set);
        assert_fails(import(w, 4), CAIRN_EINVAL, "dataset 'wide': it is larger than any file");
    } else {
        (void)import(w, 4);
    }
}

/* --- what is no number ---------------------------------------------------------------------- */

static void test_the_rest_is_left_out_and_counted(void **state)
{
    world *w = *state;
    const hsize_t three = 3;
    hid_t text = w->h5->H5Tcopy(w->h5->H5T_C_S1_g), opaque = w->h5->H5Tcreate(H5T_OPAQUE, 7);
    w->h5->H5Tset_size(text, 20);
    w->h5->H5Dclose(add(w, "text", text, 1, &three));
    w->h5->H5Dclose(add(w, "opaque", opaque, 1, &three));
    w->h5->H5Dclose(add(w, "nothing", w->h5->H5T_NATIVE_DOUBLE_g, -1, NULL));
    hid_t reference = *(hid_t *)hdf5_symbol(w->library, "H5T_STD_REF_OBJ_g");
    w->h5->H5Dclose(add(w, "reference", reference, 1, &three));
    w->h5->H5Tclose(text);
    w->h5->H5Tclose(opaque);
    add_numbers(w, "numbers", 1, &three, 9);
    add_link(w, w->file, "lost", NULL, "/nowhere");
    add_link(w, w->file, "other", "in.h5", "/numbers");
    assert_ok(import(w, 1));
    assert_true(w->made.nvars == 1 && w->made.nskipped == 6);
    check_numbers(w, "numbers", 1, 9);
}

/* Two links from each group to the next: as many ways as there are seconds in a long life. */
static void test_groups_in_each_other(void **state)
{
    world *w = *state;
    const hsize_t two = 2;
    add_numbers(w, "numbers", 1, &two, 1);
    hid_t outer = w->h5->H5Oopen(w->file, "/", H5P_DEFAULT);
    for (int i = 0; i < 40; i++) {
        hid_t inner = EXTRA(w, H5Gcreate2)(outer, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(inner >= 0);
        assert_true(EXTRA(w, H5Lcreate_hard)(outer, "a", outer, "b", H5P_DEFAULT, H5P_DEFAULT) >=
                    0);
        w->h5->H5Oclose(outer);
        outer = inner;
    }
    assert_true(EXTRA(w, H5Lcreate_hard)(w->file, "/", outer, "root", H5P_DEFAULT, H5P_DEFAULT) >=
                0);
    add_link(w, outer, "soft", NULL, "/a");
    w->h5->H5Oclose(outer);
    assert_ok(import(w, 1));
    assert_true(w->made.nvars == 1 && w->made.nskipped == 42);
}

/* --- ranks ---------------------------------------------------------------------------------- */

/* Several numbers where one should be, more ranks than there can be, and more than have a row. */
static void test_claims_of_ranks(void **state)
{
    world *w = *state;
    static const struct {
        hsize_t n;
        uint32_t number, nranks;
    } claim[] = {{4000, 2, 1}, {1, UINT32_MAX, 1}, {1, 0, 1}, {1, 1000000, 6}, {1, 3, 3}};
    for (size_t i = 0; i < sizeof claim / sizeof *claim; i++) {
        const hsize_t six = 6;
        begin_again(w);
        add_numbers(w, "numbers", 1, &six, 1);
        add_attribute(w, "cairn", 1, 1);
        add_attribute(w, "nranks", claim[i].n, claim[i].number);
        assert_ok(import(w, 0));
        check_numbers(w, "numbers", claim[i].nranks, 1);
    }
}

static void add_text(const world *w, hid_t on, const char *key, const char *value)
{
    hid_t text = w->h5->H5Tcopy(w->h5->H5T_C_S1_g), space = w->h5->H5Screate(H5S_SCALAR);
    w->h5->H5Tset_size(text, strlen(value) + 1);
    hid_t a = w->h5->H5Acreate2(on, key, text, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(w->h5->H5Awrite(a, text, value) >= 0);
    w->h5->H5Aclose(a);
    w->h5->H5Tclose(text);
    w->h5->H5Sclose(space);
}

/* Values that a codec has changed are not exact because they went through a file. */
static void test_what_a_codec_lost_stays_known(void **state)
{
    world *w = *state;
    const crn_part_options opt = {CRN_IO_THREADS, 2, false};
    const hsize_t six = 6;
    crn_trail *trail;
    crn_run *run;
    crn_part *part;
    crn_mark *m;
    crn_loss loss;
    add_numbers(w, "field", 1, &six, 1);
    hid_t set = w->h5->H5Oopen(w->file, "field", H5P_DEFAULT);
    add_text(w, set, "cairn_loss", "abs 1e-06 rel 0.0001");
    add_text(w, set, "cairn_layout", "global");
    w->h5->H5Oclose(set);
    assert_ok(import(w, 1));
    assert_ok(crn_trail_open(w->trail, false, &trail));
    assert_ok(crn_run_open(trail, "run-1", false, &run));
    assert_ok(crn_run_part(run, 1, 0, 1, false, &opt, &part));
    assert_ok(crn_part_load(part, 0, &m));
    assert_true(crn_var_loss(&m->var[0].spec, &loss));
    assert_true(loss.absolute == 1e-6 && loss.relative == 1e-4);
    assert_null(crn_var_attribute(&m->var[0].spec, "cairn_layout"));
    crn_mark_free(m);
    crn_part_close(part);
    crn_run_close(run);
    crn_trail_close(trail);
}

/* Six elements of two ranks, and what the file says of where each rank's begin. */
static void add_own(const world *w, const uint64_t starts[3])
{
    const hsize_t six = 6, three = 3;
    const hid_t number = w->h5->H5T_NATIVE_UINT64_g;
    add_numbers(w, "own", 1, &six, 1);
    hid_t set = w->h5->H5Oopen(w->file, "own", H5P_DEFAULT);
    add_text(w, set, "cairn_layout", "rank");
    w->h5->H5Oclose(set);
    hid_t links = w->h5->H5Pcreate(w->h5->H5P_CLS_LINK_CREATE_ID_g);
    w->h5->H5Pset_create_intermediate_group(links, 1);
    hid_t space = w->h5->H5Screate_simple(1, &three, NULL);
    set = w->h5->H5Dcreate2(w->file, "cairn/starts/own", number, space, links, H5P_DEFAULT,
                            H5P_DEFAULT);
    assert_true(w->h5->H5Dwrite(set, number, H5S_ALL, H5S_ALL, H5P_DEFAULT, starts) >= 0);
    w->h5->H5Dclose(set);
    w->h5->H5Sclose(space);
    w->h5->H5Pclose(links);
}

/* Ranks that begin behind the end, or before the one before, have no elements. */
static void test_claims_of_starts(void **state)
{
    world *w = *state;
    static const struct {
        uint64_t start[3];
        bool good;
    } claim[] = {{{0, 2, 6}, true}, {{0, 9, 6}, false}, {{0, 2, 9}, false}, {{4, 0, 6}, false}};
    for (size_t i = 0; i < sizeof claim / sizeof *claim; i++) {
        begin_again(w);
        add_attribute(w, "cairn", 1, 1);
        add_attribute(w, "nranks", 1, 2);
        add_own(w, claim[i].start);
        const cairn_status rc = import(w, 0);
        assert_int_equal(rc, claim[i].good ? CAIRN_OK : CAIRN_EMISMATCH);
        if (claim[i].good)
            check_numbers(w, "own", 2, 1);
    }
}

/* A dataset of three whose bytes lie elsewhere, as the properties say, which it takes. */
static void add_made_of(const world *w, const char *name, hid_t properties, const hsize_t *most)
{
    const hsize_t three = 3;
    hid_t space = w->h5->H5Screate_simple(1, &three, most);
    hid_t set = w->h5->H5Dcreate2(w->file, name, w->h5->H5T_NATIVE_UINT64_g, space, H5P_DEFAULT,
                                  properties, H5P_DEFAULT);
    assert_true(set >= 0);
    w->h5->H5Dclose(set);
    w->h5->H5Sclose(space);
    w->h5->H5Pclose(properties);
}

static void add_virtual(const world *w, const char *name, const char *file, const char *source)
{
    const hsize_t three = 3;
    hid_t space = w->h5->H5Screate_simple(1, &three, NULL);
    hid_t properties = w->h5->H5Pcreate(w->h5->H5P_CLS_DATASET_CREATE_ID_g);
    assert_true(w->h5->H5Pset_virtual(properties, space, file, source, space) >= 0);
    w->h5->H5Sclose(space);
    add_made_of(w, name, properties, NULL);
}

/* Of as many files as there are. */
static void add_pattern(const world *w, const char *name, const char *file, const char *source)
{
    const hsize_t three = 3, all = H5S_UNLIMITED, zero = 0;
    hid_t one = w->h5->H5Screate_simple(1, &three, NULL);
    hid_t space = w->h5->H5Screate_simple(1, &three, &all);
    w->h5->H5Sselect_hyperslab(space, H5S_SELECT_SET, &zero, &three, &all, &three);
    hid_t properties = w->h5->H5Pcreate(w->h5->H5P_CLS_DATASET_CREATE_ID_g);
    assert_true(w->h5->H5Pset_virtual(properties, space, file, source, one) >= 0);
    w->h5->H5Sclose(space);
    w->h5->H5Sclose(one);
    add_made_of(w, name, properties, &all);
}

static void add_external(const world *w, const char *name, const char *file)
{
    hid_t properties = w->h5->H5Pcreate(w->h5->H5P_CLS_DATASET_CREATE_ID_g);
    assert_true(EXTRA(w, H5Pset_external)(properties, file, 0, 24) >= 0);
    add_made_of(w, name, properties, NULL);
}

/* The world of another file in the same directory; close what it has as its file. */
static world beside(const world *w, const char *name)
{
    world other = *w;
    snprintf(other.path, sizeof other.path, "%s/%s", w->dir, name);
    other.file = w->h5->H5Fcreate(other.path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(other.file >= 0);
    return other;
}

static void test_other_files_are_not_read(void **state)
{
    world *w = *state;
    const hsize_t three = 3;
    add_external(w, "outside", "/etc/passwd");
    add_virtual(w, "absolute", "/etc/passwd", "numbers");
    add_virtual(w, "above", "../above.h5", "numbers");
    add_pattern(w, "any", "some-%b.h5", "numbers");
    add_pattern(w, "each", ".", "numbers%b");
    add_numbers(w, "numbers", 1, &three, 9);
    assert_ok(import(w, 1));
    assert_int_equal(w->made.nvars, 1);
    assert_int_equal(w->made.nskipped, 5);
}

/* What is near leads elsewhere itself: by its own data, by a map of its own, by a link. */
static void test_other_files_are_not_read_by_detours(void **state)
{
    world *w = *state;
    const hsize_t three = 3;
    world b = beside(w, "b.h5");
    add_external(&b, "outside", "/etc/passwd");
    add_virtual(&b, "again", ".", "outside");
    add_virtual(&b, "above", "../above.h5", "numbers");
    world c = beside(w, "c.h5");
    add_numbers(&c, "numbers", 1, &three, 1);
    add_link(w, b.file, "link", "c.h5", "/numbers");
    add_link(w, w->file, "other", "c.h5", "/");
    add_link(w, w->file, "soft", NULL, "/other/numbers");
    w->h5->H5Fclose(b.file);
    w->h5->H5Fclose(c.file);
    add_virtual(w, "x1", "b.h5", "outside");
    add_virtual(w, "x2", "b.h5", "again");
    add_virtual(w, "x3", "b.h5", "above");
    add_virtual(w, "x4", "b.h5", "link");
    add_virtual(w, "x5", ".", "x1");
    add_numbers(w, "numbers", 1, &three, 9);
    assert_ok(import(w, 1));
    assert_int_equal(w->made.nvars, 1);
    assert_int_equal(w->made.nskipped, 7); /* and "other" and "soft" */
}

static void test_data_that_is_near_by_several_steps(void **state)
{
    world *w = *state;
    const hsize_t three = 3;
    world b = beside(w, "b.h5");
    add_numbers(&b, "numbers", 1, &three, 5);
    add_virtual(&b, "50%", ".", "numbers");
    w->h5->H5Fclose(b.file);
    add_virtual(w, "through", "b.h5", "50%%");
    add_virtual(w, "further", ".", "through");
    assert_ok(import(w, 1));
    assert_int_equal(w->made.nskipped, 0);
    check_numbers(w, "through", 1, 5);
    check_numbers(w, "further", 1, 5);
}

static void test_data_that_is_made_of_itself(void **state)
{
    world *w = *state;
    add_virtual(w, "a", ".", "b");
    add_virtual(w, "b", ".", "a");
    assert_fails(import(w, 1), CAIRN_EUNSUPPORTED, "'a' is made of others, and these");
}

static void test_sources_that_are_not_there_are_named(void **state)
{
    world *w = *state;
    static const struct {
        const char *file, *dataset, *words;
    } source[] = {{"absent.h5", "numbers", "absent.h5', which is not there"},
                  {".", "absent", "'absent' in '"}};
    for (size_t i = 0; i < sizeof source / sizeof *source; i++) {
        begin_again(w);
        add_virtual(w, "made", source[i].file, source[i].dataset);
        assert_fails(import(w, 1), CAIRN_ENOTFOUND, source[i].words);
    }
}

/* --- silence -------------------------------------------------------------------------------- */

/* Each thread has a setting of its own, whoever has loaded the library. */
static void *find_printer(void *arg)
{
    const crn_h5 *h5;
    H5E_auto2_t *ret = arg;
    void *data;
    void *library = dlopen(CRN_HDF5_LIBRARY, RTLD_NOW | RTLD_NOLOAD), *get = NULL;
    if (crn_hdf5_lock(&h5) < 0 || !library || !(get = dlsym(library, "H5Eget_auto2")))
        return NULL;
    ((__typeof__(H5Eget_auto2) *)get)(H5E_DEFAULT, ret, &data);
    crn_hdf5_unlock();
    dlclose(library);
    return get;
}

static herr_t print_nothing(hid_t stack, void *data)
{
    (void)stack, (void)data;
    return 0;
}

static void test_no_thread_prints(void **state)
{
    (void)state;
    const crn_h5 *h5;
    H5E_auto2_t printer = print_nothing;
    pthread_t thread;
    void *found;
    assert_ok(crn_hdf5_lock(&h5));
    crn_hdf5_unlock();
    assert_int_equal(pthread_create(&thread, NULL, find_printer, &printer), 0);
    assert_int_equal(pthread_join(thread, &found), 0);
    assert_non_null(found);
    assert_true(printer == NULL);
}

/* --- giving up ------------------------------------------------------------------------------ */

/* Entries of the trail beside its own files. */
static size_t count_entries(const world *w, const char **ret_name)
{
    static char name[256];
    char **names;
    size_t n, other = 0;
    int fd;
    assert_ok(crn_dir_open_path(w->trail, false, &fd));
    assert_ok(crn_dir_list(fd, &names, &n));
    close(fd);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], "trail") != 0 && strcmp(names[i], "lock") != 0) {
            snprintf(name, sizeof name, "%s", names[i]);
            other++;
        }
        free(names[i]);
    }
    free(names);
    *ret_name = name;
    return other;
}

static int give_up(void *arg, uint64_t done_bytes, uint64_t total_bytes)
{
    (void)arg, (void)done_bytes, (void)total_bytes;
    return 1;
}

/* Whatever fails, the run is there as a whole or not at all; and it is the next that is there. */
static void test_what_is_given_up_leaves_nothing(void **state)
{
    world *w = *state;
    const hsize_t many = 100000;
    const char *name;
    add_numbers(w, "numbers", 1, &many, 1);
    assert_ok(import(w, 3));
    remove_tree(w->trail);
    w->how.progress = give_up;
    assert_int_equal(cairn_import(&w->how, &w->made), CAIRN_NOTHING);
    assert_int_equal(count_entries(w, &name), 0);
    w->how.progress = NULL;
    for (crn_fault f = {CRN_FAULT_ANY, CRN_FAULT_EIO, 1, 1};; f.at++) {
        crn_fault_arm(&f);
        const cairn_status rc = cairn_import(&w->how, &w->made);
        crn_fault_arm(NULL);
        const bool there = count_entries(w, &name) > 0;
        assert_true(rc == CAIRN_EIO || rc == CAIRN_OK);
        assert_true(there || rc < 0);
        if (there)
            break; /* the last that can fail is to make the name last */
    }
    assert_string_equal(name, "run-1");
    check_numbers(w, "numbers", 3, 1);
}

#define FILE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(test_rows_longer_than_the_window),
        FILE_TEST(test_empty_arrays),
        FILE_TEST(test_claims_of_huge_sizes),
        FILE_TEST(test_the_rest_is_left_out_and_counted),
        FILE_TEST(test_groups_in_each_other),
        FILE_TEST(test_claims_of_ranks),
        FILE_TEST(test_claims_of_starts),
        FILE_TEST(test_what_a_codec_lost_stays_known),
        FILE_TEST(test_other_files_are_not_read),
        FILE_TEST(test_other_files_are_not_read_by_detours),
        FILE_TEST(test_data_that_is_near_by_several_steps),
        FILE_TEST(test_data_that_is_made_of_itself),
        FILE_TEST(test_sources_that_are_not_there_are_named),
        cmocka_unit_test(test_no_thread_prints),
        FILE_TEST(test_what_is_given_up_leaves_nothing),
    };
    return cmocka_run_group_tests_name("import", tests, NULL, NULL);
}
