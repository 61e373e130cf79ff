/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The inside of a part, shared by the files of this module.
 */
#ifndef CAIRN_STORE_PART_H
#define CAIRN_STORE_PART_H

#include "store/store.h"
#include "store/store_format.h"
#include "store/store_space.h"

struct crn_gather;
struct crn_uses;

struct crn_part {
    crn_file *file;
    int dir; /* that the file lies in: others beside it have what its marks keep outside */
    crn_part_options opt;
    crn_io *io;  /* crn_part_queue; when write, made at once */
    bool cached; /* to a reader: most of it lies in memory */
    uint64_t file_bytes; /* the file's length when it was last asked for, or 0 */
    char *name;
    bool write, fallback;
    bool distrusted;                 /* blocks are decoded apart */
    part_super super;                /* as committed */
    part_list list;                  /* the pages of its catalogue; none in format 1 */
    crn_extents pieces;              /* where that catalogue lies, sorted; when write, */
    crn_extents older;               /* like that of the superblock before, to fall back on */
    part_catalogue cat;              /* retained marks only, oldest first */
    crn_space space;                 /* when write */
    crn_index by_name, by_key;       /* of states: sequence numbers (store_states.c) */
    bool indexed;                    /* those know all of them */
    struct crn_uses *uses;           /* when write, of a part with states: who needs what */
    bool rechecks;                   /* what a new state shares with others is read again */
    uint64_t given;                  /* of free space, to the file system, at least */
    bool uses_partial;               /* some state could not be read: nobody knows its needs */
    struct crn_gather *gather;       /* write buffers, made by the first draft */
    crn_mark *tip;                   /* the newest mark; tables as far as a draft needed them */
    CRN_VEC(uint64_t) lost;          /* where blocks and tables of that lie that are damaged */
    uint64_t staging;                /* bytes that a draft may hold back */
    unsigned threads;                /* that encode blocks */
    crn_mark *before;                /* the mark before it, if this session has made both */
    uint64_t page_bytes;             /* that the newest mark took for its record, */
    uint64_t table_bytes;            /* and that all of its tables take */
    bool drafting;                   /* one draft at a time */
    uint64_t found_seq, found_bytes; /* superblock and length of the file when it was opened */
    /* Which of the two superblocks a crash would leave as the newest is unknown: the disk failed
     * while one was being replaced, or the part was just opened, and its last writer may have ended
     * between replacing one and syncing it. Nothing that either refers to may be overwritten until
     * a new one is durable. */
    bool doubt;
};

/* --- catalogues (store_catalogue.c) ------------------------------------------------------- */

/* Read the catalogue that s refers to: its pages, and the entries that it does not drop. */
cairn_status crn_catalogue_load(crn_part *part, const part_super *s, part_list *ret_list,
                                part_catalogue *ret);

/* Where a catalogue lies, sorted: by its list, or as far as that can be read. */
cairn_status crn_catalogue_extents(const part_ref *root, const part_list *list, crn_extents *ret);
cairn_status crn_catalogue_find(crn_part *part, const part_super *s, crn_extents *ret);

/* Is an extent that begins where e does in the sorted list? */
bool crn_extents_have(const crn_extents *list, const crn_extent *e);

/* The pages of a catalogue of n entries. Those of old that stay are taken over; the bytes of fresh
 * ones are appended to blob. */
cairn_status crn_catalogue_plan(const part_list *old, const part_entry *entry, size_t n,
                                part_list *ret, crn_buf *blob);

/* --- the file ----------------------------------------------------------------------------- */

/*
 * Make the n entries the catalogue of the part: written, synced, then the older superblock is
 * replaced and synced; the entries know their pages then. On failure the part is as before, perhaps
 * in doubt. *ret_nbytes: what was written.
 */
cairn_status crn_part_commit(crn_part *part, part_entry *entry, size_t n, uint64_t *ret_nbytes);

/* The queue for many transfers at once; a reader's is made when it is asked for. */
cairn_status crn_part_queue(crn_part *part, crn_io **ret);

/* Does the part retain a mark of this version? */
bool crn_part_has(const crn_part *part, uint64_t version);

/* Write bytes to free space; *ret says where. Durable after the next sync. */
cairn_status crn_part_write_blob(crn_part *part, const crn_buf *blob, part_ref *ret);

/* Fill the variables of one page of a mark whose record is of format 2. */
cairn_status crn_mark_load_page(crn_part *part, crn_mark *m, size_t page);

/* Read a mark's record; of format 2, the root alone if root_only. */
cairn_status crn_part_load_record(crn_part *part, const part_entry *e, bool root_only,
                                  crn_mark **ret);

/* Read what ref says and check its digest; what names it in messages. Free *ret. */
cairn_status crn_part_read_blob(crn_part *part, const part_ref *ref, const char *what,
                                unsigned char **ret);

/* Replace the older superblock by s, durably; s is the part's superblock then. From the write until
 * the sync has succeeded it is open which one counts: the part is in doubt. pieces is where the
 * catalogue of s lies, and is taken; NULL: it is that of the superblock before. */
cairn_status crn_part_write_super(crn_part *part, const part_super *s, crn_extents *pieces);

/*
 * What the n oldest marks use and no other does. newest is a mark about to be committed behind the
 * retained ones, or NULL. Fails with CAIRN_ECORRUPT where a record cannot be read.
 */
cairn_status crn_part_unused(crn_part *part, crn_mark *newest, size_t n, crn_extents *ret);

/* Let m, which may be NULL, be the newest mark in memory; the one that was is freed. */
void crn_part_set_tip(crn_part *part, crn_mark *m);

/* Strike the n oldest marks from the list in memory. */
void crn_part_forget(crn_part *part, size_t n);

/* Where all that a mark needs lies: record, pages, tables, blocks. Pieces that it needs twice, as
 * sectors with several blocks, are listed twice. */
cairn_status crn_mark_extents(crn_part *part, const part_entry *entry, crn_mark *m,
                              crn_extents *used);

/* The index of states by name: the last of the list is new; or it is forgotten, until it is needed.
 */
void crn_states_note(crn_part *part);
void crn_states_forget(crn_part *part);

/* Find the free space again from the retained marks. */
cairn_status crn_part_derive(crn_part *part);

/* crn_mark_read for a variable that lies outside; its table is loaded. */
cairn_status crn_outside_read(crn_part *part, const crn_mark *m, const crn_var *v, uint64_t first,
                              uint64_t n, unsigned char *dst, crn_bad_blocks *bad);

/* Was what lies at off found damaged since the newest mark was committed? */
bool crn_part_is_lost(const crn_part *part, uint64_t off);

/* What cannot be read is not inherited, and that is no failure of whoever finds out. A sector that
 * cannot be read would fail every mark from now on, and has lost no less. */
cairn_status crn_part_forgive(cairn_status rc);

/* Settle a doubt before anything is overwritten. */
cairn_status crn_part_resolve(crn_part *part);

#endif
