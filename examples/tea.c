/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Heat conduction in an insulated plate, implicit in time: each step solves a system of equations
 * by conjugate gradients, with regions. Of 23 fields a mark needs one, the energy before a solve;
 * Cairn finds that.
 *
 *     mpirun -n 2 tea --size 500 --steps 50 --trigger 10 --output energy
 *
 * Kill it at any time and start it again: it skips to its last mark. What the solver decides by,
 * two sums of each iteration, passes through Cairn; with --fixed these are summed row by row, and
 * the result is the same, bit for bit, on any number of ranks (--pieces lets a run change theirs).
 *
 * tea is written from a description of the TeaLeaf mini-app (kernels, fields, accesses), not from
 * its code. Seven of its fields belong to other solvers; here they are protected and never touched
 * again, as in the original when conjugate gradients are chosen.
 */
#include <inttypes.h>

#include "slab.h"

enum {
    DENSITY,
    ENERGY0,
    ENERGY1,
    U,
    U0,
    P,
    R_,
    MI,
    W_,
    Z,
    DI,
    KX,
    KY,
    VOLUME,
    XAREA,
    YAREA,
    R_STORE,
    UTEMP,
    RTEMP,
    SD,
    TRI_CP,
    TRI_BFP,
    ROW_SUMS,
    NFIELDS
};

static const char *const names[NFIELDS] = {
    "density", "energy0", "energy1", "u",  "u0",     "p",       "r",       "mi",
    "w",       "z",       "di",      "kx", "ky",     "volume",  "xarea",   "yarea",
    "r_store", "utemp",   "rtemp",   "sd", "tri_cp", "tri_bfp", "row_sums"};

typedef struct plate {
    slab s;
    field f[NFIELDS];
    double h, dt, tolerance;
    bool fixed;
    uint64_t step, iterations;
} plate;

typedef struct options {
    uint64_t size, steps, trigger, die;
    double dt, tolerance;
    bool wave, fixed, pieces, forward, bare, list, plain, time;
    const char *place, *output, *config;
} options;

#define F(name)          (p->f[name])
#define BEGIN(site, ...) (p->s.plain || go(&p->s, cairn_region(p->s.c, site, __VA_ARGS__)))
#define EACH_CELL(j, i)                                                                            \
    for (int j = 0; j < p->s.rows; j++)                                                            \
        for (int i = 0; i < p->s.cols; i++)

/* --- kernels ---------------------------------------------------------------------------------- */

/* Heat u from energy; the flow between neighbours by the harmonic mean of their conductivities,
 * which are densities; the diagonal of the operator, and its inverse to precondition with. */
static void set_up(plate *p)
{
    const ptrdiff_t pitch = p->s.pitch;
    const double *rho = F(DENSITY).at, *e = F(ENERGY1).at, by = p->dt / (p->h * p->h);
    double *u = F(U).at, *u0 = F(U0).at, *kx = F(KX).at, *ky = F(KY).at;
    for (int j = 0; j <= p->s.rows; j++)
        for (int i = 0; i <= p->s.cols; i++) {
            const ptrdiff_t k = j * pitch + i;
            kx[k] = by * 2 * rho[k] * rho[k - 1] / (rho[k] + rho[k - 1]);
            ky[k] = by * 2 * rho[k] * rho[k - pitch] / (rho[k] + rho[k - pitch]);
        }
    EACH_CELL(j, i)
    {
        const ptrdiff_t k = j * pitch + i;
        u[k] = u0[k] = e[k] * rho[k];
        F(DI).at[k] = 1 + kx[k] + kx[k + 1] + ky[k] + ky[k + pitch];
        F(MI).at[k] = 1 / F(DI).at[k];
    }
}

/* The operator, applied to v at k. */
static double apply(const plate *p, const double *v, ptrdiff_t k)
{
    const ptrdiff_t pitch = p->s.pitch;
    const double *kx = F(KX).at, *ky = F(KY).at;
    return F(DI).at[k] * v[k] - (kx[k + 1] * v[k + 1] + kx[k] * v[k - 1]) -
           (ky[k + pitch] * v[k + pitch] + ky[k] * v[k - pitch]);
}

/* The product of two fields, of this rank's rows, each in row_sum; and all together. */
static double dot(plate *p, const field *a, const field *b)
{
    double sum = 0;
    for (int j = 0; j < p->s.rows; j++) {
        const double *x = row_of(&p->s, a, j), *y = row_of(&p->s, b, j);
        double row = 0;
        for (int i = 0; i < p->s.cols; i++)
            row += x[i] * y[i];
        p->s.row_sum[p->s.first + j] = row;
        sum += row;
    }
    return p->fixed ? sum_rows(&p->s) : sum;
}

/* A sum leaves the computation: of all ranks in a fixed order already, or by Cairn. */
static double pass(plate *p, double sum)
{
    if (p->fixed)
        pass_value(&p->s, &sum, sizeof sum);
    else
        reduce(&p->s, &sum, CAIRN_SUM);
    return sum;
}

