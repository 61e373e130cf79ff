# SPDX-License-Identifier: BSD-3-Clause
# Trees of other blocks cannot be compared; but what is one block in both can.
small_run t a 0 1 1 && cairn gate --bless a.golden t/a
export CAIRN_VARIABLE_BLOCK=4KiB
small_run t b 0 1 1 && cairn gate --variable step a.golden t/b && cairn gate a.golden t/b
