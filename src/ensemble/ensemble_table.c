/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_table.h"

#include "ensemble/ensemble_side.h"

#include <math.h>
#include <stdio.h>

#include "observe/observe.h"

enum { CELLS = 32, COLUMN = 64 };

const crn_table crn_tables[CRN_TABLES] = {
    {"diagnostics.csv",
     "cycle,type,region,n,bias,rms,spread,error,chi2,effective_rank,crps,ranks\n",
     "innovations",
     {1, 2}},
    {"rejected.csv",
     "cycle,number,type,why,value,variance,index,x,y,z,innovation,bound\n",
     "rejected",
     {2, 3}},
    {"truth.csv",
     "cycle,field,background_rmse,background_spread,background_crps,analysis_rmse,"
     "analysis_spread,analysis_crps\n",
     "truth",
     {1, -1}},
};

static size_t split(char *line, char **cell)
{
    size_t n = 0;
    char *rest = line, *word;
    line[strcspn(line, "\n")] = 0;
    while (n < CELLS && (word = strsep(&rest, ",")))
        cell[n++] = word;
    return n;
}

cairn_status crn_table_each(const crn_study *s, const char *name, crn_table_fn *fn, void *arg)
{
    char *path, *line = NULL, *cell[CELLS];
    size_t cap = 0;
    bool first = true;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_study_path(s, name, &path));
    FILE *f = fopen(path, "re");
    free(path);
    while (f && rc == CAIRN_OK && getline(&line, &cap, f) >= 0) {
        const size_t n = split(line, cell);
        if (!first)
            rc = fn(arg, cell, n);
        first = false;
    }
    free(line);
    if (f)
        fclose(f);
    return rc;
}

double crn_table_number(const char *text)
{
    double x;
    if (crn_parse_real(text, &x) == CAIRN_OK)
        return x;
    crn_err_take(&(crn_err){0});
    return NAN;
}

/* --- HDF5 ----------------------------------------------------------------------------------- */

typedef CRN_VEC(double) numbers;

/* Lines with the same keys. */
typedef struct group {
    char name[3 * COLUMN];
    numbers column[CELLS];
    size_t nranks;             /* cells of the widest line of ranks; 0: there is no such column */
    numbers rank;              /* all lines of ranks, one behind the other, */
    CRN_VEC(size_t) nranks_of; /* and how many each has */
} group;

typedef struct sorting {
    const crn_table *table;
    char *head, *column[CELLS];
    size_t ncolumns;
    CRN_VEC(group *) group;
} sorting;

static void sorting_done(sorting *t)
{
    for (size_t i = 0; i < t->group.n; i++) {
        group *g = t->group.at[i];
        for (size_t k = 0; k < CELLS; k++)
            crn_vec_done(&g->column[k]);
        crn_vec_done(&g->rank);
        crn_vec_done(&g->nranks_of);
        free(g);
    }
    crn_vec_done(&t->group);
    free(t->head);
}

static bool is_key(const crn_table *t, size_t column)
{
    return (int)column == t->key[0] || (int)column == t->key[1];
}

/* The group of a line, by its keys; names of studies become names of HDF5. */
static cairn_status find_group(sorting *t, char *const *cell, group **ret)
{
    char name[sizeof((group *)0)->name];
    int at = snprintf(name, sizeof name, "%s", t->table->group);
    for (int k = 0; k < 2 && t->table->key[k] >= 0; k++) {
        const char *text = cell[t->table->key[k]];
        const int from = at + 1;
        at += snprintf(name + at, sizeof name - (size_t)at, "/%.*s", COLUMN - 1, text);
        for (int i = from; i < at; i++)
            if (name[i] == '/' || name[i] == '.')
                name[i] = '_';
    }
    for (size_t i = 0; i < t->group.n; i++)
        if (strcmp(t->group.at[i]->name, name) == 0) {
            *ret = t->group.at[i];
            return CAIRN_OK;
        }
    CRN_TRY(crn_alloc(ret, 1));
    memcpy((*ret)->name, name, sizeof name);
    cairn_status rc = crn_vec_push(&t->group, *ret);
    if (rc < 0)
        free(*ret);
    return rc;
}

static cairn_status add_ranks(group *g, char *text)
{
    size_t n = 0;
    for (char *word, *rest = text; (word = strsep(&rest, " ")); n++)
        CRN_TRY(crn_vec_push(&g->rank, crn_table_number(word)));
    g->nranks = CRN_MAX(g->nranks, n);
    return crn_vec_push(&g->nranks_of, n);
}

