# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
cairn trace reply t.ctr
cairn trace
cairn trace stat
cairn trace export -f cvs t.ctr
cairn trace dump t.ctr
