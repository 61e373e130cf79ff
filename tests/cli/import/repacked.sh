# SPDX-License-Identifier: BSD-3-Clause
# What another tool has packed anew is read all the same.
# NEEDS: hdf5
small_trail t 2 1 1 && cairn export -o one.h5 t && h5repack -f GZIP=4 -l CHUNK=100 one.h5 packed.h5
cairn import --ranks 2 packed.h5 new && cairn export -o two.h5 new
h5diff one.h5 two.h5 temperature
