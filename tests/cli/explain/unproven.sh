# SPDX-License-Identifier: BSD-3-Clause
# What is only not proven equal is not said to agree.
# NEEDS: zstd
small_run t a 0 5 1 && small_run t b 0.5 3 1
cairn explain t/a t/b
