/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What keeps two sides from being compared, in words: shapes that differ, and, for a golden file,
 * which has nothing but trees, why the run's cannot be held against them.
 */
#include "diff/diff.h"

#include <inttypes.h>

enum { TEXT = 200 };

/* "an array of 20x30", or "values of each rank". */
static char *format_shape(const crn_var_spec *s, char buf[TEXT])
{
    size_t n = (size_t)snprintf(buf, TEXT, s->ndims > 0 ? "an array of " : "values of each rank");
    for (uint32_t d = 0; d < s->ndims && n < TEXT; d++)
        n += (size_t)snprintf(buf + n, TEXT - n, "%s%" PRIu64, d > 0 ? "x" : "", s->global[d]);
    return buf;
}

void crn_diff_why_shapes(const diff_side side[2], uint32_t rank, const diff_var v[2],
                         char ret[CRN_ERR_TEXT])
{
    const crn_var_spec *a = &v[0].var->spec, *b = &v[1].var->spec;
    char shape[2][TEXT];
    if (a->ndims == 0 && b->ndims == 0)
        snprintf(ret, CRN_ERR_TEXT,
                 "rank %u has %" PRIu64 " values in '%s' and %" PRIu64 " in '%s'", rank,
                 a->nbytes / a->item, side[0].name, b->nbytes / b->item, side[1].name);
    else
        snprintf(ret, CRN_ERR_TEXT, "it is %s in '%s' and %s in '%s'", format_shape(a, shape[0]),
                 side[0].name, format_shape(b, shape[1]), side[1].name);
}

/* "1e-3, 1e-6", or "none". */
static char *format_bounds(const crn_trees_var *t, char buf[TEXT])
{
    size_t n = (size_t)snprintf(buf, TEXT, "%s", t && t->nbounds > 0 ? "" : "none");
    for (size_t i = 0; t && i < t->nbounds && n < TEXT; i++) {
        char bound[CRN_BOUND_TEXT];
        n += (size_t)snprintf(buf + n, TEXT - n, "%s%s", i > 0 ? ", " : "",
                              crn_bound_format(&t->bound[i], bound));
    }
    return buf;
}

/* Bounds do not matter where all must be the same to the last bit. */
static bool wants_bound(const diff_var v[2], const crn_bound *asked)
{
    if (asked)
        return asked->absolute > 0 || asked->relative > 0;
    return (v[0].trees && v[0].trees->nbounds > 0) || (v[1].trees && v[1].trees->nbounds > 0);
}

static void why_bounds(const diff_side side[2], const diff_var v[2], const crn_bound *asked,
                       char ret[CRN_ERR_TEXT])
{
    char bound[CRN_BOUND_TEXT] = "", list[2][TEXT];
    if (asked)
        crn_bound_format(asked, bound);
    snprintf(ret, CRN_ERR_TEXT,
             "it is not the same to the last bit, and they have no trees of a common bound%s%s: "
             "'%s' has %s, '%s' has %s; set variable.bound, or bless another run",
             asked ? " within " : "", bound, side[0].name, format_bounds(v[0].trees, list[0]),
             side[1].name, format_bounds(v[1].trees, list[1]));
}

void crn_diff_why_golden(const diff_side side[2], const diff_mark *const mark[2],
                         const diff_var v[2], const crn_bound *asked, bool tolerant,
                         char ret[CRN_ERR_TEXT])
{
    const crn_var_spec *a = &v[0].var->spec, *b = &v[1].var->spec;
    const bool numbers = strcmp(a->type, "bytes") != 0;
    ret[0] = 0;
    if (mark[0]->nranks != mark[1]->nranks && a->ndims > 0)
        snprintf(ret, CRN_ERR_TEXT,
                 "trees of other numbers of ranks cannot be compared without data: '%s' has %u, "
                 "'%s' has %u; keep the data in the trail, or take the run on as many",
                 side[0].name, mark[0]->nranks, side[1].name, mark[1]->nranks);
    else if (!crn_diff_same_place(a, b))
        snprintf(ret, CRN_ERR_TEXT,
                 "ranks have other pieces of it in '%s' than in '%s', whose trees cannot be "
                 "compared without data; keep it in the trail",
                 side[0].name, side[1].name);
    else if (a->block != b->block && v[0].var->nblocks + v[1].var->nblocks > 2)
        snprintf(
            ret, CRN_ERR_TEXT,
            "trees of other leaves cannot be compared without data: '%s' has leaves of %u bytes, "
            "'%s' of %u; set compare.leaf, or bless another run",
            side[0].name, a->block, side[1].name, b->block);
    else if (numbers && !tolerant && wants_bound(v, asked))
        why_bounds(side, v, asked, ret);
}
