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

struct crn_local {
    const crn_filter_ops *filter;
    const crn_filter_case *whole;
    const crn_locality *l;
    cells g;
    crn_filter_case c;     /* of a point, */
    crn_filter_plain data; /* and its data: room for cap observations */
    size_t cap;
    uint64_t *number;
    double *taper;      /* of each observation that the point sees */
    uint32_t *block_of; /* the block of each observation; NULL: there are none */
    double *covariance; /* of what is seen of a block */
    CRN_VEC(uint32_t) seen;
    double *rotation; /* NULL: none */
    double *w, *row;
    crn_thin thin;
};

static const uint32_t NO_BLOCK = UINT32_MAX;

void crn_local_free(crn_local *x)
{
    if (!x)
        return;
    cells_done(&x->g);
    crn_filter_plain_done(&x->data);
    free(x->number);
    free(x->taper);
    free(x->block_of);
    free(x->covariance);
    crn_vec_done(&x->seen);
    free(x->rotation);
    free(x->w);
    free(x->row);
    crn_thin_done(&x->thin);
    free(x);
}

static cairn_status index_blocks(crn_local *x)
{
    const crn_filter_case *c = x->whole;
    size_t most = 0;
    if (c->nblocks == 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&x->block_of, c->nobs));
    memset(x->block_of, 0xff, c->nobs * sizeof *x->block_of);
    for (size_t k = 0; k < c->nblocks; k++) {
        most = CRN_MAX(most, c->block[k].n);
        for (size_t i = 0; i < c->block[k].n; i++)
            x->block_of[c->block[k].first + i] = (uint32_t)k;
    }
    return crn_alloc(&x->covariance, most * most);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The observations of one cell that reach a point. */
static cairn_status look_into(crn_local *x, const spot *p, size_t cell)
{
    const cells *g = &x->g;
    for (uint32_t i = g->first[cell]; i < g->first[cell + 1]; i++) {
        uint32_t o = g->member[i];
        x->taper[o] = crn_filter_taper(distance(x->l, p, &g->spot[o]), x->l->radius[o]);
        if (x->taper[o] > 0)
            CRN_TRY(crn_vec_push(&x->seen, o));
    }
    return CAIRN_OK;
}

/* The cells around a point, each once. */
static cairn_status look_around(crn_local *x, const spot *p)
{
    const cells *g = &x->g;
    const crn_locality *l = x->l;
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
            CRN_TRY(look_into(x, p, cell_number(g, at)));
    }
    /* By number: sums must not depend on how space was cut. */
    if (x->seen.n > 1)
        qsort(x->seen.at, x->seen.n, sizeof *x->seen.at, by_number);
    return CAIRN_OK;
}

/* --- the case of a point -------------------------------------------------------------------- */

static cairn_status make_room(crn_local *x, size_t n)
{
    if (n <= x->cap)
        return CAIRN_OK;
    const size_t cap = CRN_MAX(n, 2 * x->cap);
    crn_filter_plain_done(&x->data);
    free(x->number);
    x->data = (crn_filter_plain){.nmembers = x->whole->nmembers};
    x->number = NULL;
    x->cap = 0;
    CRN_TRY(crn_alloc(&x->data.y, cap * x->whole->nmembers));
    CRN_TRY(crn_alloc(&x->data.value, cap));
    CRN_TRY(crn_alloc(&x->data.variance, cap));
    CRN_TRY(crn_alloc(&x->number, cap));
    x->cap = cap;
    return CAIRN_OK;
}

/* Covariances of n observations of block k, from the first-th that is seen on, divided by tapers.
 */
static cairn_status whiten_block(crn_local *x, uint32_t k, size_t first, size_t n)
{
    const crn_filter_block *b = &x->whole->block[k];
    const uint32_t *o = x->seen.at + first;
    for (size_t i = 0; i < n; i++)
        for (size_t m = 0; m < n; m++)
            x->covariance[i + m * n] = b->covariance[(o[i] - b->first) + (o[m] - b->first) * b->n] /
                                       sqrt(x->taper[o[i]] * x->taper[o[m]]);
    return crn_filter_whiten(&x->data, first, n, x->covariance);
}

static cairn_status whiten(crn_local *x)
{
    for (size_t i = 0, n; x->block_of && i < x->seen.n; i += n) {
        const uint32_t k = x->block_of[x->seen.at[i]];
        for (n = 1; k != NO_BLOCK && i + n < x->seen.n && x->block_of[x->seen.at[i + n]] == k;)
            n++;
        if (k != NO_BLOCK)
            CRN_TRY(whiten_block(x, k, i, n));
    }
    return CAIRN_OK;
}

