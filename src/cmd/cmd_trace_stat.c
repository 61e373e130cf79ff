/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn trace stat: sums over a trace. Each section is one sum by some properties, as text or JSON.
 */
#include "cmd/cmd_trace.h"

static const char usage[] = "cairn trace stat [--where TERMS] [--top N] [--own] [--json] FILE";

typedef struct stat_job {
    cairn_trace *t;
    cairn_trace_info info;
    size_t top;       /* lines of a list */
    bool own;         /* with the calls of Cairn */
    uint32_t ngroups; /* that ranks are joined to; 0: to none */
} stat_job;

/* ---- cells ---- */

static void cell_seconds(cmd_columns *c, double seconds)
{
    char text[CRN_NUMBER_TEXT];
    cmd_cell(c, "%s", seconds > 0 ? crn_format_seconds(seconds, text, sizeof text) : "-");
}

static void cell_nbytes(cmd_columns *c, uint64_t nbytes)
{
    char text[CRN_NUMBER_TEXT];
    cmd_cell(c, "%s", nbytes > 0 ? crn_format_nbytes(nbytes, text, sizeof text) : "-");
}

static void cell_call(cmd_columns *c, const cairn_trace_row *r)
{
    cmd_cell(c, "%s%s%s", r->call, r->within ? " < " : "", r->within ? r->within : "");
}

static uint64_t mean(uint64_t sum, uint64_t n)
{
    return n > 0 ? sum / n : 0;
}

/* ---- sections ---- */

/* A section: what it sums by, how a row looks. */
typedef struct section {
    const char *key, *title;
    unsigned by;
    const char *align;
    const char *names[10];
    bool (*wanted)(const cairn_trace_row *r);
    void (*cells)(const stat_job *job, cmd_columns *c, const cairn_trace_row *r);
    json_t *(*members)(const stat_job *job, const cairn_trace_row *r);
    int (*order)(const void *a, const void *b); /* NULL: by key, all rows; else the first few */
} section;

static int by_seconds(const void *a, const void *b)
{
    const cairn_trace_row *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? 1 : -1;
    return (x->nevents < y->nevents) - (x->nevents > y->nevents);
}

static int by_waited(const void *a, const void *b)
{
    const cairn_trace_row *x = a, *y = b;
    return (x->waited < y->waited) - (x->waited > y->waited);
}

static void call_cells(const stat_job *job, cmd_columns *c, const cairn_trace_row *r)
{
    (void)job;
    cell_call(c, r);
    cmd_cell(c, "%s", r->layer);
    cmd_cell(c, "%" PRIu64, r->nevents);
    cell_nbytes(c, r->nbytes);
    cell_nbytes(c, mean(r->nbytes, r->nevents));
    cell_seconds(c, r->seconds);
    cell_seconds(c, r->seconds / (double)r->nevents);
    cell_seconds(c, r->seconds_max);
}

static json_t *json_call(const cairn_trace_row *r)
{
    return json_pack("{s:s, s:s?, s:s?}", "call", r->call, "within", r->within, "layer", r->layer);
}

static json_t *call_members(const stat_job *job, const cairn_trace_row *r)
{
    (void)job;
    return cmd_json_merge(json_call(r),
                          json_pack("{s:o, s:b}", "seconds_max", cmd_trace_seconds(r->seconds_max),
                                    "replayed", !r->unmodelled));
}

static void site_cells(const stat_job *job, cmd_columns *c, const cairn_trace_row *r)
{
    cell_call(c, r);
    cmd_cell(c, "%" PRIu64, r->nevents);
    cell_nbytes(c, r->nbytes);
    cell_seconds(c, r->seconds);
    cmd_cell(c, "%s", cmd_trace_site(job->t, r->site));
}

static json_t *site_members(const stat_job *job, const cairn_trace_row *r)
{
    return cmd_json_merge(
        json_call(r), json_pack("{s:o}", "site", cmd_json_text(cmd_trace_site(job->t, r->site))));
}

