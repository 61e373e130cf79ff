/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Restarts drawn at random against plain arrays that every rank has in memory: variables of all
 * layouts, of numbers and structures, in pieces of 1 to 8 dimensions, change a little from mark to
 * mark; then other ranks come back, in other pieces, after nodes were lost. CAIRN_SEED draws other
 * cases, CAIRN_CASES more of them.
 *
 * TEST: ranks 5
 * NEEDS: inih random123
 */
#include "ckpt/ckpt_session.h"
#include "harness/session.h"

enum {
    RANKS_MAX = 5,
    NVARS = 8,
    NCASES = 12,
    NLEGS = 3,
    SLOTS_MAX = 40,
    SLOT_ITEMS = 30,
    UNTOUCHED = 0xee
};

static unsigned long case_number; /* for messages */

#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("case %lu of seed %llu: %s", case_number, (unsigned long long)test_seed(),    \
                     #condition);                                                                  \
    } while (0)

#define need_ok(c, expr)                                                                           \
    do {                                                                                           \
        if ((expr) != CAIRN_OK)                                                                    \
            fail_msg("case %lu of seed %llu: %s: %s", case_number,                                 \
                     (unsigned long long)test_seed(), #expr, cairn_last_error(c));                 \
    } while (0)

static bool chance(crn_rng *rng, uint64_t one_of)
{
    return crn_rng_below(rng, one_of) == 0;
}

static void scramble(crn_rng *rng, unsigned char *data, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i += sizeof(uint64_t)) {
        const uint64_t word = crn_rng_u64(rng);
        memcpy(data + i, &word, CRN_MIN(nbytes - i, sizeof word));
    }
}

/* --- variables ------------------------------------------------------------------------------ */

typedef enum kind { PIECES, COPIES, CELLS, LIST, SAME, NKINDS } kind;

/* A variable of all ranks together, as every rank knows it: what a restart must give. */
typedef struct whole {
    char name[32];
    kind kind;
    uint64_t type_seed;
    uint32_t item;
    uint32_t ndims;
    uint64_t global[CRN_DIMS_MAX];
    uint64_t n; /* elements of an array; cells and lists have slots of SLOT_ITEMS */
    unsigned char *data;
    size_t nslots;              /* cells, or ranks */
    uint64_t nitems[SLOTS_MAX]; /* in each slot */
} whole;

static const cairn_type scalars[] = {CAIRN_BYTES,  CAIRN_INT16,   CAIRN_UINT32,
                                     CAIRN_UINT64, CAIRN_FLOAT32, CAIRN_FLOAT64};

/* The type that a stream of numbers stands for: a number, or a structure with gaps, arrays and
 * structures in it. Without a session only its size is told. */
static cairn_type draw_type(cairn *c, crn_rng *rng, int depth, uint32_t *ret_bytes)
{
    enum { MEMBERS = 4 };
    char name[MEMBERS][8];
    cairn_member member[MEMBERS];
    cairn_type type = scalars[crn_rng_below(rng, sizeof scalars / sizeof *scalars)];
    *ret_bytes = (uint32_t)cairn_type_bytes(type);
    if (depth > 1 || !chance(rng, 3))
        return type;
    const size_t n = 1 + crn_rng_below(rng, MEMBERS);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t item;
        type = draw_type(c, rng, depth + 1, &item);
        at += crn_rng_below(rng, 5);
        snprintf(name[i], sizeof name[i], "m%zu", i);
        member[i] = (cairn_member){name[i], at, item * (1 + crn_rng_below(rng, 3)), type};
        at += member[i].nbytes;
    }
    at += crn_rng_below(rng, 4);
    *ret_bytes = (uint32_t)at;
    if (c)
        need_ok(c, cairn_define_type(c, at, member, n, &type));
    return type;
}

static cairn_type type_of(cairn *c, const whole *w)
{
    crn_rng rng = crn_rng_of(w->type_seed, 0);
    uint32_t nbytes;
    return draw_type(c, &rng, 0, &nbytes);
}

/* A few hundred elements at most; sometimes none. */
static void draw_shape(whole *w, crn_rng *rng)
{
    static const uint64_t most[] = {0, 700, 30, 10, 6, 4, 3, 3, 3};
    w->ndims = 1 + (uint32_t)crn_rng_below(rng, CRN_DIMS_MAX);
    w->n = 1;
    for (uint32_t d = 0; d < w->ndims; d++) {
        w->global[d] = chance(rng, 60) ? 0 : 1 + crn_rng_below(rng, most[w->ndims]);
        w->n *= w->global[d];
    }
}

