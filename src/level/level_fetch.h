/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What fetching descriptions (level_fetch.c) and fetching blocks (level_exchange.c) share.
 */
#ifndef CAIRN_LEVEL_FETCH_H
#define CAIRN_LEVEL_FETCH_H

#include "level/level_ops.h"

/* The mark that was read last: consecutive requests mostly want the same one. */
typedef struct crn_reader {
    crn_vault *vault;
    crn_part_id id;
    uint64_t version;
    crn_part *part;
    crn_mark *mark; /* NULL: id and version name nothing yet */
} crn_reader;

/* Have r->mark be this mark of this file, from the storage of this node. */
cairn_status crn_reader_turn(crn_reader *r, const crn_part_id *id, uint64_t version);
void crn_reader_done(crn_reader *r);

/* Which mark of which file, in a request. */
void crn_request_put_id(crn_buf *buf, const crn_part_id *id, uint64_t version);
void crn_request_get_id(crn_cursor *c, crn_part_id *id, uint64_t *version);

#endif
