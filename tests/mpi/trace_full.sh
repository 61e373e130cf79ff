#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A program that never does the same twice, and one that has many requests: its recorder keeps to
# its memory, and the trace says that something is left out, as does 'cairn trace record':
# trace_full.sh MPI RECORDER PROGRAM CAIRN. TRACE_RECORD: unset where only the program itself can
# load the recorder, for being sanitized.
set -eu
mpi=$1 recorder=$2 program=$3 cairn=$4 nbytes=6000000
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d ./scratch-full-XXXXXX)
scratch=$(cd "$scratch" && pwd)
trap 'rm -rf "$scratch"' EXIT
for word in '' requests; do
    "$top/tools/mpi-test" "$mpi" 1 env LD_PRELOAD="$recorder" CAIRN_TRACE_KEEP=0 \
        CAIRN_TRACE_MEMORY=$nbytes CAIRN_TRACE_OUT="$scratch/run.ctr" "$program" $nbytes $word
    "$cairn" trace show "$scratch/run.ctr" > "$scratch/shown" 2>&1
    grep "is incomplete: .*event" "$scratch/shown" || { head -20 "$scratch/shown"; exit 1; }
done
[ -n "${TRACE_RECORD-}" ] || exit 0
CAIRN_TRACE_KEEP=0 CAIRN_TRACE_MEMORY=$nbytes "$cairn" trace record -o "$scratch/run.ctr" -- \
    "$top/tools/mpi-test" "$mpi" 1 "$program" $nbytes 2> "$scratch/said"
grep "is incomplete, but can be read: [0-9]* events were not kept; CAIRN_TRACE_MEMORY" \
    "$scratch/said" ||
    { cat "$scratch/said"; exit 1; }
