# SPDX-License-Identifier: BSD-3-Clause
printf '\1\0\0\0\2\0\0\0\3\0\0\0' >a.bin && cairn diff --raw int32 a.bin a.bin
cairn diff --raw float64 a.bin a.bin; cairn diff --raw int32 --shape 2x2 a.bin a.bin
cairn diff --raw int33 a.bin a.bin; cairn diff --shape 3 a.bin a.bin
cairn diff --raw int32 --shape 3y a.bin a.bin
