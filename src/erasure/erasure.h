/* SPDX-License-Identifier: BSD-3-Clause
 *
 * erasure: Reed-Solomon over memory. Row 1.
 *
 * A stripe is ndata data blocks and nparity parity blocks of one length. Any ndata of them give all
 * the others. Blocks are numbered data first: block i < ndata is data block i, block ndata + r is
 * parity block r. Blocks may have any length (also 0) and any alignment; those of one call must not
 * overlap. No call keeps a pointer, and a code or rebuild may be used by many threads at once.
 *
 * The code, for those who write another reader. Bytes at the same place of each block belong
 * together and are elements of GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d); + is
 * XOR. With x(r) the element whose byte is 255 - r, and j the one whose byte is j,
 *
 *     parity r = sum over j of C(r, j) * data j,    C(r, j) = (x(0) + j) / (x(r) + j)
 *
 * This is a Cauchy matrix, 1 / (x(r) + j), with its columns scaled so that the first row is all
 * ones. Each square part of a Cauchy matrix is invertible, and scaling does not change that: any
 * ndata blocks suffice. The ones make parity block 0 the plain XOR of the data. C depends on
 * neither ndata nor nparity: data blocks of zeros may be left out at the end of a stripe, and
 * parity blocks added or dropped there, without touching the others.
 */
#ifndef CAIRN_ERASURE_H
#define CAIRN_ERASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

enum { CRN_ERASURE_MAX = 255 }; /* blocks of a stripe, data and parity together */

typedef struct crn_erasure crn_erasure;

/* Can there be codes? CAIRN_EUNSUPPORTED when ISA-L was left out of this build. */
cairn_status crn_erasure_check(void);

/* At least one of each, at most CRN_ERASURE_MAX in all: else CAIRN_EINVAL. CAIRN_ENOMEM. */
cairn_status crn_erasure_create(int ndata, int nparity, crn_erasure **ret);
void crn_erasure_free(crn_erasure *code);

/* C(parity, data) as above. */
uint8_t crn_erasure_coef(int parity, int data);

/* Write all parity blocks from all data blocks. */
void crn_erasure_encode(const crn_erasure *code, size_t nbytes, unsigned char *const *data,
                        unsigned char *const *parity);

/* How to get certain blocks of a stripe from others: made once, run for every stripe. */
typedef struct crn_rebuild crn_rebuild;

/*
 * Plan to rebuild those blocks that are wanted (NULL: all) and not present; both lists have one
 * entry per block of a stripe. With all data present this encodes chosen parity blocks.
 * CAIRN_ENOTFOUND when too few are present, CAIRN_ENOMEM.
 */
cairn_status crn_rebuild_create(const crn_erasure *code, const bool *present, const bool *wanted,
                                crn_rebuild **ret);
void crn_rebuild_free(crn_rebuild *plan);

/* Rebuild one stripe. block[i] is looked at only where block i is wanted and not present, or one of
 * the first ndata that are: no more are read. */
void crn_rebuild_run(const crn_rebuild *plan, size_t nbytes, unsigned char *const *block);

#endif
