/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Crash at every point. A program's marks are recorded as operations on a disk; the machine then
 * stops before each of them, with what was not yet durable there, missing, reordered or torn. In
 * every such state the marks that count are exactly those before or after the call that was under
 * way, all read back bit for bit, and the next mark succeeds.
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "fault/history.h"

#include <sys/mman.h>
#include <sys/wait.h>

static const crn_part_options quick = {CRN_IO_THREADS, 2, false};

enum { RANKS = 2, NEXT = 1000 /* versions of marks after a crash */ };

static char work[64], image[64]; /* where the program runs; where a crash leaves its files */
static char where[160];          /* the crash being looked at */
static uint64_t nstates;

static int setup(void **state)
{
    (void)state;
    disk_scratch(work, "crash");
    disk_scratch(image, "image");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    crn_fault_watch(NULL, NULL);
    crn_fault_arm(NULL);
    remove_tree(work);
    remove_tree(image);
    return 0;
}

static void make_empty(const char *dir)
{
    remove_tree(dir);
    assert_int_equal(mkdir(dir, 0700), 0);
}

static int open_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    return fd;
}

#define must(expr)                                                                                 \
    do {                                                                                           \
        if ((expr) != CAIRN_OK)                                                                    \
            fail_msg("%s: %s: %s", where, #expr, crn_err_peek()->text);                            \
    } while (0)

static void must_allow(const epoch *e, const mark_list *found)
{
    char text[256], wanted[256];
    if (!epoch_allows(e, found))
        fail_msg("%s: found '%s', not '%s'", where, list_text(found, text),
                 list_text(&e->list[0], wanted));
}

/* Everything that a test compares with: the past of the program, and of what came after a crash. */
typedef struct pasts {
    model before, after;
} pasts;

static model *past_of(pasts *p, uint64_t version)
{
    return version < NEXT ? &p->before : &p->after;
}

static void must_read_back(pasts *p, crn_part *part, const mark_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        must(model_check(past_of(p, l->version[i]), part, l->version[i]));
}

/* --- playing crashes ---------------------------------------------------------------------- */

typedef void checker(void *arg, const epoch *e);

typedef struct seen_state {
    crn_digest image;
    const epoch *epoch;
} seen_state;

typedef CRN_VEC(seen_state) seen_states;

/* Is this the same image with the same demands as an earlier one? */
static bool was_seen(seen_states *seen, disk *d, const epoch *e)
{
    seen_state s = {disk_digest(d), e};
    for (size_t i = seen->n; i-- > 0;)
        if (seen->at[i].epoch == e && crn_digest_equal(&seen->at[i].image, &s.image))
            return true;
    assert_ok(crn_vec_push(seen, s));
    return false;
}

/* Stop before operation k of the log, and look at one of the images that may be left. */
static void crash_at(const disk_log *log, const history *h, size_t k, const disk_choice *c,
                     uint64_t seed, seen_states *seen, checker *check, void *arg)
{
    disk d;
    snprintf(where, sizeof where, "before operation %zu of %zu, choice %d:%zu:%llu", k, log->op.n,
             (int)c->kind, c->one, (unsigned long long)c->seed);
    disk_play(&d, log, k, c->kind == DISK_RANDOM ? c->seed : seed);
    disk_crash(&d, c);
    if (!was_seen(seen, &d, history_at(h, k))) {
        make_empty(image);
        disk_write_out(&d, image);
        check(arg, history_at(h, k));
        nstates++;
    }
    disk_done(&d);
}

/* Stop before each operation from first on, and look at all that may be left. */
static void crash_everywhere(const disk_log *log, const history *h, size_t first, size_t max,
                             checker *check, void *arg)
{
    disk_choices choices = {0};
    seen_states seen = {0};
    for (size_t k = first; k <= log->op.n; k++) {
        uint64_t seed = test_seed() + 1000 * k;
        disk d;
        disk_play(&d, log, k, seed);
        disk_choose(&d, seed, max, &choices);
        disk_done(&d);
        for (size_t i = 0; i < choices.n; i++)
            crash_at(log, h, k, &choices.at[i], seed, &seen, check, arg);
    }
    crn_vec_done(&choices);
    crn_vec_done(&seen);
}

/* --- one part ----------------------------------------------------------------------------- */

/* Open what a crash has left of a part to read, and to write; the next mark must succeed. */
static void check_part(void *arg, const epoch *e)
{
    pasts *p = arg;
    crn_part *part;
    mark_list l = {.absent = true};
    int dir = open_dir(image);
    cairn_status rc = crn_part_open(dir, "part", &model_id, false, &quick, &part);
    if (rc == CAIRN_ENOTFOUND) {
        must_allow(e, &l);
        must(crn_part_create(dir, "part", &model_id, &quick, &part));
    } else {
        must(rc);
        l = list_of_part(part);
        must_allow(e, &l);
        must_read_back(p, part, &l);
        crn_part_close(part);
        must(crn_part_open(dir, "part", &model_id, true, &quick, &part));
    }
    mark_list next = list_mark(l, 2 * NEXT, 3);
    must(model_mark(&p->after, part, 2 * NEXT, 3, NULL));
    must_read_back(p, part, &next);
    crn_part_close(part);
    close(dir);
}

/* The present of one model in another. */
static void copy_present(const model *from, model *to)
{
    for (int i = 0; i < MODEL_VARS; i++) {
        const model_var *v = &from->now.var[i];
        to->now.var[i] = *v;
        to->now.var[i].data = v->exists ? malloc(v->nbytes + 1) : NULL;
        if (v->exists)
            memcpy(to->now.var[i].data, v->data, v->nbytes);
    }
}

static void pasts_done(pasts *p)
{
    model_done(&p->before);
    model_done(&p->after);
}

typedef struct program {
    disk_log log;
    history history;
    int *acked; /* calls that succeeded, where a parent can see it; or NULL */
    int dir;
    crn_part *part;
} program;

static void begin(program *g, mark_list next)
{
    history_begin(&g->history, g->log.op.n, &next);
}

static void end(program *g, cairn_status rc)
{
    must(rc);
    history_end(&g->history, g->log.op.n);
    if (g->acked)
        ++*g->acked;
}

static void take_mark(program *g, model *m, uint64_t version, uint64_t keep)
{
    begin(g, list_mark(g->history.list, version, keep));
    end(g, model_mark(m, g->part, version, keep, NULL));
}

static void trim(program *g, uint64_t keep)
{
    begin(g, list_keep(g->history.list, keep));
    end(g, crn_part_trim(g->part, keep));
}

static void rewind_to(program *g, uint64_t version)
{
    begin(g, list_rewind(g->history.list, version));
    end(g, crn_part_rewind(g->part, version));
}

/* Marks with all that can happen between them. */
static void run_part(program *g, model *m, uint64_t nmarks)
{
    const uint64_t keep[] = {1, 2, 3, CRN_KEEP_ALL};
    begin(g, (mark_list){0});
    end(g, crn_part_create(g->dir, "part", &model_id, &quick, &g->part));
    for (uint64_t version = 1; version <= nmarks; version++) {
        model_step(m);
        take_mark(g, m, version, keep[version / 3 % 4]);
        if (version % 5 == 0)
            trim(g, 1 + version % 2);
        if (version % 6 == 0)
            rewind_to(g, version - 1);
        if (version % 4 == 0) {
            crn_part_close(g->part);
            must(crn_part_open(g->dir, "part", &model_id, true, &quick, &g->part));
        }
    }
    crn_part_close(g->part);
}

static void record_part(program *g, pasts *p, uint64_t seed, uint64_t nmarks)
{
    *g = (program){.dir = -1};
    make_empty(work);
    g->dir = open_dir(work);
    history_init(&g->history);
    model_init(&p->before, seed, 9000);
    model_init(&p->after, seed + 1, 9000);
    snprintf(where, sizeof where, "while recording");
    disk_record(&g->log, work);
    run_part(g, &p->before, nmarks);
    crn_fault_watch(NULL, NULL);
    copy_present(&p->before, &p->after);
    model_step(&p->after);
}

static void program_done(program *g)
{
    disk_log_done(&g->log);
    history_done(&g->history);
    close(g->dir);
}

static void test_power_loss_in_a_part(void **state)
{
    (void)state;
    program g;
    pasts p;
    uint64_t before = nstates;
    record_part(&g, &p, test_seed(), 24);
    crash_everywhere(&g.log, &g.history, 0, 8, check_part, &p);
    print_message("%llu crash states of %zu operations on a part\n",
                  (unsigned long long)(nstates - before), g.log.op.n);
    program_done(&g);
    pasts_done(&p);
}

/* --- the process ends, another goes on, the power fails ------------------------------------- */

/* A second program that finds the files as the first has left them in the page cache. */
typedef void second_program(program *g, void *arg);

static void go_on_part(program *g, void *arg)
{
    pasts *p = arg;
    cairn_status rc = crn_part_open(g->dir, "part", &model_id, true, &quick, &g->part);
    if (rc == CAIRN_ENOTFOUND)
        rc = crn_part_create(g->dir, "part", &model_id, &quick, &g->part);
    must(rc);
    g->history.list = list_of_part(g->part);
    for (uint64_t version = NEXT; version < NEXT + 2; version++) {
        model_step(&p->after);
        take_mark(g, &p->after, version, 1);
    }
    crn_part_close(g->part);
}

/* The first program ends before its operation n: no power is lost, so no write is. */
static void die_and_go_on(const program *first, size_t n, second_program *go_on, checker *check,
                          void *arg)
{
    program g = {.dir = -1};
    disk d;
    disk_choice all = {.kind = DISK_ALL};
    make_empty(work);
    disk_play(&d, &first->log, n, 0);
    disk_crash(&d, &all);
    disk_write_out(&d, work);
    disk_done(&d);
    disk_log_copy(&first->log, n, &g.log);
    history_init(&g.history);
    g.history.now = *history_at(&first->history, n);
    history_note(&g.history, n);
    g.dir = open_dir(work);
    snprintf(where, sizeof where, "going on after death before operation %zu", n);
    disk_record(&g.log, work);
    go_on(&g, arg);
    crn_fault_watch(NULL, NULL);
    crash_everywhere(&g.log, &g.history, n, 1, check, arg);
    program_done(&g);
}

static void test_power_loss_in_a_part_after_a_death(void **state)
{
    (void)state;
    program g;
    pasts p;
    uint64_t before = nstates;
    record_part(&g, &p, test_seed() + 7, 5);
    for (size_t n = 0; n <= g.log.op.n; n++)
        die_and_go_on(&g, n, go_on_part, check_part, &p);
    print_message("%llu crash states of a part that was gone on with after a death\n",
                  (unsigned long long)(nstates - before));
    program_done(&g);
    pasts_done(&p);
}

/* --- a disk that fails, then the power ------------------------------------------------------ */

/* Marks of which the one under way at the n-th sync or write fails; false: none did. */
static bool run_failing(program *g, pasts *p, crn_fault fault, bool reopen)
{
    bool struck = false;
    begin(g, (mark_list){0});
    end(g, crn_part_create(g->dir, "part", &model_id, &quick, &g->part));
    crn_fault_arm(&fault);
    for (uint64_t version = 1; version <= 5; version++) {
        model_step(&p->before);
        begin(g, list_mark(g->history.list, version, 1));
        if (model_mark(&p->before, g->part, version, 1, NULL) == CAIRN_OK) {
            history_end(&g->history, g->log.op.n);
            continue;
        }
        disk_note_lost(&g->log);
        struck = true;
        if (reopen) {
            crn_part_close(g->part);
            must(crn_part_open(g->dir, "part", &model_id, true, &quick, &g->part));
            g->history.list = list_of_part(g->part);
            must_allow(&g->history.now, &g->history.list);
        }
    }
    crn_fault_arm(NULL);
    crn_part_close(g->part);
    return struck;
}

static bool fail_and_crash(crn_fault fault, bool reopen)
{
    program g = {.dir = -1};
    pasts p;
    make_empty(work);
    g.dir = open_dir(work);
    history_init(&g.history);
    model_init(&p.before, test_seed() + fault.at, 6000);
    model_init(&p.after, test_seed(), 6000);
    snprintf(where, sizeof where, "while operation %llu fails", (unsigned long long)fault.at);
    disk_record(&g.log, work);
    bool struck = run_failing(&g, &p, fault, reopen);
    crn_fault_watch(NULL, NULL);
    copy_present(&p.before, &p.after);
    size_t lost = 0;
    while (lost < g.log.op.n && g.log.op.at[lost].kind != DISK_LOST)
        lost++;
    if (struck)
        crash_everywhere(&g.log, &g.history, lost, 2, check_part, &p);
    program_done(&g);
    pasts_done(&p);
    return struck;
}

static void test_power_loss_after_a_failed_disk(void **state)
{
    (void)state;
    const crn_fault kinds[] = {{CRN_FAULT_SYNC, CRN_FAULT_EIO, 1, 1},
                               {CRN_FAULT_SYNC, CRN_FAULT_EIO, 1, 2},
                               {CRN_FAULT_WRITE, CRN_FAULT_TORN, 1, 1}};
    uint64_t before = nstates;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        crn_fault fault = kinds[i];
        while (fail_and_crash(fault, fault.at % 2 == 0))
            fault.at++;
        assert_true(fault.at > 10); /* five marks of at least two syncs each */
    }
    print_message("%llu crash states after a failed disk\n",
                  (unsigned long long)(nstates - before));
}

