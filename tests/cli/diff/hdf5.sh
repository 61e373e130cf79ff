# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: hdf5
small_run t a 0 3 1 && small_run t b 0.5 3 1
cairn export -o a.h5 t/a >/dev/null && cairn export -o b.h5 t/b >/dev/null
h5repack -f GZIP=6 -l CHUNK=300 b.h5 c.h5 && cairn diff a.h5 c.h5
