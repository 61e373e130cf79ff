/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing two files of other programs: arrays of the same name, slab by slab. See diff.h.
 */
#include "diff/diff.h"

#include <fnmatch.h>
#include <inttypes.h>

/* An array that both files have, or one of them. */
typedef struct pair {
    const diff_array *a[2]; /* NULL: that file does not have it */
    bool alike;             /* values can be compared */
    bool blank;             /* nothing was ever written to either: one unit compares fill values */
    uint32_t dim;           /* slabs are so many rows of this dimension: */
    uint64_t step, nsteps;  /* and there are nsteps of them for each index before it */
    uint64_t inner;         /* values of a row */
    uint64_t weight;        /* bytes that a value is to count */
    uint64_t first_unit, nunits;
} pair;

struct diff_files {
    diff_file file[2];
    CRN_VEC(pair) pair;
    uint64_t nunits, nbytes, nskipped;
    bool follow;
};

/* --- pairs ---------------------------------------------------------------------------------- */

static bool same_shape(const diff_array *a, const diff_array *b)
{
    return a->scalar == b->scalar && a->ndims == b->ndims &&
           memcmp(a->shape, b->shape, a->ndims * sizeof *a->shape) == 0;
}

/* Cut along the first dimension whose rows fit a buffer, in steps of whole chunks if they do. */
static void cut(pair *p)
{
    const diff_array *a = p->a[0];
    uint64_t outer = 1;
    p->inner = a->nvalues;
    for (p->dim = 0; p->dim < a->ndims; p->dim++) {
        p->inner /= a->shape[p->dim];
        if (p->inner * p->weight <= DIFF_MEMORY)
            break;
        outer *= a->shape[p->dim];
    }
    const uint64_t rows = a->shape[p->dim], chunk = a->chunk[p->dim];
    p->step = CRN_MIN(DIFF_MEMORY / (p->inner * p->weight), rows);
    if (p->step > chunk)
        p->step -= p->step % chunk;
    p->nsteps = (rows + p->step - 1) / p->step;
    p->nunits = outer * p->nsteps;
}

/* Attributes are read at once. */
static void whole(pair *p)
{
    p->step = p->a[0]->shape[0];
    p->inner = p->a[0]->nvalues / p->step;
    p->nsteps = p->nunits = 1;
}

/* Is an array so much larger than what of it is there that nobody lives to see its end? What was
 * never written is not read from any disk, but HDF5 has to show it. */
static bool is_hollow(const diff_array *a, const diff_array *b)
{
    const uint64_t slack = (uint64_t)64 << 30, times = 64;
    const uint64_t there = CRN_MIN(a->stored_bytes, UINT64_MAX / 4 / times) +
                           CRN_MIN(b->stored_bytes, UINT64_MAX / 4 / times);
    return a->nvalues * a->item > slack + times * there;
}

static bool same_type(const diff_array *a, const diff_array *b)
{
    return strcmp(a->type, b->type) == 0 && !a->form == !b->form &&
           (!a->form || crn_diff_forms_like(a, b));
}

static bool are_values(const diff_array *a, const diff_array *b)
{
    return a->kind == DIFF_VALUES && b->kind == DIFF_VALUES && !a->why && !b->why;
}

static size_t larger_item(const diff_array *a, const diff_array *b)
{
    return CRN_MAX(a->item, b->item);
}

/* What a value takes of a thread's memory; of texts and sequences of any length, as a guess. */
static uint64_t weigh(const diff_array *a, const diff_array *b)
{
    const uint64_t page = 4096, item = larger_item(a, b);
    const bool variable = crn_diff_form_is_variable(a) || crn_diff_form_is_variable(b);
    return variable ? CRN_MAX(item, page) : item;
}

static cairn_status add_pair(diff_files *f, const diff_array *a, const diff_array *b)
{
    pair p = {.a = {a, b}, .first_unit = f->nunits};
    p.alike = a && b && are_values(a, b) && same_type(a, b) && same_shape(a, b) &&
              larger_item(a, b) <= DIFF_MEMORY;
    p.weight = p.alike ? weigh(a, b) : 0;
    p.blank = p.alike && a->fill && b->fill;
    p.alike = p.blank || (p.alike && !is_hollow(a, b));
    if (p.blank) {
        p.nunits = 1;
        f->nunits++;
    } else if (p.alike && a->nvalues > 0) {
        if (a->attribute)
            whole(&p);
        else
            cut(&p);
        f->nunits += p.nunits;
        f->nbytes += a->nvalues * a->item;
    }
    return crn_vec_push(&f->pair, p);
}