/* --- a trail of two ranks ------------------------------------------------------------------- */

typedef struct trail_pasts {
    pasts rank[RANKS];
} trail_pasts;

typedef struct open_trail {
    crn_trail *trail;
    crn_run *run;
    crn_part *part[RANKS];
} open_trail;

static void trail_close(open_trail *t)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        crn_part_close(t->part[rank]);
    crn_run_close(t->run);
    crn_trail_close(t->trail);
}

static cairn_status trail_open_parts(open_trail *t)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        CRN_TRY(crn_run_part(t->run, 1, rank, RANKS, true, &quick, &t->part[rank]));
    return CAIRN_OK;
}

/* As a session would: a rank keeps all marks that the manifest lists until that lists the new one.
 */
static cairn_status trail_mark(open_trail *t, model *m[RANKS], uint64_t version, uint64_t keep)
{
    uint64_t listed = crn_run_manifest(t->run)->mark.n;
    for (int rank = 0; rank < RANKS; rank++)
        CRN_TRY(model_mark(m[rank], t->part[rank], version, listed + 1, NULL));
    crn_manifest_mark k = {
        .version = version, .series = 1, .nranks = RANKS, .levels = CRN_IN_TRAIL};
    CRN_TRY(crn_run_commit(t->run, &k, keep));
    for (int rank = 0; rank < RANKS; rank++)
        CRN_TRY(crn_part_trim(t->part[rank], keep));
    return CAIRN_OK;
}

