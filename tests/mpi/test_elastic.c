/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Restarts on other numbers of ranks and in other pieces: what some ranks of the job wrote, others
 * read, element by element. Groups of ranks are made by splitting one job, so that a few jobs do
 * all of the matrix.
 *
 * TEST: ranks 8
 * NEEDS: inih
 */
#include "ckpt/ckpt_session.h"
#include "harness/session.h"

#include <inttypes.h>

enum { NX = 24, NY = 20, NZ = 18, CELLS = 60 };

/* --- a program -------------------------------------------------------------------------------- */

typedef enum cutting { SLAB, PENCIL, BLOCK, UNEVEN, NCUTTINGS } cutting;

/* What a rank has of everything, in some cutting; values follow from places and the step alone. */
typedef struct program {
    int rank, nranks;
    uint64_t step;
    uint64_t lo[3], count[3];
    uint64_t around; /* elements of memory around the block */
    double *field;
    uint64_t ncells, cell[CELLS], nitems[CELLS];
    uint64_t *item;
    size_t nlist;
    uint32_t *list;
    double table[10]; /* a global array that every rank has all of */
} program;

static const uint64_t size[3] = {NX, NY, NZ};

/* Factors of the number of ranks by which the dimensions are cut. */
static void factors(cutting how, int nranks, int f[3])
{
    f[0] = f[1] = f[2] = 1;
    if (how == SLAB || how == UNEVEN) {
        f[0] = nranks;
        return;
    }
    for (int d = how == PENCIL ? 1 : 0, n = nranks, k = 2; n > 1;) {
        if (n % k != 0) {
            k++;
            continue;
        }
        f[d] *= k;
        n /= k;
        d = d == 2 ? (how == PENCIL ? 1 : 0) : d + 1;
    }
}

/* Where the i-th of n parts of a dimension begins; uneven ones grow, and the first is empty. */
static uint64_t begin_of(cutting how, uint64_t all, uint64_t i, uint64_t n)
{
    return how == UNEVEN && n > 1 ? all * i * (i - (i > 0)) / (n * (n - 1)) : all * i / n;
}

static void place_block(program *p, cutting how)
{
    int f[3];
    factors(how, p->nranks, f);
    const int at[3] = {p->rank / (f[1] * f[2]), p->rank / f[2] % f[1], p->rank % f[2]};
    for (int d = 0; d < 3; d++) {
        p->lo[d] = begin_of(how, size[d], (uint64_t)at[d], (uint64_t)f[d]);
        p->count[d] = begin_of(how, size[d], (uint64_t)at[d] + 1, (uint64_t)f[d]) - p->lo[d];
    }
}

/* A quarter of the field changes from step to step. */
static double value_at(uint64_t step, uint64_t x, uint64_t y, uint64_t z)
{
    return (double)((x * NY + y) * NZ + z) + (x % 4 == 0 ? 1e6 * (double)step : 0);
}

static uint64_t items_in(uint64_t step, uint64_t cell)
{
    return (cell * 7 + step) % 5;
}

static size_t list_share(uint64_t total, int rank, int nranks)
{
    return total / (uint64_t)nranks + ((uint64_t)rank < total % (uint64_t)nranks);
}

static double *element(const program *p, uint64_t i, uint64_t j, uint64_t k)
{
    const uint64_t a = p->around, ny = p->count[1] + 2 * a, nz = p->count[2] + 2 * a;
    return &p->field[((i + a) * ny + j + a) * nz + k + a];
}

/* Cells go round the ranks, in one direction or the other. */
static void own_cells(program *p, cutting how)
{
    p->ncells = 0;
    for (uint64_t c = 0; c < CELLS; c++) {
        const uint64_t turn = how % 2 ? c / 3 : CELLS - c;
        if (turn % (uint64_t)p->nranks == (uint64_t)p->rank)
            p->cell[p->ncells++] = c;
    }
}

static void program_init(program *p, MPI_Comm comm, cutting how, uint64_t around)
{
    memset(p, 0, sizeof *p);
    MPI_Comm_rank(comm, &p->rank);
    MPI_Comm_size(comm, &p->nranks);
    p->around = around;
    place_block(p, how);
    own_cells(p, how);
    p->field =
        calloc((p->count[0] + 2 * around) * (p->count[1] + 2 * around) * (p->count[2] + 2 * around),
               sizeof *p->field);
    p->item = calloc(5 * CELLS, sizeof *p->item);
    p->list = calloc(1000, sizeof *p->list);
}

