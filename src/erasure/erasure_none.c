/* SPDX-License-Identifier: BSD-3-Clause
 *
 * In place of erasure_code.c where ISA-L was not there when Cairn was built. No code can be made,
 * so that what works on one is never called.
 */
#include "erasure/erasure.h"

cairn_status crn_erasure_check(void)
{
    return crn_fail(CAIRN_EUNSUPPORTED,
                    "this Cairn was built without parity: build it with ISA-L, or "
                    "leave level encoded out");
}

cairn_status crn_erasure_create(int ndata, int nparity, crn_erasure **ret)
{
    (void)ndata, (void)nparity, (void)ret;
    return crn_erasure_check();
}

void crn_erasure_free(crn_erasure *code)
{
    (void)code;
}

uint8_t crn_erasure_coef(int parity, int data)
{
    (void)parity, (void)data;
    return 0;
}

void crn_erasure_encode(const crn_erasure *code, size_t nbytes, unsigned char *const *data,
                        unsigned char *const *parity)
{
    (void)code, (void)nbytes, (void)data, (void)parity;
}

cairn_status crn_rebuild_create(const crn_erasure *code, const bool *present, const bool *wanted,
                                crn_rebuild **ret)
{
    (void)code, (void)present, (void)wanted, (void)ret;
    return crn_erasure_check();
}

void crn_rebuild_free(crn_rebuild *plan)
{
    (void)plan;
}

void crn_rebuild_run(const crn_rebuild *plan, size_t nbytes, unsigned char *const *block)
{
    (void)plan, (void)nbytes, (void)block;
}
