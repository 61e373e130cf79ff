/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The Lagrangian half of a step: the grid moves with the gas. A predictor of half a step gives the
 * pressure that accelerates nodes; the gas is then compressed by the mean of old and new
 * velocities. Also sums over all of the gas.
 */
#include "clover.h"

#define AT(f, j, i) ((f)[(ptrdiff_t)(j)*pitch + (i)])

void ideal_gas(gas *g, bool old)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double *rho = g->f[old ? DENSITY0 : DENSITY1].at, *e = g->f[old ? ENERGY0 : ENERGY1].at;
    double *p = g->f[PRESSURE].at, *sound = g->f[SOUNDSPEED].at;
    for (int j = 0; j < g->s.rows; j++)
        for (int i = 0; i < g->s.cols; i++) {
            AT(p, j, i) = (heat_ratio - 1) * AT(rho, j, i) * AT(e, j, i);
            AT(sound, j, i) = sqrt(heat_ratio * (heat_ratio - 1) * AT(e, j, i));
        }
}

/* Of a cell: how fast it is compressed, and its width, in the direction of the pressure gradient.
 */
static double shock_jump(const gas *g, const double *u, const double *v, const double *p)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double ux = (AT(u, 0, 1) + AT(u, 1, 1) - AT(u, 0, 0) - AT(u, 1, 0)) / (2 * g->dx);
    const double uy = (AT(u, 1, 0) + AT(u, 1, 1) - AT(u, 0, 0) - AT(u, 0, 1)) / (2 * g->dy);
    const double vx = (AT(v, 0, 1) + AT(v, 1, 1) - AT(v, 0, 0) - AT(v, 1, 0)) / (2 * g->dx);
    const double vy = (AT(v, 1, 0) + AT(v, 1, 1) - AT(v, 0, 0) - AT(v, 0, 1)) / (2 * g->dy);
    const double px = (AT(p, 0, 1) - AT(p, 0, -1)) / (2 * g->dx);
    const double py = (AT(p, 1, 0) - AT(p, -1, 0)) / (2 * g->dy);
    const double size = sqrt(px * px + py * py);
    if (ux + vy >= 0 || size < 1e-12)
        return 0;
    const double nx = fabs(px) / size, ny = fabs(py) / size;
    const double rate = (px * px * ux + py * py * vy + px * py * (uy + vx)) / (size * size);
    const double width = fmin(g->dx / fmax(nx, 1e-12), g->dy / fmax(ny, 1e-12));
    return rate < 0 ? rate * width : 0;
}

/* Von Neumann's: quadratic in the jump of velocity over a cell, where gas is compressed. */
void viscosity(gas *g)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double *rho = g->f[DENSITY0].at, *p = g->f[PRESSURE].at;
    const double *u = g->f[XVEL0].at, *v = g->f[YVEL0].at;
    double *q = g->f[VISCOSITY].at;
    for (int j = 0; j < g->s.rows; j++)
        for (int i = 0; i < g->s.cols; i++) {
            const double jump = shock_jump(g, &AT(u, j, i), &AT(v, j, i), &AT(p, j, i));
            AT(q, j, i) = 2 * AT(rho, j, i) * jump * jump;
        }
}

double time_step(const gas *g)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double *rho = g->f[DENSITY0].at, *q = g->f[VISCOSITY].at, *c = g->f[SOUNDSPEED].at;
    const double *u = g->f[XVEL0].at, *v = g->f[YVEL0].at, *vol = g->f[VOLUME].at;
    const double *xarea = g->f[XAREA].at, *yarea = g->f[YAREA].at;
    double dt = HUGE_VAL;
    for (int j = 0; j < g->s.rows; j++)
        for (int i = 0; i < g->s.cols; i++) {
            const double sound = sqrt(AT(c, j, i) * AT(c, j, i) + 2 * AT(q, j, i) / AT(rho, j, i));
            const double across = fmax(fmax(fabs(AT(u, j, i)), fabs(AT(u, j, i + 1))),
                                       fmax(fabs(AT(u, j + 1, i)), fabs(AT(u, j + 1, i + 1)))) *
                                  AT(xarea, j, i);
            const double along = fmax(fmax(fabs(AT(v, j, i)), fabs(AT(v, j, i + 1))),
                                      fmax(fabs(AT(v, j + 1, i)), fabs(AT(v, j + 1, i + 1)))) *
                                 AT(yarea, j, i);
            dt = fmin(dt, 0.5 * fmin(g->dx, g->dy) / sound);
            dt = fmin(dt, 0.4 * AT(vol, j, i) / fmax(fmax(across, along), 1e-12));
        }
    return dt;
}

