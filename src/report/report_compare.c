/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The comparison of two runs, as one object.
 */
#include <mpi.h>

#include "report/report.h"

#include <cairn/compare.h>

static const char *verdict_text(cairn_verdict verdict)
{
    static const char *const text[] = {[CAIRN_SAME] = "same",
                                       [CAIRN_UNPROVEN] = "not proven equal",
                                       [CAIRN_INCONCLUSIVE] = "could not tell",
                                       [CAIRN_ONLY_FIRST] = "only in the first",
                                       [CAIRN_ONLY_SECOND] = "only in the second",
                                       [CAIRN_DIFFERENT] = "different"};
    return text[verdict];
}

static json_t *numbers(const uint64_t *list, uint32_t n)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(array, json_integer((json_int_t)list[i]));
    return array;
}

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

/* NaN and infinities, which two runs may well differ by, are no JSON. */
static json_t *real_or_null(double x)
{
    json_t *value = json_real(x);
    return value ? value : json_null();
}

/* Where they part, if they do. */
static json_t *place_json(const cairn_comparison_row *r)
{
    if (r->verdict != CAIRN_DIFFERENT || r->ndiffering == 0)
        return json_null();
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "rank", (int)r->rank, "index",
                     numbers(r->index, r->ndims), "first", text_or_null(r->first), "second",
                     text_or_null(r->second), "low", numbers(r->low, r->ndims), "high",
                     numbers(r->high, r->ndims));
}

static json_t *row_json(const cairn_comparison_row *r)
{
    return json_pack(
        "{s:I, s:o, s:o, s:o, s:s, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:I}",
        "version", (json_int_t)r->version, "variable", text_or_null(r->variable), "type",
        text_or_null(r->type), "bound", text_or_null(r->bound), "verdict", verdict_text(r->verdict),
        "text", text_or_null(r->text), "shape", numbers(r->shape, r->ndims), "nvalues",
        (json_int_t)r->nvalues, "ndiffering", (json_int_t)r->ndiffering, "nnonfinite",
        (json_int_t)r->nnonfinite, "max", real_or_null(r->max), "rms", real_or_null(r->rms),
        "where", place_json(r), "nblocks", (json_int_t)r->nblocks, "nflagged",
        (json_int_t)r->nflagged, "read_bytes", (json_int_t)r->read_bytes);
}

static int take_row(void *arg, const cairn_comparison_row *row)
{
    return json_array_append_new(arg, row_json(row));
}

cairn_status crn_report_compare(const char *first, const char *second, const char *bound,
                                json_t **ret)
{
    json_t *rows = json_array();
    const cairn_comparison_options how = {
        .struct_bytes = sizeof how, .bound = bound, .all = true, .row = take_row, .arg = rows};
    cairn_comparison c = {.struct_bytes = sizeof c};
    int rc = cairn_compare(MPI_COMM_SELF, first, second, &how, &c);
    if (rc == CAIRN_NOTHING) /* a row had no place */
        rc = crn_fail(CAIRN_ENOMEM, "no memory for the comparison");
    else if (rc < 0)
        crn_fail((cairn_status)rc, "%s", cairn_error_text());
    if (rc < 0) {
        json_decref(rows);
        return (cairn_status)rc;
    }
    *ret = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "first", first, "second",
                     second, "verdict", verdict_text(c.verdict), "nmarks", (json_int_t)c.nmarks,
                     "nbytes", (json_int_t)c.nbytes, "tree_bytes", (json_int_t)c.tree_bytes,
                     "read_bytes", (json_int_t)c.read_bytes, "parts",
                     c.verdict == CAIRN_DIFFERENT ? row_json(&c.first) : json_null(), "rows", rows);
    CRN_FAIL_IF(!*ret, CAIRN_ENOMEM, "no memory for the comparison");
    return CAIRN_OK;
}
