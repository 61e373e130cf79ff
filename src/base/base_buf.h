/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes for files and wires, little-endian whatever the machine. A crn_buf is written, a crn_cursor
 * reads. Neither needs a check after each call: a failed one stays failed, and is asked once at the
 * end (crn_buf_status, crn_cursor_status), so code that encodes or decodes a record reads like the
 * record's specification. A cursor never reads past its end, and gives zeros once it has failed.
 */
#ifndef CAIRN_BASE_BUF_H
#define CAIRN_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_err.h"

typedef struct crn_buf {
    unsigned char *at;
    size_t n, cap;
    bool failed; /* an allocation failed; later puts do nothing */
} crn_buf;

void crn_buf_done(crn_buf *b);
void crn_put_u8(crn_buf *b, uint8_t v);
void crn_put_u16(crn_buf *b, uint16_t v);
void crn_put_u32(crn_buf *b, uint32_t v);
void crn_put_u64(crn_buf *b, uint64_t v);
void crn_put_f64(crn_buf *b, double v);
void crn_put_bytes(crn_buf *b, const void *data, size_t n);
void crn_put_str(crn_buf *b, const char *s); /* u16 length, then the bytes */
void crn_put_zeros(crn_buf *b, size_t n);
void crn_put_text(crn_buf *b, const char *fmt, ...) CAIRN_PRINTF(2); /* without its zero byte */
cairn_status crn_buf_status(const crn_buf *b);

/* What was put so far as a string, of which the next put takes the zero byte off again; NULL when b
 * has failed. */
const char *crn_buf_text(crn_buf *b);

typedef struct crn_cursor {
    const unsigned char *at;
    size_t n;    /* bytes left */
    bool failed; /* something did not fit; sticky */
} crn_cursor;

crn_cursor crn_cursor_of(const void *data, size_t n);
uint8_t crn_get_u8(crn_cursor *c);
uint16_t crn_get_u16(crn_cursor *c);
uint32_t crn_get_u32(crn_cursor *c);
uint64_t crn_get_u64(crn_cursor *c);
double crn_get_f64(crn_cursor *c);
void crn_get_bytes(crn_cursor *c, void *dst, size_t n);
const void *crn_get_view(crn_cursor *c, size_t n); /* NULL on failure */

/* A string of at most max bytes, without zero bytes, copied to dst (of max + 1 bytes). */
void crn_get_str(crn_cursor *c, char *dst, size_t max);

/* Fail c when cond does not hold: a value that no writer makes. */
void crn_cursor_expect(crn_cursor *c, bool cond);

/* CAIRN_ECORRUPT with "'what' is cut short or damaged" when c has failed. */
cairn_status crn_cursor_status(const crn_cursor *c, const char *what);

#endif
