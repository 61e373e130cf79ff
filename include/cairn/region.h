/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Regions: the program says what it touches, and Cairn finds what a mark must keep, and where.
 *
 *     cairn_protect(c, "density", density, CAIRN_FLOAT64, n);      as ever
 *     cairn_var density_ = cairn_variable(c, "density"), ...;      a handle for each
 *     cairn_regions(c, NULL);                                      from here on regions count
 *     for (step = 0; step < nsteps; step++) {
 *         if (cairn_region(c, "advance", CAIRN_R(density_), CAIRN_W(flux_)))
 *             advance(density, flux);
 *         if (cairn_region(c, "sum", CAIRN_R(flux_)))
 *             dt = smallest(flux);
 *         cairn_value(c, &dt, sizeof dt);                          it steers the program
 *         cairn_due(c);                                            marks are taken by themselves
 *     }
 *
 * A mark begins before a region, its place, and ends some regions later. What these read before it
 * is overwritten is kept, copied at that moment; what they overwrite first is not, nor what no
 * region has written since the end of the initialisation phase. When the program is started again,
 * it runs from its start: cairn_region says that bodies are to be skipped, and cairn_value gives
 * the values that were, until the place is reached; there the data comes back.
 *
 * So everything that changes protected data stands in regions, messages between ranks, too; and all
 * that a program's course depends on and that comes out of a region passes through cairn_value. All
 * ranks meet the same regions in the same order.
 *
 * The ranks agree on marks in cairn_due, and on their end in cairn_reduce, too; both are
 * collective, and one cairn_due belongs into every step. cairn_due answers false to a program with
 * regions. Versions of marks are counts of regions. A mark whose end is not reached is given up,
 * and the one before it stands.
 */
#ifndef CAIRN_REGION_H
#define CAIRN_REGION_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/ckpt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A protected variable; 0 is none. */
typedef uint32_t cairn_var;

/* What a region does with a variable, or with a box of it. */
typedef struct cairn_access {
    cairn_var var;
    unsigned how;            /* CAIRN_READS, CAIRN_WRITES, or both */
    const uint64_t *lo, *hi; /* an index for each dimension; NULL: all of the variable */
} cairn_access;

enum { CAIRN_READS = 1, CAIRN_WRITES = 2 };

/* Reads; overwrites all of it, whatever was there; reads and writes. And the same for a box, from
 * lo up to, not including, hi. Writing only some elements is CAIRN_RW, or CAIRN_W_BOX of them. */
#define CAIRN_R(var)              cairn_access_of((var), CAIRN_READS, NULL, NULL)
#define CAIRN_W(var)              cairn_access_of((var), CAIRN_WRITES, NULL, NULL)
#define CAIRN_RW(var)             cairn_access_of((var), CAIRN_READS | CAIRN_WRITES, NULL, NULL)
#define CAIRN_R_BOX(var, lo, hi)  cairn_access_of((var), CAIRN_READS, (lo), (hi))
#define CAIRN_W_BOX(var, lo, hi)  cairn_access_of((var), CAIRN_WRITES, (lo), (hi))
#define CAIRN_RW_BOX(var, lo, hi) cairn_access_of((var), CAIRN_READS | CAIRN_WRITES, (lo), (hi))

/* The same under short names, for a file that defines CAIRN_SHORT_NAMES before it includes this:
 *     if (cairn_region(c, SITE("accelerate"), R(density0), W(xvel1), W_BOX(yvel1, lo, hi))) ... */
#ifdef CAIRN_SHORT_NAMES
#define R(var)              CAIRN_R(var)
#define W(var)              CAIRN_W(var)
#define RW(var)             CAIRN_RW(var)
#define R_BOX(var, lo, hi)  CAIRN_R_BOX(var, lo, hi)
#define W_BOX(var, lo, hi)  CAIRN_W_BOX(var, lo, hi)
#define RW_BOX(var, lo, hi) CAIRN_RW_BOX(var, lo, hi)
#define SITE(name)          (name)
#endif

static inline cairn_access cairn_access_of(cairn_var var, unsigned how, const uint64_t *lo,
                                           const uint64_t *hi)
{
    cairn_access a;
    a.var = var;
    a.how = how;
    a.lo = lo;
    a.hi = hi;
    return a;
}

typedef struct cairn_region_options {
    size_t struct_bytes;
    uint64_t regions;      /* of a look-ahead, at most; what is undecided then is kept; 0: 300 */
    double seconds;        /* likewise; 0: 2, or what so many regions take, if that is longer */
    uint64_t log_bytes;    /* that values and regions may take; 0: 64 MiB */
    const char *place;     /* the site at which alone marks begin; NULL: Cairn chooses */
    const cairn_var *keep; /* all that marks keep, as it is at the place, which has to be named */
    size_t nkeep;          /* so many; 0: what the accesses behind the place need */
} cairn_region_options;

/*
 * A handle for a protected variable; 0 on failure, and cairn_last_error says why. Not collective.
 * Its indices are those of the piece of a global array, or, of another variable, of one dimension;
 * cairn_variable_shaped lets it have several, whose extents make up its elements.
 */
CAIRN_API cairn_var cairn_variable(cairn *c, const char *name);
CAIRN_API cairn_var cairn_variable_shaped(cairn *c, const char *name, int ndims,
                                          const uint64_t *extent);

/* Keep a variable in every mark, whatever regions do with it; or never. CAIRN_EINVAL also when the
 * other was asked for. */
