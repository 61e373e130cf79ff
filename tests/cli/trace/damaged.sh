# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
small_trace t.ctr 2 && head -c 100 t.ctr > cut.ctr
cairn trace stat cut.ctr
echo nonsense > bad.ctr
cairn trace show bad.ctr
cairn trace show none.ctr
