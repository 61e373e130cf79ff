/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing two files of other programs: arrays of the same name, slab by slab. See diff.h.
 */
#include "diff/diff.h"

#include <inttypes.h>

/* An array that both files have, or one of them. */
typedef struct pair {
    const diff_array *a[2]; /* NULL: that file does not have it */
    bool alike;             /* values can be compared */
    bool blank;             /* nothing was ever written to either: one unit compares fill values */
    uint32_t dim;           /* slabs are so many rows of this dimension: */
    uint64_t step, nsteps;  /* and there are nsteps of them for each index before it */
    uint64_t inner;         /* values of a row */
    uint64_t first_unit, nunits;
} pair;

struct diff_files {
    diff_file file[2];
    CRN_VEC(pair) pair;
    uint64_t nunits, nbytes;
};

/* --- pairs ---------------------------------------------------------------------------------- */

static bool same_shape(const diff_array *a, const diff_array *b)
{
    return a->ndims == b->ndims && memcmp(a->shape, b->shape, a->ndims * sizeof *a->shape) == 0;
}

/* Cut along the first dimension whose rows fit a buffer, in steps of whole chunks if they do. */
static void cut(pair *p)
{
    const diff_array *a = p->a[0];
    uint64_t outer = 1;
    p->inner = a->nvalues;
    for (p->dim = 0; p->dim < a->ndims; p->dim++) {
        p->inner /= a->shape[p->dim];
        if (p->inner * a->item <= DIFF_MEMORY)
            break;
        outer *= a->shape[p->dim];
    }
    const uint64_t rows = a->shape[p->dim], chunk = a->chunk[p->dim];
    p->step = CRN_MIN(DIFF_MEMORY / (p->inner * a->item), rows);
    if (p->step > chunk)
        p->step -= p->step % chunk;
    p->nsteps = (rows + p->step - 1) / p->step;
    p->nunits = outer * p->nsteps;
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

static cairn_status add_pair(diff_files *f, const diff_array *a, const diff_array *b)
{
    pair p = {.a = {a, b}, .first_unit = f->nunits};
    p.alike = a && b && !a->why && !b->why && strcmp(a->type, b->type) == 0 && same_shape(a, b) &&
              a->item <= DIFF_MEMORY;
    p.blank = p.alike && a->fill && b->fill;
    p.alike = p.blank || (p.alike && !is_hollow(a, b));
    if (p.blank) {
        p.nunits = 1;
        f->nunits++;
    } else if (p.alike && a->nvalues > 0) {
        cut(&p);
        f->nunits += p.nunits;
        f->nbytes += a->nvalues * a->item;
    }
    return crn_vec_push(&f->pair, p);
}

/* "/a/b" and "a/b" are one name. */
static bool is_wanted(const char *name, const char *wanted)
{
    return !wanted || strcmp(name, wanted + (wanted[0] == '/')) == 0;
}

static cairn_status pair_up(diff_files *f, const char *wanted)
{
    const diff_file *x = &f->file[0], *y = &f->file[1];
    size_t i = 0, k = 0;
    while (i < x->array.n || k < y->array.n) {
        const diff_array *a = i < x->array.n ? &x->array.at[i] : NULL;
        const diff_array *b = k < y->array.n ? &y->array.at[k] : NULL;
        const int order = !a ? 1 : !b ? -1 : strcmp(a->name, b->name);
        const diff_array *first = order <= 0 ? a : b;
        if (is_wanted(first->name, wanted))
            CRN_TRY(add_pair(f, order <= 0 ? a : NULL, order >= 0 ? b : NULL));
        i += order <= 0;
        k += order >= 0;
    }
    CRN_FAIL_IF(f->pair.n == 0 && wanted, CAIRN_ENOTFOUND,
                "neither '%s' nor '%s' has a dataset '%s'", x->name, y->name, wanted);
    CRN_FAIL_IF(f->pair.n == 0, CAIRN_ENOTFOUND, "neither '%s' nor '%s' has a dataset of numbers",
                x->name, y->name);
    return CAIRN_OK;
}

static cairn_status open_both(diff_files *f, const char *first, const char *second,
                              const cairn_comparison_options *how)
{
    const char *const name[2] = {first, second};
    for (int k = 0; k < 2; k++)
        CRN_TRY(crn_diff_file_open(&f->file[k], name[k], how->raw, how->raw_ndims, how->raw_shape));
    return pair_up(f, how->variable);
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
    return f->file[0].nskipped + f->file[1].nskipped;
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
    crn_diff_row_judge(row, CAIRN_UNTOLD,
                       "it claims %s, of which %s were written in the first file and %s in the "
                       "second: too much to be read",
                       claimed, first, second);
}

static void judge_pair(const diff_files *f, const pair *p, diff_row *row)
{
    const diff_array *a = p->a[0], *b = p->a[1];
    if (!a || !b)
        crn_diff_row_judge(row, a ? CAIRN_ONLY_FIRST : CAIRN_ONLY_SECOND, "'%s' does not have it",
                           f->file[a ? 1 : 0].name);
    else if (a->why || b->why)
        crn_diff_row_judge(row, CAIRN_UNTOLD, "it cannot be compared: %s",
                           a->why ? a->why : b->why);
    else if (strcmp(a->type, b->type) != 0)
        crn_diff_row_judge(row, CAIRN_DIFFERENT,
                           "its type is %s in the first file and %s in the second", a->type,
                           b->type);
    else if (!same_shape(a, b))
        crn_diff_row_judge(row, CAIRN_DIFFERENT,
                           "it has %" PRIu64 " values in the first file and %" PRIu64
                           " in the second, or they are shaped differently",
                           a->nvalues, b->nvalues);
    else if (a->item > DIFF_MEMORY)
        crn_diff_row_judge(row, CAIRN_UNTOLD, "its elements are too large");
    else if (!p->alike)
        judge_hollow(a, b, row);
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
    delta.sum_squares *= (double)n;
    if (delta.n > 0)
        crn_diff_row_note(row, spec, 0, 0, n, a, b);
    crn_diff_row_count(row, &delta);
    row->nvalues = n;
}

static cairn_status look_at(diff_worker *w, const diff_files *f, const pair *p, uint64_t unit,
                            const crn_var_spec *spec, diff_row *row)
{
    if (crn_value_is_float(spec->type) && w->ask->has_bound)
        row->bound = w->ask->bound;
    if (p->blank) {
        compare_fill(w, p, spec, row);
        return CAIRN_OK;
    }
    const diff_slab s = slab_of(p, unit - p->first_unit);
    cairn_status rc = read_slab(w, f, p, &s);
    if (rc == CAIRN_OK)
        compare_slab(w, spec, &s, row);
    else if (rc != CAIRN_ENOMEM)
        crn_diff_row_judge(row, CAIRN_UNTOLD, "%s", crn_err_peek()->text);
    crn_diff_see(w, s.n * spec->item);
    return rc == CAIRN_ENOMEM ? rc : CAIRN_OK;
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
