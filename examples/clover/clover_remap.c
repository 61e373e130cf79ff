/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The remap: what has moved with the gas is put back on the grid that stands still, one direction
 * after the other. What flows over a face or from node to node comes from upwind, with van Leer's
 * slopes. Where momentum is mixed, kinetic energy is lost; the sweep gives it to the gas around as
 * heat (DeBar's correction), so that total energy is conserved, at shocks, too: they move as fast
 * as they should on any grid.
 *
 * Both directions are one code: a sweep goes from an element to the next by a stride, 1 along x and
 * the length of a row along y.
 */
#include "clover.h"

/* A piece of the grid, in rows and columns. */
typedef struct range {
    int j0, j1, i0, i1;
} range;

/* A value where it leaves an element upwind, of which a share flows out; back is against the
 * wind. */
static double upwind(const double *at, ptrdiff_t back, double share)
{
    const double a = at[0] - at[back], b = at[-back] - at[0];
    const double slope = a * b > 0 ? 2 * a * b / (a + b) : 0;
    return at[0] + 0.5 * (1 - share) * slope;
}

/* Volumes before and after this sweep. The first begins with the volumes that have moved, the
 * second ends with those of the grid. */
static void volumes(gas *g, sweep w, range r)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double *vol = g->f[VOLUME].at, *x = g->f[VOL_FLUX_X].at, *y = g->f[VOL_FLUX_Y].at;
    double *pre = g->f[PRE_VOL].at, *post = g->f[POST_VOL].at;
    for (int j = r.j0; j < r.j1; j++)
        for (int i = r.i0; i < r.i1; i++) {
            const ptrdiff_t k = j * pitch + i;
            const double dx = x[k + 1] - x[k], dy = y[k + pitch] - y[k];
            const double mine = w.along_x ? dx : dy, other = w.along_x ? dy : dx;
            post[k] = w.first ? vol[k] + other : vol[k];
            pre[k] = post[k] + mine;
        }
}

/* Mass and energy over faces. */
static void cell_fluxes(gas *g, sweep w)
{
    const ptrdiff_t pitch = g->s.pitch, next = w.along_x ? 1 : pitch;
    const double *rho = g->f[DENSITY1].at, *e = g->f[ENERGY1].at, *pre = g->f[PRE_VOL].at;
    const double *flux = g->f[w.along_x ? VOL_FLUX_X : VOL_FLUX_Y].at;
    double *mass = g->f[w.along_x ? MASS_FLUX_X : MASS_FLUX_Y].at, *energy = g->f[ENER_FLUX].at;
    for (int j = 0; j < g->s.rows + !w.along_x; j++)
        for (int i = 0; i < g->s.cols + w.along_x; i++) {
            const ptrdiff_t k = j * pitch + i;
            const ptrdiff_t from = flux[k] > 0 ? k - next : k, back = flux[k] > 0 ? -next : next;
            mass[k] = flux[k] * upwind(rho + from, back, fabs(flux[k]) / pre[from]);
            energy[k] = mass[k] * upwind(e + from, back, fabs(mass[k]) / (rho[from] * pre[from]));
        }
}

void advect_cells(gas *g, sweep w)
{
    const ptrdiff_t pitch = g->s.pitch, next = w.along_x ? 1 : pitch;
    const double *mass = g->f[w.along_x ? MASS_FLUX_X : MASS_FLUX_Y].at;
    const double *energy = g->f[ENER_FLUX].at, *pre = g->f[PRE_VOL].at, *post = g->f[POST_VOL].at;
    double *rho = g->f[DENSITY1].at, *e = g->f[ENERGY1].at;
    volumes(g, w, (range){-RIM, g->s.rows + RIM, -RIM, g->s.cols + RIM});
    cell_fluxes(g, w);
    for (int j = 0; j < g->s.rows; j++)
        for (int i = 0; i < g->s.cols; i++) {
            const ptrdiff_t k = j * pitch + i;
            const double before = rho[k] * pre[k], after = before + mass[k] - mass[k + next];
            e[k] = (e[k] * before + energy[k] - energy[k + next]) / after;
            rho[k] = after / post[k];
        }
}

/* Mass that goes from a node to the next, and of nodes after and before: a quarter of each cell
 * around belongs to a node. */
