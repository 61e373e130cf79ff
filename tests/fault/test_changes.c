/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sessions against a plain model: random writes, growth, shrinkage, moves, releases, marks,
 * cancelled marks, failing disks, crashes and resumes, with the kernel tracking writes. What step n
 * of the program does follows from the seed and n alone, so that the model of any mark is made by
 * taking the steps again. Every mark that counts is read back and compared, and every resume.
 *
 * NEEDS: inih random123
 */
#include "harness/harness.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include <cairn/cairn.h>

#include "ckpt/ckpt_session.h"
#include "io/io_fault.h"

enum { NVARS = 4, ROOM = 48 << 10, NSTEPS = 10, LEGS = 2, SEQUENCES = 2000 };

typedef struct piece {
    unsigned char *map, *data; /* data lies anywhere in map */
    size_t nbytes;             /* 0: not protected */
} piece;

typedef struct program {
    uint64_t seed, step;
    piece var[NVARS];
} program;

static char name_of[NVARS][8];
static char scratch[64], config[96];
static bool can_track;

/* In a child: cmocka's own assertions would go on as if they were the parent. */
#define must(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            go_wrong(__LINE__, #cond);                                                             \
    } while (0)

enum { LEG_END = 0, LEG_TRACKED = 1, LEG_WRONG = 2 };

static cairn *session;

static void go_wrong(int line, const char *what)
{
    fprintf(stderr, "line %d: not %s (%s)\n", line, what, cairn_last_error(session));
    _exit(LEG_WRONG);
}

/* --- the program -------------------------------------------------------------------------- */

static unsigned char *map_room(void)
{
    unsigned char *at =
        mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(at != MAP_FAILED);
    return at;
}

static void program_init(program *p, uint64_t seed)
{
    *p = (program){.seed = seed};
    for (int i = 0; i < NVARS; i++) {
        p->var[i].map = p->var[i].data = map_room();
        p->var[i].nbytes = (size_t)ROOM >> i;
        memset(p->var[i].data, i, ROOM);
    }
}

static void program_done(program *p)
{
    for (int i = 0; i < NVARS; i++)
        munmap(p->var[i].map, 2 * ROOM);
}

/* The same bytes elsewhere, or in the same place but mapped anew. */
static void move(piece *v, crn_rng *rng)
{
    unsigned char *to = map_room();
    const size_t off = crn_rng_below(rng, 3) * 1000 * 4;
    memcpy(to + off, v->data, ROOM);
    munmap(v->map, 2 * ROOM);
    if (crn_rng_below(rng, 3) == 0) {
        void *back = mmap(v->map, 2 * ROOM, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (back == v->map) {
            memcpy(v->map + off, to + off, ROOM);
            munmap(to, 2 * ROOM);
            to = v->map;
        } else if (back != MAP_FAILED) {
            munmap(back, 2 * ROOM);
        }
    }
    v->map = to;
    v->data = to + off;
}

static void empty_pages(piece *v, crn_rng *rng)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t first = crn_rng_below(rng, ROOM / page / 2);
    unsigned char *at = v->data + CRN_ROUND_UP((uintptr_t)v->data, page) - (uintptr_t)v->data;
    must((madvise(at + first * page, 2 * page, MADV_DONTNEED)) == (0));
}

static void write_some(piece *v, crn_rng *rng)
{
    for (uint64_t n = crn_rng_below(rng, 4); n > 0; n--) {
        const size_t at = crn_rng_below(rng, ROOM);
        const size_t len = 1 + crn_rng_below(rng, CRN_MIN((size_t)ROOM - at, (size_t)6000));
        const int value = (int)crn_rng_below(rng, 4); /* often what is there already */
        memset(v->data + at, value, len);
    }
}

/* One step; takes the same bytes to the same bytes wherever they lie. */
static void program_step(program *p)
{
    crn_rng rng = crn_rng_of(p->seed, ++p->step);
    for (int i = 0; i < NVARS; i++) {
        piece *v = &p->var[i];
        switch (crn_rng_below(&rng, 10)) {
        case 0:
            move(v, &rng);
            break;
        case 1:
            v->nbytes = crn_rng_below(&rng, 4) == 0 ? 0 : crn_rng_below(&rng, ROOM);
            break;
        case 2:
            empty_pages(v, &rng);
            break;
        case 3:
            memset(v->data, (int)crn_rng_below(&rng, 3), ROOM);
            break;
        case 4:
        case 5:
            break;
        default:
            write_some(v, &rng);
        }
    }
}

