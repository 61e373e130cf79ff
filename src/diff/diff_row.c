/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows: what was found of one variable of a mark. They are made by units and added up.
 */
#include "diff/diff.h"

#include <cairn/type.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* The dimension that is cut into slices: the first one that can be. */
static uint32_t sliced_dim(const uint64_t *shape, uint32_t ndims)
{
    uint32_t d = 0;
    while (d + 1 < ndims && shape[d] <= 1)
        d++;
    return d;
}

static uint64_t slice_width(uint64_t extent)
{
    return CRN_MAX(divide_up(extent, CAIRN_SLICES), 1u);
}

cairn_status crn_diff_row_init(diff_row *r, const crn_var_spec *spec, diff_at order)
{
    *r = (diff_row){
        .order = order, .at = order, .global = spec->ndims > 0, .ndims = CRN_MAX(spec->ndims, 1)};
    CRN_TRY(crn_strdup(spec->name, &r->variable));
    for (uint32_t d = 0; d < spec->ndims; d++)
        r->shape[d] = spec->global[d];
    if (spec->ndims == 0)
        r->shape[0] = spec->nbytes / spec->item;
    const uint64_t extent = r->shape[sliced_dim(r->shape, r->ndims)];
    r->nslices = (uint32_t)divide_up(extent, slice_width(extent));
    cairn_status rc = crn_strdup(spec->type, &r->type);
    if (rc < 0)
        crn_diff_row_done(r);
    return rc;
}

void crn_diff_row_done(diff_row *r)
{
    free(r->variable);
    free(r->type);
    r->variable = r->type = NULL;
}

void crn_diff_rows_done(diff_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        crn_diff_row_done(&rows->at[i]);
    crn_vec_done(rows);
}

void crn_diff_row_judge(diff_row *r, cairn_verdict verdict, const char *fmt, ...)
{
    if (verdict <= r->verdict)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->text, sizeof r->text, fmt, ap);
    va_end(ap);
    r->verdict = verdict;
    r->said = r->at;
}

/* --- values in words ------------------------------------------------------------------------ */

static void format_other(size_t item, const unsigned char *p, char *buf)
{
    size_t n = CRN_MIN(item, (size_t)16);
    for (size_t i = 0; i < n; i++)
        snprintf(buf + 2 * i, 3, "%02x", p[i]);
    if (n < item)
        snprintf(buf + 2 * n, 4, "...");
}

static void format_value(const crn_var_spec *spec, const unsigned char *p, char *buf)
{
    const char *t = spec->type;
    const size_t cap = CAIRN_VALUE_TEXT;
    double d;
    float f;
    uint64_t u = 0;
    if (strcmp(t, "float64") == 0) {
        memcpy(&d, p, sizeof d);
        snprintf(buf, cap, "%.17g", d);
    } else if (strcmp(t, "float32") == 0) {
        memcpy(&f, p, sizeof f);
        snprintf(buf, cap, "%.9g", (double)f);
    } else if (strncmp(t, "uint", 4) == 0 && spec->item <= sizeof u) {
        memcpy(&u, p, spec->item); /* all machines here are little-endian, as files are */
        snprintf(buf, cap, "%" PRIu64, u);
    } else if (strncmp(t, "int", 3) == 0 && spec->item <= sizeof u) {
        memcpy(&u, p, spec->item);
        const unsigned shift = 64 - 8 * (unsigned)spec->item;
        snprintf(buf, cap, "%" PRId64, (int64_t)(u << shift) >> shift);
    } else {
        format_other(spec->item, p, buf);
    }
}

/* --- places --------------------------------------------------------------------------------- */

/* The index, in the global array if it is a piece of one, of value i of a piece. */
static void index_of(const crn_var_spec *piece, uint64_t i, uint64_t *ret)
{
    ret[0] = i;
    for (uint32_t d = piece->ndims; d-- > 0;) {
        ret[d] = piece->offset[d] + i % piece->count[d];
        i /= piece->count[d];
    }
}

/* Widen the box to values first to last of a piece: where they span several rows, all of a row. */
static void widen(diff_row *r, const crn_var_spec *piece, const uint64_t *first,
                  const uint64_t *last, bool empty)
{
    bool apart = false;
    for (uint32_t d = 0; d < r->ndims; d++) {
        const uint64_t low = apart ? piece->offset[d] : first[d];
        const uint64_t high = apart ? piece->offset[d] + piece->count[d] - 1 : last[d];
        r->low[d] = empty ? low : CRN_MIN(r->low[d], low);
        r->high[d] = empty ? high : CRN_MAX(r->high[d], high);
        apart |= first[d] != last[d];
    }
}

