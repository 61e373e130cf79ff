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
    GRAIN = 512,           /* extents start and end at multiples of it: a sector */
    PAGE = 4096,           /* blocks of at least this size are aligned to it */
    CRUMB_UNIT = 64,       /* blocks below a sector share sectors, and are aligned to it */
    ENTRY_BYTES = 32,      /* of a block table whose blocks have one digest each, */
    LONG_ENTRY_BYTES = 64, /* and of one whose blocks have three */
    INLINE_BYTES = 128,    /* tables up to this length stand in the record */
    PAGE_VARS = 128,       /* variables in a page of a record, but for the last */
    LIST_ENTRIES = 64,     /* in a new page of a catalogue, at most, */
    LIST_MERGED = 8192,    /* and in one made of several */
    MARKS_MAX = 1 << 24,
    VARS_MAX = 1 << 24
};

typedef crn_ref part_ref;

typedef struct part_super {
    uint32_t format; /* of the catalogue; pieces that it leads to may be of an older one */
    crn_part_id id;
    uint64_t seq;
    uint64_t end; /* no extent in use lies at or beyond */
    part_ref catalogue;
    uint32_t dropped; /* marks at the head of the catalogue that no longer count */
} part_super;

typedef struct part_entry { /* a mark in the catalogue, or a state */
    uint64_t version, seq, wall_ns;
    char key[CRN_KEY_MAX + 1]; /* of a state; empty for marks */
    part_ref record;
    size_t page; /* of the committed catalogue that has it, + 1; 0: none has */
} part_entry;

typedef CRN_VEC(part_entry) part_catalogue;

typedef struct part_list_page { /* of a catalogue */
    part_ref ref;
    uint32_t n; /* entries */
    bool fresh; /* not yet written: its place is that in the bytes that will be */
} part_list_page;

typedef CRN_VEC(part_list_page) part_list;

void crn_format_put_super(const part_super *s, unsigned char slot[SLOT_BYTES]);

/* CAIRN_ECORRUPT: not a superblock, or a damaged one; CAIRN_EUNSUPPORTED: of a newer format. */
cairn_status crn_format_get_super(const unsigned char copy[SUPER_BYTES], part_super *ret);

/* A catalogue of format 1: all entries in one piece. */
cairn_status crn_format_get_catalogue(const void *data, size_t nbytes, uint64_t end,
                                      part_catalogue *ret);

/* One of format 2: the pages, and the entries of a page, which get appends. */
void crn_format_put_list(const part_list *list, crn_buf *buf);
cairn_status crn_format_get_list(const void *data, size_t nbytes, uint64_t end, part_list *ret);
void crn_format_put_list_page(const part_entry *entry, size_t n, crn_buf *buf);
cairn_status crn_format_get_list_page(const void *data, size_t nbytes, uint64_t end, uint32_t n,
                                      bool states, part_catalogue *cat);

/* A mark record of format 1, with all variables. */
cairn_status crn_format_get_mark(const void *data, size_t nbytes, uint64_t end, crn_mark **ret);

/*
 * One of format 2: crn_format_get_root makes a mark whose variables are still empty, and
 * crn_format_get_page fills those of one page. end is where the file ends.
 */
bool crn_format_is_root(const void *data, size_t nbytes);
void crn_format_put_root(const crn_mark *m, crn_buf *buf);
cairn_status crn_format_get_root(const void *data, size_t nbytes, uint64_t end, crn_mark **ret);
void crn_format_put_page(const crn_mark *m, size_t page, crn_buf *buf);
cairn_status crn_format_get_page(const void *data, size_t nbytes, uint64_t end, crn_mark *m,
                                 size_t page);

/* Variables of a page: from, and how many. */
size_t crn_page_vars(const crn_mark *m, size_t page, size_t *ret_n);

/* Bytes of an entry that v's table, which is loaded, needs; and does it stand in the record? */
uint32_t crn_format_entry_bytes(const crn_var *v);
uint32_t crn_format_entry(bool encoded); /* of a table whose blocks are encoded, or not */
bool crn_format_is_inline(const crn_var *v);

void crn_format_put_table(const crn_var *v, crn_buf *buf);
cairn_status crn_format_get_table(crn_cursor *c, uint64_t end, crn_var *v);

void crn_format_put_ref(crn_buf *b, const part_ref *r);
part_ref crn_format_get_ref(crn_cursor *c, uint64_t end);

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

/* Bytes that a block gets when it is written, and any other piece. */
uint64_t crn_format_block_room(const crn_block *b);
uint64_t crn_format_blob_room(uint64_t nbytes);

/* Is [off, off + nbytes) a piece of the data area of a file that ends at end? */
bool crn_format_extent_fits(uint64_t off, uint64_t nbytes, uint64_t end);

#endif
