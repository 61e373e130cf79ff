/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn ensemble validate: propagate ensembles with losses beside one without, and say which losses
 * are safe. The tables are written beside the study's parts: statistics.csv, noise.csv and
 * verdicts.csv.
 */
#include <inttypes.h>
#include <math.h>

#include "cmd/cmd_ensemble.h"

/* --- running -------------------------------------------------------------------------------- */

int cmd_ensemble_validator(crn_study *study, char **words)
{
    const crn_study_mode mode = crn_mode_of(words[0]);
    if (crn_side_open(study, mode == CRN_MODE_NOISE) < 0 || crn_validator_run(study) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    return CMD_YES;
}

/* One part of a validation: what is done is not done again. */
static int run_part(crn_study *study, bool noisy, crn_results *ret)
{
    if (crn_side_open(study, noisy) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    if (crn_side_validated(study, 0) < study->cycles) {
        int rc = cmd_ensemble_launch(study, noisy ? CRN_MODE_NOISE : CRN_MODE_PLAIN);
        if (rc == CAIRN_NOTHING)
            cmd_line("stopped; run it again to go on");
        if (rc != CAIRN_OK)
            return rc < 0 ? CMD_UNKNOWN : CMD_NO;
    }
    if (crn_results_read(study, ret) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    return CMD_YES;
}

/* --- tables --------------------------------------------------------------------------------- */

static const char header[] =
    "cycle,variable,ensemble,setting,member,rate,rmsz0,rmsz,delta,rmse,psnr,decorrelation,error,"
    "nrmse,npme,mean,deviation,min,max,share,n,nbroken,noutside,ssim\n";

/* All cycles in one file. */
static cairn_status write_table(const crn_study *study, const char *what, const char *head,
                                const char *path)
{
    crn_buf b = {0};
    cairn_status rc = CAIRN_OK;
    crn_put_text(&b, "%s", head);
    for (uint32_t c = 1; rc == CAIRN_OK && c <= study->cycles; c++) {
        char name[48], *text;
        rc = crn_study_read(study->dir, crn_side_name(c, what, name), &text);
        if (rc == CAIRN_OK) {
            crn_put_bytes(&b, text, strlen(text));
            free(text);
        }
    }
    if (rc == CAIRN_OK)
        rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        rc = crn_output_write(path, b.at, b.n);
    crn_buf_done(&b);
    return rc;
}

typedef struct judged {
    const crn_results *plain, *noisy;
    const crn_side *side;
    uint64_t seed;
    crn_buf csv;
    bool safe; /* something is */
} judged;

/* NRMSE of an ensemble of the noise test, by cycle and member. */
static cairn_status take_nrmse(const crn_results *r, uint32_t field, uint32_t ensemble,
                               double **ret)
{
    CRN_TRY(crn_alloc(ret, (size_t)r->ncycles * r->nmembers));
    for (uint32_t c = 0; c < r->ncycles; c++)
        for (uint32_t p = 0; p < r->nmembers; p++)
            (*ret)[c * r->nmembers + p] = r->stats[crn_results_at(r, c, field, ensemble, p)].nrmse;
    return CAIRN_OK;
}

static cairn_status take_stats(const crn_results *r, uint32_t field, uint32_t ensemble,
                               crn_spread_stats **ret)
{
    CRN_TRY(crn_alloc(ret, (size_t)r->ncycles * r->nmembers));
    for (uint32_t c = 0; c < r->ncycles; c++)
        memcpy(*ret + c * r->nmembers, &r->stats[crn_results_at(r, c, field, ensemble, 0)],
               r->nmembers * sizeof **ret);
    return CAIRN_OK;
}

/* Structural similarity; *ret is NULL where the variable has no planes. */
static cairn_status take_ssim(const crn_results *r, uint32_t field, uint32_t ensemble, double **ret)
{
    if (isnan(r->ssim[crn_results_at(r, 0, field, ensemble, 0)]))
        return CAIRN_OK;
    CRN_TRY(crn_alloc(ret, (size_t)r->ncycles * r->nmembers));
    for (uint32_t c = 0; c < r->ncycles; c++)
        memcpy(*ret + c * r->nmembers, &r->ssim[crn_results_at(r, c, field, ensemble, 0)],
               r->nmembers * sizeof **ret);
    return CAIRN_OK;
}

static cairn_status judge_one(const judged *j, uint32_t field, uint32_t ensemble, crn_verdict *ret)
{
    const crn_results *r = j->plain;
    crn_spread_stats *stats = NULL, *lossless = NULL;
    double *noisy = NULL, *pair = NULL, *ssim = NULL;
    cairn_status rc = take_stats(r, field, ensemble, &stats);
    if (rc == CAIRN_OK)
        rc = take_ssim(r, field, ensemble, &ssim);
    if (rc == CAIRN_OK)
        rc = take_stats(r, field, 0, &lossless);
    if (rc == CAIRN_OK && j->noisy)
        rc = take_nrmse(j->noisy, field, ensemble, &noisy);
    if (rc == CAIRN_OK && j->noisy)
        rc = take_nrmse(j->noisy, field, j->noisy->nensembles - 1, &pair);
    const crn_history h = {.ncycles = r->ncycles,
                           .nmembers = r->nmembers,
                           .stats = stats,
                           .lossless = lossless,
                           .ssim = ssim,
                           .noisy = noisy,
                           .pair = pair};
    if (rc == CAIRN_OK)
        rc = crn_judge(&h, &j->side->thresholds, j->seed, ret);
    free(stats);
    free(lossless);
    free(noisy);
    free(pair);
    free(ssim);
    return rc;
}

static double mean_rate(const crn_results *r, uint32_t field, uint32_t ensemble)
{
    double sum = 0;
    for (uint32_t c = 0; c < r->ncycles; c++)
        for (uint32_t p = 0; p < r->nmembers; p++)
            sum += r->rate[crn_results_at(r, c, field, ensemble, p)];
    return sum / ((double)r->ncycles * r->nmembers);
}

/* "pass", "noise", or the criteria that failed, each with its first cycle. */
static void name_verdict(const crn_verdict *v, char *text, size_t cap)
{
    size_t n = 0;
    text[0] = 0;
    for (crn_criterion c = 0; c < CRN_NCRITERIA && n < cap; c++) {
        const char *mark = v->finding[c] == CRN_FINDING_NOISE ? "~" : "";
        if (v->finding[c] != CRN_FINDING_FAIL && v->finding[c] != CRN_FINDING_NOISE)
            continue;
        n += (size_t)snprintf(text + n, cap - n, "%s%s%s", n > 0 ? " " : "", mark,
                              crn_criterion_name(c));
        if (v->since[c] > 0 && n < cap)
            n += (size_t)snprintf(text + n, cap - n, "@%u", v->since[c]);
    }
}

static void print_value(char *text, size_t cap, double v, const char *format)
{
    if (isnan(v))
        snprintf(text, cap, "-");
    else
        snprintf(text, cap, format, v);
}

static void print_row(judged *j, uint32_t field, uint32_t ensemble, const crn_verdict *v)
{
    char why[200], slope[24], delta[24], share[24];
    const double rate = mean_rate(j->plain, field, ensemble);
    name_verdict(v, why, sizeof why);
    print_value(delta, sizeof delta, v->value[CRN_CRITERION_DELTA], "%.2g");
    print_value(share, sizeof share, v->value[CRN_CRITERION_SHARE], "%.2g");
    print_value(slope, sizeof slope, v->value[CRN_CRITERION_SLOPE], "%.4f");
    cmd_line("%-12s %-22s %8.4f %9.5f %-6s %-6s %8s %8s %8s  %-5s %s", j->plain->field.at[field],
             j->plain->setting.at[ensemble], rate, v->value[CRN_CRITERION_RHO],
             crn_finding_name(v->strict), crn_finding_name(v->finding[CRN_CRITERION_RHO]), delta,
             share, slope, crn_finding_name(v->all), why);
    crn_put_text(&j->csv,
                 "%s,%s,%.17g,%.17g,%s,%s,%.17g,%s,%.17g,%s,%.17g,%.17g,%.17g,%.17g,%s,%.17g,%s,%s,"
                 "%s\n",
                 j->plain->field.at[field], j->plain->setting.at[ensemble], rate,
                 v->value[CRN_CRITERION_RHO], crn_finding_name(v->strict),
                 crn_finding_name(v->finding[CRN_CRITERION_RHO]), v->value[CRN_CRITERION_DELTA],
                 crn_finding_name(v->finding[CRN_CRITERION_DELTA]), v->value[CRN_CRITERION_SHARE],
                 crn_finding_name(v->finding[CRN_CRITERION_SHARE]), v->line.slope,
                 v->line.intercept, v->slopes.mean, v->slopes.deviation,
                 crn_finding_name(v->finding[CRN_CRITERION_SLOPE]), v->value[CRN_CRITERION_SSIM],
                 crn_finding_name(v->finding[CRN_CRITERION_SSIM]), crn_finding_name(v->all), why);
    j->safe = j->safe || v->all == CRN_FINDING_PASS;
}

static cairn_status judge_all(judged *j)
{
    crn_verdict v = {0};
    cmd_line("%-12s %-22s %8s %9s %-6s %-6s %8s %8s %8s  %-5s %s", "variable", "setting", "rate",
             "rho", "strict", "rho", "dRMSZ", "share", "slope", "",
             "fails (~: within noise), from "
             "cycle");
    crn_put_text(&j->csv, "variable,setting,rate,rho,rho_strict,rho_verdict,delta,delta_verdict,"
                          "share,share_verdict,slope,intercept,slopes_mean,slopes_deviation,"
                          "slope_verdict,ssim,ssim_verdict,verdict,why\n");
    for (uint32_t f = 0; f < j->plain->field.n; f++)
        for (uint32_t e = 1; e < j->plain->nensembles; e++) {
            CRN_TRY(judge_one(j, f, e, &v));
            print_row(j, f, e, &v);
        }
    if (j->noisy)
        cmd_line("slopes between members without loss: %.4f +- %.4f (%zu pairs)", v.slopes.mean,
                 v.slopes.deviation, v.slopes.npairs);
    return crn_buf_status(&j->csv);
}

/* --- the verb ------------------------------------------------------------------------------- */

/* The tables of a part, named after it: "statistics.csv", or "noise.csv". */
static cairn_status write_part(const crn_study *base, const crn_study *part, const char *what,
                               const char *head, const char *name)
{
    char *path;
    if (!crn_side_has(part, 1, what))
        return CAIRN_OK;
    CRN_TRY(crn_study_path(base, name, &path));
    cairn_status rc = write_table(part, what, head, path);
    free(path);
    return rc;
}

static cairn_status write_files(const crn_study *base, const crn_study *plain,
                                const crn_study *noisy, judged *j)
{
    CRN_TRY(write_part(base, plain, "csv", header, "statistics.csv"));
    CRN_TRY(write_part(base, plain, "tests", "cycle,variable,setting,member,distance,p,rejected\n",
                       "distributions.csv"));
    CRN_TRY(write_part(base, plain, "ranks", "cycle,variable,setting,skew,ranks\n", "ranks.csv"));
    CRN_TRY(write_part(base, plain, "functions",
                       "cycle,variable,setting,member,function,value,why\n", "functions.csv"));
    if (noisy)
        CRN_TRY(write_part(base, noisy, "csv", header, "noise.csv"));
    CRN_TRY(crn_study_write_buf(base, "verdicts.csv", &j->csv));
    return crn_validation_export(base);
}

static int judge_parts(const crn_study *base, const crn_study *plain, const crn_study *noisy,
                       const crn_results *r, const crn_results *noise)
{
    judged j = {.plain = r, .noisy = noisy ? noise : NULL, .side = plain->side, .seed = base->seed};
    int code = CMD_YES;
    if (judge_all(&j) < 0 || write_files(base, plain, noisy, &j) < 0)
        code = cmd_fail("%s", crn_err_peek()->text);
    else
        cmd_line("tables in '%s'", base->dir);
    crn_buf_done(&j.csv);
    return code != CMD_YES ? code : j.safe ? CMD_YES : CMD_NO;
}

int cmd_ensemble_validate(crn_study *study, char **words)
{
    crn_study *plain = NULL, *noisy = NULL;
    crn_results r = {0}, noise = {0};
    int code = CMD_YES;
    (void)words;
    if (crn_study_open(study->file, &plain) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    code = run_part(plain, false, &r);
    if (code == CMD_YES && plain->side->noise > 0 && crn_study_open(study->file, &noisy) < 0)
        code = cmd_fail("%s", crn_err_peek()->text);
    if (code == CMD_YES && noisy)
        code = run_part(noisy, true, &noise);
    if (code == CMD_YES)
        code = judge_parts(study, plain, noisy, &r, &noise);
    crn_results_done(&r);
    crn_results_done(&noise);
    crn_study_free(plain);
    crn_study_free(noisy);
    return code;
}