static void program_done(program *p)
{
    free(p->field);
    free(p->item);
    free(p->list);
}

static void fill(program *p, uint64_t step)
{
    size_t n = 0;
    p->step = step;
    for (uint64_t i = 0; i < p->count[0]; i++)
        for (uint64_t j = 0; j < p->count[1]; j++)
            for (uint64_t k = 0; k < p->count[2]; k++)
                *element(p, i, j, k) = value_at(step, p->lo[0] + i, p->lo[1] + j, p->lo[2] + k);
    for (uint64_t c = 0; c < p->ncells; c++) {
        p->nitems[c] = items_in(step, p->cell[c]);
        for (uint64_t i = 0; i < p->nitems[c]; i++)
            p->item[n++] = p->cell[c] * 100 + i;
    }
    p->nlist = 10 * ((size_t)p->rank + 1); /* every rank has another number of them */
    for (size_t i = 0; i < p->nlist; i++)
        p->list[i] = (uint32_t)(p->rank * 1000) + (uint32_t)i;
    for (int i = 0; i < 10; i++)
        p->table[i] = i + (double)step;
}

static void protect_arrays(program *p, cairn *c)
{
    cairn_piece piece = {.struct_bytes = sizeof piece, .ndims = 3, .halo = p->around > 0};
    const uint64_t ten = 10, zero = 0;
    for (int d = 0; d < 3; d++) {
        piece.global[d] = size[d];
        piece.offset[d] = p->lo[d];
        piece.count[d] = p->count[d];
        piece.before[d] = piece.after[d] = p->around;
    }
    assert_ok(cairn_protect(c, "step", &p->step, CAIRN_UINT64, 1));
    assert_ok(cairn_protect_piece(c, "field", p->field, CAIRN_FLOAT64, &piece));
    assert_ok(cairn_protect_part(c, "table", p->table, CAIRN_FLOAT64, 1, &ten, &zero, &ten));
}

static void protect_items(program *p, cairn *c)
{
    assert_ok(cairn_protect_ragged(c, "items", p->item, CAIRN_UINT64, CELLS, p->ncells, p->cell,
                                   p->nitems));
    assert_ok(cairn_protect_list(c, "list", p->list, CAIRN_UINT32, p->nlist));
}

/* Halos have what the neighbours have, and nothing where the array ends. */
static void check_field(const program *p)
{
    const int64_t a = (int64_t)p->around;
    bool right = true;
    for (int64_t i = -a; i < (int64_t)p->count[0] + a; i++)
        for (int64_t j = -a; j < (int64_t)p->count[1] + a; j++)
            for (int64_t k = -a; k < (int64_t)p->count[2] + a; k++) {
                const uint64_t x = p->lo[0] + (uint64_t)i, y = p->lo[1] + (uint64_t)j,
                               z = p->lo[2] + (uint64_t)k; /* below 0 is far above */
                const double want = x < NX && y < NY && z < NZ ? value_at(p->step, x, y, z) : 0;
                right = right && *element(p, (uint64_t)i, (uint64_t)j, (uint64_t)k) == want;
            }
    assert_true(right || p->count[0] * p->count[1] * p->count[2] == 0);
}

static void check_items(const program *p, int nold)
{
    size_t n = 0;
    for (uint64_t c = 0; c < p->ncells; c++) {
        assert_int_equal(p->nitems[c], items_in(p->step, p->cell[c]));
        for (uint64_t i = 0; i < p->nitems[c]; i++)
            assert_int_equal(p->item[n++], p->cell[c] * 100 + i);
    }
    /* the list is that of all old ranks, one behind the other, cut anew */
    size_t first = 0, at = 0, total = 5 * (size_t)nold * ((size_t)nold + 1);
    for (int r = 0; r < p->rank; r++)
        first += nold == p->nranks ? (size_t)(10 * (r + 1)) : list_share(total, r, p->nranks);
    for (int r = 0; r < nold; r++)
        for (int i = 0; i < 10 * (r + 1); i++, at++)
            if (at >= first && at < first + p->nlist)
                assert_int_equal(p->list[at - first], (uint32_t)(r * 1000 + i));
    for (int i = 0; i < 10; i++)
        assert_true(p->table[i] == i + (double)p->step);
}

