# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: hdf5
small_run t a 0 3 1 && cairn export -o a.h5 t >/dev/null
h5repack -f GZIP=6 -l CHUNK=300 a.h5 b.h5 && cairn diff --bound 1e-9 a.h5 b.h5
