/* SPDX-License-Identifier: BSD-3-Clause
 *
 * In place of ensemble_hdf5.c where Cairn is built without HDF5.
 */
#include "ensemble/ensemble_hdf5.h"

static cairn_status missing(void)
{
    return crn_fail(CAIRN_EUNSUPPORTED, "this Cairn was built without HDF5, which models that are "
                                        "run by command need (-DCAIRN_WITH_HDF5=ON)");
}

cairn_status crn_datasets_find(const char *file, const char *assimilated, const char *carried,
                               const char *parameter, crn_datasets *ret)
{
    (void)file, (void)assimilated, (void)carried, (void)parameter, (void)ret;
    return missing();
}

void crn_datasets_done(crn_datasets *d)
{
    (void)d;
}

cairn_status crn_datasets_read(const char *file, crn_datasets *d)
{
    (void)file, (void)d;
    return missing();
}

cairn_status crn_datasets_write(const char *file, const crn_datasets *d)
{
    (void)file, (void)d;
    return missing();
}

cairn_status crn_ensemble_write(const char *file, const crn_state_layout *l,
                                unsigned char *const *state, const uint32_t *member, uint32_t n,
                                crn_ensemble_turn turn)
{
    (void)file, (void)l, (void)state, (void)member, (void)n, (void)turn;
    return missing();
}
