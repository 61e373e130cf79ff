/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A page about a study's filter, from the tables and products in its directory: innovations against
 * what members and errors explain, scores against a truth, ranks, types and regions; truth, mean,
 * spread and innovations of the last products as pictures.
 */
#include "ensemble/ensemble.h"
#include "ensemble/ensemble_chart.h"
#include "ensemble/ensemble_table.h"
#include "observe/observe.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>

enum { GROUPS = 256 };

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title><style>"
    "body{font:15px/1.5 sans-serif;margin:2em auto;max-width:62em;padding:0 1em;color:#222}"
    "figure{display:inline-block;margin:.4em}figcaption{font-weight:600}svg text{font-size:11px}"
    ".frame{fill:none;stroke:#999}.end{text-anchor:end;fill:#555}"
    "table{border-collapse:collapse}td,th{padding:.15em .7em;text-align:right}"
    "td:first-child,th:first-child,td:nth-child(2){text-align:left}tr+tr td{border-top:1px solid "
    "#ddd}@media(prefers-color-scheme:dark){body{background:#181a1c;color:#ddd}"
    ".end{fill:#aaa}}</style></head><body>\n";

/* --- innovations ---------------------------------------------------------------------------- */

typedef struct group { /* of a type and region, over all cycles */
    char type[CRN_OBS_NAME], region[CRN_OBS_NAME];
    double cycles, n, bias, square, expected, chi2;
} group;

typedef struct innovations {
    crn_chart_numbers cycle, rms, expected, chi2, rank;
    double *histogram;
    size_t nranks, ngroups;
    group group[GROUPS];
} innovations;

static cairn_status add_ranks(innovations *t, char *text)
{
    size_t n = 0;
    char *word, *rest = text;
    while ((word = strsep(&rest, " "))) {
        if (n == t->nranks) {
            double *more = realloc(t->histogram, (n + 1) * sizeof *more);
            CRN_FAIL_IF(!more, CAIRN_ENOMEM, "no memory for ranks");
            t->histogram = more;
            t->histogram[t->nranks++] = 0;
        }
        t->histogram[n++] += crn_table_number(word);
    }
    return CAIRN_OK;
}

static group *find_group(innovations *t, const char *type, const char *region)
{
    for (size_t i = 0; i < t->ngroups; i++)
        if (strcmp(t->group[i].type, type) == 0 && strcmp(t->group[i].region, region) == 0)
            return &t->group[i];
    if (t->ngroups == GROUPS)
        return NULL;
    group *g = &t->group[t->ngroups++];
    snprintf(g->type, sizeof g->type, "%.63s", type);
    snprintf(g->region, sizeof g->region, "%.63s", region);
    return g;
}

static cairn_status add_whole(innovations *t, char *const *cell, double expected)
{
    CRN_TRY(crn_vec_push(&t->cycle, crn_table_number(cell[0])));
    CRN_TRY(crn_vec_push(&t->rms, crn_table_number(cell[5])));
    CRN_TRY(crn_vec_push(&t->expected, sqrt(expected)));
    CRN_TRY(crn_vec_push(&t->chi2, crn_table_number(cell[8])));
    CRN_TRY(crn_vec_push(&t->rank, crn_table_number(cell[9])));
    return add_ranks(t, cell[11]);
}

static cairn_status add_innovations(void *arg, char *const *cell, size_t n)
{
    innovations *t = arg;
    if (n < 12)
        return CAIRN_OK;
    const double nobs = crn_table_number(cell[3]), rms = crn_table_number(cell[5]);
    const double spread = crn_table_number(cell[6]), error = crn_table_number(cell[7]);
    const double expected = spread * spread + error * error;
    group *g = find_group(t, cell[1], cell[2]);
    if (g) {
        g->cycles++;
        g->n += nobs;
        g->bias += nobs * crn_table_number(cell[4]);
        g->square += nobs * rms * rms;
        g->expected += nobs * expected;
        g->chi2 += nobs * crn_table_number(cell[8]);
    }
    const bool whole = strcmp(cell[1], "all") == 0 && strcmp(cell[2], "all") == 0;
    return whole ? add_whole(t, cell, expected) : CAIRN_OK;
}

