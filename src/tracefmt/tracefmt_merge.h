/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Merging the traces of different ranks into one, two at a time: up a tree of ranks at the end of a
 * run, or one after another from the files that a killed run left.
 *
 * Symbols of the two that mean the same become one: places with the same call, site and name; rules
 * with the same body; then rules that are alike, whose bodies are aligned. Collectives weigh most
 * in an alignment, so a collective of all ranks stays one symbol although what lies around it
 * differs (seed 004, section 5.1.3). What only one side has stays where it is, and the ranks of the
 * other have no part in it: their columns do not name it. Only where the other side uses the same
 * symbol elsewhere, it is wrapped into an optional rule.
 */
#ifndef CAIRN_TRACEFMT_MERGE_H
#define CAIRN_TRACEFMT_MERGE_H

#include "tracefmt/tracefmt_trace.h"

/*
 * Merge b into a. All ranks of b must be above those of a (CAIRN_EINVAL). b is freed, whatever
 * happens; after a failure a is fit only to be freed.
 */
cairn_status crn_trace_merge(crn_trace *a, crn_trace *b);

/*
 * After the last merge: choose encodings; below 100 per cent turn what is still long into
 * histograms.
 */
cairn_status crn_trace_finish(crn_trace *t);

/*
 * The trace of a run that was killed: from the files PATH.0, PATH.1 ... that its ranks kept aside.
 * Ranks whose files are not there, or damaged, are named in missing. CAIRN_ENOTFOUND if none is.
 */
cairn_status crn_trace_salvage(const char *path, crn_trace **ret);

#endif
