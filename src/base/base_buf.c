/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void crn_buf_done(crn_buf *b)
{
    free(b->at);
    memset(b, 0, sizeof *b);
}

/* Room for n more bytes; NULL when there is none, or none is needed. */
static unsigned char *room(crn_buf *b, size_t n)
{
    if (n == 0)
        return NULL;
    if (b->failed || crn_vec_reserve(b, n) < 0) {
        b->failed = true;
        return NULL;
    }
    unsigned char *p = b->at + b->n;
    b->n += n;
    return p;
}

static void put_le(crn_buf *b, uint64_t v, size_t n)
{
    unsigned char *p = room(b, n);
    for (size_t i = 0; p && i < n; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

void crn_put_u8(crn_buf *b, uint8_t v)
{
    put_le(b, v, 1);
}

void crn_put_u16(crn_buf *b, uint16_t v)
{
    put_le(b, v, 2);
}

void crn_put_u32(crn_buf *b, uint32_t v)
{
    put_le(b, v, 4);
}

void crn_put_u64(crn_buf *b, uint64_t v)
{
    put_le(b, v, 8);
}

void crn_put_f64(crn_buf *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_le(b, bits, 8);
}

void crn_put_bytes(crn_buf *b, const void *data, size_t n)
{
    unsigned char *p = room(b, n);
    if (p)
        memcpy(p, data, n);
}

void crn_put_str(crn_buf *b, const char *s)
{
    size_t n = strlen(s);
    if (n > UINT16_MAX) {
        b->failed = true;
        return;
    }
    crn_put_u16(b, (uint16_t)n);
    crn_put_bytes(b, s, n);
}

/* Measured first, so that nothing is ever cut. */
void crn_put_text(crn_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || b->failed || crn_vec_reserve(b, (size_t)n + 1) < 0) {
        b->failed = true;
        return;
    }
    va_start(ap, fmt);
    vsnprintf((char *)b->at + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

const char *crn_buf_text(crn_buf *b)
{
    if (b->failed || crn_vec_reserve(b, 1) < 0) {
        b->failed = true;
        return NULL;
    }
    b->at[b->n] = 0;
    return (const char *)b->at;
}

void crn_put_zeros(crn_buf *b, size_t n)
{
    unsigned char *p = room(b, n);
    if (p)
        memset(p, 0, n);
}

cairn_status crn_buf_status(const crn_buf *b)
{
    CRN_FAIL_IF(b->failed, CAIRN_ENOMEM, "cannot allocate a record beyond %zu bytes", b->n);
    return CAIRN_OK;
}

crn_cursor crn_cursor_of(const void *data, size_t n)
{
    return (crn_cursor){.at = data, .n = n};
}

const void *crn_get_view(crn_cursor *c, size_t n)
{
    if (c->failed || n > c->n) {
        c->failed = true;
        return NULL;
    }
    const void *p = c->at;
    c->at += n;
    c->n -= n;
    return p;
}

static uint64_t get_le(crn_cursor *c, size_t n)
{
    const unsigned char *p = crn_get_view(c, n);
    uint64_t v = 0;
    for (size_t i = 0; p && i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint8_t crn_get_u8(crn_cursor *c)
{
    return (uint8_t)get_le(c, 1);
}

uint16_t crn_get_u16(crn_cursor *c)
{
    return (uint16_t)get_le(c, 2);
}

uint32_t crn_get_u32(crn_cursor *c)
{
    return (uint32_t)get_le(c, 4);
}

uint64_t crn_get_u64(crn_cursor *c)
{
    return get_le(c, 8);
}

double crn_get_f64(crn_cursor *c)
{
    uint64_t bits = get_le(c, 8);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

void crn_get_bytes(crn_cursor *c, void *dst, size_t n)
{
    const void *p = crn_get_view(c, n);
    if (p && n > 0)
        memcpy(dst, p, n);
    else if (n > 0)
        memset(dst, 0, n);
}

void crn_get_str(crn_cursor *c, char *dst, size_t max)
{
    size_t n = crn_get_u16(c);
    const void *p = n <= max ? crn_get_view(c, n) : NULL;
    if (!p || memchr(p, 0, n)) {
        c->failed = true;
        n = 0;
    } else {
        memcpy(dst, p, n);
    }
    dst[n] = 0;
}

void crn_cursor_expect(crn_cursor *c, bool cond)
{
    if (!cond)
        c->failed = true;
}

cairn_status crn_cursor_status(const crn_cursor *c, const char *what)
{
    CRN_FAIL_IF(c->failed, CAIRN_ECORRUPT, "%s is cut short or damaged", what);
    return CAIRN_OK;
}
