/* SPDX-License-Identifier: BSD-3-Clause
 *
 * state: named states on shelves. Row 4. Programs use <cairn/state.h>; this is its inside, for
 * tests and benchmarks.
 */
#ifndef CAIRN_STATE_STATE_H
#define CAIRN_STATE_STATE_H

#include "state/state_shelf.h"

#endif