/* As a restarted session would: what the manifest does not count is given up. */
static cairn_status trail_resume(open_trail *t)
{
    mark_list l = list_of_run(t->run);
    for (int rank = 0; rank < RANKS; rank++)
        CRN_TRY(crn_part_rewind(t->part[rank], l.n > 0 ? l.version[l.n - 1] : 0));
    return CAIRN_OK;
}

/* Open, or begin, the run below dir; which marks it had. */
static mark_list trail_find(open_trail *t, const char *dir)
{
    char path[96];
    mark_list l = {.absent = true};
    snprintf(path, sizeof path, "%s/t", dir);
    must(crn_trail_open(path, true, &t->trail));
    if (crn_run_open(t->trail, "r", true, &t->run) == CAIRN_OK)
        l = list_of_run(t->run);
    else
        must(crn_run_create(t->trail, "r", &t->run));
    assert_false(crn_run_was_rebuilt(t->run)); /* no crash may cost the manifest */
    must(trail_open_parts(t));
    must(trail_resume(t));
    return l;
}

static void check_trail(void *arg, const epoch *e)
{
    trail_pasts *p = arg;
    open_trail t = {0};
    model *m[RANKS];
    mark_list l = trail_find(&t, image);
    must_allow(e, &l);
    for (int rank = 0; rank < RANKS; rank++) {
        must_read_back(&p->rank[rank], t.part[rank], &l);
        m[rank] = &p->rank[rank].after;
    }
    must(trail_mark(&t, m, 2 * NEXT, 2));
    mark_list next = list_mark(l, 2 * NEXT, 2), now = list_of_run(t.run);
    assert_true(list_equal(&next, &now));
    for (int rank = 0; rank < RANKS; rank++)
        must_read_back(&p->rank[rank], t.part[rank], &next);
    trail_close(&t);
}

