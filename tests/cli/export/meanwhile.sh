# SPDX-License-Identifier: BSD-3-Clause
# When the newest mark is dropped while it is read, slowly, there is another newest to export.
# NEEDS: hdf5
small_trail t 3 1 1
CAIRN_FAULT=read:1:slow:40 cairn export -o one.h5 t > out &
until [ -e .one.h5.tmp ] || ! kill -0 $!; do
    sleep 0.02
done
small_trail t 3 2
wait $! && ls -A
