/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressible gas in a closed box, in two dimensions, with regions: each of the 14 kernels of a
 * step says what it touches, and Cairn finds that of 25 fields four are enough to go on, and where.
 *
 *     mpirun -n 2 clover --size 480 --steps 200 --trigger 20 --output density
 *
 * Kill it at any time and start it again: it skips to its last mark, and ends with the same bits.
 * With --pieces it does so on any number of ranks. The scheme is Lagrangian with a remap on a
 * staggered grid (clover_lagrange.c, clover_remap.c); clover is written from a description of the
 * CloverLeaf mini-app (kernels, fields, accesses), not from its code.
 *
 * Everything that Cairn needs is here and in slab.h: a region before each kernel, the values that
 * steer the program, and cairn_due once in each step.
 */
#include <inttypes.h>

#include "clover.h"

typedef struct options {
    uint64_t rows, cols, steps, trigger, die, summary;
    double end;
    bool along_y, pieces, forward, bare, list, plain, time;
    const char *start, *place, *output, *config;
} options;

/* --- the regions of a step ------------------------------------------------------------------- */

#define F(name)          (g->f[name])
#define ALL(name)        CAIRN_R(F(name).var)
#define FIXED            ALL(VOLUME), ALL(XAREA), ALL(YAREA)
#define BEGIN(site, ...) (g->s.plain || go(&g->s, cairn_region(g->s.c, site, __VA_ARGS__)))

static void do_ideal_gas(gas *g)
{
    if (BEGIN("ideal gas", IN(F(DENSITY0)), IN(F(ENERGY0)), OUT(F(PRESSURE)), OUT(F(SOUNDSPEED))))
        ideal_gas(g, true);
}

static void do_viscosity(gas *g)
{
    if (BEGIN("viscosity", IN(F(PRESSURE)), FILLED(F(PRESSURE)), IN(F(DENSITY0)),
              FILLED(F(DENSITY0)), IN(F(XVEL0)), FILLED(F(XVEL0)), IN(F(YVEL0)), FILLED(F(YVEL0)),
              OUT(F(VISCOSITY)), FILLED(F(VISCOSITY)))) {
        fill_rim(&g->s, &F(PRESSURE));
        fill_rim(&g->s, &F(DENSITY0));
        fill_rim(&g->s, &F(XVEL0));
        fill_rim(&g->s, &F(YVEL0));
        viscosity(g);
        fill_rim(&g->s, &F(VISCOSITY));
    }
}

static void do_time_step(gas *g, double end)
{
    double longest = 0;
    if (BEGIN("time step", IN(F(SOUNDSPEED)), IN(F(VISCOSITY)), IN(F(DENSITY0)), IN(F(XVEL0)),
              IN(F(YVEL0)), FIXED))
        longest = time_step(g);
    reduce(&g->s, &longest, CAIRN_MIN);
    g->dt = fmin(fmin(longest, g->dt > 0 ? 1.5 * g->dt : 0.1 * longest), end - g->time);
}

static void do_predictor(gas *g)
{
    if (BEGIN("pdv half", IN(F(DENSITY0)), IN(F(ENERGY0)), IN(F(PRESSURE)), IN(F(VISCOSITY)),
              IN(F(XVEL0)), IN(F(YVEL0)), FIXED, OUT(F(DENSITY1)), OUT(F(ENERGY1))))
        work_of_pressure(g, true);
    if (BEGIN("ideal gas half", IN(F(DENSITY1)), IN(F(ENERGY1)), OUT(F(PRESSURE)),
              OUT(F(SOUNDSPEED))))
        ideal_gas(g, false);
    if (BEGIN("revert", IN(F(DENSITY0)), IN(F(ENERGY0)), OUT(F(DENSITY1)), OUT(F(ENERGY1))))
        revert(g);
}