/* Count values [first, first + n) of a piece in the slices that they lie in. What is no piece of an
 * array has slices of its own on each rank. */
static void count_slices(diff_row *r, const crn_var_spec *piece, uint64_t first, uint64_t n)
{
    uint64_t before = 0, extent = piece->nbytes / piece->item, inner = 1;
    if (piece->ndims > 0) {
        const uint32_t dim = sliced_dim(piece->global, piece->ndims);
        before = piece->offset[dim];
        extent = piece->global[dim];
        for (uint32_t d = dim + 1; d < piece->ndims; d++)
            inner *= piece->count[d]; /* values of one index of the dimension */
    }
    const uint64_t width = slice_width(extent);
    while (n > 0) {
        const uint64_t s = (before + first / inner) / width;
        const uint64_t end = ((s + 1) * width - before) * inner;
        const uint64_t m = CRN_MIN(n, end - first);
        r->slice[s] += m;
        first += m, n -= m;
    }
}

/* Is place a, of a rank, before place b? In a global array by index, which pieces may share,
 * otherwise by rank first. */
static bool is_before(const diff_row *r, uint32_t rank_a, const uint64_t *a, uint32_t rank_b,
                      const uint64_t *b)
{
    if (!r->global && rank_a != rank_b)
        return rank_a < rank_b;
    for (uint32_t d = 0; d < r->ndims; d++)
        if (a[d] != b[d])
            return a[d] < b[d];
    return rank_a < rank_b;
}

/* Add the place of values that differ. Are they the first ones? */
static bool note_place(diff_row *r, const crn_var_spec *piece, uint32_t rank, uint64_t first,
                       uint64_t n)
{
    uint64_t from[CRN_DIMS_MAX], to[CRN_DIMS_MAX];
    index_of(piece, first, from);
    index_of(piece, first + n - 1, to);
    widen(r, piece, from, to, r->ndiffering == 0);
    count_slices(r, piece, first, n);
    const bool is_first = r->ndiffering == 0 || is_before(r, rank, from, r->rank, r->index);
    if (is_first) {
        r->placed = true;
        r->rank = rank;
        memcpy(r->index, from, sizeof from);
    }
    r->ndiffering += n;
    return is_first;
}

void crn_diff_row_note(diff_row *r, const crn_var_spec *piece, uint32_t rank, uint64_t first,
                       uint64_t n, const void *a, const void *b)
{
    if (!note_place(r, piece, rank, first, n))
        return;
    format_value(piece, a, r->first);
    format_value(piece, b, r->second);
}

void crn_diff_row_note_text(diff_row *r, const crn_var_spec *piece, uint64_t i, const char *a,
                            const char *b)
{
    if (!note_place(r, piece, 0, i, 1))
        return;
    snprintf(r->first, sizeof r->first, "%s", a);
    snprintf(r->second, sizeof r->second, "%s", b);
}

void crn_diff_row_doubt(diff_row *r, const crn_var_spec *piece, uint32_t rank, uint64_t first)
{
    if (r->ndiffering > 0)
        return;
    r->placed = true;
    r->rank = rank;
    index_of(piece, first, r->index);
}

/* --- adding up ------------------------------------------------------------------------------ */

static bool comes_before(diff_at a, diff_at b)
{
    return a.unit != b.unit ? a.unit < b.unit : a.step < b.step;
}

/* A sentence: the gravest, and of equally grave ones the first. */
static void add_verdict(diff_row *to, const diff_row *r)
{
    if (r->verdict < to->verdict || (r->verdict == to->verdict && !comes_before(r->said, to->said)))
        return;
    to->verdict = r->verdict;
    to->said = r->said;
    memcpy(to->text, r->text, sizeof to->text);
}

/* A place: of values that differ the first, or else of doubts. */
static void add_place(diff_row *to, const diff_row *r)
{
    const bool empty = to->ndiffering == 0, doubt = r->ndiffering == 0;
    if (r->placed && (!to->placed || (empty && !doubt) ||
                      (empty == doubt && is_before(to, r->rank, r->index, to->rank, to->index)))) {
        to->placed = true;
        to->rank = r->rank;
        memcpy(to->index, r->index, sizeof to->index);
        memcpy(to->first, r->first, sizeof to->first);
        memcpy(to->second, r->second, sizeof to->second);
    }
    for (uint32_t d = 0; !doubt && d < to->ndims; d++) {
        to->low[d] = empty ? r->low[d] : CRN_MIN(to->low[d], r->low[d]);
        to->high[d] = empty ? r->high[d] : CRN_MAX(to->high[d], r->high[d]);
    }
}