/* --- legs ------------------------------------------------------------------------------------- */

/* Every rank whose number is below n takes part. */
static MPI_Comm first_ranks(const place *p, int n)
{
    MPI_Comm comm;
    if (p->nranks == 1)
        return MPI_COMM_SELF;
    MPI_Comm_split(MPI_COMM_WORLD, p->rank < n ? 0 : MPI_UNDEFINED, p->rank, &comm);
    return comm;
}

static void leave_comm(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_SELF)
        MPI_Comm_free(comm);
}

/* A first leg: three marks, the last of which changes a part of the state. */
static void write_leg(const place *at, int nranks, cutting how, uint64_t around, cairn_level level)
{
    MPI_Comm comm = first_ranks(at, nranks);
    program p;
    cairn *c;
    if (comm == MPI_COMM_NULL)
        return;
    program_init(&p, comm, how, around);
    assert_ok(cairn_open(comm, at->config, &c));
    for (uint64_t step = 1; step <= 3; step++) {
        fill(&p, step);
        protect_arrays(&p, c);
        protect_items(&p, c);
        assert_ok(cairn_mark(c, step, level));
    }
    assert_ok(cairn_settle(c));
    leave_session(c);
    program_done(&p);
    leave_comm(&comm);
}

/* The second leg: everything is there on other ranks, and goes on from there. */
static void read_leg(const place *at, int nranks, cutting how, uint64_t around, int nold,
                     uint64_t step, cairn_level level)
{
    MPI_Comm comm = first_ranks(at, nranks);
    program p;
    cairn *c;
    if (comm == MPI_COMM_NULL)
        return;
    program_init(&p, comm, how, around);
    assert_ok(cairn_open(comm, at->config, &c));
    assert_ok(cairn_probe_count(c, "list", &p.nlist));
    assert_ok(cairn_probe_cells(c, "items", p.ncells, p.cell, p.nitems));
    protect_arrays(&p, c);
    protect_items(&p, c);
    if (cairn_resume(c, NULL) != CAIRN_OK)
        fail_msg("%d ranks to %d: %s", nold, nranks, cairn_last_error(c));
    assert_int_equal(p.step, step);
    check_field(&p);
    check_items(&p, nold);
    fill(&p, step + 1);
    protect_items(&p, c);
    assert_ok(cairn_mark(c, step + 1, level));
    leave_session(c);
    program_done(&p);
    leave_comm(&comm);
}

/* --- the matrix ------------------------------------------------------------------------------- */

static const int writers[] = {1, 2, 3, 4, 7, 8}, readers[] = {1, 2, 3, 5, 8};

/* Where marks go, and what is lost before they are read: what the next level must make good. */
typedef struct way {
    const char *settings;
    cairn_level level;
    enum { IN_TRAIL, ONE_NODE, TWO_NODES_LOSE_ONE, LOSE_ALL_NODES } nodes;
} way;

static void place_nodes(const place *at, const way *w, int nranks)
{
    char text[96];
    snprintf(text, sizeof text, "%d", w->nodes == TWO_NODES_LOSE_ONE ? (nranks + 1) / 2 : 8);
    setenv("CAIRN_LEVEL_NODE_SIZE", text, 1);
    snprintf(text, sizeof text, "%s/local", at->dir);
    setenv("CAIRN_LEVEL_LOCAL", w->nodes == IN_TRAIL ? "trail" : text, 1);
}

static void lose_nodes(const place *at, const way *w)
{
    char gone[128];
    assert_ok(crn_comm_barrier(at->comm));
    snprintf(gone, sizeof gone, "%s/local%s", at->dir,
             w->nodes == TWO_NODES_LOSE_ONE ? "/node-1" : "");
    if (at->rank == 0 && w->nodes >= TWO_NODES_LOSE_ONE)
        remove_tree(gone);
    assert_ok(crn_comm_barrier(at->comm));
}

/* One cell of the matrix: written, read by others, and what those wrote read by the first. */
static void there_and_back(const place *at, int from, int to, cutting how, const way *w)
{
    const cutting other = (cutting)((how + 1 + from + to) % NCUTTINGS);
    place_nodes(at, w, from);
    write_leg(at, from, how, (uint64_t)(to % 2), w->level);
    lose_nodes(at, w);
    place_nodes(at, w, to);
    read_leg(at, to, other, (uint64_t)(from % 3), from, 3, w->level);
    lose_nodes(at, w);
    place_nodes(at, w, from);
    read_leg(at, from, how, 0, to, 4, w->level);
}