/* Lists are short enough for one rank to take all of them. */
static void draw_items(whole *w, crn_rng *rng)
{
    const uint64_t bound = w->kind == LIST ? SLOT_ITEMS / RANKS_MAX : SLOT_ITEMS;
    for (size_t s = 0; s < w->nslots; s++)
        w->nitems[s] = chance(rng, 4) ? 0 : crn_rng_below(rng, bound);
}

static void whole_init(whole *w, crn_rng *rng, size_t number, int nranks)
{
    memset(w, 0, sizeof *w);
    snprintf(w->name, sizeof w->name, "%sv%zu", number % 2 ? "group/" : "", number);
    w->kind = number < NKINDS ? (kind)number : PIECES; /* of pieces there are more */
    w->type_seed = crn_rng_u64(rng);
    crn_rng types = crn_rng_of(w->type_seed, 0);
    (void)draw_type(NULL, &types, 0, &w->item);
    if (w->kind == PIECES || w->kind == COPIES)
        draw_shape(w, rng);
    else if (w->kind == SAME)
        w->n = crn_rng_below(rng, 300);
    else
        w->nslots = w->kind == LIST ? (size_t)nranks : 1 + crn_rng_below(rng, SLOTS_MAX);
    draw_items(w, rng);
    const size_t nbytes = CRN_MAX(w->n, (uint64_t)SLOTS_MAX * SLOT_ITEMS) * w->item;
    w->data = malloc(nbytes);
    need(w->data);
    scramble(rng, w->data, nbytes);
}

static unsigned char *slot_of(const whole *w, size_t s)
{
    return w->data + s * SLOT_ITEMS * w->item;
}

/* A few elements get other values; items come and go. */
static void whole_change(whole *w, crn_rng *rng)
{
    const uint64_t n = CRN_MAX(w->n, (uint64_t)w->nslots * SLOT_ITEMS);
    for (uint64_t k = crn_rng_below(rng, n / 8 + 2); n > 0 && k > 0; k--)
        scramble(rng, w->data + crn_rng_below(rng, n) * w->item, w->item);
    if (chance(rng, 2))
        draw_items(w, rng);
}

/* As many ranks go on as there were, or the list is cut anew: an equal share for each. */
static void deal_list(whole *w, size_t nranks)
{
    if (w->kind != LIST || w->nslots == nranks)
        return;
    unsigned char *all = malloc((size_t)RANKS_MAX * SLOT_ITEMS * w->item), *at = all;
    size_t n = 0;
    need(all);
    for (size_t s = 0; s < w->nslots; s++) {
        memcpy(all + n * w->item, slot_of(w, s), w->nitems[s] * w->item);
        n += w->nitems[s];
    }
    w->nslots = nranks;
    for (size_t s = 0; s < nranks; s++) {
        w->nitems[s] = n / nranks + (s < n % nranks);
        memcpy(slot_of(w, s), at, w->nitems[s] * w->item);
        at += w->nitems[s] * w->item;
    }
    free(all);
}

/* --- a rank's share ------------------------------------------------------------------------- */

typedef struct share {
    cairn_piece piece;
    bool empty; /* the piece */
    size_t ncells;
    uint64_t cell[SLOTS_MAX], nitems[SLOTS_MAX];
    unsigned char *memory;
    uint64_t n; /* elements in it */
} share;

/* Cut the array across at random into as many boxes as there are ranks, or fewer. */
static size_t cut_up(const whole *w, crn_rng *rng, size_t nranks, crn_box box[RANKS_MAX])
{
    const size_t wanted = 1 + crn_rng_below(rng, nranks);
    size_t n = 1;
    box[0] = crn_box_of(w->ndims, NULL, w->global);
    for (int tries = 0; n < wanted && tries < 60; tries++) {
        crn_box *b = &box[crn_rng_below(rng, n)];
        const uint32_t d = (uint32_t)crn_rng_below(rng, w->ndims);
        if (b->hi[d] < b->lo[d] + 2)
            continue;
        box[n] = *b;
        box[n].lo[d] += 1 + crn_rng_below(rng, b->hi[d] - b->lo[d] - 1);
        b->hi[d] = box[n++].lo[d];
    }
    return n;
}