static void do_corrector(gas *g)
{
    slab *s = &g->s;
    if (BEGIN("accelerate", IN(F(PRESSURE)), FILLED(F(PRESSURE)), ROUND(s, F(DENSITY0)),
              ROUND(s, F(VISCOSITY)), IN(F(XVEL0)), IN(F(YVEL0)), FIXED, OUT(F(XVEL1)),
              OUT(F(YVEL1)))) {
        fill_rim(s, &F(PRESSURE));
        accelerate(g);
    }
    if (BEGIN("pdv", IN(F(DENSITY0)), IN(F(ENERGY0)), IN(F(PRESSURE)), IN(F(VISCOSITY)),
              IN(F(XVEL0)), IN(F(XVEL1)), IN(F(YVEL0)), IN(F(YVEL1)), FIXED, OUT(F(DENSITY1)),
              OUT(F(ENERGY1))))
        work_of_pressure(g, false);
    if (BEGIN("fluxes", IN(F(XVEL0)), IN(F(XVEL1)), IN(F(YVEL0)), IN(F(YVEL1)), FIXED,
              OUT(F(VOL_FLUX_X)), OUT(F(VOL_FLUX_Y))))
        volume_fluxes(g);
}

/* The first sweep of a step fills the rims that it needs; for the second, what moves momentum has
 * done so. */
static void do_advect_cells(gas *g, sweep w)
{
    static const char *const site[2] = {"advect cells y", "advect cells x"};
    const int mass = w.along_x ? MASS_FLUX_X : MASS_FLUX_Y;
    slab *s = &g->s;
    const int faces[4] = {0, 0, s->rows + !w.along_x, s->cols + w.along_x};
    const cairn_access work[] = {around(s, &F(PRE_VOL), CAIRN_WRITES),
                                 around(s, &F(POST_VOL), CAIRN_WRITES),
                                 part(s, &F(ENER_FLUX), CAIRN_WRITES, faces), OUT(F(mass))};
    if (w.first) {
        if (BEGIN(site[w.along_x], BOTH(F(DENSITY1)), FILLED(F(DENSITY1)), BOTH(F(ENERGY1)),
                  FILLED(F(ENERGY1)), IN(F(VOL_FLUX_X)), FILLED(F(VOL_FLUX_X)), IN(F(VOL_FLUX_Y)),
                  FILLED(F(VOL_FLUX_Y)), FIXED, work[0], work[1], work[2], work[3])) {
            fill_rim(s, &F(DENSITY1));
            fill_rim(s, &F(ENERGY1));
            fill_rim(s, &F(VOL_FLUX_X));
            fill_rim(s, &F(VOL_FLUX_Y));
            advect_cells(g, w);
        }
    } else if (BEGIN(site[w.along_x], ROUND(s, F(DENSITY1)), OUT(F(DENSITY1)), ROUND(s, F(ENERGY1)),
                     OUT(F(ENERGY1)), ROUND(s, F(VOL_FLUX_X)), ROUND(s, F(VOL_FLUX_Y)), FIXED,
                     work[0], work[1], work[2], work[3])) {
        advect_cells(g, w);
    }
}

/* Only the mass flux of this sweep's direction is exchanged: the other one is the last step's, and
 * to read it would keep it. */
