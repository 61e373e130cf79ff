/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of 'cairn trace stat' that names slow ranks, and the sites where ranks differ.
 */
#include "cmd/cmd_trace.h"

#include <math.h>

#define SLOW_SHARE 0.005 /* of the run: a rank that loses less is not called slow */

/* A contrast with its ranks kept. */
typedef struct site_row {
    cairn_trace_contrast c;
    char *ranks;
} site_row;

/* Sums over the sites where a rank differs. */
typedef struct rank_row {
    uint32_t rank;
    double more, seconds, others, confidence;
    size_t nsites;
} rank_row;

typedef struct slow_job {
    cairn_trace *t;
    const cairn_trace_info *info;
    CRN_VEC(site_row) site;
    CRN_VEC(rank_row) rank;
    bool failed;
} slow_job;

static void add_rank(rank_row *r, const cairn_trace_contrast *c)
{
    r->more += c->more;
    r->seconds += c->seconds * (double)c->n;
    r->others += c->others * (double)c->n;
    r->confidence = CRN_MAX(r->confidence, c->more > 0 ? c->confidence : 0);
    r->nsites++;
}

static int collect(void *arg, const cairn_trace_contrast *c)
{
    slow_job *job = arg;
    site_row s = {.c = *c};
    s.c.rank = NULL;
    job->failed = crn_strdup(c->ranks, &s.ranks) < 0;
    if (!job->failed && crn_vec_push(&job->site, s) < 0) {
        free(s.ranks);
        job->failed = true;
    }
    for (uint32_t i = 0; i < c->nranks && c->confidence > 0 && !job->failed; i++)
        if (c->rank[i] < job->rank.n)
            add_rank(&job->rank.at[c->rank[i]], c);
    return job->failed;
}

static int by_more(const void *a, const void *b)
{
    const rank_row *x = a, *y = b;
    return (x->more < y->more) - (x->more > y->more);
}

static int by_size(const void *a, const void *b)
{
    const site_row *x = a, *y = b;
    const double left = fabs(x->c.more) * x->c.nranks, right = fabs(y->c.more) * y->c.nranks;
    return (left < right) - (left > right);
}

static int prepare(slow_job *job)
{
    for (uint32_t i = 0; i < job->info->nranks && !job->failed; i++)
        job->failed = crn_vec_push(&job->rank, (rank_row){.rank = i}) < 0;
    int rc = job->failed ? CAIRN_ENOMEM : cairn_trace_contrasts(job->t, collect, job);
    if (job->failed)
        return cmd_fail("no memory for slow ranks");
    if (rc != CAIRN_OK)
        return cmd_fail("%s", cairn_error_text());
    if (job->rank.n > 0)
        qsort(job->rank.at, job->rank.n, sizeof *job->rank.at, by_more);
    if (job->site.n > 0)
        qsort(job->site.at, job->site.n, sizeof *job->site.at, by_size);
    size_t n = 0;
    while (n < job->rank.n &&
           job->rank.at[n].more > SLOW_SHARE * 1e-9 * (double)job->info->lasted_ns)
        n++;
    job->rank.n = n;
    return CMD_YES;
}

/* ---- as text ---- */

static void cell_confidence(cmd_columns *c, double confidence)
{
    if (confidence > 0.9999)
        cmd_cell(c, ">99.99%%");
    else if (confidence > 0)
        cmd_cell(c, "%.2f%%", 100 * confidence);
    else
        cmd_cell(c, "-");
}

static void cell_more(cmd_columns *c, double seconds)
{
    char text[CRN_NUMBER_TEXT];
    cmd_cell(c, "%s%s", seconds < 0 ? "-" : "",
             crn_format_seconds(fabs(seconds), text, sizeof text));
}

