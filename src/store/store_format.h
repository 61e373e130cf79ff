/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes on disk: the records of a part file, as docs/format.md specifies them. Encoding and
 * decoding only; nothing here reads or writes a file. Decoders check every number against what the
 * file can hold before it is used.
 */
#ifndef CAIRN_STORE_FORMAT_H
#define CAIRN_STORE_FORMAT_H

#include <inttypes.h>

#include "store/store.h"

enum {
    SUPER_BYTES = 512,  /* one copy of a superblock */
    SLOT_BYTES = 4096,  /* a slot holds two copies, so that one flipped bit does not cost it */
    COPY_OFFSET = 2048, /* of the second copy in its slot */
    NSLOTS = 2,
    DATA_START = NSLOTS * SLOT_BYTES,
    GRAIN = 512,      /* extents start and end at multiples of it: a sector */
    PAGE = 4096,      /* blocks of at least this size are aligned to it */
    ENTRY_BYTES = 32, /* of a block table */
    MARKS_MAX = 1 << 24,
    VARS_MAX = 1 << 24
};

/* A piece of the file with the digest of its bytes. */
typedef struct part_ref {
    uint64_t off, nbytes;
    crn_digest digest;
} part_ref;

typedef struct part_super {
    crn_part_id id;
    uint64_t seq;
    uint64_t end; /* no extent in use lies at or beyond */
    part_ref catalogue;
    uint32_t dropped; /* marks at the head of the catalogue that no longer count */
} part_super;

typedef struct part_entry { /* a mark in the catalogue */
    uint64_t version, seq, wall_ns;
    part_ref record;
} part_entry;

typedef CRN_VEC(part_entry) part_catalogue;

void crn_format_put_super(const part_super *s, unsigned char slot[SLOT_BYTES]);

/* CAIRN_ECORRUPT: not a superblock, or a damaged one; CAIRN_EUNSUPPORTED: of a newer format. */
cairn_status crn_format_get_super(const unsigned char copy[SUPER_BYTES], part_super *ret);

void crn_format_put_catalogue(const part_entry *entry, size_t n, crn_buf *buf);
cairn_status crn_format_get_catalogue(const void *data, size_t nbytes, uint64_t end,
                                      part_catalogue *ret);

void crn_format_put_mark(const crn_mark *m, crn_buf *buf);
cairn_status crn_format_get_mark(const void *data, size_t nbytes, uint64_t end, crn_mark **ret);

void crn_format_put_table(const crn_block *table, uint64_t n, crn_buf *buf);
cairn_status crn_format_get_table(const void *data, uint64_t end, crn_var *v);

/* What of a variable does not depend on where it lies; the strings that get makes are v's. */
void crn_format_put_declaration(crn_buf *buf, const crn_var *v);
cairn_status crn_format_get_declaration(crn_cursor *c, crn_var *v);

void crn_format_put_digest(crn_buf *b, const crn_digest *d);
crn_digest crn_format_get_digest(crn_cursor *c);

/* Take variables that were added into the index of names. */
cairn_status crn_mark_index(crn_mark *m);

/* Give *to copies of the texts of a declaration, and v one of all of it, with the blocks that this
 * has; the texts are to be freed. */
cairn_status crn_spec_copy_texts(const crn_var_spec *spec, crn_var_spec *to);
cairn_status crn_var_declare(crn_var *v, const crn_var_spec *spec);

/* Bytes of the file that a block, or any other piece, keeps from other use. */
uint64_t crn_format_block_room(uint32_t nbytes);
uint64_t crn_format_blob_room(uint64_t nbytes);

/* Is [off, off + nbytes) a piece of the data area of a file that ends at end? */
bool crn_format_extent_fits(uint64_t off, uint64_t nbytes, uint64_t end);

#endif
