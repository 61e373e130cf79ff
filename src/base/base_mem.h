/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory. All allocation of the library passes here, which makes it the one place where a test can
 * let the n-th allocation fail. Sizes are products, checked for overflow; memory comes zeroed.
 */
#ifndef CAIRN_BASE_MEM_H
#define CAIRN_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/base_err.h"

/* Allocate n zeroed items into *ret (a pointer of any type); n = 0 gives a pointer, too. */
#define crn_alloc(ret, n) crn_mem_alloc((void **)(ret), (n), sizeof **(ret), 0)

/* The same, aligned to align bytes (a power of two), for direct input and output. Not zeroed. */
#define crn_alloc_aligned(ret, n, align) crn_mem_alloc((void **)(ret), (n), sizeof **(ret), (align))

/* Grow *ret to n items; new items are not zeroed. On failure *ret stays as it was. */
#define crn_realloc(ret, n) crn_mem_realloc((void **)(ret), (n), sizeof **(ret))

/* Copy a string, or the first n bytes of one. */
cairn_status crn_strdup(const char *s, char **ret);
cairn_status crn_strndup(const char *s, size_t n, char **ret);

cairn_status crn_mem_alloc(void **ret, size_t n, size_t item, size_t align);
cairn_status crn_mem_realloc(void **ret, size_t n, size_t item);

/* About what an allocation of n bytes takes of the heap; none for 0. */
static inline size_t crn_mem_nbytes(size_t n)
{
    return n > 24 ? (n + 23) / 16 * 16 : n > 0 ? 32 : 0;
}

/* For tests: let the n-th allocation from now on fail, once (0: none). Process-wide. */
void crn_mem_fail_at(uint64_t n);

#endif
