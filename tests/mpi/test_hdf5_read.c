/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What HDF5 itself reads of a mark: every element, type, shape and attribute, of one file, of one
 * of each rank, of an export; and what comes back of an import. Names that HDF5 has no place for
 * get their sentences.
 *
 * TEST: ranks self 1 3
 *
 * NEEDS: hdf5
 */
#include "harness/session.h"

#include "exchange/exchange.h"
#include "hdf5/hdf5.h"

#include <cairn/exchange.h>
#include <inttypes.h>

/* A line is written in long runs that begin and end anywhere; rows of the plate are short, and of
 * more than goes to the file at once. */
enum { LINE = 40001, ROWS = 1000, COLUMNS = 1301, DOTS = 5, RAW = 6 };

typedef struct dot {
    int16_t kind;
    float x[2];
} dot;

typedef struct world {
    place at;
    uint64_t step;
    double line[LINE];
    int32_t plate[ROWS * COLUMNS];
    dot dots[DOTS];
    unsigned char raw[RAW + 4];
} world;

/* --- values, by where they are in the whole ------------------------------------------------- */

static double line_value(uint64_t i)
{
    return 0.25 * (double)i - 7;
}

static int32_t plate_value(uint64_t row, uint64_t column)
{
    return (int32_t)(row * 10000 + column);
}

static unsigned char raw_value(uint64_t rank, uint64_t i)
{
    return (unsigned char)(200 + 16 * rank + i);
}

static uint64_t count_raw(uint64_t rank)
{
    return RAW + rank % 4;
}

static void fill(world *w)
{
    const uint64_t me = (uint64_t)w->at.rank;
    w->step = 3;
    for (uint64_t i = 0; i < LINE; i++)
        w->line[i] = line_value(me * LINE + i);
    for (uint64_t i = 0; i < ROWS * COLUMNS; i++)
        w->plate[i] = plate_value(i / COLUMNS, me * COLUMNS + i % COLUMNS);
    for (uint64_t i = 0; i < DOTS; i++) {
        w->dots[i].kind = (int16_t)(me * DOTS + i);
        w->dots[i].x[0] = w->dots[i].x[1] = (float)i;
    }
    for (uint64_t i = 0; i < count_raw(me); i++)
        w->raw[i] = raw_value(me, i);
}

static void protect(world *w, cairn *c)
{
    const uint64_t n = (uint64_t)w->at.nranks, me = (uint64_t)w->at.rank;
    const uint64_t line = LINE * n, begin = LINE * me, length = LINE;
    const uint64_t plate[] = {ROWS, COLUMNS * n}, at[] = {0, COLUMNS * me}, has[] = {ROWS, COLUMNS};
    const uint64_t dots = DOTS * n, first = DOTS * me, few = DOTS;
    const cairn_member member[] = {CAIRN_MEMBER(dot, kind, CAIRN_INT16),
                                   CAIRN_MEMBER(dot, x, CAIRN_FLOAT32)};
    cairn_type type;
    assert_ok(cairn_define_type(c, sizeof(dot), member, 2, &type));
    assert_ok(cairn_protect(c, "step", &w->step, CAIRN_UINT64, 1));
    assert_ok(cairn_protect_part(c, "line", w->line, CAIRN_FLOAT64, 1, &line, &begin, &length));
    assert_ok(cairn_protect_part(c, "half/plate", w->plate, CAIRN_INT32, 2, plate, at, has));
    assert_ok(cairn_protect_part(c, "dots", w->dots, type, 1, &dots, &first, &few));
    /* HDF5 takes what follows a '%' for a number when it looks into other files */
    assert_ok(cairn_protect(c, "50%b", w->raw, CAIRN_BYTES, count_raw(me)));
    assert_ok(cairn_describe(c, "half/plate", "units", "K"));
}