static void rank_cells(const stat_job *job, cmd_columns *c, const cairn_trace_row *r)
{
    (void)job;
    cmd_cell(c, "%" PRIu32, r->rank);
    cmd_cell(c, "%s", r->layer);
    cmd_cell(c, "%" PRIu64, r->nevents);
    cell_nbytes(c, r->nbytes);
    cell_seconds(c, r->seconds);
}

static json_t *rank_members(const stat_job *job, const cairn_trace_row *r)
{
    (void)job;
    return json_pack("{s:i, s:s, s:o}", "rank", (int)r->rank, "layer", r->layer, "waited",
                     cmd_trace_seconds(r->waited));
}

static void pair_cells(const stat_job *job, cmd_columns *c, const cairn_trace_row *r)
{
    (void)job;
    cmd_cell(c, "%" PRIu32, r->rank);
    cmd_cell(c, "%" PRId64, r->peer);
    cmd_cell(c, "%" PRIu64, r->nevents);
    cell_nbytes(c, r->nbytes);
}

static json_t *pair_members(const stat_job *job, const cairn_trace_row *r)
{
    (void)job;
    return json_pack("{s:i, s:I}", "rank", (int)r->rank, "peer", (json_int_t)r->peer);
}

static int by_nbytes(const void *a, const void *b)
{
    const cairn_trace_row *x = a, *y = b;
    return (x->nbytes < y->nbytes) - (x->nbytes > y->nbytes);
}

/* "consecutive", "strided", "60% consecutive, 40% strided", "-" */
static const char *pattern(const cairn_trace_row *r, char *buf, size_t cap)
{
    if (r->nsteps == 0)
        return "-";
    if (r->nconsecutive == r->nsteps)
        return "consecutive";
    if (r->nstrided == r->nsteps)
        return "strided";
    snprintf(buf, cap, "%.0f%% consecutive, %.0f%% strided",
             100 * (double)r->nconsecutive / (double)r->nsteps,
             100 * (double)r->nstrided / (double)r->nsteps);
    return buf;
}

static void file_cells(const stat_job *job, cmd_columns *c, const cairn_trace_row *r)
{
    char text[48];
    (void)job;
    cmd_cell(c, "%s", r->file);
    cmd_cell(c, "%s", r->layer);
    cell_call(c, r);
    cmd_cell(c, "%" PRIu64, r->nevents);
    cell_nbytes(c, r->nbytes);
    cell_nbytes(c, mean(r->nbytes, r->nevents));
    cell_seconds(c, r->seconds);
    cmd_cell(c, "%s", pattern(r, text, sizeof text));
}

static json_t *file_members(const stat_job *job, const cairn_trace_row *r)
{
    (void)job;
    return cmd_json_merge(
        json_call(r), json_pack("{s:o, s:I, s:I, s:I}", "file", cmd_json_text(r->file), "steps",
                                (json_int_t)r->nsteps, "consecutive", (json_int_t)r->nconsecutive,
                                "strided", (json_int_t)r->nstrided));
}

static bool has_bytes(const cairn_trace_row *r)
{
    return r->nbytes > 0;
}

static void size_cells(const stat_job *job, cmd_columns *c, const cairn_trace_row *r)
{
    (void)job;
    cmd_cell(c, "%s", r->layer);
    cell_nbytes(c, r->size);
    cmd_cell(c, "%" PRIu64, r->nevents);
    cell_nbytes(c, r->nbytes);
}

static json_t *size_members(const stat_job *job, const cairn_trace_row *r)
{
    (void)job;
    return json_pack("{s:s, s:I}", "layer", r->layer, "size", (json_int_t)r->size);
}

/* Less than a hundredth is rounding. */
static bool may_wait(const cairn_trace_row *r)
{
    return r->waited > 0.01 * r->seconds &&
           (strcmp(r->layer, "coll") == 0 || strcmp(r->layer, "wait") == 0 ||
            strcmp(r->layer, "p2p") == 0);
}

