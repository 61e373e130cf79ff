/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

cairn_status crn_json_present(const char *what)
{
    CRN_FAIL_IF(!CRN_WITH_JANSSON, CAIRN_EUNSUPPORTED,
                "this Cairn was built without jansson, which %s needs", what);
    return CAIRN_OK;
}

#if !CRN_WITH_JANSSON

json_t *crn_json_none(int first, ...)
{
    (void)first;
    return NULL;
}

int crn_json_fails(int first, ...)
{
    (void)first;
    return -1;
}

long crn_json_zero(int first, ...)
{
    (void)first;
    return 0;
}

#endif
