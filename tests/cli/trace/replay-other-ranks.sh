# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
small_trace t.ctr 4
cairn trace replay t.ctr
