/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filters: the ETKF against the calls of BLAS and LAPACK that it needs, local analyses against the
 * number of points and of processes, and the memory that they take. With an argument, "long", also
 * the large case: 10^6 variables, 100 members, 10^5 observations.
 *
 * NEEDS: lapacke
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "filter/filter.h"

/* An ensemble on a ring (or a square, for local analyses), observed at random places. */
typedef struct world {
    size_t n, nx, nobs; /* members, elements, observations */
    double *x, **member, *point;
    double *y, *value, *variance, *place, *radius;
    crn_filter_case c;
    crn_locality l;
} world;

static double *numbers(size_t n)
{
    double *v;
    bench_need(crn_alloc(&v, n));
    return v;
}

/* One variable on each point of a square of side by side; observations see about near others. */
static world *make(size_t n, size_t side, size_t nobs, double near)
{
    world *w;
    bench_need(crn_alloc(&w, 1));
    crn_rng rng = crn_rng_of(1, side);
    w->n = n;
    w->nx = side * side;
    w->nobs = nobs;
    w->x = numbers(n * w->nx);
    w->point = numbers(2 * w->nx);
    w->y = numbers(n * nobs);
    w->value = numbers(nobs);
    w->variance = numbers(nobs);
    w->place = numbers(2 * nobs);
    w->radius = numbers(nobs);
    bench_need(crn_alloc(&w->member, n));
    for (size_t i = 0; i < n * w->nx; i++)
        w->x[i] = crn_rng_unit(&rng);
    for (size_t j = 0; j < n; j++)
        w->member[j] = w->x + j * w->nx;
    for (size_t i = 0; i < w->nx; i++) {
        w->point[2 * i] = (double)(i % side);
        w->point[2 * i + 1] = (double)(i / side);
    }
    const double reach = sqrt(near * (double)w->nx / (double)nobs / M_PI); /* of the taper */
    for (size_t i = 0; i < nobs; i++) {
        const size_t at = (size_t)(crn_rng_unit(&rng) * (double)w->nx);
        w->place[2 * i] = w->point[2 * at];
        w->place[2 * i + 1] = w->point[2 * at + 1];
        w->value[i] = crn_rng_unit(&rng);
        w->variance[i] = 1;
        w->radius[i] = reach / 3.64;
        for (size_t j = 0; j < n; j++)
            w->y[i + j * nobs] = w->member[j][at];
    }
    w->c = (crn_filter_case){.study = 1,
                             .cycle = 1,
                             .nmembers = n,
                             .nobs = nobs,
                             .y = w->y,
                             .value = w->value,
                             .variance = w->variance,
                             .inflation = 1};
    w->l = (crn_locality){.ndims = 2, .place = w->place, .radius = w->radius};
    return w;
}

static void drop(world *w)
{
    free(w->x);
    free(w->member);
    free(w->point);
    free(w->y);
    free(w->value);
    free(w->variance);
    free(w->place);
    free(w->radius);
    free(w);
}

/* --- the ETKF ------------------------------------------------------------------------------- */

typedef void gemm_fn(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                     int lda, const double *b, int ldb, double beta, double *c, int ldc);
typedef int syev_fn(int order, char job, char uplo, int n, double *a, int lda, double *w);

static double time_etkf(world *w, double *weights)
{
    double begun = bench_seconds();
    bench_need(crn_filter_weights(crn_filter_of_name("etkf"), &w->c, weights));
    bench_need(crn_filter_update(weights, w->n, w->nx, w->member));
    return bench_seconds() - begun;
}

/* The same products and the same spectrum, of the same blocks. */
static double time_blas(const world *w, gemm_fn *gemm, syev_fn *syev, double *gram, double *work)
{
    enum { COLUMNS = 102, AS_IS = 111, TURNED = 112 };
    const int n = (int)w->n;
    double begun = bench_seconds(), *values = gram + w->n * w->n;
    memset(gram, 0, w->n * w->n * sizeof *gram);
    for (size_t first = 0; first < w->nobs; first += CRN_FILTER_OBS)
        gemm(COLUMNS, TURNED, AS_IS, n, n, CRN_FILTER_OBS, 1, work, CRN_FILTER_OBS, work,
             CRN_FILTER_OBS, 1, gram, n);
    syev(COLUMNS, 'V', 'U', n, gram, n, values);
    gemm(COLUMNS, AS_IS, TURNED, n, n, n, 1, gram, n, gram, n, 0, values + n, n);
    gemm(COLUMNS, AS_IS, TURNED, n, n, n, 1, gram, n, gram, n, 0, values + n, n);
    for (size_t row = 0; row < w->nx; row += CRN_FILTER_ROWS)
        gemm(COLUMNS, AS_IS, AS_IS, CRN_FILTER_ROWS, n, n, 1, work, CRN_FILTER_ROWS, gram, n, 0,
             work + CRN_FILTER_ROWS * w->n, CRN_FILTER_ROWS);
    return bench_seconds() - begun;
}