void crn_diff_row_count(diff_row *r, const crn_value_delta *delta)
{
    r->max = fmax(r->max, delta->max);
    r->nnonfinite += delta->nnonfinite;
    for (int i = 0; i < CRN_SQUARES; i++)
        crn_diff_sum_add(&r->squares, delta->squares[i], (i - 1) * CRN_SQUARES_SCALE);
    if (delta->n > 0)
        crn_diff_row_judge(r, CAIRN_DIFFERENT, "values differ");
}

/* Nothing here may depend on which of the two came first. */
void crn_diff_row_add(diff_row *to, const diff_row *r)
{
    add_verdict(to, r);
    add_place(to, r);
    if (comes_before(r->order, to->order))
        to->order = r->order;
    to->nvalues += r->nvalues;
    to->ndiffering += r->ndiffering;
    to->nnonfinite += r->nnonfinite;
    to->nblocks += r->nblocks;
    to->nflagged += r->nflagged;
    to->nfalse += r->nfalse;
    to->read_bytes += r->read_bytes;
    to->alike |= r->alike;
    to->numbered |= r->numbered;
    to->excluded |= r->excluded;
    to->nproven += r->nproven;
    to->nslices = CRN_MAX(to->nslices, r->nslices);
    for (size_t i = 0; i < CAIRN_SLICES; i++)
        to->slice[i] += r->slice[i];
    to->max = fmax(to->max, r->max);
    crn_diff_sum_merge(&to->squares, &r->squares);
    /* ranks may have been captured with other bounds: what holds for all is the loosest */
    to->bound.absolute = fmax(to->bound.absolute, r->bound.absolute);
    to->bound.relative = fmax(to->bound.relative, r->bound.relative);
    for (uint32_t d = 0; d < to->ndims; d++)
        to->shape[d] = CRN_MAX(to->shape[d], r->shape[d]);
}

static bool same_kind(const diff_row *a, const diff_row *b)
{
    return strcmp(a->variable, b->variable) == 0 && strcmp(a->type, b->type) == 0 &&
           a->global == b->global && a->ndims == b->ndims;
}

cairn_status crn_diff_rows_merge(diff_rows *rows, diff_row *r)
{
    for (size_t i = 0; i < rows->n; i++) {
        if (same_kind(&rows->at[i], r)) {
            crn_diff_row_add(&rows->at[i], r);
            crn_diff_row_done(r);
            return CAIRN_OK;
        }
    }
    r->fields = NULL;
    cairn_status rc = crn_vec_push(rows, *r);
    if (rc < 0)
        crn_diff_row_done(r);
    return rc;
}

static int by_order(const void *a, const void *b)
{
    const diff_row *x = a, *y = b;
    return comes_before(y->order, x->order) - comes_before(x->order, y->order);
}

void crn_diff_rows_sort(diff_rows *rows)
{
    if (rows->n > 0)
        qsort(rows->at, rows->n, sizeof *rows->at, by_order);
}

/* --- on the way to another process ---------------------------------------------------------- */

void crn_diff_rows_put(const diff_rows *rows, crn_buf *buf)
{
    crn_put_u64(buf, rows->n);
    for (size_t i = 0; i < rows->n; i++) {
        crn_put_str(buf, rows->at[i].variable);
        crn_put_str(buf, rows->at[i].type);
        crn_put_bytes(buf, &rows->at[i], sizeof rows->at[i]); /* to the same program */
    }
}

static cairn_status get_row(crn_cursor *c, diff_row *ret)
{
    char variable[CRN_VAR_NAME + 1], type[CRN_VAR_TYPE + 1];
    crn_get_str(c, variable, CRN_VAR_NAME);
    crn_get_str(c, type, CRN_VAR_TYPE);
    crn_get_bytes(c, ret, sizeof *ret);
    ret->variable = ret->type = NULL;
    CRN_TRY(crn_cursor_status(c, "a row of another process"));
    CRN_TRY(crn_strdup(variable, &ret->variable));
    cairn_status rc = crn_strdup(type, &ret->type);
    if (rc < 0)
        crn_diff_row_done(ret);
    return rc;
}

cairn_status crn_diff_rows_get(crn_cursor *c, diff_rows *rows)
{
    const uint64_t n = crn_get_u64(c);
    for (uint64_t i = 0; i < n; i++) {
        diff_row r;
        CRN_TRY(get_row(c, &r));
        CRN_TRY(crn_diff_rows_merge(rows, &r));
    }
    return CAIRN_OK;
}
