# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
small_trace t.ctr 2
cairn trace export t.ctr | sed -n "1,8p;\$p"
cairn trace export -f csv t.ctr | head -4
