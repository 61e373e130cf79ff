/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The filter that changes nothing, and the template for others. Copy it and go through the fields:
 *
 *   name, summary  what a study.ini says, and what 'cairn help ensemble' says of it
 *   free           true only if inflation and rotation make no sense
 *   weights        the only arithmetic: everything that depends on how the state is cut into pieces
 *                  stays outside. Sums over observations pass through crn_filter_gram, random
 *                  numbers through crn_rng_key: the result must not depend on who computes it.
 */
#include "filter/filter_ops.h"

static cairn_status weights(const crn_filter_case *c, double *w)
{
    memset(w, 0, c->nmembers * c->nmembers * sizeof *w);
    for (size_t j = 0; j < c->nmembers; j++)
        w[j + j * c->nmembers] = 1;
    return CAIRN_OK;
}

const crn_filter_ops crn_filter_none = {
    .name = "none",
    .summary = "a free run: observations change nothing",
    .free = true,
    .weights = weights,
};
