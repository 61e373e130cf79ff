/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks whose size is found: a variable of which each step writes little here and there, as codes
 * on unstructured meshes do, gets small blocks with its third mark, and marks write little from
 * then on; what changes as a whole, not at all, or is small keeps its size. Each rank chooses for
 * itself. A restart goes on with the sizes of the mark that it came back to.
 *
 * TEST: ranks self 2
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "harness/session.h"

enum { N = 1 << 18, PLACES = 40, ROWS = 512, COLUMNS = 512, AROUND = 1, TINY = 512 };
enum { KIB = 1024, START = 64 * KIB, FOUND = 2 * KIB, ENCODED = 16 * KIB };
enum { WIDTH = COLUMNS + 2 * AROUND };

typedef struct values {
    double mesh[N], packed[N], dense[N], still[N], uneven[N], tiny[TINY];
    double piece[(ROWS + 2 * AROUND) * WIDTH];
} values;

static void protect(cairn *c, const place *p, values *s)
{
    const cairn_piece piece = {.struct_bytes = sizeof piece,
                               .ndims = 2,
                               .global = {ROWS * (uint64_t)p->nranks, COLUMNS},
                               .offset = {ROWS * (uint64_t)p->rank, 0},
                               .count = {ROWS, COLUMNS},
                               .before = {AROUND, AROUND},
                               .after = {AROUND, AROUND}};
    assert_ok(cairn_protect(c, "mesh", s->mesh, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(c, "packed", s->packed, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(c, "dense", s->dense, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(c, "still", s->still, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(c, "uneven", s->uneven, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(c, "tiny", s->tiny, CAIRN_FLOAT64, TINY));
    assert_ok(cairn_protect_piece(c, "piece", s->piece, CAIRN_FLOAT64, &piece));
}

/* One value in each of some places, whose blocks of 64 KiB are all of them. */
static void scatter(double *v, uint64_t step)
{
    for (uint64_t i = 0; i < PLACES; i++)
        v[(i * N / PLACES + step * 1000) % N] += (double)step;
}

static void advance(values *s, int rank, uint64_t step)
{
    scatter(s->mesh, step);
    scatter(s->packed, step);
    for (size_t i = 0; i < N; i++)
        s->dense[i] += (double)step;
    if (rank == 0)
        scatter(s->uneven, step);
    for (size_t i = 0; rank > 0 && i < N; i++)
        s->uneven[i] -= (double)step;
    s->tiny[step] = 1;
    for (uint64_t i = 0; i < PLACES; i++) {
        const uint64_t at = (i * N / PLACES + step * 1000) % N;
        s->piece[(at / COLUMNS + AROUND) * WIDTH + at % COLUMNS + AROUND] += (double)step;
    }
}

static cairn_variable_info describe(cairn_trail *t, size_t mark, uint32_t rank, const char *name)
{
    cairn_variable_info v = {.struct_bytes = sizeof v};
    cairn_part_info part = {.struct_bytes = sizeof part};
    assert_ok(cairn_trail_part(t, 0, mark, rank, &part));
    for (size_t i = 0; i < part.nvars; i++) {
        assert_ok(cairn_trail_variable(t, 0, mark, rank, i, &v));
        if (strcmp(v.name, name) == 0)
            return v;
    }
    fail_msg("no variable '%s'", name);
    return v;
}

/* The mark-th mark (from 0) has blocks of this size on a rank, and wrote so many of them. */
static void assert_blocks(const place *p, size_t mark, uint32_t rank, const char *name,
                          uint32_t block, uint64_t nchanged)
{
    char path[96];
    cairn_trail *t;
    snprintf(path, sizeof path, "%s/trail", p->dir);
    assert_ok(cairn_trail_open(path, &t));
    const cairn_variable_info v = describe(t, mark, rank, name);
    if (v.block_bytes != block || v.nchanged != nchanged)
        fail_msg("mark %zu, rank %u, '%s': %u bytes, %u blocks written", mark, rank, name,
                 v.block_bytes, (unsigned)v.nchanged);
    cairn_trail_close(t);
}

static void assert_sizes(const place *p, size_t mark, uint32_t rank, bool found)
{
    const uint64_t nblocks = N * sizeof(double) / START;
    assert_blocks(p, mark, rank, "mesh", found ? FOUND : START, found ? PLACES : nblocks);
    assert_blocks(p, mark, rank, "packed", found ? ENCODED : START, found ? PLACES : nblocks);
    assert_blocks(p, mark, rank, "piece", found ? FOUND : START, found ? PLACES : nblocks);
    assert_blocks(p, mark, rank, "dense", START, nblocks);
    assert_blocks(p, mark, rank, "still", START, mark == 0 ? nblocks : 0);
    assert_blocks(p, mark, rank, "tiny", START, 1);
    const bool moves = found && rank == 0;
    assert_blocks(p, mark, rank, "uneven", moves ? FOUND : START, moves ? PLACES : nblocks);
}

static void test_sizes_are_found_and_stay(void **state)
{
    place p;
    values *s, *back;
    cairn *c;
    uint64_t version;
    place_init(&p, *state,
               "[level]\nlocal = trail\n[keep]\nglobal = all\n[variable]\nblock = auto\n"
               "[variable packed]\ncodec = lz4\n");
    assert_ok(crn_alloc(&s, 1));
    assert_ok(crn_alloc(&back, 1));
    assert_ok(cairn_open(p.mpi, p.config, &c));
    protect(c, &p, s);
    for (uint64_t step = 1; step <= 4; step++) {
        advance(s, p.rank, step);
        if (step == 2)
            protect(c, &p, s); /* again: what was seen is not forgotten */
        assert_ok(cairn_mark(c, step, CAIRN_LEVEL_GLOBAL));
    }
    assert_ok(cairn_settle(c));
    leave_session(c);
    assert_ok(cairn_open(p.mpi, p.config, &c));
    protect(c, &p, back);
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, 4);
    assert_memory_equal(back, s, sizeof *s);
    advance(back, p.rank, 5);
    assert_ok(cairn_mark(c, 5, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_close(c));
    for (uint32_t rank = 0; p.rank == 0 && rank < (uint32_t)p.nranks; rank++) {
        assert_sizes(&p, 0, rank, false);
        assert_sizes(&p, 1, rank, false);
        assert_blocks(&p, 2, rank, "mesh", FOUND, N * sizeof(double) / FOUND); /* all, once */
        assert_sizes(&p, 3, rank, true);
        assert_sizes(&p, 4, rank, true);
    }
    free(s);
    free(back);
    place_done(&p);
}

/* What is said of a run with blocks of one size, which is not asked to find any. */
static void assert_choice(cairn_trail *t, uint32_t rank, const char *name, uint32_t best)
{
    cairn_block_choice c = {.struct_bytes = sizeof c};
    assert_ok(cairn_trail_blocks(t, 0, rank, name, &c));
    assert_int_equal(c.nmarks, 3);
    assert_int_equal(c.block_bytes, START);
    assert_int_equal(c.best_bytes, best);
    if (strcmp(name, "mesh") == 0) { /* 2 KiB, 32 bytes of table for each; and all, with 64 KiB */
        assert_int_equal(c.nbytes, N * sizeof(double));
        assert_int_equal(c.written[1], PLACES * FOUND + c.nbytes / FOUND * 32);
        assert_int_equal(c.written[6], c.nbytes + c.nbytes / START * 32);
    }
}

static void test_trail_tells(void **state)
{
    place p;
    values *s;
    cairn *c;
    cairn_trail *t;
    char path[96];
    place_init(&p, *state,
               "[level]\nlocal = trail\n[keep]\nglobal = 4\n[variable packed]\ncodec = lz4\n");
    assert_ok(crn_alloc(&s, 1));
    assert_ok(cairn_open(p.mpi, p.config, &c));
    protect(c, &p, s);
    for (uint64_t step = 1; step <= 5; step++) {
        advance(s, p.rank, step);
        assert_ok(cairn_mark(c, step, CAIRN_LEVEL_GLOBAL));
    }
    assert_ok(cairn_close(c));
    snprintf(path, sizeof path, "%s/trail", p.dir);
    assert_ok(cairn_trail_open(path, &t));
    for (uint32_t rank = 0; rank < (uint32_t)p.nranks; rank++) {
        assert_choice(t, rank, "mesh", FOUND);
        assert_choice(t, rank, "piece", FOUND);
        assert_choice(t, rank, "packed", ENCODED);
        assert_choice(t, rank, "dense", START);
        assert_choice(t, rank, "still", START);
        assert_choice(t, rank, "uneven", rank == 0 ? FOUND : START);
    }
    assert_int_equal(
        cairn_trail_blocks(t, 0, 0, "no such",
                           &(cairn_block_choice){.struct_bytes = sizeof(cairn_block_choice)}),
        CAIRN_ENOTFOUND);
    cairn_trail_close(t);
    free(s);
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_are_found_and_stay),
        cmocka_unit_test(test_trail_tells),
    };
    return run_mpi_tests(argc, argv, tests);
}
