/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the writer and the reader of trace files share.
 */
#ifndef CAIRN_TRACEFMT_FILE_H
#define CAIRN_TRACEFMT_FILE_H

#include "base/base.h"

#define CRN_TRACE_MAGIC "cairntrc"
#define CRN_TRACE_MAX   ((uint64_t)1 << 30) /* bytes of an uncompressed payload */
#define CRN_TRACE_RANKS ((uint64_t)1 << 24)

enum {
    CRN_TRACE_DEPTH = 1024,    /* rules within rules */
    CRN_TRACE_SMALL = 4 << 20, /* payloads below get zstd's best */
    CRN_GROUP_ALL = 1,         /* the group has all ranks of the lane */
    CRN_GROUP_LISTS = 2,
    CRN_GROUP_HISTS = 4,
    CRN_GROUP_READS = 8,
    CRN_TIMING_CLASSES = 16, /* and their number, where a histogram of times has its bins */
    CRN_FINE = 2048,         /* steps of an octave, of the mean of a class */
};

/* Encodings of a column in a file. Format 1 had the first four, in two bits. */
enum {
    CRN_FILE_PLAIN,
    CRN_FILE_REL,
    CRN_FILE_XOR,
    CRN_FILE_BOTH, /* groups as CRN_ENC_REL, then as CRN_ENC_XOR */
    CRN_FILE_GRID,
    CRN_FILE_ENCS,
    CRN_FILE_ENC_BITS = 3
};

/* Compress nbytes into *ret_n at *ret, to be freed; and back to exactly nbytes. CAIRN_ENOMEM,
 * CAIRN_ECORRUPT; CAIRN_EUNSUPPORTED when zstd was left out of this build. */
cairn_status crn_trace_pack(const void *data, size_t nbytes, int level, unsigned char **ret,
                            size_t *ret_n);
cairn_status crn_trace_unpack(const void *packed, size_t n, size_t nbytes, unsigned char **ret);

#endif
