# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 3 all && small_run t b 1e-5 3 all
cairn diff --bound 1e-7 t/a t/b
