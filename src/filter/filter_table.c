/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of filters.
 */
#include "filter/filter_ops.h"

static const crn_filter_ops *const table[] = {
    &crn_filter_none, &crn_filter_etkf, &crn_filter_enkf, &crn_filter_denkf, &crn_filter_letkf,
};

const crn_filter_ops *crn_filter_at(size_t index)
{
    return index < sizeof table / sizeof *table ? table[index] : NULL;
}

const crn_filter_ops *crn_filter_of_name(const char *name)
{
    for (size_t i = 0; crn_filter_at(i); i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

const char *crn_filter_name(const crn_filter_ops *filter)
{
    return filter->name;
}

const char *crn_filter_summary(const crn_filter_ops *filter)
{
    return filter->summary;
}

bool crn_filter_is_local(const crn_filter_ops *filter)
{
    return filter->local;
}

bool crn_filter_is_free(const crn_filter_ops *filter)
{
    return filter->free;
}