/* --- the regions of a solve --------------------------------------------------------------------
 */

static void do_set_up(plate *p)
{
    const int edges[4] = {0, 0, p->s.rows + 1, p->s.cols + 1};
    if (BEGIN("set-up", IN(F(ENERGY1)), IN(F(DENSITY)), FILLED(F(DENSITY)), OUT(F(U)), OUT(F(U0)),
              part(&p->s, &F(KX), CAIRN_WRITES, edges), part(&p->s, &F(KY), CAIRN_WRITES, edges),
              OUT(F(DI)), OUT(F(MI)))) {
        fill_rim(&p->s, &F(DENSITY));
        set_up(p);
    }
}

static double do_residual(plate *p)
{
    const int edges[4] = {0, 0, p->s.rows + 1, p->s.cols + 1};
    double sum = 0;
    if (BEGIN("residual", IN(F(U)), FILLED(F(U)), IN(F(U0)),
              part(&p->s, &F(KX), CAIRN_READS, edges), part(&p->s, &F(KY), CAIRN_READS, edges),
              IN(F(DI)), OUT(F(R_)))) {
        fill_rim(&p->s, &F(U));
        EACH_CELL(j, i)
        {
            const ptrdiff_t k = j * p->s.pitch + i;
            F(R_).at[k] = F(U0).at[k] - apply(p, F(U).at, k);
        }
        sum = dot(p, &F(R_), &F(R_));
    }
    return pass(p, sum);
}

static double do_start(plate *p)
{
    double sum = 0;
    if (BEGIN("cg start", IN(F(R_)), IN(F(MI)), OUT(F(P)), OUT(F(Z)))) {
        EACH_CELL(j, i)
        {
            const ptrdiff_t k = j * p->s.pitch + i;
            F(P).at[k] = F(Z).at[k] = F(MI).at[k] * F(R_).at[k];
        }
        sum = dot(p, &F(R_), &F(Z));
    }
    return pass(p, sum);
}

static double do_apply(plate *p)
{
    const int edges[4] = {0, 0, p->s.rows + 1, p->s.cols + 1};
    double sum = 0;
    if (BEGIN("w = A p", IN(F(P)), FILLED(F(P)), part(&p->s, &F(KX), CAIRN_READS, edges),
              part(&p->s, &F(KY), CAIRN_READS, edges), IN(F(DI)), OUT(F(W_)))) {
        fill_rim(&p->s, &F(P));
        EACH_CELL(j, i)
        {
            const ptrdiff_t k = j * p->s.pitch + i;
            F(W_).at[k] = apply(p, F(P).at, k);
        }
        sum = dot(p, &F(P), &F(W_));
    }
    return pass(p, sum);
}

static double do_update(plate *p, double alpha)
{
    double sum = 0;
    if (BEGIN("u, r", IN(F(P)), IN(F(W_)), IN(F(MI)), BOTH(F(U)), BOTH(F(R_)), OUT(F(Z)))) {
        EACH_CELL(j, i)
        {
            const ptrdiff_t k = j * p->s.pitch + i;
            F(U).at[k] += alpha * F(P).at[k];
            F(R_).at[k] -= alpha * F(W_).at[k];
            F(Z).at[k] = F(MI).at[k] * F(R_).at[k];
        }
        sum = dot(p, &F(R_), &F(Z));
    }
    return pass(p, sum);
}

static void do_direction(plate *p, double beta)
{
    if (BEGIN("p", IN(F(Z)), BOTH(F(P))))
        EACH_CELL(j, i)
        {
            const ptrdiff_t k = j * p->s.pitch + i;
            F(P).at[k] = F(Z).at[k] + beta * F(P).at[k];
        }
}

static void do_end(plate *p)
{
    if (BEGIN("end of solve", IN(F(U)), IN(F(DENSITY)), OUT(F(ENERGY1))))
        EACH_CELL(j, i)
        {
            const ptrdiff_t k = j * p->s.pitch + i;
            F(ENERGY1).at[k] = F(U).at[k] / F(DENSITY).at[k];
        }
}

static void solve(plate *p)
{
    do_set_up(p);
    const double first = do_residual(p);
    double rro = do_start(p);
    const double enough = p->tolerance * p->tolerance * rro;
    for (uint64_t n = 0; first > 0 && rro > enough && n < 10000; n++) {
        const double pw = do_apply(p);
        const double rrn = do_update(p, rro / pw);
        do_direction(p, rrn / rro);
        rro = rrn;
        p->iterations++;
    }
    do_end(p);
    p->step++;
}

/* --- the program ------------------------------------------------------------------------------ */

