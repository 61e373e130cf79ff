/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Call sites as text: addresses in modules, or, where the module is still there and the same build,
 * functions with files and lines. A module is looked for in the directories that were named, where
 * it lay, and among separate debug files of its build id.
 */
#include "traceview/traceview.h"
#include "traceview/traceview_dwarf.h"

typedef struct opened {
    bool tried, explained;
    crn_dwarf *dwarf; /* NULL: sites of this module are addresses */
} opened;

struct crn_lines {
    const crn_trace *t;
    char *search;
    opened *module; /* by the number of its name */
    char **frame;   /* of each site, once it was asked for; "" for an address */
    crn_buf missing;
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void crn_lines_close(crn_lines *l)
{
    if (!l)
        return;
    for (size_t i = 0; l->module && i < l->t->nstrings; i++)
        crn_dwarf_close(l->module[i].dwarf);
    for (size_t i = 0; l->frame && i < l->t->nsites; i++)
        free(l->frame[i]);
    free(l->module);
    free(l->frame);
    free(l->search);
    crn_buf_done(&l->missing);
    free(l);
}

static cairn_status lines_open(const crn_trace *t, const char *search, crn_lines **ret)
{
    crn_lines *l;
    cairn_status rc;
    CRN_TRY(crn_dwarf_load());
    CRN_TRY(crn_alloc(&l, 1));
    l->t = t;
    if (search)
        CRN_TRY_OUT(rc, crn_strdup(search, &l->search));
    CRN_TRY_OUT(rc, crn_alloc(&l->module, t->nstrings));
    CRN_TRY_OUT(rc, crn_alloc(&l->frame, t->nsites));
    *ret = l;
    return CAIRN_OK;
out:
    crn_lines_close(l);
    return rc;
}

/* ---- finding the file ---- */

/* The first path that is there and the same build; the reason of a wrong build wins over "not
 * there". */
static bool try_path(crn_lines *l, const crn_module *m, const char *path, cairn_status *why,
                     char reason[256])
{
    const cairn_status rc = crn_dwarf_open(path, m, l->search, &l->module[m->name].dwarf);
    if (rc < 0 && *why != CAIRN_EMISMATCH) {
        *why = rc;
        snprintf(reason, 256, "%.255s", crn_err_peek()->text);
    }
    return rc == CAIRN_OK;
}

static bool try_search(crn_lines *l, const crn_module *m, cairn_status *why, char reason[256])
{
    const char *name = last_part(l->t->string[m->path]);
    bool found = false;
    for (const char *at = l->search; at && *at && !found;) {
        const size_t n = strcspn(at, ":");
        char *path = NULL;
        if (n > 0 && asprintf(&path, "%.*s/%s", (int)n, at, name) >= 0)
            found = try_path(l, m, path, why, reason);
        free(path);
        at += n + (at[n] == ':');
    }
    return found;
}

static bool try_debug(crn_lines *l, const crn_module *m, cairn_status *why, char reason[256])
{
    char path[sizeof "/usr/lib/debug/.build-id//.debug" + 2 * CRN_BUILD_ID];
    int n = snprintf(path, sizeof path, "/usr/lib/debug/.build-id/");
    for (size_t i = 0; i < m->nbuild; i++)
        n += snprintf(path + n, sizeof path - (size_t)n, i == 0 ? "%02x/" : "%02x", m->build[i]);
    snprintf(path + n, sizeof path - (size_t)n, ".debug");
    return m->nbuild > 1 && try_path(l, m, path, why, reason);
}

/* The only module of that name; NULL: none was recorded, or several that differ. */
static const crn_module *only_module(const crn_trace *t, uint32_t name, size_t *ret_n)
{
    const crn_module *found = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < t->nmodules; i++) {
        if (t->module[i].name != name)
            continue;
        found = &t->module[i];
        ++*ret_n;
    }
    return *ret_n == 1 ? found : NULL;
}

static void explain(crn_lines *l, uint32_t name, const char *reason)
{
    if (!l->module[name].explained)
        crn_put_text(&l->missing, "%ssites in '%s' are addresses: %s", l->missing.n ? "\n" : "",
                     l->t->string[name], reason);
    l->module[name].explained = true;
}

