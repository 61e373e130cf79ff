#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A program that never does the same twice, and one that has many requests: its recorder keeps to
# its memory, and the trace says that something is left out:
# trace_full.sh MPI RECORDER PROGRAM CAIRN
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
