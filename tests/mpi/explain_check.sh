#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Record runs of a program that receives and reads in another order each time, and let
# 'cairn explain' find that: explain_check.sh MPI CAIRN PROGRAM ["thread"]
set -eu
mpi=$1 cairn=$(realpath "$2") program=$(realpath "$3")
who=${4-}
run=$(cd "$(dirname "$0")/../.." && pwd)/tools/mpi-test
scratch=$(mktemp -d ./scratch-explain-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export CAIRN_RUN_TRAIL=trail CAIRN_LEVEL_LOCAL=trail CAIRN_KEEP_GLOBAL=all
echo zero > input-0
echo one, > input-1
for swapped in 0 3 1; do
    CAIRN_RUN_NAME=run-$swapped "$cairn" trace record -o trail/run-$swapped.ctr -- \
        "$run" "$mpi" 4 "$program" $swapped $who
done

# expect TEXT FILE: a line of the output
expect() {
    grep -q -- "$1" "$2" || { echo "no line '$1' in:"; cat "$2"; exit 1; }
}

if "$cairn" explain trail/run-0 trail/run-3 > out; then
    echo "the runs were to differ"
    exit 1
fi
expect "^first difference: mark 3, rank 0, variable 'sum'" out
expect "^between mark 2 and mark 3:" out
[ -z "$who" ] || expect "^rank 0, thread 1:" out
expect "^  2 of 3 wildcard receives matched other senders:" out
expect "receive 1, MPI_Recv at explain_order+0x.*: rank 1, tag 2 and rank 3, tag 2" out
expect "receive 3, MPI_Probe at explain_order+0x.*: rank 3, tag 2 and rank 1, tag 2" out
expect "^  files are read in another order: file 1 is 'input-0' and 'input-1'" out
[ "$(grep -c "files are read in another order: file 1 is 'input-0'" out)" = 3 ] &&
    [ "$(grep -c ^rank out)" = 4 ] || { cat out; exit 1; }

# what the library reads itself when a run begins is not the program's
"$cairn" explain trail/run-0 trail/run-1 > out || [ $? = 1 ]
expect "^from the start to mark 1:" out
[ "$(grep -c "files are read in another order: file 1 is 'input-0'" out)" = 3 ] &&
    [ "$(grep -c ^rank out)" = 4 ] || { cat out; exit 1; }

# with a looser bound there is nothing to explain; the same trace twice tells of no difference
"$cairn" explain --bound 100 trail/run-0 trail/run-3 > out
expect "^the runs agree" out
"$cairn" explain trail/run-0 trail/run-3 trail/run-0.ctr trail/run-0.ctr > out || true
expect "all wildcard receives matched the same senders" out
