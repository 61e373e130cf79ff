# SPDX-License-Identifier: BSD-3-Clause
# Values on the edges of cells, with noise that carries them over: not proven equal by trees alone,
# and never called a difference; equal by a sketch of either kind, whatever the run's bounds.
small_run t a 0.00048828125 3 all && small_run t b 0.000488281251 3 all
for kind in none bytes bits; do
    cairn gate --bless --sketch $kind $kind.golden t/a
    cairn gate --bound 1e-3 $kind.golden t/b
    echo "exit code $?"
done
CAIRN_VARIABLE_BOUND= small_run t c 0.000488281251 3 all && cairn gate bits.golden t/c
cairn gate --json --bless --sketch bits x.golden t/a
cairn gate --json --bound 1e-3 --variable field x.golden t/b | grep -A 4 '"sketch"'