CAIRN_API int cairn_always(cairn *c, cairn_var var);
CAIRN_API int cairn_never(cairn *c, cairn_var var);

/*
 * Begin: from here on regions count. Collective; instead of cairn_resume. how may be NULL.
 * CAIRN_OK: there is a mark, and the program is on its way back to it; CAIRN_NOTHING: there is
 * none. CAIRN_EMISMATCH (the mark was not taken by regions, or the ranks' values differ and their
 * number is another), CAIRN_EINVAL (options that contradict each other or what was said before),
 * and as cairn_probe.
 */
CAIRN_API CAIRN_CHECK int cairn_regions(cairn *c, const cairn_region_options *how);

/*
 * The end of the initialisation phase, at most once: what was written before it, and not since, is
 * kept in no mark, for on the way back the program does that phase again. CAIRN_EINVAL after the
 * first mark, or when said twice.
 */
CAIRN_API int cairn_initialised(cairn *c);

/*
 * A region is next. site is its name, unique in the program. 1: it is to be done; 0: skipped; on a
 * failure the negative code, which is true for 'if' as well: CAIRN_EMISMATCH when the program that
 * was marked was at another site, or one with other accesses, CAIRN_EINVAL for an access that is
 * none. After a failure no marks are taken.
 */
CAIRN_API int cairn_region_enter(cairn *c, const char *site, const cairn_access *access, size_t n);

#ifdef __cplusplus
#define cairn_region(c, site, ...)                                                                 \
    ([&]() {                                                                                       \
        const cairn_access cairn_list_[] = {__VA_ARGS__};                                          \
        return cairn_region_enter((c), (site), cairn_list_,                                        \
                                  sizeof cairn_list_ / sizeof *cairn_list_);                       \
    }())
#else
#define cairn_region(c, site, ...)                                                                 \
    cairn_region_enter((c), (site), (cairn_access[]){__VA_ARGS__},                                 \
                       sizeof((cairn_access[]){__VA_ARGS__}) / sizeof(cairn_access))
#endif

/*
 * A scope: a piece of the program in which not all work is declared. It encloses regions and other
 * work, and its body ends with cairn_scope_end:
 *
 *     if (cairn_scope(c, "chemistry")) {
 *         prepare(table);                                  nobody says what this touches
 *         if (cairn_region(c, "react", CAIRN_RW(species))) ...
 *         cairn_scope_end(c);
 *     }
 *     cairn_value(c, &nsteps, sizeof nsteps);              what leaves the scope
 *
 * Work that no region declares may touch every variable that no region of the scope mentions, and
 * none that one does. So a mark keeps the former as they are when the scope begins, or, if its
 * place lies in the scope, as they are there. Accesses that the scope itself is given say of these
 * variables that nothing else is done with them besides. On the way back a scope is skipped as a
 * whole, values and all, unless the place lies in it; its values are then no longer in the log.
 * Scopes may be nested. Results as of a region. CAIRN_EINVAL from cairn_scope_end: none is open.
 */
CAIRN_API int cairn_scope_enter(cairn *c, const char *site, const cairn_access *access, size_t n);
CAIRN_API int cairn_scope_end(cairn *c);

/* cairn_scope(c, site, access, ...), with or without accesses. */
#define cairn_scope(c, ...) cairn_scope_of_(c, __VA_ARGS__, cairn_access_of(0, 0, NULL, NULL))
#ifdef __cplusplus
#define cairn_scope_of_(c, site, ...)                                                              \
    ([&]() {                                                                                       \
        const cairn_access cairn_list_[] = {__VA_ARGS__};                                          \
        return cairn_scope_enter((c), (site), cairn_list_,                                         \
                                 sizeof cairn_list_ / sizeof *cairn_list_ - 1);                    \
    }())
#else
#define cairn_scope_of_(c, site, ...)                                                              \
    cairn_scope_enter((c), (site), (cairn_access[]){__VA_ARGS__},                                  \
                      sizeof((cairn_access[]){__VA_ARGS__}) / sizeof(cairn_access) - 1)
#endif

/*
 * A value that leaves the computation and steers the program. On the way back it becomes what it
 * was. CAIRN_OK; CAIRN_EMISMATCH (no value was next, or one of another size), CAIRN_ENOMEM.
 */
CAIRN_API int cairn_value(cairn *c, void *value, size_t nbytes);

/* How numbers are combined over the ranks. */
typedef enum cairn_reduction {
    CAIRN_MIN = 0, /* the smallest, */
    CAIRN_MAX = 1, /* the largest, */
    CAIRN_SUM = 2  /* or all together, in an order that is MPI's */
} cairn_reduction;

/* The same for n numbers that are first combined over the ranks. Collective, but not on the way
 * back. A sum may depend on the number of ranks. */
CAIRN_API int cairn_reduce(cairn *c, double *value, size_t n, cairn_reduction how);

/*
 * A forward point: the payload is all that the program needs to go on from here, such as its step.
 * On the way back it becomes what it was at the last such point before the mark, and what came
 * before that is neither replayed nor logged any more. Outside of scopes. CAIRN_OK, as cairn_value;
 * CAIRN_EINVAL.
 */
CAIRN_API int cairn_forward(cairn *c, void *payload, size_t nbytes);

/* Take a mark at the next place, whether it is due or not. Collective; nothing on the way back. */
CAIRN_API int cairn_trigger(cairn *c);

/* Is the program on its way back to a mark? It may want to keep silent then. */
CAIRN_API bool cairn_replaying(const cairn *c);

#ifdef __cplusplus
}
#endif
#endif
