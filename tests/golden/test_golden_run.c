/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A run of format 1 with variables of every layout, on two ranks, kept so that every later version
 * is held to reading it. It was written by this program on two ranks, called with --write; what is
 * in it follows from the functions below alone.
 *
 *     good-trail/run-1   mark 1 in part files, mark 2 in one HDF5 file, mark 3 in a file of each
 * rank
 */
#include <mpi.h>

#include "ckpt/ckpt_session.h"
#include "harness/session.h"
#include "store/store_part.h"

#define TRAIL TESTS_DIR "/golden/good-trail"

enum { RANKS = 2, MARKS = 3, ROWS = 6, COLUMNS = 50, DENSITY = 700, CELLS = 5, ITEMS = 40 };

typedef struct particle {
    uint32_t id;
    double x[2];
    struct {
        int16_t i, j;
    } cell;
} particle;

#define PARTICLE "{32:id@0:uint32,x@8:float64[2],cell@24:{4:i@0:int16,j@2:int16}}"

/* What a rank has at a mark. Memory between members is zero. */
typedef struct state {
    uint64_t step;
    double field[ROWS * COLUMNS]; /* every other block of columns of ROWS x 2 COLUMNS */
    float density[DENSITY];       /* of 2 DENSITY */
    uint64_t cell[CELLS], nitems[CELLS];
    size_t ncells, nparticles, nlist;
    particle particle[CELLS * ITEMS];
    uint16_t list[ITEMS];
} state;

static void fill(state *s, uint64_t version, uint32_t rank)
{
    memset(s, 0, sizeof *s);
    s->step = version;
    for (uint64_t i = 0; i < ROWS * COLUMNS; i++)
        s->field[i] = (double)(rank * 1000 + i) + (i % 7 == 0 ? 0.5 * (double)version : 0);
    for (uint64_t i = 0; i < DENSITY; i++)
        s->density[i] = (float)(rank + 1) / (float)(1 + i);
    for (uint64_t c = rank; c < CELLS; c += RANKS) {
        s->cell[s->ncells] = c;
        s->nitems[s->ncells++] = c * 8 + version;
        for (uint64_t i = 0; i < c * 8 + version; i++) {
            particle *p = &s->particle[s->nparticles++];
            p->id = (uint32_t)(c * 100 + i);
            p->x[0] = (double)i;
            p->x[1] = -0.25;
            p->cell.i = (int16_t)c;
            p->cell.j = (int16_t)version;
        }
    }
    s->nlist = 10 + 20 * rank;
    for (size_t i = 0; i < s->nlist; i++)
        s->list[i] = (uint16_t)(i * version);
}

/* --- reading -------------------------------------------------------------------------------- */

static void check_var(crn_part *part, const crn_mark *m, const char *name, const char *type,
                      const void *want, size_t nbytes)
{
    crn_var *v = crn_mark_find(m, name);
    unsigned char *data;
    assert_non_null(v);
    assert_string_equal(v->spec.type, type);
    assert_int_equal(v->spec.nbytes, nbytes);
    assert_ok(crn_alloc(&data, nbytes));
    assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, data, NULL));
    assert_memory_equal(data, want, nbytes);
    free(data);
}

static void check_layouts(const crn_mark *m, uint32_t rank)
{
    const crn_var *field = crn_mark_find(m, "field");
    const crn_var *particles = crn_mark_find(m, "particles");
    assert_int_equal(crn_layout_of(&field->spec), CRN_LAYOUT_PIECE);
    assert_true(field->spec.global[1] == 2 * COLUMNS && field->spec.offset[1] == rank * COLUMNS);
    assert_string_equal(field->spec.attributes, "units=K\n");
    assert_int_equal(crn_layout_of(&particles->spec), CRN_LAYOUT_RAGGED);
    assert_string_equal(particles->spec.attributes, "layout=ragged\ncells=5\n");
    assert_int_equal(crn_layout_of(&crn_mark_find(m, "particles#cells")->spec), CRN_LAYOUT_INDEX);
    assert_int_equal(crn_layout_of(&crn_mark_find(m, "list")->spec), CRN_LAYOUT_LIST);
    assert_int_equal(crn_layout_of(&crn_mark_find(m, "step")->spec), CRN_LAYOUT_OWN);
}

