/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the newest mark of a program with regions began, what it keeps and why, the other places
 * that were compared, and what region.check has found.
 */
#include "report/report_log.h"

typedef struct gathered {
    json_t *last, *findings;
} gathered;

static json_t *place_json(crn_event_regions *r)
{
    json_t *sites = r->sites ? json_incref(r->sites) : json_array();
    return json_pack("{s:I, s:s?, s:b, s:I, s:I, s:O, s:o}", "version", (json_int_t)r->version,
                     "place", r->place, "named", r->named, "kept", (json_int_t)r->kept, "whole",
                     (json_int_t)r->whole, "variables", r->variables, "sites", sites);
}

static json_t *finding_json(const crn_event_finding *f)
{
    return json_pack("{s:s?, s:s?, s:s?, s:I, s:I, s:I}", "site", f->site, "variable", f->variable,
                     "kind", f->kind, "index", (json_int_t)f->index, "count", (json_int_t)f->count,
                     "rank", (json_int_t)f->rank);
}

static int take_line(void *arg, const char *line)
{
    static const crn_event_filter wanted = {.kinds =
                                                CRN_EVENT_BIT(REGIONS) | CRN_EVENT_BIT(FINDING)};
    gathered *g = arg;
    crn_event e;
    if (!crn_event_decode(line, &wanted, &e))
        return 0;
    if (e.kind == CRN_EVENT_FINDING) {
        json_array_append_new(g->findings, finding_json(&e.finding));
    } else {
        json_decref(g->last);
        g->last = place_json(&e.regions);
    }
    crn_event_done(&e);
    return 0;
}

cairn_status crn_report_regions(cairn_trail *trail, size_t run, json_t **ret)
{
    gathered g = {.last = json_null(), .findings = json_array()};
    const cairn_status rc = crn_report_lines(trail, run, take_line, &g);
    if (rc < 0) {
        json_decref(g.last);
        json_decref(g.findings);
        return rc;
    }
    *ret = json_pack("{s:o, s:o}", "mark", g.last ? g.last : json_null(), "findings", g.findings);
    CRN_FAIL_IF(!*ret, CAIRN_ENOMEM, "no memory for what regions keep");
    return CAIRN_OK;
}
