/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Observation operators of one's own (<cairn/observe.h>): wind speed at an element, from the fields
 * u and v, and the sum of a whole field, such as the mass of a tracer. Built as
 *
 *     cc -shared -fPIC -o libwind.so wind_operator.c
 *
 * and named in study.ini by "[observation wind] plugin = ./libwind.so:wind_speed".
 */
#include <math.h>
#include <string.h>

#include <cairn/observe.h>

/* Which elements are needed: they come to value() in this order. */
static int speed_stencil(const cairn_observed *o, cairn_stencil *s)
{
    int rc = s->add(s, "u", o->index, 1);
    return rc < 0 ? rc : s->add(s, "v", o->index, 1);
}

static double speed_value(const cairn_observed *o, const double *x, size_t n)
{
    (void)o, (void)n;
    return hypot(x[0], x[1]);
}

const cairn_operator wind_speed = {sizeof(cairn_operator), speed_stencil, speed_value, NULL, 0};

/* What needs all elements adds them up piece by piece. */
static int mass_local(const cairn_observed *o, const cairn_field *piece, double *sums)
{
    size_t n = 1;
    (void)o;
    if (strcmp(piece->name, "tracer") != 0)
        return 0;
    for (int d = 0; d < piece->ndims; d++)
        n *= piece->count[d];
    for (size_t i = 0; i < n; i++)
        sums[0] += piece->type == CAIRN_FLOAT64 ? ((const double *)piece->data)[i]
                                                : ((const float *)piece->data)[i];
    return 0;
}

const cairn_operator mass = {sizeof(cairn_operator), NULL, NULL, mass_local, 1};