/* Is it what was asked for, or one of its attributes? "/a/b" and "a/b" are one name. */
static bool is_wanted(const char *name, const char *wanted)
{
    if (!wanted)
        return true;
    wanted += wanted[0] == '/';
    const size_t n = strlen(wanted);
    return strncmp(name, wanted, n) == 0 && (!name[n] || strncmp(name + n, "/@", 2) == 0);
}

/* Does the name fit a pattern, or lie below one that does? */
static bool fits(const char *name, const char *pattern)
{
    char below[2 * CRN_VAR_NAME];
    pattern += pattern[0] == '/';
    snprintf(below, sizeof below, "%s/*", pattern);
    return fnmatch(pattern, name, 0) == 0 || fnmatch(below, name, 0) == 0;
}

bool crn_diff_is_excluded(const char *name, const char *patterns)
{
    char pattern[CRN_VAR_NAME + 1];
    while (patterns && *patterns) {
        const size_t n = strcspn(patterns, ",");
        snprintf(pattern, sizeof pattern, "%.*s", (int)CRN_MIN(n, sizeof pattern - 1), patterns);
        if (n > 0 && fits(name, pattern))
            return true;
        patterns += n + (patterns[n] == ',');
    }
    return false;
}

static bool has(const diff_file *f, const char *name)
{
    for (size_t i = 0; i < f->array.n; i++)
        if (strcmp(f->array.at[i].name, name) == 0)
            return true;
    return false;
}

/* What an export of Cairn's says of where it comes from differs from all others. */
static const char *origin(const diff_files *f)
{
    return has(&f->file[0], "@cairn") || has(&f->file[1], "@cairn")
               ? "@cairn,@run,@version,@time,@date,@nranks"
               : NULL;
}

/* The next name of both, in their order, and who has it. */
static void next_pair(const diff_files *f, const size_t at[2], const diff_array *ret[2])
{
    const diff_array *p[2];
    for (int k = 0; k < 2; k++)
        p[k] = at[k] < f->file[k].array.n ? &f->file[k].array.at[at[k]] : NULL;
    const int order = !p[0] ? 1 : !p[1] ? -1 : strcmp(p[0]->name, p[1]->name);
    ret[0] = order <= 0 ? p[0] : NULL;
    ret[1] = order >= 0 ? p[1] : NULL;
}

/* Groups that both have say nothing of their own. */
static bool are_groups(const diff_array *const a[2])
{
    return a[0] && a[1] && a[0]->kind == DIFF_GROUP && a[1]->kind == DIFF_GROUP;
}

static cairn_status pair_up(diff_files *f, const cairn_comparison_options *how)
{
    const diff_file *x = &f->file[0], *y = &f->file[1];
    const char *const own = how->variable ? NULL : origin(f);
    size_t at[2] = {0, 0};
    while (at[0] < x->array.n || at[1] < y->array.n) {
        const diff_array *a[2];
        next_pair(f, at, a);
        const char *name = a[0] ? a[0]->name : a[1]->name;
        const bool out =
            crn_diff_is_excluded(name, how->exclude) || crn_diff_is_excluded(name, own);
        if (is_wanted(name, how->variable) && !are_groups(a) && out)
            f->nskipped++;
        else if (is_wanted(name, how->variable) && !are_groups(a))
            CRN_TRY(add_pair(f, a[0], a[1]));
        at[0] += a[0] != NULL;
        at[1] += a[1] != NULL;
    }
    CRN_FAIL_IF(f->pair.n == 0 && how->variable, CAIRN_ENOTFOUND,
                "neither '%s' nor '%s' has a dataset '%s'", x->name, y->name, how->variable);
    CRN_FAIL_IF(f->pair.n == 0, CAIRN_ENOTFOUND,
                "neither '%s' nor '%s' has a dataset or an attribute to compare", x->name, y->name);
    return CAIRN_OK;
}

static cairn_status open_both(diff_files *f, const char *first, const char *second,
                              const cairn_comparison_options *how)
{
    const char *const name[2] = {first, second};
    for (int k = 0; k < 2; k++)
        CRN_TRY(crn_diff_file_open(&f->file[k], name[k], how));
    f->follow = how->follow;
    return pair_up(f, how);
}

cairn_status crn_diff_files_open(const char *first, const char *second,
                                 const cairn_comparison_options *how, diff_files **ret)
{
    diff_files *f;
    CRN_TRY(crn_alloc(&f, 1));
    cairn_status rc = open_both(f, first, second, how);
    if (rc < 0)
        crn_diff_files_free(f);
    else
        *ret = f;
    return rc;
}

