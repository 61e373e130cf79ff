# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
small_trace t.ctr 1
cairn trace replay --no-delay --json t.ctr | grep -v seconds | grep -v recorded
ls
