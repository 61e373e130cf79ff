/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One analysis, for test_filter_oracle.py to compare with its own: a field h of NY by NX elements
 * with axes, observed as a file says. Arguments: directory, filter, local, rotate, inflation,
 * prior, rtpp, rtps, members, NY, NX, period of x, sphere. The directory has background.bin
 * (members by elements, double) and obs; analysis.bin and observed.bin (members by observations)
 * are written.
 */
#include <math.h>

#include "filter/filter.h"
#include "observe/observe.h"

typedef struct run {
    size_t n, nx;
    double *x, **member, *y, *value, *variance, *place, *radius, *entry;
    uint64_t *number;
    crn_filter_block *block;
    crn_obs_set *set;
    crn_filter_case c;
    crn_locality l;
} run;

static void must(cairn_status rc)
{
    if (rc < 0) {
        fprintf(stderr, "%s\n", crn_err_peek()->text);
        exit(1);
    }
}

static void transfer(const char *dir, const char *name, const char *mode, double *v, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, mode);
    size_t done = !f ? 0 : mode[0] == 'r' ? fread(v, sizeof *v, n, f) : fwrite(v, sizeof *v, n, f);
    if (done != n || fclose(f) != 0)
        exit(2);
}

static void observe(run *r, const crn_obs *o, const crn_obs_field *f)
{
    const size_t nobs = r->set->n, nd = (size_t)r->l.ndims;
    must(crn_alloc(&r->y, nobs * r->n + 1));
    must(crn_alloc(&r->value, nobs + 1));
    must(crn_alloc(&r->variance, nobs + 1));
    must(crn_alloc(&r->radius, nobs + 1));
    must(crn_alloc(&r->number, nobs + 1));
    must(crn_alloc(&r->place, nobs * nd + 1));
    must(crn_alloc(&r->block, r->set->nblocks + 1));
    must(crn_alloc(&r->entry, r->set->nentries + 1));
    for (size_t j = 0; j < r->n; j++) {
        cairn_field piece = {.name = "h", .data = r->member[j], .type = CAIRN_FLOAT64, .ndims = 2};
        memcpy(piece.global, f->global, sizeof piece.global);
        memcpy(piece.count, f->global, sizeof piece.count);
        must(crn_obs_pick(r->set, 0, 0, &piece, r->entry));
        crn_obs_apply(r->set, r->entry, r->y + j * nobs);
    }
    for (size_t i = 0; i < nobs; i++) {
        const crn_obs_item *item = &r->set->item[i];
        r->value[i] = item->value;
        r->variance[i] = item->variance;
        r->number[i] = item->number;
        r->radius[i] = crn_obs_type_at(o, item->type)->radius;
        memcpy(r->place + i * nd, item->place, nd * sizeof *r->place);
    }
    for (size_t k = 0; k < r->set->nblocks; k++)
        r->block[k] = (crn_filter_block){r->set->block[k].first, r->set->block[k].n,
                                         r->set->block[k].covariance};
}

static void analyse(run *r, const crn_filter_ops *filter, bool local, const double *point)
{
    double *w;
    must(crn_alloc(&w, r->n * r->n));
    if (local)
        must(crn_filter_update_local(filter, &r->c, &r->l, r->nx, point, r->member));
    else {
        must(crn_filter_weights(filter, &r->c, w));
        must(crn_filter_update(w, r->n, r->nx, r->member));
    }
    free(w);
}

int main(int argc, char **argv)
{
    if (argc != 14)
        return 2;
    const char *dir = argv[1];
    double v[14];
    char path[4096];
    for (int i = 3; i < 14; i++)
        v[i] = strtod(argv[i], NULL);
    run r = {.n = (size_t)v[9], .nx = (size_t)(v[10] * v[11])};
    crn_obs_field f = {.name = "h",
                       .ndims = 2,
                       .global = {(uint64_t)v[10], (uint64_t)v[11]},
                       .placed = true,
                       .axis = {{.dim = 1, .origin = 0.5, .step = 1}, {.dim = 0, .step = 2}}};
    const crn_obs_type type[] = {{.name = "near", .field = "h", .radius = 1.5, .correlation = 2},
                                 {.name = "wide", .field = "h", .radius = 4, .correlation = 2}};
    snprintf(path, sizeof path, "%s/obs", dir);
    const crn_obs_setup setup = {.path = path,
                                 .steps = 1,
                                 .step = 1,
                                 .space = {.ndims = 2, .period = {v[12]}, .sphere = v[13]},
                                 .field = &f,
                                 .nfields = 1,
                                 .type = type,
                                 .ntypes = 2,
                                 .radius = INFINITY};
    crn_obs *o;
    double *point, *spread;
    must(crn_alloc(&r.x, r.n * r.nx));
    must(crn_alloc(&r.member, r.n));
    must(crn_alloc(&point, r.nx * 2));
    must(crn_alloc(&spread, r.nx));
    for (size_t j = 0; j < r.n; j++)
        r.member[j] = r.x + j * r.nx;
    transfer(dir, "background.bin", "r", r.x, r.n * r.nx);
    must(crn_obs_open(&setup, &o));
    must(crn_obs_cycle(o, 1, &r.set));
    r.l = (crn_locality){.ndims = 2, .period = {v[12]}, .sphere = v[13]};
    observe(&r, o, &f);
    r.l.place = r.place;
    r.l.radius = r.radius;
    r.c = (crn_filter_case){.study = 1,
                            .cycle = 1,
                            .nmembers = r.n,
                            .nobs = r.set->n,
                            .y = r.y,
                            .value = r.value,
                            .variance = r.variance,
                            .number = r.number,
                            .block = r.block,
                            .nblocks = r.set->nblocks,
                            .rotate = v[4] != 0,
                            .inflation = v[5],
                            .prior = v[6],
                            .rtpp = v[7]};
    for (size_t i = 0; i < r.nx; i++)
        (void)crn_obs_place_of(&setup.space, &f, i, point + 2 * i);
    crn_filter_spread(r.n, r.nx, r.member, spread);
    transfer(dir, "observed.bin", "w", r.y, r.n * r.set->n);
    analyse(&r, crn_filter_of_name(argv[2]), v[3] != 0, point);
    if (v[8] > 0)
        crn_filter_relax_spread(v[8], r.n, r.nx, spread, r.member);
    transfer(dir, "analysis.bin", "w", r.x, r.n * r.nx);
    crn_filter_fit fit;
    must(crn_filter_fit_of(&r.c, &fit));
    printf("%zu %zu %.17g %.17g %.17g %.17g\n", r.set->n, r.set->rejected.n, fit.square, fit.trace,
           fit.chi2, fit.rank);
    return 0;
}