/* --- marks -------------------------------------------------------------------------------- */

static void protect(const program *p, cairn *c)
{
    for (int i = 0; i < NVARS; i++) {
        if (p->var[i].nbytes > 0)
            must(cairn_protect(c, name_of[i], p->var[i].data, CAIRN_UINT8, p->var[i].nbytes) ==
                 CAIRN_OK);
        else if (crn_ckpt_find(c, name_of[i]))
            must(cairn_release(c, name_of[i]) == CAIRN_OK);
    }
}

/* Read a mark that counts past the session: it must be what memory is now. */
static void check_mark(const program *p, cairn *c, uint64_t version)
{
    crn_part *part;
    crn_mark *m;
    crn_part_options opt = {CRN_IO_AUTO, 4, false};
    static unsigned char got[ROOM];
    must(crn_run_part(c->held.run, c->held.series, 0, 1, false, &opt, &part) == CAIRN_OK);
    must(crn_part_load(part, version, &m) == CAIRN_OK);
    for (int i = 0; i < NVARS; i++) {
        crn_var *v = crn_mark_find(m, name_of[i]);
        must((v != NULL) == (p->var[i].nbytes > 0));
        if (!v)
            continue;
        must((v->spec.nbytes) == (p->var[i].nbytes));
        must(crn_mark_read(part, m, v, 0, v->nblocks, got, NULL) == CAIRN_OK);
        if (memcmp(got, p->var[i].data, p->var[i].nbytes) != 0)
            go_wrong(__LINE__, "what the program has");
    }
    crn_mark_free(m);
    crn_part_close(part);
}

/* A mark on a disk that may fail. Does it count? */
static bool mark(program *p, cairn *c, crn_rng *dice)
{
    crn_fault fault = {CRN_FAULT_ANY, CRN_FAULT_EIO, 1 + crn_rng_below(dice, 24), 1};
    const bool fails = crn_rng_below(dice, 4) == 0;
    if (fails)
        crn_fault_arm(&fault);
    const int taken = cairn_mark(c, p->step, CAIRN_AUTO), settled = cairn_settle(c);
    crn_fault_arm(NULL);
    if (!fails) {
        must(taken == CAIRN_OK);
        must(settled == CAIRN_OK);
    }
    return taken == CAIRN_OK && settled == CAIRN_OK;
}

static void cancel(program *p, cairn *c, crn_rng *dice)
{
    must(cairn_begin(c, p->step, CAIRN_AUTO) == CAIRN_OK);
    for (int i = 0; i < NVARS; i++)
        if (p->var[i].nbytes > 0 && crn_rng_below(dice, 2) == 0)
            must(cairn_capture(c, name_of[i]) == CAIRN_OK);
    must(cairn_cancel(c) == CAIRN_OK);
}

static void step_to(program *p, uint64_t version)
{
    while (p->step < version)
        program_step(p);
}

/* Let the mark say what memory was; of the model, only what lies beyond is taken. */
static void compare(program *p, uint64_t version)
{
    program model;
    program_init(&model, p->seed);
    step_to(&model, version);
    for (int i = 0; i < NVARS; i++) {
        if (memcmp(p->var[i].data, model.var[i].data, p->var[i].nbytes) != 0)
            go_wrong(__LINE__, "what the model has");
        memcpy(p->var[i].data, model.var[i].data, ROOM);
    }
    program_done(&model);
}

/* As programs do whose variables change their sizes: probe, allocate, protect, resume. A mark whose
 * manifest was written when the disk failed turns out to be none, and the one before it is told. */
