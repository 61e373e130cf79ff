# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 2 all 2 && small_run t b 0 3 all 3
cairn diff t/a t/b
