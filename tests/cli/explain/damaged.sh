# SPDX-License-Identifier: BSD-3-Clause
# A trace that is damaged is no trace.
# NEEDS: zstd
small_run t a 0 4 all && small_run t b 0.5 4 all
small_trace t/a.ctr 4 order && small_trace t/b.ctr 4 swapped
printf x | dd of=t/b.ctr bs=1 seek=100 conv=notrunc 2>/dev/null; cairn explain t/a t/b
