/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks that have lost something: random histories of marks under settings that change, of kills
 * before the commit, and of resumes, after which the program has what a reader got. Every value
 * stays within its bound of what the program had, no block is encoded again that did not change,
 * and what was resumed comes back as it is however often that happens.
 *
 * NEEDS: lz4 zstd zfp fpzip random123
 */
#include "harness/encode.h"
#include "harness/model.h"
#include "harness/scratch.h"

#include <math.h>

enum { N = 3000, HISTORIES = 100, STEPS = 12 }; /* 1,000 were played once; syncs take their time */

static const struct {
    const char *codec, *loss;
} settings[] = {
    {"none", ""},
    {"zfp:accuracy=1e-3", ""},
    {"zfp", "abs 1e-6"},
    {"fpzip", "rel 1e-4"},
    {"fpzip:precision=40", ""},
    {"round:bits=12", ""},
    {"f32", ""},
    {"f16", ""},
    {"auto", "abs 1e-4"},
    {"zfp:precision=24", ""},
    {"zstd:shuffle", ""},
};
enum { NSETTINGS = sizeof settings / sizeof *settings };

typedef struct history {
    crn_rng rng;
    crn_part *part;
    double x[N]; /* the program's */
    uint32_t block;
    uint64_t version;
    size_t setting; /* of the newest mark */
    bool marked;
} history;

/* --- the program ---------------------------------------------------------------------------- */

static void change_some(history *h)
{
    const size_t first = crn_rng_below(&h->rng, N), n = crn_rng_below(&h->rng, N / 4);
    for (size_t i = first; i < CRN_MIN(first + n, (size_t)N); i++)
        h->x[i] += 0.01 * sin((double)(i + h->version) / 20) + 1e-7 * crn_rng_unit(&h->rng);
    if (crn_rng_below(&h->rng, 3) == 0)
        h->x[first] = crn_rng_below(&h->rng, 2) ? NAN : 1e9;
}

static crn_var_spec spec_of(const history *h, size_t setting, char *line)
{
    crn_codec_setting s;
    char text[CRN_CODEC_TEXT];
    assert_ok(crn_codec_parse(settings[setting].codec, settings[setting].loss, &s));
    snprintf(line, 128, "%s=%s\n", CRN_LOSS_KEY,
             s.bounded ? crn_loss_print(&s.loss, text) : "unbounded");
    return (crn_var_spec){.name = "x",
                          .type = "float64",
                          .item = sizeof *h->x,
                          .block = h->block,
                          .nbytes = sizeof h->x,
                          .attributes = crn_codec_is_lossy(&s) ? line : NULL};
}

/* --- the oracle ----------------------------------------------------------------------------- */

static void check_values(const history *h, const double *y)
{
    crn_codec_setting s;
    double error;
    assert_ok(crn_codec_parse(settings[h->setting].codec, settings[h->setting].loss, &s));
    if (!crn_codec_is_lossy(&s))
        assert_memory_equal(h->x, y, sizeof h->x);
    else
        assert_true(crn_loss_holds(CRN_ELEM_F64, h->x, y, N, s.bounded ? &s.loss : NULL, &error));
}

static void load(const history *h, crn_mark **ret, crn_var **ret_var, double *y)
{
    assert_ok(crn_part_load(h->part, h->version, ret));
    *ret_var = crn_mark_find(*ret, "x");
    assert_ok(crn_mark_table(h->part, *ret, *ret_var));
    assert_ok(crn_mark_read(h->part, *ret, *ret_var, 0, (*ret_var)->nblocks, y, NULL));
}

/* The mark says what the program had, and gives it within its bound. */
static void check_mark(const history *h, const crn_block *before, uint64_t nbefore,
                       const double *old_y, size_t old_setting)
{
    static double y[N];
    crn_mark *m;
    crn_var *v;
    load(h, &m, &v, y);
    check_values(h, y);
    for (uint64_t i = 0; i < v->nblocks; i++) {
        const size_t at = i * h->block / sizeof *y, nbytes = crn_var_block_bytes(v, i);
        const crn_digest had = crn_digest_of(&h->x[at], nbytes),
                         reads = crn_digest_of(&y[at], nbytes);
        assert_true(crn_digest_equal(&v->table[i].origin, &had));
        assert_true(crn_digest_equal(&v->table[i].digest, &reads));
        const bool comparable = nbefore == v->nblocks && old_setting == h->setting;
        const bool same = comparable && (crn_digest_equal(&before[i].origin, &had) ||
                                         crn_digest_equal(&before[i].digest, &had));
        if (!same)
            continue;
        assert_true(v->table[i].off == before[i].off); /* it was not encoded again */
        assert_memory_equal(&y[at], &old_y[at], nbytes);
    }
    crn_digest root;
    assert_ok(crn_var_root(v, &root));
    assert_true(crn_digest_equal(&root, &v->root));
    crn_mark_free(m);
}

