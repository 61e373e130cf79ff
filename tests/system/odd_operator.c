/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An observation operator that gives no number for about half of all states, for test_particle.py.
 */
#include <math.h>

#include <cairn/observe.h>

static int stencil(const cairn_observed *o, cairn_stencil *s)
{
    return s->add(s, "x", o->index, 1);
}

static double value(const cairn_observed *o, const double *x, size_t n)
{
    (void)o, (void)n;
    return fmod(floor(fabs(x[0]) * 1e6), 2) > 0 ? NAN : x[0];
}

extern __attribute__((visibility("default"))) const cairn_operator odd;
const cairn_operator odd = {sizeof(cairn_operator), stencil, value, NULL, 0};