static void node_masses(gas *g, sweep w, range r)
{
    const ptrdiff_t pitch = g->s.pitch, next = w.along_x ? 1 : pitch;
    const ptrdiff_t side = w.along_x ? pitch : 1; /* across the sweep */
    const double *mass = g->f[w.along_x ? MASS_FLUX_X : MASS_FLUX_Y].at;
    const double *rho = g->f[DENSITY1].at, *vol = g->f[POST_VOL].at;
    double *flux = g->f[NODE_FLUX].at, *pre = g->f[NODE_MASS_PRE].at;
    double *post = g->f[NODE_MASS_POST].at;
    for (int j = r.j0 - !w.along_x; j < r.j1; j++)
        for (int i = r.i0 - w.along_x; i < r.i1; i++) {
            const ptrdiff_t k = j * pitch + i;
            flux[k] =
                0.25 * ((mass[k - side] + mass[k]) + (mass[k + next - side] + mass[k + next]));
        }
    for (int j = r.j0; j < r.j1; j++)
        for (int i = r.i0; i < r.i1; i++) {
            const ptrdiff_t k = j * pitch + i;
            post[k] = 0.25 *
                      ((rho[k - pitch - 1] * vol[k - pitch - 1] + rho[k - pitch] * vol[k - pitch]) +
                       (rho[k - 1] * vol[k - 1] + rho[k] * vol[k]));
            pre[k] = post[k] + flux[k] - flux[k - next];
        }
}

/* Kinetic energy that a node had, with what flows to and from it, and has no more when velocities
 * are mixed, in both directions together: per mass of the node after the sweep. It is heat now. */
static void note_loss(gas *g, ptrdiff_t k, ptrdiff_t next, double before, double after, bool first)
{
    const double *flux = g->f[NODE_FLUX].at, *pre = g->f[NODE_MASS_PRE].at;
    const double *post = g->f[NODE_MASS_POST].at, *momentum = g->f[MOM_FLUX].at;
    double *loss = g->f[ENER_FLUX].at;
    const double in =
        flux[k - next] != 0 ? momentum[k - next] * momentum[k - next] / flux[k - next] : 0;
    const double out = flux[k] != 0 ? momentum[k] * momentum[k] / flux[k] : 0;
    loss[k] = (first ? 0 : loss[k]) +
              0.5 * ((pre[k] * before * before + in - out) / post[k] - after * after);
}

static void advect_velocity(gas *g, sweep w, double *v, bool first)
{
    const ptrdiff_t pitch = g->s.pitch, next = w.along_x ? 1 : pitch;
    const double *flux = g->f[NODE_FLUX].at, *pre = g->f[NODE_MASS_PRE].at;
    const double *post = g->f[NODE_MASS_POST].at;
    double *momentum = g->f[MOM_FLUX].at;
    for (int j = -!w.along_x; j <= g->s.rows; j++)
        for (int i = -w.along_x; i <= g->s.cols; i++) {
            const ptrdiff_t k = j * pitch + i;
            const ptrdiff_t from = flux[k] > 0 ? k : k + next, back = flux[k] > 0 ? -next : next;
            momentum[k] = flux[k] * upwind(v + from, back, fabs(flux[k]) / pre[from]);
        }
    for (int j = 0; j <= g->s.rows; j++)
        for (int i = 0; i <= g->s.cols; i++) {
            const ptrdiff_t k = j * pitch + i;
            const double before = v[k];
            v[k] = (before * pre[k] + momentum[k - next] - momentum[k]) / post[k];
            note_loss(g, k, next, before, v[k], first);
        }
}

/* A quarter of a cell's mass belongs to each of its nodes, and has that node's share of the heat.
 */
static void heat_cells(gas *g)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double *loss = g->f[ENER_FLUX].at;
    double *e = g->f[ENERGY1].at;
    for (int j = 0; j < g->s.rows; j++)
        for (int i = 0; i < g->s.cols; i++) {
            const ptrdiff_t k = j * pitch + i;
            e[k] += 0.25 * ((loss[k] + loss[k + 1]) + (loss[k + pitch] + loss[k + pitch + 1]));
        }
}

/* One more node on each side, along the sweep, is needed upwind. */
void advect_momentum(gas *g, sweep w)
{
    const int x = w.along_x, y = !w.along_x;
    volumes(g, w, (range){-RIM, g->s.rows + RIM, -RIM, g->s.cols + RIM});
    node_masses(g, w, (range){-y, g->s.rows + 1 + y, -x, g->s.cols + 1 + x});
    advect_velocity(g, w, g->f[XVEL1].at, true);
    advect_velocity(g, w, g->f[YVEL1].at, false);
    heat_cells(g);
}