/* --- steps ---------------------------------------------------------------------------------- */

static void mark(history *h, bool killed)
{
    static double old_y[N];
    const size_t setting =
        crn_rng_below(&h->rng, 3) ? h->setting : crn_rng_below(&h->rng, NSETTINGS);
    const size_t old_setting = h->setting;
    crn_mark *before = NULL;
    crn_var *old = NULL;
    crn_draft *d;
    size_t v;
    char line[128];
    if (h->marked)
        load(h, &before, &old, old_y);
    const crn_var_spec spec = spec_of(h, setting, line);
    crn_put how = {.way = (crn_put_way)crn_rng_below(&h->rng, 2)};
    assert_ok(crn_draft_begin(h->part, h->version + 1, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    test_encode(d, v, settings[setting].codec, settings[setting].loss);
    assert_ok(crn_draft_put_changed(d, v, h->x, &how));
    if (killed) {
        crn_draft_drop(d);
    } else {
        assert_ok(crn_draft_commit(d, 2, NULL));
        h->version++;
        h->setting = setting;
        h->marked = true;
        check_mark(h, old && old->spec.block == h->block ? old->table : NULL,
                   old && old->spec.block == h->block ? old->nblocks : 0, old_y, old_setting);
    }
    if (before)
        crn_mark_free(before);
}

/* The program dies and comes back with what a reader gets. */
static void resume(history *h, const char *name)
{
    crn_mark *m;
    crn_var *v;
    crn_part_close(h->part);
    assert_ok(crn_part_open(dir, name, &model_id, true, &model_options, &h->part));
    if (!h->marked)
        return;
    load(h, &m, &v, h->x);
    crn_mark_free(m);
}

static void play(uint64_t seed)
{
    static history h;
    h = (history){.rng = crn_rng_of(test_seed(), seed), .block = 4096};
    for (size_t i = 0; i < N; i++)
        h.x[i] = 10 * sin((double)i / 100);
    h.setting = crn_rng_below(&h.rng, NSETTINGS);
    assert_ok(crn_part_create(dir, "loss", &model_id, &model_options, &h.part));
    for (int step = 0; step < STEPS; step++) {
        const uint64_t dice = crn_rng_below(&h.rng, 10);
        if (dice == 0)
            h.block = 1024u << crn_rng_below(&h.rng, 4); /* as on other ranks: cut anew */
        if (dice < 3)
            resume(&h, "loss");
        else
            change_some(&h);
        mark(&h, dice == 9);
    }
    crn_part_close(h.part);
    assert_int_equal(unlinkat(dir, "loss", 0), 0);
}

static void test_random_histories(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < HISTORIES; seed++)
        play(seed);
}

/* Many restarts in a row: the same bytes, and nothing written. */
static void test_no_drift(void **state)
{
    (void)state;
    static history h;
    static double first[N];
    for (size_t k = 0; k < NSETTINGS; k++) {
        h = (history){.rng = crn_rng_of(test_seed(), k), .block = 4096, .setting = k};
        for (size_t i = 0; i < N; i++)
            h.x[i] = 10 * sin((double)i / 100) + 1e-3 * crn_rng_unit(&h.rng);
        assert_ok(crn_part_create(dir, "drift", &model_id, &model_options, &h.part));
        for (uint64_t leg = 0; leg < 20; leg++) {
            char line[128];
            crn_draft_stats stats;
            crn_draft *d;
            size_t v;
            const crn_var_spec spec = spec_of(&h, k, line);
            assert_ok(crn_draft_begin(h.part, ++h.version, &d));
            assert_ok(crn_draft_add(d, &spec, &v));
            test_encode(d, v, settings[k].codec, settings[k].loss);
            assert_ok(crn_draft_put_all(d, v, h.x));
            assert_ok(crn_draft_commit(d, 2, &stats));
            h.marked = true;
            assert_int_equal(stats.changed > 0, leg == 0);
            resume(&h, "drift");
            if (leg == 0)
                memcpy(first, h.x, sizeof first);
            assert_memory_equal(first, h.x, sizeof first);
        }
        crn_part_close(h.part);
        assert_int_equal(unlinkat(dir, "drift", 0), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_histories),
        cmocka_unit_test(test_no_drift),
    };
    return cmocka_run_group_tests_name("part_loss", tests, scratch_begin, scratch_end);
}
