# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
small_run t a 0 4 all && small_run t b 0.5 4 all
small_trace x.ctr 4 order && small_trace y.ctr 4 swapped
cairn explain t/a t/b x.ctr y.ctr
