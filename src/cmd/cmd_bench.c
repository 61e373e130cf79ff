/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn bench blocks: what other block sizes would mean on this machine. A state is marked, a share
 * of it changed here and there, and marked again, once for each block size; all by the calls that
 * programs use.
 */
#include <mpi.h>

#include "cmd/cmd_bench.h"
#include "cmd/cmd_events.h"

#include <cairn/ckpt.h>
#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <unistd.h>

static const char usage[] =
    "cairn bench blocks [--json] [--size N] [--changed PERCENT] [--stretch N] [DIRECTORY]\n"
    "cairn bench blocks --trail TRAIL[/RUN] [--json]";

enum { TURNS = 3, SMALLEST = 1 << 10, LARGEST = 4 << 20 };

typedef struct task {
    char dir[512];          /* of our own, removed in the end */
    uint64_t size, stretch; /* bytes of the state; of one change */
    double share;           /* of the state that changes, 0 to 1 */
    unsigned char *data;
    uint64_t version;
} task;

/* With one block size. */
typedef struct outcome {
    uint64_t block, written, tables; /* bytes: written for a mark, of those for its tables */
    double held, stored;             /* seconds: medians */
} outcome;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

/* A new value in stretches spread evenly over the state. */
static void change(task *t)
{
    const double step = t->share > 0 ? (double)t->stretch / t->share : HUGE_VAL;
    for (double at = 0; at + (double)t->stretch <= (double)t->size; at += step)
        memset(t->data + (uint64_t)at, (int)t->version, t->stretch);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One full mark, which does not count, then marks of what changed. */
static cairn_status mark_all(task *t, cairn *c, outcome *ret)
{
    double held[TURNS], stored[TURNS];
    for (int i = -1; i < TURNS; i++) {
        const int at = CRN_MAX(i, 0);
        t->version++;
        change(t);
        const uint64_t start = crn_now_ns();
        CRN_TRY(cairn_mark(c, t->version, CAIRN_LEVEL_LOCAL));
        held[at] = (double)(crn_now_ns() - start) * 1e-9;
        CRN_TRY(cairn_settle(c));
        stored[at] = (double)(crn_now_ns() - start) * 1e-9;
    }
    qsort(held, TURNS, sizeof *held, by_value);
    qsort(stored, TURNS, sizeof *stored, by_value);
    ret->held = held[TURNS / 2];
    ret->stored = stored[TURNS / 2];
    return CAIRN_OK;
}

/* Bytes that the last mark wrote, by its run's log, and those of its tables. */
static cairn_status count_written(const task *t, const char *run, outcome *ret)
{
    cairn_trail *trail;
    size_t number;
    cairn_run_info info = {.struct_bytes = sizeof info};
    cairn_variable_info v = {.struct_bytes = sizeof v};
    CRN_TRY(cairn_trail_open(t->dir, &trail));
    cairn_status rc = cairn_trail_find_run(trail, run, &number);
    crn_event_list events = {0};
    if (rc == CAIRN_OK)
        rc = cairn_trail_run(trail, number, &info);
    if (rc == CAIRN_OK)
        rc = cairn_trail_variable(trail, number, info.nmarks - 1, 0, 0, &v);
    if (rc == CAIRN_OK)
        (void)cmd_events_read(trail, number, t->version, &events);
    const crn_event *mark = cmd_events_find(&events, CRN_EVENT_MARK, NULL);
    ret->written = mark ? mark->mark.written : 0;
    ret->tables = v.table_bytes;
    crn_events_done(&events);
    cairn_trail_close(trail);
    return rc;
}

static int configure(const task *t, const char *run, uint64_t block)
{
    char text[CRN_NUMBER_TEXT];
    snprintf(text, sizeof text, "%" PRIu64, block);
    return setenv("CAIRN_RUN_TRAIL", t->dir, 1) | setenv("CAIRN_RUN_NAME", run, 1) |
           setenv("CAIRN_VARIABLE_BLOCK", text, 1) | setenv("CAIRN_LEVEL_LOCAL", "trail", 1) |
           setenv("CAIRN_KEEP_GLOBAL", "1", 1) | setenv("CAIRN_COMPARE_TREES", "no", 1);
}

static int try_block(task *t, uint64_t block, outcome *ret)
{
    char run[CRN_NUMBER_TEXT];
    cairn *c;
    snprintf(run, sizeof run, "block-%" PRIu64, block);
    if (configure(t, run, block) != 0)
        return cmd_fail("no memory");
    if (cairn_open(MPI_COMM_SELF, NULL, &c) < 0)
        return cmd_fail("%s", cairn_last_error(NULL));
    cairn_status rc = cairn_protect(c, "state", t->data, CAIRN_BYTES, t->size);
    if (rc == CAIRN_OK)
        rc = mark_all(t, c, ret);
    if (rc < 0)
        cmd_fail("%s", cairn_last_error(c));
    if (cairn_close(c) < 0 && rc == CAIRN_OK)
        rc = cmd_fail("%s", cairn_error_text());
    if (rc == CAIRN_OK && (rc = count_written(t, run, ret)) < 0)
        cmd_fail("%s", cairn_error_text());
    ret->block = block;
    return rc == CAIRN_OK ? CMD_YES : CMD_UNKNOWN;
}

/* --- printing ------------------------------------------------------------------------------- */

static json_t *json_of(const task *t, const outcome *o)
{
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:I}", "block_bytes", (json_int_t)o->block,
                     "written_bytes", (json_int_t)o->written, "share",
                     (double)o->written / (double)t->size, "held", o->held, "stored", o->stored,
                     "digest_bytes", (json_int_t)o->tables);
}

