# SPDX-License-Identifier: BSD-3-Clause
# Blocks of another size do not matter, and leaves of another size only where the data is gone.
small_run t a 0 2 2 && cairn gate --bless a.golden t/a
export CAIRN_VARIABLE_BLOCK=4KiB
small_run t b 0 2 2 && cairn gate a.golden t/b
export CAIRN_COMPARE_LEAF=4KiB
small_run t c 0 2 2 && cairn gate a.golden t/c
small_run t d 0 2 1 && cairn gate a.golden t/d
