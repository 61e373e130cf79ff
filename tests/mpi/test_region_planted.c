/* SPDX-License-Identifier: BSD-3-Clause
 *
 * region.check and mistakes of every kind, each planted into a program that is right without it:
 * the one that was planted is found, with its site, variable and first index, on the rank that
 * makes it; and without any nothing is found, in a run and in one that is resumed.
 *
 * TEST: ranks self 2
 * NEEDS: inih
 */
#include "harness/session.h"

#include <cairn/region.h>

enum { N = 4096, STEPS = 24, TRIGGER = 10, LEAVE = 16 };

typedef enum mistake {
    NONE,
    READS,      /* of a variable that the region does not mention */
    WRITES,     /* likewise */
    LEAVES,     /* an element of what it is to overwrite, */
    LEAVES_INT, /* of other sizes */
    LEAVES_BYTE,
    READS_OLD,       /* what it is to overwrite, */
    READS_OLD_FLOAT, /* and makes another variable from it, */
    READS_OLD_VALUE, /* or a value */
    NEVER,           /* a variable that is needed is never to be kept, */
    LIST,            /* or is not in a list of data */
    BOX,             /* reads more than the box that it declares */
    NMISTAKES
} mistake;

static const char config[] = "[mark]\ninterval = 1000h\n[level]\nlocal = trail\n"
                             "[region]\ncheck = yes\n";

typedef struct program {
    place *at;
    cairn *c;
    mistake wrong; /* made by the last rank */
    double a[N], b[N], c_[N], sum;
    float f[N];
    int32_t i[N];
    unsigned char u[N];
    cairn_var va, vb, vc, vf, vi, vu;
    uint64_t step;
} program;

static bool makes(const program *p, mistake m)
{
    return p->wrong == m && p->at->rank + 1 == p->at->nranks;
}

