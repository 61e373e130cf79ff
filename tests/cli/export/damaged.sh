# SPDX-License-Identifier: BSD-3-Clause
# The file that is there stays when the mark turns out to be damaged.
# NEEDS: hdf5
small_trail t 1 1 1 && cairn export -o out.h5 t
printf 'X' | dd of=t/run-1/series-1/000/part-000000 bs=1 seek=12000 conv=notrunc 2>dd.log
cairn export -o out.h5 t
code=$?
h5ls out.h5 && ls -A && exit $code
