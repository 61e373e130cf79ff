# SPDX-License-Identifier: BSD-3-Clause
# What an earlier run left must not be taken for this one's.
# NEEDS: zstd
for name in t.ctr t.ctr.3 t.ctr.3.new t.ctr.new t.ctr.txt other.ctr; do
    echo old > $name
done
cairn trace record -o t.ctr -- true
ls
