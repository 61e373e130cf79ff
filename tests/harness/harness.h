/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the C tests share: cmocka, assertions on statuses, a scratch directory.
 */
#ifndef CAIRN_TESTS_HARNESS_H
#define CAIRN_TESTS_HARNESS_H

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

/* Fail with the sentence when a call does not succeed. */
#define assert_ok(expr)                                                                            \
    do {                                                                                           \
        cairn_status rc_ = (expr);                                                                 \
        if (rc_ != CAIRN_OK)                                                                       \
            fail_msg("%s: %s (%s)", #expr, cairn_strerror(rc_), crn_err_peek()->text);             \
    } while (0)

/* The call must fail with the code and with a sentence that contains words. */
#define assert_fails(expr, code, words)                                                            \
    do {                                                                                           \
        cairn_status rc_ = (expr);                                                                 \
        if (rc_ != (code))                                                                         \
            fail_msg("%s: %s instead of %s (%s)", #expr, cairn_strerror(rc_),                      \
                     cairn_strerror(code), crn_err_peek()->text);                                  \
        if (!strstr(crn_err_peek()->text, (words)))                                                \
            fail_msg("%s: '%s' does not say '%s'", #expr, crn_err_peek()->text, (words));          \
    } while (0)

static inline int harness_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* Remove a tree; a missing one is fine. */
static inline void remove_tree(const char *path)
{
    nftw(path, harness_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* Make an empty directory below the build tree into buf; remove it with remove_tree. */
static inline char *make_scratch(char *buf, size_t cap, const char *name)
{
    snprintf(buf, cap, "scratch-%s-XXXXXX", name);
    if (!mkdtemp(buf))
        fail_msg("cannot make '%s'", buf);
    return buf;
}

/* The seed of a random test: CAIRN_SEED, or a fixed one. */
static inline uint64_t test_seed(void)
{
    const char *text = getenv("CAIRN_SEED");
    return text ? strtoull(text, NULL, 0) : 20261115;
}

#endif
