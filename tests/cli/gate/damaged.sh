# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 1 1 && cairn gate --bless a.golden t/a
printf x | dd of=a.golden bs=1 seek=99 conv=notrunc 2>/dev/null
cairn gate a.golden t/a
