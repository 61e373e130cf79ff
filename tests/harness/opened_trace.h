/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small trace as users see it: through a file, opened by the public call.
 */
#ifndef CAIRN_TESTS_OPENED_TRACE_H
#define CAIRN_TESTS_OPENED_TRACE_H

#include "harness/small_trace.h"

#include <cairn/traces.h>

/* To be closed by the caller; its file is gone already. */
static inline cairn_trace *opened_trace(uint32_t nranks, uint32_t precision, bool times,
                                        void (*program)(small_rank *x))
{
    char dir[64], path[96];
    cairn_trace *t;
    make_scratch(dir, sizeof dir, "opened");
    snprintf(path, sizeof path, "%s/t.ctr", dir);
    small_trace(path, nranks, precision, times, program);
    assert_ok(cairn_trace_open(path, &t));
    remove_tree(dir);
    return t;
}

#endif
