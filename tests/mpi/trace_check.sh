#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Record a program, expand the trace, and compare with the plain log of the same run:
# trace_check.sh MPI RANKS RECORDER EXPANDER PROGRAM [ARGUMENTS]; TRACE_EXPECT has calls that must
# be in it, TRACE_ABSENT such that must not; with TRACE_NUMBERS, requests are numbered from 0 to one
# less than that, again and again.
set -eu
mpi=$1 ranks=$2 recorder=$3 expander=$4
shift 4
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d ./scratch-trace-XXXXXX)
scratch=$(cd "$scratch" && pwd)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/plain" "$scratch/expanded" "$scratch/run"
program=$(realpath "$1")
shift
cd "$scratch/run"
"$top/tools/mpi-test" "$mpi" "$ranks" env LD_PRELOAD="$recorder" \
    CAIRN_TRACE_OUT="$scratch/run.ctr" CAIRN_TRACE_PLAIN="$scratch/plain" "$program" "$@"
"$expander" "$scratch/run.ctr" "$scratch/expanded"
diff -r "$scratch/plain" "$scratch/expanded" > "$scratch/diff" || {
    head -40 "$scratch/diff"
    exit 1
}
for call in ${TRACE_EXPECT-}; do # the least that the log must have
    cat "$scratch"/plain/* | grep -q "^$call " || { echo "no $call was recorded"; exit 1; }
done
for call in ${TRACE_ABSENT-}; do
    ! cat "$scratch"/plain/* | grep "^$call " || { echo "$call was recorded"; exit 1; }
done
if cat "$scratch"/plain/* | grep '^@match' | grep -qv ' root=[0-9]'; then
    echo "a message without a sender"
    exit 1
fi
for log in ${TRACE_NUMBERS:+"$scratch"/plain/*}; do
    awk -v n="$TRACE_NUMBERS" '/^MPI_I/ && / req=/ && $NF != "req=" k++ % n { exit 1 }' "$log" || {
        echo "requests do not have the smallest free numbers"
        exit 1
    }
done
ls "$scratch" | grep -q 'run.ctr\.' && { echo "files of single ranks were left"; exit 1; }
printf '%s events, %s bytes of log, %s bytes of trace\n' "$(cat "$scratch"/plain/* | wc -l)" \
    "$(cat "$scratch"/plain/* | wc -c)" "$(wc -c < "$scratch/run.ctr")"