/* Where the blocks lie is what differs between the marks. */
static void check_places(crn_part *part, const crn_mark *m)
{
    static const uint32_t field[] = {0, CRN_OUTSIDE | CRN_OUTSIDE_ROWS,
                                     CRN_OUTSIDE | CRN_OUTSIDE_OWN};
    static const uint32_t list[] = {0, CRN_OUTSIDE, CRN_OUTSIDE | CRN_OUTSIDE_OWN};
    assert_ok(crn_mark_table(part, m, crn_mark_find(m, "field")));
    assert_ok(crn_mark_table(part, m, crn_mark_find(m, "list")));
    assert_int_equal(crn_mark_find(m, "field")->table->codec, field[m->version - 1]);
    assert_int_equal(crn_mark_find(m, "list")->table->codec, list[m->version - 1]);
}

static void check_share(crn_part *part, uint64_t version, uint32_t rank)
{
    static state want;
    crn_cell_count cells[CELLS];
    crn_mark *m;
    fill(&want, version, rank);
    for (size_t i = 0; i < want.ncells; i++)
        cells[i] = (crn_cell_count){want.cell[i], want.nitems[i]};
    assert_ok(crn_part_load(part, version, &m));
    assert_int_equal(m->nvars, 6);
    check_layouts(m, rank);
    check_places(part, m);
    check_var(part, m, "step", "uint64", &want.step, 8);
    check_var(part, m, "field", "float64", want.field, sizeof want.field);
    check_var(part, m, "fluid/density", "float32", want.density, sizeof want.density);
    check_var(part, m, "particles", PARTICLE, want.particle, want.nparticles * sizeof(particle));
    check_var(part, m, "particles#cells", CRN_CELL_TYPE, cells, want.ncells * sizeof *cells);
    check_var(part, m, "list", "uint16", want.list, want.nlist * sizeof *want.list);
    crn_mark_free(m);
}

static void test_good_trail(void **unused)
{
    (void)unused;
    const crn_part_options options = {CRN_IO_THREADS, 2, false};
    crn_trail *trail;
    crn_run *run;
    assert_ok(crn_trail_open(TRAIL, false, &trail));
    assert_ok(crn_run_open(trail, "run-1", false, &run));
    const crn_manifest *manifest = crn_run_manifest(run);
    assert_int_equal(manifest->mark.n, MARKS);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        crn_part *part;
        assert_ok(crn_run_part(run, 1, rank, RANKS, false, &options, &part));
        for (uint64_t version = 1; version <= MARKS; version++) {
            assert_true(manifest->mark.at[version - 1].levels & CRN_IN_TRAIL);
            check_share(part, version, rank);
        }
        crn_part_close(part);
    }
    crn_run_close(run);
    crn_trail_close(trail);
}

/* --- writing -------------------------------------------------------------------------------- */

static void protect(cairn *c, state *s, uint32_t rank)
{
    const uint64_t plate[] = {ROWS, 2 * COLUMNS}, at[] = {0, rank * COLUMNS}, n[] = {ROWS, COLUMNS};
    const uint64_t line = 2 * DENSITY, from = rank * DENSITY, length = DENSITY;
    const cairn_member pair[] = {{"i", 0, 2, CAIRN_INT16}, {"j", 2, 2, CAIRN_INT16}};
    cairn_type inner, type;
    assert_ok(cairn_define_type(c, 4, pair, 2, &inner));
    const cairn_member member[] = {CAIRN_MEMBER(particle, id, CAIRN_UINT32),
                                   CAIRN_MEMBER(particle, x, CAIRN_FLOAT64),
                                   CAIRN_MEMBER(particle, cell, inner)};
    assert_ok(cairn_define_type(c, sizeof(particle), member, 3, &type));
    assert_ok(cairn_protect(c, "step", &s->step, CAIRN_UINT64, 1));
    assert_ok(cairn_protect_part(c, "field", s->field, CAIRN_FLOAT64, 2, plate, at, n));
    assert_ok(cairn_protect_part(c, "fluid/density", s->density, CAIRN_FLOAT32, 1, &line, &from,
                                 &length));
    assert_ok(cairn_protect_ragged(c, "particles", s->particle, type, CELLS, s->ncells, s->cell,
                                   s->nitems));
    assert_ok(cairn_protect_list(c, "list", s->list, CAIRN_UINT16, s->nlist));
    assert_ok(cairn_describe(c, "field", "units", "K"));
}

