#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Calls of a signal's handler that interrupts the recorder are counted, and the trace is incomplete
# by as many; without the handler's signals nothing is lost: trace_interrupted.sh MPI RECORDER
# PROGRAM CAIRN
set -eu
mpi=$1 recorder=$2 program=$3 cairn=$4
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d ./scratch-interrupted-XXXXXX)
scratch=$(cd "$scratch" && pwd)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/plain"
cd "$scratch"
MPI_TEST_TAGS=no "$top/tools/mpi-test" "$mpi" 1 env LD_PRELOAD="$recorder" \
    CAIRN_TRACE_OUT="$scratch/run.ctr" CAIRN_TRACE_PLAIN="$scratch/plain" "$program" > said
made=$(sed -n 's/ signals$//p' said)
[ "$made" = 20 ] || { cat said; echo "the recorder was not interrupted 20 times"; exit 1; }
"$cairn" trace show run.ctr > shown 2>&1
grep "is incomplete: $made events were not kept" shown || { head -20 shown; exit 1; }
[ "$(cat plain/* | grep -c '^write ')" = 1 ] || { echo "a write is recorded"; exit 1; }
