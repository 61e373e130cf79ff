# SPDX-License-Identifier: BSD-3-Clause
# Messages of such a thread are compared by number.
# NEEDS: zstd
small_run t a 0 4 all && small_run t b 0.5 4 all
small_trace t/a.ctr 1 early && small_trace t/b.ctr 1 beside-swapped
cairn explain t/a t/b
