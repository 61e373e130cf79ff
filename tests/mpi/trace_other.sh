#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A recorder for another MPI says so and leaves the program alone; in a program that was spawned it
# does the latter, since the trace is the other's:
# trace_other.sh MPI RECORDER PROGRAM
set -eu
mpi=$1 recorder=$2 program=$3
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d ./scratch-other-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
for word in '' spawned; do
    "$top/tools/mpi-test" "$mpi" 1 env LD_PRELOAD="$recorder" CAIRN_TRACE_OUT="$scratch/run.ctr" \
        "$program" $word > "$scratch/output$word" 2>&1 || { cat "$scratch/output$word"; exit 1; }
    [ ! -e "$scratch/run.ctr" ] || { echo "a trace was written"; exit 1; }
done
grep -q 'which the program does not use' "$scratch/output" || { cat "$scratch/output"; exit 1; }
! grep 'cairn:' "$scratch/outputspawned"
