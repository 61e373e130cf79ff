/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The index of a shelf: one file that says which states count, by key and version, and whose parts
 * have them (docs/format/shelf.md). It is a table of hashed buckets; a bucket is a page, and more
 * when it runs over. A page is written twice, in turn, so that one of the two is always whole, and
 * a reader needs no lock. Who changes a bucket locks it: so of two that put the same state one is
 * first, and there is no file for each state.
 */
#ifndef CAIRN_STATE_INDEX_H
#define CAIRN_STATE_INDEX_H

#include "store/store.h"

/* A state that counts. */
typedef struct state_entry {
    char key[CRN_KEY_MAX + 1];
    uint64_t version;
    crn_digest digest; /* of all that the state has */
    uint64_t nbytes;
    uint64_t wall_ns;        /* when it was put; with the series it tells one put from another */
    uint32_t series, nranks; /* the writer, and of how many processes it is */
    uint32_t pins;
} state_entry;

typedef CRN_VEC(state_entry) state_entries;

typedef struct state_index state_index;

/* Make an empty index, which is seen when it is published. */
cairn_status crn_state_index_create(int dirfd, state_index **ret);
cairn_status crn_state_index_publish(int dirfd);

/* CAIRN_ENOTFOUND when it is not there, here and below. */
cairn_status crn_state_index_open(int dirfd, bool write, state_index **ret);
void crn_state_index_close(state_index *x); /* NULL is allowed */

/*
 * Say who knows what a bucket has to have, when a page of it is damaged or lost: it is mended then,
 * by whoever comes to it and may write. fn has what can still be read of the bucket, which may be
 * older than what was there, and makes it right. It is called with the bucket's lock.
 */
typedef cairn_status state_mend_fn(void *arg, uint64_t bucket, state_entries *list);
void crn_state_index_set_mender(state_index *x, state_mend_fn *fn, void *arg);

/* Find a state: CAIRN_OK or CAIRN_NOTHING, and *ret when that is not NULL. */
cairn_status crn_state_index_find(state_index *x, crn_state_name name, state_entry *ret);

/*
 * Keep all others from changing what name's bucket has, until it is let go. Where the file system
 * knows no locks, nothing is kept from anyone. CAIRN_EBUSY when somebody has it for long.
 */
cairn_status crn_state_index_lock(state_index *x, crn_state_name name);
void crn_state_index_unlock(state_index *x, crn_state_name name);

/* Keep all others who hold it from doing so: a limit of the whole shelf is being looked at. Taken
 * before the lock of a bucket. As above. */
cairn_status crn_state_index_hold(state_index *x);
void crn_state_index_release(state_index *x);

/* With the lock: put an entry, in the place of one that has its name, or take it out. Durable when
 * they return. */
cairn_status crn_state_index_put(state_index *x, const state_entry *e);
cairn_status crn_state_index_remove(state_index *x, crn_state_name name);

/* The bucket of a state, from 0 on. */
uint64_t crn_state_index_bucket(crn_state_name name);

/* Call fn with every state. A nonzero result ends it with CAIRN_NOTHING. */
typedef int state_entry_fn(void *arg, const state_entry *e);
cairn_status crn_state_index_scan(state_index *x, state_entry_fn *fn, void *arg);

/* The same for the bytes of one page, the first of a file; and finding a state in it. */
enum { STATE_PAGE_BYTES = 8192 };
cairn_status crn_state_page_find(const unsigned char page[STATE_PAGE_BYTES], crn_state_name name,
                                 state_entry *ret);
cairn_status crn_state_page_scan(const unsigned char page[STATE_PAGE_BYTES], state_entry_fn *fn,
                                 void *arg);

#endif
