/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tables of a cycle that was validated.
 */
#include "ensemble/ensemble_validator.h"

#include <inttypes.h>
#include <math.h>

static void write_statistics(const crn_validator *v, uint32_t cycle, const crn_validated *all,
                             const double *rate, crn_buf *b)
{
    const size_t nfields = v->field.n;
    for (size_t f = 0; f < nfields; f++)
        for (uint32_t m = 0; m < v->nstates; m++) {
            const uint32_t e = m / v->s->members, p = m % v->s->members;
            crn_spread_stats t;
            crn_spread_stats_of(&all[f].sums, e, p, &t);
            crn_put_text(
                b,
                "%u,%s,%u,%s,%u,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,"
                "%.17g,%.17g,%.17g,%.17g,%.17g,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
                cycle, v->field.at[f].name, e, v->side->coding.at[e].name, p, rate[m * nfields + f],
                t.rmsz0, t.rmsz, t.delta, t.rmse, t.psnr, t.decorrelation, t.error, t.nrmse, t.npme,
                t.mean, t.deviation, t.min, t.max, t.share, t.n, t.nbroken, t.noutside);
            if (all[f].structure)
                crn_put_text(b, "%.17g", all[f].structure[m]);
            crn_put_text(b, "\n");
        }
}

/* Tests of distributions. */
static cairn_status write_tests(const crn_validator *v, uint32_t cycle, const crn_validated *all,
                                crn_buf *b)
{
    crn_ks *ks;
    bool *rejected = NULL;
    CRN_TRY(crn_alloc(&ks, v->nstates));
    cairn_status rc = crn_alloc(&rejected, v->nstates);
    for (size_t f = 0; rc == CAIRN_OK && f < v->field.n; f++) {
        rc = crn_extra_test(&all[f].extra, v->side->discoveries, ks, rejected);
        for (uint32_t m = v->s->members; rc == CAIRN_OK && m < v->nstates; m++)
            crn_put_text(b, "%u,%s,%s,%u,%.17g,%.17g,%d\n", cycle, v->field.at[f].name,
                         v->side->coding.at[m / v->s->members].name, m % v->s->members,
                         ks[m].distance, ks[m].p, rejected[m]);
    }
    free(ks);
    free(rejected);
    return rc;
}

static cairn_status write_ranks(const crn_validator *v, uint32_t cycle, const crn_validated *all,
                                crn_buf *b)
{
    for (size_t f = 0; f < v->field.n; f++)
        for (uint32_t e = 0; e < v->side->coding.n; e++) {
            crn_put_text(b, "%u,%s,%s,%.17g,", cycle, v->field.at[f].name,
                         v->side->coding.at[e].name, crn_extra_skew(&all[f].extra, e));
            for (uint32_t r = 0; r < v->s->members; r++)
                crn_put_text(b, "%s%" PRIu64, r > 0 ? " " : "",
                             all[f].extra.rank[e * v->s->members + r]);
            crn_put_text(b, "\n");
        }
    return CAIRN_OK;
}

static const char *reason(int32_t why, char text[64])
{
    if (why == CRN_FUNCTION_WELL)
        return "";
    if (why == CRN_FUNCTION_LATE)
        return "took longer than validate.patience";
    if (why >= CRN_FUNCTION_LEFT)
        snprintf(text, 64, "ended its process with exit code %d", why - CRN_FUNCTION_LEFT);
    else
        snprintf(text, 64, "crashed: signal %d", why);
    return text;
}

static cairn_status write_function(const crn_validator *v, uint32_t cycle, size_t field, uint32_t q,
                                   const crn_validated *w, crn_buf *b)
{
    const double **part;
    double *joined = NULL;
    char text[64];
    int32_t why = w->why[q];
    CRN_TRY(crn_alloc(&part, w->value.n));
    for (size_t i = 0; i < w->value.n; i++)
        part[i] = w->value.at[i] + (size_t)q * v->nstates;
    cairn_status rc = crn_alloc(&joined, v->nstates);
    if (rc == CAIRN_OK && why == CRN_FUNCTION_WELL)
        rc = crn_functions_join(&v->function, q, part, w->value.n, v->nstates, joined, &why);
    const uint32_t from = v->function.at[q].compares ? v->s->members : 0;
    for (uint32_t m = from; rc == CAIRN_OK && m < v->nstates; m++) {
        const char *said = reason(why, text);
        if (why == CRN_FUNCTION_WELL && !isfinite(joined[m]))
            said = "is no number";
        crn_put_text(b, "%u,%s,%s,%u,%s,", cycle, v->field.at[field].name,
                     v->side->coding.at[m / v->s->members].name, m % v->s->members,
                     v->function.at[q].name);
        if (!said[0])
            crn_put_text(b, "%.17g", joined[m]);
        crn_put_text(b, ",%s\n", said);
    }
    free(joined);
    free(part);
    return rc;
}

static cairn_status write_functions(const crn_validator *v, uint32_t cycle,
                                    const crn_validated *all, crn_buf *b)
{
    for (size_t f = 0; f < v->field.n; f++)
        for (uint32_t q = 0; q < v->function.n; q++)
            CRN_TRY(write_function(v, cycle, f, q, &all[f], b));
    return CAIRN_OK;
}

typedef cairn_status write_fn(const crn_validator *v, uint32_t cycle, const crn_validated *all,
                              crn_buf *b);

static cairn_status write_table(const crn_validator *v, uint32_t cycle, const crn_validated *all,
                                const char *what, write_fn *fn)
{
    char name[48];
    crn_buf b = {0};
    cairn_status rc = fn(v, cycle, all, &b);
    if (rc < 0) {
        crn_buf_done(&b);
        return rc;
    }
    return crn_study_write_buf(v->s, crn_side_name(cycle, what, name), &b);
}

cairn_status crn_validator_write(const crn_validator *v, uint32_t cycle, const crn_validated *all,
                                 const double *rate)
{
    char name[48];
    crn_buf b = {0};
    CRN_TRY(write_table(v, cycle, all, "tests", write_tests));
    CRN_TRY(write_table(v, cycle, all, "ranks", write_ranks));
    if (v->function.n > 0)
        CRN_TRY(write_table(v, cycle, all, "functions", write_functions));
    write_statistics(v, cycle, all, rate, &b);
    return crn_study_write_buf(v->s, crn_side_name(cycle, "csv", name), &b);
}
