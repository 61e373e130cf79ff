/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A census: the variables of all ranks, as they are declared now or as they lie in a mark, known to
 * every rank. It has what tells how shares belong together, and no digests of blocks: some hundred
 * bytes for each variable of each rank. That is taken when a run is resumed on other ranks, and
 * when declarations have changed, not at every mark.
 */
#ifndef CAIRN_CKPT_CENSUS_H
#define CAIRN_CKPT_CENSUS_H

#include "ckpt/ckpt_session.h"

/* One variable of one rank. Its dimensions (global, offset, count), name and type follow it, and
 * the line that says which of its elements a mark has, empty where it has all. */
typedef struct crn_owner_record {
    uint32_t room; /* bytes of the record: a multiple of 8 */
    uint32_t rank;
    uint32_t layout, item, ndims, name_bytes, type_bytes;
    uint32_t left_out; /* a mark has none of it */
    uint64_t nbytes, ncells;
    crn_digest root; /* of the data; zero when it was not asked for */
} crn_owner_record;

const uint64_t *crn_record_dims(const crn_owner_record *r);
const char *crn_record_name(const crn_owner_record *r);
const char *crn_record_type(const crn_owner_record *r);
const char *crn_record_kept(const crn_owner_record *r);
crn_var_spec crn_record_spec(const crn_owner_record *r);
crn_box crn_record_box(const crn_owner_record *r); /* the piece, in far indices */

typedef struct crn_census {
    crn_buf own; /* this rank's records */
    crn_gathered all;
    CRN_VEC(const crn_owner_record *) record; /* sorted by name, then by rank */
} crn_census;

/* Add a variable, before the census is taken. Failures are kept until then. */
void crn_census_add(crn_census *s, uint32_t rank, const crn_var_spec *spec, uint64_t ncells,
                    const crn_digest *root);

/* Let all ranks know all records. Collective; the same status on all ranks. */
cairn_status crn_census_take(crn_census *s, crn_comm *comm);
void crn_census_done(crn_census *s); /* a zeroed one is allowed */

/* The records of a name, *ret_n of them; NULL when there is none. */
const crn_owner_record *const *crn_census_find(const crn_census *s, const char *name,
                                               size_t *ret_n);

/* The records of the name behind those from first on; first is where they start. For walks. */
size_t crn_census_next(const crn_census *s, size_t first);

/* Do n pieces all fill their array: has every rank a copy of it? */
bool crn_records_are_copies(const crn_owner_record *const *r, size_t n);

#endif