/* From whom most messages came that a rank received at a place, or to whom most went. */
typedef struct partners {
    const cairn_trace_row *at;
    int64_t rank;  /* -1: nobody is known */
    uint64_t lead; /* messages that it is ahead of all others by: whoever sent over half, is */
} partners;

static int add_partners(void *arg, const cairn_trace_event *e)
{
    partners *s = arg;
    if (e->site != s->at->site || strcmp(e->call, s->at->call) != 0)
        return 0;
    for (size_t i = 0; i < e->nmessages; i++) {
        const cairn_trace_message *m = &e->message[i];
        if (m->peer < 0 || (m->sent && e->nmessages > 1)) /* of two, it waits for the other one */
            continue;
        if (m->peer == s->rank) {
            s->lead += e->repeat;
        } else if (e->repeat > s->lead) {
            s->rank = m->peer;
            s->lead = e->repeat - s->lead;
        } else {
            s->lead -= e->repeat;
        }
    }
    return 0;
}

/* Whom the rank with the longest call waited for: its partner, or else who came last; -1: nobody,
 * since no rank waits for itself. */
static int64_t waited_for(const stat_job *job, const cairn_trace_row *r)
{
    partners s = {.at = r, .rank = -1};
    if (strcmp(r->layer, "p2p") != 0 ||
        cairn_trace_visit(job->t, r->longest_rank, add_partners, &s) < 0 || s.rank < 0)
        s.rank = r->shortest_rank;
    return s.rank == (int64_t)r->longest_rank ? -1 : s.rank;
}

static void wait_cells(const stat_job *job, cmd_columns *c, const cairn_trace_row *r)
{
    cell_call(c, r);
    cell_seconds(c, r->waited);
    cell_seconds(c, r->seconds);
    cmd_cell(c, "%" PRIu32, r->longest_rank);
    const int64_t last = waited_for(job, r);
    cmd_cell(c, last < 0 ? "-" : "%" PRId64, last);
    cmd_cell(c, "%s", cmd_trace_site(job->t, r->site));
}

static json_t *wait_members(const stat_job *job, const cairn_trace_row *r)
{
    const int64_t last = waited_for(job, r);
    return cmd_json_merge(site_members(job, r),
                          json_pack("{s:o, s:o, s:i}", "waited", cmd_trace_seconds(r->waited),
                                    "last", last < 0 ? json_null() : json_integer(last), "waits",
                                    (int)r->longest_rank));
}

static const section sections[] = {
    {"calls",
     "calls",
     CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_CALL,
     "llrrrrrr",
     {"call", "layer", "events", "bytes", "each", "time", "each", "longest"},
     NULL,
     call_cells,
     call_members,
     by_seconds},
    {"sites",
     "call sites",
     CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_CALL | CAIRN_TRACE_BY_SITE,
     "lrrrl",
     {"call", "events", "bytes", "time", "site"},
     NULL,
     site_cells,
     site_members,
     by_seconds},
    {"ranks",
     "ranks (time is estimated: calls of a place take equally long on ranks that are alike)",
     CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_RANK,
     "rlrrr",
     {"rank", "layer", "events", "bytes", "time"},
     NULL,
     rank_cells,
     rank_members,
     NULL},
    {"pairs",
     "messages between pairs of ranks",
     CAIRN_TRACE_BY_RANK | CAIRN_TRACE_BY_PEER,
     "rrrr",
     {"from", "to", "messages", "bytes"},
     NULL,
     pair_cells,
     pair_members,
     by_nbytes},
    {"files",
     "files",
     CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_CALL | CAIRN_TRACE_BY_FILE,
     "lllrrrrl",
     {"file", "layer", "call", "events", "bytes", "each", "time", "pattern"},
     NULL,
     file_cells,
     file_members,
     NULL},
    {"sizes",
     "sizes of requests, from the power of two on",
     CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_SIZE,
     "lrrr",
     {"layer", "size", "events", "bytes"},
     has_bytes,
     size_cells,
     size_members,
     NULL},
    {"waits",
     "waiting (estimated: what calls took above the shortest one of their site; the rank of the\n"
     "longest waited most, for its partner or, with the shortest, who came last)",
     CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_CALL | CAIRN_TRACE_BY_SITE,
     "lrrrrl",
     {"call", "waited", "of", "rank", "for", "site"},
     may_wait,
     wait_cells,
     wait_members,
     by_waited},
};