static void print_groups(FILE *to, const innovations *t)
{
    fputs("<h2>Types and regions</h2><table><tr><th>type<th>region<th>observations<th>mean "
          "innovation<th>root mean square<th>expected<th>chi-squared over n</tr>\n",
          to);
    for (size_t i = 0; i < t->ngroups; i++) {
        const group *g = &t->group[i];
        fprintf(to, "<tr><td>%s<td>%s<td>%.0f<td>%.4g<td>%.4g<td>%.4g<td>%.3f</tr>\n", g->type,
                g->region, g->n, g->bias / g->n, sqrt(g->square / g->n), sqrt(g->expected / g->n),
                g->chi2 / g->n);
    }
    fputs("</table>\n", to);
}

static void innovations_done(innovations *t)
{
    crn_vec_done(&t->cycle);
    crn_vec_done(&t->rms);
    crn_vec_done(&t->expected);
    crn_vec_done(&t->chi2);
    crn_vec_done(&t->rank);
    free(t->histogram);
    free(t);
}

static cairn_status print_innovations(FILE *to, const crn_study *s)
{
    innovations *t;
    CRN_TRY(crn_alloc(&t, 1));
    cairn_status rc = crn_table_each(s, "diagnostics.csv", add_innovations, t);
    if (rc == CAIRN_OK && t->cycle.n > 0) {
        fputs("<h2>Innovations</h2>\n", to);
        crn_chart_lines(to, "Innovations: root mean square", &t->cycle,
                        (crn_chart_line[]){{"seen", &t->rms}, {"expected", &t->expected}}, 2);
        crn_chart_lines(to, "Chi-squared over n: 1 if spread and errors are right", &t->cycle,
                        (crn_chart_line[]){{"chi-squared", &t->chi2}}, 1);
        crn_chart_lines(to, "Effective rank of the ensemble", &t->cycle,
                        (crn_chart_line[]){{"rank", &t->rank}}, 1);
        crn_chart_bars(to, "Ranks of observations among members: flat if all is right",
                       t->histogram, t->nranks);
        print_groups(to, t);
    }
    innovations_done(t);
    return rc;
}

/* --- scores --------------------------------------------------------------------------------- */

typedef struct scores {
    char field[CRN_OBS_NAME]; /* "" for the first that comes */
    crn_chart_numbers cycle, value[6];
} scores;

static cairn_status add_score(void *arg, char *const *cell, size_t n)
{
    scores *t = arg;
    if (n < 8)
        return CAIRN_OK;
    if (strcmp(cell[1], t->field) != 0)
        return CAIRN_OK;
    CRN_TRY(crn_vec_push(&t->cycle, crn_table_number(cell[0])));
    for (int k = 0; k < 6; k++)
        CRN_TRY(crn_vec_push(&t->value[k], crn_table_number(cell[2 + k])));
    return CAIRN_OK;
}

typedef struct names {
    CRN_VEC(char *) name;
} names;

static cairn_status add_name(void *arg, char *const *cell, size_t n)
{
    names *t = arg;
    char *copy;
    for (size_t i = 0; n >= 2 && i < t->name.n; i++)
        if (strcmp(t->name.at[i], cell[1]) == 0)
            return CAIRN_OK;
    if (n < 2 || t->name.n == GROUPS)
        return CAIRN_OK;
    CRN_TRY(crn_strdup(cell[1], &copy));
    cairn_status rc = crn_vec_push(&t->name, copy);
    if (rc < 0)
        free(copy);
    return rc;
}

static cairn_status print_field(FILE *to, const crn_study *s, const char *field)
{
    scores t = {0};
    char title[160];
    snprintf(t.field, sizeof t.field, "%.63s", field);
    cairn_status rc = crn_table_each(s, "truth.csv", add_score, &t);
    if (rc == CAIRN_OK) {
        snprintf(title, sizeof title, "%.63s: error of the mean, and spread", field);
        crn_chart_lines(to, title, &t.cycle,
                        (crn_chart_line[]){{"analysis error", &t.value[3]},
                                           {"analysis spread", &t.value[4]},
                                           {"background error", &t.value[0]}},
                        3);
        snprintf(title, sizeof title, "%.63s: ranked probability score", field);
        crn_chart_lines(to, title, &t.cycle,
                        (crn_chart_line[]){{"analysis", &t.value[5]}, {"background", &t.value[2]}},
                        2);
    }
    crn_vec_done(&t.cycle);
    for (int k = 0; k < 6; k++)
        crn_vec_done(&t.value[k]);
    return rc;
}

