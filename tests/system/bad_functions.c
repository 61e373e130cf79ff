/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions for validators that misbehave, each in its way, and one between them that does not: for
 * test_validation_extra.py.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <cairn/validator_plugin.h>

static double crash(const cairn_stretch *s, const double *x)
{
    if (s->cycle == 2 && x[0] == x[0])
        abort();
    return 1;
}

static double count(const cairn_stretch *s, const double *x)
{
    (void)x;
    return (double)s->n;
}

static double hang(const cairn_stretch *s, const double *x)
{
    (void)x;
    while (s->cycle == 1)
        sleep(1);
    return 2;
}

static double nothing(const cairn_stretch *s, const double *lossless, const double *x)
{
    (void)lossless, (void)x;
    return s->member == 1 ? NAN : 3;
}

static double leave(const cairn_stretch *s, const double *x)
{
    (void)x;
    if (s->cycle == 3)
        _exit(7);
    return 4;
}

/* The last one counts: what order is this? */
static double last(double a, double b)
{
    (void)a;
    return b;
}

static double first_index(const cairn_stretch *s, const double *x)
{
    (void)x;
    return (double)s->first;
}

static const cairn_validator_function all[] = {
    {"crash", CAIRN_JOIN_SUM, NULL, crash, NULL},
    {"count", CAIRN_JOIN_SUM, NULL, count, NULL},
    {"hang", CAIRN_JOIN_MAX, NULL, hang, NULL},
    {"nothing", CAIRN_JOIN_MIN, NULL, NULL, nothing},
    {"leave", CAIRN_JOIN_MIN, NULL, leave, NULL},
    {"last", CAIRN_JOIN_OWN, last, first_index, NULL},
};

const cairn_validator_table cairn_validator = {CAIRN_VALIDATOR_VERSION, 6, all};
