/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Observations from a text file: a line for each, "CYCLE FIELD INDEX VALUE VARIANCE"; what follows
 * a '#' is a comment. docs/guide/ensemble.md describes it.
 */
#include "ensemble/ensemble_server.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

static cairn_status read_line(const char *path, size_t number, char *line,
                              const crn_state_layout *layout, crn_observations *ret)
{
    char field[64], end;
    uint64_t index;
    crn_observation o;
    line[strcspn(line, "#\n")] = 0;
    if (line[strspn(line, " \t\r")] == 0)
        return CAIRN_OK;
    int n = sscanf(line, "%" SCNu64 " %63s %" SCNu64 " %lf %lf %c", &o.cycle, field, &index,
                   &o.value, &o.variance, &end);
    CRN_FAIL_IF(n != 5, CAIRN_EINVAL,
                "'%s', line %zu: not 'CYCLE FIELD INDEX VALUE VARIANCE' but '%.60s'", path, number,
                line);
    CRN_FAIL_IF(!crn_row_of(layout, field, index, &o.row), CAIRN_EINVAL,
                "'%s', line %zu: the model assimilates no element %" PRIu64 " of a field '%s'",
                path, number, index, field);
    CRN_FAIL_IF(!isfinite(o.value) || !isfinite(o.variance) || o.variance <= 0, CAIRN_EINVAL,
                "'%s', line %zu: value %g, variance %g: a finite value and a variance above 0 are "
                "needed",
                path, number, o.value, o.variance);
    return crn_vec_push(ret, o);
}

/* Cycles must not go back: so the order of the file is the order of sums. */
static cairn_status check_order(const char *path, const crn_observations *o)
{
    for (size_t i = 1; i < o->n; i++)
        CRN_FAIL_IF(o->at[i].cycle < o->at[i - 1].cycle, CAIRN_EINVAL,
                    "'%s': cycle %" PRIu64 " stands behind cycle %" PRIu64 "; sort it by cycle",
                    path, o->at[i].cycle, o->at[i - 1].cycle);
    return CAIRN_OK;
}

cairn_status crn_observations_read(const char *path, const crn_state_layout *layout,
                                   crn_observations *ret)
{
    char *line = NULL;
    size_t cap = 0, number = 0;
    cairn_status rc = CAIRN_OK;
    FILE *f = fopen(path, "re");
    if (!f)
        return crn_fail_sys(errno, "cannot read the observations '%s'", path);
    while (rc == CAIRN_OK && getline(&line, &cap, f) >= 0)
        rc = read_line(path, ++number, line, layout, ret);
    if (rc == CAIRN_OK && ferror(f))
        rc = crn_fail_sys(errno, "cannot read the observations '%s'", path);
    free(line);
    fclose(f);
    return rc < 0 ? rc : check_order(path, ret);
}
