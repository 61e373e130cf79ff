/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Counts down to the allocation that a test wants to fail; 0 when no test does. */
static _Atomic uint64_t fail_in;

void crn_mem_fail_at(uint64_t n)
{
    atomic_store_explicit(&fail_in, n, memory_order_relaxed); /* a lone counter: nothing to order */
}

static bool must_fail(void)
{
    if (atomic_load_explicit(&fail_in, memory_order_relaxed) == 0)
        return false;
    return atomic_fetch_sub_explicit(&fail_in, 1, memory_order_relaxed) == 1;
}

cairn_status crn_mem_alloc(void **ret, size_t n, size_t item, size_t align)
{
    size_t nbytes;
    if (__builtin_mul_overflow(n, item, &nbytes) || nbytes > PTRDIFF_MAX)
        return crn_fail(CAIRN_ENOMEM, "cannot allocate %zu items of %zu bytes", n, item);
    void *p = NULL;
    if (!must_fail()) {
        if (align > 0)
            p = aligned_alloc(align, (nbytes + align) & ~(align - 1));
        else
            p = calloc(nbytes ? nbytes : 1, 1);
    }
    if (!p)
        return crn_fail(CAIRN_ENOMEM, "cannot allocate %zu bytes", nbytes);
    *ret = p;
    return CAIRN_OK;
}

cairn_status crn_mem_realloc(void **ret, size_t n, size_t item)
{
    size_t nbytes;
    if (__builtin_mul_overflow(n, item, &nbytes) || nbytes > PTRDIFF_MAX)
        return crn_fail(CAIRN_ENOMEM, "cannot allocate %zu items of %zu bytes", n, item);
    void *p = must_fail() ? NULL : realloc(*ret, nbytes ? nbytes : 1);
    if (!p)
        return crn_fail(CAIRN_ENOMEM, "cannot allocate %zu bytes", nbytes);
    *ret = p;
    return CAIRN_OK;
}

cairn_status crn_strndup(const char *s, size_t n, char **ret)
{
    char *copy;
    n = strnlen(s, n);
    CRN_TRY(crn_alloc(&copy, n + 1));
    memcpy(copy, s, n);
    *ret = copy;
    return CAIRN_OK;
}

cairn_status crn_strdup(const char *s, char **ret)
{
    return crn_strndup(s, strlen(s), ret);
}
