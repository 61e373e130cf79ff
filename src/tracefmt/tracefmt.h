/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tracefmt: the folded trace, the only bridge between the recorder and the tools. Row 1: uses base
 * and zstd. Sequences and histograms; the table of calls; the trace in memory and in a file;
 * folding one thread's events; merging ranks; walking.
 */
#ifndef CAIRN_TRACEFMT_H
#define CAIRN_TRACEFMT_H

#include "base/base.h"
#include "tracefmt/tracefmt_var.h"
#include "tracefmt/tracefmt_seq.h"
#include "tracefmt/tracefmt_hist.h"
#include "tracefmt/tracefmt_call.h"
#include "tracefmt/tracefmt_timing.h"
#include "tracefmt/tracefmt_trace.h"
#include "tracefmt/tracefmt_walk.h"
#include "tracefmt/tracefmt_fold.h"
#include "tracefmt/tracefmt_build.h"
#include "tracefmt/tracefmt_merge.h"
#include "tracefmt/tracefmt_text.h"

#endif
