#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Two runs of examples/nbody that add up forces as messages come, which is in another order in the
# fourth step of the second: 'cairn diff' finds the first mark that differs, 'cairn explain' why.
# explain_nbody.sh MPI CAIRN NBODY SWAP
set -eu
mpi=$1 cairn=$(realpath "$2") program=$(realpath "$3") swap=$(realpath "$4")
run=$(cd "$(dirname "$0")/../.." && pwd)/tools/mpi-test
scratch=$(mktemp -d ./scratch-nbody-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export CAIRN_RUN_TRAIL=trail CAIRN_LEVEL_LOCAL=trail CAIRN_KEEP_GLOBAL=all

# record RUN ROUND: the round that is reversed; 0: none. The recorder lies above what swaps.
record() {
    CAIRN_RUN_NAME=$1 EXPLAIN_SWAP=$2 "$cairn" trace record -o "trail/$1.ctr" -- \
        "$run" "$mpi" 3 sh -c "LD_PRELOAD=\"\$LD_PRELOAD $swap\" exec \"\$0\" \"\$@\"" \
        "$program" --arrival --bodies 900 --steps 8 --every 1
}

# expect TEXT FILE: a line of the output
expect() {
    grep -q -- "$1" "$2" || { echo "no line '$1' in:"; cat "$2"; exit 1; }
}

record one 0
record same 0
record other 4
"$cairn" diff trail/one trail/same > out || { cat out; exit 1; }
if "$cairn" diff trail/one trail/other > out; then
    echo "the runs were to differ"
    exit 1
fi
expect "^first difference: mark 4, rank 0," out
"$cairn" explain trail/one trail/other > out || [ $? = 1 ]
expect "^first difference: mark 4, rank 0," out
expect "^between mark 3 and mark 4:" out
expect "^rank 0:" out
expect "^  2 of 3 wildcard receives matched other senders:" out
expect "receive 1, MPI_Probe at nbody+0x.*: rank 0, tag 0 and rank 2, tag 0" out
expect "receive 3, MPI_Probe at nbody+0x.*: rank 2, tag 0 and rank 0, tag 0" out
[ "$(grep -c ^rank out)" = 1 ] || { cat out; exit 1; } # the others met the same
