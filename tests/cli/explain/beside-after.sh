# SPDX-License-Identifier: BSD-3-Clause
# Or by what it begins with after the marks.
# NEEDS: zstd
small_run t a 0 4 all && small_run t b 0.5 4 all
small_trace t/a.ctr 1 early && small_trace t/b.ctr 1 after-marks
cairn explain t/a t/b
