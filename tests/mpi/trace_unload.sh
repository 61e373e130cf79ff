#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Modules that lie in the same place one after the other are told apart:
# trace_unload.sh MPI RECORDER PROGRAM MODULE CAIRN
set -eu
mpi=$1 recorder=$2 program=$3 module=$4 cairn=$5
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d ./scratch-unload-XXXXXX)
scratch=$(cd "$scratch" && pwd)
trap 'rm -rf "$scratch"' EXIT
cp "$module" "$scratch/first.so"
cp "$module" "$scratch/second.so"
"$top/tools/mpi-test" "$mpi" 1 env LD_PRELOAD="$recorder" CAIRN_TRACE_OUT="$scratch/run.ctr" \
    "$program" "$scratch/first.so" "$scratch/second.so"
"$cairn" trace show --addresses "$scratch/run.ctr" > "$scratch/shown" 2>&1
grep -q 'first\.so+' "$scratch/shown" && grep -q 'second\.so+' "$scratch/shown" ||
    { cat "$scratch/shown"; exit 1; }
