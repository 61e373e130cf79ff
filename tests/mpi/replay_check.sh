#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Record a program, replay the trace while recording again, and compare: lossless, each pair of
# ranks must have exchanged as many bytes in as many messages; at 0 per cent, the replay must end.
# REPLAY_SKIPS=yes: of a program of which not all can be replayed.
# replay_check.sh MPI RANKS CAIRN PROGRAM [ARGUMENTS]
set -eu
mpi=$1 ranks=$2 cairn=$(realpath "$3") program=$(realpath "$4")
shift 4
run=$(cd "$(dirname "$0")/../.." && pwd)/tools/mpi-test
scratch=$(mktemp -d ./scratch-replay-XXXXXX)
scratch=$(cd "$scratch" && pwd)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$cairn" trace record -o first.ctr -- "$run" "$mpi" "$ranks" "$program" "$@"
"$cairn" trace record -o again.ctr -- "$run" "$mpi" "$ranks" "$cairn" trace replay --no-delay \
    --patience 100s first.ctr | tee output
if [ "${REPLAY_SKIPS-no}" = yes ]; then # other threads: they are counted, and the rest ends
    grep -q 'events could not be reissued' output
else
    ! grep -q 'events could not be reissued' output
    "$cairn" trace diff --only pairs first.ctr again.ctr
fi
"$cairn" trace record -p 0 -o shape.ctr -- "$run" "$mpi" "$ranks" "$program" "$@"
"$run" "$mpi" "$ranks" "$cairn" trace replay --no-delay --patience 100s shape.ctr
[ -z "$(ls -d replay-* 2> /dev/null)" ] || { echo "a scratch directory was left"; exit 1; }