void crn_diff_files_free(diff_files *f)
{
    if (!f)
        return;
    crn_diff_file_close(&f->file[0]);
    crn_diff_file_close(&f->file[1]);
    crn_vec_done(&f->pair);
    free(f);
}

uint64_t crn_diff_files_nunits(const diff_files *f)
{
    return f->nunits;
}

uint64_t crn_diff_files_nbytes(const diff_files *f)
{
    return f->nbytes;
}

uint64_t crn_diff_files_nskipped(const diff_files *f)
{
    return f->nskipped;
}

/* --- rows ----------------------------------------------------------------------------------- */

static const uint64_t zeros[CRN_DIMS_MAX];

static crn_var_spec spec_of(const diff_array *a)
{
    return (crn_var_spec){.name = a->name,
                          .type = a->type,
                          .item = (uint32_t)a->item,
                          .nbytes = a->nvalues * a->item,
                          .ndims = a->ndims,
                          .global = a->shape,
                          .offset = zeros,
                          .count = a->shape};
}

static void judge_hollow(const diff_array *a, const diff_array *b, diff_row *row)
{
    char claimed[CRN_NUMBER_TEXT], first[CRN_NUMBER_TEXT], second[CRN_NUMBER_TEXT];
    crn_format_nbytes(a->nvalues * a->item, claimed, sizeof claimed);
    crn_format_nbytes(a->stored_bytes, first, sizeof first);
    crn_format_nbytes(b->stored_bytes, second, sizeof second);
    crn_diff_row_judge(row, CAIRN_INCONCLUSIVE,
                       "it claims %s, of which %s were written in the first file and %s in the "
                       "second: too much to be read",
                       claimed, first, second);
}

/* "[2, 300]", or that there are no dimensions. */
static const char *format_shape(const diff_array *a, char *buf, size_t cap)
{
    if (a->scalar)
        return a->nvalues ? "a single value" : "empty";
    size_t n = (size_t)snprintf(buf, cap, "[");
    for (uint32_t d = 0; d < a->ndims && n < cap; d++)
        n += (size_t)snprintf(buf + n, cap - n, "%s%" PRIu64, d ? ", " : "", a->shape[d]);
    if (n < cap)
        snprintf(buf + n, cap - n, "]");
    return buf;
}

static void judge_shapes(const diff_array *a, const diff_array *b, diff_row *row)
{
    char first[24 * CRN_DIMS_MAX], second[24 * CRN_DIMS_MAX];
    crn_diff_row_judge(
        row, CAIRN_DIFFERENT, "its shape is %s in the first file and %s in the second",
        format_shape(a, first, sizeof first), format_shape(b, second, sizeof second));
}

static void judge_types(const diff_array *a, const diff_array *b, diff_row *row)
{
    if (strcmp(a->type, b->type) != 0)
        crn_diff_row_judge(row, CAIRN_DIFFERENT,
                           "its type is %s in the first file and %s in the second", a->type,
                           b->type);
    else
        crn_diff_row_judge(row, CAIRN_DIFFERENT, "its types are two: both are %s, but not alike",
                           a->type);
}

static void judge_values(const pair *p, diff_row *row)
{
    const diff_array *a = p->a[0], *b = p->a[1];
    if (a->why || b->why)
        crn_diff_row_judge(row, CAIRN_INCONCLUSIVE, "it cannot be compared: %s",
                           a->why ? a->why : b->why);
    else if (!same_type(a, b))
        judge_types(a, b, row);
    else if (!same_shape(a, b))
        judge_shapes(a, b, row);
    else if (larger_item(a, b) > DIFF_MEMORY)
        crn_diff_row_judge(row, CAIRN_INCONCLUSIVE, "its elements are too large");
    else if (!p->alike)
        judge_hollow(a, b, row);
}

/* Of the same kind, and no values. */
static void judge_others(const diff_array *a, const diff_array *b, diff_row *row)
{
    const bool same = strcmp(a->why, b->why) == 0;
    if (a->kind == DIFF_TYPE && !crn_diff_same_types(a, b))
        crn_diff_row_judge(row, CAIRN_DIFFERENT, "it names two types");
    else if (a->kind == DIFF_LOST && !same)
        crn_diff_row_judge(row, CAIRN_DIFFERENT,
                           "it leads to %s in the first file and to %s in the second, where "
                           "nothing is",
                           a->why, b->why);
    else if (a->kind == DIFF_AGAIN && !same)
        crn_diff_row_judge(row, CAIRN_INCONCLUSIVE,
                           "it is the group '/%s' again, and the second's '/%s'", a->why, b->why);
}

