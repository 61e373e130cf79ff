/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Local analysis (Hunt, Kostelich and Szunyogh 2007, section 2.3): each point of a field has an
 * analysis of its own, with the observations around it, whose errors grow with their distance (the
 * inverse of the variance is multiplied with a taper). Any filter of the table may be local; the
 * LETKF is the ETKF made so.
 *
 * Observations are found by cells: space is cut into cubes no smaller than the farthest reach of a
 * taper, so a point looks into its own cube and the neighbours, whatever the number of
 * observations. On a sphere, places are points in space, and distances are those along the surface.
 */
#include "filter/filter_ops.h"

#include <math.h>

enum { SPACE = 4 }; /* x, y, z and the vertical of a sphere */

/* The scale of Gaspari and Cohn's function, in radii: it ends at two scales. */
static const double GC_SCALE = 1.82;

double crn_filter_taper(double distance, double radius)
{
    double r = distance / (GC_SCALE * radius);
    if (!(r < 2)) /* also NaN */
        return 0;
    double r2 = r * r, r3 = r2 * r;
    if (r <= 1)
        return 1 + r2 * (-r3 / 4 + r2 / 2) + r3 * 5 / 8 - r2 * 5 / 3;
    return r2 * (r3 / 12 - r2 / 2) + r3 * 5 / 8 + r2 * 5 / 3 - r * 5 + 4 - 2 / (3 * r);
}

/* An observation or a point as distances need it. */
typedef struct spot {
    double x[SPACE];
} spot;

/* A coordinate within its period. */
static double wrap(double x, double period)
{
    return period > 0 ? x - period * floor(x / period) : x;
}

static spot spot_of(const crn_locality *l, const double *place)
{
    spot s = {{0}};
    if (!(l->sphere > 0)) {
        for (int d = 0; d < l->ndims; d++)
            s.x[d] = wrap(place[d], l->period[d]);
        return s;
    }
    double lon = place[0] * M_PI / 180, lat = place[1] * M_PI / 180;
    s.x[0] = l->sphere * cos(lat) * cos(lon);
    s.x[1] = l->sphere * cos(lat) * sin(lon);
    s.x[2] = l->sphere * sin(lat);
    s.x[3] = l->ndims > 2 ? place[2] : 0;
    return s;
}

/* The vertical axis: the last of three. Its distances count as so many of the others. */
static int vertical_axis(const crn_locality *l)
{
    return l->ndims < 3 ? -1 : l->sphere ? 3 : 2;
}

static double distance(const crn_locality *l, const spot *a, const spot *b)
{
    double sum = 0, up = 0;
    for (int d = 0; d < SPACE; d++) {
        double x = fabs(a->x[d] - b->x[d]);
        if (!l->sphere && d < l->ndims && l->period[d] > 0)
            x = fmin(x, l->period[d] - x);
        if (d == vertical_axis(l) && l->vertical > 0)
            up = x * l->vertical;
        else
            sum += x * x;
    }
    double across = sqrt(sum); /* a chord, on a sphere */
    if (l->sphere)
        across = 2 * l->sphere * asin(fmin(across / (2 * l->sphere), 1));
    return up > 0 ? hypot(across, up) : across;
}

/* Observations by cells. */
typedef struct cells {
    spot *spot;          /* of each observation */
    double from[SPACE];  /* the lowest corner */
    double width[SPACE]; /* of a cell; 0: one cell has all of the axis */
    int64_t ncells[SPACE];
    uint32_t *first, *member; /* the observations of cell i: member[first[i]] to first[i + 1] - 1,
                                 ascending */
    size_t n;
} cells;

static void cells_done(cells *g)
{
    free(g->spot);
    free(g->first);
    free(g->member);
}

static int64_t cell_along(const cells *g, int d, double x)
{
    if (g->ncells[d] == 1)
        return 0;
    double at = floor((x - g->from[d]) / g->width[d]);
    return (int64_t)fmin(fmax(at, -1), (double)g->ncells[d]);
}

static size_t cell_number(const cells *g, const int64_t at[SPACE])
{
    int64_t n = 0;
    for (int d = 0; d < SPACE; d++)
        n = n * g->ncells[d] + CRN_MIN(CRN_MAX(at[d], 0), g->ncells[d] - 1);
    return (size_t)n;
}

/* How many cells along an axis: none narrower than the reach, and no more in all than there are
 * observations. */