/* Every stride-th of all cases, from the first-th on: levels share the matrix among them. With
 * CAIRN_CASES=all, as in 'make soak', each has all of it. */
static void run_matrix(void **state, const way *w, int first, int stride)
{
    enum { NREADERS = sizeof readers / sizeof *readers };
    const int ncases = (int)(sizeof writers / sizeof *writers) * NREADERS * NCUTTINGS;
    const char *text = getenv("CAIRN_CASES");
    const bool all = text && strcmp(text, "all") == 0;
    for (int k = all ? 0 : first; k < ncases; k += all ? 1 : stride) {
        const int from = writers[k / NCUTTINGS / NREADERS], to = readers[k / NCUTTINGS % NREADERS];
        place at;
        if (w->nodes == TWO_NODES_LOSE_ONE && (from == 1 || to == 1))
            continue; /* one node has no partner */
        place_init(&at, *state, w->settings);
        there_and_back(&at, from, to, (cutting)(k % NCUTTINGS), w);
        place_done(&at);
    }
    unsetenv("CAIRN_LEVEL_NODE_SIZE");
    unsetenv("CAIRN_LEVEL_LOCAL");
}

#define SMALL_BLOCKS "[variable]\nblock = 1K\n"

static void test_matrix_in_the_trail(void **state)
{
    const way w = {SMALL_BLOCKS "[mark]\nmode = synchronous\n", CAIRN_LEVEL_GLOBAL, IN_TRAIL};
    run_matrix(state, &w, 0, 11);
}

/* The node's storage alone has it; marks in the background. */
static void test_matrix_on_a_node(void **state)
{
    const way w = {SMALL_BLOCKS "[level]\nglobal = 0\n", CAIRN_LEVEL_LOCAL, ONE_NODE};
    run_matrix(state, &w, 2, 11);
}

static void test_matrix_from_partner_copies(void **state)
{
    const way w = {SMALL_BLOCKS "[level]\nglobal = 0\n", CAIRN_LEVEL_PARTNER, TWO_NODES_LOSE_ONE};
    run_matrix(state, &w, 31, 17);
}

static void test_matrix_from_parity(void **state)
{
    const way w = {SMALL_BLOCKS "[level]\nglobal = 0\ngroup = 2\n", CAIRN_LEVEL_ENCODED,
                   TWO_NODES_LOSE_ONE};
    run_matrix(state, &w, 27, 17);
}

static void test_matrix_from_one_hdf5_file(void **state)
{
    const way w = {SMALL_BLOCKS "[global]\nformat = hdf5\n", CAIRN_LEVEL_GLOBAL, LOSE_ALL_NODES};
    run_matrix(state, &w, 4, 19);
}

static void test_matrix_from_hdf5_files_of_ranks(void **state)
{
    const way w = {SMALL_BLOCKS "[global]\nformat = hdf5-virtual\n", CAIRN_LEVEL_GLOBAL,
                   LOSE_ALL_NODES};
    run_matrix(state, &w, 9, 19);
}

/* --- what is lost ----------------------------------------------------------------------------- */

/* Nodes of one rank each below the place's directory, none in the trail. */
static void place_on_nodes(place *at, void **state)
{
    place_init(at, *state,
               "[level]\nnode_size = 1\ngroup = 4\nlocal = @/local\nglobal = 0\n" SMALL_BLOCKS);
}

/* After a first leg on 4 ranks of 4 nodes with a level, node 1's storage is gone; others read. */
static void lose_a_node(void **state, cairn_level level, int to)
{
    place at;
    char gone[128];
    place_on_nodes(&at, state);
    write_leg(&at, 4, BLOCK, 0, level);
    assert_ok(crn_comm_barrier(at.comm));
    snprintf(gone, sizeof gone, "%s/local/node-1", at.dir);
    if (at.rank == 0)
        remove_tree(gone);
    assert_ok(crn_comm_barrier(at.comm));
    read_leg(&at, to, PENCIL, 1, 4, 3, CAIRN_LEVEL_LOCAL);
    place_done(&at);
}

static void test_lost_node_from_partner_copies(void **state)
{
    lose_a_node(state, CAIRN_LEVEL_PARTNER, 5);
}

