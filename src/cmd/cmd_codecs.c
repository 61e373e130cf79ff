/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn codecs: what codecs would make of the variables of a mark.
 */
#include "cmd/cmd_codecs.h"
#include "cmd/cmd_contents.h"

#include <math.h>

static const char usage[] = "cairn codecs [--json] [--want WISH] [--mark VERSION] [--sample BYTES] "
                            "[--seed N] [--no-storage] TRAIL[/RUN] [VARIABLE ...]";

enum { IN_TRAIL = 1 << 3, VARIABLES = 16, LEAST_BYTES = 4096 };

typedef struct codecs_job {
    bool json, no_storage;
    const char *want_text, *mark_text, *sample_text, *seed_text;
    char **name; /* of variables; none: the largest */
    size_t nnames;
    codecs_wish wish;
    codecs_storage storage;
    cairn_sample_options of;
    uint64_t version, nbytes;
    size_t nleft_out;
    json_t *list; /* of variables, with json */
    cmd_progress progress;
} codecs_job;

static void on_step(void *arg, size_t done, size_t all)
{
    codecs_job *job = arg;
    const uint64_t nbytes = job->nbytes;
    cmd_progress_update(&job->progress, done * nbytes, all * nbytes);
}

/* --- printing ------------------------------------------------------------------------------- */

/* A number with so many digits, or behind the point; "-": not known. */
static void real_cell(cmd_columns *t, int digits, double x)
{
    if (isnan(x))
        cmd_cell(t, "-");
    else
        cmd_cell(t, "%.*g", digits, x);
}

static void fixed_cell(cmd_columns *t, int decimals, double x)
{
    if (isnan(x))
        cmd_cell(t, "-");
    else
        cmd_cell(t, "%.*f", decimals, x);
}

static void speed_cell(cmd_columns *t, double x)
{
    char text[CRN_NUMBER_TEXT];
    cmd_cell(t, "%s/s", crn_format_nbytes((uint64_t)x, text, sizeof text));
}

static void row_cells(cmd_columns *t, const codecs_row *row, bool sampled)
{
    const cairn_trial *r = &row->trial;
    cmd_cell(t, "%s", row->front ? "*" : " ");
    cmd_cell(t, "%s", r->codec);
    fixed_cell(t, 2, r->rate);
    if (sampled)
        cmd_cell(t, "%.2f..%.2f", r->rate_low, r->rate_high);
    else
        cmd_cell(t, "exact");
    speed_cell(t, r->encode);
    speed_cell(t, r->decode);
    real_cell(t, 3, r->error);
    real_cell(t, 3, r->rms);
    fixed_cell(t, 1, r->psnr);
    real_cell(t, 3, r->decorrelation);
    fixed_cell(t, 6, r->ssim);
    real_cell(t, 2, r->ks_p);
    fixed_cell(t, 2, row->safe);
    fixed_cell(t, 2, row->restart);
}

static int print_rows(const codecs_row *row, size_t n, bool sampled)
{
    static const char *const head[] = {"",       "CODEC", "RATE", "95%",     "ENCODE",
                                       "DECODE", "MAX",   "RMS",  "PSNR",    "1-RHO",
                                       "SSIM",   "KS P",  "SAFE", "RESTART", NULL};
    cmd_columns t = {.align = "llrrrrrrrrrrrr"};
    for (const char *const *word = head; *word; word++)
        cmd_cell(&t, "%s", *word);
    for (size_t i = 0; i < n; i++)
        row_cells(&t, &row[i], sampled);
    return cmd_columns_print(&t, 0, CMD_YES);
}