/* What flows out of a cell when its nodes move with the mean of two velocities, per time. */
static double outflow(const gas *g, ptrdiff_t at, int other_x, int other_y)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double *u = g->f[XVEL0].at + at, *u1 = g->f[other_x].at + at;
    const double *v = g->f[YVEL0].at + at, *v1 = g->f[other_y].at + at;
    const double *xarea = g->f[XAREA].at + at, *yarea = g->f[YAREA].at + at;
    const double left = AT(u, 0, 0) + AT(u, 1, 0) + AT(u1, 0, 0) + AT(u1, 1, 0);
    const double right = AT(u, 0, 1) + AT(u, 1, 1) + AT(u1, 0, 1) + AT(u1, 1, 1);
    const double low = AT(v, 0, 0) + AT(v, 0, 1) + AT(v1, 0, 0) + AT(v1, 0, 1);
    const double high = AT(v, 1, 0) + AT(v, 1, 1) + AT(v1, 1, 0) + AT(v1, 1, 1);
    return 0.25 * (AT(xarea, 0, 1) * right - AT(xarea, 0, 0) * left + AT(yarea, 1, 0) * high -
                   AT(yarea, 0, 0) * low);
}

void work_of_pressure(gas *g, bool half)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double *rho0 = g->f[DENSITY0].at, *e0 = g->f[ENERGY0].at, *vol = g->f[VOLUME].at;
    const double *p = g->f[PRESSURE].at, *q = g->f[VISCOSITY].at;
    double *rho1 = g->f[DENSITY1].at, *e1 = g->f[ENERGY1].at;
    const double dt = half ? 0.5 * g->dt : g->dt;
    for (int j = 0; j < g->s.rows; j++)
        for (int i = 0; i < g->s.cols; i++) {
            const double growth =
                dt * outflow(g, j * pitch + i, half ? XVEL0 : XVEL1, half ? YVEL0 : YVEL1);
            AT(e1, j, i) = AT(e0, j, i) -
                           (AT(p, j, i) + AT(q, j, i)) * growth / (AT(rho0, j, i) * AT(vol, j, i));
            AT(rho1, j, i) = AT(rho0, j, i) * AT(vol, j, i) / (AT(vol, j, i) + growth);
        }
}

static void copy_inside(gas *g, int to, int from)
{
    const field *f = &g->f[from];
    for (int j = 0; j < g->s.rows + more_rows(f); j++)
        memcpy(row_of(&g->s, &g->f[to], j), row_of(&g->s, f, j),
               (size_t)(g->s.cols + more_cols(f)) * sizeof *f->at);
}

void revert(gas *g)
{
    copy_inside(g, DENSITY1, DENSITY0);
    copy_inside(g, ENERGY1, ENERGY0);
}

void reset(gas *g)
{
    copy_inside(g, DENSITY0, DENSITY1);
    copy_inside(g, ENERGY0, ENERGY1);
    copy_inside(g, XVEL0, XVEL1);
    copy_inside(g, YVEL0, YVEL1);
}

/* The push of pressure and viscosity on a node, in x and y. */
static double push_x(const gas *g, ptrdiff_t at)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double *p = g->f[PRESSURE].at + at, *q = g->f[VISCOSITY].at + at;
    const double *area = g->f[XAREA].at + at;
    return AT(area, 0, 0) * (AT(p, 0, -1) - AT(p, 0, 0) + (AT(q, 0, -1) - AT(q, 0, 0))) +
           AT(area, -1, 0) * (AT(p, -1, -1) - AT(p, -1, 0) + (AT(q, -1, -1) - AT(q, -1, 0)));
}

