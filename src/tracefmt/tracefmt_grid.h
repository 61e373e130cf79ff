/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranks on a grid, row by row (the last dimension runs fastest), as MPI_Cart_create numbers them.
 * A neighbour across the edge of a torus is at another distance in rank than one inside, but at the
 * same shift on the grid: the difference in each dimension, modulo its size, numbered like a rank.
 *
 *     4 by 4, right neighbour:  rank 5 -> 6 and rank 7 -> 4 are both the shift (0, 1), number 1
 *
 * One dimension is the plain relative rank; dimensions of two are exclusive-or.
 */
#ifndef CAIRN_TRACEFMT_GRID_H
#define CAIRN_TRACEFMT_GRID_H

#include <stdint.h>

enum { CRN_GRID_DIMS = 6 };

typedef struct crn_grid {
    uint32_t ndims; /* 0: none */
    uint32_t dim[CRN_GRID_DIMS];
} crn_grid;

/* The ranks on it. */
int64_t crn_grid_size(const crn_grid *g);

/* The shift from a rank to a peer, and the peer at a shift from a rank; all of them on the grid. */
int64_t crn_grid_shift(const crn_grid *g, int64_t rank, int64_t peer);
int64_t crn_grid_peer(const crn_grid *g, int64_t rank, int64_t shift);

#endif
