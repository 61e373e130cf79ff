/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <time.h>

static uint64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t crn_now_ns(void)
{
    return now(CLOCK_MONOTONIC);
}

uint64_t crn_wall_ns(void)
{
    return now(CLOCK_REALTIME);
}

char *crn_format_date(uint64_t wall_ns, char *buf, size_t cap)
{
    time_t seconds = (time_t)(wall_ns / 1000000000u);
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || strftime(buf, cap, "%Y-%m-%d %H:%M:%SZ", &tm) == 0)
        snprintf(buf, cap, "?");
    return buf;
}
