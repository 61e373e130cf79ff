/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A scratch directory that all cases of a program share: made and removed with the group.
 *
 *     return cmocka_run_group_tests_name("file", tests, scratch_begin, scratch_end);
 */
#ifndef CAIRN_TESTS_HARNESS_SCRATCH_H
#define CAIRN_TESTS_HARNESS_SCRATCH_H

#include "harness/harness.h"

static char scratch[64]; /* its name, */
static int dir = -1;     /* and itself, for calls that want a directory */

static inline int scratch_begin(void **state)
{
    (void)state;
    make_scratch(scratch, sizeof scratch, "shared");
    dir = open(scratch, O_RDONLY | O_DIRECTORY);
    return dir < 0;
}

static inline int scratch_end(void **state)
{
    (void)state;
    close(dir);
    remove_tree(scratch);
    return 0;
}

#endif
