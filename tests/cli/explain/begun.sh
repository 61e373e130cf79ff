# SPDX-License-Identifier: BSD-3-Clause
# A mark that stays open while the program goes on may hold what came meanwhile.
# NEEDS: zstd
small_run t a 0 4 all && small_run t b 0.5 4 all
small_trace t/a.ctr 4 begun && small_trace t/b.ctr 4 begun-swapped
cairn explain t/a t/b
