/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What does a mark cost when only some blocks have changed, against a full mark of the same state:
 * time that the program is held, and time until the mark is stored? How much slower does tracking
 * by the kernel make the program itself? And is it what the model of plan predicts (Figure 5.8 of
 * Keller's thesis)? Three sessions mark the same memory in turns: full, by digests alone, and with
 * tracking wherever the session finds that it pays. Files go below the working directory.
 *
 *     bench_differential [MiB of state]
 */
#include "bench.h"

#include <cairn/cairn.h>

#include <sys/mman.h>

#include "plan/plan.h"

#define TRAIL "bench_differential.trail"

enum { BLOCK = 64 << 10, TURNS = 5, WARM = 6, NSHARES = 5 };
enum { FULL, HASH, AUTO, NWAYS };

static const int shares[NSHARES] = {0, 1, 5, 50, 100}; /* percent of the blocks */
static const char *const way_name[NWAYS] = {"full", "hash", "auto"};

typedef struct state {
    unsigned char *data;
    size_t nblocks;
    uint64_t version;
    cairn *session[NWAYS];
} state;

/* Medians over the turns, in seconds. */
typedef struct figures {
    double hold[NWAYS], settle[NWAYS];
    double slower; /* the program's own writes, by tracking */
} figures;

static void need(const cairn *c, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "bench_differential: %s\n", cairn_last_error(c));
        exit(2);
    }
}

static void clean_up(void)
{
    bench_remove(TRAIL);
}

static void open_session(state *s, int way)
{
    static const char *const setting[NWAYS][2] = {
        {"hash", "never"}, {"hash", "auto"}, {"auto", "auto"}};
    setenv("CAIRN_RUN_TRAIL", TRAIL, 1);
    setenv("CAIRN_RUN_NAME", way_name[way], 1);
    setenv("CAIRN_LEVEL_LOCAL", "trail", 1);
    setenv("CAIRN_KEEP_GLOBAL", "1", 1);
    setenv("CAIRN_MARK_STAGING", "64GiB", 1);
    setenv("CAIRN_VARIABLE_TRACK", setting[way][0], 1);
    setenv("CAIRN_VARIABLE_DIFFERENTIAL", setting[way][1], 1);
    need(NULL, cairn_open(MPI_COMM_SELF, NULL, &s->session[way]));
    need(s->session[way],
         cairn_protect(s->session[way], "state", s->data, CAIRN_BYTES, s->nblocks * BLOCK));
}

/* Write a share of the blocks anew, spread over all; seconds. */
static double change(state *s, int percent)
{
    const double start = bench_seconds();
    for (size_t i = 0; i < s->nblocks; i++)
        if ((i + 1) * (size_t)percent / 100 != i * (size_t)percent / 100)
            memset(s->data + i * BLOCK, (int)(s->version + i), BLOCK);
    return bench_seconds() - start;
}

static void mark(state *s, int way, double *ret_hold, double *ret_settle)
{
    const double start = bench_seconds();
    need(s->session[way], cairn_mark(s->session[way], s->version, CAIRN_LEVEL_LOCAL));
    *ret_hold = bench_seconds() - start;
    need(s->session[way], cairn_settle(s->session[way]));
    *ret_settle = bench_seconds() - start;
}

/* The first marks of a share are not counted: sessions find out how to deal with it. */
static figures measure(state *s, int percent)
{
    double hold[NWAYS][TURNS], settle[NWAYS][TURNS], slower[TURNS];
    figures f;
    for (int turn = -WARM; turn < TURNS; turn++) {
        const int at = turn < 0 ? 0 : turn;
        s->version++;
        const double first = change(s, percent);
        slower[at] = CRN_MAX(0, first - change(s, percent)); /* the second time, no page faults */
        for (int k = 0; k < NWAYS; k++) {
            const int way = (turn + WARM + k) % NWAYS; /* nobody is always the first */
            mark(s, way, &hold[way][at], &settle[way][at]);
        }
    }
    for (int way = 0; way < NWAYS; way++) {
        f.hold[way] = bench_median(hold[way], TURNS);
        f.settle[way] = bench_median(settle[way], TURNS);
    }
    f.slower = bench_median(slower, TURNS);
    return f;
}