static cairn_status print_scores(FILE *to, const crn_study *s)
{
    names t = {0};
    cairn_status rc = crn_table_each(s, "truth.csv", add_name, &t);
    if (rc == CAIRN_OK && t.name.n > 0)
        fputs("<h2>Against the truth</h2>\n", to);
    for (size_t i = 0; i < t.name.n; i++) {
        if (rc == CAIRN_OK)
            rc = print_field(to, s, t.name.at[i]);
        free(t.name.at[i]);
    }
    crn_vec_done(&t.name);
    return rc;
}

/* --- what was left out ---------------------------------------------------------------------- */

static cairn_status count_reason(void *arg, char *const *cell, size_t n)
{
    uint64_t *count = arg;
    for (int k = CRN_OBS_NOT_FINITE; n > 3 && k <= CRN_OBS_FAR; k++)
        count[k] += strcmp(cell[3], crn_obs_flag_name((crn_obs_flag)k)) == 0;
    return CAIRN_OK;
}

static cairn_status print_rejected(FILE *to, const crn_study *s)
{
    uint64_t count[CRN_OBS_FAR + 1] = {0};
    CRN_TRY(crn_table_each(s, "rejected.csv", count_reason, count));
    fprintf(to,
            "<p>Left out: %llu observations that are not finite, %llu outside of the domain, %llu "
            "too far from the members (rejected.csv lists them).</p>\n",
            (unsigned long long)count[CRN_OBS_NOT_FINITE],
            (unsigned long long)count[CRN_OBS_OUTSIDE], (unsigned long long)count[CRN_OBS_FAR]);
    return CAIRN_OK;
}

/* --- pictures ------------------------------------------------------------------------------- */

static cairn_status newest_product(const crn_study *s, char **ret)
{
    char *dir, best[64] = "";
    CRN_TRY(crn_study_path(s, "products", &dir));
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, "cycle", 5) == 0 && strlen(e->d_name) < sizeof best &&
            strcmp(e->d_name + strlen(e->d_name) - 3, ".h5") == 0 && strcmp(e->d_name, best) > 0)
            snprintf(best, sizeof best, "%s", e->d_name);
    if (d)
        closedir(d);
    int n = best[0] ? asprintf(ret, "%s/%s", dir, best) : 0;
    free(dir);
    CRN_FAIL_IF(n < 0, CAIRN_ENOMEM, "no memory for a path");
    return best[0] ? CAIRN_OK : CAIRN_NOTHING;
}

static void extremes(const crn_obs_array *a, double *low, double *high)
{
    for (uint64_t i = 0; i < a->n; i++)
        if (isfinite(a->data[i])) {
            *low = fmin(*low, a->data[i]);
            *high = fmax(*high, a->data[i]);
        }
}

/* One array of two dimensions as a picture; others are not shown. */
static cairn_status print_array(FILE *to, const char *path, const char *within, const char *field,
                                double low, double high, const crn_chart_dots *dots)
{
    crn_obs_array a;
    char name[160], title[160];
    snprintf(name, sizeof name, "%s/%s", within, field);
    cairn_status rc = crn_obs_file_get(path, name, &a);
    if (rc != CAIRN_OK)
        return rc < 0 ? rc : CAIRN_OK;
    if (low > high)
        extremes(&a, &low, &high);
    snprintf(title, sizeof title, "%s: %s", field, within);
    if (a.ndims == 2)
        rc = crn_chart_image(to, title, a.data, a.dims[0], a.dims[1], low, high, dots);
    free(a.data);
    return rc;
}

