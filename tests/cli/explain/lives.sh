# SPDX-License-Identifier: BSD-3-Clause
# Threads that follow each other under one number are told apart.
# NEEDS: zstd
small_run t a 0 4 all && small_run t b 0.5 4 all
small_trace t/a.ctr 1 threads && small_trace t/b.ctr 1 lives
cairn explain t/a t/b