static void test_lost_node_from_parity(void **state)
{
    lose_a_node(state, CAIRN_LEVEL_ENCODED, 8);
}

/* --- the same job goes on --------------------------------------------------------------------- */

/* A rank plays dead: its session is gone without a word to the others, and its node's storage. */
static void die(const place *at, cairn *c)
{
    char gone[128];
    crn_engine_abandon(c);
    crn_comm_abandon(c->held.comm);
    crn_comm_abandon(c->leg.engine_comm);
    c->held.comm = c->leg.engine_comm = NULL;
    crn_ckpt_free(c);
    snprintf(gone, sizeof gone, "%s/local/node-%d", at->dir, at->rank);
    remove_tree(gone);
}

/* The handler of a program whose ranks have changed: other pieces, and back to the last mark. */
static void go_on(program *p, cairn *c, MPI_Comm comm, cutting how, int nold, uint64_t step)
{
    program_done(p);
    program_init(p, comm, how, 1);
    if (cairn_reopen(c, comm) != CAIRN_OK)
        fail_msg("reopen: %s", cairn_last_error(c));
    assert_ok(cairn_probe_count(c, "list", &p->nlist));
    assert_ok(cairn_probe_cells(c, "items", p->ncells, p->cell, p->nitems));
    protect_arrays(p, c);
    protect_items(p, c);
    if (cairn_resume(c, NULL) != CAIRN_OK)
        fail_msg("resume: %s", cairn_last_error(c));
    assert_int_equal(p->step, step);
    check_field(p);
    check_items(p, nold);
}

static void take_mark(program *p, cairn *c, uint64_t step)
{
    fill(p, step);
    protect_arrays(p, c);
    protect_items(p, c);
    assert_ok(cairn_mark(c, step, CAIRN_LEVEL_PARTNER));
}

/* Of 8 ranks two are lost, then the first of those that are left, and the rest finish the job. */
static void test_survivors_go_on(void **state)
{
    place at;
    program p;
    cairn *c;
    MPI_Comm comm = MPI_COMM_WORLD;
    place_on_nodes(&at, state);
    program_init(&p, comm, BLOCK, 0);
    assert_ok(cairn_open(comm, at.config, &c));
    for (uint64_t step = 1; step <= 3; step++)
        take_mark(&p, c, step);
    assert_ok(cairn_settle(c));
    int nold = at.nranks;
    bool dead = false;
    for (int loss = 0; loss < 2; loss++) {
        MPI_Comm before = comm;
        const bool dies = !dead && (loss == 0 ? at.rank == 2 || at.rank == 5 : at.rank == 0);
        if (dies)
            die(&at, c);
        dead = dead || dies;
        assert_ok(crn_comm_barrier(at.comm)); /* the dead must be dead before the others go on */
        MPI_Comm_split(MPI_COMM_WORLD, dead ? MPI_UNDEFINED : 0, at.rank, &comm);
        if (!dead) {
            go_on(&p, c, comm, loss == 0 ? PENCIL : SLAB, nold, 3 + (uint64_t)loss);
            take_mark(&p, c, 4 + (uint64_t)loss);
            assert_ok(cairn_settle(c));
        }
        nold = loss == 0 ? 6 : 5;
        if (before != MPI_COMM_WORLD && before != MPI_COMM_NULL)
            MPI_Comm_free(&before);
    }
    if (!dead) {
        assert_ok(cairn_close(c));
        MPI_Comm_free(&comm);
    }
    program_done(&p);
    place_done(&at);
}

/* --- what is refused -------------------------------------------------------------------------- */

static int protect_rows(cairn *c, double *data, uint64_t rows, uint64_t first, uint64_t n)
{
    const uint64_t global[] = {rows, 4}, offset[] = {first, 0}, count[] = {n, 4};
    return cairn_protect_part(c, "field", data, CAIRN_FLOAT64, 2, global, offset, count);
}

