# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
small_trail t 1 1 1 && small_trail t 1 1 1 && small_trace t.ctr 2
cairn report --trace t.ctr t
