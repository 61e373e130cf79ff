# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
small_trace t.ctr 3 waiting && cairn trace stat t.ctr | sed -n '/^waiting/,/^$/p'
cairn trace stat --json t.ctr | grep -E '"(last|waits)": [0-9]'
