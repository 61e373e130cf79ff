# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: hdf5
small_run t a 0 3 1 && cairn export -o a.h5 t >/dev/null
h5copy -p -i a.h5 -s /field -o b.h5 -d /some/field
h5copy -i a.h5 -s /step -o b.h5 -d /step && cairn diff a.h5 b.h5
