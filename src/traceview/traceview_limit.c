/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which events an analysis looks at: "rank=0-3,7 call=MPI_Send* site=exchange". All terms must
 * hold, of each one of its alternatives.
 */
#include "traceview/traceview.h"

#include <ctype.h>
#include <fnmatch.h>

typedef enum subject {
    OF_RANK,
    OF_THREAD,
    OF_COMM,
    OF_CALL,
    OF_LAYER,
    OF_SITE,
    OF_FILE,
    SUBJECTS
} subject;

static const char *const subjects[SUBJECTS] = {"rank",  "thread", "comm", "call",
                                               "layer", "site",   "file"};

/* One alternative: a range of numbers, or a pattern of text. */
typedef struct alternative {
    int64_t first, last;
    char *pattern; /* owned */
} alternative;

typedef struct term {
    subject of;
    bool not ;
    CRN_VEC(alternative) any;
} term;

enum { UNKNOWN_YET, HOLDS, FAILS };

struct crn_limit {
    CRN_VEC(term) term;
    uint8_t *site; /* do the terms of sites hold? Of each site, once it was asked for */
    bool **wanted; /* of each lane, each symbol: does an event of it hold? NULL: not looked yet */
    size_t nlanes;
};

void crn_limit_free(crn_limit *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->term.n; i++) {
        for (size_t k = 0; k < l->term.at[i].any.n; k++)
            free(l->term.at[i].any.at[k].pattern);
        crn_vec_done(&l->term.at[i].any);
    }
    crn_vec_done(&l->term);
    for (size_t i = 0; l->wanted && i < l->nlanes; i++)
        free(l->wanted[i]);
    free(l->wanted);
    free(l->site);
    free(l);
}

/* ---- reading ---- */

static bool is_number(subject of)
{
    return of <= OF_COMM;
}

static cairn_status read_range(const char *text, size_t n, alternative *ret)
{
    char copy[48], *end;
    snprintf(copy, sizeof copy, "%.*s", (int)n, text);
    ret->first = ret->last = strtoll(copy, &end, 10);
    if (*end == '-' && end > copy)
        ret->last = strtoll(end + 1, &end, 10);
    CRN_FAIL_IF(n == 0 || n >= sizeof copy || *end || !isdigit((unsigned char)copy[n - 1]) ||
                    ret->first < 0 || ret->last < ret->first,
                CAIRN_EINVAL, "'%.*s' is no number and no range such as 0-3", (int)n, text);
    return CAIRN_OK;
}

static cairn_status read_alternative(term *t, const char *text, size_t n)
{
    alternative a = {0};
    if (is_number(t->of)) {
        CRN_TRY(read_range(text, n, &a));
    } else {
        CRN_FAIL_IF(n == 0, CAIRN_EINVAL, "'%s' has an empty alternative", subjects[t->of]);
        /* a part of a call stack is enough */
        const char *around = t->of == OF_SITE ? "*" : "";
        CRN_FAIL_IF(asprintf(&a.pattern, "%s%.*s%s", around, (int)n, text, around) < 0,
                    CAIRN_ENOMEM, "no memory for a pattern");
    }
    const cairn_status rc = crn_vec_push(&t->any, a);
    if (rc < 0)
        free(a.pattern);
    return rc;
}

static cairn_status find_subject(const char *word, size_t n, subject *ret)
{
    char name[16];
    snprintf(name, sizeof name, "%.*s", (int)CRN_MIN(n, sizeof name - 1), word);
    crn_nearest near = crn_nearest_to(name);
    for (int i = 0; i < SUBJECTS; i++) {
        if (strcmp(name, subjects[i]) == 0) {
            *ret = (subject)i;
            return CAIRN_OK;
        }
        crn_nearest_offer(&near, subjects[i]);
    }
    return crn_fail(CAIRN_EINVAL, "'%s' is nothing to limit by%s", name,
                    near.hint[0] ? near.hint
                                 : ": there are rank, thread, comm, call, layer, site and file");
}

/* "rank=0-3", "call!=MPI_Test*" */
static cairn_status read_term(crn_limit *l, const char *text, size_t n)
{
    const char *equals = memchr(text, '=', n);
    CRN_FAIL_IF(!equals || equals == text, CAIRN_EINVAL,
                "'%.*s' is no term such as rank=0-3 or call=MPI_Send*", (int)n, text);
    const bool not = equals[-1] == '!';
    term t = {.not = not };
    CRN_TRY(find_subject(text, (size_t)(equals - text) - not, &t.of));
    CRN_TRY(crn_vec_push(&l->term, t));
    term *added = &l->term.at[l->term.n - 1];
    for (const char *at = equals + 1, *end = text + n;;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        CRN_TRY(read_alternative(added, at, (size_t)((comma ? comma : end) - at)));
        if (!comma)
            return CAIRN_OK;
        at = comma + 1;
    }
}

static cairn_status read_limit(crn_limit *l, const char *text)
{
    for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        CRN_TRY(read_term(l, at, n));
        at += n;
    }
    CRN_FAIL_IF(l->term.n == 0, CAIRN_EINVAL, "no term, such as rank=0-3 or call=MPI_Send*");
    return CAIRN_OK;
}

