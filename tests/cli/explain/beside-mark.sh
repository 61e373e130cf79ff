# SPDX-License-Identifier: BSD-3-Clause
# But one that another thread took may hold more messages of the thread.
# NEEDS: zstd
small_run t a 0 4 all && small_run t b 0.5 4 all
small_trace t/a.ctr 1 early && small_trace t/b.ctr 1 later
cairn explain t/a t/b
