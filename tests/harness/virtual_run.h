/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random programs on virtual ranks with virtual clocks: a loop of sites that compute and then call;
 * collectives end when the last rank has come, exchanges when both neighbours have. Ranks may be
 * slowed down, everywhere or at one site. The traces are made, sent and merged by the code that
 * does so for real ranks.
 */
#ifndef CAIRN_TESTS_VIRTUAL_RUN_H
#define CAIRN_TESTS_VIRTUAL_RUN_H

#include "harness/harness.h"
#include "tracefmt/tracefmt.h"

#include <math.h>

enum { VR_SITES = 6, VR_RANKS = 64 };

typedef enum vr_plant { VR_BALANCED, VR_RANK, VR_NODE, VR_SITE, VR_PLANTS } vr_plant;

typedef struct vr_site {
    double mean;  /* nanoseconds of computing */
    double noise; /* its standard deviation, as a part of the mean */
    uint32_t call;
} vr_site;

typedef struct vr_program {
    uint32_t nranks, nsites, turns;
    vr_site site[VR_SITES];
    vr_plant plant;
    uint32_t first, last, at; /* ranks that are slow, and the site of VR_SITE */
    double factor;
    bool calm; /* the machine does nothing else */
} vr_program;

typedef struct vr_rank {
    crn_tables tables;
    crn_build build;
    double now;
    double computed, waited; /* nanoseconds */
} vr_rank;

typedef struct vr_run {
    vr_program p;
    crn_rng rng;
    vr_rank rank[VR_RANKS];
    double lasted;
} vr_run;

static inline double vr_between(crn_rng *r, double a, double b)
{
    return a + (b - a) * crn_rng_unit(r);
}

static inline vr_program vr_random_program(crn_rng *r, vr_plant plant, double least)
{
    static const uint32_t sizes[] = {2, 3, 4, 8, 16, 32};
    static const uint32_t calls[] = {CRN_CALL_MPI_Barrier, CRN_CALL_MPI_Allreduce,
                                     CRN_CALL_MPI_Sendrecv};
    vr_program p = {.plant = plant};
    p.nranks = sizes[crn_rng_below(r, 6)];
    p.nranks = plant == VR_NODE ? CRN_MAX(p.nranks, 8) : p.nranks;
    p.nsites = 2 + (uint32_t)crn_rng_below(r, VR_SITES - 1);
    p.turns = 30 + (uint32_t)crn_rng_below(r, 70);
    for (uint32_t i = 0; i < p.nsites; i++)
        p.site[i] = (vr_site){vr_between(r, 3e5, 3e6), vr_between(r, 0.01, 0.12),
                              calls[crn_rng_below(r, 3)]};
    p.first = p.last = (uint32_t)crn_rng_below(r, p.nranks);
    if (plant == VR_NODE) {
        p.first -= p.first % (p.nranks / 4);
        p.last = p.first + p.nranks / 4 - 1;
    }
    p.at = (uint32_t)crn_rng_below(r, p.nsites);
    p.factor = least + vr_between(r, 0, 1.8);
    return p;
}

/* Noise has a shape of its own, and one time of a hundred the machine does something else. */
static inline double vr_compute(vr_run *v, uint32_t rank, uint32_t site)
{
    const vr_program *p = &v->p;
    const vr_site *s = &p->site[site];
    double sum = 0, t = s->mean;
    for (int i = 0; i < 6; i++)
        sum += crn_rng_unit(&v->rng) - 0.5;
    t *= 1 + s->noise * sum * sqrt(2);
    if (!p->calm && crn_rng_below(&v->rng, 100) == 0)
        t += s->mean * vr_between(&v->rng, 1, 8);
    const bool slow = rank >= p->first && rank <= p->last && p->plant != VR_BALANCED &&
                      (p->plant != VR_SITE || p->at == site);
    return slow ? t * p->factor : t;
}

static inline void vr_event(vr_run *v, uint32_t rank, uint32_t call, uint32_t site, double end)
{
    vr_rank *x = &v->rank[rank];
    const uint32_t n = v->p.nranks;
    const int64_t right = (rank + 1) % n, left = (rank + n - 1) % n;
    crn_record r = {.call = call, .comm_rank = rank, .comm_size = n};
    r.ncolumns = crn_call_row(call)->ncolumns;
    if (call == CRN_CALL_MPI_Sendrecv)
        memcpy(r.value, (int64_t[]){10, 0, right, 1, 10, 0, left, 1, 0}, 9 * sizeof *r.value);
    assert_ok(crn_tables_site(&x->tables, (crn_site){.module = 1, .off = site + 1}, &r.site));
    r.start = (uint64_t)x->now;
    r.end = (uint64_t)end;
    crn_build_add(&x->build, &r);
    x->now = end;
}