static void come_back(program *p, cairn *c)
{
    uint64_t version = 0;
    int rc;
    do {
        const int found = cairn_probe(c, &version);
        must(found == CAIRN_OK || found == CAIRN_NOTHING);
        program_done(p);
        program_init(p, p->seed);
        step_to(p, found == CAIRN_OK ? version : 0);
        protect(p, c);
        if (found == CAIRN_NOTHING)
            return;
        for (int i = 0; i < NVARS; i++)
            memset(p->var[i].data, 0xee, p->var[i].nbytes);
        rc = cairn_resume_at(c, version);
        must(rc == CAIRN_OK || rc == CAIRN_ENOTFOUND);
    } while (rc != CAIRN_OK);
    compare(p, version);
}

static bool has_tracked(const cairn *c)
{
    for (size_t i = 0; i < c->tally.n; i++)
        if (c->tally.at[i].tracked && c->tally.at[i].hashed < c->tally.at[i].nbytes)
            return true;
    return false;
}

/* One life of the program, which ends as processes do: at some step, or within a mark. */
static int leg(uint64_t seed, int number)
{
    program p;
    crn_rng dice = crn_rng_of(seed, 1000 + (uint64_t)number);
    const uint64_t last = crn_rng_below(&dice, NSTEPS);
    bool tracked = false;
    program_init(&p, seed);
    must(cairn_open(MPI_COMM_SELF, config, &session) == CAIRN_OK);
    cairn *c = session;
    come_back(&p, c);
    for (uint64_t n = 0; n < last; n++) {
        program_step(&p);
        protect(&p, c);
        const uint64_t what = crn_rng_below(&dice, 8);
        if (what == 0)
            cancel(&p, c, &dice);
        else if (what > 1 && mark(&p, c, &dice))
            check_mark(&p, c, p.step);
        tracked = tracked || has_tracked(c);
    }
    if (crn_rng_below(&dice, 2) == 0) {
        const crn_fault fault = {CRN_FAULT_ANY, CRN_FAULT_EXIT, 1 + crn_rng_below(&dice, 12), 1};
        program_step(&p);
        protect(&p, c);
        crn_fault_arm(&fault);
        (void)cairn_mark(c, p.step, CAIRN_AUTO);
        (void)cairn_settle(c);
    }
    return tracked ? LEG_TRACKED : LEG_END;
}

/* --- many of them ------------------------------------------------------------------------- */

static void write_config(uint64_t seed)
{
    static const char *const track[] = {"kernel", "kernel", "auto", "hash"};
    static const char *const differential[] = {"auto", "always", "auto", "never"};
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fprintf(f,
            "[run]\ntrail = %s/trail\nname = run\n[level]\nlocal = trail\n[mark]\nmode = %s\n"
            "[variable]\nblock = %dKiB\ntrack = %s\n[variable %s]\nblock = 1KiB\n"
            "differential = %s\n",
            scratch, seed % 3 ? "synchronous" : "background", 1 << seed % 5, track[seed / 5 % 4],
            name_of[0], differential[seed / 7 % 4]);
    fclose(f);
}

static bool play(uint64_t seed)
{
    bool tracked = false;
    char trail[96];
    write_config(seed);
    for (int number = 0; number < LEGS; number++) {
        const pid_t child = fork();
        int status;
        assert_true(child >= 0);
        if (child == 0)
            _exit(leg(seed, number));
        assert_int_equal(waitpid(child, &status, 0), child);
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (code != LEG_END && code != LEG_TRACKED && code != 86)
            fail_msg("seed %d, leg %d ended with status %#x", (int)seed, number, status);
        tracked = tracked || code == LEG_TRACKED;
    }
    snprintf(trail, sizeof trail, "%s/trail", scratch);
    remove_tree(trail);
    return tracked;
}

static void test_random_lives(void **state)
{
    (void)state;
    int ntracked = 0;
    const uint64_t seed = test_seed();
    for (uint64_t i = 0; i < SEQUENCES; i++)
        ntracked += play(seed + i);
    print_message("tracked: %d of %d\n", ntracked, SEQUENCES);
    if (can_track)
        assert_true(ntracked > SEQUENCES / 10);
}

/* --- what is told ------------------------------------------------------------------------- */

enum { ALL = 2 << 20, PIECE = 16 << 10 };

