# SPDX-License-Identifier: BSD-3-Clause
# A mark that only one run has is nothing that traces could explain.
# NEEDS: zstd
small_run t a 0 2 all && small_run t b 0 1 all
cairn explain t/a t/b