enum { NSECTIONS = sizeof sections / sizeof *sections };

/* Leave out what is not wanted, put first what matters most. */
static void arrange(const section *s, cmd_trace_rows *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->row.n; i++)
        if (!s->wanted || s->wanted(&rows->row.at[i]))
            rows->row.at[n++] = rows->row.at[i];
    rows->row.n = n;
    if (s->order && n > 0)
        qsort(rows->row.at, n, sizeof *rows->row.at, s->order);
}

enum { UNORDERED = 10 }; /* a list of which no part matters most may be that much longer */

static int print_section(const stat_job *job, const section *s, const cmd_trace_rows *rows)
{
    cmd_columns c = {.align = s->align};
    size_t n = CRN_MIN(rows->row.n, s->order ? job->top : UNORDERED * job->top);
    if (n == 0)
        return CMD_YES;
    printf("\n%s\n", s->title);
    cmd_trace_heads(&c, s->names);
    for (size_t i = 0; i < n; i++)
        s->cells(job, &c, &rows->row.at[i]);
    int code = cmd_columns_print(&c, 2, CMD_YES);
    if (n < rows->row.n)
        cmd_line("  and %zu more", rows->row.n - n);
    return code;
}

static json_t *json_section(const stat_job *job, const section *s, const cmd_trace_rows *rows)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rows->row.n; i++) {
        const cairn_trace_row *r = &rows->row.at[i];
        json_t *o = json_pack("{s:I, s:I, s:o, s:b}", "events", (json_int_t)r->nevents, "nbytes",
                              (json_int_t)r->nbytes, "seconds", cmd_trace_seconds(r->seconds),
                              "expected", (int)r->expected);
        cmd_json_append(&list, cmd_json_merge(s->members(job, r), o));
    }
    return list;
}

static unsigned own(const stat_job *job)
{
    return job->own ? CAIRN_TRACE_OWN : 0;
}

static int do_sections(const stat_job *job, json_t *all)
{
    int code = CMD_YES;
    for (size_t i = 0; i < NSECTIONS && code == CMD_YES; i++) {
        cmd_trace_rows rows;
        if (cmd_trace_sum(job->t, sections[i].by | own(job), &rows) != CMD_YES)
            return CMD_UNKNOWN;
        if (job->ngroups > 0 && sections[i].by & CAIRN_TRACE_BY_RANK)
            cmd_trace_join(&rows, job->info.nranks, job->ngroups);
        arrange(&sections[i], &rows);
        if (all)
            json_object_set_new(all, sections[i].key, json_section(job, &sections[i], &rows));
        else
            code = print_section(job, &sections[i], &rows);
        cmd_trace_rows_done(&rows);
    }
    return code;
}

/* ---- computing between calls: where ranks differ ---- */

typedef struct gap_list {
    CRN_VEC(cairn_trace_gap) gap;
    bool failed;
} gap_list;

static int collect_gap(void *arg, const cairn_trace_gap *g)
{
    gap_list *l = arg;
    l->failed = crn_vec_push(&l->gap, *g) < 0;
    return l->failed;
}

/* What the others lose when all wait for the slowest. */
static double loss(const cairn_trace_gap *g)
{
    return (g->seconds_max - g->seconds) * (double)g->n;
}

static int by_loss(const void *a, const void *b)
{
    double x = loss(a), y = loss(b);
    return (x < y) - (x > y);
}