static cairn_status gather(crn_local *x)
{
    const crn_filter_case *w = x->whole;
    const size_t n = x->seen.n;
    CRN_TRY(make_room(x, n));
    x->data.nobs = n;
    for (size_t i = 0; i < n; i++) {
        uint32_t o = x->seen.at[i];
        x->data.value[i] = w->value[o];
        x->data.variance[i] = w->variance[o] / x->taper[o];
        x->number[i] = w->number ? w->number[o] : o;
        for (size_t j = 0; j < w->nmembers; j++)
            x->data.y[i + j * n] = w->y[o + j * w->nobs];
    }
    x->c = *w;
    x->c.nobs = n;
    x->c.nblocks = 0;
    x->c.y = x->data.y;
    x->c.value = x->data.value;
    x->c.variance = x->data.variance;
    x->c.number = x->number;
    return whiten(x);
}

/* --- one point ------------------------------------------------------------------------------ */

static double part_mean(size_t n, double *const *member, size_t i, double *row)
{
    double mean = 0;
    for (size_t j = 0; j < n; j++)
        mean += member[j][i];
    mean /= (double)n;
    for (size_t j = 0; j < n; j++)
        row[j] = member[j][i] - mean;
    return mean;
}

/* new = old times the n by n matrix m. */
static void times(size_t n, const double *old, const double *m, double *new)
{
    for (size_t k = 0; k < n; k++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++)
            sum += old[j] * m[j + k * n];
        new[k] = sum;
    }
}

static cairn_status update_by_weights(crn_local *x, double *const *member, size_t i)
{
    const size_t n = x->c.nmembers;
    double *const new = x->row + n;
    CRN_TRY(crn_filter_weights_rotated(x->filter, &x->c, x->rotation, x->w));
    double mean = part_mean(n, member, i, x->row);
    times(n, x->row, x->w, new);
    for (size_t k = 0; k < n; k++)
        member[k][i] = mean + new[k];
    return CAIRN_OK;
}

/* As crn_filter_weights_rotated finishes weights, for one row. */
static cairn_status update_thin(crn_local *x, double *const *member, size_t i)
{
    const size_t n = x->c.nmembers;
    const double prior = crn_filter_prior(&x->c), rtpp = x->c.rtpp;
    double *row = x->row, *old = row + n;
    CRN_TRY(crn_thin_set(&x->thin, x->filter, &x->c));
    double mean = part_mean(n, member, i, row);
    memcpy(old, row, n * sizeof *old);
    mean += prior * crn_thin_apply(&x->thin, row);
    for (size_t j = 0; j < n; j++)
        row[j] = (1 - rtpp) * prior * row[j] + rtpp * old[j];
    if (x->rotation) {
        times(n, row, x->rotation, old);
        row = old;
    }
    for (size_t j = 0; j < n; j++)
        member[j][i] = mean + x->c.inflation * row[j];
    return CAIRN_OK;
}

/* --- all ------------------------------------------------------------------------------------ */

static cairn_status check(const crn_filter_case *c, const crn_locality *l)
{
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

static cairn_status create(crn_local *x)
{
    const crn_filter_case *c = x->whole;
    const size_t n = c->nmembers;
    CRN_TRY(cells_init(&x->g, x->l, c->nobs));
    CRN_TRY(crn_alloc(&x->taper, c->nobs));
    CRN_TRY(index_blocks(x));
    CRN_TRY(crn_alloc(&x->w, n * n));
    CRN_TRY(crn_alloc(&x->row, 2 * n));
    if (!c->rotate)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&x->rotation, n * n));
    return crn_filter_rotation_of(c, x->rotation);
}

cairn_status crn_local_create(const crn_filter_ops *filter, const crn_filter_case *c,
                              const crn_locality *l, crn_local **ret)
{
    crn_local *x;
    CRN_TRY(crn_filter_check(c));
    CRN_TRY(check(c, l));
    CRN_TRY(crn_alloc(&x, 1));
    x->filter = filter;
    x->whole = c;
    x->l = l;
    cairn_status rc = create(x);
    if (rc < 0)
        crn_local_free(x);
    else
        *ret = x;
    return rc;
}

cairn_status crn_local_update(crn_local *x, size_t npoints, const double *point,
                              double *const *member)
{
    CRN_FAIL_IF(!point, CAIRN_EINVAL, "a local filter needs the coordinates of the field's points");
    for (size_t i = 0; i < npoints; i++) {
        spot p = spot_of(x->l, point + i * (size_t)x->l->ndims);
        CRN_TRY(look_around(x, &p));
        CRN_TRY(gather(x));
        CRN_TRY(x->filter->slope && x->c.nobs < x->c.nmembers ? update_thin(x, member, i)
                                                              : update_by_weights(x, member, i));
    }
    return CAIRN_OK;
}

cairn_status crn_filter_update_local(const crn_filter_ops *filter, const crn_filter_case *c,
                                     const crn_locality *l, size_t npoints, const double *point,
                                     double *const *member)
{
    crn_local *x;
    CRN_TRY(crn_local_create(filter, c, l, &x));
    cairn_status rc = crn_local_update(x, npoints, point, member);
    crn_local_free(x);
    return rc;
}
