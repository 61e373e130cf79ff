/* SPDX-License-Identifier: BSD-3-Clause
 *
 * observe: the observations of a study, and how a state would be observed. Row 3: stands on base
 * and, for files in HDF5 or netCDF-4, on hdf5.
 *
 * An observation is a sparse row over the elements of fields: entries (field, element of the global
 * array, weight) in a fixed order. Whoever has a piece of a member picks the values of those
 * entries whose elements are in the piece; each element has one owner, so that the entries of all
 * pieces are put together by adding (where all but one are zero), and then every row is summed in
 * the order of its entries. Any decomposition gives the same bits.
 *
 *     crn_obs_open(&setup, &obs);
 *     crn_obs_cycle(obs, cycle, &set);                    the observations of a cycle
 *     memset(entry, 0, set->nentries * sizeof *entry);
 *     crn_obs_pick(set, 0, f, &piece, entry);             for each field and piece of a member
 *     ... entries of several processes are added ...
 *     crn_obs_apply(set, entry, y);                       the member as it would be observed
 *     logw = crn_obs_loglik(set, y);                      for a particle's weight
 *     crn_obs_set_free(set);
 *
 * docs/guide/ensemble.md describes the files.
 */
#ifndef CAIRN_OBSERVE_OBSERVE_H
#define CAIRN_OBSERVE_OBSERVE_H

#include <cairn/observe.h>

#include "base/base.h"

enum {
    CRN_OBS_DIMS = 3,
    CRN_OBS_NAME = 64,
    CRN_OBS_BLOCK = 4096 /* observations whose errors are correlated, at most */
};

#define CRN_OBS_NONE UINT32_MAX

/* --- what is observed ----------------------------------------------------------------------- */

/* The space in which observations and elements have places. */
typedef struct crn_obs_space {
    int ndims;                   /* 0: there are no places; 1 to 3 */
    double period[CRN_OBS_DIMS]; /* 0: not periodic */
    double sphere;               /* its radius, where the first two are longitude and latitude in
                                    degrees; 0: a plane */
    double vertical;             /* how far one unit of the third coordinate counts; 0: as others */
} crn_obs_space;

/* How one coordinate runs over the elements of a field. */
typedef struct crn_obs_axis {
    int dim;             /* of the array; -1: all elements have the coordinate origin */
    double origin, step; /* of element 0, and from one to the next */
    const double *at;    /* or of each element, rising or falling; NULL */
} crn_obs_axis;

typedef struct crn_obs_field {
    const char *name;
    int ndims;
    uint64_t global[CRN_DIMS_MAX];
    bool placed; /* axis, or point, says where its elements are */
    crn_obs_axis axis[CRN_OBS_DIMS];
    const double *point; /* the place of each element, for grids without axes; NULL */
} crn_obs_field;

typedef enum crn_obs_kind {
    CRN_OBS_AUTO, /* by index where observations have one, else by interpolation */
    CRN_OBS_INDEX,
    CRN_OBS_INTERPOLATE, /* multilinear */
    CRN_OBS_COLUMN,      /* a sum along a dimension, interpolated in the others */
    CRN_OBS_PLUGIN
} crn_obs_kind;

typedef struct crn_obs_type {
    char name[CRN_OBS_NAME];
    const char *field; /* NULL: that of the same name; a plug-in needs none */
    crn_obs_kind kind;
    double radius;      /* of the taper of local filters; INFINITY */
    double variance;    /* for observations that have none of their own; 0: they must have */
    double correlation; /* length: errors of one block are correlated by exp(-distance / length) */
    int along;          /* the dimension of a column */
    const double *weight; /* of the elements along it; NULL: 1 each */
    size_t nweights;
    uint64_t fixed[CRN_DIMS_MAX]; /* the index in dimensions that no axis runs along */
    const char *plugin;           /* "file:name" */
} crn_obs_type;

typedef struct crn_obs_setup {
    const char *path; /* of the observations: text or HDF5; borrowed, as all, until crn_obs_close */
    uint64_t steps;   /* of the model in a cycle */
    double start;     /* the time at which the first cycle begins, */
    double step;      /* and of one step: for files with times */
    crn_obs_space space;
    const crn_obs_field *field; /* and what may be declared of them */
    size_t nfields;
    const crn_obs_type *type; /* those that need not be declared: types by a field's name */
    size_t ntypes;
    double radius; /* of these; 0: none */
} crn_obs_setup;

typedef struct crn_obs crn_obs;

/* Read them all. CAIRN_EINVAL says what is wrong, and in which line or dataset; CAIRN_ENOTFOUND,
 * CAIRN_EIO, CAIRN_EUNSUPPORTED (a file in HDF5, and no such library), CAIRN_ENOMEM. */
cairn_status crn_obs_open(const crn_obs_setup *setup, crn_obs **ret);
void crn_obs_close(crn_obs *o); /* NULL is allowed */

/* Add an observation without a value, of a type of the set-up: path "" reads no file. Cycles must
 * not go back. */
cairn_status crn_obs_invent(crn_obs *o, uint32_t type, uint64_t cycle, const double *place,
                            double variance);

uint64_t crn_obs_count(const crn_obs *o); /* of all cycles */

/* Of cycles 1 to ncycles: how many have observations; and how many observations are of no cycle. */
void crn_obs_cover(const crn_obs *o, uint64_t ncycles, uint64_t *ret_with, uint64_t *ret_late);
size_t crn_obs_ntypes(const crn_obs *o); /* those of the set-up, then others as they come */
const crn_obs_type *crn_obs_type_at(const crn_obs *o, size_t i);