static void etkf(void)
{
    double ours[BENCH_TURNS], peer[BENCH_TURNS];
    void *blas = dlopen("libopenblas.so.0", RTLD_NOW),
         *lapacke = dlopen("liblapacke.so.3", RTLD_NOW);
    gemm_fn *gemm = blas ? (gemm_fn *)dlsym(blas, "cblas_dgemm") : NULL;
    syev_fn *syev = lapacke ? (syev_fn *)dlsym(lapacke, "LAPACKE_dsyev") : NULL;
    if (!gemm || !syev)
        return;
    world *w = make(100, 400, 20480, 20);
    double *weights = numbers(w->n * w->n), *gram = numbers(3 * w->n * w->n + w->n);
    double *work = numbers(2 * CRN_FILTER_ROWS * w->n);
    for (size_t i = 0; i < 2 * CRN_FILTER_ROWS * w->n; i++)
        work[i] = w->x[i];
    time_etkf(w, weights); /* loads the libraries, one thread each */
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        ours[i] = 1 / time_etkf(w, weights);
        peer[i] = 1 / time_blas(w, gemm, syev, gram, work);
    }
    bench_print(&(bench_result){
        .name = "filter.etkf",
        .unit = "1/s",
        .bar = BENCH_AT_LEAST,
        .limit = 0.5,
        .ours = bench_median(ours, BENCH_TURNS),
        .peer = bench_median(peer, BENCH_TURNS),
        .note = "analyses of 160,000 x 100, 20,480 observations, against its BLAS calls alone"});
    free(weights);
    free(gram);
    free(work);
    drop(w);
}

/* --- local analyses ------------------------------------------------------------------------- */

static double time_local(world *w, size_t first, size_t n)
{
    double begun = bench_seconds(), **part;
    crn_local *x;
    bench_need(crn_alloc(&part, w->n));
    for (size_t j = 0; j < w->n; j++)
        part[j] = w->member[j] + first;
    bench_need(crn_local_create(crn_filter_of_name("letkf"), &w->c, &w->l, &x));
    bench_need(crn_local_update(x, n, w->point + 2 * first, part));
    crn_local_free(x);
    free(part);
    return bench_seconds() - begun;
}

/* Sixteen times the points and observations, the same number near each point. */
static void growth(void)
{
    double small[BENCH_TURNS], large[BENCH_TURNS];
    world *a = make(40, 40, 160, 12), *b = make(40, 160, 2560, 12);
    for (size_t i = 0; i < 3; i++) {
        small[i] = time_local(a, 0, a->nx) / (double)a->nx * 1e6;
        large[i] = time_local(b, 0, b->nx) / (double)b->nx * 1e6;
    }
    bench_print(&(bench_result){.name = "filter.letkf.growth",
                                .unit = "us/point",
                                .bar = BENCH_AT_MOST,
                                .limit = 1.3,
                                .ours = bench_median(large, 3),
                                .peer = bench_median(small, 3),
                                .note = "25,600 points and 2,560 observations against 1,600 and "
                                        "160: about 12 near each point"});
    drop(a);
    drop(b);
}

/* Two processes, each with half of the points. */
static double time_halves(world *w)
{
    double begun = bench_seconds();
    pid_t child = fork();
    if (child == 0) {
        time_local(w, 0, w->nx / 2);
        _exit(0);
    }
    time_local(w, w->nx / 2, w->nx - w->nx / 2);
    waitpid(child, NULL, 0);
    return bench_seconds() - begun;
}

static void slices(void)
{
    double one[BENCH_TURNS], two[BENCH_TURNS];
    world *w = make(40, 160, 2560, 12);
    for (size_t i = 0; i < 3; i++) {
        one[i] = 1 / time_local(w, 0, w->nx);
        two[i] = 1 / time_halves(w);
    }
    bench_print(&(bench_result){.name = "filter.letkf.slices",
                                .unit = "1/s",
                                .bar = BENCH_AT_LEAST,
                                .limit = 1.6,
                                .ours = bench_median(two, 3),
                                .peer = bench_median(one, 3),
                                .note = "two processes with half of the points each against one; "
                                        "needs two idle cores"});
    drop(w);
}

static double resident(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss * 1024;
}

static void memory(void)
{
    world *w = make(100, 300, 9000, 20);
    const double ensemble = (double)(w->n * w->nx * sizeof(double)), before = resident();
    time_local(w, 0, 2000);
    bench_print(&(bench_result){.name = "filter.letkf.memory",
                                .unit = "B",
                                .bar = BENCH_AT_MOST,
                                .limit = 0.3,
                                .ours = resident() - before,
                                .peer = ensemble,
                                .note = "what local analyses add to an ensemble in memory; the "
                                        "server has two, background and analysis"});
    drop(w);
}

static void large(void)
{
    world *w = make(100, 1000, 100000, 20);
    double seconds = time_local(w, 0, w->nx);
    bench_print(&(bench_result){.name = "filter.letkf.large",
                                .unit = "s",
                                .ours = seconds,
                                .peer = 60,
                                .note = "10^6 variables, 100 members, 10^5 observations, about 20 "
                                        "near each point, one process; against a minute"});
    drop(w);
}

int main(int argc, char **argv)
{
    const char *kernel;
    if (crn_filter_kernel(&kernel) < 0)
        return 0;
    memory(); /* first: what it adds is seen by the largest memory so far */
    etkf();
    growth();
    slices();
    if (argc > 1 && strcmp(argv[1], "long") == 0)
        large();
    return 0;
}
