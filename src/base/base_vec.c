/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

cairn_status crn_vec_grow(void **at, size_t *cap, size_t n, size_t more, size_t item)
{
    size_t need;
    if (__builtin_add_overflow(n, more, &need))
        return crn_fail(CAIRN_ENOMEM, "cannot grow an array by %zu items", more);
    if (need <= *cap)
        return CAIRN_OK;
    size_t want = *cap < 8 ? 8 : *cap + *cap / 2;
    if (want < need)
        want = need;
    CRN_TRY(crn_mem_realloc(at, want, item));
    *cap = want;
    return CAIRN_OK;
}
