/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing values of HDF5 that are no numbers: texts, sequences, structures of these, references.
 * All of it is done while HDF5 is locked: it owns what values point to, and knows names of objects.
 */
#include "diff/diff.h"

#include "hdf5/hdf5.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

typedef struct look {
    const crn_h5 *h5;
    const diff_worker *w;
    crn_bound bound;
    hid_t object[2]; /* that references are relative to */
} look;

/* --- texts ---------------------------------------------------------------------------------- */

typedef struct text {
    const char *at;
    size_t n;
} text;

/* A text ends with its first zero byte; what it was filled up with is no part of it. */
static text text_of(const crn_hdf5_form *f, const unsigned char *p)
{
    text t = {.at = (const char *)p};
    if (f->kind == CRN_FORM_FREE_TEXT) {
        memcpy(&t.at, p, sizeof t.at);
        t.n = t.at ? strlen(t.at) : 0; /* what was never written has no text */
        return t;
    }
    t.n = strnlen(t.at, f->nbytes);
    while (f->spaces && t.n > 0 && t.at[t.n - 1] == ' ')
        t.n--;
    return t;
}

static bool same_text(text a, text b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0);
}

/* --- numbers -------------------------------------------------------------------------------- */

/* By the formula of crn_bound, for numbers that are wider than double. */
static bool same_wide(const look *l, long double a, long double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) && !l->w->ask->nan_differs;
    if (a == b)
        return true;
    if (isinf(a) || isinf(b))
        return false;
    const long double wide = fmaxl(fabsl(a), fabsl(b)) * (long double)l->bound.relative;
    return fabsl(a - b) <= fmaxl((long double)l->bound.absolute, wide);
}

static bool same_number(const look *l, const crn_hdf5_form *f, const void *a, const void *b)
{
    long double x, y;
    crn_value_delta delta = {0};
    if (f->nbytes == sizeof x) {
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        return same_wide(l, x, y);
    }
    const crn_value_rule rule = {.kind = crn_value_kind_of(f->number),
                                 .item = f->nbytes,
                                 .bound = l->bound,
                                 .nan_differs = l->w->ask->nan_differs};
    crn_values_compare(&rule, a, b, 1, &delta, NULL, NULL);
    return delta.n == 0;
}

/* --- anything ------------------------------------------------------------------------------- */

/* References are the same that lead to objects of the same name: addresses differ in two files. */
static void name_of(const look *l, int k, const void *reference, char *buf, size_t cap)
{
    buf[0] = 0;
    if (l->h5->H5Rget_name(l->object[k], H5R_OBJECT, reference, buf, cap) < 0)
        l->h5->H5Eclear2(H5E_DEFAULT);
}

static bool same_target(const look *l, const void *a, const void *b)
{
    char first[CRN_HDF5_NAME + 2], second[CRN_HDF5_NAME + 2];
    name_of(l, 0, a, first, sizeof first);
    name_of(l, 1, b, second, sizeof second);
    return strcmp(first, second) == 0;
}

static bool same(const look *l, const crn_hdf5_form *f, const unsigned char *a,
                 const crn_hdf5_form *g, const unsigned char *b);

static bool same_run(const look *l, const crn_hdf5_form *f, const unsigned char *a,
                     const crn_hdf5_form *g, const unsigned char *b, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (!same(l, f, a + i * f->nbytes, g, b + i * g->nbytes))
            return false;
    return true;
}

static bool same_sequence(const look *l, const crn_hdf5_form *f, const void *a,
                          const crn_hdf5_form *g, const void *b)
{
    hvl_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x.len == y.len && same_run(l, f->part[0].form, x.p, g->part[0].form, y.p, x.len);
}

static bool same_structure(const look *l, const crn_hdf5_form *f, const unsigned char *a,
                           const crn_hdf5_form *g, const unsigned char *b)
{
    for (size_t i = 0; i < f->nparts; i++)
        if (!same(l, f->part[i].form, a + f->part[i].off, g->part[i].form, b + g->part[i].off))
            return false;
    return true;
}

