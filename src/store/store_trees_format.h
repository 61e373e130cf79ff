/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes of a trees file, as docs/format/trees.md specifies them. Encoding and decoding only;
 * nothing here reads or writes a file. Decoders check every number against what the file can hold
 * before it is used.
 */
#ifndef CAIRN_STORE_TREES_FORMAT_H
#define CAIRN_STORE_TREES_FORMAT_H

#include "store/store_format.h"

enum { TREES_UNIT = 64 }; /* header, frames, heads and bodies start at multiples */

/* Is [off, off + n) within a file of nbytes? */
bool crn_trees_fits(uint64_t off, uint64_t n, uint64_t nbytes);

void crn_trees_put_header(crn_buf *b, const unsigned char run[16], uint32_t rank);

/* name stands in messages. CAIRN_ECORRUPT; CAIRN_EUNSUPPORTED: of a newer format. */
cairn_status crn_trees_get_header(const unsigned char raw[TREES_UNIT], const char *name,
                                  unsigned char run[16], uint32_t *ret_rank);

/* What stands before a record. */
typedef struct crn_trees_frame {
    uint64_t head_bytes, body_bytes;
    crn_digest head;
} crn_trees_frame;

/* Bytes of the record with its frame. */
uint64_t crn_trees_record_bytes(const crn_trees_frame *f);

/* False when it is none, or is damaged. */
bool crn_trees_get_frame(const unsigned char raw[TREES_UNIT], crn_trees_frame *ret);

/*
 * The record of m as it will stand at off of its file, behind its frame. The nodes of variables
 * that have not changed since last (NULL: none) are not put again. Says in m where they lie.
 */
void crn_trees_put_record(crn_trees_mark *m, const crn_trees_mark *last, uint64_t off, crn_buf *b);

/* The head of a record in the file of a rank that has file_bytes. CAIRN_ECORRUPT, CAIRN_ENOMEM. */
cairn_status crn_trees_get_head(const void *data, size_t nbytes, uint32_t rank, uint64_t file_bytes,
                                crn_trees_mark **ret);

/* The nodes of a variable, whose bytes have its digest; after a failure some may be there. */
uint64_t crn_trees_body_bytes(const crn_trees_var *v);
cairn_status crn_trees_get_body(const void *data, size_t nbytes, crn_trees_var *v);

#endif