static double push_y(const gas *g, ptrdiff_t at)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double *p = g->f[PRESSURE].at + at, *q = g->f[VISCOSITY].at + at;
    const double *area = g->f[YAREA].at + at;
    return AT(area, 0, 0) * (AT(p, -1, 0) - AT(p, 0, 0) + (AT(q, -1, 0) - AT(q, 0, 0))) +
           AT(area, 0, -1) * (AT(p, -1, -1) - AT(p, 0, -1) + (AT(q, -1, -1) - AT(q, 0, -1)));
}

void accelerate(gas *g)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double *rho = g->f[DENSITY0].at, *vol = g->f[VOLUME].at;
    const double *u0 = g->f[XVEL0].at, *v0 = g->f[YVEL0].at;
    double *u1 = g->f[XVEL1].at, *v1 = g->f[YVEL1].at;
    for (int j = 0; j <= g->s.rows; j++)
        for (int i = 0; i <= g->s.cols; i++) {
            const double mass =
                0.25 * ((AT(rho, j - 1, i - 1) * AT(vol, j - 1, i - 1) +
                         AT(rho, j - 1, i) * AT(vol, j - 1, i)) +
                        (AT(rho, j, i - 1) * AT(vol, j, i - 1) + AT(rho, j, i) * AT(vol, j, i)));
            const double by = 0.5 * g->dt / mass;
            AT(u1, j, i) = AT(u0, j, i) + by * push_x(g, j * pitch + i);
            AT(v1, j, i) = AT(v0, j, i) + by * push_y(g, j * pitch + i);
        }
}

void volume_fluxes(gas *g)
{
    const ptrdiff_t pitch = g->s.pitch;
    const double *u0 = g->f[XVEL0].at, *u1 = g->f[XVEL1].at, *xarea = g->f[XAREA].at;
    const double *v0 = g->f[YVEL0].at, *v1 = g->f[YVEL1].at, *yarea = g->f[YAREA].at;
    double *x = g->f[VOL_FLUX_X].at, *y = g->f[VOL_FLUX_Y].at;
    for (int j = 0; j < g->s.rows; j++)
        for (int i = 0; i <= g->s.cols; i++)
            AT(x, j, i) = 0.25 * g->dt * AT(xarea, j, i) *
                          (AT(u0, j, i) + AT(u0, j + 1, i) + AT(u1, j, i) + AT(u1, j + 1, i));
    for (int j = 0; j <= g->s.rows; j++)
        for (int i = 0; i < g->s.cols; i++)
            AT(y, j, i) = 0.25 * g->dt * AT(yarea, j, i) *
                          (AT(v0, j, i) + AT(v0, j, i + 1) + AT(v1, j, i) + AT(v1, j, i + 1));
}

/* Kinetic energy of a cell's mass: the mean of its nodes'. */
static double kinetic(const double *u, const double *v, ptrdiff_t pitch)
{
    double sum = 0;
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 2; i++)
            sum += AT(u, j, i) * AT(u, j, i) + AT(v, j, i) * AT(v, j, i);
    return 0.125 * sum;
}

/* What sum_up sums: mass, internal and kinetic energy of a row of cells. */
static double sum_row(const gas *g, int j, int what)
{
    const double *rho = row_of(&g->s, &g->f[DENSITY0], j), *e = row_of(&g->s, &g->f[ENERGY0], j);
    const double *u = row_of(&g->s, &g->f[XVEL0], j), *v = row_of(&g->s, &g->f[YVEL0], j);
    const double *vol = row_of(&g->s, &g->f[VOLUME], j);
    double sum = 0;
    for (int i = 0; i < g->s.cols; i++) {
        const double each[3] = {1, e[i], kinetic(u + i, v + i, g->s.pitch)};
        sum += rho[i] * vol[i] * each[what];
    }
    return sum;
}

void sum_up(gas *g, double ret[3])
{
    for (int k = 0; k < 3; k++) {
        for (int j = 0; j < g->s.rows; j++)
            g->s.row_sum[g->s.first + j] = sum_row(g, j, k);
        ret[k] = sum_rows(&g->s);
    }
}