static int print_gaps(const stat_job *job, const gap_list *l)
{
    cmd_columns c = {.align = "llrrrrrr"};
    const char *const names[] = {"from", "to",       "times", "mean", "longest",
                                 "rank", "max/mean", "total", NULL};
    if (l->gap.n == 0)
        return CMD_YES;
    printf("\ncomputing between calls, the most uneven first\n");
    cmd_trace_heads(&c, names);
    for (size_t i = 0; i < CRN_MIN(l->gap.n, job->top); i++) {
        const cairn_trace_gap *g = &l->gap.at[i];
        cmd_cell(&c, "%s", g->from ? g->from : "start");
        cmd_cell(&c, "%s", g->to);
        cmd_cell(&c, "%" PRIu64, g->n);
        cell_seconds(&c, g->seconds);
        cell_seconds(&c, g->seconds_max);
        cmd_cell(&c, "%" PRIu32, g->longest_rank);
        cmd_cell(&c, "%.2f", g->seconds > 0 ? g->seconds_max / g->seconds : 1.0);
        cell_seconds(&c, g->seconds * (double)g->n);
    }
    return cmd_columns_print(&c, 2, CMD_YES);
}

static json_t *json_gaps(const gap_list *l)
{
    json_t *list = json_array();
    for (size_t i = 0; i < l->gap.n; i++) {
        const cairn_trace_gap *g = &l->gap.at[i];
        cmd_json_append(
            &list, json_pack("{s:s?, s:s, s:I, s:o, s:o, s:o, s:i, s:i}", "from", g->from, "to",
                             g->to, "n", (json_int_t)g->n, "seconds", cmd_trace_seconds(g->seconds),
                             "seconds_max", cmd_trace_seconds(g->seconds_max), "deviation",
                             cmd_trace_seconds(g->deviation), "shortest_rank",
                             (int)g->shortest_rank, "longest_rank", (int)g->longest_rank));
    }
    return list;
}

static int do_gaps(const stat_job *job, json_t *all)
{
    gap_list l = {.failed = false};
    int code = CMD_YES, rc = cairn_trace_gaps(job->t, collect_gap, &l);
    if (rc != CAIRN_OK)
        code = l.failed ? cmd_fail("no memory for gaps") : cmd_fail("%s", cairn_error_text());
    if (code == CMD_YES && l.gap.n > 0)
        qsort(l.gap.at, l.gap.n, sizeof *l.gap.at, by_loss);
    if (code == CMD_YES && all)
        json_object_set_new(all, "gaps", json_gaps(&l));
    else if (code == CMD_YES)
        code = print_gaps(job, &l);
    crn_vec_done(&l.gap);
    return code;
}

/* ---- how much of the time ---- */

/* Shares of the time of all threads: what calls of each layer took, but for calls within others,
 * and the rest: computing, and, of threads that come and go, not being there. */
static int print_shares(const stat_job *job)
{
    cmd_trace_rows rows;
    double whole = (double)job->info.lasted_ns * 1e-9 * (double)job->info.nall_threads, sum = 0;
    double layer = 0;
    if (!job->info.times || whole <= 0)
        return CMD_YES;
    if (cmd_trace_sum(job->t, CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_CALL | own(job), &rows) !=
        CMD_YES)
        return CMD_UNKNOWN;
    printf("time of all %s:", job->info.nthreads > 1 ? "threads" : "ranks");
    for (size_t i = 0; i < rows.row.n; i++) {
        const cairn_trace_row *r = &rows.row.at[i];
        layer += r->within ? 0 : r->seconds;
        if (i + 1 < rows.row.n && strcmp(r->layer, r[1].layer) == 0)
            continue;
        if (layer > 0)
            printf(" %s %.1f%%", r->layer, 100 * layer / whole);
        sum += layer;
        layer = 0;
    }
    printf(" rest %.1f%%\n", 100 * CRN_MAX(1 - sum / whole, 0));
    cmd_trace_rows_done(&rows);
    return CMD_YES;
}

