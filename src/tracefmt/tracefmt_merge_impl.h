/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of the merge share.
 */
#ifndef CAIRN_TRACEFMT_MERGE_IMPL_H
#define CAIRN_TRACEFMT_MERGE_IMPL_H

#include "tracefmt/tracefmt.h"

/* Numbers of b's table entries in a's tables. */
typedef struct crn_table_map {
    uint32_t *string, *site, *type;
    bool same_types; /* type is the identity */
} crn_table_map;

/* tracefmt_merge_tables.c: add what is new in b's tables to a's. */
cairn_status crn_merge_tables(crn_trace *a, crn_trace *b, crn_table_map *m);
void crn_table_map_done(crn_table_map *m);

/* tracefmt_merge_columns.c: the columns of one symbol; c of b is emptied. */
cairn_status crn_merge_column(crn_column *a, crn_column *b);
cairn_status crn_merge_groups(crn_group **a, size_t *na, crn_group *b, size_t nb);

/* tracefmt_merge_times.c: times of b, whose symbols are a's by map, in a run of lasted ns. */
cairn_status crn_merge_times(crn_lane *a, crn_lane *b, const uint32_t *map, uint64_t lasted);

/* After the last merge: which ranks differ from the rest in computing or in calls. */
cairn_status crn_finish_times(crn_lane *l, uint64_t lasted);

/* Rewrite a column of datatypes to other numbers. */
cairn_status crn_column_renumber(crn_column *c, const uint32_t *number, size_t n);

/* One group: ranks with a constant. */
cairn_status crn_group_constant(const crn_seq *ranks, int64_t v, crn_group *ret);

/* tracefmt_align.c: pairs of positions that go together. Weights are of a's symbols. */
typedef struct crn_pair {
    size_t a, b; /* SIZE_MAX: the other side has nothing like it */
} crn_pair;
typedef CRN_VEC(crn_pair) crn_pairs;
cairn_status crn_align(const uint32_t *a, size_t na, const uint32_t *b, size_t nb,
                       const uint32_t *weight, crn_pairs *ret);

/*
 * tracefmt_draw.c: below 100 per cent, unite the groups of columns whose values may be drawn; with
 * last also draw what is long.
 */
cairn_status crn_lane_draw(crn_lane *l, uint32_t precision, bool last);

/* Bytes of a column in a file, of the ranks of a lane; 0 without memory (tracefmt_write.c). */
size_t crn_column_size(const crn_column *c, const crn_seq *all);

#endif
