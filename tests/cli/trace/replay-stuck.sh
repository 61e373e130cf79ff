# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
small_trace t.ctr 1 stuck
cairn trace replay --patience 1s t.ctr