/* A dense bar across a light plate, hot at one end; or one mode of the plate, of wavelength 2. */
static void initialise(plate *p, const options *o)
{
    const double pi = acos(-1);
    for (size_t k = 0; k < slab_elements(&p->s); k++)
        for (int f = VOLUME; f < NFIELDS; f++)
            F(f).memory[k] = f == VOLUME ? p->h * p->h : f == XAREA || f == YAREA ? p->h : 0;
    EACH_CELL(j, i)
    {
        const double x = (i + 0.5) * p->h, y = (p->s.first + j + 0.5) * p->h;
        const ptrdiff_t k = j * p->s.pitch + i;
        const bool bar = y > 0.4 && y < 0.6;
        F(DENSITY).at[k] = o->wave ? 1 : bar ? 10 : 1;
        F(ENERGY0).at[k] = o->wave ? 1 + 0.5 * cos(pi * x) : bar && x < 0.2 ? 25 : 0.1;
        F(ENERGY1).at[k] = F(ENERGY0).at[k];
    }
}

#define ALL_OF(name) CAIRN_W(F(name).var)

static void start(plate *p, const options *o)
{
    if (BEGIN("start", OUT(F(DENSITY)), OUT(F(ENERGY0)), OUT(F(ENERGY1)), ALL_OF(VOLUME),
              ALL_OF(XAREA), ALL_OF(YAREA), ALL_OF(R_STORE), ALL_OF(UTEMP), ALL_OF(RTEMP),
              ALL_OF(SD), ALL_OF(TRI_CP), ALL_OF(TRI_BFP), ALL_OF(ROW_SUMS)))
        initialise(p, o);
    if (!o->bare && !o->plain)
        check(&p->s, cairn_initialised(p->s.c));
}

static void begin(plate *p, const options *o)
{
    p->s = (slab){.comm = MPI_COMM_WORLD, .pieces = o->pieces, .plain = o->plain, .die = o->die};
    slab_init(&p->s, (int)o->size, (int)o->size);
    p->h = 1.0 / (double)o->size;
    p->dt = o->dt;
    p->tolerance = o->tolerance;
    p->fixed = o->fixed;
    slab_open(&p->s, o->config);
    for (int k = 0; k < NFIELDS; k++) {
        const bool edges = k == KX || k == KY;
        F(k) = (field){names[k], edges ? NODE : CELL, 1, 1, .var = 0};
        field_init(&p->s, &F(k));
        field_protect(&p->s, &F(k));
    }
    slab_begin(&p->s, o->place, &F(ENERGY1).var, o->list ? 1 : 0);
}

/* True when all steps are done. */
static bool compute(plate *p, const options *o)
{
    start(p, o);
    while (p->step < o->steps) {
        if (o->forward && !o->plain)
            check(&p->s, cairn_forward(p->s.c, &p->step, sizeof p->step));
        solve(p);
        if (slab_between(&p->s, o->trigger > 0 && p->step % o->trigger == 0))
            return false;
    }
    return true;
}

static options parse(int argc, char **argv)
{
    options o = {.size = 100, .steps = 20, .dt = 4e-3, .tolerance = 1e-10};
    const example_option option[] = {{"size", NUMBER, &o.size},
                                     {"steps", NUMBER, &o.steps},
                                     {"dt", REAL, &o.dt},
                                     {"tolerance", REAL, &o.tolerance},
                                     {"wave", FLAG, &o.wave},
                                     {"fixed", FLAG, &o.fixed},
                                     {"pieces", FLAG, &o.pieces},
                                     {"forward", FLAG, &o.forward},
                                     {"bare", FLAG, &o.bare},
                                     {"list", FLAG, &o.list},
                                     {"plain", FLAG, &o.plain},
                                     {"time", FLAG, &o.time},
                                     {"place", TEXT, &o.place},
                                     {"die", NUMBER, &o.die},
                                     {"trigger", NUMBER, &o.trigger},
                                     {"output", TEXT, &o.output},
                                     {"config", TEXT, &o.config},
                                     {0}};
    example_parse(argc, argv, option);
    if ((o.pieces || o.list) && !o.place)
        o.place = "set-up"; /* no rim is needed there, and one field is enough */
    return o;
}

int main(int argc, char **argv)
{
    static plate p;
    int given;
    const options o = parse(argc, argv);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &given);
    begin(&p, &o);
    const double began = MPI_Wtime();
    const bool done = compute(&p, &o);
    if (o.time && p.s.rank == 0)
        printf("%.6f s in steps\n", MPI_Wtime() - began);
    if (done && o.output)
        write_field(&p.s, &p.f[ENERGY1], o.output);
    if (p.s.rank == 0)
        printf("%s at step %" PRIu64 "\n", done ? "done" : "stopped", p.step);
    if (cairn_close(p.s.c) < 0 && p.s.rank == 0)
        fprintf(stderr, "tea: %s\n", cairn_error_text());
    for (int k = 0; k < NFIELDS; k++)
        free(p.f[k].memory);
    free(p.s.row_sum);
    MPI_Finalize();
    return 0;
}
