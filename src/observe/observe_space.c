/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Places and distances.
 */
#include "observe/observe.h"

#include <math.h>

bool crn_obs_place_of(const crn_obs_space *space, const crn_obs_field *field, uint64_t index,
                      double *place)
{
    uint64_t at[CRN_DIMS_MAX];
    if (!field->placed || space->ndims == 0)
        return false;
    for (int d = field->ndims - 1; d >= 0; d--) {
        at[d] = index % field->global[d];
        index /= field->global[d];
    }
    uint64_t whole = 0;
    for (int d = 0; d < field->ndims; d++)
        whole = whole * field->global[d] + at[d];
    for (int c = 0; c < space->ndims; c++) {
        const crn_obs_axis *a = &field->axis[c];
        if (field->point)
            place[c] = field->point[whole * (uint64_t)space->ndims + (uint64_t)c];
        else if (a->dim < 0)
            place[c] = a->origin;
        else
            place[c] = a->at ? a->at[at[a->dim]] : a->origin + a->step * (double)at[a->dim];
    }
    return true;
}

/* Along the surface of a sphere, by the half-angle's sine: exact for small distances, too. */
static double along_sphere(double radius, const double *a, const double *b)
{
    const double degree = M_PI / 180;
    double lat = sin((a[1] - b[1]) * degree / 2), lon = sin((a[0] - b[0]) * degree / 2);
    double h = lat * lat + cos(a[1] * degree) * cos(b[1] * degree) * lon * lon;
    return 2 * radius * asin(fmin(sqrt(h), 1));
}

double crn_obs_distance(const crn_obs_space *space, const double *a, const double *b)
{
    double sum = 0;
    int c = 0;
    if (space->sphere > 0) {
        double across = along_sphere(space->sphere, a, b);
        sum = across * across;
        c = 2;
    }
    for (; c < space->ndims; c++) {
        double x = fabs(a[c] - b[c]), period = space->period[c];
        if (period > 0) {
            x -= period * floor(x / period);
            x = fmin(x, period - x);
        }
        if (c == 2 && space->vertical > 0)
            x *= space->vertical;
        sum += x * x;
    }
    return sqrt(sum);
}
