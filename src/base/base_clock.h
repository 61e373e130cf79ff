/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two clocks: one for durations (never set back), one for dates.
 */
#ifndef CAIRN_BASE_CLOCK_H
#define CAIRN_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t crn_now_ns(void);  /* monotonic */
uint64_t crn_wall_ns(void); /* since 1970 */

/* "2026-11-15 20:32:44Z" (21 bytes with the end); returns buf. */
char *crn_format_date(uint64_t wall_ns, char *buf, size_t cap);

#endif
