/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Observations from text: a line for each, with columns as the last line "columns NAME..." names
 * them, at first "cycle field index value variance"; "covariance CYCLE TYPE BLOCK VALUE..." gives
 * the covariances of a block, the rows of its lower triangle one after the other. What follows a
 * '#' is a comment. docs/guide/ensemble.md describes it.
 */
#include "observe/observe_read.h"

#include <errno.h>
#include <math.h>
#include <strings.h>

enum { COLUMNS = 16 };

typedef enum column { CYCLE, TIME, TYPE, INDEX, X, Y, Z, VALUE, VARIANCE, BLOCK, IGNORED } column;

static const struct {
    const char *name;
    column column;
} column_names[] = {
    {"cycle", CYCLE},
    {"time", TIME},
    {"type", TYPE},
    {"field", TYPE},
    {"index", INDEX},
    {"x", X},
    {"lon", X},
    {"y", Y},
    {"lat", Y},
    {"z", Z},
    {"height", Z},
    {"value", VALUE},
    {"variance", VARIANCE},
    {"block", BLOCK},
    {"-", IGNORED},
};

typedef struct reader {
    crn_obs *o;
    char where[160]; /* "'file', line n" */
    column column[COLUMNS];
    size_t ncolumns;
    bool has[IGNORED + 1];
} reader;

static char *next_word(char **rest)
{
    static const char blanks[] = " \t\r\n,";
    char *word = *rest + strspn(*rest, blanks);
    if (!*word)
        return NULL;
    *rest = word + strcspn(word, blanks);
    if (**rest)
        *(*rest)++ = 0;
    return word;
}

/* A number, or what stands for a missing one. */
static cairn_status real_of(const char *word, double *ret)
{
    static const char *const missing[] = {"nan", "na", "inf", "-inf", "-nan", "missing", "-"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (strcasecmp(word, missing[i]) == 0) {
            *ret = NAN;
            return CAIRN_OK;
        }
    return crn_parse_real(word, ret);
}

/* --- columns -------------------------------------------------------------------------------- */

static cairn_status add_column(reader *r, const char *word)
{
    crn_nearest near = crn_nearest_to(word);
    CRN_FAIL_IF(r->ncolumns == COLUMNS, CAIRN_EINVAL, "%s: more than %d columns", r->where,
                COLUMNS);
    for (size_t i = 0; i < sizeof column_names / sizeof *column_names; i++) {
        if (strcmp(column_names[i].name, word) == 0) {
            column c = column_names[i].column;
            CRN_FAIL_IF(r->has[c] && c != IGNORED, CAIRN_EINVAL, "%s: '%s' is there twice",
                        r->where, word);
            r->has[c] = true;
            r->column[r->ncolumns++] = c;
            return CAIRN_OK;
        }
        crn_nearest_offer(&near, column_names[i].name);
    }
    return crn_fail(CAIRN_EINVAL, "%s: no column '%.40s'%s", r->where, word, near.hint);
}

static cairn_status set_columns(reader *r, char *rest)
{
    r->ncolumns = 0;
    memset(r->has, 0, sizeof r->has);
    for (char *word; (word = next_word(&rest));)
        CRN_TRY(add_column(r, word));
    CRN_FAIL_IF(!r->has[VALUE] || !r->has[TYPE] || (!r->has[CYCLE] && !r->has[TIME]), CAIRN_EINVAL,
                "%s: columns need 'value', 'type' (or 'field'), and 'cycle' or 'time'", r->where);
    CRN_FAIL_IF((r->has[Y] && !r->has[X]) || (r->has[Z] && !r->has[Y]), CAIRN_EINVAL,
                "%s: columns of a place are x, x y, or x y z", r->where);
    CRN_FAIL_IF(!r->has[INDEX] && !r->has[X], CAIRN_EINVAL,
                "%s: columns need 'index', or the coordinates of a place", r->where);
    return CAIRN_OK;
}

/* --- lines ---------------------------------------------------------------------------------- */

static cairn_status take_word(reader *r, column c, const char *word, crn_obs_record *ret)
{
    uint64_t n = 0;
    switch (c) {
    case CYCLE:
        return crn_parse_count(word, &ret->cycle);
    case INDEX:
        return crn_parse_count(word, &ret->index);
    case TYPE:
        return crn_obs_type_of(r->o, word, &ret->type);
    case BLOCK:
        if (strcmp(word, "-") == 0)
            return CAIRN_OK;
        CRN_TRY(crn_parse_count(word, &n));
        CRN_FAIL_IF(n >= CRN_OBS_NONE, CAIRN_EINVAL, "a block's number is below 2^32 - 1");
        ret->group = (uint32_t)n;
        return CAIRN_OK;
    case TIME:
        return crn_parse_real(word, &ret->time);
    case X:
    case Y:
    case Z:
        return real_of(word, &ret->place[c - X]);
    case VALUE:
        return real_of(word, &ret->value);
    case VARIANCE:
        return real_of(word, &ret->variance);
    default:
        return CAIRN_OK;
    }
}

static cairn_status take_record(reader *r, char *first, char *rest)
{
    crn_obs_record record = {.index = CRN_OBS_NO_INDEX,
                             .time = NAN,
                             .variance = NAN,
                             .group = CRN_OBS_NONE,
                             .ncoords = r->has[X] + r->has[Y] + r->has[Z]};
    char *word = first;
    for (size_t i = 0; i < r->ncolumns; i++) {
        CRN_FAIL_IF(!word, CAIRN_EINVAL, "%s: %zu words, and there are %zu columns", r->where, i,
                    r->ncolumns);
        cairn_status rc = take_word(r, r->column[i], word, &record);
        if (rc < 0) {
            crn_err_prefix("%s: ", r->where);
            return rc;
        }
        word = next_word(&rest);
    }
    CRN_FAIL_IF(word, CAIRN_EINVAL, "%s: more than %zu words", r->where, r->ncolumns);
    CRN_FAIL_IF(!r->has[VARIANCE] && !(r->o->type.at[record.type].variance > 0), CAIRN_EINVAL,
                "%s: no variance: neither a column has it nor [observation %s]", r->where,
                r->o->type.at[record.type].name);
    return crn_obs_add(r->o, r->where, r->has[CYCLE], &record);
}

/* The triangle's numbers: 1, 3, 6, 10, ... make blocks of 1, 2, 3, 4, .... */
static cairn_status fill_matrix(reader *r, const double *v, size_t n, crn_obs_matrix *m)
{
    while (m->n < CRN_OBS_BLOCK && m->n * (m->n + 1) / 2 < n)
        m->n++;
    CRN_FAIL_IF(n == 0 || m->n * (m->n + 1) / 2 != n, CAIRN_EINVAL,
                "%s: %zu covariances make no lower triangle (of at most %d rows)", r->where, n,
                CRN_OBS_BLOCK);
    CRN_TRY(crn_alloc(&m->value, m->n * m->n));
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k <= i; k++)
            m->value[i * m->n + k] = m->value[k * m->n + i] = *v++;
    return CAIRN_OK;
}