static int print(const task *t, const outcome *o, size_t n, bool json)
{
    static const char *const head[] = {"BLOCK", "WRITTEN", "SHARE", "HELD", "STORED", "DIGESTS"};
    cmd_columns table = {.align = "rrrrrr"};
    char text[CRN_NUMBER_TEXT], share[CMD_WORDS];
    json_t *list = json_array();
    for (size_t i = 0; json && i < n; i++)
        cmd_json_append(&list, json_of(t, &o[i]));
    if (json)
        return cmd_print_json(list, CMD_YES);
    json_decref(list);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        cmd_cell(&table, "%s", head[i]);
    for (size_t i = 0; i < n; i++) {
        cmd_cell(&table, "%s", crn_format_nbytes(o[i].block, text, sizeof text));
        cmd_cell(&table, "%s", crn_format_nbytes(o[i].written, text, sizeof text));
        cmd_cell(&table, "%s", cmd_share(o[i].written, t->size, share));
        cmd_cell(&table, "%s", crn_format_seconds(o[i].held, text, sizeof text));
        cmd_cell(&table, "%s", crn_format_seconds(o[i].stored, text, sizeof text));
        cmd_cell(&table, "%s", crn_format_nbytes(o[i].tables, text, sizeof text));
    }
    return cmd_columns_print(&table, 0, CMD_YES);
}

/* --- the command ---------------------------------------------------------------------------- */

static int try_blocks(task *t, bool json)
{
    outcome o[16];
    size_t n = 0;
    cmd_progress progress;
    int code = CMD_YES;
    cmd_progress_start(&progress, "marking");
    for (uint64_t block = SMALLEST; code == CMD_YES && block <= LARGEST; block *= 4) {
        cmd_progress_update(&progress, block - SMALLEST, LARGEST);
        code = try_block(t, block, &o[n++]);
    }
    cmd_progress_end(&progress);
    return code == CMD_YES ? print(t, o, n, json) : code;
}

/* In a directory and memory of our own. */
static int run_task(task *t, bool json)
{
    if (!mkdtemp(t->dir))
        return cmd_fail("cannot make '%s': %s", t->dir, strerror(errno));
    int code = CMD_UNKNOWN;
    if (crn_alloc_aligned(&t->data, t->size, 4096) < 0) {
        cmd_fail("%s", crn_err_peek()->text);
    } else {
        memset(t->data, 1, t->size);
        code = try_blocks(t, json);
    }
    free(t->data);
    nftw(t->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return code;
}

/* Sizes and the share as the user gave them. */
static int read_numbers(const char *size, const char *changed, const char *stretch, task *ret)
{
    double percent;
    if (crn_parse_nbytes(size, &ret->size) < 0 || crn_parse_nbytes(stretch, &ret->stretch) < 0 ||
        crn_parse_real(changed, &percent) < 0)
        return cmd_misuse(usage, "%s", crn_err_peek()->text);
    if (percent < 0 || percent > 100)
        return cmd_misuse(usage, "--changed: 0 to 100 percent, not %s", changed);
    if (ret->stretch == 0 || ret->size < ret->stretch)
        return cmd_misuse(usage, "--stretch: at least a byte, and no more than the state has");
    ret->share = percent / 100;
    return CMD_YES;
}

int cmd_bench(int argc, char **argv)
{
    task t = {.version = 0};
    bool json = false;
    const char *size = "256MiB", *changed = "1", *stretch = "4KiB", *trail = NULL;
    int code;
    const cmd_option options[] = {
        CMD_JSON(&json),
        CMD_TEXT('s', "size", "N", &size, "bytes of the state (256MiB)"),
        CMD_TEXT('c', "changed", "PERCENT", &changed, "how much of it changes between marks (1)"),
        CMD_TEXT('l', "stretch", "N", &stretch, "bytes that change together (4KiB)"),
        CMD_TEXT('t', "trail", "TRAIL[/RUN]", &trail, "look at marks of a run instead"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc < 1 || argc > 2 || strcmp(argv[0], "blocks") != 0)
        return cmd_misuse(usage, "what can be measured is 'blocks'");
    if (trail && argc > 1)
        return cmd_misuse(usage, "--trail: nothing is written, so there is no DIRECTORY");
    if (trail)
        return cmd_bench_trail(trail, json);
    code = read_numbers(size, changed, stretch, &t);
    if (code != CMD_YES)
        return code;
    const int n = snprintf(t.dir, sizeof t.dir, "%s/cairn-bench-XXXXXX", argc > 1 ? argv[1] : ".");
    if (n < 0 || (size_t)n >= sizeof t.dir)
        return cmd_fail("the name of the directory is too long");
    return run_task(&t, json);
}
