/* SPDX-License-Identifier: BSD-3-Clause
 *
 * region.check finds declarations that are planted wrong, names the first element, and lets the
 * program go on as it would; of 1,000 random programs that are right it finds nothing.
 *
 * TEST: ranks self 2
 * NEEDS: inih random123
 */
#include "harness/session.h"

#include <cairn/region.h>

enum { ROWS = 40, COLS = 64, NVARS = 4, PROGRAMS = 1000, REGIONS = 8 };

static const char config[] = "[mark]\ninterval = 1000h\n[level]\nlocal = trail\n"
                             "[region]\ncheck = yes\n";
static const uint64_t extent[2] = {ROWS, COLS};

typedef struct program {
    place at;
    cairn *c;
    double value[NVARS][ROWS * COLS]; /* several pages each */
    cairn_var var[NVARS];
    crn_rng rng;
    double sum; /* of what was read */
} program;

static void begin(program *p, crn_comm *comm)
{
    static const char *const name[NVARS] = {"a", "b", "c", "d"};
    memset(p, 0, sizeof *p);
    place_init(&p->at, comm, config);
    assert_ok(cairn_open(p->at.mpi, p->at.config, &p->c));
    for (int i = 0; i < NVARS; i++) {
        assert_ok(cairn_protect(p->c, name[i], p->value[i], CAIRN_FLOAT64, (size_t)ROWS * COLS));
        p->var[i] = cairn_variable_shaped(p->c, name[i], 2, extent);
    }
    assert_int_equal(cairn_regions(p->c, NULL), CAIRN_NOTHING);
}

/* The findings of rank 0 as lines "site variable kind index count". */
static int gather(void *arg, const char *line)
{
    char *to = arg;
    if (strstr(line, "\"event\":\"finding\"") || strstr(line, "\"event\": \"finding\""))
        snprintf(to + strlen(to), 4000 - strlen(to), "%s", line);
    return 0;
}

static void end(program *p, char found[4000])
{
    cairn_trail *t;
    assert_false(cairn_due(p->c));
    assert_ok(cairn_close(p->c));
    found[0] = 0;
    if (p->at.rank == 0) {
        char path[128];
        snprintf(path, sizeof path, "%s/trail", p->at.dir);
        assert_ok(cairn_trail_open(path, &t));
        assert_ok(cairn_trail_events(t, 0, gather, found));
        cairn_trail_close(t);
    }
    place_done(&p->at);
}

static void check_has(const char *found, const char *site, const char *var, const char *kind,
                      int index)
{
    char text[200];
    snprintf(text, sizeof text, "\"site\":\"%s\",\"variable\":\"%s\",\"kind\":\"%s\",\"index\":%d",
             site, var, kind, index);
    if (!strstr(found, text))
        fail_msg("no %s in %s", text, found);
}

static void test_planted(void **state)
{
    static program p;
    static char found[4000];
    static const uint64_t lo[2] = {1, 1}, hi[2] = {4, 3};
    begin(&p, *state);
    if (cairn_region(p.c, "start", CAIRN_W(p.var[0]), CAIRN_W(p.var[1])))
        for (int i = 0; i < ROWS * COLS; i++)
            p.value[0][i] = p.value[1][i] = i;
    if (cairn_region(p.c, "half", CAIRN_W(p.var[0])))
        for (int i = 0; i < ROWS * COLS; i++)
            if (i != 7 && i != 9)
                p.value[0][i] = -i;
    assert_false(cairn_due(p.c));
    assert_true(p.value[0][7] == 7 && p.value[0][9] == 9); /* as without the check */
    if (cairn_region(p.c, "more", CAIRN_R(p.var[0]), CAIRN_W_BOX(p.var[1], lo, hi)))
        for (int i = 1; i < 4; i++)
            for (int k = 1; k < 3; k++)
                p.value[1][i * COLS + k] = 100;
    if (cairn_region(p.c, "outside", CAIRN_RW_BOX(p.var[1], lo, hi)))
        p.value[1][2 * COLS + 4] = 5;
    if (cairn_region(p.c, "other", CAIRN_R(p.var[0])))
        p.value[2][11] = 3;
    end(&p, found);
    if (p.at.rank != 0)
        return;
    check_has(found, "half", "a", "not wholly written", 7);
    check_has(found, "outside", "b", "undeclared write", 2 * COLS + 4);
    check_has(found, "other", "c", "undeclared write", 11);
    assert_null(strstr(found, "\"site\":\"more\""));
    assert_null(strstr(found, "\"site\":\"start\""));
}

/* A region with one access, and a body that does just that. */
static void do_region(program *p, int n)
{
    char site[16];
    uint64_t lo[2], hi[2];
    const unsigned how = 1 + (unsigned)crn_rng_below(&p->rng, 3);
    const size_t v = crn_rng_below(&p->rng, NVARS);
    snprintf(site, sizeof site, "r%d", n);
    for (int d = 0; d < 2; d++) {
        lo[d] = crn_rng_below(&p->rng, extent[d]);
        hi[d] = lo[d] + crn_rng_below(&p->rng, extent[d] - lo[d] + 1);
    }
    const bool whole = crn_rng_below(&p->rng, 3) == 0;
    const cairn_access a = cairn_access_of(p->var[v], how, whole ? NULL : lo, whole ? NULL : hi);
    assert_int_equal(cairn_region_enter(p->c, site, &a, 1), 1);
    for (uint64_t i = whole ? 0 : lo[0]; i < (whole ? ROWS : hi[0]); i++)
        for (uint64_t k = whole ? 0 : lo[1]; k < (whole ? COLS : hi[1]); k++) {
            double *at = &p->value[v][i * COLS + k];
            if (how & CAIRN_READS)
                p->sum += *at;
            if (how == CAIRN_WRITES || (how & CAIRN_WRITES && crn_rng_below(&p->rng, 2) == 0))
                *at = (double)crn_rng_below(&p->rng, 4);
        }
}

static void test_right_programs(void **state)
{
    static program p;
    static char found[4000];
    begin(&p, *state);
    p.rng = crn_rng_of(test_seed(), 0);
    for (int i = 0; i < PROGRAMS; i++)
        for (int n = 0; n < REGIONS; n++)
            do_region(&p, (i * 5 + n) % 97);
    end(&p, found);
    assert_string_equal(found, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_planted),
                                       cmocka_unit_test(test_right_programs)};
    return run_mpi_tests(argc, argv, tests);
}
