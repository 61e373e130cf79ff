#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The recorder and the library of one MPI in programs of the other: the first stands aside, the
# second refuses, and both say why; so does 'cairn trace record':
# mpi_mixed.sh MPI RECORDER LIBRARY COMMAND
set -eu
mpi=$1 recorder=$2 library=$3 cairn=$4
top=$(cd "$(dirname "$0")/../.." && pwd)
case $mpi in
openmpi) other=mpich ours='Open MPI' theirs=MPICH ;;
*) other=openmpi ours=MPICH theirs='Open MPI' ;;
esac
for tool in mpicc mpiexec; do
    command -v "$tool.$other" > /dev/null || { echo "SKIPPED: there is no $tool.$other"; exit 77; }
done
scratch=$(mktemp -d ./scratch-mixed-XXXXXX)
scratch=$(cd "$scratch" && pwd)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# expect TEXT: it is in the output
expect() {
    grep -q -- "$1" output || { cat output; echo "missing: $1"; exit 1; }
}

"mpicc.$other" "$top/tests/mpi/mpi_mixed.c" -o plain
"$top/tools/mpi-test" "$other" 2 env LD_PRELOAD="$recorder" CAIRN_TRACE_OUT="$scratch/run.ctr" \
    ./plain 'two words' > output 2>&1 || { cat output; exit 1; }
expect "nothing is recorded: this recorder is for $ours, but './plain' uses $theirs; use the cairn"
[ "$(grep -c 'nothing is recorded' output)" = 1 ] || { cat output; echo "said twice"; exit 1; }
[ "$(grep -c "done with 'two words'" output)" = 2 ] || { cat output; exit 1; }
[ ! -e run.ctr ] || { echo "a trace was written"; exit 1; }

# The command ends with this sentence, and leaves nothing behind but what was there.
rm run.ctr.refused
code=0
"$top/tools/mpi-test" "$other" env "$cairn" trace record -- "mpiexec.$other" -n 2 ./plain \
    > output 2>&1 || code=$?
[ "$code" = 2 ] || { cat output; echo "'cairn trace record' ended with $code"; exit 1; }
expect "'run.ctr' was not written: this recorder is for $ours, but './plain' uses $theirs"
[ "$(echo run.ctr*)" = 'run.ctr*' ] || { ls; echo "a file was left"; exit 1; }

"mpicc.$other" -DCAIRN -I"$top/include" "$top/tests/mpi/mpi_mixed.c" -o session "$library" \
    -Wl,-rpath,"$(dirname "$library")"
"$top/tools/mpi-test" "$other" 2 ./session > output 2>&1 || { cat output; exit 1; }
expect "refused: .*this libcairn was built for $ours, but the program uses $theirs"
[ "$(grep -c "done with" output)" = 2 ] || { cat output; exit 1; }
