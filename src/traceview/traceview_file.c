/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of files as people know them: of a pattern's numbers only those that vary stay open.
 * "run%02d/out-%d" of which the first is always 3 is "run03/out-%d".
 */
#include "traceview/traceview.h"

/* What is known of one number of a pattern. */
typedef struct number {
    bool seen, varies;
    int64_t value;
} number;

static void see(number *n, const crn_column *c)
{
    const crn_group *g = c->group;
    const bool constant = c->ngroups == 1 && g->base.n == 0 && g->value.n == 0 && g->nhists == 0;
    n->varies |= !constant || (n->seen && n->value != g->base.base);
    n->value = constant ? g->base.base : 0;
    n->seen = true;
}

/* All places that name a file by this pattern. */
static void see_places(const crn_trace *t, uint32_t name, number numbers[CRN_NAME_NUMBERS])
{
    for (size_t l = 0; l < t->nlanes; l++) {
        for (size_t i = 0; i < t->lane[l].nsymbols; i++) {
            const crn_symbol *s = &t->lane[l].symbol[i];
            const size_t first = 1 + (size_t)crn_call_row(s->call)->ncolumns;
            if (s->call == CRN_CALL_NONE || s->name != name)
                continue;
            for (size_t k = first; k < s->ncolumns && k - first < CRN_NAME_NUMBERS; k++)
                see(&numbers[k - first], &s->column[k]);
        }
    }
}

static void put_name(crn_buf *b, const char *pattern, const number *numbers)
{
    int k = 0;
    for (const char *p = pattern; *p; p++) {
        const char *end = *p == '%' && p[1] != '%' ? strchr(p, 'd') : NULL;
        if (!end) {
            crn_put_text(b, *p == '%' && p[1] ? "%.2s" : "%.1s", p);
            p += *p == '%' && p[1];
            continue;
        }
        const number *n = k < CRN_NAME_NUMBERS ? &numbers[k] : NULL;
        const int width = end - p > 1 ? (int)strtol(p + 1, NULL, 10) : 0;
        if (n && n->seen && !n->varies)
            crn_put_text(b, "%0*lld", CRN_MIN(CRN_MAX(width, 0), 20), (long long)n->value);
        else
            crn_put_text(b, "%.*s", (int)(end - p + 1), p);
        k++;
        p = end;
    }
}

void crn_trace_files_done(cairn_trace *trace)
{
    for (size_t i = 0; trace->file && i < trace->t->nstrings; i++)
        free(trace->file[i]);
    free(trace->file);
    trace->file = NULL;
}

const char *crn_trace_file(cairn_trace *trace, uint32_t name)
{
    const crn_trace *t = trace->t;
    number numbers[CRN_NAME_NUMBERS] = {{0}};
    crn_buf b = {0};
    if (name == 0 || name >= t->nstrings)
        return NULL;
    if (!trace->file && crn_alloc(&trace->file, t->nstrings) < 0)
        return t->string[name];
    if (!trace->file[name]) {
        see_places(t, name, numbers);
        put_name(&b, t->string[name], numbers);
        trace->file[name] = crn_buf_text(&b) ? (char *)b.at : NULL;
        if (!trace->file[name])
            crn_buf_done(&b);
    }
    return trace->file[name] ? trace->file[name] : t->string[name];
}
