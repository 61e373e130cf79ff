# SPDX-License-Identifier: BSD-3-Clause
# How often a probe finds a message before it is received is a matter of time.
# NEEDS: zstd
small_run t a 0 4 all && small_run t b 0.5 4 all
small_trace t/a.ctr 1 once && small_trace t/b.ctr 1 often
cairn explain t/a t/b