static void print_sample(const char *name, const cairn_sample_info *info)
{
    char nbytes[CRN_NUMBER_TEXT], sample[CRN_NUMBER_TEXT];
    crn_format_nbytes(info->nbytes, nbytes, sizeof nbytes);
    crn_format_nbytes(info->sample_bytes, sample, sizeof sample);
    cmd_line("%s: %s, %s", name, info->type, nbytes);
    if (info->sample_bytes < info->nbytes)
        cmd_line("  sample: %s, %" PRIu64 " of %" PRIu64
                 " stretches; with 95%% confidence at most %.1f%% of them have an error above MAX",
                 sample, info->nsample, info->nstretches,
                 100 * (1 - pow(0.05, 1 / (double)info->nsample)));
    if (strcmp(info->type, "bytes") != 0 && info->nbytes > 0)
        cmd_line("  from %.6g to %.6g, %" PRIu64 " values are not finite", info->min, info->max,
                 info->nspecial);
    if (info->bits >= 0)
        cmd_line("  %d bits of the mantissa hold 99%% of the %.2f bits of information in a value",
                 info->bits, info->information);
    if (info->lost[0])
        cmd_line("  these values may have lost '%s' already", info->lost);
}

static void print_lines(const char *name, const codecs_row *row)
{
    const cairn_trial *r = &row->trial;
    cmd_line("[variable %s]", name);
    cmd_line("codec = %s", r->codec);
    if (r->lossy && r->loss[0])
        cmd_line("loss = %s", r->loss);
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* JSON has no infinities. */
static json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *json_of_row(const codecs_row *row)
{
    const cairn_trial *r = &row->trial;
    const struct {
        const char *name;
        double x;
    } real[] = {{"rate", r->rate},
                {"rate_low", r->rate_low},
                {"rate_high", r->rate_high},
                {"encode", r->encode},
                {"decode", r->decode},
                {"max", r->error},
                {"rms", r->rms},
                {"exceeding", r->exceeding},
                {"psnr", r->psnr},
                {"decorrelation", r->decorrelation},
                {"ssim", r->ssim},
                {"ks", r->ks},
                {"ks_p", r->ks_p},
                {"safe", row->safe},
                {"restart", row->restart}};
    json_t *o = json_pack(
        "{s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "codec", r->codec, "loss",
        r->loss, "lossy", (int)r->lossy, "front", (int)row->front, "blocks", (json_int_t)r->nblocks,
        "nbytes", (json_int_t)r->nbytes, "stored", (json_int_t)r->stored, "stricter",
        (json_int_t)r->nstricter, "bound", (json_int_t)r->nunbound, "special",
        (json_int_t)r->nspecial, "size", (json_int_t)r->nsmaller, "aside", (json_int_t)r->naside);
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        json_object_set_new(o, real[i].name, real_or_null(real[i].x));
    return o;
}

static json_t *json_of_sample(const char *name, const cairn_sample_info *info)
{
    return json_pack("{s:o, s:s, s:i, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:i, s:f, s:s}", "name",
                     cmd_json_text(name), "type", info->type, "dimensions", (int)info->ndims,
                     "nbytes", (json_int_t)info->nbytes, "sample_bytes",
                     (json_int_t)info->sample_bytes, "stretches", (json_int_t)info->nstretches,
                     "sample_stretches", (json_int_t)info->nsample, "min", real_or_null(info->min),
                     "max", real_or_null(info->max), "special", (json_int_t)info->nspecial, "bits",
                     info->bits, "information", info->information, "lost", info->lost);
}

/* --- one variable --------------------------------------------------------------------------- */

static int show_rows(codecs_job *job, const char *name, const cairn_sample_info *info,
                     const codecs_row *row, size_t n)
{
    if (job->json) {
        json_t *o = json_of_sample(name, info), *list = json_array();
        for (size_t i = 0; i < n; i++)
            json_array_append_new(list, json_of_row(&row[i]));
        json_object_set_new(o, job->want_text ? "chosen" : "trials", list);
        cmd_json_append(&job->list, o);
        return CMD_YES;
    }
    cmd_line("%s", "");
    print_sample(name, info);
    const int code = print_rows(row, n, info->sample_bytes < info->nbytes);
    if (job->want_text)
        print_lines(name, row);
    return code;
}

static int try_usual(codecs_job *job, cairn_sample *s, const cairn_sample_info *info)
{
    codecs_rows rows = {0};
    int code = CMD_UNKNOWN;
    const int rc = codecs_try_usual(s, info, on_step, job, &rows);
    cmd_progress_end(&job->progress);
    if (rc < 0) {
        cmd_fail("variable '%s': %s", job->of.variable, cairn_error_text());
    } else {
        codecs_rank(&rows, &job->storage);
        code = show_rows(job, job->of.variable, info, rows.at, rows.n);
    }
    crn_vec_done(&rows);
    return code;
}

static int search(codecs_job *job, cairn_sample *s, const cairn_sample_info *info)
{
    codecs_row none = {.trial.struct_bytes = sizeof none.trial}, best;
    int rc = cairn_sample_try(s, "none", "", 0, &none.trial);
    if (rc == CAIRN_OK)
        rc = codecs_search(s, info, &job->wish, on_step, job, &best);
    cmd_progress_end(&job->progress);
    if (rc < 0)
        return cmd_fail("variable '%s': %s", job->of.variable, cairn_error_text());
    codecs_set_times(&best, &none, &job->storage);
    return show_rows(job, job->of.variable, info, &best, 1);
}

static int do_variable(codecs_job *job, const char *name)
{
    char what[CRN_ERR_TEXT];
    cairn_sample *s;
    cairn_sample_info info = {.struct_bytes = sizeof info};
    job->of.variable = name;
    snprintf(what, sizeof what, "trying codecs on '%.256s'", name);
    if (cairn_sample_take(&job->of, &s) < 0 || cairn_sample_describe(s, &info) < 0)
        return cmd_fail("%s", cairn_error_text());
    job->nbytes = info.sample_bytes;
    cmd_progress_start(&job->progress, what);
    const int code = job->want_text ? search(job, s, &info) : try_usual(job, s, &info);
    cairn_sample_free(s);
    return code;
}

/* --- the mark ------------------------------------------------------------------------------- */

static bool find_mark(const codecs_job *job, const cmd_place *place, size_t nmarks, size_t *ret)
{
    for (size_t i = nmarks; i-- > 0;) {
        cairn_mark_info mark = {.struct_bytes = sizeof mark};
        if (cairn_trail_mark(place->trail, place->first, i, &mark) < 0 ||
            (job->mark_text ? mark.version != job->version : !(mark.levels & IN_TRAIL)))
            continue;
        *ret = i;
        return true;
    }
    return false;
}

static int by_size(const void *a, const void *b)
{
    const cmd_variable *x = a, *y = b;
    if (x->sum.nbytes != y->sum.nbytes)
        return x->sum.nbytes > y->sum.nbytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The largest ones; a variable of few bytes is not worth a codec. */
static int do_largest(codecs_job *job, cmd_contents *c)
{
    int code = CMD_YES;
    qsort(c->vars.at, c->vars.n, sizeof *c->vars.at, by_size);
    for (size_t i = 0; i < c->vars.n; i++) {
        const cmd_variable *v = &c->vars.at[i];
        if (i >= VARIABLES || v->sum.nbytes < LEAST_BYTES) {
            job->nleft_out = c->vars.n - i;
            break;
        }
        const int one = do_variable(job, v->name);
        code = CRN_MAX(code, one);
    }
    if (!job->json && job->nleft_out > 0)
        cmd_line("%zu smaller variable%s left out: name those that are to be tried", job->nleft_out,
                 job->nleft_out == 1 ? " is" : "s are");
    return code;
}

static int do_mark(codecs_job *job, const cmd_place *place, const cairn_run_info *run, size_t mark)
{
    cmd_contents c = {0};
    int code = CMD_YES;
    if (job->nnames == 0) {
        code = cmd_contents_read(place->trail, place->first, mark, false, &c);
        job->of.version = c.info.version;
    } else {
        cairn_mark_info info = {.struct_bytes = sizeof info};
        if (cairn_trail_mark(place->trail, place->first, mark, &info) < 0)
            return cmd_fail("%s", cairn_error_text());
        job->of.version = info.version;
    }
    if (!job->json)
        cmd_line("run %s, mark %" PRIu64, run->name, job->of.version);
    for (size_t i = 0; i < job->nnames; i++) {
        const int one = do_variable(job, job->name[i]);
        code = CRN_MAX(code, one);
    }
    if (job->nnames == 0 && code == CMD_YES)
        code = do_largest(job, &c);
    cmd_contents_done(&c);
    return code;
}

static int print_all(codecs_job *job, const cairn_run_info *run, int code)
{
    if (!job->json)
        return code;
    json_t *storage =
        json_pack("{s:f, s:f}", "write", job->storage.write, "read", job->storage.read);
    return cmd_print_json(json_pack("{s:o, s:I, s:o, s:I, s:o}", "run", cmd_json_text(run->name),
                                    "mark", (json_int_t)job->of.version, "storage", storage,
                                    "left_out", (json_int_t)job->nleft_out, "variables", job->list),
                          code);
}

static int do_run(codecs_job *job, const cmd_place *place, const char *trail)
{
    cairn_run_info run = {.struct_bytes = sizeof run};
    size_t mark;
    char name[256];
    if (cairn_trail_run(place->trail, place->first, &run) < 0)
        return cmd_fail("%s", cairn_error_text());
    snprintf(name, sizeof name, "%s", run.name); /* the trail's memory goes with other calls */
    run.name = name;
    if (!find_mark(job, place, run.nmarks, &mark))
        return cmd_fail("run '%s' has no such mark in the trail; 'cairn ls' lists those it has",
                        name);
    job->of.trail = trail;
    job->of.run = name;
    job->list = job->json ? json_array() : NULL;
    if (!job->no_storage)
        job->storage = codecs_measure(trail);
    return print_all(job, &run, do_mark(job, place, &run, mark));
}

static int do_place(codecs_job *job, const char *named)
{
    cmd_place place;
    char *trail, *run;
    int code = CMD_UNKNOWN;
    if (cmd_place_open(named, &place) != CMD_YES)
        return CMD_UNKNOWN;
    if (place.end == 0) {
        cmd_fail("'%s' has no runs", named);
    } else if (cmd_place_names(named, &trail, &run) == CMD_YES) {
        place.first = place.end - 1; /* of a whole trail, the last run */
        code = do_run(job, &place, trail);
        free(trail);
        free(run);
    }
    cmd_place_close(&place);
    return code;
}

int cmd_codecs(int argc, char **argv)
{
    codecs_job job = {.of.struct_bytes = sizeof job.of};
    int code;
    const cmd_option options[] = {
        CMD_JSON(&job.json),
        CMD_TEXT('w', "want", "WISH", &job.want_text,
                 "find the smallest setting with this quality, as rho=0.99999,max=1e-3"),
        CMD_TEXT('m', "mark", "VERSION", &job.mark_text, "the mark (the newest in the trail)"),
        CMD_TEXT('s', "sample", "BYTES", &job.sample_text,
                 "of each variable, taken at random (8MiB)"),
        CMD_TEXT(0, "seed", "N", &job.seed_text, "take another sample (0)"),
        CMD_FLAG(0, "no-storage", &job.no_storage, "do not measure the trail's storage"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc < 1)
        return cmd_misuse(usage, "a trail or a run must be named");
    if ((job.mark_text && crn_parse_count(job.mark_text, &job.version) < 0) ||
        (job.seed_text && crn_parse_count(job.seed_text, &job.of.seed) < 0) ||
        (job.sample_text && crn_parse_nbytes(job.sample_text, &job.of.sample_bytes) < 0) ||
        (job.want_text && !codecs_parse_wish(job.want_text, &job.wish)))
        return cmd_misuse(usage, "%s", crn_err_peek()->text);
    job.name = argv + 1;
    job.nnames = (size_t)argc - 1;
    return do_place(&job, argv[0]);
}
