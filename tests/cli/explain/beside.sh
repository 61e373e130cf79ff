# SPDX-License-Identifier: BSD-3-Clause
# Marks meet a thread that does not wait for them anywhere: that is no difference.
# NEEDS: zstd
small_run t a 0 4 all && small_run t b 0.5 4 all
small_trace t/a.ctr 1 early && small_trace t/b.ctr 1 late
cairn explain t/a t/b
