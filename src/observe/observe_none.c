/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where Cairn is built without HDF5.
 */
#include "observe/observe_read.h"

cairn_status crn_obs_read_hdf5(crn_obs *o)
{
    return crn_fail(CAIRN_EUNSUPPORTED,
                    "'%s' is in HDF5, and this Cairn was built without it (-DCAIRN_WITH_HDF5=ON)",
                    o->setup.path);
}

cairn_status crn_obs_file_create(const char *path, crn_obs_file **ret)
{
    (void)ret;
    return crn_fail(CAIRN_EUNSUPPORTED,
                    "cannot write '%s': this Cairn was built without HDF5 (-DCAIRN_WITH_HDF5=ON)",
                    path);
}

cairn_status crn_obs_file_put(crn_obs_file *f, const char *name, int ndims, const uint64_t *dims,
                              const double *data)
{
    (void)f, (void)name, (void)ndims, (void)dims, (void)data;
    return CAIRN_EUNSUPPORTED;
}

cairn_status crn_obs_file_close(crn_obs_file *f)
{
    (void)f;
    return CAIRN_EUNSUPPORTED;
}

void crn_obs_file_free(crn_obs_file *f)
{
    (void)f;
}

cairn_status crn_obs_file_get(const char *path, const char *name, crn_obs_array *ret)
{
    (void)name, (void)ret;
    return crn_fail(CAIRN_EUNSUPPORTED,
                    "cannot read '%s': this Cairn was built without HDF5 (-DCAIRN_WITH_HDF5=ON)",
                    path);
}

cairn_status crn_obs_file_names(const char *path, const char *group, crn_obs_names *ret)
{
    crn_obs_array none;
    (void)ret;
    return crn_obs_file_get(path, group, &none);
}