/* Two rows for each rank, but one that is wrong. */
static void test_bad_pieces_are_refused(void **state)
{
    place at;
    cairn *c;
    double data[400] = {0};
    place_init(&at, *state, "[level]\nlocal = trail\n");
    const uint64_t me = (uint64_t)at.rank, rows = 2 * (uint64_t)at.nranks;
    assert_ok(cairn_open(at.mpi, at.config, &c));
    assert_ok(protect_rows(c, data, rows, 2 * me, me == 2 ? 3 : 2));
    assert_refused(c, cairn_mark(c, 1, CAIRN_AUTO), CAIRN_EINVAL,
                   "variable 'field': [6:7, 0:4] belongs to rank 2 and to rank 3");
    assert_ok(protect_rows(c, data, rows, 2 * me, me == 2 ? 1 : 2));
    assert_refused(c, cairn_mark(c, 1, CAIRN_AUTO), CAIRN_EINVAL,
                   "variable 'field': [5:6, 0:4] of [0:16, 0:4] belongs to no rank; beside it are "
                   "ranks 2 and 3");
    assert_ok(protect_rows(c, data, rows + (me == 5), 2 * me, 2));
    assert_refused(c, cairn_mark(c, 1, CAIRN_AUTO), CAIRN_EINVAL,
                   "is float64[2 x 4 of 16 x 4 at 0 x 0] on rank 0, but float64[2 x 4 of 17 x 4 at "
                   "10 x 0] on rank 5");
    assert_ok(protect_rows(c, data, rows, 2 * me, 2)); /* as it should be */
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    if (me == 5) {
        const uint64_t global[] = {rows, 4}, offset[] = {2 * me, 0}, count[] = {2, 4};
        assert_ok(cairn_protect_part(c, "field", data, CAIRN_INT64, 2, global, offset, count));
    }
    assert_refused(c, cairn_mark(c, 2, CAIRN_AUTO), CAIRN_EINVAL, "is float64[2 x 4 of 16 x 4");
    assert_ok(protect_rows(c, data, rows, 0, rows)); /* all of it on all ranks */
    assert_ok(cairn_mark(c, 2, CAIRN_AUTO));
    assert_ok(cairn_close(c));
    place_done(&at);
}

/* A piece, items in cells and a list are each something else on rank 5. */
static void test_different_layouts_are_refused(void **state)
{
    place at;
    cairn *c;
    double data[400] = {0};
    place_init(&at, *state, "[level]\nlocal = trail\n");
    const bool odd = at.rank == 5;
    const uint64_t rows = 2 * (uint64_t)at.nranks, cell = (uint64_t)at.rank, none = 0;
    assert_ok(cairn_open(at.mpi, at.config, &c));
    assert_ok(odd ? cairn_protect(c, "field", data, CAIRN_FLOAT64, 8)
                  : protect_rows(c, data, rows, 0, at.rank == 0 ? rows : 0));
    assert_refused(c, cairn_mark(c, 1, CAIRN_AUTO), CAIRN_EINVAL,
                   "variable 'field' is the rank's own on rank 5, but a piece of a global array on "
                   "rank 0");
    assert_ok(odd ? cairn_protect_list(c, "field", data, CAIRN_FLOAT64, 8)
                  : protect_rows(c, data, rows, 0, at.rank == 0 ? rows : 0));
    assert_refused(c, cairn_mark(c, 1, CAIRN_AUTO), CAIRN_EINVAL,
                   "is a piece of a global array on rank 0, but a list on rank 5");
    assert_ok(odd ? cairn_protect(c, "field", data, CAIRN_FLOAT64, 8)
                  : cairn_protect_list(c, "field", data, CAIRN_FLOAT64, 8));
    assert_refused(c, cairn_mark(c, 1, CAIRN_AUTO), CAIRN_EINVAL,
                   "is the rank's own on rank 5, but a list on rank 0");
    assert_ok(odd ? cairn_protect(c, "field", data, CAIRN_FLOAT64, 8)
                  : cairn_protect_ragged(c, "field", data, CAIRN_FLOAT64, rows, 1, &cell, &none));
    assert_refused(c, cairn_mark(c, 1, CAIRN_AUTO), CAIRN_EINVAL,
                   "is the rank's own on rank 5, but in cells on rank 0");
    assert_ok(cairn_protect(c, "field", data, CAIRN_FLOAT64, 8)); /* as it should be */
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    assert_ok(cairn_close(c));
    place_done(&at);
}

