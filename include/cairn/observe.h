/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Observation operators of one's own: how a member would be observed, where an index, an
 * interpolation or a sum over a column is not enough. A plug-in is a shared library that has an
 * object of type cairn_operator:
 *
 *     static int stencil(const cairn_observed *o, cairn_stencil *s)
 *     {
 *         int rc = s->add(s, "u", o->index, 1);
 *         return rc < 0 ? rc : s->add(s, "v", o->index, 1);
 *     }
 *     static double value(const cairn_observed *o, const double *x, size_t n)
 *     {
 *         return hypot(x[0], x[1]);
 *     }
 *     const cairn_operator wind_speed = {sizeof(cairn_operator), stencil, value, NULL, 0};
 *
 * and a type of observation that names it: "plugin = ./libwind.so:wind_speed". The library links
 * nothing of Cairn, and is loaded by the server of a study, or by the model's processes where
 * members are weighed there. Functions must be pure: the same arguments, the same result.
 */
#ifndef CAIRN_OBSERVE_H
#define CAIRN_OBSERVE_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/state.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One observation. */
typedef struct cairn_observed {
    const char *type;
    uint64_t cycle, index; /* UINT64_MAX: it has no index */
    double time;
    int ndims;           /* of its place; 0: it has none */
    const double *place; /* ndims coordinates */
} cairn_observed;

/* Elements that an observation needs, in the order in which they are added. */
typedef struct cairn_stencil {
    /* Element index of the global array of a field; 0 or a negative CAIRN_E.... */
    int (*add)(struct cairn_stencil *s, const char *field, uint64_t index, double weight);
} cairn_stencil;

typedef struct cairn_operator {
    size_t struct_bytes;

    /* Name the elements. CAIRN_NOTHING (1): the observation is outside of the domain, and is left
     * out. NULL: there is a local function instead. */
    int (*stencil)(const cairn_observed *o, cairn_stencil *s);

    /* The value, from the n elements (or sums, see below). NULL: the sum of weight times element,
     * in the order of the stencil. */
    double (*value)(const cairn_observed *o, const double *x, size_t n);

    /*
     * Instead of a stencil: add what this process's piece of a field has to nsums sums, which are
     * then summed over all processes. Prefer a stencil: sums over pieces are rounded as the pieces
     * lie, so results are the same bits only for the same decomposition.
     */
    int (*local)(const cairn_observed *o, const cairn_field *piece, double *sums);
    size_t nsums; /* 1 to 64 with a local function */
} cairn_operator;

#ifdef __cplusplus
}
#endif
#endif
