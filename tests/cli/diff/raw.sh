# SPDX-License-Identifier: BSD-3-Clause
printf '\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0' >a.bin
printf '\1\0\0\0\2\0\0\0\3\0\0\0\5\0\0\0' >b.bin
cairn diff --raw bytes a.bin b.bin
cairn diff --raw int32 a.bin b.bin; cairn diff --raw uint16 --shape 2x4 --csv a.bin b.bin
