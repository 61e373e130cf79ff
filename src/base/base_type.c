/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading and making the text of a type. What is made is read again before it is handed out: there
 * is one place that knows what a type may be.
 */
#include "base/base.h"

#include <ctype.h>
#include <inttypes.h>

/* --- reading ------------------------------------------------------------------------------ */

typedef struct parser {
    const char *at;
    int depth;
} parser;

static cairn_status parse_type(parser *p, crn_type_tree *t);

static cairn_status expect(parser *p, char c)
{
    CRN_FAIL_IF(*p->at != c, CAIRN_EINVAL, "a type's description has no '%c' before '%.20s'", c,
                p->at);
    p->at++;
    return CAIRN_OK;
}

/* Without leading zeros, or equal types could have different texts. */
static cairn_status parse_number(parser *p, uint32_t *ret)
{
    const char *start = p->at;
    uint64_t v = 0;
    for (; isdigit((unsigned char)*p->at) && v <= UINT32_MAX; p->at++)
        v = 10 * v + (uint64_t)(*p->at - '0');
    CRN_FAIL_IF(p->at == start || v > UINT32_MAX || (*start == '0' && p->at > start + 1),
                CAIRN_EINVAL, "a type's description has no proper number at '%.20s'", start);
    *ret = (uint32_t)v;
    return CAIRN_OK;
}

static bool is_name_byte(char c)
{
    return (unsigned char)c > ' ' && c != 0x7f && !strchr("{}[]:,@\"", c);
}

static cairn_status parse_name(parser *p, char name[CRN_MEMBER_NAME + 1])
{
    size_t n = 0;
    while (is_name_byte(p->at[n]))
        n++;
    CRN_FAIL_IF(n == 0 || n > CRN_MEMBER_NAME, CAIRN_EINVAL,
                "a member's name has 1 to %d bytes, no spaces and none of {}[]:,@\": '%.20s'",
                CRN_MEMBER_NAME, p->at);
    memcpy(name, p->at, n);
    name[n] = 0;
    p->at += n;
    return CAIRN_OK;
}

static cairn_status parse_count(parser *p, crn_type_member *m)
{
    if (*p->at != '[')
        return CAIRN_OK;
    p->at++;
    CRN_TRY(parse_number(p, &m->count));
    CRN_FAIL_IF(m->count < 2, CAIRN_EINVAL, "member '%s': an array has 2 elements or more",
                m->name);
    return expect(p, ']');
}

static cairn_status parse_member(parser *p, crn_type_member *m)
{
    CRN_TRY(parse_name(p, m->name));
    CRN_TRY(expect(p, '@'));
    CRN_TRY(parse_number(p, &m->offset));
    CRN_TRY(expect(p, ':'));
    CRN_TRY(crn_alloc(&m->type, 1));
    CRN_TRY(parse_type(p, m->type));
    return parse_count(p, m);
}

static uint64_t member_end(const crn_type_member *m)
{
    return m->offset + (uint64_t)CRN_MAX(m->count, 1) * m->type->nbytes;
}

static cairn_status check_member(const crn_type_tree *t, size_t i)
{
    const crn_type_member *m = &t->member[i];
    CRN_FAIL_IF(member_end(m) > t->nbytes, CAIRN_EINVAL,
                "member '%s' ends at byte %" PRIu64 " of a compound that has %" PRIu32, m->name,
                member_end(m), t->nbytes);
    CRN_FAIL_IF(i > 0 && member_end(m - 1) > m->offset, CAIRN_EINVAL,
                "members '%s' and '%s' overlap", m[-1].name, m->name);
    for (size_t k = 0; k < i; k++)
        CRN_FAIL_IF(strcmp(t->member[k].name, m->name) == 0, CAIRN_EINVAL,
                    "two members are called '%s'", m->name);
    return CAIRN_OK;
}

static cairn_status parse_compound(parser *p, crn_type_tree *t)
{
    size_t cap = 0;
    CRN_FAIL_IF(++p->depth > CRN_TYPE_DEPTH, CAIRN_EINVAL,
                "compounds lie within compounds %d deep at most", CRN_TYPE_DEPTH);
    CRN_TRY(expect(p, '{'));
    CRN_TRY(parse_number(p, &t->nbytes));
    CRN_FAIL_IF(t->nbytes == 0, CAIRN_EINVAL, "a compound has at least one byte");
    CRN_TRY(expect(p, ':'));
    do {
        CRN_FAIL_IF(t->n == CRN_TYPE_MEMBERS, CAIRN_EINVAL, "a compound has at most %d members",
                    CRN_TYPE_MEMBERS);
        CRN_TRY(crn_vec_grow((void **)&t->member, &cap, t->n, 1, sizeof *t->member));
        memset(&t->member[t->n], 0, sizeof *t->member);
        t->n++; /* counted first: what it holds by then is freed */
        CRN_TRY(parse_member(p, &t->member[t->n - 1]));
        CRN_TRY(check_member(t, t->n - 1));
    } while (*p->at == ',' && p->at++);
    p->depth--;
    return expect(p, '}');
}