/* Every rank draws for all ranks, so that all draw the same. */
static void draw_piece(const whole *w, crn_rng *rng, size_t nranks, size_t rank, share *s)
{
    crn_box box[RANKS_MAX];
    const size_t n = cut_up(w, rng, nranks, box), turn = crn_rng_below(rng, nranks);
    s->piece = (cairn_piece){.struct_bytes = sizeof s->piece, .ndims = (int)w->ndims};
    memcpy(s->piece.global, w->global, sizeof w->global);
    const crn_box *mine = (rank + turn) % nranks < n ? &box[(rank + turn) % nranks] : NULL;
    s->empty = !mine || crn_box_volume(mine) == 0;
    for (uint32_t d = 0; d < w->ndims; d++) {
        s->piece.offset[d] = mine ? mine->lo[d] : 0;
        s->piece.count[d] = mine ? mine->hi[d] - mine->lo[d] : 0;
    }
    const bool around = chance(rng, 2) && w->ndims < 5; /* memory grows with the dimensions */
    s->piece.halo = chance(rng, 2);
    s->n = 1;
    for (uint32_t d = 0; d < w->ndims; d++) {
        const uint64_t before = crn_rng_below(rng, 3), after = crn_rng_below(rng, 3);
        s->piece.before[d] = around ? before : 0;
        s->piece.after[d] = around ? after : 0;
        s->n *= s->piece.before[d] + s->piece.count[d] + s->piece.after[d];
    }
}

static void draw_cells(const whole *w, crn_rng *rng, size_t nranks, size_t rank, share *s)
{
    const uint64_t how = crn_rng_below(rng, 3);
    for (size_t i = 0; i < w->nslots; i++) {
        const size_t anyone = crn_rng_below(rng, nranks);
        const size_t owner = how == 0 ? anyone : how == 1 ? i % nranks : i * nranks / w->nslots;
        if (owner != rank)
            continue;
        s->cell[s->ncells] = i;
        s->nitems[s->ncells++] = w->nitems[i];
        s->n += w->nitems[i];
    }
}

static void share_init(share *s, const whole *w, crn_rng *rng, size_t nranks, size_t rank)
{
    memset(s, 0, sizeof *s);
    if (w->kind == PIECES)
        draw_piece(w, rng, nranks, rank, s);
    else if (w->kind == CELLS)
        draw_cells(w, rng, nranks, rank, s);
    else
        s->n = w->kind == LIST ? w->nitems[rank] : w->n;
    s->memory = malloc(s->n * w->item + 1);
    need(s->memory);
    memset(s->memory, UNTOUCHED, s->n * w->item);
}

/* Where element i of a piece's memory lies in the array; *ret_own: in the piece. False: outside. */
static bool find_place(const share *s, uint64_t i, uint64_t *ret, bool *ret_own)
{
    const cairn_piece *p = &s->piece;
    uint64_t stride = 1;
    *ret = 0;
    *ret_own = !s->empty;
    for (int d = p->ndims; d-- > 0;) {
        const uint64_t extent = p->before[d] + p->count[d] + p->after[d], at = i % extent;
        const uint64_t index = p->offset[d] + at - p->before[d]; /* below 0 is far above */
        *ret_own = *ret_own && at >= p->before[d] && at < p->before[d] + p->count[d];
        if (index >= p->global[d])
            return false;
        *ret += index * stride;
        stride *= p->global[d];
        i /= extent;
    }
    return true;
}

/* Let use see each element of the share that is to be as in the whole, and its place there. */
typedef bool element_fn(unsigned char *here, unsigned char *there, size_t nbytes);

static bool put(unsigned char *here, unsigned char *there, size_t nbytes)
{
    memcpy(here, there, nbytes);
    return true;
}

static bool compare(unsigned char *here, unsigned char *there, size_t nbytes)
{
    for (size_t i = 0; !there && i < nbytes; i++)
        if (here[i] != UNTOUCHED)
            return false;
    return !there || memcmp(here, there, nbytes) == 0;
}

/* Elements of memory around a piece: what is there stays, unless it is asked for. */
static bool each_of_piece(const share *s, const whole *w, bool around, element_fn *use)
{
    for (uint64_t i = 0; i < s->n; i++) {
        uint64_t index;
        bool own;
        const bool inside = find_place(s, i, &index, &own);
        const bool comes = inside && (own || (around && s->piece.halo && !s->empty));
        if (!comes && use == put)
            continue;
        if (!use(s->memory + i * w->item, comes ? w->data + index * w->item : NULL, w->item))
            return false;
    }
    return true;
}

