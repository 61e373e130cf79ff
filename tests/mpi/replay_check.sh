#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Record a program, replay the trace while recording again, and compare: lossless, each pair of
# ranks must have exchanged as many bytes in as many messages; below 100 per cent, the replay must
# end.
# REPLAY_SKIPS: events of other threads that cannot be replayed; 0. REPLAY_RECORDER: a recorder that
# only the program itself can load, for being sanitized. REPLAY_EXPECT: text that the replay prints.
# replay_check.sh MPI RANKS CAIRN PROGRAM [ARGUMENTS]
set -eu
mpi=$1 ranks=$2 cairn=$(realpath "$3") program=$(realpath "$4")
shift 4
run=$(cd "$(dirname "$0")/../.." && pwd)/tools/mpi-test
scratch=$(mktemp -d ./scratch-replay-XXXXXX)
scratch=$(cd "$scratch" && pwd)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# record FILE PRECISION PROGRAM [ARGUMENTS]
record() {
    out=$1 precision=$2
    shift 2
    if [ -n "${REPLAY_RECORDER-}" ]; then
        "$run" "$mpi" "$ranks" env LD_PRELOAD="$REPLAY_RECORDER" CAIRN_TRACE_OUT="$scratch/$out" \
            CAIRN_TRACE_PRECISION="$precision" "$@"
    else
        "$cairn" trace record -p "$precision" -o "$out" -- "$run" "$mpi" "$ranks" "$@"
    fi
}

record first.ctr 100 "$program" "$@"
record again.ctr 100 "$cairn" trace replay --no-delay --patience 100s first.ctr > output ||
    { cat output; exit 1; }
cat output
grep -q -- "${REPLAY_EXPECT-}" output
n=${REPLAY_SKIPS-0}
if [ "$n" -gt 0 ]; then
    grep -qw "$n events could not be reissued, $n of them by other threads" output
else
    ! grep -q 'events could not be reissued' output
fi
"$cairn" trace diff --only pairs first.ctr again.ctr
for precision in 50 0; do
    record "$precision.ctr" "$precision" "$program" "$@"
    "$run" "$mpi" "$ranks" "$cairn" trace replay --no-delay --patience 100s "$precision.ctr"
done
[ -z "$(ls -d replay-* 2> /dev/null)" ] || { echo "a scratch directory was left"; exit 1; }