static void judge_pair(const diff_files *f, const pair *p, diff_row *row)
{
    static const char *const word[] = {[DIFF_VALUES] = "a dataset",
                                       [DIFF_GROUP] = "a group",
                                       [DIFF_TYPE] = "a type with a name",
                                       [DIFF_AGAIN] = "a group within itself",
                                       [DIFF_LOST] = "a link to where nothing is",
                                       [DIFF_OUTWARD] = "a link into another file"};
    const diff_array *a = p->a[0], *b = p->a[1];
    if (!a || !b) {
        crn_diff_row_judge(row, a ? CAIRN_ONLY_FIRST : CAIRN_ONLY_SECOND, "'%s' does not have it",
                           f->file[a ? 1 : 0].name);
        return;
    }
    const diff_array *const link = a->kind == DIFF_OUTWARD ? a : b->kind == DIFF_OUTWARD ? b : NULL;
    if (link)
        crn_diff_row_judge(row, CAIRN_INCONCLUSIVE, "it leads into another file, to %s: %s",
                           link->why,
                           f->follow ? "nothing could be opened there" : "--follow compares that");
    else if (a->kind != b->kind)
        crn_diff_row_judge(row, CAIRN_DIFFERENT, "it is %s in the first file and %s in the second",
                           word[a->kind], word[b->kind]);
    else if (a->kind == DIFF_VALUES)
        judge_values(p, row);
    else
        judge_others(a, b, row);
}

cairn_status crn_diff_files_rows(const diff_files *f, diff_rows *rows)
{
    for (size_t i = 0; i < f->pair.n; i++) {
        const pair *p = &f->pair.at[i];
        const crn_var_spec spec = spec_of(p->a[0] ? p->a[0] : p->a[1]);
        diff_row row;
        CRN_TRY(crn_diff_row_init(&row, &spec, (diff_at){i, 0}));
        judge_pair(f, p, &row);
        CRN_TRY(crn_diff_rows_merge(rows, &row));
    }
    return CAIRN_OK;
}

/* --- slabs ---------------------------------------------------------------------------------- */

static const pair *find_pair(const diff_files *f, uint64_t unit)
{
    size_t low = 0, high = f->pair.n;
    while (high - low > 1) { /* the last that does not begin after the unit */
        const size_t middle = low + (high - low) / 2;
        if (f->pair.at[middle].first_unit <= unit)
            low = middle;
        else
            high = middle;
    }
    return &f->pair.at[low];
}

static diff_slab slab_of(const pair *p, uint64_t unit)
{
    const diff_array *a = p->a[0];
    const uint64_t k = unit % p->nsteps, rows = a->shape[p->dim];
    uint64_t outer = unit / p->nsteps;
    diff_slab s = {.dim = p->dim};
    s.first = (outer * rows + k * p->step) * p->inner;
    for (uint32_t d = 0; d < a->ndims; d++)
        s.count[d] = d < p->dim ? 1 : a->shape[d];
    s.offset[p->dim] = k * p->step;
    s.count[p->dim] = CRN_MIN(p->step, rows - k * p->step);
    s.n = s.count[p->dim] * p->inner;
    for (uint32_t d = p->dim; d-- > 0;) {
        s.offset[d] = outer % a->shape[d];
        outer /= a->shape[d];
    }
    return s;
}

/* Begin to read a side; what is not plain is there at once. */
static cairn_status start(diff_worker *w, const diff_file *f, const diff_array *a,
                          const diff_slab *s, crn_op *op)
{
    if (!a->plain)
        return crn_diff_file_read(f, a, s, op->iov->iov_base);
    op->kind = CRN_OP_READ;
    op->file = f->file;
    op->off = a->off + s->first * a->item;
    return crn_io_submit(w->io, op);
}

/* Both sides at once, as far as they lie plainly in their files. */
static cairn_status read_slab(diff_worker *w, const diff_files *f, const pair *p,
                              const diff_slab *s)
{
    const size_t nbytes = s->n * p->a[0]->item;
    const struct iovec iov[2] = {{w->data[0], nbytes}, {w->data[1], nbytes}};
    crn_op op[2] = {{.iov = &iov[0], .niov = 1}, {.iov = &iov[1], .niov = 1}}, *done;
    cairn_status rc = CAIRN_OK;
    int n = 0;
    for (int k = 0; k < 2 && rc == CAIRN_OK; k++) {
        rc = start(w, &f->file[k], p->a[k], s, &op[k]);
        n += p->a[k]->plain && rc == CAIRN_OK;
    }
    while (n-- > 0) { /* also after a failure: the kernel writes to the buffers */
        CRN_TRY(crn_io_wait(w->io, &done));
        if (done->status < 0 && rc == CAIRN_OK)
            rc = crn_err_give(&done->err);
    }
    return rc;
}