static void run_trail(program *g, trail_pasts *p, uint64_t nmarks)
{
    open_trail t = {0};
    char path[96];
    model *m[RANKS] = {&p->rank[0].before, &p->rank[1].before};
    snprintf(path, sizeof path, "%s/t", work);
    must(crn_trail_open(path, true, &t.trail));
    begin(g, (mark_list){0});
    end(g, crn_run_create(t.trail, "r", &t.run));
    must(trail_open_parts(&t));
    for (uint64_t version = 1; version <= nmarks; version++) {
        uint64_t keep = 1 + version / 2 % 2;
        for (int rank = 0; rank < RANKS; rank++)
            model_step(m[rank]);
        begin(g, list_mark(g->history.list, version, keep));
        end(g, trail_mark(&t, m, version, keep));
        if (version % 3 == 0) {
            crn_run_close(t.run);
            for (int rank = 0; rank < RANKS; rank++)
                crn_part_close(t.part[rank]);
            must(crn_run_open(t.trail, "r", true, &t.run));
            must(trail_open_parts(&t));
            must(trail_resume(&t));
        }
    }
    trail_close(&t);
}

static void record_trail(program *g, trail_pasts *p, uint64_t nmarks)
{
    *g = (program){.dir = -1};
    make_empty(work);
    history_init(&g->history);
    for (unsigned rank = 0; rank < RANKS; rank++) {
        model_init(&p->rank[rank].before, test_seed() + rank, 5000);
        model_init(&p->rank[rank].after, test_seed() + 10 + rank, 5000);
    }
    snprintf(where, sizeof where, "while recording");
    disk_record(&g->log, work);
    run_trail(g, p, nmarks);
    crn_fault_watch(NULL, NULL);
    for (int rank = 0; rank < RANKS; rank++)
        copy_present(&p->rank[rank].before, &p->rank[rank].after);
}