/* Is a, of form f, the same as b, of form g, which is alike? */
static bool same(const look *l, const crn_hdf5_form *f, const unsigned char *a,
                 const crn_hdf5_form *g, const unsigned char *b)
{
    switch (f->kind) {
    case CRN_FORM_NUMBER:
        return same_number(l, f, a, b);
    case CRN_FORM_ENUM:
        return same(l, f->part[0].form, a, g->part[0].form, b);
    case CRN_FORM_TEXT:
    case CRN_FORM_FREE_TEXT:
        return same_text(text_of(f, a), text_of(g, b));
    case CRN_FORM_STRUCTURE:
        return same_structure(l, f, a, g, b);
    case CRN_FORM_ARRAY:
        return same_run(l, f->part[0].form, a, g->part[0].form, b, f->count);
    case CRN_FORM_SEQUENCE:
        return same_sequence(l, f, a, g, b);
    case CRN_FORM_REFERENCE:
        return same_target(l, a, b);
    case CRN_FORM_BYTES:
        break;
    }
    return memcmp(a, b, f->nbytes) == 0;
}

/* --- in words ------------------------------------------------------------------------------- */

/* A value in as many words as there is room for. */
typedef struct words {
    char *buf;
    size_t n;
} words;

static void say(words *s, const char *fmt, ...) CAIRN_PRINTF(2);
static void say(words *s, const char *fmt, ...)
{
    if (s->n >= CAIRN_VALUE_TEXT)
        return;
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(s->buf + s->n, CAIRN_VALUE_TEXT - s->n, fmt, ap);
    va_end(ap);
    s->n += n > 0 ? (size_t)n : 0;
}

static void say_value(const look *l, int k, const crn_hdf5_form *f, const unsigned char *p,
                      words *s);

static void say_run(const look *l, int k, const crn_hdf5_form *f, const unsigned char *p,
                    uint64_t n, words *s)
{
    say(s, "[");
    for (uint64_t i = 0; i < n && s->n < CAIRN_VALUE_TEXT; i++) {
        say(s, "%s", i ? ", " : "");
        say_value(l, k, f, p + i * f->nbytes, s);
    }
    say(s, "]");
}

static void say_structure(const look *l, int k, const crn_hdf5_form *f, const unsigned char *p,
                          words *s)
{
    for (size_t i = 0; i < f->nparts; i++) {
        say(s, "%s", i ? ", " : "{");
        say_value(l, k, f->part[i].form, p + f->part[i].off, s);
    }
    say(s, "}");
}

static void say_number(const crn_hdf5_form *f, const unsigned char *p, words *s)
{
    long double wide;
    double d;
    float single;
    uint64_t u = 0;
    const unsigned shift = f->nbytes < sizeof u ? 64 - 8 * (unsigned)f->nbytes : 0;
    if (f->nbytes == sizeof wide)
        memcpy(&wide, p, sizeof wide), say(s, "%.21Lg", wide);
    else if (strcmp(f->number, "float64") == 0)
        memcpy(&d, p, sizeof d), say(s, "%.17g", d);
    else if (strcmp(f->number, "float32") == 0)
        memcpy(&single, p, sizeof single), say(s, "%.9g", (double)single);
    else if (memcpy(&u, p, f->nbytes), f->number[0] == 'u')
        say(s, "%" PRIu64, u);
    else
        say(s, "%" PRId64, (int64_t)(u << shift) >> shift);
}

