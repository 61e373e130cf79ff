/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The trace in memory: its parts given back, small questions answered, patterns of file names.
 */
#include "tracefmt/tracefmt.h"

#include <ctype.h>

void crn_group_done(crn_group *g)
{
    crn_seq_done(&g->ranks);
    crn_seq_done(&g->base);
    crn_seq_done(&g->value);
    for (size_t i = 0; i < g->nlists; i++)
        crn_seq_done(&g->list[i]);
    free(g->list);
    free(g->hist);
    memset(g, 0, sizeof *g);
}

void crn_groups_free(crn_group *g, size_t n)
{
    for (size_t i = 0; g && i < n; i++)
        crn_group_done(&g[i]);
    free(g);
}

void crn_column_done(crn_column *c)
{
    crn_groups_free(c->group, c->ngroups);
    crn_groups_free(c->other, c->nothers);
    memset(c, 0, sizeof *c);
}

void crn_symbol_done(crn_symbol *s)
{
    for (size_t i = 0; s->column && i < s->ncolumns; i++)
        crn_column_done(&s->column[i]);
    free(s->column);
    free(s->body);
}

static void lane_done(crn_lane *l)
{
    for (size_t i = 0; l->symbol && i < l->nsymbols; i++)
        crn_symbol_done(&l->symbol[i]);
    free(l->symbol);
    free(l->gap);
    free(l->took);
    crn_seq_done(&l->ranks);
}

void crn_trace_free(crn_trace *t)
{
    if (!t)
        return;
    for (size_t i = 0; t->string && i < t->nstrings; i++)
        free(t->string[i]);
    for (size_t i = 0; t->type && i < t->ntypes; i++) {
        crn_seq_done(&t->type[i].ints);
        crn_seq_done(&t->type[i].addrs);
        crn_seq_done(&t->type[i].types);
    }
    for (size_t i = 0; t->lane && i < t->nlanes; i++)
        lane_done(&t->lane[i]);
    crn_seq_done(&t->missing);
    crn_seq_done(&t->cut);
    free(t->string);
    free(t->site);
    free(t->type);
    free(t->lane);
    free(t);
}

bool crn_trace_complete(const crn_trace *t)
{
    return t->missing.n == 0 && t->cut.n == 0 && t->dropped == 0;
}

unsigned crn_symbol_kind(const crn_symbol *s, size_t column)
{
    const crn_call *call = crn_call_row(s->call);
    if (column == 0)
        return CRN_KIND_REPEAT;
    return column <= (size_t)call->ncolumns ? call->kind[column - 1] : CRN_KIND_NUMBER;
}

const crn_group *crn_column_group(const crn_column *c, uint32_t rank, int64_t *ret_base)
{
    uint64_t index;
    for (size_t i = 0; i < c->ngroups; i++) {
        const crn_group *g = &c->group[i];
        if (crn_seq_find(&g->ranks, rank, &index)) {
            *ret_base = crn_seq_at(&g->base, index);
            return g;
        }
    }
    return NULL;
}

/* Digits at p that make a number of int64_t; 0 if there are none, or too many. */
static size_t digits_at(const char *p)
{
    size_t n = 0;
    while (isdigit((unsigned char)p[n]))
        n++;
    return n <= 18 ? n : 0;
}

/* A piece of a name: a number, if the answer is true, or a byte of text or digits beyond all
 * bounds.
 */
static bool number_at(const char *p, size_t *ret_n)
{
    size_t n = digits_at(p);
    *ret_n = n > 0 ? n : CRN_MAX(strspn(p, "0123456789"), 1);
    return n > 0;
}

static int count_numbers(const char *name)
{
    int count = 0;
    size_t n;
    for (const char *p = name; *p; p += n)
        count += number_at(p, &n);
    return count;
}

int crn_pattern_split(const char *name, char *pattern, int64_t number[CRN_NAME_NUMBERS])
{
    int count = 0;
    /* what counts stands at the end: the directories before it are mostly the same */
    int skip = CRN_MAX(count_numbers(name) - CRN_NAME_NUMBERS, 0);
    char *out = pattern;
    size_t n;
    for (const char *p = name; *p; p += n) {
        if (number_at(p, &n) && skip-- <= 0) {
            number[count++] = (int64_t)strtoll(p, NULL, 10);
            out += n > 1 && *p == '0' ? snprintf(out, 6, "%%0%zud", n) : snprintf(out, 6, "%%d");
            continue;
        }
        if (*p == '%')
            *out++ = '%';
        memcpy(out, p, n);
        out += n;
    }
    *out = 0;
    return count;
}

/* The number's place at p, just after a '%': its width and length; false if damaged. */
static bool place_at(const char *p, int *ret_width, size_t *ret_n)
{
    size_t n = strspn(p, "0123456789");
    if (n > 3 || p[n] != 'd')
        return false;
    *ret_width = (int)strtol(p, NULL, 10);
    *ret_n = n + 1;
    return true;
}

int crn_pattern_numbers(const char *pattern)
{
    int count = 0;
    for (const char *p = pattern; (p = strchr(p, '%')); p++) {
        if (p[1] == '%')
            p++;
        else
            count++;
    }
    return count;
}

bool crn_pattern_join(const char *pattern, const int64_t *number, int n, char *buf, size_t cap)
{
    size_t len = 0;
    for (const char *p = pattern; *p;) {
        int width, wrote = 1;
        size_t skip = 1;
        if (*p != '%' || p[1] == '%') {
            skip = *p == '%' ? 2 : 1;
            if (len + 1 < cap)
                buf[len] = *p;
        } else {
            if (n-- <= 0 || !place_at(++p, &width, &skip))
                return false;
            wrote = snprintf(buf + len, cap - len, "%0*lld", width, (long long)*number++);
        }
        p += skip;
        len += (size_t)wrote;
        if (len >= cap)
            return false;
    }
    if (cap == 0)
        return false;
    buf[len] = 0;
    return true;
}