static void open_module(crn_lines *l, uint32_t name)
{
    cairn_status why = CAIRN_ENOTFOUND;
    char reason[256] = "";
    size_t n;
    const crn_module *m = only_module(l->t, name, &n);
    if (n == 0)
        return; /* the trace is of a format before 4 */
    if (!m)
        snprintf(reason, sizeof reason, "ranks had several builds of it");
    else if (try_search(l, m, &why, reason) ||
             try_path(l, m, l->t->string[m->path], &why, reason) || try_debug(l, m, &why, reason))
        return;
    explain(l, name, reason);
}

static crn_dwarf *dwarf_of(crn_lines *l, uint32_t name)
{
    opened *o = &l->module[name];
    if (!o->tried) {
        o->tried = true;
        open_module(l, name);
    }
    return o->dwarf;
}

static const char *frame_of(crn_lines *l, uint32_t site)
{
    const crn_site *s = &l->t->site[site];
    if (!l->frame[site]) {
        crn_buf b = {0};
        crn_dwarf *d = dwarf_of(l, s->module);
        if (d && !crn_dwarf_put(d, s->off, &b)) {
            b.n = 0;
            explain(l, s->module, "it has neither debugging information (-g) nor symbols");
        }
        if (crn_buf_text(&b))
            l->frame[site] = (char *)b.at;
        else
            crn_buf_done(&b);
    }
    return l->frame[site] ? l->frame[site] : "";
}

/* ---- the public line ---- */

/* One frame as text: "heat2d+0x2712", or "step (heat2d.c:77)". */
static void put_frame(crn_buf *b, const cairn_trace *trace, uint32_t s)
{
    const crn_trace *t = trace->t;
    const char *named = trace->lines ? frame_of(trace->lines, s) : "";
    const char *before = b->n ? " < " : "";
    if (*named)
        crn_put_text(b, "%s%s", before, named);
    else
        crn_put_text(b, "%s%s+0x%llx", before, last_part(t->string[t->site[s].module]),
                     (unsigned long long)t->site[s].off);
}

static void forget_stacks(cairn_trace *trace)
{
    for (size_t i = 0; i < trace->t->nsites; i++) {
        free(trace->stack[i]);
        trace->stack[i] = NULL;
    }
}

int cairn_trace_lines(cairn_trace *trace, const char *search)
{
    crn_lines *lines;
    CRN_TRY(lines_open(trace->t, search, &lines));
    crn_lines_close(trace->lines);
    trace->lines = lines;
    forget_stacks(trace);
    return CAIRN_OK;
}

const char *cairn_trace_unnamed(cairn_trace *trace)
{
    crn_lines *l = trace->lines;
    return l && l->missing.n > 0 ? crn_buf_text(&l->missing) : NULL;
}

const char *cairn_trace_stack(cairn_trace *trace, uint32_t site)
{
    const crn_trace *t = trace->t;
    crn_buf b = {0};
    if (site == 0 || site >= t->nsites)
        return "?";
    if (!trace->stack[site]) {
        for (uint32_t s = site; s > 0 && s < t->nsites; s = t->site[s].outer)
            put_frame(&b, trace, s);
        if (crn_buf_text(&b))
            trace->stack[site] = (char *)b.at;
        else
            crn_buf_done(&b);
    }
    return trace->stack[site];
}

/* Whole frames only: a part of an address is a wrong address. */
char *cairn_trace_site(const cairn_trace *trace, uint32_t site, char *buf, size_t cap)
{
    static const char rest[] = " < ...";
    const crn_trace *t = trace->t;
    crn_buf b = {0};
    size_t fit = 0;
    uint32_t s = site;
    for (; s > 0 && s < t->nsites; s = t->site[s].outer) {
        put_frame(&b, trace, s);
        const bool last = t->site[s].outer == 0 || t->site[s].outer >= t->nsites;
        if (b.failed || b.n + (last ? 1 : sizeof rest) > cap)
            break;
        fit = b.n;
    }
    const bool whole = s == 0 || s >= t->nsites;
    if (fit == 0)
        snprintf(buf, cap, whole ? "?" : "...");
    else
        snprintf(buf, cap, "%.*s%s", (int)fit, (char *)b.at, whole ? "" : rest);
    crn_buf_done(&b);
    return buf;
}