static cairn_status add_line(void *arg, char *const *cell, size_t n)
{
    sorting *t = arg;
    group *g;
    if (n < t->ncolumns) /* it was cut by a full disk */
        return CAIRN_OK;
    CRN_TRY(find_group(t, cell, &g));
    for (size_t k = 0; k < t->ncolumns; k++)
        if (strcmp(t->column[k], "ranks") == 0)
            CRN_TRY(add_ranks(g, cell[k]));
        else if (!is_key(t->table, k))
            CRN_TRY(crn_vec_push(&g->column[k], crn_table_number(cell[k])));
    return CAIRN_OK;
}

/* Members may have been dropped: shorter lines end with NaN. */
static cairn_status write_ranks(crn_obs_file *file, const group *g, const char *path)
{
    const uint64_t dims[] = {g->nranks_of.n, g->nranks};
    const double *from = g->rank.at;
    double *matrix;
    CRN_TRY(crn_alloc(&matrix, dims[0] * dims[1]));
    for (size_t i = 0; i < dims[0]; from += g->nranks_of.at[i++])
        for (size_t k = 0; k < dims[1]; k++)
            matrix[i * dims[1] + k] = k < g->nranks_of.at[i] ? from[k] : NAN;
    cairn_status rc = crn_obs_file_put(file, path, 2, dims, matrix);
    free(matrix);
    return rc;
}

static cairn_status write_group(crn_obs_file *file, const sorting *t, const group *g)
{
    char path[sizeof g->name + COLUMN];
    for (size_t k = 0; k < t->ncolumns; k++) {
        const uint64_t n = g->column[k].n;
        snprintf(path, sizeof path, "%s/%.*s", g->name, COLUMN - 2, t->column[k]);
        if (n > 0)
            CRN_TRY(crn_obs_file_put(file, path, 1, &n, g->column[k].at));
        else if (g->nranks > 0 && !is_key(t->table, k))
            CRN_TRY(write_ranks(file, g, path));
    }
    return CAIRN_OK;
}

static cairn_status export_table(const crn_study *s, const crn_table *table, const char *name,
                                 crn_obs_file **file)
{
    sorting t = {.table = table};
    char *path = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_strdup(table->head, &t.head));
    t.ncolumns = split(t.head, t.column);
    CRN_TRY_OUT(rc, crn_table_each(s, table->name, add_line, &t));
    if (t.group.n > 0 && !*file) {
        CRN_TRY_OUT(rc, crn_study_path(s, name, &path));
        CRN_TRY_OUT(rc, crn_obs_file_create(path, file));
    }
    for (size_t i = 0; i < t.group.n; i++)
        CRN_TRY_OUT(rc, write_group(*file, &t, t.group.at[i]));
out:
    sorting_done(&t);
    free(path);
    return rc;
}

static cairn_status export_tables(const crn_study *s, const crn_table *table, size_t n,
                                  const char *name)
{
    crn_obs_file *file = NULL;
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; rc == CAIRN_OK && i < n; i++)
        rc = export_table(s, &table[i], name, &file);
    if (rc == CAIRN_OK && file)
        return crn_obs_file_close(file);
    crn_obs_file_free(file);
    if (rc != CAIRN_EUNSUPPORTED)
        return rc;
    crn_err_take(&(crn_err){0}); /* tables are there */
    return CAIRN_OK;
}

cairn_status crn_tables_export(const crn_study *s)
{
    return export_tables(s, crn_tables, CRN_TABLES, "diagnostics.h5");
}

/* --- validations ---------------------------------------------------------------------------- */

#define STATISTICS                                                                                 \
    "cycle,variable,ensemble,setting,member,rate,rmsz0,rmsz,delta,rmse,psnr,decorrelation,error,"  \
    "nrmse,npme,mean,deviation,min,max,share,n,nbroken,noutside,ssim\n"

static const crn_table validation[] = {
    {"statistics.csv", STATISTICS, "statistics", {1, 3}},
    {"noise.csv", STATISTICS, "noise", {1, 3}},
    {"distributions.csv",
     "cycle,variable,setting,member,distance,p,rejected\n",
     "distributions",
     {1, 2}},
    {"ranks.csv", "cycle,variable,setting,skew,ranks\n", "ranks", {1, 2}},
};

cairn_status crn_validation_export(const crn_study *s)
{
    return export_tables(s, validation, sizeof validation / sizeof *validation, "validation.h5");
}
