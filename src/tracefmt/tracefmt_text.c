/* SPDX-License-Identifier: BSD-3-Clause */
#include "tracefmt/tracefmt.h"

#include <inttypes.h>
#include <limits.h>

crn_trace_texts crn_names_of_trace(const crn_trace *t)
{
    return (crn_trace_texts){t->string, t->nstrings, t->site, t->nsites, t->type, t->ntypes};
}

crn_trace_texts crn_names_of_tables(const crn_tables *t)
{
    return (crn_trace_texts){t->string.at, t->string.n, t->site.at,
                             t->site.n,    t->type.at,  t->type.n};
}

/* The file name of an event of a call that has one; "" otherwise, or if it does not fit. */
static const char *event_name(const crn_trace_texts *n, const crn_symbol *place,
                              const int64_t *value, char *buf, size_t cap)
{
    const crn_call *call = crn_call_row(place->call);
    if (!call->named || place->name >= n->nstrings)
        return "";
    const char *pattern = n->string[place->name];
    int numbers = crn_pattern_numbers(pattern);
    return crn_pattern_join(pattern, value + call->ncolumns, numbers, buf, cap) ? buf : "";
}

static void put_site(crn_buf *b, const crn_trace_texts *n, uint32_t site)
{
    if (site > 0 && site < n->nsites && n->site[site].module < n->nstrings)
        crn_put_text(b, " at %s+0x%" PRIx64, n->string[n->site[site].module], n->site[site].off);
}

static void put_list(crn_buf *b, crn_list l)
{
    crn_put_text(b, "[");
    for (size_t i = 0; i < l.n; i++)
        crn_put_text(b, "%s%" PRId64, i > 0 ? " " : "", l.at[i]);
    crn_put_text(b, "]");
}

static void put_value(crn_buf *b, const crn_trace_texts *n, unsigned kind, int64_t v, crn_list list,
                      bool drawn)
{
    crn_put_text(b, " %s=%s", crn_kind_name((crn_kind)kind), drawn ? "~" : "");
    if (crn_kind_is_list(kind))
        put_list(b, list);
    else if (kind == CRN_KIND_TYPE && v >= 0 && (uint64_t)v < n->ntypes)
        crn_put_text(b, "%" PRIu64, n->type[v].nbytes);
    else
        crn_put_text(b, "%" PRId64, v);
}

void crn_text_event(crn_buf *b, const crn_trace_texts *n, const crn_traced_event *e)
{
    char name[PATH_MAX];
    crn_put_text(b, "%s", e->call->name);
    if (e->place->within != CRN_CALL_NONE)
        crn_put_text(b, " in %s", crn_call_row(e->place->within)->name);
    put_site(b, n, e->place->site);
    if (e->call->named)
        crn_put_text(b, " '%s'", event_name(n, e->place, e->value, name, sizeof name));
    for (int i = 0; i < e->ncolumns && i < e->call->ncolumns; i++)
        put_value(b, n, e->kind[i], e->value[i], e->list[i], e->hist[i] != NULL);
}

void crn_text_record(crn_buf *b, const crn_trace_texts *n, const crn_record *r)
{
    crn_symbol place = {.call = r->call, .within = r->within, .site = r->site, .name = r->name};
    crn_traced_event e = {.place = &place, .call = crn_call_row(r->call), .ncolumns = r->ncolumns};
    for (int i = 0; i < r->ncolumns; i++) {
        e.kind[i] = i < e.call->ncolumns ? e.call->kind[i] : CRN_KIND_NUMBER;
        e.value[i] = r->value[i];
        e.list[i] = r->list[i];
    }
    crn_text_event(b, n, &e);
}
