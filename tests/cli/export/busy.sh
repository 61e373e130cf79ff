# SPDX-License-Identifier: BSD-3-Clause
# Two that make the same file do not write over each other; what a dead one left is no hindrance.
# NEEDS: hdf5
small_trail t 2 1 1
flock .one.h5.tmp cairn export -o one.h5 t
cairn export -o one.h5 t
ls -A