/* Mark after one write; the tally of the only variable. */
static ckpt_tally tally_after(cairn *c, unsigned char *data, uint64_t version)
{
    data[ALL / 2]++;
    assert_ok(cairn_mark(c, version, CAIRN_AUTO));
    assert_ok(cairn_settle(c));
    assert_int_equal(c->tally.n, 1);
    return c->tally.at[0];
}

static void check_tallies(const char *track, const char *differential)
{
    cairn *c;
    unsigned char *data =
        mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(data != MAP_FAILED);
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fprintf(f,
            "[run]\ntrail = %s/told\n[level]\nlocal = trail\n"
            "[variable data]\nblock = 16KiB\ntrack = %s\ndifferential = %s\n",
            scratch, track, differential);
    fclose(f);
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "data", data, CAIRN_UINT8, ALL));
    assert_int_equal(tally_after(c, data, 1).stored, ALL);
    const bool full = strcmp(differential, "never") == 0;
    const bool tracked = can_track && !full && strcmp(track, "kernel") == 0;
    for (uint64_t version = 2; version < 6; version++) {
        const ckpt_tally t = tally_after(c, data, version);
        assert_int_equal(t.tracked, tracked);
        assert_int_equal(t.nbytes, ALL);
        assert_int_equal(t.hashed, tracked ? PIECE : ALL);
        assert_int_equal(t.written > 0, tracked);
        assert_int_equal(t.changed, PIECE);
        assert_int_equal(t.stored, full ? ALL : PIECE);
    }
    assert_ok(cairn_close(c));
    munmap(data, ALL);
}

static void test_tallies(void **state)
{
    (void)state;
    check_tallies("hash", "always");
    check_tallies("hash", "never");
    check_tallies("kernel", "auto");
    check_tallies("kernel", "never"); /* all blocks means all */
}

/* Take marks until tracking is used for one, or no more; at most so many. All pages are written
 * before each, or one. */
static bool mark_until(cairn *c, unsigned char *data, uint64_t *version, bool all, bool tracked)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int n = 0; n < 500; n++) {
        for (size_t i = 0; i < ALL; i += all ? page : ALL)
            data[i]++;
        const ckpt_tally t = tally_after(c, data, ++*version);
        if ((t.tracked && c->var.at[0].change.watch) == tracked)
            return true;
    }
    return false;
}

/* Tracking is dropped when it does not pay any more, and taken up again when it does. */
static void test_tracking_follows_what_changes(void **state)
{
    (void)state;
    cairn *c;
    uint64_t version = 0;
    if (!can_track)
        skip();
    unsigned char *data =
        mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(data != MAP_FAILED);
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fprintf(f,
            "[run]\ntrail = %s/auto\n[level]\nlocal = trail\n[compare]\ntrees = no\n"
            "[variable data]\nblock = 16KiB\ntrack = auto\n",
            scratch);
    fclose(f);
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "data", data, CAIRN_UINT8, ALL));
    assert_true(mark_until(c, data, &version, false, true));
    for (int turn = 0; turn < 2; turn++) {
        assert_true(mark_until(c, data, &version, true, false));
        assert_null(c->var.at[0].change.watch);
        assert_true(c->var.at[0].change.pause > 0); /* not at once */
        assert_true(mark_until(c, data, &version, false, true));
    }
    assert_ok(cairn_close(c));
    munmap(data, ALL);
}

/* In memory where there is some: what is tested is not the disk. */
static int set_up(void **state)
{
    crn_tracker *t;
    (void)state;
    snprintf(scratch, sizeof scratch, "/dev/shm/cairn-changes-XXXXXX");
    if (!mkdtemp(scratch))
        make_scratch(scratch, sizeof scratch, "changes");
    snprintf(config, sizeof config, "%s/cairn.ini", scratch);
    for (int i = 0; i < NVARS; i++)
        snprintf(name_of[i], sizeof name_of[i], "v%d", i);
    can_track = crn_tracker_create(&t) == CAIRN_OK;
    if (can_track)
        crn_tracker_free(t);
    else
        print_message("*** kernel tracking is not tested: %s\n", crn_err_peek()->text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_tree(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tallies),
                                       cmocka_unit_test(test_tracking_follows_what_changes),
                                       cmocka_unit_test(test_random_lives)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