static void open_program(program *p, place *at, mistake wrong)
{
    cairn_region_options o = {.struct_bytes = sizeof o, .place = "one"};
    memset(p, 0, sizeof *p);
    p->at = at;
    p->wrong = wrong;
    assert_ok(cairn_open(at->mpi, at->config, &p->c));
    assert_ok(cairn_protect(p->c, "a", p->a, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(p->c, "b", p->b, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(p->c, "c", p->c_, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(p->c, "f", p->f, CAIRN_FLOAT32, N));
    assert_ok(cairn_protect(p->c, "i", p->i, CAIRN_INT32, N));
    assert_ok(cairn_protect(p->c, "u", p->u, CAIRN_UINT8, N));
    p->va = cairn_variable(p->c, "a");
    p->vb = cairn_variable(p->c, "b");
    p->vc = cairn_variable(p->c, "c");
    p->vf = cairn_variable(p->c, "f");
    p->vi = cairn_variable(p->c, "i");
    p->vu = cairn_variable(p->c, "u");
    const cairn_var some[] = {p->vb, p->vf, p->vi, p->vu, p->vc};
    if (wrong == NEVER)
        assert_ok(cairn_never(p->c, p->va));
    if (wrong == LIST) {
        o.keep = some;
        o.nkeep = 5;
    }
    assert_true(cairn_regions(p->c, &o) >= 0);
}

static void initialise(program *p)
{
    if (cairn_region(p->c, "start", CAIRN_W(p->va), CAIRN_W(p->vb), CAIRN_W(p->vc), CAIRN_W(p->vf),
                     CAIRN_W(p->vi), CAIRN_W(p->vu)))
        for (int k = 0; k < N; k++) {
            p->a[k] = p->b[k] = p->c_[k] = k % 7;
            p->f[k] = (float)(k % 5);
            p->i[k] = k;
            p->u[k] = (unsigned char)(k % 3);
        }
    assert_ok(cairn_initialised(p->c));
}

static void do_one(program *p)
{
    const uint64_t lo[] = {0}, hi[] = {p->wrong == BOX ? 100 : N};
    if (!cairn_region(p->c, "one", CAIRN_R_BOX(p->va, lo, hi), CAIRN_W(p->vb), CAIRN_W(p->vf)))
        return;
    for (int k = 0; k < (p->wrong == BOX ? 100 : N); k++)
        p->sum += 1e-3 * p->a[k];
    const double old = p->b[11] + 1;
    for (int k = 0; k < N; k++) {
        const double a = p->wrong == BOX && k >= 100 ? k : p->a[k];
        if (!(makes(p, LEAVES) && k == 17))
            p->b[k] = 0.5 * a + 1;
        p->f[k] = (float)a;
    }
    if (makes(p, READS))
        p->sum += p->c_[700];
    if (makes(p, READS_OLD))
        p->b[12] = old;
    if (makes(p, READS_OLD_VALUE))
        p->sum += old;
    if (makes(p, BOX))
        p->b[200] += p->a[150];
}

static void do_two(program *p)
{
    if (!cairn_region(p->c, "two", CAIRN_R(p->vb), CAIRN_W(p->va), CAIRN_W(p->vi), CAIRN_W(p->vu),
                      CAIRN_W(p->vf)))
        return;
    const float old = p->f[3000];
    for (int k = 0; k < N; k++) {
        p->a[k] = p->b[k] * 0.75 + p->b[(k + 1) % N] / 8;
        if (!(makes(p, LEAVES_INT) && k == 3))
            p->i[k] = k + (int)p->step;
        if (!(makes(p, LEAVES_BYTE) && k == 9))
            p->u[k] = (unsigned char)p->step;
        p->f[k] = makes(p, READS_OLD_FLOAT) && k == 3001 ? old * 2 : 1;
    }
    if (makes(p, WRITES))
        p->c_[5] += 1;
}

/* True: all steps are done. */
static bool run(program *p, uint64_t end)
{
    initialise(p);
    for (p->step = 0; p->step < end; p->step++) {
        if (p->step == TRIGGER)
            assert_ok(cairn_trigger(p->c));
        p->sum = 0;
        do_one(p);
        assert_ok(cairn_value(p->c, &p->sum, sizeof p->sum));
        do_two(p);
        assert_false(cairn_due(p->c));
    }
    return end == STEPS;
}

static int gather(void *arg, const char *line)
{
    char *to = arg;
    if (strstr(line, "\"event\":\"finding\""))
        snprintf(to + strlen(to), 4000 - strlen(to), "%s\n", line);
    return 0;
}

static void read_findings(const place *at, char found[4000])
{
    char path[128];
    cairn_trail *t;
    found[0] = 0;
    snprintf(path, sizeof path, "%s/trail", at->dir);
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_events(t, 0, gather, found));
    cairn_trail_close(t);
}

/* A run that is left after its mark, resumed, and ends. */
static void find(crn_comm *comm, mistake wrong, char found[4000])
{
    static program p;
    place at;
    place_init(&at, comm, config);
    open_program(&p, &at, wrong);
    (void)run(&p, LEAVE);
    assert_ok(cairn_settle(p.c));
    leave_session(p.c);
    open_program(&p, &at, wrong);
    assert_true(cairn_replaying(p.c));
    assert_true(run(&p, STEPS));
    assert_false(cairn_replaying(p.c));
    assert_ok(cairn_close(p.c));
    found[0] = 0;
    if (at.rank == 0)
        read_findings(&at, found);
    place_done(&at);
}

/* The first finding, and, of what spreads through the program, no other kind. */
static void check_first(const place *at, const char *found, const char *words)
{
    char text[200];
    snprintf(text, sizeof text, "%s,\"count\":1,", words);
    if (at->nranks > 1)
        snprintf(text + strlen(text), 20, "\"rank\":%d", at->nranks - 1);
    const char *where = strstr(found, text), *line = strchr(found, '\n');
    if (!where || !line || where > line)
        fail_msg("not %s first in:\n%s", text, found);
}

static void test_each_kind(void **state)
{
    static const char *const want[NMISTAKES] = {
        [READS] = "\"site\":\"one\",\"variable\":\"c\",\"kind\":\"undeclared read\",\"index\":700",
        [WRITES] = "\"site\":\"two\",\"variable\":\"c\",\"kind\":\"undeclared write\",\"index\":5",
        [LEAVES] = "\"site\":\"one\",\"variable\":\"b\",\"kind\":\"not wholly written\","
                   "\"index\":17",
        [LEAVES_INT] = "\"site\":\"two\",\"variable\":\"i\",\"kind\":\"not wholly written\","
                       "\"index\":3",
        [LEAVES_BYTE] = "\"site\":\"two\",\"variable\":\"u\",\"kind\":\"not wholly written\","
                        "\"index\":9",
        [READS_OLD] = "\"site\":\"one\",\"variable\":\"b\",\"kind\":\"undeclared read\","
                      "\"index\":11",
        [READS_OLD_FLOAT] = "\"site\":\"two\",\"variable\":\"f\",\"kind\":\"undeclared read\","
                            "\"index\":3000",
        [READS_OLD_VALUE] = "\"site\":\"one\",\"variable\":\"b\",\"kind\":\"undeclared read\","
                            "\"index\":11",
        [NEVER] = "\"site\":\"one\",\"variable\":\"a\",\"kind\":\"used, and not kept\",\"index\":0",
        [LIST] = "\"site\":\"one\",\"variable\":\"a\",\"kind\":\"used, and not kept\",\"index\":0",
        [BOX] =
            "\"site\":\"one\",\"variable\":\"a\",\"kind\":\"used, and not kept\",\"index\":150"};
    static char found[4000];
    place at;
    for (mistake m = READS; m < NMISTAKES; m++) {
        find(*state, m, found);
        place_init(&at, *state, config);
        if (at.rank == 0 && m != NEVER && m != LIST) /* these are made by all ranks */
            check_first(&at, found, want[m]);
        else if (at.rank == 0 && strstr(found, want[m]) == NULL)
            fail_msg("no %s in:\n%s", want[m], found);
        place_done(&at);
    }
}

static void test_none(void **state)
{
    static char found[4000];
    find(*state, NONE, found);
    assert_string_equal(found, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_kind),
                                       cmocka_unit_test(test_none)};
    return run_mpi_tests(argc, argv, tests);
}
