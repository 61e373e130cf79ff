/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words and quantities: byte sizes ("64KiB", "1.5G"), durations ("90s", "1.5h", "2d"), names that
 * may become part of a path, and "did you mean".
 */
#ifndef CAIRN_BASE_STR_H
#define CAIRN_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_err.h"

/*
 * All of text must be the quantity; what is not fails with CAIRN_EINVAL and says what is wrong.
 * The decimal sign is a point whatever the program's locale.
 */
cairn_status crn_parse_count(const char *text, uint64_t *ret); /* "12": digits only */
cairn_status crn_parse_real(const char *text, double *ret);    /* "-1.5e-3"; finite */

/*
 * "4096", "64KiB", "1.5 GiB", "10MB". K, M, G, T, P and their -iB forms are powers of 1024; the -B
 * forms are powers of 1000. Upper and lower case are the same.
 */
cairn_status crn_parse_nbytes(const char *text, uint64_t *ret);

/* "90", "90s", "500ms", "10us", "5min" or "5m", "1.5h", "2d": seconds. Negative is refused. */
cairn_status crn_parse_seconds(const char *text, double *ret);

/* "1.00 GiB", "512 B"; "1.5 h", "12 ms". For people: not exact. Returns buf. */
char *crn_format_nbytes(uint64_t nbytes, char *buf, size_t cap);
char *crn_format_seconds(double seconds, char *buf, size_t cap);

enum { CRN_NUMBER_TEXT = 32 }; /* room that the two above need */

/*
 * Is name fit to be one component of a path: 1 to 128 letters, digits, '.', '_', '-', not starting
 * with '.' or '-'? Everything that comes from a file or a user passes here before it is joined.
 */
bool crn_name_is_safe(const char *name);

/*
 * The character at s, UTF-8: how many bytes it has, and whether it may be shown. Not to be shown is
 * what drives a terminal or makes a text look like another: control characters (C0, C1, delete),
 * marks of direction, separators of lines, and bytes that are no UTF-8. s is not empty.
 */
size_t crn_utf8_next(const char *s, uint32_t *ret_code, bool *ret_fair);

/* Put '?' in place of every character that may not be shown. All that people see passes here. */
void crn_text_clean(char *s);

/*
 * Changes of one letter that turn a into b (adjacent swaps count one). What is longer than
 * CRN_WORD_MAX is not looked into: the distance is then the longer length, or 0 when equal.
 */
size_t crn_edit_distance(const char *a, const char *b);

enum { CRN_WORD_MAX = 63 };

/*
 * "did you mean": offer every name that would have been right, then end the message with hint.
 */
typedef struct crn_nearest {
    const char *word;             /* what was given; borrowed */
    size_t distance;              /* of the nearest so far, or the farthest that counts */
    char hint[CRN_WORD_MAX + 24]; /* "; did you mean 'keep'?", or empty when nothing is near */
} crn_nearest;

crn_nearest crn_nearest_to(const char *word);
void crn_nearest_offer(crn_nearest *near, const char *name);

#endif