static void say_value(const look *l, int k, const crn_hdf5_form *f, const unsigned char *p,
                      words *s)
{
    char name[CRN_HDF5_NAME + 2];
    const text t =
        f->kind == CRN_FORM_TEXT || f->kind == CRN_FORM_FREE_TEXT ? text_of(f, p) : (text){0};
    hvl_t v;
    switch (f->kind) {
    case CRN_FORM_NUMBER:
        say_number(f, p, s);
        break;
    case CRN_FORM_ENUM:
        say_value(l, k, f->part[0].form, p, s);
        break;
    case CRN_FORM_TEXT:
    case CRN_FORM_FREE_TEXT:
        say(s, "'%.*s'", (int)CRN_MIN(t.n, (size_t)CAIRN_VALUE_TEXT), t.at ? t.at : "");
        break;
    case CRN_FORM_STRUCTURE:
        say_structure(l, k, f, p, s);
        break;
    case CRN_FORM_ARRAY:
        say_run(l, k, f->part[0].form, p, f->count, s);
        break;
    case CRN_FORM_SEQUENCE:
        memcpy(&v, p, sizeof v);
        say_run(l, k, f->part[0].form, v.p, v.len, s);
        break;
    case CRN_FORM_REFERENCE:
        name_of(l, k, p, name, sizeof name);
        say(s, "%s", *name ? name : "nothing");
        break;
    case CRN_FORM_BYTES:
        for (size_t i = 0; i < CRN_MIN(f->nbytes, (size_t)16); i++)
            say(s, "%02x", p[i]);
        break;
    }
}

/* --- a slab --------------------------------------------------------------------------------- */

static void compare_slab(const look *l, const diff_array *const a[2], uint64_t first, uint64_t n,
                         const crn_var_spec *spec, diff_row *row)
{
    for (uint64_t i = 0; i < n; i++) {
        char said[2][CAIRN_VALUE_TEXT];
        const unsigned char *p[2];
        for (int k = 0; k < 2; k++)
            p[k] = l->w->data[k] + i * a[k]->item;
        if (same(l, a[0]->form, p[0], a[1]->form, p[1]))
            continue;
        for (int k = 0; k < 2; k++)
            say_value(l, k, a[k]->form, p[k], &(words){.buf = said[k]});
        crn_diff_row_note_text(row, spec, first + i, said[0], said[1]);
        crn_diff_row_judge(row, CAIRN_DIFFERENT, "values differ");
    }
}

/* Give back what values point to. */
static void reclaim(const crn_h5 *h5, const diff_array *a, uint64_t n, void *data)
{
    const hsize_t count = n;
    hid_t space = h5->H5Screate_simple(1, &count, NULL);
    h5->H5Dvlen_reclaim(a->memory, space, H5P_DEFAULT, data);
    h5->H5Sclose(space);
}

bool crn_diff_forms_like(const diff_array *a, const diff_array *b)
{
    return crn_hdf5_form_like(a->form, b->form);
}

bool crn_diff_form_is_variable(const diff_array *a)
{
    return a->form && crn_hdf5_form_is_variable(a->form);
}

cairn_status crn_diff_forms(diff_worker *w, const diff_file file[2], const diff_array *const a[2],
                            const diff_slab *slab, const crn_var_spec *spec, diff_row *row)
{
    look l = {.w = w, .bound = row->bound};
    cairn_status rc = CAIRN_OK;
    int k, nread = 0;
    if (w->ask->has_bound)
        l.bound = row->bound = w->ask->bound;
    CRN_TRY(crn_hdf5_lock(&l.h5));
    for (; nread < 2 && rc == CAIRN_OK; nread++) {
        l.object[nread] = a[nread]->attribute ? a[nread]->attribute : a[nread]->dataset;
        rc = crn_diff_read_held(&file[nread], a[nread], slab, w->data[nread]);
    }
    if (rc == CAIRN_OK)
        compare_slab(&l, a, slab->first, slab->n, spec, row);
    for (k = 0; k < nread; k++)
        if (crn_hdf5_form_is_variable(a[k]->form))
            reclaim(l.h5, a[k], slab->n, w->data[k]);
    crn_hdf5_unlock();
    row->nvalues = slab->n;
    row->read_bytes = slab->n * (a[0]->item + a[1]->item);
    return rc;
}