/* Calls that a replay refuses. */
static int print_unmodelled(const stat_job *job)
{
    cmd_trace_rows rows;
    crn_buf text = {0};
    if (cmd_trace_sum(job->t, CAIRN_TRACE_BY_LAYER | CAIRN_TRACE_BY_CALL | own(job), &rows) !=
        CMD_YES)
        return CMD_UNKNOWN;
    for (size_t i = 0; i < rows.row.n; i++)
        if (rows.row.at[i].unmodelled)
            crn_put_text(&text, "%s %s (%" PRIu64 ")", text.n ? "," : "", rows.row.at[i].call,
                         rows.row.at[i].nevents);
    if (text.n > 0)
        cmd_line("recorded, but not replayed:%s", crn_buf_text(&text));
    crn_buf_done(&text);
    cmd_trace_rows_done(&rows);
    return CMD_YES;
}

static int print_all(const stat_job *job, const char *path)
{
    char lasted[CRN_NUMBER_TEXT];
    cmd_line("%s: %s, %" PRIu32 " rank%s, %" PRIu64 " events, %s, precision %" PRIu32 "%%", path,
             job->info.program, job->info.nranks, job->info.nranks == 1 ? "" : "s",
             job->info.nevents,
             crn_format_seconds((double)job->info.lasted_ns * 1e-9, lasted, sizeof lasted),
             job->info.precision);
    if (print_shares(job) != CMD_YES || print_unmodelled(job) != CMD_YES ||
        cmd_trace_slow(job->t, &job->info, job->top, NULL) != CMD_YES ||
        do_sections(job, NULL) != CMD_YES ||
        cmd_trace_kinds(job->t, &job->info, own(job), NULL) != CMD_YES)
        return CMD_UNKNOWN;
    return do_gaps(job, NULL);
}

/* NULL after saying why. */
static json_t *json_all(const stat_job *job)
{
    json_t *all = cmd_trace_json(&job->info);
    if (cmd_trace_slow(job->t, &job->info, job->top, all) == CMD_YES &&
        do_sections(job, all) == CMD_YES &&
        cmd_trace_kinds(job->t, &job->info, own(job), all) == CMD_YES &&
        do_gaps(job, all) == CMD_YES)
        return all;
    json_decref(all);
    return NULL;
}

json_t *cmd_trace_stat_joined(const char *path, uint32_t ngroups)
{
    stat_job job = {0};
    if (cmd_trace_look_at(path, &(cmd_trace_look){0}, &job.t, &job.info) != CMD_YES)
        return NULL;
    job.ngroups = CRN_MIN(ngroups, job.info.nranks);
    json_t *all = json_all(&job);
    json_object_set_new(all, "groups", json_integer(job.ngroups));
    cairn_trace_close(job.t);
    return all;
}

static int print_json(const stat_job *job)
{
    json_t *all = json_all(job);
    return all ? cmd_print_json(all, CMD_YES) : CMD_UNKNOWN;
}

int cmd_trace_stat(int argc, char **argv)
{
    stat_job job = {.top = 10};
    cmd_trace_look look = {0};
    bool json = false;
    const char *top = NULL;
    uint64_t n;
    int code;
    const cmd_option options[] = {
        CMD_TEXT('n', "top", "N", &top, "lines of lists that can be long (10)"),
        CMD_FLAG(0, "own", &job.own, "with the calls that the Cairn library makes for itself"),
        CMD_TRACE_LOOK(&look), CMD_JSON(&json), CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 1)
        return cmd_misuse(usage, "one trace must be named");
    if (top && cmd_trace_number("--top", top, UINT32_MAX, &n) != CMD_YES)
        return CMD_UNKNOWN;
    if (top)
        job.top = n;
    if (cmd_trace_look_at(argv[0], &look, &job.t, &job.info) != CMD_YES)
        return CMD_UNKNOWN;
    code = json ? print_json(&job) : print_all(&job, argv[0]);
    cmd_trace_done(job.t);
    return code;
}
