/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cairn: trail markers along long computations. This header is all of it; each of those below can
 * be included alone, and begins with what it is for and an example.
 *
 *     <cairn/ckpt.h>      mark and resume: the one that a program needs
 *     <cairn/region.h>    marks of what is needed, by what the program says it touches
 *     <cairn/compare.h>   where two runs part
 *     <cairn/explain.h>   and why
 *     <cairn/trail.h>     look into what was stored
 *     <cairn/keep.h>      bring marks into the trail, delete old ones
 *     <cairn/state.h>     named states on shelves, for ensembles and workflows
 *     <cairn/ensemble.h>  a model as a member of an ensemble; a library of its own
 *     <cairn/exchange.h>  marks as HDF5 files, and back
 *     <cairn/planner.h>   how often to mark, beforehand or afterwards
 *     <cairn/traces.h>    what a run did to network and storage
 *
 * All of them share <cairn/error.h> (results), <cairn/type.h> (types of elements) and
 * <cairn/version.h> (versions, and structures that may grow).
 */
#ifndef CAIRN_CAIRN_H
#define CAIRN_CAIRN_H

#include <cairn/version.h>
#include <cairn/error.h>
#include <cairn/type.h>
#include <cairn/ckpt.h>
#include <cairn/region.h>
#include <cairn/compare.h>
#include <cairn/explain.h>
#include <cairn/trail.h>
#include <cairn/keep.h>
#include <cairn/state.h>
#include <cairn/exchange.h>
#include <cairn/planner.h>
#include <cairn/traces.h>

#endif
