/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Arithmetic on a grid of ranks: digits of different bases, added without carry.
 */
#include "tracefmt/tracefmt_grid.h"

int64_t crn_grid_size(const crn_grid *g)
{
    int64_t size = 1;
    for (uint32_t i = 0; i < g->ndims; i++)
        size *= g->dim[i];
    return size;
}

int64_t crn_grid_shift(const crn_grid *g, int64_t rank, int64_t peer)
{
    int64_t shift = 0, weight = 1;
    for (uint32_t i = g->ndims; i-- > 0;) {
        int64_t n = g->dim[i];
        shift += weight * ((peer % n + n - rank % n) % n);
        weight *= n;
        rank /= n;
        peer /= n;
    }
    return shift;
}

int64_t crn_grid_peer(const crn_grid *g, int64_t rank, int64_t shift)
{
    int64_t peer = 0, weight = 1;
    for (uint32_t i = g->ndims; i-- > 0;) {
        int64_t n = g->dim[i];
        peer += weight * ((rank % n + shift % n) % n);
        weight *= n;
        rank /= n;
        shift /= n;
    }
    return peer;
}
