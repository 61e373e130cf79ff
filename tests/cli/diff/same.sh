# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 3 all && small_run t b 0 3 all
cairn diff t/a t/b