static void do_advect_momentum(gas *g, sweep w)
{
    static const char *const site[2] = {"advect momentum y", "advect momentum x"};
    const int mass = w.along_x ? MASS_FLUX_X : MASS_FLUX_Y, x = w.along_x, y = !w.along_x;
    slab *s = &g->s;
    const int flux[4] = {-2 * y, -2 * x, s->rows + 1 + y, s->cols + 1 + x};
    const int nodes[4] = {-y, -x, s->rows + 1 + y, s->cols + 1 + x};
    const int momentum[4] = {-y, -x, s->rows + 1, s->cols + 1};
    const int heat[4] = {0, 0, s->rows + 1, s->cols + 1};
    if (BEGIN(site[w.along_x], IN(F(DENSITY1)), FILLED(F(DENSITY1)), BOTH(F(ENERGY1)),
              FILLED(F(ENERGY1)), BOTH(F(XVEL1)), FILLED(F(XVEL1)), BOTH(F(YVEL1)),
              FILLED(F(YVEL1)), IN(F(mass)), FILLED(F(mass)), ROUND(s, F(VOL_FLUX_X)),
              ROUND(s, F(VOL_FLUX_Y)), FIXED, around(s, &F(PRE_VOL), CAIRN_WRITES),
              around(s, &F(POST_VOL), CAIRN_WRITES), part(s, &F(NODE_FLUX), CAIRN_WRITES, flux),
              part(s, &F(NODE_MASS_PRE), CAIRN_WRITES, nodes),
              part(s, &F(NODE_MASS_POST), CAIRN_WRITES, nodes),
              part(s, &F(MOM_FLUX), CAIRN_WRITES, momentum),
              part(s, &F(ENER_FLUX), CAIRN_WRITES, heat))) {
        fill_rim(s, &F(DENSITY1));
        fill_rim(s, &F(XVEL1));
        fill_rim(s, &F(YVEL1));
        fill_rim(s, &F(mass));
        advect_momentum(g, w);
        fill_rim(s, &F(ENERGY1));
    }
}

static void do_reset(gas *g)
{
    if (BEGIN("reset", IN(F(DENSITY1)), IN(F(ENERGY1)), IN(F(XVEL1)), IN(F(YVEL1)),
              OUT(F(DENSITY0)), OUT(F(ENERGY0)), OUT(F(XVEL0)), OUT(F(YVEL0))))
        reset(g);
}

static void advance(gas *g, double end)
{
    const bool x_first = g->step % 2 == 0;
    do_ideal_gas(g);
    do_viscosity(g);
    do_time_step(g, end);
    do_predictor(g);
    do_corrector(g);
    for (int i = 0; i < 2; i++) {
        const sweep w = {.along_x = x_first == (i == 0), .first = i == 0};
        do_advect_cells(g, w);
        do_advect_momentum(g, w);
    }
    do_reset(g);
    g->time += g->dt;
    g->step++;
}

/* --- set-up and sums ------------------------------------------------------------------------- */

/* Density and energy at x and y, shares of the box: Sod's shock tube, a smooth hump of pressure, or
 * a hot square in a corner. */
static void initial(const options *o, double x, double y, double ret[2])
{
    const double along = o->along_y ? y : x;
    if (strcmp(o->start, "sod") == 0) {
        ret[0] = along < 0.5 ? 1 : 0.125;
        ret[1] = (along < 0.5 ? 1 : 0.1) / ((heat_ratio - 1) * ret[0]);
    } else if (strcmp(o->start, "hump") == 0) {
        const double r2 = (x - 0.5) * (x - 0.5) + (y - 0.5) * (y - 0.5);
        ret[0] = 1;
        ret[1] = 1 + 2 * exp(-20 * r2);
    } else {
        const bool hot = x < 0.5 && y < 0.2;
        ret[0] = hot ? 1 : 0.2;
        ret[1] = hot ? 2.5 : 1;
    }
}

static void initialise(gas *g, const options *o)
{
    for (size_t k = 0; k < slab_elements(&g->s); k++) {
        F(VOLUME).memory[k] = g->dx * g->dy;
        F(XAREA).memory[k] = g->dy;
        F(YAREA).memory[k] = g->dx;
    }
    for (int j = 0; j <= g->s.rows; j++)
        for (int i = 0; i <= g->s.cols; i++) {
            double start[2];
            row_of(&g->s, &F(XVEL0), j)[i] = row_of(&g->s, &F(YVEL0), j)[i] = 0;
            if (j == g->s.rows || i == g->s.cols)
                continue;
            initial(o, (i + 0.5) / (double)o->cols, (g->s.first + j + 0.5) / (double)o->rows,
                    start);
            row_of(&g->s, &F(DENSITY0), j)[i] = start[0];
            row_of(&g->s, &F(ENERGY0), j)[i] = start[1];
        }
}

