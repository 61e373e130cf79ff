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
