# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: hdf5
small_run t a 0 3 1 && cairn export -o a.h5 t >/dev/null
cairn diff --variable /field a.h5 a.h5 && cairn diff --variable /nothing a.h5 a.h5
