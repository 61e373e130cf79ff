# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: hdf5
small_trail t 3 2 2 && cairn export -o one.h5 t && cairn import --mark 7 one.h5 new/
cairn ls new && cairn verify new
cairn export -o two.h5 new && h5diff one.h5 two.h5 temperature && h5diff one.h5 two.h5 step
cairn import --json one.h5 new/other