static void cut_axis(cells *g, const crn_locality *l, int d, double reach, double lo, double hi,
                     double most)
{
    bool periodic = !l->sphere && d < l->ndims && l->period[d] > 0;
    double extent = periodic ? l->period[d] : hi - lo;
    double scale = d == vertical_axis(l) && l->vertical > 0 ? l->vertical : 1;
    double n = floor(fmin(extent * scale / reach, most));
    g->from[d] = periodic ? 0 : lo;
    g->ncells[d] = n >= 3 ? (int64_t)n : 1; /* fewer would meet themselves around a period */
    g->width[d] = g->ncells[d] > 1 ? extent / (double)g->ncells[d] : 0;
}

static void cut(cells *g, const crn_locality *l, size_t nobs)
{
    double reach = 0, lo[SPACE], hi[SPACE];
    for (size_t i = 0; i < nobs; i++) {
        reach = fmax(reach, 2 * GC_SCALE * l->radius[i]);
        for (int d = 0; d < SPACE; d++) {
            lo[d] = i ? fmin(lo[d], g->spot[i].x[d]) : g->spot[i].x[d];
            hi[d] = i ? fmax(hi[d], g->spot[i].x[d]) : g->spot[i].x[d];
        }
    }
    double most = fmax(1, (double)nobs);
    g->n = 1;
    for (int d = 0; d < SPACE; d++) {
        g->ncells[d] = 1;
        if (nobs > 0)
            cut_axis(g, l, d, reach, lo[d], hi[d], most);
        most /= (double)g->ncells[d];
        g->n *= (size_t)g->ncells[d];
    }
}

static cairn_status cells_init(cells *g, const crn_locality *l, size_t nobs)
{
    CRN_TRY(crn_alloc(&g->spot, nobs));
    for (size_t i = 0; i < nobs; i++)
        g->spot[i] = spot_of(l, l->place + i * (size_t)l->ndims);
    cut(g, l, nobs);
    CRN_TRY(crn_alloc(&g->first, g->n + 2));
    CRN_TRY(crn_alloc(&g->member, nobs));
    for (int pass = 0; pass < 2; pass++) { /* count, then place: first[c + 1] runs along */
        for (size_t i = 0; i < nobs; i++) {
            int64_t at[SPACE];
            for (int d = 0; d < SPACE; d++)
                at[d] = cell_along(g, d, g->spot[i].x[d]);
            size_t c = cell_number(g, at);
            if (pass == 0)
                g->first[c + 2]++;
            else
                g->member[g->first[c + 1]++] = (uint32_t)i;
        }
        for (size_t c = 0; pass == 0 && c < g->n; c++)
            g->first[c + 2] += g->first[c + 1];
    }
    return CAIRN_OK;
}

/* Observations that a point sees, and its own case. */
typedef struct local {
    const crn_filter_case *whole;
    crn_filter_case c;
    double *y, *value, *variance, *taper;
    uint64_t *number;
    CRN_VEC(uint32_t) seen;
} local;

static void local_done(local *x)
{
    free(x->y);
    free(x->value);
    free(x->variance);
    free(x->taper);
    free(x->number);
    crn_vec_done(&x->seen);
}