int cairn_trace_limit(cairn_trace *trace, const char *where)
{
    crn_limit *l = NULL;
    if (where) {
        CRN_TRY(crn_alloc(&l, 1));
        cairn_status rc = read_limit(l, where);
        if (rc == CAIRN_OK)
            rc = crn_alloc(&l->site, trace->t->nsites);
        if (rc < 0) {
            crn_limit_free(l);
            crn_err_prefix("'%s': ", where);
            return rc;
        }
    }
    crn_limit_free(trace->limit);
    trace->limit = l;
    return CAIRN_OK;
}

/* ---- holding ---- */

static bool in_range(const term *t, int64_t v)
{
    bool any = false;
    for (size_t i = 0; i < t->any.n; i++)
        any |= t->any.at[i].first <= v && v <= t->any.at[i].last;
    return any != t->not ;
}

static bool fits(const term *t, const char *text, int flags)
{
    bool any = false;
    for (size_t i = 0; text && i < t->any.n; i++)
        any |= fnmatch(t->any.at[i].pattern, text, flags) == 0;
    return any != t->not ;
}

static const char *last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

/* By the whole name or its last part. */
static bool file_fits(const term *t, const char *file)
{
    const term plain = {.any.at = t->any.at, .any.n = t->any.n};
    return (fits(&plain, file, 0) || fits(&plain, last_part(file), 0)) != t->not ;
}

/* A term of a communicator holds for no call that has none. */
static bool comm_fits(const term *t, const crn_traced_event *e)
{
    bool found = false;
    for (int i = 0; i < e->ncolumns; i++) {
        if (e->kind[i] == CRN_KIND_COMM) {
            found = true;
            if (in_range(t, e->value[i]))
                return true;
        }
    }
    return !found && t->not ;
}

static bool site_fits(cairn_trace *trace, const term *t, uint32_t site)
{
    crn_limit *l = trace->limit;
    if (site >= trace->t->nsites)
        return t->not ;
    if (l->site[site] == UNKNOWN_YET) {
        l->site[site] = HOLDS;
        for (size_t i = 0; i < l->term.n; i++)
            if (l->term.at[i].of == OF_SITE &&
                !fits(&l->term.at[i], cairn_trace_stack(trace, site), FNM_CASEFOLD))
                l->site[site] = FAILS;
    }
    return l->site[site] == HOLDS;
}

bool crn_limit_rank(const cairn_trace *trace, uint32_t rank)
{
    const crn_limit *l = trace->limit;
    for (size_t i = 0; l && i < l->term.n; i++)
        if (l->term.at[i].of == OF_RANK && !in_range(&l->term.at[i], rank))
            return false;
    return true;
}

bool crn_limit_names_ranks(const cairn_trace *trace)
{
    const crn_limit *l = trace->limit;
    for (size_t i = 0; l && i < l->term.n; i++)
        if (l->term.at[i].of == OF_RANK)
            return true;
    return false;
}

bool crn_limit_holds(cairn_trace *trace, const crn_view *v)
{
    const crn_limit *l = trace->limit;
    bool holds = true;
    for (size_t i = 0; l && i < l->term.n && holds; i++) {
        const term *t = &l->term.at[i];
        switch (t->of) {
        case OF_RANK:
            holds = in_range(t, v->event->rank);
            break;
        case OF_THREAD:
            holds = in_range(t, v->event->thread);
            break;
        case OF_COMM:
            holds = comm_fits(t, v->e);
            break;
        case OF_CALL:
            holds = fits(t, v->event->call, FNM_CASEFOLD);
            break;
        case OF_LAYER:
            holds = fits(t, v->event->layer, 0);
            break;
        case OF_SITE:
            holds = site_fits(trace, t, v->event->site);
            break;
        default:
            holds = file_fits(t, v->event->file ? crn_trace_file(trace, v->file) : NULL) ||
                    file_fits(t, v->event->file);
        }
    }
    return holds;
}

/* ---- symbols ---- */

static int mark(void *arg, const crn_view *v)
{
    cairn_trace *trace = arg;
    bool *wanted = &trace->limit->wanted[v->event->thread][v->event->place];
    *wanted = *wanted || crn_limit_holds(trace, v);
    return 0;
}

/* A loop is wanted if something in it is; bodies have smaller numbers than their rules. */
static void mark_rules(const crn_lane *lane, bool *wanted)
{
    for (size_t i = 0; i < lane->nsymbols; i++)
        for (size_t k = 0; k < lane->symbol[i].nbody; k++)
            wanted[i] = wanted[i] || wanted[lane->symbol[i].body[k]];
}

cairn_status crn_limit_symbols(cairn_trace *trace)
{
    crn_limit *l = trace->limit;
    const crn_trace *t = trace->t;
    if (!l || l->wanted)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&l->wanted, t->nlanes));
    l->nlanes = t->nlanes;
    for (size_t i = 0; i < t->nlanes; i++)
        CRN_TRY(crn_alloc(&l->wanted[i], t->lane[i].nsymbols));
    for (uint32_t r = 0; r < t->nranks; r++)
        if (crn_limit_rank(trace, r))
            CRN_TRY(crn_visit_rank(t, r, mark, trace));
    for (size_t i = 0; i < t->nlanes; i++)
        mark_rules(&t->lane[i], l->wanted[i]);
    return CAIRN_OK;
}

bool crn_limit_symbol(const cairn_trace *trace, size_t lane, uint32_t symbol)
{
    return !trace->limit || trace->limit->wanted[lane][symbol];
}
