# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 2 all && small_run t b 0 1 all
cairn diff --marks all t/a t/b
