/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What validators found, read back from the files of the cycles.
 */
#include <errno.h>
#include <math.h>

#include "ensemble/ensemble_side.h"

size_t crn_results_at(const crn_results *r, uint32_t cycle, uint32_t field, uint32_t ensemble,
                      uint32_t member)
{
    return (((size_t)cycle * r->field.n + field) * r->nensembles + ensemble) * r->nmembers + member;
}

static void free_names(crn_name_list *n)
{
    while (n->n > 0)
        free(n->at[--n->n]);
    crn_vec_done(n);
}

void crn_results_done(crn_results *r)
{
    free_names(&r->field);
    free_names(&r->setting);
    free(r->stats);
    free(r->rate);
    free(r->ssim);
    *r = (crn_results){0};
}

/* The next number of a line; *at moves behind it and its comma. */
static double number(char **at)
{
    char *end;
    double v = strtod(*at, &end);
    v = end == *at ? NAN : v; /* an empty cell */
    *at = *end == ',' ? end + 1 : end;
    return v;
}

static char *word(char **at)
{
    char *begin = *at;
    char *end = begin + strcspn(begin, ",\n");
    *at = *end ? end + 1 : end;
    *end = 0;
    return begin;
}

static void read_stats(char **at, crn_spread_stats *t, double *ret_ssim)
{
    double *const value[] = {&t->rmsz0,         &t->rmsz,  &t->delta, &t->rmse, &t->psnr,
                             &t->decorrelation, &t->error, &t->nrmse, &t->npme, &t->mean,
                             &t->deviation,     &t->min,   &t->max,   &t->share};
    for (size_t i = 0; i < sizeof value / sizeof *value; i++)
        *value[i] = number(at);
    t->n = (uint64_t)number(at);
    t->nbroken = (uint64_t)number(at);
    t->noutside = (uint64_t)number(at);
    *ret_ssim = number(at);
}

static cairn_status find_field(crn_results *r, const char *name, bool first, uint32_t *ret)
{
    for (uint32_t f = 0; f < r->field.n; f++)
        if (strcmp(r->field.at[f], name) == 0) {
            *ret = f;
            return CAIRN_OK;
        }
    char *copy;
    CRN_FAIL_IF(!first, CAIRN_ECORRUPT, "variable '%s' is new", name);
    CRN_TRY(crn_strdup(name, &copy));
    *ret = (uint32_t)r->field.n;
    return crn_vec_push(&r->field, copy);
}

/* The variables, in the order of the first cycle's file. */
static cairn_status note_fields(crn_results *r, const char *text)
{
    cairn_status rc = CAIRN_OK;
    while (rc == CAIRN_OK && *text) {
        char name[64];
        uint32_t ignored;
        if (sscanf(text, "%*u,%63[^,]", name) == 1)
            rc = find_field(r, name, true, &ignored);
        text += strcspn(text, "\n");
        text += *text != 0;
    }
    return rc;
}

static cairn_status read_line(crn_results *r, uint32_t cycle, char *line)
{
    uint32_t f, e, p;
    char *at = line;
    CRN_FAIL_IF((uint32_t)number(&at) != cycle + 1, CAIRN_ECORRUPT, "a line of another cycle");
    CRN_TRY(find_field(r, word(&at), false, &f));
    e = (uint32_t)number(&at);
    (void)word(&at);
    p = (uint32_t)number(&at);
    CRN_FAIL_IF(e >= r->nensembles || p >= r->nmembers, CAIRN_ECORRUPT, "ensemble %u, member %u", e,
                p);
    const size_t i = crn_results_at(r, cycle, f, e, p);
    r->rate[i] = number(&at);
    read_stats(&at, &r->stats[i], &r->ssim[i]);
    return CAIRN_OK;
}

static cairn_status read_cycle(const crn_study *s, crn_results *r, uint32_t cycle)
{
    char name[48], *text, *rest = NULL;
    CRN_TRY(crn_study_read(s->dir, crn_side_name(cycle + 1, "csv", name), &text));
    cairn_status rc = cycle == 0 ? note_fields(r, text) : CAIRN_OK;
    const size_t n = r->field.n * (size_t)r->ncycles * r->nensembles * r->nmembers;
    if (rc == CAIRN_OK && cycle == 0)
        rc = crn_alloc(&r->stats, n);
    if (rc == CAIRN_OK && cycle == 0)
        rc = crn_alloc(&r->rate, n);
    if (rc == CAIRN_OK && cycle == 0)
        rc = crn_alloc(&r->ssim, n);
    for (char *line = strtok_r(text, "\n", &rest); rc == CAIRN_OK && line;
         line = strtok_r(NULL, "\n", &rest))
        if ((rc = read_line(r, cycle, line)) < 0)
            crn_err_prefix("'%s/%s': ", s->dir, name);
    free(text);
    return rc;
}

cairn_status crn_results_read(const crn_study *s, crn_results *ret)
{
    crn_results r = {.ncycles = crn_side_validated(s, 0),
                     .nensembles = (uint32_t)s->side->coding.n,
                     .nmembers = s->members};
    cairn_status rc = CAIRN_OK;
    for (size_t e = 0; rc == CAIRN_OK && e < s->side->coding.n; e++) {
        char *copy;
        rc = crn_strdup(s->side->coding.at[e].name, &copy);
        if (rc == CAIRN_OK)
            rc = crn_vec_push(&r.setting, copy);
    }
    for (uint32_t c = 0; rc == CAIRN_OK && c < r.ncycles; c++)
        rc = read_cycle(s, &r, c);
    if (rc < 0)
        crn_results_done(&r);
    else
        *ret = r;
    return rc;
}
