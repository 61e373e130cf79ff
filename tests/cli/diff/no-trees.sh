# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 3 all && small_run t b 0.5 3 all
rm -r t/a/trees
cairn diff --bound 1e-3 t/a t/b
