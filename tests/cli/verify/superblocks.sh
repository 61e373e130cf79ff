# SPDX-License-Identifier: BSD-3-Clause
# One superblock may be lost, not both.
small_trail t 1 2 2 && small_trail t 1 2 2
dd if=/dev/zero of=t/run-1/series-1/000/part-000000 bs=4096 seek=1 count=1 conv=notrunc status=none
dd if=/dev/zero of=t/run-2/series-1/000/part-000000 bs=4096 count=2 conv=notrunc status=none
cairn verify t
