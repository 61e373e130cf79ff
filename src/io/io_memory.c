/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that devices read and write fast.
 */
#include "io/io.h"

#include <sys/mman.h>

enum { SMALL_ALIGN = 4096, HUGE_ALIGN = 2 << 20 };

cairn_status crn_io_memory(size_t nbytes, unsigned char **ret)
{
    unsigned char *data;
    size_t align = nbytes < HUGE_ALIGN ? SMALL_ALIGN : HUGE_ALIGN;
    CRN_TRY(crn_alloc_aligned(&data, nbytes, align));
    if (align == HUGE_ALIGN)
        (void)madvise(data, nbytes, MADV_HUGEPAGE); /* a wish: small pages only cost time */
    *ret = data;
    return CAIRN_OK;
}
