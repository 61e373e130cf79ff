/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the items of cells lie. Nobody knows all cells: each rank keeps the entries of a range of
 * cell numbers for all others, who tell it what they have and ask it for what they want.
 */
#ifndef CAIRN_CKPT_CELLS_H
#define CAIRN_CKPT_CELLS_H

#include "base/base.h"
#include "comm/comm.h"

/* A cell's items: nitems from number first on, of the rank's. */
typedef struct crn_cell {
    uint64_t number, first, nitems;
    uint32_t rank;
} crn_cell;

typedef CRN_VEC(crn_cell) crn_cells;

/*
 * Each of global cells must be in the list of one rank; then fill in the cells of want, whose
 * numbers are given, ascending. Collective (name, global); the same status on all ranks.
 * CAIRN_EINVAL names a cell that two ranks have, or none.
 */
cairn_status crn_cells_find(crn_comm *comm, const char *name, uint64_t global, const crn_cell *have,
                            size_t nhave, crn_cell *want, size_t nwant);

#endif
