# SPDX-License-Identifier: BSD-3-Clause
# Threads that have each other's number in the other run are found.
# NEEDS: zstd
small_run t a 0 4 all && small_run t b 0.5 4 all
small_trace t/a.ctr 1 threads && small_trace t/b.ctr 1 turned
cairn explain t/a t/b