static bool each_element(const share *s, const whole *w, size_t rank, bool around, element_fn *use)
{
    unsigned char *at = s->memory;
    if (w->kind == PIECES)
        return each_of_piece(s, w, around, use);
    if (w->kind == LIST)
        return use(at, slot_of(w, rank), s->n * w->item);
    if (w->kind != CELLS)
        return use(at, w->data, s->n * w->item);
    for (size_t i = 0; i < s->ncells; i++) {
        const size_t nbytes = s->nitems[i] * w->item;
        if (!use(at, slot_of(w, s->cell[i]), nbytes))
            return false;
        at += nbytes;
    }
    return true;
}

static void protect(cairn *c, const whole *w, share *s)
{
    const cairn_type type = type_of(c, w);
    const uint64_t zero[CRN_DIMS_MAX] = {0};
    const int ndims = (int)w->ndims;
    if (w->kind == PIECES)
        need_ok(c, cairn_protect_piece(c, w->name, s->memory, type, &s->piece));
    else if (w->kind == COPIES)
        need_ok(c,
                cairn_protect_part(c, w->name, s->memory, type, ndims, w->global, zero, w->global));
    else if (w->kind == CELLS)
        need_ok(c, cairn_protect_ragged(c, w->name, s->memory, type, w->nslots, s->ncells, s->cell,
                                        s->nitems));
    else if (w->kind == LIST)
        need_ok(c, cairn_protect_list(c, w->name, s->memory, type, s->n));
    else
        need_ok(c, cairn_protect(c, w->name, s->memory, type, s->n));
}

/* --- a case --------------------------------------------------------------------------------- */

/* Where marks go, and what is lost between legs. */
typedef enum loss { NOTHING_LOST, A_NODE_OF_PARTNERS, A_NODE_OF_GROUPS, ALL_NODES, NLOSSES } loss;

typedef struct world {
    place at;
    crn_rng rng; /* drawn from by all ranks alike */
    loss loss;
    int nranks; /* of the leg */
    whole var[NVARS];
    share share[NVARS];
    uint64_t version;
} world;

static void configure(world *w, crn_comm *comm)
{
    static const char *const format[] = {"parts", "hdf5", "hdf5-virtual"};
    const uint64_t form = case_number / NLOSSES % 3, mode = crn_rng_below(&w->rng, 2);
    char settings[512];
    const bool in_trail = w->loss == NOTHING_LOST && chance(&w->rng, 3);
    snprintf(settings, sizeof settings,
             "[level]\npartner = 0\nglobal = 0\ngroup = 3\nlocal = %s\nnode_size = %d\n"
             "[variable]\nblock = %s\n[mark]\nmode = %s\n[global]\nformat = %s\n",
             in_trail ? "trail" : "@/local", w->loss == NOTHING_LOST ? RANKS_MAX : 1,
             form == 0 ? "1K" : "4K", mode ? "background" : "synchronous",
             format[w->loss == ALL_NODES ? form : 0]);
    place_init(&w->at, comm, settings);
}

static cairn_level level_of(const world *w)
{
    static const cairn_level level[NLOSSES] = {CAIRN_LEVEL_LOCAL, CAIRN_LEVEL_PARTNER,
                                               CAIRN_LEVEL_ENCODED, CAIRN_LEVEL_GLOBAL};
    return level[w->loss];
}

/* Ranks of the next leg. With a node of its own for each rank, one of nodes may be lost, and nodes
 * beyond those of the next leg are. */
static int draw_ranks(world *w, bool first)
{
    const bool nodes = w->loss == A_NODE_OF_PARTNERS || w->loss == A_NODE_OF_GROUPS;
    const int least = !nodes ? 1 : first ? 3 : CRN_MAX(w->nranks - 1, 3);
    const uint64_t room = RANKS_MAX + 1 - (uint64_t)least;
    return least + (int)crn_rng_below(&w->rng, room);
}

