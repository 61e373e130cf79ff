/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Observations from text, any bytes: taken, or refused with a sentence that names the line; what
 * was taken makes sets whose entries are elements of fields.
 */
#include "observe/observe_read.h"

#include <assert.h>

static const crn_obs_field fields[] = {
    {.name = "x", .ndims = 1, .global = {40}},
    {.name = "h",
     .ndims = 2,
     .global = {6, 8},
     .placed = true,
     .axis = {{.dim = 1, .step = 1}, {.dim = 0, .origin = 10, .step = 2}}},
};

static const crn_obs_type types[] = {
    {.name = "near", .field = "h", .correlation = 2, .variance = 4, .radius = 1}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void look(const crn_obs *o, uint64_t cycle)
{
    crn_obs_set *set;
    if (crn_obs_cycle(o, cycle, &set) < 0)
        return;
    for (size_t i = 0; i < set->n; i++)
        assert(set->item[i].entry + set->item[i].nentries <= set->nentries);
    for (size_t k = 0; k < set->nentries; k++)
        assert(set->entry[k].field < 2 && set->entry[k].index < 48);
    double *y;
    if (crn_alloc(&y, set->n + 1) == CAIRN_OK)
        assert(crn_obs_loglik(set, y) <= 0);
    free(y);
    crn_obs_set_free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const crn_obs_setup setup = {.path = "",
                                 .steps = 10,
                                 .step = 1,
                                 .space = {.ndims = 2, .period = {8}},
                                 .field = fields,
                                 .nfields = 2,
                                 .type = types,
                                 .ntypes = 1};
    crn_obs *o;
    if (nbytes == 0 || crn_obs_open(&setup, &o) < 0)
        return 0;
    FILE *f = fmemopen((void *)data, nbytes, "r");
    if (f && crn_obs_read_text(o, f) == CAIRN_OK && crn_obs_settle(o) == CAIRN_OK)
        for (uint64_t cycle = 0; cycle < 4; cycle++)
            look(o, cycle);
    if (f)
        fclose(f);
    crn_obs_close(o);
    return 0;
}
