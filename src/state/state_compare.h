/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing states, for the file that takes a communicator.
 */
#ifndef CAIRN_STATE_COMPARE_H
#define CAIRN_STATE_COMPARE_H

#include <cairn/state_mpi.h>

#include "diff/diff.h"
#include "state/state_shelf.h"

/* cairn_compare_states; comm is taken. */
cairn_status crn_states_compare(crn_comm *comm, const cairn_states *first,
                                const cairn_states *second, const cairn_comparison_options *how,
                                cairn_comparison *ret);

#endif
