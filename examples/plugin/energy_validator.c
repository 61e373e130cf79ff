/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of one's own for validators (<cairn/validator_plugin.h>): half the sum of squares of a
 * state, its largest jump between neighbours, and how many values changed their sign by a loss.
 * Built as
 *
 *     cc -shared -fPIC -o energy_validator.so energy_validator.c
 *
 * and named in study.ini by "[validate] functions = ./energy_validator.so".
 */
#include <math.h>

#include <cairn/validator_plugin.h>

static double energy(const cairn_stretch *s, const double *x)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += x[i] * x[i] / 2;
    return sum;
}

static double jump(const cairn_stretch *s, const double *x)
{
    double most = 0;
    for (size_t i = 1; i < s->n; i++)
        most = fmax(most, fabs(x[i] - x[i - 1]));
    return most;
}

static double flips(const cairn_stretch *s, const double *lossless, const double *x)
{
    double n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += lossless[i] * x[i] < 0;
    return n;
}

static const cairn_validator_function all[] = {
    {"energy", CAIRN_JOIN_SUM, NULL, energy, NULL},
    {"jump", CAIRN_JOIN_MAX, NULL, jump, NULL},
    {"flips", CAIRN_JOIN_SUM, NULL, NULL, flips},
};

const cairn_validator_table cairn_validator = {CAIRN_VALIDATOR_VERSION, 3, all};
