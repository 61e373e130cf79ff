/* SPDX-License-Identifier: BSD-3-Clause
 *
 * XDMF files, as text: which arrays are fields, on which grids, and where their values lie; and
 * several moments as a series.
 */
#include <fcntl.h>
#include <unistd.h>

#include "harness/scratch.h"

#include "exchange/exchange.h"

/* --- frames --------------------------------------------------------------------------------- */

static void add(crn_frame *f, const char *name, const char *type, uint32_t item, uint32_t ndims,
                const uint64_t *dims, const char *lines)
{
    static const uint64_t zero[CRN_DIMS_MAX];
    uint64_t nbytes = item;
    for (uint32_t d = 0; d < ndims; d++)
        nbytes *= dims[d];
    const crn_var_spec spec = {.name = name,
                               .type = type,
                               .attributes = lines,
                               .item = item,
                               .nbytes = nbytes,
                               .ndims = ndims,
                               .global = dims,
                               .offset = zero,
                               .count = dims};
    assert_ok(crn_frame_add(f, 0, &spec));
}

/* Four grids: two shapes, one of them with and without a spacing and an origin; and what is no
 * field. */
static void fill(crn_frame *f)
{
    static const uint64_t flat[] = {4, 5}, deep[] = {2, 3, 4}, none[] = {0, 5}, line[] = {9};
    add(f, "a<b>&\"c\"", "float64", 8, 2, flat, "units=K\nspacing=0.5 2\norigin=1 -1e3\n");
    add(f, "plain", "int32", 4, 2, flat, "origin=1 -1e3\n");
    add(f, "moved", "int16", 2, 2, flat, "spacing=0.5 2\n");
    add(f, "group/same", "float32", 4, 2, flat, "origin=1 -1e3\nspacing=0.5 2\n");
    add(f, "deep", "uint8", 1, 3, deep, "spacing=1 2\norigin=0 nan 0\n");
    add(f, "deeper", "int64", 8, 3, deep, "spacing=1 2\norigin=0 nan 0\nxspacing=7 7 7\n");
    add(f, "empty", "float64", 8, 2, none, "");
    add(f, "line", "float64", 8, 1, line, "");
    add(f, "points", "{x:float64@0}8", 8, 2, flat, "");
    add(f, "raw", "bytes", 1, 2, flat, "");
    const crn_var_spec own = {.name = "own", .type = "float64", .item = 8, .nbytes = 24};
    assert_ok(crn_frame_add(f, 0, &own)); /* a table of one row for each rank */
    crn_frame_seal(f);
}

/* --- text ----------------------------------------------------------------------------------- */

#define HEAD "<?xml version=\"1.0\"?>\n<Xdmf Version=\"3.0\">\n<Domain>\n"
#define TAIL "</Domain>\n</Xdmf>\n"
#define MARK(v)                                                                                    \
    "<Grid Name=\"mark " v "\" GridType=\"Collection\" CollectionType=\"Spatial\">\n"              \
    "<Time Value=\"" v "\"/>\n"
#define GRID(dims, n, geometry)                                                                    \
    "<Grid Name=\"" dims "\" GridType=\"Uniform\">\n"                                              \
    "<Topology TopologyType=\"" n "DCoRectMesh\" Dimensions=\"" dims "\"/>\n"                      \
    "<Geometry GeometryType=\"" geometry "\">"
#define NUMBERS(n, origin, spacing)                                                                \
    "<DataItem Dimensions=\"" n "\" Format=\"XML\">" origin "</DataItem>"                          \
    "<DataItem Dimensions=\"" n "\" Format=\"XML\">" spacing "</DataItem></Geometry>\n"
#define FIELD(name, dims, type, precision, file)                                                   \
    "<Attribute Name=\"" name "\" AttributeType=\"Scalar\" Center=\"Node\">\n"                     \
    "<DataItem Dimensions=\"" dims "\" NumberType=\"" type "\" Precision=\"" precision             \
    "\" Format=\"HDF\">" file ":/" name "</DataItem>\n</Attribute>\n"
#define END "</Grid>\n"