static cairn_status local_init(local *x, const crn_filter_case *c)
{
    x->whole = c;
    CRN_TRY(crn_alloc(&x->y, c->nobs * c->nmembers));
    CRN_TRY(crn_alloc(&x->value, c->nobs));
    CRN_TRY(crn_alloc(&x->variance, c->nobs));
    CRN_TRY(crn_alloc(&x->taper, c->nobs));
    return crn_alloc(&x->number, c->nobs);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The observations of one cell that reach a point. */
static cairn_status look_into(local *x, const cells *g, const crn_locality *l, const spot *p,
                              size_t cell)
{
    for (uint32_t i = g->first[cell]; i < g->first[cell + 1]; i++) {
        uint32_t o = g->member[i];
        x->taper[o] = crn_filter_taper(distance(l, p, &g->spot[o]), l->radius[o]);
        if (x->taper[o] > 0)
            CRN_TRY(crn_vec_push(&x->seen, o));
    }
    return CAIRN_OK;
}

/* The cells around a point, each once. */
static cairn_status look_around(local *x, const cells *g, const crn_locality *l, const spot *p)
{
    int64_t mid[SPACE], at[SPACE];
    for (int d = 0; d < SPACE; d++)
        mid[d] = cell_along(g, d, p->x[d]);
    x->seen.n = 0;
    for (int turn = 0; turn < 81; turn++) {
        bool inside = true;
        for (int d = 0, rest = turn; d < SPACE; d++, rest /= 3) {
            int64_t n = g->ncells[d];
            bool periodic = !l->sphere && d < l->ndims && l->period[d] > 0;
            at[d] = mid[d] + rest % 3 - 1;
            if (periodic && n > 1)
                at[d] = (at[d] + n) % n;
            inside = inside && at[d] >= 0 && at[d] < n;
        }
        if (inside)
            CRN_TRY(look_into(x, g, l, p, cell_number(g, at)));
    }
    /* By number: sums must not depend on how space was cut. */
    if (x->seen.n > 1)
        qsort(x->seen.at, x->seen.n, sizeof *x->seen.at, by_number);
    return CAIRN_OK;
}

static void gather(local *x)
{
    const crn_filter_case *w = x->whole;
    const size_t n = x->seen.n;
    for (size_t i = 0; i < n; i++) {
        uint32_t o = x->seen.at[i];
        x->value[i] = w->value[o];
        x->variance[i] = w->variance[o] / x->taper[o];
        x->number[i] = w->number ? w->number[o] : o;
        for (size_t j = 0; j < w->nmembers; j++)
            x->y[i + j * n] = w->y[o + j * w->nobs];
    }
    x->c = *w;
    x->c.nobs = n;
    x->c.y = x->y;
    x->c.value = x->value;
    x->c.variance = x->variance;
    x->c.number = x->number;
}

static cairn_status check(const crn_filter_case *c, const crn_locality *l, const double *point)
{
    CRN_FAIL_IF(!point, CAIRN_EINVAL, "a local filter needs the coordinates of the field's points");
    CRN_FAIL_IF(c->nobs > 0 && (!l->place || !l->radius), CAIRN_EINVAL,
                "a local filter needs the coordinates and the radius of every observation");
    CRN_FAIL_IF(l->ndims < 1 || l->ndims > 3 || (l->sphere && l->ndims < 2), CAIRN_EINVAL,
                "places of %d dimensions: 1 to 3, on a sphere 2 or 3", l->ndims);
    CRN_FAIL_IF(c->nobs > UINT32_MAX, CAIRN_EINVAL, "more than 2^32 observations");
    for (size_t i = 0; i < c->nobs; i++) {
        CRN_FAIL_IF(!(l->radius[i] > 0), CAIRN_EINVAL, "observation %zu has the radius %g", i,
                    l->radius[i]);
        for (int d = 0; d < l->ndims; d++)
            CRN_FAIL_IF(!isfinite(l->place[i * (size_t)l->ndims + (size_t)d]), CAIRN_EINVAL,
                        "observation %zu has no place", i);
    }
    return CAIRN_OK;
}

static cairn_status update_point(const crn_filter_ops *filter, local *x, const double *rotation,
                                 double *w, double *const *member, size_t i)
{
    const size_t n = x->c.nmembers;
    double *old = w + n * n, mean = 0;
    CRN_TRY(crn_filter_weights_rotated(filter, &x->c, rotation, w));
    for (size_t j = 0; j < n; j++)
        mean += member[j][i];
    mean /= (double)n;
    for (size_t j = 0; j < n; j++)
        old[j] = member[j][i] - mean;
    for (size_t k = 0; k < n; k++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++)
            sum += old[j] * w[j + k * n];
        member[k][i] = mean + sum;
    }
    return CAIRN_OK;
}

cairn_status crn_filter_update_local(const crn_filter_ops *filter, const crn_filter_case *c,
                                     const crn_locality *l, size_t npoints, const double *point,
                                     double *const *member)
{
    const size_t n = c->nmembers;
    cells g = {0};
    local x = {0};
    double *w = NULL, *rotation = NULL;
    cairn_status rc;
    CRN_TRY(crn_filter_check(c));
    CRN_TRY(check(c, l, point));
    CRN_TRY_OUT(rc, cells_init(&g, l, c->nobs));
    CRN_TRY_OUT(rc, local_init(&x, c));
    CRN_TRY_OUT(rc, crn_alloc(&w, n * n + n));
    CRN_TRY_OUT(rc, crn_alloc(&rotation, n * n));
    if (c->rotate)
        CRN_TRY_OUT(rc, crn_filter_rotation_of(c, rotation));
    for (size_t i = 0; i < npoints; i++) {
        spot p = spot_of(l, point + i * (size_t)l->ndims);
        CRN_TRY_OUT(rc, look_around(&x, &g, l, &p));
        gather(&x);
        CRN_TRY_OUT(rc, update_point(filter, &x, c->rotate ? rotation : NULL, w, member, i));
    }
out:
    cells_done(&g);
    local_done(&x);
    free(w);
    free(rotation);
    return rc;
}