/* The mark in one of the forms; the leg before is resumed. */
static void write_mark(uint64_t version, uint32_t rank)
{
    static const char *const format[] = {"parts", "hdf5", "hdf5-virtual"};
    static state s;
    cairn *c;
    setenv("CAIRN_GLOBAL_FORMAT", format[version - 1], 1);
    assert_ok(cairn_open(MPI_COMM_WORLD, NULL, &c));
    fill(&s, version - (version > 1), rank);
    protect(c, &s, rank);
    assert_int_equal(cairn_resume(c, NULL), version > 1 ? CAIRN_OK : CAIRN_NOTHING);
    fill(&s, version, rank);
    protect(c, &s, rank);
    assert_ok(cairn_mark(c, version, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_settle(c));
    if (version < MARKS)
        leave_session(c);
    else
        assert_ok(cairn_close(c));
}

/* Seeds for fuzz_part: a table of each form, and a part that refers to files outside. */
static void write_seeds(void)
{
    const crn_part_options options = {CRN_IO_THREADS, 2, false};
    int seeds = open(TESTS_DIR "/fuzz/corpus/part", O_RDONLY | O_DIRECTORY);
    crn_trail *trail;
    crn_run *run;
    crn_part *part;
    void *data;
    size_t n;
    assert_true(seeds >= 0);
    assert_ok(crn_trail_open(TRAIL, false, &trail));
    assert_ok(crn_run_open(trail, "run-1", false, &run));
    assert_ok(crn_run_part(run, 1, 1, RANKS, false, &options, &part));
    for (uint64_t version = 1; version <= MARKS; version++) {
        char name[32];
        crn_buf table = {0};
        crn_mark *m;
        assert_ok(crn_part_load(part, version, &m));
        crn_var *v = crn_mark_find(m, "field");
        assert_ok(crn_mark_table(part, m, v));
        crn_put_u8(&table, 3); /* the decoder of tables */
        crn_put_u32(&table, (uint32_t)v->spec.nbytes);
        crn_format_put_table(v, &table);
        assert_ok(crn_buf_status(&table));
        snprintf(name, sizeof name, "good-table-%d", (int)version);
        assert_ok(crn_file_replace(seeds, name, table.at, table.n));
        crn_buf_done(&table);
        crn_mark_free(m);
    }
    assert_ok(
        crn_file_slurp(AT_FDCWD, TRAIL "/run-1/series-1/000/part-000001", 1 << 20, &data, &n));
    assert_ok(crn_file_replace(seeds, "good-file-outside", data, n));
    free(data);
    crn_part_close(part);
    crn_run_close(run);
    crn_trail_close(trail);
    close(seeds);
}

static void write_trail(void **comm)
{
    const int rank = crn_comm_rank(*comm);
    char local[64] = "";
    assert_int_equal(crn_comm_size(*comm), RANKS);
    if (rank == 0) {
        make_scratch(local, sizeof local, "golden");
        remove_tree(TRAIL);
    }
    assert_ok(crn_comm_bcast(*comm, local, sizeof local, 0));
    setenv("CAIRN_RUN_TRAIL", TRAIL, 1);
    setenv("CAIRN_LEVEL_LOCAL", local, 1);
    setenv("CAIRN_LEVEL_PARTNER", "0", 1);
    setenv("CAIRN_KEEP_GLOBAL", "3", 1);
    setenv("CAIRN_VARIABLE_BLOCK", "1KiB", 1);
    for (uint64_t version = 1; version <= MARKS; version++)
        write_mark(version, (uint32_t)rank);
    assert_ok(crn_comm_barrier(*comm));
    if (rank == 0) { /* who wrote it, and how fast, is not of interest */
        assert_int_equal(unlink(TRAIL "/run-1/lock"), 0);
        assert_int_equal(unlink(TRAIL "/run-1/events"), 0);
        write_seeds();
        remove_tree(local);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good_trail)};
    const struct CMUnitTest writing[] = {cmocka_unit_test(write_trail)};
    if (argc == 2 && strcmp(argv[1], "--write") == 0)
        return run_mpi_tests(argc, argv, writing);
    return cmocka_run_group_tests_name("golden run", tests, NULL, NULL);
}
