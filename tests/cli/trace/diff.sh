# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
small_trace a.ctr 4
small_trace b.ctr 3
cairn trace diff a.ctr a.ctr
cairn trace diff a.ctr b.ctr