typedef struct finding {
    diff_row *row;
    const crn_var_spec *spec;
    uint64_t first;
    const unsigned char *a, *b;
} finding;

static void on_stretch(void *arg, uint64_t first, uint64_t n)
{
    const finding *f = arg;
    const size_t off = first * f->spec->item;
    crn_diff_row_note(f->row, f->spec, 0, f->first + first, n, f->a + off, f->b + off);
}

static void compare_slab(diff_worker *w, const crn_var_spec *spec, const diff_slab *s,
                         diff_row *row)
{
    finding f = {row, spec, s->first, w->data[0], w->data[1]};
    crn_value_delta delta = {0};
    const crn_value_rule rule = crn_diff_rule(w, row, spec);
    crn_values_compare(&rule, f.a, f.b, s->n, &delta, on_stretch, &f);
    crn_diff_row_count(row, &delta);
    row->nvalues = s->n;
    row->read_bytes = 2 * s->n * spec->item;
}

/* All values are what was filled in: one of them tells for all. */
static void compare_fill(diff_worker *w, const pair *p, const crn_var_spec *spec, diff_row *row)
{
    const unsigned char *a = p->a[0]->fill, *b = p->a[1]->fill;
    const crn_value_rule rule = crn_diff_rule(w, row, spec);
    const uint64_t n = p->a[0]->nvalues;
    crn_value_delta delta = {0};
    crn_values_compare(&rule, a, b, 1, &delta, NULL, NULL);
    delta.nnonfinite *= n;
    for (int i = 0; i < CRN_SQUARES; i++)
        delta.squares[i] *= (double)n;
    if (delta.n > 0)
        crn_diff_row_note(row, spec, 0, 0, n, a, b);
    crn_diff_row_count(row, &delta);
    row->nvalues = n;
}

static cairn_status look_at_slab(diff_worker *w, const diff_files *f, const pair *p, uint64_t unit,
                                 const crn_var_spec *spec, diff_row *row)
{
    const diff_slab s = slab_of(p, unit - p->first_unit);
    cairn_status rc =
        p->a[0]->form ? crn_diff_forms(w, f->file, p->a, &s, spec, row) : read_slab(w, f, p, &s);
    if (rc == CAIRN_OK && !p->a[0]->form)
        compare_slab(w, spec, &s, row);
    else if (rc < 0 && rc != CAIRN_ENOMEM)
        crn_diff_row_judge(row, CAIRN_INCONCLUSIVE, "%s", crn_err_peek()->text);
    crn_diff_see(w, s.n * spec->item);
    return rc == CAIRN_ENOMEM ? rc : CAIRN_OK;
}

static cairn_status look_at(diff_worker *w, const diff_files *f, const pair *p, uint64_t unit,
                            const crn_var_spec *spec, diff_row *row)
{
    crn_fields fields = {0};
    cairn_status rc = CAIRN_OK;
    crn_diff_fields(w->ask, spec, &fields);
    if (fields.n > 0)
        row->bound = crn_diff_bound_of(w->ask, spec->name, "");
    row->fields = fields.n > 0 && !crn_diff_is_plain(&fields) ? &fields : NULL;
    if (p->blank)
        compare_fill(w, p, spec, row);
    else
        rc = look_at_slab(w, f, p, unit, spec, row);
    row->fields = NULL;
    crn_vec_done(&fields);
    return rc;
}

cairn_status crn_diff_files_unit(diff_worker *w, const diff_files *f, uint64_t unit,
                                 diff_rows *rows, pthread_mutex_t *lock)
{
    const pair *p = find_pair(f, unit);
    const crn_var_spec spec = spec_of(p->a[0]);
    diff_row row;
    CRN_TRY(crn_diff_row_init(&row, &spec, (diff_at){(uint64_t)(p - f->pair.at), unit}));
    cairn_status rc = look_at(w, f, p, unit, &spec, &row);
    if (rc < 0) {
        crn_diff_row_done(&row);
        return rc;
    }
    pthread_mutex_lock(lock);
    rc = crn_diff_rows_merge(rows, &row);
    pthread_mutex_unlock(lock);
    return rc;
}
