# SPDX-License-Identifier: BSD-3-Clause
# A disk that fills up at any write: a sentence, and the file that was there stays.
# NEEDS: hdf5
small_trail t 2 1 1 && echo old > one.h5
for n in 1 2 3 5 8; do
    CAIRN_FAULT=write:$n:enospc cairn export -o one.h5 t 2> error || echo "exit $?"
    grep -c "No space left on device" error
done
cat one.h5
ls -A