static void lose(world *w, int nnext)
{
    char gone[128];
    const uint64_t which = crn_rng_below(&w->rng, (uint64_t)w->nranks);
    assert_ok(crn_comm_barrier(w->at.comm));
    snprintf(gone, sizeof gone, "%s/local/node-%d", w->at.dir, (int)which);
    if (w->loss == ALL_NODES)
        snprintf(gone, sizeof gone, "%s/local", w->at.dir);
    const bool one_is = w->loss != ALL_NODES && nnext < w->nranks; /* that of the last rank */
    if (w->at.rank == 0 && w->loss != NOTHING_LOST && !one_is)
        remove_tree(gone);
    assert_ok(crn_comm_barrier(w->at.comm));
}

static void deal(world *w, int v)
{
    free(w->share[v].memory);
    share_init(&w->share[v], &w->var[v], &w->rng, (size_t)w->nranks, (size_t)w->at.rank);
}

static void resume(world *w, cairn *c)
{
    uint64_t version = 0, nitems[SLOTS_MAX];
    size_t n;
    for (int v = 0; v < NVARS; v++) {
        const whole *all = &w->var[v];
        const share *s = &w->share[v];
        if (all->kind == CELLS) {
            need_ok(c, cairn_probe_cells(c, all->name, s->ncells, s->cell, nitems));
            need(memcmp(nitems, s->nitems, s->ncells * sizeof *nitems) == 0);
        } else if (all->kind == LIST) {
            need_ok(c, cairn_probe_count(c, all->name, &n));
            need(n == s->n);
        }
    }
    need_ok(c, cairn_resume(c, &version));
    need(version == w->version);
    for (int v = 0; v < NVARS; v++)
        need(each_element(&w->share[v], &w->var[v], (size_t)w->at.rank, true, compare));
}

/* Some of the state changes, and who has which of it may. */
static void mark(world *w, cairn *c)
{
    for (int v = 0; v < NVARS; v++) {
        whole_change(&w->var[v], &w->rng);
        const bool anew = chance(&w->rng, 4);
        if (anew || w->var[v].nslots > 0) /* of which there may be others now */
            deal(w, v);
    }
    w->version += 1 + crn_rng_below(&w->rng, 3);
    if (!c)
        return;
    for (int v = 0; v < NVARS; v++) {
        (void)each_element(&w->share[v], &w->var[v], (size_t)w->at.rank, true, put);
        protect(c, &w->var[v], &w->share[v]);
    }
    need_ok(c, cairn_mark(c, w->version, level_of(w)));
}

/* Ranks that are not in the leg draw along, so that all stay in step. */
static void play_leg(world *w, bool first)
{
    MPI_Comm comm;
    cairn *c = NULL;
    const bool in = w->at.rank < w->nranks;
    MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : MPI_UNDEFINED, w->at.rank, &comm);
    for (int v = 0; v < NVARS; v++) {
        deal_list(&w->var[v], (size_t)w->nranks);
        deal(w, v);
    }
    if (in) {
        need_ok(NULL, cairn_open(comm, w->at.config, &c));
        for (int v = 0; v < NVARS; v++)
            protect(c, &w->var[v], &w->share[v]);
        if (!first)
            resume(w, c);
    }
    for (uint64_t n = 1 + crn_rng_below(&w->rng, 3); n > 0; n--)
        mark(w, c);
    if (in) {
        need_ok(c, cairn_settle(c));
        leave_session(c);
        MPI_Comm_free(&comm);
    }
}

static void play_case(crn_comm *comm, uint64_t number)
{
    static world w;
    memset(&w, 0, sizeof w);
    w.rng = crn_rng_of(test_seed(), number);
    w.loss = (loss)(number % NLOSSES);
    configure(&w, comm);
    w.nranks = draw_ranks(&w, true);
    for (size_t v = 0; v < NVARS; v++)
        whole_init(&w.var[v], &w.rng, v, w.nranks);
    for (int leg = 0; leg < NLEGS; leg++) {
        play_leg(&w, leg == 0);
        const int next = draw_ranks(&w, false);
        lose(&w, next);
        w.nranks = next;
    }
    for (int v = 0; v < NVARS; v++) {
        free(w.var[v].data);
        free(w.share[v].memory);
    }
    place_done(&w.at);
}

static void test_restarts_give_what_plain_arrays_have(void **state)
{
    const char *text = getenv("CAIRN_CASES");
    const unsigned long n = text ? strtoul(text, NULL, 10) : NCASES;
    for (case_number = 0; case_number < n; case_number++)
        play_case(*state, case_number);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restarts_give_what_plain_arrays_have),
    };
    return run_mpi_tests(argc, argv, tests);
}
