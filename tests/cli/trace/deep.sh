# SPDX-License-Identifier: BSD-3-Clause
# A call stack of 60 frames, a name of 999 bytes and 20 ranks that are no range: nothing of them is
# cut within a word, wherever they are printed.
# NEEDS: zstd
small_trace t.ctr 40 deep && small_trace other.ctr 40
words() { echo "$1:" $(grep -o 'small+0x[0-9a-f]*' | sed -n '1p;60p;$p'); }
cairn trace show t.ctr | grep Barrier | words show
cairn trace show --json t.ctr | grep '< small' | words 'show --json'
cairn trace stat t.ctr | sed -n '/^call sites/,/^ranks/p' | grep Barrier | words stat
cairn trace stat --json t.ctr | grep -m 1 '< small' | words 'stat --json'
cairn trace dump --rank 0 t.ctr | grep Barrier | words dump
cairn trace dump --rank 0 --json t.ctr | grep Barrier | words 'dump --json'
cairn trace export --format csv t.ctr | grep -m 1 Barrier | words export
cairn trace show t.ctr | grep -o 'open.*ranks [^;]*' | grep -o 'nnx int.*'
cairn trace diff t.ctr other.ctr | grep -o 'nnx .*' | sed 's/  */ /g'