/* clang-format off: a grid a paragraph */
#define MOMENT(v, file)                                                                            \
    MARK(v)                                                                                        \
    GRID("4 5", "2", "ORIGIN_DXDY")                                                                \
    NUMBERS("2", "1 -1e3", "0.5 2")                                                                \
    FIELD("a&lt;b&gt;&amp;&quot;c&quot;", "4 5", "Float", "8", file)                               \
    FIELD("group/same", "4 5", "Float", "4", file)                                                 \
    END GRID("4 5", "2", "ORIGIN_DXDY") NUMBERS("2", "1 -1e3", "1 1")                              \
        FIELD("plain", "4 5", "Int", "4", file) END GRID("4 5", "2", "ORIGIN_DXDY")                \
            NUMBERS("2", "0 0", "0.5 2") FIELD("moved", "4 5", "Int", "2", file)                   \
                END GRID("2 3 4", "3", "ORIGIN_DXDYDZ") NUMBERS("3", "0 0 0", "1 1 1")             \
                    FIELD("deep", "2 3 4", "UInt", "1", file)                                      \
                        FIELD("deeper", "2 3 4", "Int", "8", file) END END
/* clang-format on */

static void check_text(const char *name, const char *want)
{
    void *data;
    size_t n;
    assert_ok(crn_file_slurp(dir, name, CRN_XDMF_BYTES_MAX, &data, &n));
    assert_string_equal(data, want);
    free(data);
}

static void test_fields_and_grids(void **state)
{
    (void)state;
    crn_frame f = {.version = 7, .nranks = 1};
    fill(&f);
    assert_ok(crn_xdmf_write(dir, "seven.xmf", &f, "<7>.h5"));
    check_text("seven.xmf", HEAD MOMENT("7", "&lt;7&gt;.h5") TAIL);
    crn_frame_done(&f);
}

static void test_nothing_to_show(void **state)
{
    (void)state;
    static const uint64_t line[] = {9};
    crn_frame f = {.version = 7, .nranks = 1};
    add(&f, "line", "float64", 8, 1, line, "");
    crn_frame_seal(&f);
    assert_int_equal(crn_xdmf_write(dir, "none.xmf", &f, "7.h5"), CAIRN_NOTHING);
    assert_int_equal(faccessat(dir, "none.xmf", F_OK, 0), -1);
    crn_frame_done(&f);
}

static void test_series(void **state)
{
    (void)state;
    static const char run[] =
        HEAD "<Grid Name=\"run\" GridType=\"Collection\" CollectionType=\"Temporal\">\n" MOMENT(
            "7", "in/7.h5") MOMENT("8", "8.h5") END TAIL;
    crn_frame f = {.version = 7, .nranks = 1};
    crn_buf b = {0};
    fill(&f);
    assert_ok(crn_xdmf_write(dir, "7.xmf", &f, "7.h5"));
    f.version = 8;
    assert_ok(crn_xdmf_write(dir, "8.xmf", &f, "8.h5"));
    crn_frame_done(&f);
    crn_xdmf_begin(&b);
    assert_ok(crn_xdmf_add(&b, dir, "7.xmf", "in/"));
    assert_ok(crn_xdmf_end(&b, dir, "run.xmf"));
    crn_buf_done(&b);
    assert_ok(crn_xdmf_reopen(&b, dir, "run.xmf"));
    assert_ok(crn_xdmf_add(&b, dir, "8.xmf", ""));
    assert_ok(crn_xdmf_end(&b, dir, "run.xmf"));
    crn_buf_done(&b);
    check_text("run.xmf", run);
    assert_ok(crn_file_put(dir, "cut.xmf", run, sizeof run - 20));
    assert_fails(crn_xdmf_add(&b, dir, "cut.xmf", ""), CAIRN_ECORRUPT, "not as Cairn writes it");
    crn_buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_and_grids),
        cmocka_unit_test(test_nothing_to_show),
        cmocka_unit_test(test_series),
    };
    return cmocka_run_group_tests_name("xdmf", tests, scratch_begin, scratch_end);
}
