/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fields and kernels of clover.
 */
#ifndef CLOVER_H
#define CLOVER_H

#include "../slab.h"

enum {
    DENSITY0,
    DENSITY1,
    ENERGY0,
    ENERGY1,
    PRESSURE,
    VISCOSITY,
    SOUNDSPEED,
    XVEL0,
    XVEL1,
    YVEL0,
    YVEL1,
    VOL_FLUX_X,
    VOL_FLUX_Y,
    MASS_FLUX_X,
    MASS_FLUX_Y,
    PRE_VOL,
    POST_VOL,
    NODE_FLUX,
    NODE_MASS_PRE,
    NODE_MASS_POST,
    MOM_FLUX,
    ENER_FLUX,
    VOLUME,
    XAREA,
    YAREA,
    NFIELDS
};

/* A gas in a closed box: density and specific internal energy in cells, velocities on nodes. */
typedef struct gas {
    slab s;
    field f[NFIELDS];
    double dx, dy;
    double dt, time, first[3]; /* first: the sums at the start */
    uint64_t step;
} gas;

static const double heat_ratio = 1.4; /* of the specific heats */

/* A sweep of the remap: along rows (x) or columns (y), the first or the second of a step. */
typedef struct sweep {
    bool along_x, first;
} sweep;

/* --- Lagrangian step ------------------------------------------------------------------------ */

/* Pressure and speed of sound, of the old or of the new density and energy. */
void ideal_gas(gas *g, bool old);

void viscosity(gas *g);
double time_step(const gas *g); /* the longest that is stable on this rank */

/* Work of pressure: the new density and energy, after half a step or a whole one. */
void work_of_pressure(gas *g, bool half);
void revert(gas *g);
void accelerate(gas *g);
void volume_fluxes(gas *g);

/* --- remap ------------------------------------------------------------------------------------ */

void advect_cells(gas *g, sweep w);
void advect_momentum(gas *g, sweep w);
void reset(gas *g);

/* --- sums ------------------------------------------------------------------------------------- */

/* Mass, internal and kinetic energy of all, the same on all ranks. */
void sum_up(gas *g, double ret[3]);

#endif