/* --- rows --------------------------------------------------------------------------------- */

/* What is demanded at 1% and at 100%; elsewhere figures to know. */
static double limit_of(int percent, int way, bool settle)
{
    if (percent == 100)
        return 1.1;
    if (percent != 1)
        return 0;
    if (way == AUTO)
        return settle ? 0.1 : 0.05;
    return settle ? 0.35 : 1;
}

static void print_row(int percent, int way, const char *what, double ours, double peer,
                      double limit)
{
    char name[64], note[160];
    snprintf(name, sizeof name, "differential.%s.%s.%d", what, way_name[way], percent);
    snprintf(note, sizeof note, "%d%% of the blocks changed; peer: a full mark", percent);
    bench_print(&(bench_result){.name = name,
                                .unit = "s",
                                .bar = limit > 0 ? BENCH_AT_MOST : BENCH_NO_BAR,
                                .limit = limit,
                                .ours = ours,
                                .peer = peer,
                                .note = note});
}

static void print_share(int percent, const figures *f)
{
    for (int way = HASH; way < NWAYS; way++) {
        print_row(percent, way, "hold", f->hold[way], f->hold[FULL], limit_of(percent, way, false));
        print_row(percent, way, "settle", f->settle[way], f->settle[FULL],
                  limit_of(percent, way, true));
    }
    print_row(percent, AUTO, "hold+faults", f->hold[AUTO] + f->slower, f->hold[FULL], 0);
}

static double gain_of(double find, double full, int percent)
{
    double gain;
    bench_need(crn_plan_diff_gain(find, full, percent / 100.0, CRN_PLAN_HASH_ONCE, &gain));
    return gain;
}

/*
 * Gain until the mark is stored, the program's faults counted in, against the model: looking costs
 * what a mark costs in which nothing changed, and each written page a fault. Who may choose takes
 * the best of tracking, digests and copying everything.
 */
static void print_model(int percent, int way, const figures *f, const figures *nothing,
                        double fault)
{
    char name[64];
    const double full = f->settle[FULL];
    const double measured = (f->settle[way] + (way == AUTO ? f->slower : 0)) / full - 1;
    double gain = CRN_MIN(gain_of(nothing->settle[HASH], full, percent), 0);
    if (way == AUTO)
        gain = CRN_MIN(gain, gain_of(nothing->settle[AUTO] + fault * percent, full, percent));
    snprintf(name, sizeof name, "differential.model.%s.%d", way_name[way], percent);
    printf("%s: gain %+.3f, predicted %+.3f\n", name, measured, gain);
    bench_print(&(bench_result){.name = name,
                                .unit = "of a full mark",
                                .bar = BENCH_AT_MOST,
                                .limit = 0.15,
                                .ours = fabs(measured - gain),
                                .peer = 1,
                                .note = "how far the gain is from what the model predicts"});
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 2048;
    state s = {.nblocks = (mib << 20) / BLOCK};
    figures f[NSHARES];
    clean_up();
    s.data =
        mmap(NULL, s.nblocks * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s.data == MAP_FAILED)
        bench_need(crn_fail(CAIRN_ENOMEM, "no memory for %zu MiB", mib));
    (void)change(&s, 100);
    for (int way = 0; way < NWAYS; way++)
        open_session(&s, way);
    for (int i = 0; i < NSHARES; i++) {
        f[i] = measure(&s, shares[i]);
        print_share(shares[i], &f[i]);
    }
    for (int i = 1; i < NSHARES; i++)
        for (int way = HASH; way < NWAYS; way++)
            print_model(shares[i], way, &f[i], &f[0], f[2].slower / shares[2]);
    printf("FTI is not looked for: no figures against its differential checkpoints\n");
    for (int way = 0; way < NWAYS; way++)
        need(NULL, cairn_close(s.session[way]));
    munmap(s.data, s.nblocks * BLOCK);
    clean_up();
    return 0;
}