/* --- the observations of a cycle ------------------------------------------------------------ */

typedef enum crn_obs_flag {
    CRN_OBS_USED,
    CRN_OBS_NOT_FINITE, /* value or variance */
    CRN_OBS_OUTSIDE,    /* of the domain */
    CRN_OBS_FAR         /* from what the ensemble expects */
} crn_obs_flag;

const char *crn_obs_flag_name(crn_obs_flag flag); /* as in the list of those left out */

typedef struct crn_obs_entry {
    uint64_t index; /* of the global array */
    uint32_t field; /* CRN_OBS_NONE: a sum of a plug-in */
    double weight;
} crn_obs_entry;

/* Observations that follow one another and whose errors are correlated. */
typedef struct crn_obs_block {
    size_t first, n;
    double *covariance; /* n by n */
    double *root;       /* L of covariance = L L^T, column by column; 0 above its diagonal */
} crn_obs_block;

typedef struct crn_obs_item {
    uint64_t number; /* within its cycle, whatever is left out: keys random numbers */
    uint32_t type;
    uint64_t step; /* within the cycle, 1 to the steps of a cycle: when it was made */
    double time, value, variance;
    uint64_t index; /* UINT64_MAX: none */
    double place[CRN_OBS_DIMS];
    bool placed;
    uint32_t group; /* of the file: those with the same have correlated errors; CRN_OBS_NONE */
    uint32_t rank;  /* within the group, whatever is left out */
    size_t entry, nentries;
} crn_obs_item;

/* One that was left out. */
typedef struct crn_obs_rejected {
    crn_obs_item item;
    crn_obs_flag flag;
    double innovation, bound; /* of CRN_OBS_FAR */
} crn_obs_rejected;

typedef struct crn_obs_set {
    const crn_obs *obs;
    uint64_t cycle;
    size_t n, nentries;
    crn_obs_item *item;
    crn_obs_entry *entry;
    crn_obs_block *block; /* in the order of their first observations */
    size_t nblocks;
    CRN_VEC(crn_obs_rejected) rejected;
} crn_obs_set;

/* CAIRN_EINVAL: an observation of a field or element that is not there, covariances that are not
 * positive definite, a plug-in that fails. A cycle without observations has an empty set. */
cairn_status crn_obs_cycle(const crn_obs *o, uint64_t cycle, crn_obs_set **ret);
void crn_obs_set_free(crn_obs_set *set); /* NULL is allowed */

/* Leave out those for which flag[i] is not CRN_OBS_USED; innovation and bound (n each) are noted.
 */
cairn_status crn_obs_reject(crn_obs_set *set, const crn_obs_flag *flag, const double *innovation,
                            const double *bound);

/* The first step of the cycle after the given one at which observations were made; 0: none. */
uint64_t crn_obs_next_step(const crn_obs_set *set, uint64_t after);

/*
 * The values of entries whose elements are in a piece of field number field (of the set-up), which
 * is of type float32 or float64, into entry (nentries); others stay as they are: begin with zeros.
 * step: of observations made at that step of the cycle only; 0: of all. CAIRN_EINVAL: a plug-in
 * fails.
 */
cairn_status crn_obs_pick(const crn_obs_set *set, uint64_t step, uint32_t field,
                          const cairn_field *piece, double *entry);

/* y[i] from all of the entries of observation i. */
void crn_obs_apply(const crn_obs_set *set, const double *entry, double *y);

/*
 * The logarithm of the Gaussian likelihood of a member that would be observed as y, without its
 * constant: -1/2 (value - y)^T R^-1 (value - y). So it is never above 0, and 0 when all agree;
 * -INFINITY when a y is not finite.
 */
double crn_obs_loglik(const crn_obs_set *set, const double *y);

/* The place of an element of a field; false: its field has none. */
bool crn_obs_place_of(const crn_obs_space *space, const crn_obs_field *field, uint64_t index,
                      double *place);

/* How far two places are from each other. */
double crn_obs_distance(const crn_obs_space *space, const double *a, const double *b);

/* --- arrays for others ---------------------------------------------------------------------- */

typedef struct crn_obs_file crn_obs_file;

/* A new file in HDF5; arrays of double by their paths in it; and its name, once all is there.
 * CAIRN_EUNSUPPORTED: there is no HDF5. CAIRN_EIO, CAIRN_ENOMEM. */
cairn_status crn_obs_file_create(const char *path, crn_obs_file **ret);
cairn_status crn_obs_file_put(crn_obs_file *f, const char *name, int ndims, const uint64_t *dims,
                              const double *data);
cairn_status crn_obs_file_close(crn_obs_file *f); /* also frees it */
void crn_obs_file_free(crn_obs_file *f);          /* gives it up; NULL is allowed */

typedef struct crn_obs_array {
    int ndims;
    uint64_t dims[CRN_DIMS_MAX], n;
    double *data; /* the caller's to free */
} crn_obs_array;

/* An array of such a file. CAIRN_NOTHING: it is not there; CAIRN_ENOTFOUND: the file is not. */
cairn_status crn_obs_file_get(const char *path, const char *name, crn_obs_array *ret);

typedef struct crn_obs_name {
    char text[CRN_OBS_NAME];
} crn_obs_name;

typedef CRN_VEC(crn_obs_name) crn_obs_names;

/* What is in a group of it. */
cairn_status crn_obs_file_names(const char *path, const char *group, crn_obs_names *ret);

#endif