/* All ranks have computed for a site: the call. */
static inline void vr_call(vr_run *v, uint32_t site, const double *came)
{
    const uint32_t n = v->p.nranks, call = v->p.site[site].call;
    double last = 0;
    for (uint32_t i = 0; i < n; i++)
        last = CRN_MAX(last, came[i]);
    for (uint32_t i = 0; i < n; i++) {
        double ready = last;
        if (call == CRN_CALL_MPI_Sendrecv)
            ready = CRN_MAX(came[i], CRN_MAX(came[(i + 1) % n], came[(i + n - 1) % n]));
        v->rank[i].waited += ready - came[i];
        vr_event(v, i, call, site + 1, ready + vr_between(&v->rng, 2e3, 4e3));
    }
}

static inline void vr_play(vr_run *v)
{
    double came[VR_RANKS];
    for (uint32_t i = 0; i < v->p.nranks; i++) {
        v->rank[i].now = 1000;
        vr_event(v, i, CRN_CALL_MPI_Init, 0, 2000);
    }
    for (uint32_t turn = 0; turn < v->p.turns; turn++) {
        for (uint32_t s = 0; s < v->p.nsites; s++) {
            for (uint32_t i = 0; i < v->p.nranks; i++) {
                const double t = vr_compute(v, i, s);
                v->rank[i].computed += t;
                came[i] = v->rank[i].now += t;
            }
            vr_call(v, s, came);
        }
    }
    for (uint32_t i = 0; i < v->p.nranks; i++) {
        vr_event(v, i, CRN_CALL_MPI_Finalize, VR_SITES + 1, v->rank[i].now + 1000);
        v->lasted = CRN_MAX(v->lasted, v->rank[i].now);
    }
}

/* As a rank of the recorder gets it from another one. */
static inline crn_trace *vr_sent(crn_trace *t)
{
    crn_buf b = {0};
    crn_trace *got;
    assert_ok(crn_trace_encode(t, CRN_TRACE_QUICK, &b));
    crn_trace_free(t);
    assert_ok(crn_trace_decode(b.at, b.n, &got));
    crn_buf_done(&b);
    return got;
}

static inline crn_trace *vr_rank_trace(vr_run *v, uint32_t rank)
{
    vr_rank *x = &v->rank[rank];
    crn_trace *t;
    assert_ok(crn_build_trace(&(crn_build *){&x->build}, 1, &x->tables, rank, v->p.nranks, &t));
    t->program = 1;
    t->precision = 100;
    t->lasted = (uint64_t)v->lasted;
    return t;
}

static inline crn_trace *vr_merged(vr_run *v)
{
    crn_trace *t[VR_RANKS];
    for (uint32_t i = 0; i < v->p.nranks; i++)
        t[i] = vr_rank_trace(v, i);
    for (uint32_t step = 1; step < v->p.nranks; step *= 2)
        for (uint32_t i = 0; i + step < v->p.nranks; i += 2 * step)
            assert_ok(crn_trace_merge(t[i], vr_sent(t[i + step])));
    assert_ok(crn_trace_finish(t[0]));
    return t[0];
}

/* Play the program; the trace of all ranks. *v holds what was done, until vr_done. */
static inline crn_trace *vr_record(vr_run *v, const vr_program *p, uint64_t seed)
{
    uint32_t number;
    *v = (vr_run){.p = *p, .rng = crn_rng_of(seed, 1)};
    for (uint32_t i = 0; i < p->nranks; i++) {
        assert_ok(crn_tables_init(&v->rank[i].tables));
        assert_ok(crn_tables_string(&v->rank[i].tables, "virtual", &number));
        assert_ok(crn_tables_string(&v->rank[i].tables, "MPI_DOUBLE", &number));
        assert_ok(crn_tables_type(&v->rank[i].tables,
                                  &(crn_type){.name = 2, .nbytes = 8, .extent = 8}, &number));
        assert_ok(crn_build_init(&v->rank[i].build, i, 100, true));
    }
    vr_play(v);
    return vr_merged(v);
}

static inline void vr_done(vr_run *v)
{
    for (uint32_t i = 0; i < v->p.nranks; i++) {
        crn_tables_done(&v->rank[i].tables);
        crn_build_done(&v->rank[i].build);
    }
}

#endif