static void check(const world *w)
{
    static world want;
    want.at = w->at;
    fill(&want);
    assert_int_equal(w->step, want.step);
    assert_memory_equal(w->line, want.line, sizeof want.line);
    assert_memory_equal(w->plate, want.plate, sizeof want.plate);
    for (size_t i = 0; i < DOTS; i++) {
        assert_int_equal(w->dots[i].kind, want.dots[i].kind);
        assert_memory_equal(w->dots[i].x, want.dots[i].x, sizeof want.dots[i].x);
    }
    assert_memory_equal(w->raw, want.raw, count_raw((uint64_t)w->at.rank));
}

/* --- through HDF5 --------------------------------------------------------------------------- */

typedef struct reader {
    const crn_h5 *h5; /* locked */
    hid_t file;
} reader;

/* All elements of a dataset, of which there must be so many, as a type of memory. Free them. */
static void *read_all(const reader *r, const char *name, hid_t type, size_t item, uint32_t ndims,
                      const uint64_t *dims)
{
    hsize_t there[CRN_DIMS_MAX];
    uint64_t n = 1;
    unsigned char *data;
    hid_t set = r->h5->H5Oopen(r->file, name, H5P_DEFAULT);
    assert_true(set >= 0);
    hid_t space = r->h5->H5Dget_space(set);
    assert_int_equal(r->h5->H5Sget_simple_extent_ndims(space), (int)ndims);
    r->h5->H5Sget_simple_extent_dims(space, there, NULL);
    for (uint32_t d = 0; d < ndims; d++) {
        assert_int_equal(there[d], dims[d]);
        n *= dims[d];
    }
    assert_ok(crn_alloc(&data, n * item));
    assert_true(r->h5->H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    r->h5->H5Sclose(space);
    r->h5->H5Oclose(set);
    return data;
}

static void check_type(const reader *r, const char *name, hid_t type)
{
    hid_t set = r->h5->H5Oopen(r->file, name, H5P_DEFAULT), is = r->h5->H5Dget_type(set);
    assert_true(r->h5->H5Tequal(is, type) > 0);
    r->h5->H5Tclose(is);
    r->h5->H5Oclose(set);
}

/* An attribute that is a text. */
static void check_text(const reader *r, const char *on, const char *key, const char *text)
{
    char is[64] = "";
    hid_t object = r->h5->H5Oopen(r->file, on, H5P_DEFAULT);
    hid_t attribute = r->h5->H5Aopen(object, key, H5P_DEFAULT);
    assert_true(attribute >= 0);
    hid_t type = r->h5->H5Aget_type(attribute);
    assert_true(r->h5->H5Tget_size(type) < sizeof is);
    assert_true(r->h5->H5Aread(attribute, type, is) >= 0);
    assert_string_equal(is, text);
    r->h5->H5Tclose(type);
    r->h5->H5Aclose(attribute);
    r->h5->H5Oclose(object);
}

static double read_number(const reader *r, const char *key)
{
    double number = -1;
    hid_t attribute = r->h5->H5Aopen(r->file, key, H5P_DEFAULT);
    assert_true(attribute >= 0);
    assert_true(r->h5->H5Aread(attribute, r->h5->H5T_NATIVE_DOUBLE_g, &number) >= 0);
    r->h5->H5Aclose(attribute);
    return number;
}

static void check_attributes(const reader *r, uint64_t nranks)
{
    check_text(r, "/", "run", "run-1");
    check_text(r, "/", "cairn", cairn_version());
    check_text(r, "half/plate", "units", "K");
    check_text(r, "half/plate", "cairn_layout", "global");
    check_text(r, "50%b", "cairn_type", "bytes");
    check_text(r, "50%b", "cairn_layout", "rank");
    assert_true(read_number(r, "version") == 3);
    assert_true(read_number(r, "nranks") == (double)nranks);
    assert_true(read_number(r, "time") > 1e9);
}

static void check_pieces(const reader *r, uint64_t n)
{
    const uint64_t line_dims[] = {LINE * n}, plate_dims[] = {ROWS, COLUMNS * n};
    double *line = read_all(r, "line", r->h5->H5T_NATIVE_DOUBLE_g, 8, 1, line_dims);
    int32_t *plate = read_all(r, "half/plate", r->h5->H5T_NATIVE_INT32_g, 4, 2, plate_dims);
    for (uint64_t i = 0; i < LINE * n; i++)
        if (line[i] != line_value(i))
            fail_msg("element %" PRIu64 " of the line", i);
    for (uint64_t i = 0; i < ROWS * COLUMNS * n; i++)
        if (plate[i] != plate_value(i / (COLUMNS * n), i % (COLUMNS * n)))
            fail_msg("element %" PRIu64 " of the plate", i);
    check_type(r, "line", r->h5->H5T_NATIVE_DOUBLE_g);
    check_type(r, "half/plate", r->h5->H5T_NATIVE_INT32_g);
    free(line);
    free(plate);
}

/* Members are found by their names. */
static void check_dots(const reader *r, uint64_t n)
{
    const uint64_t dims[] = {DOTS * n};
    hid_t kinds = r->h5->H5Tcreate(H5T_COMPOUND, sizeof(int16_t));
    assert_true(r->h5->H5Tinsert(kinds, "kind", 0, r->h5->H5T_NATIVE_INT16_g) >= 0);
    int16_t *kind = read_all(r, "dots", kinds, sizeof *kind, 1, dims);
    for (uint64_t i = 0; i < DOTS * n; i++)
        assert_int_equal(kind[i], i);
    r->h5->H5Tclose(kinds);
    free(kind);
}

/* What each rank has for itself: a list, and the file says where each begins. */
static void check_own(const reader *r, uint64_t n)
{
    uint64_t total = 0, at = 0;
    for (uint64_t rank = 0; rank < n; rank++)
        total += count_raw(rank);
    const uint64_t list[] = {total}, starts[] = {n + 1};
    unsigned char *raw = read_all(r, "50%b", r->h5->H5T_NATIVE_UINT8_g, 1, 1, list);
    uint64_t *start = read_all(r, "cairn/starts/50%b", r->h5->H5T_NATIVE_UINT64_g, 8, 1, starts);
    for (uint64_t rank = 0; rank < n; rank++) {
        assert_int_equal(start[rank], at);
        for (uint64_t i = 0; i < count_raw(rank); i++)
            assert_int_equal(raw[at++], raw_value(rank, i));
    }
    if (start)
        assert_int_equal(start[n], total);
    free(start);
    free(raw);
}

static void check_file(const world *w, const char *path)
{
    const uint64_t n = (uint64_t)w->at.nranks;
    reader r;
    assert_ok(crn_hdf5_lock(&r.h5));
    assert_ok(crn_hdf5_open(r.h5, path, &r.file));
    check_attributes(&r, n);
    check_pieces(&r, n);
    check_dots(&r, n);
    check_own(&r, n);
    assert_true(r.h5->H5Fclose(r.file) >= 0);
    crn_hdf5_unlock();
}

/* --- ways ----------------------------------------------------------------------------------- */

static void export_to(const world *w, const char *path)
{
    char trail[96];
    snprintf(trail, sizeof trail, "%s/trail", w->at.dir);
    cairn_export_options what = {.struct_bytes = sizeof what,
                                 .trail = trail,
                                 .run = "run-1",
                                 .version = w->step,
                                 .path = path};
    assert_ok(cairn_export(&what, NULL));
}

static void import_from(const char *path, const char *trail)
{
    cairn_import_result made = {.struct_bytes = sizeof made};
    const cairn_import_options what = {
        .struct_bytes = sizeof what, .path = path, .trail = trail, .version = 3};
    assert_ok(cairn_import(&what, &made));
    assert_int_equal(made.nvars, 5);
    assert_int_equal(made.nskipped, 0);
}

/* All that the file has comes back from it alone. */
static void start_from(world *w, const char *path)
{
    char trail[96];
    cairn *c;
    snprintf(trail, sizeof trail, "%s/new", w->at.dir);
    if (w->at.rank == 0)
        import_from(path, trail);
    assert_ok(crn_comm_barrier(w->at.comm));
    setenv("CAIRN_RUN_TRAIL", trail, 1);
    assert_ok(cairn_open(w->at.mpi, w->at.config, &c));
    const place at = w->at;
    memset(w, 0, sizeof *w);
    w->at = at;
    protect(w, c);
    assert_ok(cairn_resume(c, NULL));
    check(w);
    assert_ok(cairn_close(c));
    unsetenv("CAIRN_RUN_TRAIL");
}

static void read_form(crn_comm *comm, const char *form)
{
    static world w;
    char settings[256], path[160];
    cairn *c;
    snprintf(settings, sizeof settings,
             "[level]\nlocal = @/local\npartner = 0\n[mark]\nmode = synchronous\n"
             "[global]\nformat = %s\n",
             form);
    memset(&w, 0, sizeof w);
    place_init(&w.at, comm, settings);
    fill(&w);
    assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
    protect(&w, c);
    assert_ok(cairn_mark(c, w.step, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_close(c));
    assert_ok(crn_comm_barrier(w.at.comm));
    snprintf(path, sizeof path, "%s/out.h5", w.at.dir);
    if (w.at.rank == 0) {
        export_to(&w, path);
        check_file(&w, path);
    }
    if (strcmp(form, "parts") != 0)
        snprintf(path, sizeof path, "%s/trail/run-1/series-1/mark-3.h5", w.at.dir);
    if (w.at.rank == 0)
        check_file(&w, path);
    start_from(&w, path);
    place_done(&w.at);
}

static void test_one_file(void **state)
{
    read_form(*state, "hdf5");
}

static void test_a_file_of_each_rank(void **state)
{
    read_form(*state, "hdf5-virtual");
}

static void test_export(void **state)
{
    read_form(*state, "parts");
}

/* --- names ---------------------------------------------------------------------------------- */

static void test_names_without_a_place(void **state)
{
    static const struct {
        const char *name[2], *says;
    } bad[] = {
        {{"a", "a/b"}, "variable 'a/b' has no place in HDF5: variable 'a' cannot be its"},
        {{"a/b/c", "a/b"}, "variable 'a/b/c' has no place in HDF5: variable 'a/b' cannot"},
        {{"cairn", "x"}, "variable 'cairn' has no place in HDF5: the group 'cairn' is Cairn"},
        {{"cairn/x", "y"}, "variable 'cairn/x' has no place in HDF5: the group 'cairn'"},
        {{"x", "/x"}, "cannot make dataset '/x': name already exists"}};
    place at;
    cairn *c;
    uint64_t data = 1, version = 0;
    place_init(&at, *state,
               "[level]\nlocal = @/local\npartner = 0\n[mark]\nmode = synchronous\n"
               "[global]\nformat = hdf5\n");
    assert_ok(cairn_open(at.mpi, at.config, &c));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (int k = 0; k < 2; k++)
            assert_ok(cairn_protect(c, bad[i].name[k], &data, CAIRN_UINT64, 1));
        const int rc = cairn_mark(c, ++version, CAIRN_LEVEL_GLOBAL);
        assert_true(rc < 0);
        assert_non_null(strstr(cairn_last_error(c), bad[i].says));
        for (int k = 0; k < 2; k++)
            assert_ok(cairn_release(c, bad[i].name[k]));
    }
    assert_ok(cairn_protect(c, "cairns/x", &data, CAIRN_UINT64, 1));
    assert_ok(cairn_protect(c, "cairns/xy", &data, CAIRN_UINT64, 1));
    assert_ok(cairn_mark(c, ++version, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_close(c));
    place_done(&at);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_file),
        cmocka_unit_test(test_a_file_of_each_rank),
        cmocka_unit_test(test_export),
        cmocka_unit_test(test_names_without_a_place),
    };
    return run_mpi_tests(argc, argv, tests);
}