static cairn_status print_picture(FILE *to, const char *path, const char *field)
{
    double low = INFINITY, high = -INFINITY;
    static const char *const same[] = {"truth", "analysis/mean", "background/mean"};
    for (int k = 0; k < 3; k++) { /* the same colours for what is to be compared */
        crn_obs_array a;
        char name[160];
        snprintf(name, sizeof name, "%s/%s", same[k], field);
        cairn_status rc = crn_obs_file_get(path, name, &a);
        CRN_TRY(rc);
        if (rc == CAIRN_OK)
            extremes(&a, &low, &high);
        free(a.data);
    }
    for (int k = 0; k < 3; k++)
        CRN_TRY(print_array(to, path, same[k], field, low, high, NULL));
    return print_array(to, path, "analysis/spread", field, INFINITY, -INFINITY, NULL);
}

/* Innovations as dots where they were made, on an empty image of the domain that they span. */
static cairn_status print_dots(FILE *to, const char *path)
{
    static const char *const name[] = {"x", "y", "value", "mean"};
    crn_obs_array a[4] = {{0}};
    double box[2][2] = {{INFINITY, -INFINITY}, {INFINITY, -INFINITY}}, most = 0;
    cairn_status rc = CAIRN_OK;
    for (int k = 0; rc == CAIRN_OK && k < 4; k++) {
        char full[64];
        snprintf(full, sizeof full, "observations/%s", name[k]);
        rc = crn_obs_file_get(path, full, &a[k]);
    }
    for (int k = 0; rc == CAIRN_OK && k < 2; k++)
        extremes(&a[k], &box[k][0], &box[k][1]);
    if (rc == CAIRN_OK && a[0].n > 0 && box[1][0] <= box[1][1]) {
        for (uint64_t i = 0; i < a[0].n; i++) {
            for (int k = 0; k < 2; k++)
                a[k].data[i] = (a[k].data[i] - box[k][0]) / fmax(box[k][1] - box[k][0], 1e-300);
            a[2].data[i] -= a[3].data[i];
            most = fmax(most, fabs(a[2].data[i]));
        }
        const crn_chart_dots dots = {a[0].n, a[0].data, a[1].data, a[2].data};
        rc = crn_chart_image(to, "Innovations where they were observed", (const double[]){0}, 1, 1,
                             -most, most, &dots);
    }
    for (int k = 0; k < 4; k++)
        free(a[k].data);
    return rc < 0 ? rc : CAIRN_OK;
}

static cairn_status print_pictures(FILE *to, const crn_study *s)
{
    char *path = NULL;
    crn_obs_names fields = {0};
    cairn_status rc = newest_product(s, &path);
    if (rc != CAIRN_OK)
        return rc < 0 ? rc : CAIRN_OK;
    CRN_TRY_OUT(rc, crn_obs_file_names(path, "analysis/mean", &fields));
    fprintf(to, "<h2>%s</h2>\n", strrchr(path, '/') + 1);
    for (size_t i = 0; i < fields.n; i++)
        CRN_TRY_OUT(rc, print_picture(to, path, fields.at[i].text));
    CRN_TRY_OUT(rc, print_dots(to, path));
out:
    crn_vec_done(&fields);
    free(path);
    return rc;
}

static void print_kernel(FILE *to, const crn_study *s)
{
    char kernel[CRN_KERNEL_NAME];
    crn_kernel_of(s, kernel);
    if (kernel[0])
        fprintf(to, "<p>Bits are promised for the processor kernel %s.</p>\n", kernel);
}

cairn_status crn_study_report(const crn_study *s, FILE *to)
{
    fprintf(to, head, s->file);
    fprintf(to, "<h1>%s</h1><p>%s with %u members, %u cycles of %llu steps.</p>\n", s->file,
            crn_filter_name(s->filter), s->members, s->cycles, (unsigned long long)s->steps);
    print_kernel(to, s);
    CRN_TRY(print_innovations(to, s));
    CRN_TRY(print_rejected(to, s));
    CRN_TRY(print_scores(to, s));
    CRN_TRY(print_pictures(to, s));
    fputs("</body></html>\n", to);
    return CAIRN_OK;
}