static void test_bad_cells_are_refused(void **state)
{
    place at;
    cairn *c;
    uint64_t cell[2], nitems[2] = {0, 0}, item;
    place_init(&at, *state, "[level]\nlocal = trail\n");
    const uint64_t me = (uint64_t)at.rank, n = 2 * (uint64_t)at.nranks;
    assert_ok(cairn_open(at.mpi, at.config, &c));
    cell[0] = 2 * me;
    cell[1] = 2 * me + (me == 3 ? 2 : 1);
    assert_ok(cairn_protect_ragged(c, "p", &item, CAIRN_UINT64, n, 2, cell, nitems));
    assert_refused(c, cairn_mark(c, 1, CAIRN_AUTO), CAIRN_EINVAL,
                   "variable 'p': cell 7 of 16 belongs to no rank");
    assert_ok(cairn_protect_ragged(c, "p", &item, CAIRN_UINT64, n, me == 3 ? 1 : 2, cell, nitems));
    assert_refused(c, cairn_mark(c, 1, CAIRN_AUTO), CAIRN_EINVAL,
                   "variable 'p': cell 7 of 16 belongs to no rank");
    cell[1] = 2 * me + 1;
    assert_ok(cairn_protect_ragged(c, "p", &item, CAIRN_UINT64, n + (me == 6), 2, cell, nitems));
    assert_refused(c, cairn_mark(c, 1, CAIRN_AUTO), CAIRN_EINVAL,
                   "has 16 cells on rank 0 and 17 on rank 6");
    cell[0] = me == 4 ? 7 : 2 * me;
    assert_ok(cairn_protect_ragged(c, "p", &item, CAIRN_UINT64, n, 2, cell, nitems));
    assert_refused(c, cairn_mark(c, 1, CAIRN_AUTO), CAIRN_EINVAL,
                   "variable 'p': cell 7 belongs to rank 3 and to rank 4");
    assert_ok(cairn_close(c));
    place_done(&at);
}

/* What has no place, and is not the same everywhere, has nowhere to come back to. */
static void test_own_variables_need_as_many_ranks(void **state)
{
    place at;
    cairn *c;
    uint64_t mine, small[2] = {1, 2};
    place_init(&at, *state, "[level]\nlocal = trail\n");
    mine = (uint64_t)at.rank / 2;
    assert_ok(cairn_open(at.mpi, at.config, &c));
    assert_ok(cairn_protect(c, "mine", &mine, CAIRN_UINT64, 1));
    assert_ok(cairn_protect(c, "same", small, CAIRN_UINT64, 2));
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    leave_session(c);
    MPI_Comm comm = first_ranks(&at, 3);
    if (comm != MPI_COMM_NULL) {
        assert_ok(cairn_open(comm, at.config, &c));
        assert_ok(cairn_protect(c, "same", small, CAIRN_UINT64, 1));
        assert_ok(cairn_protect(c, "mine", &mine, CAIRN_UINT64, 1));
        assert_refused(c, cairn_resume(c, NULL), CAIRN_EMISMATCH,
                       "'same' is uint64[1], but in mark 1 it is uint64[2] on rank");
        assert_ok(cairn_protect(c, "same", small, CAIRN_UINT64, 2));
        assert_refused(
            c, cairn_resume(c, NULL), CAIRN_EMISMATCH,
            "variable 'mine' has no place in a global array, and ranks 0 and 2 of mark 1 "
            "have different ones: it cannot come back on 3 ranks");
        assert_ok(cairn_release(c, "mine"));
        assert_refused(c, cairn_resume(c, NULL), CAIRN_EMISMATCH,
                       "has a variable 'mine' that is not protected");
        assert_ok(cairn_close(c));
        leave_comm(&comm);
    }
    place_done(&at);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_pieces_are_refused),
        cmocka_unit_test(test_different_layouts_are_refused),
        cmocka_unit_test(test_bad_cells_are_refused),
        cmocka_unit_test(test_own_variables_need_as_many_ranks),
        cmocka_unit_test(test_lost_node_from_partner_copies),
        cmocka_unit_test(test_lost_node_from_parity),
        cmocka_unit_test(test_survivors_go_on),
        cmocka_unit_test(test_matrix_in_the_trail),
        cmocka_unit_test(test_matrix_on_a_node),
        cmocka_unit_test(test_matrix_from_partner_copies),
        cmocka_unit_test(test_matrix_from_parity),
        cmocka_unit_test(test_matrix_from_one_hdf5_file),
        cmocka_unit_test(test_matrix_from_hdf5_files_of_ranks),
    };
    return run_mpi_tests(argc, argv, tests);
}
