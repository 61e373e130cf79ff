/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of your own for validators, in a shared object: scalars of states, which appear beside
 * Cairn's own statistics. Build one that exports a table called cairn_validator, and name its file
 * in study.ini:
 *
 *     [validate]
 *     functions = ./energy.so
 *
 * A validator reads states in stretches, one after the other, and joins what a function says of
 * them; which stretches there are depends on the shape of a variable alone. The functions run in a
 * process of their own: one that crashes, that takes longer than validate.patience for a stretch,
 * or that returns no number, is missing in the cycle's rows, which say why, and the study goes on.
 *
 * examples/plugin/energy_validator.c is a template.
 */
#ifndef CAIRN_VALIDATOR_PLUGIN_H
#define CAIRN_VALIDATOR_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_VALIDATOR_VERSION 1 /* of the table */

/* Of what the values are: elements [first, first + n) of a variable of a member, last index
 * fastest. */
typedef struct cairn_stretch {
    const char *variable;
    const char *setting; /* of its ensemble; "none": without loss */
    uint32_t cycle, member;
    int ndims;
    uint64_t global[8];
    uint64_t first;
    size_t n;
} cairn_stretch;

/* How what a function says of two stretches becomes one number, in the order of the stretches. */
typedef enum cairn_join {
    CAIRN_JOIN_SUM = 0,
    CAIRN_JOIN_MIN = 1,
    CAIRN_JOIN_MAX = 2,
    CAIRN_JOIN_OWN = 3 /* by join() */
} cairn_join;

typedef struct cairn_validator_function {
    const char *name; /* 1 to 31 letters, digits, '_' and '-' */
    cairn_join how;
    double (*join)(double a, double b); /* with CAIRN_JOIN_OWN; else NULL */
    /* One of these two. evaluate: of a state of any ensemble. compare: of a member without loss,
     * and of the same member of an ensemble with loss. */
    double (*evaluate)(const cairn_stretch *s, const double *x);
    double (*compare)(const cairn_stretch *s, const double *lossless, const double *x);
} cairn_validator_function;

typedef struct cairn_validator_table {
    uint32_t version; /* CAIRN_VALIDATOR_VERSION */
    uint32_t n;       /* any number */
    const cairn_validator_function *function;
} cairn_validator_table;

#ifdef __cplusplus
}
#endif
#endif
