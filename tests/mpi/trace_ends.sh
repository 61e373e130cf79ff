#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A run that is aborted or killed leaves a readable, incomplete trace that begins as the log does:
# trace_ends.sh MPI RANKS RECORDER EXPANDER PROGRAM HOW CAIRN
set -eu
mpi=$1 ranks=$2 recorder=$3 expander=$4 program=$5 how=$6 cairn=$7
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d ./scratch-ends-XXXXXX)
scratch=$(cd "$scratch" && pwd)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/plain" "$scratch/expanded"
keep=0.02
[ "$how" != early ] || keep=60 # the first time comes much sooner: the test is over before
if [ "$how" = nowhere ]; then # no trace can be written: each rank says so once, and the run goes on
    "$top/tools/mpi-test" "$mpi" "$ranks" env LD_PRELOAD="$recorder" CAIRN_TRACE_KEEP=0.02 \
        CAIRN_TRACE_OUT="$scratch/none/run.ctr" "$program" "$how" > "$scratch/output" 2>&1 &&
        [ "$(grep -c 'trace so far cannot be kept' "$scratch/output")" = "$ranks" ] ||
        { cat "$scratch/output"; exit 1; }
    exit 0
fi
# MPICH's launcher sometimes takes the exit of one rank for the end of the job, and all for well
if "$top/tools/mpi-test" "$mpi" "$ranks" env LD_PRELOAD="$recorder" CAIRN_TRACE_KEEP=$keep \
    CAIRN_TRACE_OUT="$scratch/run.ctr" CAIRN_TRACE_PLAIN="$scratch/plain" "$program" "$how" \
    > "$scratch/output" 2>&1 && [ "$how" != exit ]; then
    echo "the program was to fail"
    exit 1
fi
[ ! -e "$scratch/run.ctr" ] || { echo "a whole trace was written"; exit 1; }
"$expander" "$scratch/run.ctr" "$scratch/expanded" | grep -q '^incomplete' ||
    { cat "$scratch/output"; ls "$scratch"; echo "no incomplete trace"; exit 1; }
"$cairn" trace show "$scratch/run.ctr" > "$scratch/shown" 2>&1 &&
    grep -q "is incomplete: .*ended before MPI_Finalize" "$scratch/shown" ||
    { cat "$scratch/shown"; exit 1; }
for log in "$scratch"/expanded/*.log; do
    lines=$(wc -l < "$log")
    [ "$lines" -gt 40 ] || { echo "only $lines events in $log"; exit 1; }
    # the log is written in blocks, so either may be the shorter one
    plain=$scratch/plain/$(basename "$log")
    common=$(wc -l < "$plain")
    [ "$common" -lt "$lines" ] || common=$lines
    head -n "$((common - 1))" "$log" > "$scratch/a"
    head -n "$((common - 1))" "$plain" > "$scratch/b"
    cmp "$scratch/a" "$scratch/b"
done
