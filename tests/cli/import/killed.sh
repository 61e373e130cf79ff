# SPDX-License-Identifier: BSD-3-Clause
# Killed before every third operation, it leaves no run, and at last one that is whole.
# NEEDS: hdf5
{
small_trail t 1 1 1 && cairn export -o one.h5 t > out
n=1
until CAIRN_FAULT=any:$n:kill cairn import one.h5 new > out || [ -d new/run-1 ]; do
    n=$((n + 3))
done
} 2> err
[ $n -gt 10 ] && ls -A new && cairn verify new