static void start(gas *g, const options *o)
{
    if (BEGIN("start", CAIRN_W(F(VOLUME).var), CAIRN_W(F(XAREA).var), CAIRN_W(F(YAREA).var),
              OUT(F(DENSITY0)), OUT(F(ENERGY0)), OUT(F(XVEL0)), OUT(F(YVEL0))))
        initialise(g, o);
    if (!o->bare && !o->plain)
        check(&g->s, cairn_initialised(g->s.c));
}

static void summary(gas *g, double ret[3])
{
    if (BEGIN("summary", IN(F(DENSITY0)), IN(F(ENERGY0)), IN(F(XVEL0)), IN(F(YVEL0)), FIXED))
        sum_up(g, ret);
    pass_value(&g->s, ret, 3 * sizeof *ret);
}

static void print_summary(const gas *g, const double now[3])
{
    const double *first = g->first;
    const double energy = first[1] + first[2];
    if (g->s.rank == 0 && !cairn_replaying(g->s.c))
        printf("step %" PRIu64 ", time %.17g: mass %.17g, changed by %.3g; energy %.17g, "
               "changed by %.3g\n",
               g->step, g->time, now[0], now[0] / first[0] - 1, now[1] + now[2],
               (now[1] + now[2]) / energy - 1);
}

/* --- the program ------------------------------------------------------------------------------ */

#define FIELD(label, at_, x, y)                                                                    \
    {                                                                                              \
        .name = (label), .where = (at_), .mirror_x = (x), .mirror_y = (y)                          \
    }
static const field kind[NFIELDS] = {[DENSITY0] = FIELD("density0", CELL, 1, 1),
                                    [DENSITY1] = FIELD("density1", CELL, 1, 1),
                                    [ENERGY0] = FIELD("energy0", CELL, 1, 1),
                                    [ENERGY1] = FIELD("energy1", CELL, 1, 1),
                                    [PRESSURE] = FIELD("pressure", CELL, 1, 1),
                                    [VISCOSITY] = FIELD("viscosity", CELL, 1, 1),
                                    [SOUNDSPEED] = FIELD("soundspeed", CELL, 1, 1),
                                    [XVEL0] = FIELD("xvel0", NODE, -1, 1),
                                    [XVEL1] = FIELD("xvel1", NODE, -1, 1),
                                    [YVEL0] = FIELD("yvel0", NODE, 1, -1),
                                    [YVEL1] = FIELD("yvel1", NODE, 1, -1),
                                    [VOL_FLUX_X] = FIELD("vol_flux_x", XFACE, -1, 1),
                                    [VOL_FLUX_Y] = FIELD("vol_flux_y", YFACE, 1, -1),
                                    [MASS_FLUX_X] = FIELD("mass_flux_x", XFACE, -1, 1),
                                    [MASS_FLUX_Y] = FIELD("mass_flux_y", YFACE, 1, -1),
                                    [PRE_VOL] = FIELD("pre_vol", CELL, 1, 1),
                                    [POST_VOL] = FIELD("post_vol", CELL, 1, 1),
                                    [NODE_FLUX] = FIELD("node_flux", NODE, 1, 1),
                                    [NODE_MASS_PRE] = FIELD("node_mass_pre", NODE, 1, 1),
                                    [NODE_MASS_POST] = FIELD("node_mass_post", NODE, 1, 1),
                                    [MOM_FLUX] = FIELD("mom_flux", NODE, 1, 1),
                                    [ENER_FLUX] = FIELD("ener_flux", NODE, 1, 1),
                                    [VOLUME] = FIELD("volume", CELL, 1, 1),
                                    [XAREA] = FIELD("xarea", XFACE, 1, 1),
                                    [YAREA] = FIELD("yarea", YFACE, 1, 1)};

