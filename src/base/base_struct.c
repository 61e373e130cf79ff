/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <string.h>

/* struct_bytes of a structure of the caller; 0 where there is none. */
static size_t size_of(const void *theirs)
{
    size_t nbytes = 0;
    if (theirs)
        memcpy(&nbytes, theirs, sizeof nbytes);
    return nbytes;
}

cairn_status crn_struct_check(const void *theirs)
{
    CRN_FAIL_IF(size_of(theirs) < sizeof(size_t), CAIRN_EINVAL,
                "set struct_bytes of the structure before the call");
    return CAIRN_OK;
}

cairn_status crn_struct_take(const void *theirs, void *ours, size_t nbytes)
{
    CRN_TRY(crn_struct_check(theirs));
    const size_t n = CRN_MIN(size_of(theirs), nbytes);
    memcpy(ours, theirs, n);
    memset((char *)ours + n, 0, nbytes - n);
    memcpy(ours, &nbytes, sizeof nbytes);
    return CAIRN_OK;
}

cairn_status crn_struct_give(const void *ours, void *theirs, size_t nbytes)
{
    const size_t head = sizeof nbytes; /* their size stays what it is */
    CRN_TRY(crn_struct_check(theirs));
    memcpy((char *)theirs + head, (const char *)ours + head,
           CRN_MIN(size_of(theirs), nbytes) - head);
    return CAIRN_OK;
}
