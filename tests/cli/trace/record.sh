# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
cairn trace record -o t.ctr -- sh -c 'exit 7'
echo $?
cairn trace record -o t.ctr -- true
echo $?
cairn trace record -p 101 -- true
cairn trace record