static void trail_pasts_done(trail_pasts *p)
{
    for (int rank = 0; rank < RANKS; rank++)
        pasts_done(&p->rank[rank]);
}

static void test_power_loss_in_a_trail(void **state)
{
    (void)state;
    program g;
    trail_pasts p;
    uint64_t before = nstates;
    record_trail(&g, &p, 7);
    crash_everywhere(&g.log, &g.history, 0, 8, check_trail, &p);
    print_message("%llu crash states of %zu operations on a trail of %d ranks\n",
                  (unsigned long long)(nstates - before), g.log.op.n, RANKS);
    program_done(&g);
    trail_pasts_done(&p);
}

static void go_on_trail(program *g, void *arg)
{
    trail_pasts *p = arg;
    open_trail t = {0};
    model *m[RANKS];
    if (g->history.now.list[0].absent)
        begin(g, (mark_list){0});
    mark_list found = trail_find(&t, work);
    must_allow(&g->history.now, &found);
    g->history.list = found;
    for (int rank = 0; rank < RANKS; rank++) {
        m[rank] = &p->rank[rank].after;
        model_step(m[rank]);
    }
    begin(g, list_mark(found, NEXT, 1));
    end(g, trail_mark(&t, m, NEXT, 1));
    trail_close(&t);
}