static cairn_status read_numbers(reader *r, char *rest, crn_obs_matrix *m)
{
    CRN_VEC(double) v = {0};
    double x = 0;
    cairn_status rc = CAIRN_OK;
    for (char *word; rc == CAIRN_OK && (word = next_word(&rest));) {
        rc = crn_parse_real(word, &x);
        if (rc == CAIRN_OK)
            rc = crn_vec_push(&v, x);
        else
            crn_err_prefix("%s: ", r->where);
    }
    if (rc == CAIRN_OK)
        rc = fill_matrix(r, v.at, v.n, m);
    crn_vec_done(&v);
    return rc;
}

static cairn_status take_covariance(reader *r, char *rest)
{
    crn_obs_matrix m = {0};
    uint64_t group = 0;
    const char *cycle = next_word(&rest), *type = next_word(&rest), *block = next_word(&rest);
    CRN_FAIL_IF(!block || crn_parse_count(cycle, &m.cycle) < 0 ||
                    crn_parse_count(block, &group) < 0 || group >= CRN_OBS_NONE,
                CAIRN_EINVAL, "%s: not 'covariance CYCLE TYPE BLOCK VALUE...'", r->where);
    CRN_TRY(crn_obs_type_of(r->o, type, &m.type));
    m.group = (uint32_t)group;
    CRN_TRY(read_numbers(r, rest, &m));
    cairn_status rc = crn_vec_push(&r->o->matrix, m);
    if (rc < 0)
        free(m.value);
    return rc;
}

static cairn_status read_line(reader *r, char *line)
{
    char *rest = line, *word;
    line[strcspn(line, "#\n")] = 0;
    word = next_word(&rest);
    if (!word)
        return CAIRN_OK;
    if (strcmp(word, "columns") == 0)
        return set_columns(r, rest);
    if (strcmp(word, "covariance") == 0)
        return take_covariance(r, rest);
    return take_record(r, word, rest);
}

cairn_status crn_obs_read_text(crn_obs *o, FILE *f)
{
    char *line = NULL, first[] = "cycle field index value variance";
    size_t cap = 0, number = 0;
    reader r = {.o = o};
    CRN_TRY(set_columns(&r, first));
    cairn_status rc = CAIRN_OK;
    while (rc == CAIRN_OK && getline(&line, &cap, f) >= 0) {
        snprintf(r.where, sizeof r.where, "'%.120s', line %zu", o->setup.path, ++number);
        rc = read_line(&r, line);
    }
    if (rc == CAIRN_OK && ferror(f))
        rc = crn_fail_sys(errno, "cannot read the observations '%s'", o->setup.path);
    free(line);
    return rc;
}
