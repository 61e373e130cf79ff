# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: hdf5
small_run t a 0 3 1 && echo nothing >a.h5 && cairn export -o b.h5 t >/dev/null
cairn diff a.h5 b.h5; cairn diff b.h5 t/a; cairn diff b.h5 gone.h5