static cairn_status parse_scalar(parser *p, crn_type_tree *t)
{
    for (cairn_type k = CAIRN_BYTES; cairn_type_name(k); k++) {
        size_t n = strlen(cairn_type_name(k));
        if (strncmp(p->at, cairn_type_name(k), n) != 0 || isalnum((unsigned char)p->at[n]))
            continue;
        t->scalar = k;
        t->nbytes = (uint32_t)cairn_type_bytes(k);
        p->at += n;
        return CAIRN_OK;
    }
    return crn_fail(CAIRN_EINVAL, "there is no type '%.40s'", p->at);
}

static cairn_status parse_type(parser *p, crn_type_tree *t)
{
    return *p->at == '{' ? parse_compound(p, t) : parse_scalar(p, t);
}

cairn_status crn_type_parse(const char *text, crn_type_tree **ret)
{
    parser p = {.at = text};
    crn_type_tree *t;
    CRN_FAIL_IF(strlen(text) > CRN_TYPE_TEXT, CAIRN_EINVAL,
                "a type takes more than %d bytes to describe", CRN_TYPE_TEXT);
    CRN_TRY(crn_alloc(&t, 1));
    cairn_status rc = parse_type(&p, t);
    if (rc == CAIRN_OK && *p.at != 0)
        rc = crn_fail(CAIRN_EINVAL, "a type is followed by '%.20s'", p.at);
    if (rc < 0) {
        crn_type_free(t);
        return rc;
    }
    *ret = t;
    return CAIRN_OK;
}

void crn_type_free(crn_type_tree *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        crn_type_free(t->member[i].type);
    free(t->member);
    free(t);
}

/* --- making ------------------------------------------------------------------------------- */

static int compare_members(const void *a, const void *b)
{
    const crn_member_spec *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void put_text(crn_buf *b, const char *s)
{
    crn_put_bytes(b, s, strlen(s));
}

static void put_number(crn_buf *b, const char *before, uint64_t v, const char *after)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, v);
    put_text(b, before);
    put_text(b, digits);
    put_text(b, after);
}

static cairn_status put_member(crn_buf *b, const crn_member_spec *m)
{
    CRN_FAIL_IF(!m->name || !m->type, CAIRN_EINVAL, "a member needs a name and a type");
    const size_t count = m->nbytes / m->item;
    CRN_FAIL_IF(count == 0 || m->nbytes % m->item != 0, CAIRN_EINVAL,
                "member '%s' has %zu bytes, which is no whole number of elements of %zu", m->name,
                m->nbytes, m->item);
    put_text(b, m->name);
    put_number(b, "@", m->offset, ":");
    put_text(b, m->type);
    if (count > 1)
        put_number(b, "[", count, "]");
    return CAIRN_OK;
}

/* members: sorted by offset */
static cairn_status compose(size_t nbytes, const crn_member_spec *member, size_t n, crn_buf *b)
{
    crn_type_tree *t;
    put_number(b, "{", nbytes, ":");
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            put_text(b, ",");
        CRN_TRY(put_member(b, &member[i]));
    }
    put_text(b, "}");
    crn_put_u8(b, 0);
    CRN_TRY(crn_buf_status(b));
    CRN_TRY(crn_type_parse((const char *)b->at, &t));
    crn_type_free(t);
    return CAIRN_OK;
}

cairn_status crn_type_compose(size_t nbytes, const crn_member_spec *member, size_t n, char **ret)
{
    crn_member_spec *sorted;
    crn_buf b = {0};
    CRN_FAIL_IF(n == 0, CAIRN_EINVAL, "a compound needs members");
    CRN_TRY(crn_alloc(&sorted, n));
    memcpy(sorted, member, n * sizeof *member);
    qsort(sorted, n, sizeof *sorted, compare_members);
    cairn_status rc = compose(nbytes, sorted, n, &b);
    free(sorted);
    if (rc < 0) {
        crn_buf_done(&b);
        return rc;
    }
    *ret = (char *)b.at;
    return CAIRN_OK;
}