static int print_ranks(const slow_job *job, size_t top)
{
    cmd_columns c = {.align = "rrrrr"};
    const char *const names[] = {"rank", "more", "ratio", "sites", "confidence", NULL};
    if (job->rank.n == 0)
        return CMD_YES;
    printf("\nslow ranks (beyond the noise of their own repetitions)\n");
    cmd_trace_heads(&c, names);
    for (size_t i = 0; i < CRN_MIN(job->rank.n, top); i++) {
        const rank_row *r = &job->rank.at[i];
        cmd_cell(&c, "%" PRIu32, r->rank);
        cell_more(&c, r->more);
        cmd_cell(&c, "%.2f", r->others > 0 ? r->seconds / r->others : 1);
        cmd_cell(&c, "%zu", r->nsites);
        cell_confidence(&c, r->confidence);
    }
    int code = cmd_columns_print(&c, 2, CMD_YES);
    if (job->rank.n > top)
        cmd_line("  and %zu more", job->rank.n - top);
    return code;
}

static int print_sites(const slow_job *job, size_t top)
{
    cmd_columns c = {.align = "lllrrrrrrl"};
    const char *const names[] = {"ranks", "from", "to",         "times", "each", "others",
                                 "ratio", "more", "confidence", "site",  NULL};
    if (job->site.n == 0)
        return CMD_YES;
    printf("\nwhere ranks differ in computing and in calls on files\n");
    cmd_trace_heads(&c, names);
    for (size_t i = 0; i < CRN_MIN(job->site.n, top); i++) {
        const cairn_trace_contrast *r = &job->site.at[i].c;
        cmd_cell(&c, "%s", job->site.at[i].ranks);
        cmd_cell(&c, "%s", r->from ? r->from : "start");
        cmd_cell(&c, "%s", r->to);
        cmd_cell(&c, "%" PRIu64, r->n);
        cell_more(&c, r->seconds);
        cell_more(&c, r->others);
        cmd_cell(&c, "%.2f", r->ratio);
        cell_more(&c, r->more);
        cell_confidence(&c, r->confidence);
        cmd_cell(&c, "%s", cmd_trace_site(job->t, r->to_site));
    }
    int code = cmd_columns_print(&c, 2, CMD_YES);
    if (job->site.n > top)
        cmd_line("  and %zu more", job->site.n - top);
    return code;
}

/* ---- as JSON ---- */

static json_t *json_ranks(const slow_job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->rank.n; i++) {
        const rank_row *r = &job->rank.at[i];
        cmd_json_append(&list,
                        json_pack("{s:i, s:o, s:o, s:i, s:f}", "rank", (int)r->rank, "more",
                                  cmd_trace_seconds(r->more), "ratio",
                                  cmd_trace_seconds(r->others > 0 ? r->seconds / r->others : 1),
                                  "sites", (int)r->nsites, "confidence", r->confidence));
    }
    return list;
}

static json_t *json_sites(const slow_job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->site.n; i++) {
        const cairn_trace_contrast *r = &job->site.at[i].c;
        cmd_json_append(
            &list, json_pack("{s:s, s:i, s:i, s:s?, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:f}",
                             "ranks", job->site.at[i].ranks, "nranks", (int)r->nranks, "thread",
                             (int)r->thread, "from", r->from, "to", r->to, "from_site",
                             cmd_trace_site(job->t, r->from_site), "to_site",
                             cmd_trace_site(job->t, r->to_site), "n", (json_int_t)r->n, "seconds",
                             cmd_trace_seconds(r->seconds), "others", cmd_trace_seconds(r->others),
                             "ratio", cmd_trace_seconds(r->ratio), "more",
                             cmd_trace_seconds(r->more), "confidence", r->confidence));
    }
    return list;
}

int cmd_trace_slow(cairn_trace *t, const cairn_trace_info *info, size_t top, json_t *all)
{
    slow_job job = {.t = t, .info = info};
    int code = prepare(&job);
    if (code == CMD_YES && all) {
        json_object_set_new(all, "slow_ranks", json_ranks(&job));
        json_object_set_new(all, "slow_sites", json_sites(&job));
    } else if (code == CMD_YES && print_ranks(&job, top) == CMD_YES) {
        code = print_sites(&job, top);
    }
    for (size_t i = 0; i < job.site.n; i++)
        free(job.site.at[i].ranks);
    crn_vec_done(&job.site);
    crn_vec_done(&job.rank);
    return code;
}
