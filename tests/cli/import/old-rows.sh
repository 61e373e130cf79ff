# SPDX-License-Identifier: BSD-3-Clause
# in files of earlier versions each rank has a row where all have as many; now they are a list
# NEEDS: hdf5
cairn import "$(dirname "$0")/../../golden/good-hdf5-rows.h5" new
cairn export -o list.h5 new && h5ls list.h5
small_run t a 0 1 1 && cairn export -o now.h5 t && cairn diff now.h5 list.h5
