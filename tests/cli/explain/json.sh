# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
small_run t a 0 4 all && small_run t b 0.5 4 all
small_trace t/a.ctr 4 order && small_trace t/b.ctr 4 swapped
cairn explain --json t/a t/b