static void test_power_loss_in_a_trail_after_a_death(void **state)
{
    (void)state;
    program g;
    trail_pasts p;
    uint64_t before = nstates;
    record_trail(&g, &p, 2);
    for (size_t n = test_seed() % 2; n <= g.log.op.n; n += 2) /* the other half by another seed */
        die_and_go_on(&g, n, go_on_trail, check_trail, &p);
    print_message("%llu crash states of a trail that was gone on with after a death\n",
                  (unsigned long long)(nstates - before));
    program_done(&g);
    trail_pasts_done(&p);
}

/* --- real deaths ---------------------------------------------------------------------------- */

/* Run the program in a child that ends at its n-th operation of any kind; false: it came to its
 * end. */
static bool die_at(uint64_t n, crn_fault_how how, uint64_t seed, int *acked)
{
    *acked = 0;
    make_empty(work);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        program g = {.acked = acked, .dir = open_dir(work)};
        model m;
        crn_fault fault = {CRN_FAULT_ANY, how, n, 1};
        history_init(&g.history);
        model_init(&m, seed, 9000);
        crn_fault_arm(&fault);
        run_part(&g, &m, 8);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bool died = WIFEXITED(status) ? WEXITSTATUS(status) == 86 : WTERMSIG(status) == SIGKILL;
    assert_true(ended || died);
    return !ended;
}

/* The lists that a program which had acked calls may have left: epochs come in pairs, at the
 * beginning and at the end of a call, behind the very first. */
static const epoch *epoch_after(const history *h, int acked)
{
    size_t i = 2 * (size_t)acked + 1;
    return &h->epoch.at[CRN_MIN(i, h->epoch.n - 1)];
}

static void test_deaths_of_a_process(void **state)
{
    (void)state;
    program g;
    pasts p;
    uint64_t seed = test_seed() + 3, n = 0;
    int *acked =
        mmap(NULL, sizeof *acked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(acked != MAP_FAILED);
    record_part(&g, &p, seed, 8);
    while (die_at(n + 1, n % 2 ? CRN_FAULT_EXIT : CRN_FAULT_KILL, seed, acked)) {
        n++;
        snprintf(where, sizeof where, "death at operation %llu", (unsigned long long)n);
        remove_tree(image);
        assert_int_equal(rename(work, image), 0);
        check_part(&p, epoch_after(&g.history, *acked));
    }
    assert_true(n > g.log.op.n); /* reads and opens count, too */
    print_message("%llu real deaths\n", (unsigned long long)n);
    nstates += n;
    program_done(&g);
    pasts_done(&p);
    munmap(acked, sizeof *acked);
}

static void test_the_count(void **state)
{
    (void)state;
    print_message("%llu crash states in all\n", (unsigned long long)nstates);
    assert_true(nstates > 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_power_loss_in_a_part),
        cmocka_unit_test(test_power_loss_in_a_part_after_a_death),
        cmocka_unit_test(test_power_loss_after_a_failed_disk),
        cmocka_unit_test(test_power_loss_in_a_trail),
        cmocka_unit_test(test_power_loss_in_a_trail_after_a_death),
        cmocka_unit_test(test_deaths_of_a_process),
        cmocka_unit_test(test_the_count),
    };
    return cmocka_run_group_tests_name("crash", tests, setup, teardown);
}