static void begin(gas *g, const options *o)
{
    g->s = (slab){.comm = MPI_COMM_WORLD, .pieces = o->pieces, .plain = o->plain, .die = o->die};
    slab_init(&g->s, (int)o->rows, (int)o->cols);
    g->dx = g->dy =
        (strcmp(o->start, "square") == 0 ? 10.0 : 1.0) / (double)(o->along_y ? o->rows : o->cols);
    slab_open(&g->s, o->config);
    for (int k = 0; k < NFIELDS; k++) {
        F(k) = kind[k];
        field_init(&g->s, &F(k));
        field_protect(&g->s, &F(k));
    }
    const cairn_var least[] = {F(DENSITY0).var, F(ENERGY0).var, F(XVEL0).var, F(YVEL0).var};
    slab_begin(&g->s, o->place, least, o->list ? 4 : 0);
}

/* What a step needs besides the fields, and what the last summary is compared with. */
static void forward(gas *g)
{
    struct {
        double dt, time, first[3];
        uint64_t step;
    } now = {g->dt, g->time, {g->first[0], g->first[1], g->first[2]}, g->step};
    check(&g->s, cairn_forward(g->s.c, &now, sizeof now));
    g->dt = now.dt;
    g->time = now.time;
    g->step = now.step;
    memcpy(g->first, now.first, sizeof now.first);
}

/* True when all steps are done. */
static bool compute(gas *g, const options *o)
{
    double now[3] = {0};
    start(g, o);
    summary(g, g->first);
    while (g->step < o->steps && g->time < o->end) {
        if (o->forward && !o->plain)
            forward(g);
        advance(g, o->end);
        if (slab_between(&g->s, o->trigger > 0 && g->step % o->trigger == 0))
            return false;
        if (o->summary > 0 && g->step % o->summary == 0) {
            summary(g, now);
            print_summary(g, now);
        }
    }
    summary(g, now);
    print_summary(g, now);
    return true;
}

static options parse(int argc, char **argv)
{
    uint64_t size = 0;
    options o = {.rows = 96, .cols = 96, .steps = UINT64_MAX, .end = HUGE_VAL, .start = "square"};
    const example_option option[] = {
        {"size", NUMBER, &size},         {"rows", NUMBER, &o.rows},
        {"cols", NUMBER, &o.cols},       {"steps", NUMBER, &o.steps},
        {"end", REAL, &o.end},           {"start", TEXT, &o.start},
        {"along-y", FLAG, &o.along_y},   {"pieces", FLAG, &o.pieces},
        {"forward", FLAG, &o.forward},   {"bare", FLAG, &o.bare},
        {"list", FLAG, &o.list},         {"plain", FLAG, &o.plain},
        {"time", FLAG, &o.time},         {"place", TEXT, &o.place},
        {"die", NUMBER, &o.die},         {"trigger", NUMBER, &o.trigger},
        {"summary", NUMBER, &o.summary}, {"output", TEXT, &o.output},
        {"config", TEXT, &o.config},     {0}};
    example_parse(argc, argv, option);
    if (size > 0)
        o.rows = o.cols = size;
    if (o.steps == UINT64_MAX && o.end == HUGE_VAL)
        o.steps = 100;
    if ((o.pieces || o.list) && !o.place)
        o.place = "ideal gas"; /* no rim is needed there, and four fields are enough */
    return o;
}

int main(int argc, char **argv)
{
    static gas g;
    int given;
    const options o = parse(argc, argv);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &given);
    begin(&g, &o);
    const double began = MPI_Wtime();
    const bool done = compute(&g, &o);
    if (o.time && g.s.rank == 0)
        printf("%.6f s in steps\n", MPI_Wtime() - began);
    if (done && o.output)
        write_field(&g.s, &g.f[DENSITY0], o.output);
    if (g.s.rank == 0)
        printf("%s at step %" PRIu64 "\n", done ? "done" : "stopped", g.step);
    if (cairn_close(g.s.c) < 0 && g.s.rank == 0)
        fprintf(stderr, "clover: %s\n", cairn_error_text());
    for (int k = 0; k < NFIELDS; k++)
        free(g.f[k].memory);
    free(g.s.row_sum);
    MPI_Finalize();
    return 0;
}
