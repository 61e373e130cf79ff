#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What every build does, whatever it goes without, tried with nothing but a shell: marks, a kill,
# the same result on fewer ranks, verification, comparison.
# first_marks.sh openmpi|mpich HEAT2D CAIRN
set -eu
start=$(dirname "$0")/../../tools/mpi-test
mpi=$1 heat2d=$2 cairn=$3
dir=$(mktemp -d scratch-first.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
case $start in /*) ;; *) start=../$start ;; esac

fail() {
    echo "first_marks: $*" >&2
    exit 1
}

# heat <ranks> <run> [options]
heat() {
    ranks=$1 run=$2
    shift 2
    CAIRN_RUN_TRAIL=trail CAIRN_RUN_NAME=$run CAIRN_LEVEL_GLOBAL=1 CAIRN_KEEP_GLOBAL=all \
        "$start" "$mpi" "$ranks" "$heat2d" --size 64 --steps 100 --every 20 "$@"
}

heat 3 whole --output whole.field
CAIRN_FAULT=commit:5:kill heat 3 killed --output killed.field && fail "nothing was killed"
[ ! -e killed.field ] || fail "the killed run came to its end"
heat 2 killed --output killed.field >resumed
cat resumed
grep -q 'resumed' resumed || fail "it began anew"
cmp whole.field killed.field || fail "another result after the kill"

"$cairn" verify trail || fail "what is stored is not what was written"
"$cairn" ls trail | grep -q '^killed ' || fail "'ls' does not know the run"
"$cairn" diff trail/whole trail/killed || fail "equal runs differ"
heat 3 nudged --nudge 50
"$cairn" diff trail/whole trail/nudged >parted && fail "a disturbed run is no other"
grep -q ' 60' parted || fail "the first mark behind the disturbance is not named: $(cat parted)"
if "$cairn" ls --json trail >listed 2>&1; then
    grep -q '"killed"' listed || fail "no run in the JSON: $(cat listed)"
else
    grep -q jansson listed || fail "no reason why there is no JSON: $(cat listed)"
fi
